(** Contribution bounding, and join_rows, which needs it: what is stable because each key weighs so much at the most. *)

From Proofs Require Import Order Join.

Section Users.
Context {A U : Type} `{Eq A} `{Eq U}.
Variable user : A -> U.

Definition of_user (u : U) (c : coll A) : coll A := filter (fun p => same (user (fst p)) u) c.

(** What is kept of each user depends on that user's records alone. *)
Definition by_user {B} (keep : coll A -> coll B) (c : coll A) : coll B :=
  flat_map (fun u => keep (of_user u c)) (nodup eq_dec (map (fun p => user (fst p)) c)).

(** One user comes or goes, with whatever records: the output moves by what is kept of this user. *)
Theorem a_user_moves_what_is_kept {B} `{Eq B} (keep : coll A -> coll B) most u (c d : coll A) :
  (forall g, mass (keep g) <= most) ->
  (forall p, In p c -> user (fst p) <> u) -> (forall p, In p d -> user (fst p) = u) ->
  dist (by_user keep (d ++ c)) (by_user keep c) <= Z.max most 0.
Proof.
  intros Most C D. unfold by_user.
  assert (forall v, v <> u -> of_user v (d ++ c) = of_user v c) as Others.
  { intros v N. unfold of_user. rewrite filter_app. replace (filter _ d) with (@nil (A * Z)); [easy|].
    symmetry. induction d as [|p l IH]; simpl; [easy|].
    destruct (same (user (fst p)) v) eqn:E.
    - apply same_true in E. rewrite (D p (or_introl eq_refl)) in E. congruence.
    - apply IH. intros q I. apply D. now right. }
  set (users := fun c : coll A => nodup eq_dec (map (fun p => user (fst p)) c)).
  assert (~ In u (users c)) as Absent.
  { unfold users. rewrite nodup_In, in_map_iff. intros (p & E & I). now apply (C p). }
  destruct d as [|q d].
  - simpl. rewrite dist_refl by easy. lia.
  - assert (Permutation (users ((q :: d) ++ c)) (u :: users c)) as P.
    { apply NoDup_Permutation; [apply NoDup_nodup|constructor; [easy|apply NoDup_nodup]|].
      intros v. unfold users. cbn [In]. rewrite !nodup_In, map_app, in_app_iff. split.
      - intros [I|I]; [|now right]. left. apply in_map_iff in I as (p & <- & I). symmetry. now apply D.
      - intros [<-|I]; [|now right]. left. rewrite <- (D q (or_introl eq_refl)). now left. }
    rewrite (dist_equal _ (keep (of_user u ((q :: d) ++ c)) ++ flat_map (fun v => keep (of_user v c)) (users c)) _
      (flat_map (fun v => keep (of_user v c)) (users c))).
    + etransitivity; [apply dist_added|]. specialize (Most (of_user u ((q :: d) ++ c))). lia.
    + intros x. fold (users ((q :: d) ++ c)).
      rewrite (weight_perm _ (flat_map (fun v => keep (of_user v ((q :: d) ++ c))) (u :: users c)) x)
        by now apply Permutation_flat_map.
      cbn [flat_map]. rewrite !weight_app. f_equal. unfold weight. rewrite !sum_flat_map. apply sum_ext. intros v I.
      rewrite Others; [easy|]. intros ->. easy.
    + easy.
Qed.

(** core/operators/contribution/share.py, [Share.define], in units of 1/parts: records of n share a weight of 1. *)
Definition total (g : coll A) : Z := sum snd g.
Definition share (parts : Z) (g : coll A) : coll A := map (fun p => (fst p, snd p * (parts / total g))) g.

Theorem share_bounded parts g : 0 <= parts -> (forall p, In p g -> 0 <= snd p) -> mass (share parts g) <= parts.
Proof.
  intros P N. unfold mass, share. rewrite sum_map. cbn [snd].
  assert (0 <= total g) as T by now apply sum_nonneg.
  destruct (Z.eq_dec (total g) 0) as [Z|Z].
  - rewrite Z, Zdiv_0_r. rewrite sum_zero; [easy|]. intros. now rewrite Z.mul_0_r.
  - assert (0 <= parts / total g) by (apply Z.div_pos; lia).
    rewrite (sum_ext _ (fun p => parts / total g * snd p)).
    + rewrite sum_scale. fold (total g). rewrite Z.mul_comm. apply Z.mul_div_le. lia.
    + intros p I. specialize (N p I). rewrite Z.abs_eq by (apply Z.mul_nonneg_nonneg; lia). lia.
Qed.

(** A record that weighs less than nothing has no share. *)
Definition above_zero (g : coll A) : coll A := filter (fun p => 0 <? snd p) g.

Theorem a_user_shares_one parts u (c d : coll A) : 0 <= parts ->
  (forall p, In p c -> user (fst p) <> u) -> (forall p, In p d -> user (fst p) = u) ->
  dist (by_user (fun g => share parts (above_zero g)) (d ++ c)) (by_user (fun g => share parts (above_zero g)) c) <= parts.
Proof.
  intros P C D. etransitivity; [apply (a_user_moves_what_is_kept _ parts u); try easy|lia].
  intros g. apply share_bounded; [easy|]. intros p I. apply filter_In in I as [_ I]. lia.
Qed.

(** core/operators/contribution/sample.py, [Bound.define]: the first [most] copies in the order of a keyed hash, of those that
    the bound of each place, a value of the column [per], lets through. *)
Context {P : Type} `{Eq P}.
Variable place : A -> P.
Variable rank : A -> Z -> Z.
Variable per : option nat.

Definition copies (g : coll A) : list (A * Z) :=
  flat_map (fun p => map (fun n => (fst p, Z.of_nat n)) (seq 1 (Z.to_nat (snd p)))) g.
Definition in_order (g : coll A) : list (A * Z) := sort (fun p => rank (fst p) (snd p)) (copies g).
Definition admits (seen : list P) (x : A) : bool :=
  match per with None => true | Some most => Nat.ltb (length (filter (same (place x)) seen)) most end.
Fixpoint allowed (seen : list P) (l : list (A * Z)) : list A :=
  match l with
  | [] => []
  | (x, _) :: rest => if admits seen x then x :: allowed (place x :: seen) rest else allowed seen rest
  end.
Definition sample (most : nat) (g : coll A) : coll A := map (fun x => (x, 1)) (firstn most (allowed [] (in_order g))).

Theorem sample_bounded most g : mass (sample most g) <= Z.of_nat most.
Proof.
  unfold mass, sample. rewrite sum_map. cbn [snd].
  assert (forall l : list A, sum (fun _ => Z.abs 1) l = Z.of_nat (length l)) as E.
  { induction l as [|x l IH]; cbn [sum length]; [easy|]. rewrite IH. lia. }
  rewrite E. pose proof (firstn_le_length most (allowed [] (in_order g))). lia.
Qed.

(** No order of records matters. *)
Lemma sample_any_order most g g' : (forall x n y m, rank x n = rank y m -> x = y /\ n = m) ->
  Permutation g g' -> sample most g = sample most g'.
Proof.
  intros R Q. unfold sample, in_order. rewrite (sort_unique _ (copies g) (copies g')); [easy| |].
  - intros [x n] [y m] _ _ E. cbn [fst snd] in E. apply R in E as [X N]. now subst.
  - now apply Permutation_flat_map.
Qed.

Theorem a_user_moves_a_sample most u (c d : coll A) :
  (forall p, In p c -> user (fst p) <> u) -> (forall p, In p d -> user (fst p) = u) ->
  dist (by_user (sample most) (d ++ c)) (by_user (sample most) c) <= Z.of_nat most.
Proof.
  intros C D. etransitivity; [apply (a_user_moves_what_is_kept _ (Z.of_nat most) u); try easy|lia].
  intros g. apply sample_bounded.
Qed.

End Users.

Section JoinRows.
Context {A B C K : Type} `{Eq A} `{Eq B} `{Eq C} `{Eq K}.
Variable key : A -> K.
Variable key' : B -> K.
Variable pair : A -> B -> C.

(** core/operators/join_rows.py, [JoinRows.define]: the products, in units of 1/resolution^2. *)
Definition join_rows : coll A -> coll B -> coll C := pairs key key' pair (fun _ => 1).

Lemma join_rows_left most d : (forall k, side key' k d <= most) -> Stable (fun c => join_rows c d) most.
Proof.
  intros Most.
  apply (each_stable (fun x w => flat_map (fun q =>
    if same (key x) (key' (fst q)) then [(pair x (fst q), w * snd q * 1)] else []) d)).
  - intros x z. unfold weight. rewrite sum_flat_map. apply sum_zero. intros [y b] _. cbn [fst snd].
    destruct (same (key x) (key' y)); [|easy]. cbn [sum fst snd]. destruct (same (pair x y) z); lia.
  - intros x w s G. etransitivity; [apply dist_flat_map|]. etransitivity; [|apply (Most (key x))]. unfold side.
    apply sum_le. intros [y b] _. cbn [fst snd].
    rewrite (Bool.eq_true_iff_eq (same (key x) (key' y)) (same (key' y) (key x))) by (rewrite !same_true; split; congruence).
    destruct (same (key' y) (key x)); [|now rewrite dist_refl].
    etransitivity; [apply dist_one|]. replace ((w + s) * b * 1 - w * b * 1) with (s * b) by ring.
    rewrite Z.abs_mul. unfold grows in G. nia.
Qed.

End JoinRows.

(** [a] and [b] are what the records of one key weigh at the most, on both sides, whatever the data. *)
Theorem join_rows_stable {A B C K} `{Eq A} `{Eq B} `{Eq C} `{Eq K} (key : A -> K) (key' : B -> K) (pair : A -> B -> C)
    a b (c c' : coll A) (d d' : coll B) :
  (forall k, side key' k (items d) <= b) -> (forall k, side key k (items c') <= a) ->
  dist (join_rows key key' pair (items c) (items d)) (join_rows key key' pair (items c') (items d'))
    <= b * dist c c' + a * dist d d'.
Proof.
  intros B' A'. pose proof (join_rows_left key key' pair b (items d) B' c c') as L.
  pose proof (join_rows_left key' key (fun y x => pair x y) a (items c') A' d d') as R. cbv beta in L, R.
  assert (forall u v, equal (join_rows key key' pair u v) (join_rows key' key (fun y x => pair x y) v u)) as X.
  { intros u v z. unfold join_rows. rewrite !weight_pairs, sum_swap. apply sum_ext. intros q _. apply sum_ext. intros p _.
    rewrite (Bool.eq_true_iff_eq (same (key (fst p)) (key' (fst q))) (same (key' (fst q)) (key (fst p))))
      by (rewrite !same_true; split; congruence).
    destruct (same (key' (fst q)) (key (fst p))), (same (pair (fst p) (fst q)) z); lia. }
  rewrite <- (dist_equal _ _ _ _ (X (items c') (items d)) (X (items c') (items d'))) in R.
  pose proof (triangle (join_rows key key' pair (items c) (items d)) (join_rows key key' pair (items c') (items d))
    (join_rows key key' pair (items c') (items d'))). lia.
Qed.

(** core/operators/join_rows.py, [LeftRows.define]: pairs, and what is left of each record without a partner; 1 is [unit]. *)
Section LeftRows.
Context {A B C K : Type} `{Eq A} `{Eq B} `{Eq C} `{Eq K}.
Variable key : A -> K.
Variable key' : B -> K.
Variable pair : A -> B -> C.
Variable lone : A -> C.
Variable unit : Z.

Definition rows_of (d : coll B) (x : A) (w : Z) : coll C :=
  (lone x, w * Z.max 0 (unit - side key' (key x) d)) ::
  flat_map (fun q => if same (key x) (key' (fst q)) then [(pair x (fst q), w * snd q)] else []) d.
Definition left_rows (c : coll A) (d : coll B) : coll C := each (rows_of d) c.

Lemma left_rows_left most d : (forall k, side key' k d <= most) -> Stable (fun c => left_rows c d) (Z.max most unit).
Proof.
  intros Most. apply each_stable.
  - intros x z. unfold rows_of. rewrite weight_cons. change (weight [] z) with 0.
    replace (weight (flat_map _ d) z) with 0; [destruct (same (lone x) z); lia|].
    unfold weight. rewrite sum_flat_map. symmetry. apply sum_zero. intros [y b] _. cbn [fst snd].
    destruct (same (key x) (key' y)); [|easy]. cbn [sum fst snd]. destruct (same (pair x y) z); lia.
  - intros x w s G. unfold rows_of. etransitivity; [apply dist_cons|].
    assert (dist (flat_map (fun q => if same (key x) (key' (fst q)) then [(pair x (fst q), (w + s) * snd q)] else []) d)
                 (flat_map (fun q => if same (key x) (key' (fst q)) then [(pair x (fst q), w * snd q)] else []) d)
            <= side key' (key x) d) as P.
    { etransitivity; [apply dist_flat_map|]. apply sum_le. intros [y b] _. cbn [fst snd].
      rewrite (Bool.eq_true_iff_eq (same (key x) (key' y)) (same (key' y) (key x))) by (rewrite !same_true; split; congruence).
      destruct (same (key' y) (key x)); [|now rewrite dist_refl].
      etransitivity; [apply dist_one|]. replace ((w + s) * b - w * b) with (s * b) by ring.
      rewrite Z.abs_mul. unfold grows in G. nia. }
    specialize (Most (key x)). set (r := Z.max 0 (unit - side key' (key x) d)) in *.
    replace ((w + s) * r - w * r) with (s * r) by ring. rewrite Z.abs_mul.
    replace (Z.abs s) with 1 by (unfold grows in G; lia). lia.
Qed.

Lemma left_rows_right most c : (forall k, side key k c <= most) -> Stable (left_rows c) (2 * most).
Proof.
  intros Most. apply by_steps; unfold left_rows.
  - intros d d' _ P z. rewrite !weight_each. apply sum_ext. intros p _. unfold rows_of. rewrite !weight_cons.
    unfold side. rewrite (sum_perm _ d d' P). f_equal. apply weight_perm. now apply Permutation_flat_map.
  - intros y d _ z. rewrite !weight_each. apply sum_ext. intros p _. unfold rows_of, side. cbn [flat_map sum fst snd].
    rewrite !weight_cons, weight_app. change (Z.abs 0) with 0.
    replace (weight (if same (key (fst p)) (key' y) then [(pair (fst p) y, snd p * 0)] else []) z) with 0.
    + now destruct (same (key' y) (key (fst p))).
    + destruct (same (key (fst p)) (key' y)); [|easy]. rewrite weight_cons. change (weight [] z) with 0.
      destruct (same _ z); lia.
  - intros y w s d _ G. unfold each. etransitivity; [apply dist_flat_map|].
    etransitivity; [|apply Z.mul_le_mono_nonneg_l; [lia|apply (Most (key' y))]]. unfold side at 1.
    rewrite <- sum_scale. apply sum_le. intros [x a] _. cbn [fst snd]. unfold rows_of. cbn [flat_map fst snd].
    etransitivity; [apply dist_cons|]. unfold side. cbn [sum fst snd].
    set (held := sum _ d). set (rest := flat_map _ d).
    rewrite (Bool.eq_true_iff_eq (same (key' y) (key x)) (same (key x) (key' y))) by (rewrite !same_true; split; congruence).
    destruct (same (key x) (key' y)).
    + pose proof (dist_app [(pair x y, a * (w + s))] [(pair x y, a * w)] rest rest) as P.
      rewrite (dist_refl rest rest) in P by easy. pose proof (dist_one (pair x y) (a * (w + s)) (a * w)) as Q.
      rewrite <- !Z.mul_sub_distr_l in *. rewrite Z.abs_mul in *.
      assert (Z.abs (Z.max 0 (unit - (Z.abs (w + s) + held)) - Z.max 0 (unit - (Z.abs w + held))) <= 1) as R by (unfold grows in G; lia).
      replace (w + s - w) with s in Q by lia. replace (Z.abs s) with 1 in Q by (unfold grows in G; lia).
      apply (Z.mul_le_mono_nonneg_l _ _ (Z.abs a) (Z.abs_nonneg a)) in R. lia.
    + rewrite (dist_refl (_ ++ rest) _) by easy. lia.
Qed.

Theorem left_rows_stable a b (c c' : coll A) (d d' : coll B) :
  (forall k, side key' k (items d) <= b) -> (forall k, side key k (items c') <= a) ->
  dist (left_rows (items c) (items d)) (left_rows (items c') (items d'))
    <= Z.max b unit * dist c c' + 2 * a * dist d d'.
Proof.
  intros B' A'. pose proof (left_rows_left b (items d) B' c c') as L. pose proof (left_rows_right a (items c') A' d d') as R.
  pose proof (triangle (left_rows (items c) (items d)) (left_rows (items c') (items d)) (left_rows (items c') (items d'))).
  cbv beta in L. lia.
Qed.

End LeftRows.
