(** Sums of integers over finite lists. *)

From Coq Require Export ZArith List Lia Permutation.
Export ListNotations.
#[global] Open Scope Z_scope.

Fixpoint sum {A} (f : A -> Z) (l : list A) : Z :=
  match l with [] => 0 | x :: rest => f x + sum f rest end.

Section Sums.
Context {A B : Type}.
Implicit Types (f g : A -> Z) (l : list A).

Lemma sum_ext f g l : (forall x, In x l -> f x = g x) -> sum f l = sum g l.
Proof. induction l; simpl; intros E; [easy|]. rewrite E by auto. rewrite IHl; auto. Qed.

Lemma sum_le f g l : (forall x, In x l -> f x <= g x) -> sum f l <= sum g l.
Proof.
  induction l as [|a l IH]; simpl; intros E; [lia|].
  assert (f a <= g a) by auto. assert (sum f l <= sum g l) by auto. lia.
Qed.

Lemma sum_zero f l : (forall x, In x l -> f x = 0) -> sum f l = 0.
Proof. induction l; simpl; intros E; [easy|]. rewrite E by auto. rewrite IHl; auto. Qed.

Lemma sum_nonneg f l : (forall x, In x l -> 0 <= f x) -> 0 <= sum f l.
Proof. induction l; simpl; intros E; [lia|]. assert (0 <= f a) by auto. assert (0 <= sum f l) by auto. lia. Qed.

Lemma sum_plus f g l : sum (fun x => f x + g x) l = sum f l + sum g l.
Proof. induction l; simpl; lia. Qed.

Lemma sum_minus f g l : sum (fun x => f x - g x) l = sum f l - sum g l.
Proof. induction l; simpl; lia. Qed.

Lemma sum_scale k f l : sum (fun x => k * f x) l = k * sum f l.
Proof. induction l; simpl; lia. Qed.

Lemma sum_abs f l : Z.abs (sum f l) <= sum (fun x => Z.abs (f x)) l.
Proof. induction l; simpl; lia. Qed.

Lemma sum_app f l l' : sum f (l ++ l') = sum f l + sum f l'.
Proof. induction l; simpl; lia. Qed.

Lemma sum_map (h : B -> A) f (l : list B) : sum f (map h l) = sum (fun x => f (h x)) l.
Proof. induction l; simpl; lia. Qed.

Lemma sum_flat_map (h : B -> list A) f (l : list B) : sum f (flat_map h l) = sum (fun x => sum f (h x)) l.
Proof. induction l; simpl; [easy|]. rewrite sum_app. lia. Qed.

Lemma sum_perm f l l' : Permutation l l' -> sum f l = sum f l'.
Proof. induction 1; simpl; lia. Qed.

Lemma sum_filter f (p : A -> bool) l : sum f (filter p l) = sum (fun x => if p x then f x else 0) l.
Proof. induction l; simpl; [easy|]. destruct (p a); simpl; lia. Qed.

(** A list without repetitions that lies within another one. *)
Lemma sum_incl f l l' : (forall x, 0 <= f x) -> NoDup l -> incl l l' -> sum f l <= sum f l'.
Proof.
  revert l'. induction l as [|a l IH]; intros l' P N I; simpl.
  - now apply sum_nonneg.
  - inversion N; subst. destruct (in_split a l') as (u & v & ->). { apply I. now left. }
    assert (sum f l <= sum f (u ++ v)).
    { apply IH; auto. intros x Hx. assert (In x (u ++ a :: v)) as H by (apply I; now right).
      apply in_app_or in H as [H|[->|H]]; [now apply in_or_app; left|easy|now apply in_or_app; right]. }
    rewrite sum_app in *. simpl. lia.
Qed.

(** Two lists without repetitions that agree wherever [f] is not 0. *)
Lemma sum_support f l l' :
  NoDup l -> NoDup l' -> (forall x, f x <> 0 -> (In x l <-> In x l')) -> sum f l = sum f l'.
Proof.
  intros N N' E.
  assert (forall m, sum f m = sum f (filter (fun x => negb (f x =? 0)) m)) as F.
  { intros m. rewrite sum_filter. apply sum_ext. intros x _. destruct (Z.eqb_spec (f x) 0); simpl; lia. }
  rewrite (F l), (F l'). apply sum_perm, NoDup_Permutation; try now apply NoDup_filter.
  intros x. rewrite !filter_In, Bool.negb_true_iff, Z.eqb_neq. specialize (E x). tauto.
Qed.

End Sums.

Lemma sum_swap {A B} (f : A -> B -> Z) (l : list A) (l' : list B) :
  sum (fun x => sum (f x) l') l = sum (fun y => sum (fun x => f x y) l) l'.
Proof.
  induction l; simpl.
  - symmetry. now apply sum_zero.
  - now rewrite IHl, <- sum_plus.
Qed.
