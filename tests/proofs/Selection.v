(** Partition selection (core/noise/selection.py): the closed form that is computed is the largest function that is private for
    steps of 1. [up] is exp(epsilon), a rational number here; what is said holds for real ones, being linear in delta and
    continuous. *)

From Coq Require Import QArith Lqa Lia.
#[local] Open Scope Q_scope.

Section Selection.
Variables up delta : Q.
Hypothesis up_one : 1 < up.
Hypothesis delta_some : 0 < delta < 1.

Fixpoint power (n : nat) : Q := match n with O => 1 | S n => up * power n end.

(** The first branch, and of the second what is left to 1 after [m] steps more. *)
Definition rise (n : nat) : Q := delta * (power n - 1) / (up - 1).
Variable turn : nat.
Definition left (m : nat) : Q := (1 - rise turn) / power m - (1 - 1 / power m) * delta / (up - 1).
Definition keep (n : nat) : Q :=
  if Nat.leb n turn then rise n else if Qlt_le_dec (left (n - turn)) 0 then 1 else 1 - left (n - turn).

(** [_turn]: the last [n] before which the first branch is not above this. *)
Definition middle : Q := (1 - delta) / (up + 1).
Hypothesis turn_some : (0 < turn)%nat.
Hypothesis turn_below : rise (turn - 1) <= middle.
Hypothesis turn_above : middle < rise turn.

Definition least (a b : Q) : Q := if Qlt_le_dec a b then a else b.
Lemma least_is a b : a < b /\ least a b == a \/ b <= a /\ least a b == b.
Proof. unfold least. destruct (Qlt_le_dec a b); [left|right]; split; easy || lra. Qed.

(** All cases, the innermost first. *)
Ltac least := repeat match goal with |- context [least ?a ?b] =>
  lazymatch a with context [least _ _] => fail | _ =>
    destruct (least_is a b) as [[? ?]|[? ?]]; let m := fresh in set (m := least a b) in *; clearbody m end end.

Lemma power_one n : 1 <= power n.
Proof. induction n as [|n IH]; cbn [power]; [lra|nra]. Qed.

Lemma rise_step n : rise (S n) == up * rise n + delta.
Proof. unfold rise. cbn [power]. field. lra. Qed.

Lemma left_start : left 0 == 1 - rise turn.
Proof. unfold left. cbn [power]. field. lra. Qed.

Lemma left_step m : up * left (S m) == left m - delta.
Proof. unfold left. cbn [power]. pose proof (power_one m). field. lra. Qed.

Lemma middle_is : (up + 1) * middle == 1 - delta.
Proof. unfold middle. field. lra. Qed.

Lemma middle_some : 0 < middle < 1.
Proof. unfold middle. split; [apply Qlt_shift_div_l; lra|apply Qlt_shift_div_r; lra]. Qed.

Lemma rise_positive n : 0 <= rise n.
Proof. induction n as [|n IH]; [unfold rise; cbn [power]; apply Qle_shift_div_l; lra|]. rewrite rise_step. nra. Qed.

Lemma rise_below n : (n < turn)%nat -> rise n <= middle.
Proof.
  intros L. assert (forall d, (d < turn)%nat -> rise (turn - 1 - d) <= middle) as D.
  { induction d as [|d IH]; intros B; [now rewrite Nat.sub_0_r|]. specialize (IH ltac:(lia)).
    replace (turn - 1 - d)%nat with (S (turn - 1 - S d)) in IH by lia. rewrite rise_step in IH.
    pose proof (rise_positive (turn - 1 - S d)). nra. }
  specialize (D (turn - 1 - n)%nat ltac:(lia)). now replace (turn - 1 - (turn - 1 - n))%nat with n in D by lia.
Qed.

Lemma left_below m : left m < 1 - middle.
Proof.
  pose proof middle_is as M. induction m as [|m IH]; [rewrite left_start; lra|].
  pose proof (left_step m) as L. destruct (Qlt_le_dec (left (S m)) (1 - middle)) as [|B]; [easy|].
  assert (0 < middle) by nra. assert (1 - middle <= up * (1 - middle)) by nra. nra.
Qed.

(** core/noise/selection.py: the function that the closed form stands for. *)
Definition next (p : Q) : Q := least (least (up * p + delta) (1 - (1 - p - delta) / up)) 1.

Lemma branches p r : up * r == 1 - p - delta -> up * (up * p + delta - (1 - r)) == (up * up - 1) * (p - middle).
Proof.
  intros E. assert ((up - 1) * ((up + 1) * middle) == (up - 1) * (1 - delta)) as M by now rewrite middle_is.
  lra.
Qed.

Lemma first_branch p : p <= middle -> next p == up * p + delta.
Proof.
  intros B. destruct middle_some. pose proof middle_is as M. unfold next.
  assert (up * ((1 - p - delta) / up) == 1 - p - delta) as E by (field; lra).
  set (r := (1 - p - delta) / up) in *. pose proof (branches p r E) as F.
  assert (0 <= (up * up - 1) * (middle - p)) by (apply Qmult_le_0_compat; nra).
  assert (up * p + delta <= 1 - r) by (destruct (Qlt_le_dec (1 - r) (up * p + delta)); [nra|easy]).
  assert (up * p <= up * middle) by nra. least; lra.
Qed.

Lemma second_branch p : middle < p -> next p == least (1 - (1 - p - delta) / up) 1.
Proof.
  intros B. unfold next.
  assert (up * ((1 - p - delta) / up) == 1 - p - delta) as E by (field; lra).
  set (r := (1 - p - delta) / up) in *. pose proof (branches p r E) as F.
  assert (0 <= (up * up - 1) * (p - middle)) by (apply Qmult_le_0_compat; nra).
  assert (1 - r <= up * p + delta) by (destruct (Qlt_le_dec (up * p + delta) (1 - r)); [nra|easy]). least; lra.
