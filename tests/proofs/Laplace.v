(** Discrete Laplace noise of ratio r = exp(-1/scale), rational here: the chance that a bin stays below a threshold is
    log-concave in what is missing to it, as Threshold.v takes for granted. All chances are times 1 + r. *)

From Coq Require Import QArith Lqa Lia.
#[local] Open Scope Q_scope.

Section Laplace.
Variable r : Q.
Hypothesis ratio : 0 < r < 1.

Fixpoint power (n : nat) : Q := match n with O => 1 | S n => r * power n end.

(** core/noise/threshold.py, [tail_bounds]: noise reaches [k] with this chance, and with 1 less its mirror for [k] below 1. *)
Definition tail (k : Z) : Q := if (k <? 1)%Z then 1 + r - power (Z.to_nat (1 - k)) else power (Z.to_nat k).
Definition hidden (k : Z) : Q := 1 + r - tail k.

Lemma power_small n : 0 < power n <= 1.
Proof. induction n as [|n IH]; cbn [power]; [lra|nra]. Qed.

Lemma hidden_low k : (k <= 1)%Z -> hidden k == power (Z.to_nat (1 - k)).
Proof.
  intros K. unfold hidden, tail. destruct (Z.ltb_spec k 1); [ring|]. assert (k = 1)%Z as -> by lia. simpl. ring.
Qed.

Lemma hidden_high k : (0 <= k)%Z -> hidden k == 1 + r - power (Z.to_nat k).
Proof.
  intros K. unfold hidden, tail. destruct (Z.ltb_spec k 1); [|ring]. assert (k = 0)%Z as -> by lia. simpl. ring.
Qed.

Lemma hidden_positive k : 0 < hidden k.
Proof.
  destruct (Z.le_gt_cases k 1) as [L|L]; [rewrite hidden_low by lia; apply power_small|].
  rewrite hidden_high by lia. pose proof (power_small (Z.to_nat k)). lra.
Qed.

Lemma bends k : hidden (k - 1) * hidden (k + 1) <= hidden k * hidden k.
Proof.
  destruct (Z.le_gt_cases k 0) as [L|L].
  - rewrite !hidden_low by lia. replace (Z.to_nat (1 - (k - 1))) with (S (S (Z.to_nat (- k)))) by lia.
    replace (Z.to_nat (1 - (k + 1))) with (Z.to_nat (- k)) by lia. replace (Z.to_nat (1 - k)) with (S (Z.to_nat (- k))) by lia.
    cbn [power]. lra.
  - rewrite !hidden_high by lia. replace (Z.to_nat (k + 1)) with (S (S (Z.to_nat (k - 1)))) by lia.
    replace (Z.to_nat k) with (S (Z.to_nat (k - 1))) by lia. cbn [power]. set (a := power (Z.to_nat (k - 1))).
    assert (0 < a) as A by apply power_small.
    assert (0 <= (1 + r) * a * ((1 - r) * (1 - r))) by (repeat apply Qmult_le_0_compat; lra). lra.
Qed.

Lemma further d : forall i, hidden (i - 1) * hidden (i + Z.of_nat d + 1) <= hidden i * hidden (i + Z.of_nat d).
Proof.
  induction d as [|d IH]; intros i; [rewrite Z.add_0_r; apply bends|]. specialize (IH i).
  pose proof (bends (i + Z.of_nat (S d))) as C. replace (i + Z.of_nat (S d) - 1)%Z with (i + Z.of_nat d)%Z in C by lia.
  replace (i + Z.of_nat d + 1)%Z with (i + Z.of_nat (S d))%Z in IH by lia.
  pose proof (hidden_positive (i - 1)). pose proof (hidden_positive (i + Z.of_nat d)). pose proof (hidden_positive (i + Z.of_nat (S d))).
  pose proof (hidden_positive i).
  set (a := hidden (i - 1)) in *. set (b := hidden i) in *. set (c := hidden (i + Z.of_nat d)) in *.
  set (e := hidden (i + Z.of_nat (S d))) in *. set (h := hidden (i + Z.of_nat (S d) + 1)) in *.
  assert (a * (c * h) <= a * (e * e)) by (rewrite !(Qmult_comm a); apply Qmult_le_compat_r; lra).
  assert (a * e * e <= b * c * e) by (apply Qmult_le_compat_r; lra).
  destruct (Qlt_le_dec (b * e) (a * h)) as [N|]; [|easy].
  assert (b * e * c < a * h * c) by (apply Qmult_lt_r; easy). lra.
Qed.

(** A unit of weight is [grid] steps of the noise. *)
Theorem hidden_is_log_concave grid k :
  hidden (k - Z.of_nat grid) * hidden (k + Z.of_nat grid) <= hidden k * hidden k.
Proof.
  induction grid as [|d IH]; [rewrite Z.sub_0_r, Z.add_0_r; lra|].
  apply Qle_trans with (hidden (k - Z.of_nat d) * hidden (k + Z.of_nat d)); [|easy].
  pose proof (further (2 * d) (k - Z.of_nat d)) as F.
  replace (k - Z.of_nat d - 1)%Z with (k - Z.of_nat (S d))%Z in F by lia.
  replace (k - Z.of_nat d + Z.of_nat (2 * d) + 1)%Z with (k + Z.of_nat (S d))%Z in F by lia.
  now replace (k - Z.of_nat d + Z.of_nat (2 * d))%Z with (k + Z.of_nat d)%Z in F by lia.
Qed.

End Laplace.
