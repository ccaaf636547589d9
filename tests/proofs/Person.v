(** The key of a person: what a plan makes is the sum of what it makes of each person alone.

    A step is [Local] when the records of one person in its output follow from the records of that person in its input
    (for two inputs [Local2]): core/plan/person_bound.py. [whose] says which person a record names, before and after. *)

From Proofs Require Export Stable Users.

Section Local.
Context {A B U : Type} `{Eq A} `{Eq B} `{Eq U}.
Variable whose : A -> U.
Variable whose' : B -> U.

Record Local (f : coll A -> coll B) : Prop := {
  content : forall c d, equal c d -> equal (f c) (f d);
  nothing : equal (f []) [];
  apart : forall c y, weight (f c) y = weight (f (of_user whose (whose' y) c)) y }.

Lemma weight_of_user u (c : coll A) x : weight (of_user whose u c) x = if same (whose x) u then weight c x else 0.
Proof. apply (weight_restrict c (fun x => same (whose x) u)). Qed.

Lemma of_others u v (d : coll A) : u <> v -> (forall p, In p d -> whose (fst p) = u) -> of_user whose v d = [].
Proof.
  intros N D. unfold of_user. induction d as [|p l IH]; simpl; [easy|].
  destruct (same (whose (fst p)) v) eqn:E.
  - apply same_true in E. rewrite (D p (or_introl eq_refl)) in E. congruence.
  - apply IH. intros q I. apply D. now right.
Qed.

Lemma of_own u (d : coll A) : (forall p, In p d -> whose (fst p) = u) -> of_user whose u d = d.
Proof.
  intros D. unfold of_user. induction d as [|p l IH]; simpl; [easy|].
  rewrite (D p (or_introl eq_refl)), same_refl. f_equal. apply IH. intros q I. apply D. now right.
Qed.

(** It is [by_user] of itself. *)
Theorem local_is_by_user f c : Local f -> equal (f c) (by_user whose f c).
Proof.
  intros L y. unfold by_user, weight at 2. rewrite sum_flat_map. set (u := whose' y).
  rewrite (sum_ext _ (fun v => if same u v then weight (f (of_user whose u c)) y else 0)).
  - rewrite (apart f L c y). fold u. destruct (in_dec eq_dec u (map (fun p => whose (fst p)) c)) as [I|I].
    + symmetry. apply sum_at; [apply NoDup_nodup|now apply nodup_In].
    + rewrite sum_zero.
      * replace (of_user whose u c) with (@nil (A * Z)); [apply (nothing f L)|]. symmetry. unfold of_user.
        induction c as [|p l IH]; simpl in *; [easy|].
        destruct (same (whose (fst p)) u) eqn:E; [apply same_true in E; tauto|]. apply IH. tauto.
      * intros v J. destruct (same u v) eqn:E; [|easy]. apply same_true in E; subst. now apply nodup_In in J.
  - intros v _. fold (weight (f (of_user whose v c)) y). destruct (same u v) eqn:E; [apply same_true in E; now subst|].
    apply same_false in E. rewrite (apart f L). fold u.
    rewrite (of_others v u); [apply (nothing f L)|congruence|].
    intros p I. apply filter_In in I as [_ I]. now apply same_true in I.
Qed.

(** One unit more: f(D + unit) = f(D) + f(unit), what comes names the unit, and nothing in f(D) does. *)
Theorem one_unit_adds_its_own f u c d : Local f ->
  (forall p, In p c -> whose (fst p) <> u) -> (forall p, In p d -> whose (fst p) = u) ->
  equal (f (d ++ c)) (f d ++ f c)
  /\ (forall y, whose' y <> u -> weight (f d) y = 0) /\ (forall y, whose' y = u -> weight (f c) y = 0).
Proof.
  intros L C D.
  assert (forall y, whose' y <> u -> weight (f d) y = 0) as Own.
  { intros y N. rewrite (apart f L), (of_others u) by congruence || easy. apply (nothing f L). }
  assert (of_user whose u c = []) as None.
  { unfold of_user. induction c as [|p l IH]; simpl; [easy|]. destruct (same (whose (fst p)) u) eqn:E.
    - apply same_true in E. now destruct (C p (or_introl eq_refl)).
    - apply IH. intros q I. apply C. now right. }
  assert (forall y, whose' y = u -> weight (f c) y = 0) as Absent.
  { intros y E. rewrite (apart f L), E, None. apply (nothing f L). }
  repeat split; try easy. intros y. rewrite weight_app, (apart f L (d ++ c)).
  unfold of_user at 1. rewrite filter_app. fold (of_user whose (whose' y) d) (of_user whose (whose' y) c).
  destruct (eq_dec (whose' y) u) as [E|N].
  - rewrite (Absent y E), E, None, app_nil_r, (of_own u) by easy. lia.
  - rewrite (Own y N), (of_others u) by congruence || easy. simpl. now rewrite <- (apart f L).
Qed.

(** So it moves the output by what is made of it alone, at most what the records of one key can weigh. *)
Theorem one_unit_moves_its_key f u n c d : Local f -> (forall e, dist (of_user whose' u (f e)) [] <= n) ->
  (forall p, In p c -> whose (fst p) <> u) -> (forall p, In p d -> whose (fst p) = u) ->
  dist (f (d ++ c)) (f c) <= n.
Proof.
  intros L M C D. destruct (one_unit_adds_its_own f u c d L C D) as (E & Own & Absent).
  etransitivity; [|apply (M (d ++ c))]. set (l := nodup eq_dec (map fst (f (d ++ c) ++ f c))).
  rewrite (dist_all _ (f c) l); [|intros x I; now apply nodup_In|apply NoDup_nodup].
  etransitivity; [|apply (dist_some _ _ l), NoDup_nodup]. apply sum_le. intros y _.
  change (weight [] y) with 0. unfold of_user. rewrite (weight_restrict (f (d ++ c)) (fun x => same (whose' x) u)).
  destruct (same (whose' y) u) eqn:S; [apply same_true in S; rewrite (Absent y S); lia|].
  apply same_false in S. rewrite (E y), weight_app, (Own y S). lia.
Qed.

End Local.

Arguments Local {A B U _ _ _}.

(** [by_user] of what is made of each person alone, and names that person, is such a step: how records enter. *)
Theorem by_user_is_local {A B U} `{Eq A} `{Eq B} `{Eq U} (whose : A -> U) (whose' : B -> U) keep :
  (forall c d, Permutation c d -> equal (keep c) (keep d)) ->
  (forall u c y, whose' y <> u -> (forall p, In p c -> whose (fst p) = u) -> weight (keep c) y = 0) ->
  (forall y, weight (keep []) y = 0) ->
  Local whose whose' (fun c => by_user whose keep (items c)).
Proof.
  intros P Own Nil.
  assert (forall c y, weight (by_user whose keep c) y = weight (keep (of_user whose (whose' y) c)) y) as W.
  { intros c y. unfold by_user, weight at 1. rewrite sum_flat_map. set (u := whose' y).
    rewrite (sum_ext _ (fun v => if same u v then weight (keep (of_user whose u c)) y else 0)).
    - destruct (in_dec eq_dec u (map (fun p => whose (fst p)) c)) as [I|I].
      + apply sum_at; [apply NoDup_nodup|now apply nodup_In].
      + rewrite sum_zero.
        * replace (of_user whose u c) with (@nil (A * Z)); [now rewrite Nil|]. symmetry. unfold of_user.
          induction c as [|p l IH]; simpl in *; [easy|].
          destruct (same (whose (fst p)) u) eqn:E; [apply same_true in E; tauto|]. apply IH. tauto.
        * intros v J. destruct (same u v) eqn:E; [|easy]. apply same_true in E; subst. now apply nodup_In in J.
    - intros v _. fold (weight (keep (of_user whose v c)) y). destruct (same u v) eqn:E; [apply same_true in E; now subst|].
      apply same_false in E. apply (Own v); [easy|].
      intros p I. apply filter_In in I as [_ I]. now apply same_true in I. }
  assert (forall u c d, Permutation c d -> Permutation (of_user whose u c) (of_user whose u d)) as F.
  { intros u c d Q. unfold of_user. induction Q; simpl; try easy.
    - destruct (same _ u); [now apply perm_skip|easy].
    - destruct (same (whose (fst x)) u), (same (whose (fst y)) u); try easy; apply perm_swap.
    - eapply perm_trans; eassumption. }
  split.
  - intros c d E y. rewrite !W. apply P, F, items_perm, E.
  - easy.
  - intros c y. rewrite !W. apply P.
    apply NoDup_Permutation; try apply NoDup_filter, dict_nodup, items_dict.
    intros [x w]. unfold of_user. rewrite !filter_In, !in_items. cbn [fst].
    fold (of_user whose (whose' y) c). rewrite weight_of_user. destruct (same (whose x) (whose' y)); intuition congruence.
Qed.

(** A step after a step. *)
Theorem local_after_local {A B C U} `{Eq A} `{Eq B} `{Eq C} `{Eq U} (w : A -> U) (w' : B -> U) (w'' : C -> U) f g :
  Local w w' f -> Local w' w'' g -> Local w w'' (fun c => g (f c)).
Proof.
  intros F G. split.
  - intros c d E. apply (content _ _ _ G), (content _ _ _ F), E.
  - intros z. rewrite (content _ _ _ G _ [] (nothing _ _ _ F)). apply (nothing _ _ _ G).
  - intros c z. rewrite (apart _ _ _ G), (apart _ _ _ G (f (of_user w (w'' z) c))).
    apply (content _ _ _ G). intros y. rewrite !weight_of_user. destruct (same (w' y) (w'' z)) eqn:E; [|easy].
    apply same_true in E. now rewrite <- E, <- (apart _ _ _ F).
Qed.

(** Two inputs, of one person or of several tables of one ledger. *)
Record Local2 {A B C U} `{Eq A} `{Eq B} `{Eq C} `{Eq U} (w : A -> U) (w' : B -> U) (w'' : C -> U)
    (f : coll A -> coll B -> coll C) : Prop := {
  content2 : forall c c' d d', equal c c' -> equal d d' -> equal (f c d) (f c' d');
  nothing2 : equal (f [] []) [];
  apart2 : forall c d z, weight (f c d) z = weight (f (of_user w (w'' z) c) (of_user w' (w'' z) d)) z }.

Theorem two_that_meet {A B C D U} `{Eq A} `{Eq B} `{Eq C} `{Eq D} `{Eq U} (w : A -> U) (v : B -> U) (v' : C -> U)
    (w' : D -> U) f g h : Local w v f -> Local w v' g -> Local2 v v' w' h -> Local w w' (fun c => h (f c) (g c)).
Proof.
  intros F G M. split.
  - intros c d E. apply (content2 _ _ _ _ M); [apply (content _ _ _ F), E|apply (content _ _ _ G), E].
  - intros z. rewrite (content2 _ _ _ _ M _ [] _ [] (nothing _ _ _ F) (nothing _ _ _ G)). apply (nothing2 _ _ _ _ M).
  - intros c z. rewrite (apart2 _ _ _ _ M), (apart2 _ _ _ _ M (f (of_user w (w' z) c))).
    apply (content2 _ _ _ _ M); intros y; rewrite !weight_of_user.
    + destruct (same (v y) (w' z)) eqn:E; [|easy]. apply same_true in E. now rewrite <- E, <- (apart _ _ _ F).
    + destruct (same (v' y) (w' z)) eqn:E; [|easy]. apply same_true in E. now rewrite <- E, <- (apart _ _ _ G).
Qed.

(** One input that the unit does not move, and may name the person: there must be nothing without the other input. *)
Theorem one_that_moves {A B C U} `{Eq A} `{Eq B} `{Eq C} `{Eq U} (w : A -> U) (w' : B -> U) (w'' : C -> U) h d :
  Local2 w w' w'' h -> (forall e, equal (h [] e) []) -> Local w w'' (fun c => h c d).
Proof.
  intros M N. split.
  - intros c c' E. now apply (content2 _ _ _ _ M).
  - apply N.
  - intros c z. rewrite (apart2 _ _ _ _ M), (apart2 _ _ _ _ M (of_user w (w'' z) c) d).
    apply (content2 _ _ _ _ M); [|easy]. intros x. rewrite !weight_of_user. now destruct (same (w x) (w'' z)).
Qed.

(** Inputs that are told apart by a value: records of one value that move came of one of them, the others do not move
    at that value. So they move as far as that one says, not as all do together (the sets of keys of a CUBE). *)
Lemma dist_of_value {C V} `{Eq C} `{Eq V} (w : C -> V) v (e e' g g' : coll C) :
  (forall z, w z = v -> weight e z = weight g z) -> (forall z, w z = v -> weight e' z = weight g' z) ->
  dist (of_user w v e) (of_user w v e') <= dist g g'.
Proof.
  intros E E'. set (l := nodup eq_dec (map fst (of_user w v e ++ of_user w v e'))).
  rewrite (dist_all _ _ l); [|intros x I; now apply nodup_In|apply NoDup_nodup].
  etransitivity; [|apply (dist_some _ _ l), NoDup_nodup]. apply sum_le. intros z _.
  rewrite !weight_of_user. destruct (same (w z) v) eqn:S; [|lia].
  apply same_true in S. rewrite (E z S), (E' z S). lia.
Qed.

Theorem apart_by_a_value {A B C V} `{Eq A} `{Eq B} `{Eq C} `{Eq V} (w : A -> V) (w' : B -> V) (w'' : C -> V) op s t v
    (c c' : coll A) (d d' : coll B) : Local2 w w' w'' (fun c d => op (items c) (items d)) -> Stable2 op s t ->
  (forall x, w x = v -> weight c x = weight c' x) \/ (forall y, w' y = v -> weight d y = weight d' y) ->
  dist (of_user w'' v (op (items c) (items d))) (of_user w'' v (op (items c') (items d'))) <=
    Z.max (s * dist (of_user w v c) (of_user w v c')) (t * dist (of_user w' v d) (of_user w' v d')).
Proof.
  intros L St Still.
  assert (forall {X} `{Eq X} (r : X -> V) (e e' : coll X), (forall x, r x = v -> weight e x = weight e' x) ->
    dist (of_user r v e) (of_user r v e') = 0) as Zero.
  { intros X EX r e e' E. apply dist_refl. intros x. rewrite !weight_of_user. destruct (same (r x) v) eqn:S; [|easy].
    apply same_true in S. now apply E. }
  etransitivity.
  - apply (dist_of_value w'' v _ _ (op (items (of_user w v c)) (items (of_user w' v d)))
      (op (items (of_user w v c')) (items (of_user w' v d')))); intros z E; now rewrite (apart2 _ _ _ _ L), E.
  - etransitivity; [apply St|]. destruct Still as [Z|Z]; rewrite (Zero _ _ _ _ _ Z); lia.
Qed.
