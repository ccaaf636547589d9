(** group_by(whole=True): all records of a key are one group of weight 1, each as often as it counts. *)

From Proofs Require Import Stable GroupBy.

Section WholeGroups.
Context {A K : Type} `{Eq A} `{Eq K}.
Variable key : A -> K.
Variable canon : list A -> list A.
Hypothesis canon_perm : forall l l', Permutation l l' -> canon l = canon l'.

(** core/operators/group_by.py, [GroupBy._levels]: weights are whole here, and one below 0 counts for none. *)
Definition copies (group : coll A) : list A := flat_map (fun p => repeat (fst p) (Z.to_nat (snd p))) group.
Definition group_of (k : K) (c : coll A) : coll (K * list A) := emitted canon k 1 (copies (of_key key k c)).
Definition whole_groups (c : coll A) : coll (K * list A) :=
  flat_map (fun k => group_of k c) (nodup eq_dec (map (fun p => key (fst p)) c)).

Lemma weight_whole_groups c k M : weight (whole_groups c) (k, M) = weight (group_of k c) (k, M).
Proof.
  unfold whole_groups, weight at 1. rewrite sum_flat_map.
  rewrite (sum_ext _ (fun k' => if same k k' then weight (group_of k c) (k, M) else 0)).
  - destruct (in_dec eq_dec k (map (fun p => key (fst p)) c)) as [I|N].
    + apply sum_at; [apply NoDup_nodup|now apply nodup_In].
    + rewrite sum_zero.
      * unfold group_of, of_key. replace (filter _ c) with (@nil (A * Z)); [easy|].
        symmetry. induction c as [|p l IH]; simpl in *; [easy|].
        destruct (same (key (fst p)) k) eqn:E; [apply same_true in E; tauto|]. apply IH. tauto.
      * intros k' I. destruct (same k k') eqn:E; [|easy]. apply same_true in E; subst. now apply nodup_In in I.
  - intros k' _. change (weight (group_of k' c) (k, M) = if same k k' then weight (group_of k c) (k, M) else 0).
    destruct (same k k') eqn:E; [apply same_true in E; now subst|]. unfold group_of. rewrite weight_emitted.
    destruct (same k' k) eqn:F; [|easy]. apply same_true in F. apply same_false in E. congruence.
Qed.

Lemma group_of_perm k c d : Permutation c d -> equal (group_of k c) (group_of k d).
Proof.
  intros P M. assert (Permutation (copies (of_key key k c)) (copies (of_key key k d))) as Q.
  { apply Permutation_flat_map. unfold of_key. induction P; simpl; try easy.
    - destruct (same (key (fst x)) k); [now apply perm_skip|easy].
    - destruct (same (key (fst x)) k), (same (key (fst y)) k); try easy; apply perm_swap.
    - eapply perm_trans; eassumption. }
  unfold group_of, emitted. rewrite (canon_perm _ _ Q).
  destruct (copies (of_key key k c)) as [|a l], (copies (of_key key k d)) as [|b m]; try easy.
  - now apply Permutation_nil in Q.
  - now apply Permutation_sym, Permutation_nil in Q.
Qed.

Theorem whole_groups_stable : Stable whole_groups 2.
Proof.
  apply by_steps.
  - intros c d _ P [k M]. rewrite !weight_whole_groups. now apply group_of_perm.
  - intros x c _ [k M]. rewrite !weight_whole_groups. unfold group_of, of_key. cbn [filter fst]. now destruct (same (key x) k).
  - intros x w s c _ _. set (k := key x).
    rewrite (dist_equal _ ((group_of k ((x, w + s) :: c) ++ emitted canon k (-1) (copies (of_key key k ((x, w) :: c))))
      ++ whole_groups ((x, w) :: c)) _ (whole_groups ((x, w) :: c))); [|intros [k' M]|easy].
    + etransitivity; [apply dist_added|]. unfold mass. rewrite sum_app.
      pose proof (emitted_mass canon k 1 (copies (of_key key k ((x, w + s) :: c)))).
      pose proof (emitted_mass canon k (-1) (copies (of_key key k ((x, w) :: c)))). unfold mass, group_of in *. lia.
    + rewrite !weight_app, !weight_whole_groups. destruct (same k k') eqn:E.
      * apply same_true in E; subst k'. unfold group_of. rewrite !weight_emitted. rewrite same_refl. lia.
      * unfold group_of. rewrite !weight_emitted, E. unfold of_key. cbn [filter fst]. fold k. now rewrite E.
Qed.

End WholeGroups.
