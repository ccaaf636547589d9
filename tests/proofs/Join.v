(** join, exactly as it is computed: the reciprocal is rounded, never the product. And join_rows, which counts pairs. *)

From Proofs Require Import Stable.

(** core/operators/pairs.py, [PairWeighting.rate]: [scale] is K, and [cut] what is subtracted, K or more. *)
Definition rate (scale cut total : Z) : Z := Z.max 0 (scale * scale / total - cut).

(** One unit more in a side that weighs [own]: the record weighs [w] of it, and the other side weighs [other]. *)
Lemma rate_falls scale cut D : 0 <= D -> 0 <= scale <= cut -> rate scale cut (D + 1) <= rate scale cut D \/ D = 0.
Proof.
  intros P K. destruct (Z.eq_dec D 0) as [->|N]; [now right|left]. unfold rate.
  assert (scale * scale / (D + 1) <= scale * scale / D) by (apply Z.div_le_compat_l; nia). lia.
Qed.

Lemma join_arithmetic scale cut own other w : 0 <= w <= own -> 0 <= other -> 0 <= scale <= cut ->
  let D := own + other in
  other * Z.abs ((w + 1) * rate scale cut (D + 1) - w * rate scale cut D)
    + (own - w) * other * Z.abs (rate scale cut (D + 1) - rate scale cut D) <= scale * scale.
