(** Keyed dither (core/operators/resolution.py): how likely a unit moves rounded weights by more than it moves weights.

    A record's weight is n / D, and both may move; the draw [u], one of [W] = 2^64, is the record's own, whatever the data are. Weights that
    keep their sign move by a constant and one coin. Chances are rational: of all draws of all records. *)

From Coq Require Import QArith Lqa.
From Proofs Require Import Sums Tree Filter.
#[local] Open Scope Q_scope.

Section Dither.
Variable W : Z.
Hypothesis W_some : (1 <= W)%Z.

(** [rounded] *)
Definition rounded (D n u : Z) : Z :=
  let size := Z.abs n in let whole := ((size + u * D / W) / D)%Z in if (n <? 0)%Z then (- whole)%Z else whole.

(** The level of a weight: a multiple of 1/W. Rounded, it has passed one multiple of 1 more where [u] fills it up. *)
Definition level (D n : Z) : Z := (Z.abs n * W / D)%Z.

Lemma rounded_level D n u : (1 <= D)%Z -> (0 <= u < W)%Z -> Z.abs (rounded D n u) = ((level D n + u) / W)%Z.
Proof.
  intros P U. unfold rounded, level. set (size := Z.abs n).
  assert ((size + u * D / W) / D = (size * W / D + u) / W)%Z as E.
  { rewrite <- (Z.div_add_l size W (u * D)), <- (Z.div_add (size * W) u D), !Z.div_div by lia. now rewrite (Z.mul_comm W). }
  rewrite E. assert (0 <= (size * W / D + u) / W)%Z.
  { apply Z.div_pos; [|lia]. assert (0 <= size * W / D)%Z by (apply Z.div_pos; nia). lia. }
  destruct (n <? 0)%Z; lia.
Qed.

Definition step (D n D' n' u : Z) : Z := Z.abs (rounded D' n' u - rounded D n u).
Definition crossed (a m u : Z) : Z := ((a + m + u) / W - (a + u) / W)%Z.

Lemma step_crossed D n D' n' u : (1 <= D)%Z -> (1 <= D')%Z -> (0 <= n * n')%Z -> (0 <= u < W)%Z ->
  step D n D' n' u = crossed (Z.min (level D n) (level D' n')) (Z.abs (level D' n' - level D n)) u.
