(** One measurement, several bins (core/ledger/sums/renyi.py): a unit that moves all bins by [S] together, and none by more than [B],
    loses at most S g(B) / B, where [g], the divergence of one bin by its shift, is convex and g(0) = 0. Shifts are whole
    steps of a grid; values are integers, which says it for real ones as in Threshold.v. *)

From Proofs Require Import Sums.

Section Curve.
Variable g : Z -> Z.
Variable B : Z.
Hypothesis nothing : g 0 = 0.
Hypothesis convex : forall s, 0 < s < B -> g s - g (s - 1) <= g (s + 1) - g s.

Lemma rising n : Z.of_nat n < B -> Z.of_nat (S n) * g (Z.of_nat n) <= Z.of_nat n * g (Z.of_nat (S n)).
Proof.
  induction n as [|n IH]; intros L; [cbn [Z.of_nat]; rewrite nothing; lia|]. specialize (IH ltac:(lia)).
  pose proof (convex (Z.of_nat (S n)) ltac:(lia)) as C. rewrite !Nat2Z.inj_succ in *. unfold Z.succ in *.
  set (s := Z.of_nat n) in *. replace (s + 1 - 1) with s in C by lia. assert (0 <= s) by (unfold s; lia). nia.
Qed.

(** The divergence of a shift falls short of its part of the largest. *)
Lemma part_of_the_largest d : forall s, 0 < s -> s + Z.of_nat d <= B -> (s + Z.of_nat d) * g s <= s * g (s + Z.of_nat d).
Proof.
  induction d as [|d IH]; intros s P L; [rewrite Z.add_0_r; lia|]. specialize (IH s P ltac:(lia)).
  pose proof (rising (Z.to_nat (s + Z.of_nat d)) ltac:(lia)) as R. rewrite Nat2Z.inj_succ, Z2Nat.id in R by lia.
  replace (s + Z.of_nat (S d)) with (Z.succ (s + Z.of_nat d)) by lia. set (t := s + Z.of_nat d) in *.
  set (x := g s) in *. set (y := g t) in *. set (z := g (Z.succ t)) in *.
  assert (0 < t) as T by (unfold t; lia). apply (Z.mul_le_mono_pos_l _ _ t T). clearbody x y z t.
  apply (Z.mul_le_mono_nonneg_l _ _ (Z.succ t)) in IH; [|lia]. apply (Z.mul_le_mono_nonneg_l _ _ s) in R; [|lia]. nia.
Qed.

Theorem several_bins shifts : (forall s, In s shifts -> 0 <= s <= B) -> B * sum g shifts <= sum id shifts * g B.
Proof.
  intros I. rewrite <- sum_scale, Z.mul_comm, <- sum_scale. apply sum_le. intros s J. specialize (I s J). unfold id.
  destruct (Z.eq_dec s 0) as [->|N]; [rewrite nothing; lia|].
  pose proof (part_of_the_largest (Z.to_nat (B - s)) s ltac:(lia) ltac:(lia)) as P. rewrite Z2Nat.id in P by lia.
  replace (s + (B - s)) with B in P by lia. lia.
Qed.

End Curve.
