(** map, filter, flat_map, a join with a public table: linear functions of each record alone.

    [None] is a record on which the function raises: it is dropped. [Linear.define] of the reference engine is [linear]. *)

From Proofs Require Import Stable.

Section RecordByRecord.
Context {A B : Type} `{Eq A} `{Eq B}.

(** core/operators/map.py, [Map.image]. Also [Extend] and [LookUp] (a join with a public table): the row of a key is a
    function of the record. *)
Definition map_records (f : A -> option B) : coll A -> coll B :=
  linear (fun x => match f x with Some y => [(y, 1)] | None => [] end).

Theorem map_stable f : Stable (map_records f) 1.
Proof. apply linear_stable. intros x. unfold mass. destruct (f x); simpl; lia. Qed.

(** core/operators/filter.py, [Where.image]. *)
Definition filter_records (p : A -> bool) : coll A -> coll A := linear (fun x => if p x then [(x, 1)] else []).

Theorem filter_stable p : Stable (filter_records p) 1.
Proof. apply linear_stable. intros x. unfold mass. destruct (p x); simpl; lia. Qed.

(** core/operators/flat_map.py, [FlatMap.image], in units of 1/parts: output [i] of [n] gets [(parts + i) / n]. *)
Fixpoint numbered (place : Z) (outputs : list B) : list (B * Z) :=
  match outputs with [] => [] | y :: rest => (y, place) :: numbered (place + 1) rest end.

Definition shares (parts : Z) (made : list B) : coll B :=
  map (fun q => (fst q, (parts + snd q) / Z.of_nat (length made))) (numbered 0 made).

Definition flat_map_records (parts : Z) (f : A -> option (list B)) : coll A -> coll B :=
  linear (fun x => match f x with Some made => shares parts made | None => [] end).

Lemma numbered_next (g : Z -> Z) place outputs :
  sum (fun q => g (snd q + 1)) (numbered place outputs) =
  sum (fun q => g (snd q)) (numbered place outputs) + g (place + Z.of_nat (length outputs)) - g place.
Proof.
  revert place. induction outputs as [|y l IH]; intros place; cbn [numbered sum length snd].
  - replace (place + Z.of_nat 0) with place by lia. lia.
  - rewrite IH. replace (place + 1 + Z.of_nat (length l)) with (place + Z.of_nat (S (length l))) by lia. lia.
Qed.

Lemma numbered_bounds place outputs q :
  In q (numbered place outputs) -> place <= snd q < place + Z.of_nat (length outputs).
Proof.
  revert place. induction outputs as [|y l IH]; intros place; simpl; [easy|].
  intros [<-|I]; simpl; [lia|]. apply IH in I. lia.
Qed.

(** The coefficients of a record sum to [parts]. *)
Lemma shares_sum parts made : 0 <= parts -> made <> [] ->
  sum (fun q => (parts + snd q) / Z.of_nat (length made)) (numbered 0 made) = parts.
Proof.
  intros P N. set (n := Z.of_nat (length made)). assert (0 < n) as Hn by (destruct made; simpl in n; [easy|lia]).
  pattern parts. apply natlike_ind; [| |easy].
  - apply sum_zero. intros q I. apply numbered_bounds in I. apply Z.div_small. fold n in I. lia.
  - intros k K E. rewrite (sum_ext _ (fun q => (k + (snd q + 1)) / n)) by (intros; f_equal; lia).
    rewrite (numbered_next (fun i => (k + i) / n)), E. fold n. simpl.
    replace ((k + n) / n) with (k / n + 1) by (replace (k + n) with (k + 1 * n) by lia; now rewrite Z.div_add by lia).
    rewrite Z.add_0_r. lia.
Qed.

Theorem flat_map_stable parts f : 0 <= parts -> Stable (flat_map_records parts f) parts.
Proof.
  intros P. apply linear_stable. intros x. destruct (f x) as [made|]; [|easy].
  destruct (list_eq_dec eq_dec made []) as [->|N]; [easy|]. unfold mass, shares. rewrite sum_map. cbn [snd].
  transitivity (sum (fun q => (parts + snd q) / Z.of_nat (length made)) (numbered 0 made)); [|now rewrite shares_sum].
  apply Z.eq_le_incl, sum_ext. intros q I.
  apply numbered_bounds in I. apply Z.abs_eq, Z.div_pos; lia.
Qed.

(** core/operators/flat_map.py, [FirstOutputs.image]: with [whole] the first [most] outputs have the whole weight. *)
Definition first_outputs (most : nat) (f : A -> option (list B)) : coll A -> coll B :=
  linear (fun x => match f x with Some made => map (fun y => (y, 1)) (firstn most made) | None => [] end).

Theorem first_outputs_stable most f : Stable (first_outputs most f) (Z.of_nat most).
Proof.
  apply linear_stable. intros x. destruct (f x) as [made|]; [|unfold mass; simpl; lia].
  unfold mass. rewrite sum_map. simpl. transitivity (Z.of_nat (length (firstn most made))).
  - apply Z.eq_le_incl. induction (firstn most made) as [|z l IH]; cbn [map sum length snd]; [easy|]. lia.
  - pose proof (firstn_le_length most made). lia.
Qed.

End RecordByRecord.