Qed.

Lemma next_equal p p' : p == p' -> next p == next p'.
Proof. intros E. unfold next. assert ((1 - p - delta) / up == (1 - p' - delta) / up) as F by now rewrite E.
  assert (up * p == up * p') as G by now rewrite E.
  set (r := (1 - p - delta) / up) in *. set (r' := (1 - p' - delta) / up) in *. clearbody r r'. least; lra.
Qed.

Theorem closed_form : keep 0 == 0 /\ forall n, keep (S n) == next (keep n).
Proof.
  split.
  - unfold keep. cbn [Nat.leb]. unfold rise. cbn [power]. field. lra.
  - intros n. destruct (Nat.lt_ge_cases n turn) as [L|L].
    + unfold keep. rewrite !(proj2 (Nat.leb_le _ _)) by lia. rewrite rise_step, first_branch; [easy|]. now apply rise_below.
    + (* what is left falls *)
      assert (keep n == if Qlt_le_dec (left (n - turn)) 0 then 1 else 1 - left (n - turn)) as K.
      { unfold keep. destruct (Nat.leb_spec n turn) as [Q|Q]; [|easy]. replace n with turn by lia.
        rewrite Nat.sub_diag. pose proof left_start as Start. pose proof (left_below 0) as B. pose proof middle_is as M.
        assert (rise turn <= 1).
        { replace turn with (S (turn - 1)) by lia. rewrite rise_step. nra. }
        destruct (Qlt_le_dec (left 0) 0); lra. }
      rewrite (next_equal _ _ K). unfold keep. rewrite (proj2 (Nat.leb_gt _ _)) by lia.
      replace (S n - turn)%nat with (S (n - turn)) by lia. set (m := (n - turn)%nat) in *.
      pose proof (left_below m) as B. pose proof (left_step m) as Step. destruct middle_some.
      destruct (Qlt_le_dec (left m) 0) as [N|N].
      * rewrite second_branch by easy. assert (up * ((1 - 1 - delta) / up) == - delta) as E by (field; lra).
        set (r := (1 - 1 - delta) / up) in *. assert (r < 0) by nra. assert (left (S m) < 0) by nra.
        destruct (Qlt_le_dec (left (S m)) 0); [|lra]. least; lra.
      * rewrite second_branch by lra. assert (up * ((1 - (1 - left m) - delta) / up) == left m - delta) as E by (field; lra).
        set (r := (1 - (1 - left m) - delta) / up) in *. assert (r == left (S m)) as R by (apply (Qmult_inj_l _ _ up); lra).
        destruct (Qlt_le_dec (left (S m)) 0); least; lra.
Qed.

(** One step more or less: kept, or not kept, at most exp(epsilon) as likely, and delta. *)
Theorem private_for_a_step n : 0 <= keep n <= 1 /\ keep n <= keep (S n) /\
  keep (S n) <= up * keep n + delta /\ 1 - keep n <= up * (1 - keep (S n)) + delta.
Proof.
  assert (0 <= keep n <= 1) as B.
  { destruct closed_form as [Z N]. induction n as [|n IH]; [rewrite Z; lra|]. rewrite N. unfold next.
    assert (up * ((1 - keep n - delta) / up) == 1 - keep n - delta) as E by (field; lra).
    set (r := (1 - keep n - delta) / up) in *. assert (r <= 1) by nra. split; least; nra. }
  split; [easy|]. rewrite (proj2 closed_form n). unfold next.
  assert (up * ((1 - keep n - delta) / up) == 1 - keep n - delta) as E by (field; lra).
  set (r := (1 - keep n - delta) / up) in *. repeat split; least; nra.
Qed.

(** No function that is private for steps of 1, and keeps nothing of weight 0, keeps more. *)
Theorem the_largest p : p O == 0 -> (forall n, p n <= 1) ->
  (forall n, p (S n) <= up * p n + delta /\ 1 - p n <= up * (1 - p (S n)) + delta) -> forall n, p n <= keep n.
Proof.
  intros Z One Private n. destruct closed_form as [K N]. induction n as [|n IH]; [lra|]. rewrite N. unfold next.
  assert (up * ((1 - keep n - delta) / up) == 1 - keep n - delta) as E by (field; lra).
  set (r := (1 - keep n - delta) / up) in *. destruct (Private n) as [A B]. specialize (One (S n)).
  least; nra.
Qed.

(** [w] steps: exp(w epsilon), and this delta; that grows faster than [w], so all steps in one bin cost the most. *)
Theorem private_for_steps w : forall n, keep (w + n) <= power w * keep n + rise w.
Proof.
  induction w as [|w IH]; intros n.
  - cbn [Nat.add power]. assert (rise 0 == 0) by (unfold rise; cbn [power]; field; lra). lra.
  - cbn [Nat.add power]. rewrite rise_step. specialize (IH n). destruct (private_for_a_step (w + n)) as (_ & _ & A & _). nra.
Qed.

Theorem one_bin_costs_most v w : rise v + rise w <= rise (v + w).
Proof.
  induction v as [|v IH].
  - cbn [Nat.add]. assert (rise 0 == 0) by (unfold rise; cbn [power]; field; lra). lra.
  - cbn [Nat.add]. rewrite !rise_step. pose proof (rise_positive w). nra.
Qed.

End Selection.
