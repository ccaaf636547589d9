(** Permute-and-flip (core/noise/exponential.py): all candidates flip their coins, and of those that are taken the first in a
    random order is chosen. So a candidate is chosen with the chance of its coin, divided by how many are taken.

    A weight is exp(-rate * loss), a coin the weight over the largest of all. They are rational here; what is said holds
    for real ones by continuity. *)

From Coq Require Import QArith Lqa Lia List.
Import ListNotations.

(** What is expected of [h] of the number of coins that are taken. *)
Fixpoint mean (h : nat -> Q) (coins : list Q) : Q :=
  match coins with [] => h O | coin :: rest => coin * mean (fun k => h (S k)) rest + (1 - coin) * mean h rest end.

Definition many (n : nat) : Q := inject_Z (Z.of_nat n).
Definition first_of (others : nat) : Q := 1 / many (S others).
Definition chance (coin : Q) (others : list Q) : Q := coin * mean first_of others.
Definition coins (l : list Q) : Prop := Forall (fun coin => 0 <= coin <= 1) l.

Lemma many_step n : many (S n) == many n + 1.
Proof. unfold many. rewrite Nat2Z.inj_succ, <- Z.add_1_r, inject_Z_plus. reflexivity. Qed.

Lemma many_positive n : 0 <= many n.
Proof. unfold many. change 0 with (inject_Z 0). rewrite <- Zle_Qle. lia. Qed.

Lemma mean_linear u v f g l : mean (fun k => u * f k + v * g k) l == u * mean f l + v * mean g l.
Proof. revert f g. induction l as [|coin l IH]; intros f g; cbn [mean]; [lra|]. rewrite !IH. ring. Qed.

Lemma mean_le f g l : coins l -> (forall k, f k <= g k) -> mean f l <= mean g l.
Proof.
  intros C. revert f g. induction C as [|coin l P C IH]; intros f g L; cbn [mean]; [easy|].
  pose proof (IH f g L). pose proof (IH (fun k => f (S k)) (fun k => g (S k)) (fun k => L (S k))). destruct P. nra.
Qed.

Lemma mean_equal f g l : (forall k, f k == g k) -> mean f l == mean g l.
Proof.
  revert f g. induction l as [|coin l IH]; intros f g E; cbn [mean]; [easy|].
  rewrite (IH f g E), (IH (fun k => f (S k)) (fun k => g (S k)) (fun k => E (S k))). reflexivity.
Qed.

Lemma mean_one l : mean (fun _ => 1) l == 1.
Proof. induction l as [|coin l IH]; cbn [mean]; [lra|]. rewrite IH. ring. Qed.

Lemma mean_positive h l : coins l -> (forall k, 0 <= h k) -> 0 <= mean h l.
Proof.
  intros C. revert h. induction C as [|coin l P C IH]; intros h L; cbn [mean]; [easy|].
  pose proof (IH h L). pose proof (IH (fun k => h (S k)) (fun k => L (S k))). destruct P. nra.
Qed.

