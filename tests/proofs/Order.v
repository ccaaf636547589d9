(** Sorting by a rank that tells records apart: what depends on the sorted list depends on no order. *)

From Proofs Require Export Stable.
From Coq Require Export Sorted.

Section Order.
Context {T : Type}.
Variable rank : T -> Z.

Fixpoint insert (p : T) (l : list T) : list T :=
  match l with [] => [p] | q :: rest => if rank p <=? rank q then p :: l else q :: insert p rest end.
Definition sort (l : list T) : list T := fold_right insert [] l.

Lemma insert_perm p l : Permutation (insert p l) (p :: l).
Proof.
  induction l as [|q l IH]; simpl; [easy|]. destruct (rank p <=? rank q); [easy|].
  rewrite IH. apply perm_swap.
Qed.

Lemma sort_perm l : Permutation (sort l) l.
Proof. induction l as [|p l IH]; simpl; [easy|]. rewrite insert_perm. now apply perm_skip. Qed.

Lemma insert_swap p q l : (rank p = rank q -> p = q) -> insert p (insert q l) = insert q (insert p l).
Proof.
  intros U. induction l as [|a l IH]; simpl.
  - destruct (Z.leb_spec (rank p) (rank q)), (Z.leb_spec (rank q) (rank p)); try easy; [|lia].
    rewrite U by lia. easy.
  - destruct (Z.leb_spec (rank q) (rank a)), (Z.leb_spec (rank p) (rank a)); simpl;
    repeat match goal with |- context [?x <=? ?y] => destruct (Z.leb_spec x y) end; try lia; try easy.
    + rewrite U by lia. easy.
    + now rewrite IH.
Qed.

Lemma sort_unique l l' :
  (forall p q, In p l -> In q l -> rank p = rank q -> p = q) -> Permutation l l' -> sort l = sort l'.
Proof.
  intros U P. induction P; simpl.
  - easy.
  - rewrite IHP; [easy|]. intros; apply U; simpl; auto.
  - apply insert_swap. apply U; simpl; auto.
  - rewrite IHP1 by easy. apply IHP2. intros p q I J.
    refine (U p q _ _); (eapply Permutation_in; [apply Permutation_sym, P1|assumption]).
Qed.

Lemma sort_sorted l : (forall p q, In p l -> In q l -> rank p = rank q -> p = q) -> NoDup l ->
  StronglySorted (fun p q => rank p < rank q) (sort l).
Proof.
  induction l as [|p l IH]; simpl; intros U N; [constructor|]. inversion N; subst.
  assert (~ In p (sort l)) as I. { intros I. apply H1. eapply Permutation_in; [apply sort_perm|easy]. }
  assert (forall q, In q (sort l) -> rank p <> rank q) as D.
  { intros q J E. apply I. replace p with q; [easy|]. symmetry. apply U; [now left| |easy].
    right. eapply Permutation_in; [apply sort_perm|easy]. }
  specialize (IH ltac:(intros; apply U; auto) H2). clear U N H1 H2 I. induction (sort l) as [|q m IHm]; simpl.
  - constructor; constructor.
  - inversion IH; subst. destruct (Z.leb_spec (rank p) (rank q)).
    + assert (rank p <> rank q) by (apply D; now left). constructor; [easy|]. constructor; [lia|].
      eapply Forall_impl; [|eassumption]. simpl. intros. lia.
    + constructor; [apply IHm; auto; intros; apply D; now right|].
      apply Forall_forall. intros r J. apply (Permutation_in r (insert_perm p m)) in J as [<-|J]; [lia|].
      now apply (proj1 (Forall_forall _ m) H2).
Qed.

End Order.

(** A rank of records ranks a dictionary. *)
Lemma dict_ranked {A} `{Eq A} (rank : A -> Z) (c : coll A) :
  (forall x y, rank x = rank y -> x = y) -> dict c -> forall p q, In p c -> In q c -> rank (fst p) = rank (fst q) -> p = q.
Proof.
  intros R D [x v] [y w] I J E. simpl in E. apply R in E. subst. f_equal.
  apply (weight_dict _ _ _ D) in I, J. congruence.
Qed.