Proof.
  intros W P K D. destruct (Z.eq_dec other 0) as [->|N]. { rewrite Z.mul_0_r. nia. }
  assert (0 < D) as HD by lia. set (s := scale * scale).
  destruct (rate_falls scale cut D) as [F|F]; try lia. set (g := rate scale cut (D + 1)) in *.
  set (d := rate scale cut D - g).
  assert (0 <= g) as Hg by (unfold g, rate; lia). assert (0 <= d) as Hd by (unfold d; lia).
  assert (other * (g + own * d) <= s) as Goal.
  2:{ replace (rate scale cut D) with (g + d) by (unfold d; lia).
      replace (g - (g + d)) with (- d) by lia. rewrite (Z.abs_opp d), (Z.abs_eq d) by easy.
      replace ((w + 1) * g - w * (g + d)) with (g - w * d) by lia.
      assert (Z.abs (g - w * d) <= g + w * d) by nia. nia. }
  set (q := s / D). set (q' := s / (D + 1)).
  assert (q * D <= s) as Q by (unfold q; pose proof (Z.mul_div_le s D HD); lia).
  assert (s - D <= q' * (D + 1)) as Q'.
  { unfold q'. pose proof (Z.mul_succ_div_gt s (D + 1) ltac:(lia)). lia. }
  assert (q' * (D + 1) <= s) as Q'' by (unfold q'; pose proof (Z.mul_div_le s (D + 1) ltac:(lia)); lia).
  assert (g = Z.max 0 (q' - cut)) as Eg by easy.
  assert (g + d = Z.max 0 (q - cut)) as Ed by (unfold d; unfold rate at 1; fold s q; lia).
  assert (D = own + other) as ED by easy. assert (s = scale * scale) as Es by easy.
  clearbody g d q q' D s. clear F.
  assert (0 <= own * other) as Both by (apply Z.mul_nonneg_nonneg; lia).
  assert (0 <= s) as S0 by (rewrite Es; apply Z.mul_nonneg_nonneg; lia).
  destruct (Z.eq_dec (g + d) 0) as [Zero|Pos].
  { assert (g = 0 /\ d = 0) as [-> ->] by lia. rewrite Z.mul_0_r, Z.add_0_r, Z.mul_0_r. easy. }
  assert (cut < q) as C by lia.
  assert (D < scale) as Small.
  { apply Z.nle_gt. intros X. assert ((cut + 1) * D <= q * D) by (apply Z.mul_le_mono_nonneg_r; lia).
    assert ((scale + 1) * D <= (cut + 1) * D) by (apply Z.mul_le_mono_nonneg_r; lia).
    assert (scale * scale <= scale * D) by (apply Z.mul_le_mono_nonneg_l; lia). lia. }
  assert (d <= q - q') as Hdq by lia.
  assert (D * (D + 1) * d <= s + D * D) as Hfloor.
  { assert (D * (D + 1) * d <= D * (D + 1) * (q - q')).
    { apply Z.mul_le_mono_nonneg_l; [apply Z.mul_nonneg_nonneg|]; lia. }
    assert ((D + 1) * (q * D) <= (D + 1) * s) by (apply Z.mul_le_mono_nonneg_l; lia).
    assert (D * (s - D) <= D * (q' * (D + 1))) by (apply Z.mul_le_mono_nonneg_l; lia). lia. }
  assert (own * other * (D * (D + 1) * d) <= own * other * (s + D * D)) as Second by (apply Z.mul_le_mono_nonneg_l; lia).
  apply (Zmult_le_reg_r _ _ (D * (D + 1))); [apply Z.lt_gt, Z.mul_pos_pos; lia|].
  assert (0 <= s * D) as SD by (apply Z.mul_nonneg_nonneg; lia).
  destruct (Z.eq_dec g 0) as [->|G].
  - (* the heavier key has no pairs *)
    assert (0 <= (own - other) * (own - other)) by apply Z.square_nonneg.
    assert (4 * (own * other) <= D * D) by (rewrite ED; lia).
    assert (D * D <= s) by (rewrite Es; apply Z.square_le_mono_nonneg; lia).
    assert (own * other * (s + D * D) <= own * other * (2 * s)) by (apply Z.mul_le_mono_nonneg_l; lia).
    assert (4 * (own * other) * s <= D * D * s) by (apply Z.mul_le_mono_nonneg_r; lia).
    assert (0 <= D * D * s) by (rewrite <- Z.mul_assoc; apply Z.mul_nonneg_nonneg; lia). lia.
  - assert (g = q' - cut) as Eq by lia. assert (0 <= other * D) by (apply Z.mul_nonneg_nonneg; lia).
    assert (other * D * ((D + 1) * g) <= other * D * (s - cut * (D + 1))) as First.
    { apply Z.mul_le_mono_nonneg_l; [easy|]. rewrite Eq. lia. }
    assert (own * D <= cut * (D + 1)) by (apply Z.mul_le_mono_nonneg; lia).
    assert (other * D * (own * D) <= other * D * (cut * (D + 1))) by (apply Z.mul_le_mono_nonneg_l; lia).
    assert (0 <= own * own) by apply Z.square_nonneg.
    assert (other * (D + own) * s <= D * D * s) by (apply Z.mul_le_mono_nonneg_r; [easy|]; rewrite ED; lia). lia.
Qed.

Section Join.
Context {A B C K : Type} `{Eq A} `{Eq B} `{Eq C} `{Eq K}.
Variable key : A -> K.
Variable key' : B -> K.

(** The columns of a pair that are chosen. *)
Variable pair : A -> B -> C.

(** What the records of one key weigh on one side, in absolute weight. *)
Definition side {T} (key : T -> K) (k : K) (c : coll T) : Z := sum (fun p => if same (key (fst p)) k then Z.abs (snd p) else 0) c.

(** core/operators/join.py, [Join.define], in units of 1/scale^2 of the input's: pair by pair. *)
Definition pairs (weigh : K -> Z) (c : coll A) (d : coll B) : coll C :=
  flat_map (fun p => flat_map (fun q =>
    if same (key (fst p)) (key' (fst q)) then [(pair (fst p) (fst q), snd p * snd q * weigh (key (fst p)))] else []) d) c.

Definition join (scale cut : Z) (c : coll A) (d : coll B) : coll C :=
  pairs (fun k => rate scale cut (side key k c + side key' k d)) c d.

Lemma weight_pairs weigh c d z : weight (pairs weigh c d) z =
  sum (fun p => sum (fun q => if same (key (fst p)) (key' (fst q)) then
    if same (pair (fst p) (fst q)) z then snd p * snd q * weigh (key (fst p)) else 0 else 0) d) c.
Proof.
  unfold weight, pairs. rewrite sum_flat_map. apply sum_ext. intros p _. rewrite sum_flat_map. apply sum_ext. intros q _.
  destruct (same (key (fst p)) (key' (fst q))); simpl; lia.
Qed.

Lemma side_nonneg {T} (f : T -> K) k c : 0 <= side f k c.
Proof. apply sum_nonneg. intros p _. destruct (same _ _); lia. Qed.

(** The pairs of some records when the factor of one key moves. *)
Lemma factor_moves k0 f g c d : (forall k, k <> k0 -> f k = g k) ->
  dist (pairs f c d) (pairs g c d) <= side key k0 c * side key' k0 d * Z.abs (f k0 - g k0).
Proof.
  intros E. unfold pairs. etransitivity; [apply dist_flat_map|].
  rewrite <- Z.mul_assoc, Z.mul_comm. unfold side at 2. rewrite <- sum_scale. apply sum_le. intros [x a] _. cbn [fst snd].
  destruct (same (key x) k0) eqn:S.
  - apply same_true in S. etransitivity; [apply dist_flat_map|].
    rewrite <- Z.mul_assoc, Z.mul_comm. unfold side. rewrite <- sum_scale. apply sum_le. intros [y b] _. cbn [fst snd].
    rewrite S. rewrite (Bool.eq_true_iff_eq (same k0 (key' y)) (same (key' y) k0)) by (rewrite !same_true; split; congruence).
    destruct (same (key' y) k0); [|rewrite dist_refl by easy; lia].
    etransitivity; [apply dist_one|].
    rewrite <- Z.mul_sub_distr_l, !Z.abs_mul. lia.
  - apply same_false in S. rewrite (E (key x) S), dist_refl by easy. lia.
Qed.

Theorem join_left_stable scale cut d : 0 <= scale <= cut -> Stable (fun c => join scale cut c d) (scale * scale).
Proof.
  intros R. apply by_steps; unfold join.
  - intros c c' _ P z. rewrite !weight_pairs. rewrite (sum_perm _ c c' P). apply sum_ext. intros p _. apply sum_ext. intros q _.
    unfold side at 1. now rewrite (sum_perm _ c c' P).
  - intros x c _ z. rewrite !weight_pairs. cbn [sum fst snd]. rewrite sum_zero.
    + apply sum_ext. intros p _. apply sum_ext. intros q _. unfold side at 1. cbn [sum fst snd].
      now destruct (same (key x) (key (fst p))).
    + intros q _. rewrite !Z.mul_0_l. destruct (same (key x) _); [|easy]. now destruct (same (pair _ _) _).
  - intros x w s c _ G. set (k := key x). set (A0 := side key k c). set (B0 := side key' k d).
    set (f := fun k => rate scale cut (side key k ((x, w + s) :: c) + side key' k d)).
    set (g := fun k => rate scale cut (side key k ((x, w) :: c) + side key' k d)).
    assert (f k = rate scale cut (Z.abs w + A0 + B0 + 1)) as Fk.
    { unfold f, side at 1. cbn [sum fst snd]. fold k. rewrite same_refl. fold (side key k c) A0 B0. f_equal.
      unfold grows in G. lia. }
    assert (g k = rate scale cut (Z.abs w + A0 + B0)) as Gk.
    { unfold g, side at 1. cbn [sum fst snd]. fold k. rewrite same_refl. fold (side key k c) A0 B0. f_equal. }
    assert (forall k', k' <> k -> f k' = g k') as E.
    { intros k' N. unfold f, g, side at 1 3. cbn [sum fst snd]. fold k.
      replace (same k k') with false by (symmetry; apply same_false; congruence). easy. }
    transitivity (dist (pairs f [(x, w + s)] d ++ pairs f c d) (pairs g [(x, w)] d ++ pairs g c d)).
    { unfold pairs at 2 4. simpl. rewrite !app_nil_r. reflexivity. }
    etransitivity; [apply dist_app|]. pose proof (factor_moves k f g c d E) as Rest. fold A0 B0 in Rest.
    assert (dist (pairs f [(x, w + s)] d) (pairs g [(x, w)] d) <= B0 * Z.abs ((w + s) * f k - w * g k)) as Own.
    { unfold pairs. simpl. rewrite !app_nil_r. etransitivity; [apply dist_flat_map|].
      rewrite Z.mul_comm. unfold B0, side. rewrite <- sum_scale. apply sum_le. intros [y b] _. cbn [fst snd]. fold k.
      rewrite (Bool.eq_true_iff_eq (same k (key' y)) (same (key' y) k)) by (rewrite !same_true; split; congruence).
      destruct (same (key' y) k); [|rewrite dist_refl by easy; lia].
      etransitivity; [apply dist_one|]. rewrite <- Z.abs_mul. apply Z.eq_le_incl. f_equal. lia. }
    assert (0 <= A0 /\ 0 <= B0) as [PA PB] by (split; apply side_nonneg).
    pose proof (join_arithmetic scale cut (Z.abs w + A0) B0 (Z.abs w) ltac:(lia) PB R) as Arith. cbv zeta in Arith.
    rewrite <- Fk, <- Gk in Arith.
    assert (Z.abs ((w + s) * f k - w * g k) = Z.abs ((Z.abs w + 1) * f k - Z.abs w * g k)) as Sign.
    { destruct G as [[-> W]|[-> W]]; [now rewrite (Z.abs_eq w) by lia|].
      rewrite (Z.abs_neq w) by lia. rewrite <- (Z.abs_opp ((w + -1) * f k - w * g k)). f_equal. ring. }
    rewrite Sign in Own. replace (Z.abs w + A0 - Z.abs w) with A0 in Arith by lia. lia.
Qed.

End Join.

(** The other side: the same pairs with the sides exchanged. *)
Lemma join_exchanged {A B C K} `{Eq A} `{Eq B} `{Eq C} `{Eq K} (key : A -> K) (key' : B -> K) (pair : A -> B -> C) scale cut c d :
  equal (join key key' pair scale cut c d) (join key' key (fun y x => pair x y) scale cut d c).
Proof.
  intros z. unfold join. rewrite !weight_pairs, sum_swap. apply sum_ext. intros q _. apply sum_ext. intros p _.
  destruct (same (key (fst p)) (key' (fst q))) eqn:E.
  - apply same_true in E. rewrite E, same_refl. rewrite (Z.add_comm (side key _ c)).
    destruct (same (pair _ _) z); lia.
  - destruct (same (key' (fst q)) (key (fst p))) eqn:F; [|easy].
    apply same_true in F. apply same_false in E. congruence.
Qed.

Theorem join_stable {A B C K} `{Eq A} `{Eq B} `{Eq C} `{Eq K} (key : A -> K) (key' : B -> K) (pair : A -> B -> C) scale cut :
  0 <= scale <= cut -> Stable2 (join key key' pair scale cut) (scale * scale) (scale * scale).
Proof.
  intros R. apply both; intros c _; [now apply join_left_stable|].
  intros d d'. rewrite (dist_equal _ _ _ _ (join_exchanged _ _ _ _ _ c (items d)) (join_exchanged _ _ _ _ _ c (items d'))).
  now apply join_left_stable.
Qed.