(** The more others are taken, the less there is for one. *)
Lemma mean_falls h l l' : (forall k, h (S k) <= h k) -> coins l' -> Forall2 (fun c c' => 0 <= c <= c') l l' -> mean h l' <= mean h l.
Proof.
  intros D C F. revert h D C. induction F as [|c c' l l' P F IH]; intros h D C; cbn [mean]; [lra|].
  inversion C as [|? ? P' C']; subst. pose proof (IH h D C') as I.
  pose proof (IH (fun k => h (S k)) (fun k => D (S k)) C') as J. cbv beta in J.
  assert (mean (fun k => h (S k)) l' <= mean h l') as K by (apply mean_le; easy).
  destruct P, P'. apply Qle_trans with (c * mean (fun k => h (S k)) l' + (1 - c) * mean h l'); [nra|].
  assert (c * mean (fun k => h (S k)) l' <= c * mean (fun k => h (S k)) l) by (rewrite !(Qmult_comm c); now apply Qmult_le_compat_r).
  assert ((1 - c) * mean h l' <= (1 - c) * mean h l) by (rewrite !(Qmult_comm (1 - c)); apply Qmult_le_compat_r; lra). lra.
Qed.

(** Coins that are thinned: each that is taken is looked at again with the chance [rare]. *)
Section Thinned.
Variable rare : Q.
Hypothesis rare_coin : 0 <= rare <= 1.
Definition again (h : nat -> Q) (n : nat) : Q := mean h (repeat rare n).

Lemma thinned h l : mean h (map (fun coin => rare * coin) l) == mean (again h) l.
Proof.
  revert h. induction l as [|coin l IH]; intros h; cbn [map mean]; [reflexivity|]. rewrite !IH.
  rewrite (mean_equal (fun k => again h (S k)) (fun k => rare * again (fun k => h (S k)) k + (1 - rare) * again h k) l) by reflexivity.
  rewrite mean_linear. ring.
Qed.

(** Each of the coins is as likely to be among those that are taken. *)
Lemma each_alike g n : mean (fun k => many k * g k) (repeat rare (S n)) == many (S n) * rare * again (fun k => g (S k)) n.
Proof.
  revert g. induction n as [|n IH]; intros g.
  - unfold again. cbn [repeat mean]. unfold many. simpl. ring.
  - change (mean (fun k => many k * g k) (repeat rare (S (S n)))) with
      (rare * mean (fun k => many (S k) * g (S k)) (repeat rare (S n)) + (1 - rare) * mean (fun k => many k * g k) (repeat rare (S n))).
    rewrite (mean_equal (fun k => many (S k) * g (S k)) (fun k => 1 * (many k * g (S k)) + 1 * g (S k)))
      by (intros k; rewrite many_step; ring).
    rewrite mean_linear, (IH (fun k => g (S k))), (IH g), (many_step (S n)).
    change (again (fun k => g (S k)) (S n)) with
      (rare * again (fun k => g (S (S k))) n + (1 - rare) * again (fun k => g (S k)) n).
    change (mean (fun k => g (S k)) (repeat rare (S n))) with
      (rare * again (fun k => g (S (S k))) n + (1 - rare) * again (fun k => g (S k)) n). ring.
Qed.

Lemma first_of_is n : many (S n) * first_of n == 1.
Proof. unfold first_of. pose proof (many_positive n). pose proof (many_step n). field. lra. Qed.

Lemma again_first n : rare * again first_of n <= first_of n.
Proof.
  set (g := fun k => match k with O => 0 | S k => first_of k end).
  assert (many (S n) * rare * again first_of n <= 1) as L.
  { change first_of with (fun k => g (S k)). rewrite <- each_alike, <- (mean_one (repeat rare (S n))). apply mean_le.
    - apply Forall_forall. intros c I. now apply repeat_spec in I as ->.
    - intros [|k]; unfold g; [unfold many; simpl; lra|]. rewrite first_of_is. lra. }
  pose proof (first_of_is n) as F. pose proof (many_positive n). pose proof (many_step n) as P.
  destruct (Qlt_le_dec (first_of n) (rare * again first_of n)) as [B|]; [|easy].
  apply (Qmult_lt_l _ _ (many (S n))) in B; lra.
Qed.

Lemma thinned_first l : coins l -> rare * mean first_of (map (fun coin => rare * coin) l) <= mean first_of l.
Proof.
  intros C. rewrite thinned.
  assert (rare * mean (again first_of) l == mean (fun k => rare * again first_of k + 0 * 0) l) as -> by (rewrite (mean_linear rare 0 _ (fun _ => 0)); ring).
  apply mean_le; [easy|]. intros k. pose proof (again_first k). lra.
Qed.
End Thinned.

(** Each loss moves by [s] at most, and each weight by the factor [ratio] = exp(rate s): so does the largest. *)
Section Private.
Variable ratio : Q.
Hypothesis ratio_one : 1 <= ratio.
Definition near (w w' : Q) : Prop := 0 < w /\ 0 < w' /\ w <= ratio * w' /\ w' <= ratio * w.
Definition over (largest w : Q) : Q := w / largest.

Lemma over_coins largest l : 0 < largest -> Forall (fun w => 0 < w <= largest) l -> coins (map (over largest) l).
Proof.
  intros P F. apply Forall_map. eapply Forall_impl; [|exact F]. intros w [W L]. unfold over.
  split; [apply Qle_shift_div_l; lra|apply Qle_shift_div_r; lra].
Qed.

Theorem a_choice_costs_two_moves w w' others others' largest largest' :
  near w w' -> Forall2 near others others' -> near largest largest' ->
  Forall (fun v => v <= largest) others -> Forall (fun v => v <= largest') others' ->
  chance (over largest' w') (map (over largest') others') <= ratio * ratio * chance (over largest w) (map (over largest) others).
Proof.
  intros (W & W' & WW & WW') N (M & M' & MM & MM') B B'. set (rare := largest / (ratio * largest')).
  assert (0 < ratio * largest') as R by nra.
  assert (rare * (ratio * largest') == largest) as E by (unfold rare; field; split; lra).
  assert (0 < rare) as R0 by (unfold rare; apply Qlt_shift_div_l; lra).
  assert (rare <= 1) as R1 by (unfold rare; apply Qle_shift_div_r; lra).
  assert (coins (map (over largest) others)) as C.
  { apply over_coins; [easy|]. clear B'. induction N as [|v v' l l' V N IH]; [constructor|]. inversion B; subst.
    constructor; [destruct V; lra|auto]. }
  assert (coins (map (over largest') others')) as C'.
  { apply over_coins; [easy|]. clear B C. induction N as [|v v' l l' V N IH]; [constructor|]. inversion B'; subst.
    constructor; [destruct V as (? & ? & ?); lra|auto]. }
  set (here := mean first_of (map (over largest) others)). set (there := mean first_of (map (over largest') others')).
  set (between := mean first_of (map (fun coin => rare * coin) (map (over largest) others))).
  assert (there <= between) as T.
  { apply mean_falls; [|easy|].
    - intros k. pose proof (first_of_is k) as F. pose proof (first_of_is (S k)) as F'. pose proof (many_step (S k)) as P.
      pose proof (many_step k) as P'. pose proof (many_positive k). set (a := first_of k) in *. set (b := first_of (S k)) in *.
      rewrite P in F'. destruct (Qlt_le_dec a b) as [L|]; [|easy]. assert (many (S k) * a < many (S k) * b) by (apply Qmult_lt_l; lra). nra.
    - clear - N M M' R E R0. induction N as [|v v' l l' V N IH]; [constructor|]. constructor; [|easy].
      destruct V as (V & V' & VV & _). unfold over.
      assert (v / largest * largest == v) as X by (field; lra). assert (v' / largest' * largest' == v') as X' by (field; lra).
      set (x := v / largest) in *. set (x' := v' / largest') in *. split; [nra|].
      destruct (Qlt_le_dec x' (rare * x)) as [L|]; [|easy].
      assert (x' * (ratio * largest') < rare * x * (ratio * largest')) by (apply Qmult_lt_r; lra). nra. }
  assert (rare * between <= here) as H by (apply thinned_first; [lra|easy]).
  unfold chance. fold here there. unfold over.
  assert (w / largest * largest == w) as X by (field; lra). assert (w' / largest' * largest' == w') as X' by (field; lra).
  set (x := w / largest) in *. set (x' := w' / largest') in *. clearbody x x'.
  assert (0 <= between) as P.
  { unfold between. apply mean_positive; [|intros k; apply Qle_shift_div_l; pose proof (many_positive k); pose proof (many_step k); lra].
    apply Forall_map. eapply Forall_impl; [|exact C]. intros c [? ?]. split; nra. }
  clearbody here there between. assert (0 < x') by nra.
  assert (x' <= ratio * ratio * x * rare) as Y.
  { destruct (Qlt_le_dec (ratio * ratio * x * rare) x') as [L|]; [|easy]. apply (Qmult_lt_r _ _ largest' M') in L.
    setoid_replace (ratio * ratio * x * rare * largest') with (ratio * x * (rare * (ratio * largest'))) in L by ring.
    rewrite E in L. nra. }
  assert (x' * there <= x' * between) by (rewrite !(Qmult_comm x'); apply Qmult_le_compat_r; lra).
  assert (x' * between <= ratio * ratio * x * rare * between) by (apply Qmult_le_compat_r; lra).
  assert (0 < x) by nra.
  assert (ratio * ratio * x * (rare * between) <= ratio * ratio * x * here) by (rewrite !(Qmult_comm (ratio * ratio * x)); apply Qmult_le_compat_r; [lra|nra]).
  lra.
Qed.
End Private.