Proof.
  intros P P' Alike U. unfold step, crossed. pose proof (rounded_level D n u P U) as R. pose proof (rounded_level D' n' u P' U) as R'.
  replace (Z.min (level D n) (level D' n') + Z.abs (level D' n' - level D n))%Z with (Z.max (level D n) (level D' n')) by lia.
  assert (Z.abs (rounded D' n' u - rounded D n u) = Z.abs (Z.abs (rounded D' n' u) - Z.abs (rounded D n u))) as ->.
  { assert (forall D k, 1 <= D -> (0 <= k -> 0 <= rounded D k u) /\ (k <= 0 -> rounded D k u <= 0))%Z as S.
    { clear - U W_some. intros D k P. unfold rounded. assert (0 <= (Z.abs k + u * D / W) / D)%Z.
      { apply Z.div_pos; [|lia]. assert (0 <= u * D / W)%Z by (apply Z.div_pos; nia). lia. }
      destruct (Z.ltb_spec k 0); split; intros; try lia. assert (k = 0)%Z as -> by lia. cbn [Z.abs] in *.
      rewrite Z.div_small; [lia|]. split; [apply Z.div_pos; nia|].
      assert (u * D / W < D)%Z by (apply Z.div_lt_upper_bound; nia). lia. }
    destruct (S D n P), (S D' n' P'). assert (0 <= n /\ 0 <= n' \/ n <= 0 /\ n' <= 0)%Z by nia. lia. }
  rewrite R, R'. destruct (Z.le_ge_cases (level D n) (level D' n')) as [L|L].
  - rewrite Z.max_r, Z.min_l by easy. assert ((level D n + u) / W <= (level D' n' + u) / W)%Z by (apply Z.div_le_mono; lia). lia.
  - rewrite Z.max_l, Z.min_r by easy. assert ((level D' n' + u) / W <= (level D n + u) / W)%Z by (apply Z.div_le_mono; lia). lia.
Qed.

(** One unit more of [m]: one draw steps over one multiple more, and no draw has stepped over fewer. *)
Definition filled (a m : Z) : Z := ((- (a + m + 1)) mod W)%Z.

Lemma one_more a m u : (0 <= m)%Z -> (0 <= u < W)%Z ->
  crossed a (m + 1) u = (crossed a m u + if (u =? filled a m)%Z then 1 else 0)%Z.
Proof.
  intros M U. unfold crossed, filled. set (t := (a + m + u)%Z). replace (a + (m + 1) + u)%Z with (t + 1)%Z by (unfold t; lia).
  pose proof (Z.div_mod t W ltac:(lia)) as E. pose proof (Z.mod_pos_bound t W ltac:(lia)) as B.
  assert ((t + 1) / W = t / W + if t mod W =? W - 1 then 1 else 0)%Z as ->.
  { symmetry. destruct (Z.eqb_spec (t mod W) (W - 1)).
    - apply (Z.div_unique_pos _ _ _ 0); lia.
    - apply (Z.div_unique_pos _ _ _ (t mod W + 1)); lia. }
  assert ((t mod W =? W - 1) = (u =? (- (a + m + 1)) mod W))%Z as ->; [|lia].
  apply Bool.eq_true_iff_eq. rewrite !Z.eqb_eq. split; intros F.
  - apply (Z.mod_unique_pos _ _ (- (t / W) - 1)); [lia|]. unfold t in *. lia.
  - pose proof (Z.div_mod (- (a + m + 1)) W ltac:(lia)) as G. rewrite <- F in G. symmetry.
    apply (Z.mod_unique_pos _ _ (- ((- (a + m + 1)) / W) - 1)); [lia|]. unfold t. lia.
Qed.

Lemma fewest a m u : (0 <= m)%Z -> (0 <= u < W)%Z -> (crossed a m (filled a m) <= crossed a m u)%Z.
Proof.
  intros M U. unfold crossed. pose proof (Z.mod_pos_bound (- (a + m + 1)) W ltac:(lia)) as B. fold (filled a m) in B.
  pose proof (Z.div_mod (- (a + m + 1)) W ltac:(lia)) as E. fold (filled a m) in E.
  set (j := (- (a + m + 1) / W)%Z) in *. set (v := filled a m) in *.
  assert ((a + m + v) / W = - j - 1)%Z as ->. { symmetry. apply (Z.div_unique_pos _ _ _ (W - 1)); lia. }
  pose proof (Z.div_mod (a + v) W ltac:(lia)). pose proof (Z.mod_pos_bound (a + v) W ltac:(lia)).
  pose proof (Z.div_mod (a + u) W ltac:(lia)). pose proof (Z.mod_pos_bound (a + u) W ltac:(lia)).
  pose proof (Z.div_mod (a + m + u) W ltac:(lia)). pose proof (Z.mod_pos_bound (a + m + u) W ltac:(lia)).
  set (x := ((a + v) / W)%Z) in *. set (y := ((a + u) / W)%Z) in *. set (z := ((a + m + u) / W)%Z) in *. nia.
Qed.


(** Means over the draws of a record. *)
Definition draws : list Z := places 0 W.
Definition mean_draw (f : Z -> Q) : Q := total f draws / inject_Z W.
Fixpoint power (z : Q) (n : nat) : Q := match n with O => 1 | S n => z * power z n end.

Lemma power_one z n : 1 <= z -> 1 <= power z n.
Proof. intros O. induction n as [|n IH]; cbn [power]; [lra|nra]. Qed.

Lemma power_le z n m : 1 <= z -> (n <= m)%nat -> power z n <= power z m.
Proof.
  intros O L. induction L as [|m L IH]; [lra|]. cbn [power]. pose proof (power_one z m O). nra.
Qed.

Lemma power_plus z n m : power z (n + m) == power z n * power z m.
Proof. induction n as [|n IH]; cbn [Nat.add power]; [ring|]. rewrite IH. ring. Qed.

Lemma W_positive : 0 < inject_Z W.
Proof. change 0 with (inject_Z 0). rewrite <- Zlt_Qlt. lia. Qed.

Lemma mean_draw_le f g : (forall u, (0 <= u < W)%Z -> f u <= g u) -> mean_draw f <= mean_draw g.
Proof.
  intros L. unfold mean_draw. pose proof W_positive. apply Qmult_le_compat_r; [|apply Qlt_le_weak, Qinv_lt_0_compat; easy].
  apply total_le. intros u I. apply L. now apply in_places in I.
Qed.

Lemma mean_draw_scale k f : mean_draw (fun u => k * f u) == k * mean_draw f.
Proof. unfold mean_draw. rewrite total_scale. field. pose proof W_positive. lra. Qed.

Lemma total_ext {A} (f g : A -> Q) l : (forall x, In x l -> f x == g x) -> total f l == total g l.
Proof. intros E. apply Qle_antisym; apply total_le; intros x I; rewrite (E x I); apply Qle_refl. Qed.

Lemma total_const k (l : list Z) : total (fun _ => k) l == inject_Z (Z.of_nat (length l)) * k.
Proof.
  induction l as [|x l IH]; cbn [total length]; [ring|]. rewrite IH, Nat2Z.inj_succ, <- Z.add_1_r, inject_Z_plus. ring.
Qed.

Lemma draws_length : Z.of_nat (length draws) = W.
Proof. unfold draws, places. rewrite map_length, seq_length. lia. Qed.

Lemma total_at v k (l : list Z) : NoDup l -> In v l -> total (fun u => if (u =? v)%Z then k else 0) l == k.
Proof.
  intros N I. induction N as [|u l O N IH]; [easy|]. cbn [total]. destruct (Z.eqb_spec u v) as [->|D].
  - rewrite (total_ext _ (fun _ => 0)), total_const; [ring|]. intros u J. destruct (Z.eqb_spec u v); [now subst|easy].
  - rewrite IH; [ring|]. now destruct I.
Qed.

Lemma draws_once : NoDup draws.
Proof. unfold draws, places. apply FinFun.Injective_map_NoDup; [intros i j; lia|apply seq_NoDup]. Qed.

(** The mean of z^moved, for z = 1 + y: no more than if the movement were divided among many small coins. *)
Variable y : Q.
Hypothesis y_some : 0 <= y.
Definition coin : Q := 1 + y / inject_Z W.

Lemma coin_one : 1 <= coin.
Proof.
  unfold coin. pose proof W_positive. assert (0 <= y / inject_Z W) by (apply Qle_shift_div_l; lra). lra.
Qed.

Lemma mean_power a m : mean_draw (fun u => power (1 + y) (Z.to_nat (crossed a (Z.of_nat m) u))) <= power coin m.
Proof.
  induction m as [|m IH].
  - cbn [power]. unfold mean_draw. rewrite (total_ext _ (fun _ => 1)).
    + rewrite total_const, draws_length. pose proof W_positive. setoid_replace (inject_Z W * 1 / inject_Z W) with 1 by (field; lra). lra.
    + intros u _. unfold crossed. rewrite Z.add_0_r, Z.sub_diag. reflexivity.
  - cbn [power]. set (h := fun u => power (1 + y) (Z.to_nat (crossed a (Z.of_nat m) u))) in *.
    set (v := filled a (Z.of_nat m)). assert (0 <= v < W)%Z as V by (apply Z.mod_pos_bound; lia).
    assert (total (fun u => power (1 + y) (Z.to_nat (crossed a (Z.of_nat (S m)) u))) draws
      <= total h draws + y * h v) as T.
    { rewrite <- (total_at v (y * h v) draws draws_once) by (now apply in_places).
      assert (forall f g l, total (fun u : Z => f u + g u) l == total f l + total g l) as Plus.
      { intros f g l. induction l as [|x l IHl]; cbn [total]; [ring|]. rewrite IHl. ring. }
      rewrite <- Plus. apply total_le. intros u I. apply in_places in I. rewrite Nat2Z.inj_succ, <- Z.add_1_r, one_more by lia.
      unfold h. fold v. destruct (Z.eqb_spec u v) as [->|N]; [|rewrite Z.add_0_r; lra].
      assert (0 <= crossed a (Z.of_nat m) v)%Z.
      { unfold crossed. assert ((a + v) / W <= (a + Z.of_nat m + v) / W)%Z by (apply Z.div_le_mono; lia). lia. }
      rewrite Z2Nat.inj_add, Nat.add_comm by lia. change (Z.to_nat 1) with 1%nat. cbn [Nat.add power]. lra. }
    assert (h v <= mean_draw h) as Few.
    { apply Qle_trans with (mean_draw (fun _ => h v)).
      - unfold mean_draw. rewrite total_const, draws_length. pose proof W_positive.
        setoid_replace (inject_Z W * h v / inject_Z W) with (h v) by (field; lra). lra.
      - apply mean_draw_le. intros u U. unfold h. apply power_le; [lra|].
        pose proof (fewest a (Z.of_nat m) u ltac:(lia) U) as Fewest. fold v in Fewest. lia. }
    pose proof W_positive as P. pose proof coin_one. unfold mean_draw at 1.
    apply Qle_trans with (mean_draw h + y * h v / inject_Z W).
    { unfold mean_draw. setoid_replace (total h draws / inject_Z W + y * h v / inject_Z W) with ((total h draws + y * h v) / inject_Z W) by (field; lra).
      apply Qmult_le_compat_r; [easy|apply Qlt_le_weak, Qinv_lt_0_compat; easy]. }
    assert (coin * mean_draw h == mean_draw h + y / inject_Z W * mean_draw h) as C by (unfold coin; ring).
    setoid_replace (y * h v / inject_Z W) with (y / inject_Z W * h v) by (field; lra).
    assert (0 <= y / inject_Z W) by (apply Qle_shift_div_l; lra). nra.
Qed.

(** The chance that all records together move by [least] or more; of each its denominator and both weights. *)
Fixpoint likely (least : Z) (records : list (Z * Z * Z * Z)) : Q :=
  match records with
  | [] => if (least <=? 0)%Z then 1 else 0
  | (D, n, D', n') :: rest => mean_draw (fun u => likely (least - step D n D' n' u) rest)
  end.
Definition levels (r : Z * Z * Z * Z) : Z := let '(D, n, D', n') := r in Z.abs (level D' n' - level D n).
Definition alike (r : Z * Z * Z * Z) : Prop := let '(D, n, D', n') := r in (1 <= D /\ 1 <= D' /\ 0 <= n * n')%Z.

Lemma likely_positive records : forall least, 0 <= likely least records.
Proof.
  induction records as [|[[[D n] D'] n'] rest IH]; intros least; cbn [likely]; [destruct (least <=? 0)%Z; lra|].
  unfold mean_draw. pose proof W_positive. apply Qle_shift_div_l; [easy|].
  assert (total (fun _ : Z => 0) draws <= total (fun u => likely (least - step D n D' n' u) rest) draws) as L by now apply total_le.
  rewrite total_const in L. lra.
Qed.

(** Chernoff's bound, with a chance of 1 for each level. *)
Theorem dither_concentrates records : forall least, Forall alike records ->
  power (1 + y) (Z.to_nat least) * likely least records <= power coin (Z.to_nat (sum levels records)).
Proof.
  induction records as [|[[[D n] D'] n'] rest IH]; intros least F; cbn [likely sum].
  - change (Z.to_nat 0) with O. cbn [power]. destruct (Z.leb_spec least 0); [|lra]. replace (Z.to_nat least) with O by lia. cbn [power]. lra.
  - inversion F as [|? ? A F']; subst. destruct A as (P & P' & Alike). rewrite <- mean_draw_scale. set (m := levels (D, n, D', n')).
    set (a := Z.min (level D n) (level D' n')). set (k := power coin (Z.to_nat (sum levels rest))).
    assert (0 <= sum levels rest)%Z as N by (apply sum_nonneg; intros [[[? ?] ?] ?] _; cbn; lia). assert (0 <= m)%Z as M by (cbn; lia).
    rewrite Z2Nat.inj_add, power_plus by easy. fold k.
    assert (1 <= k) as K by (apply power_one, coin_one).
    apply Qle_trans with (mean_draw (fun u => k * power (1 + y) (Z.to_nat (crossed a m u)))).
    + apply mean_draw_le. intros u U. pose proof (step_crossed D n D' n' u P P' Alike U) as S. fold a in S.
      change (Z.abs (level D' n' - level D n)) with m in S. specialize (IH (least - step D n D' n' u)%Z F'). fold k in IH.
      rewrite <- S. set (s := step D n D' n' u) in *. set (l := likely (least - s) rest) in *.
      assert (0 <= l) by apply likely_positive. assert (0 <= s)%Z by (unfold s, step; lia).
      apply Qle_trans with (power (1 + y) (Z.to_nat s) * (power (1 + y) (Z.to_nat (least - s)) * l)).
      * rewrite Qmult_assoc, <- power_plus. apply Qmult_le_compat_r; [|easy]. apply power_le; [lra|lia].
      * rewrite (Qmult_comm k). pose proof (power_one (1 + y) (Z.to_nat s) ltac:(lra)).
        rewrite !(Qmult_comm (power (1 + y) (Z.to_nat s))). apply Qmult_le_compat_r; [easy|lra].
    + rewrite mean_draw_scale, Qmult_comm. apply Qmult_le_compat_r; [|lra].
      pose proof (mean_power a (Z.to_nat m)) as B. rewrite Z2Nat.id in B by easy. exact B.
Qed.

(** Levels are what weights move by, in units of 1/W, and less than one more for each record. *)
Theorem levels_are_movement D n D' n' : (1 <= D)%Z -> (1 <= D')%Z ->
  (D * D' * (levels (D, n, D', n') - 1) < Z.abs (n' * D - n * D') * W)%Z.
Proof.
  intros P P'. unfold levels, level.
  pose proof (Z.div_mod (Z.abs n * W) D ltac:(lia)). pose proof (Z.mod_pos_bound (Z.abs n * W) D ltac:(lia)).
  pose proof (Z.div_mod (Z.abs n' * W) D' ltac:(lia)). pose proof (Z.mod_pos_bound (Z.abs n' * W) D' ltac:(lia)).
  set (p := (Z.abs n * W / D)%Z) in *. set (q := (Z.abs n' * W / D')%Z) in *.
  assert (Z.abs (Z.abs n' * D - Z.abs n * D') <= Z.abs (n' * D - n * D'))%Z as L.
  { replace (Z.abs n' * D)%Z with (Z.abs (n' * D)) by (rewrite Z.abs_mul; f_equal; lia).
    replace (Z.abs n * D')%Z with (Z.abs (n * D')) by (rewrite Z.abs_mul; f_equal; lia). lia. }
  apply (Z.mul_le_mono_nonneg_r _ _ W) in L; [|lia]. rewrite <- (Z.abs_eq W) in L at 1 by lia. rewrite <- Z.abs_mul in L.
  assert (D * D' * q <= Z.abs n' * W * D)%Z by nia. assert (D * D' * p <= Z.abs n * W * D')%Z by nia.
  assert (Z.abs n' * W * D < D * D' * q + D * D')%Z by nia. assert (Z.abs n * W * D' < D * D' * p + D * D')%Z by nia.
  destruct (Z.abs_spec (q - p)) as [[_ ->]|[_ ->]]; lia.
Qed.

End Dither.
