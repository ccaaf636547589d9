(** Steps that keep the key of a person apart: each is [Local], or with two inputs [Local2], as `Node.kept_apart` says. *)

From Proofs Require Export Order Person RecordByRecord WeightByWeight GroupBy WholeGroups Fill Join.

Lemma items_of_user {A U} `{Eq A} `{Eq U} (whose : A -> U) u (c : coll A) :
  Permutation (of_user whose u (items c)) (items (of_user whose u c)).
Proof.
  apply NoDup_Permutation; [apply NoDup_filter, dict_nodup, items_dict|apply dict_nodup, items_dict|].
  intros [x w]. unfold of_user at 1. rewrite filter_In, !in_items, weight_of_user. cbn [fst].
  destruct (same (whose x) u); intuition congruence.
Qed.

Lemma dict_of_user {A U} `{Eq A} `{Eq U} (w : A -> U) u (c : coll A) : dict c -> dict (of_user w u c).
Proof.
  unfold dict, of_user. induction c as [|p l IH]; simpl; intros D; [easy|]. inversion D; subst.
  destruct (same (w (fst p)) u); [|now apply IH]. simpl. constructor; [|now apply IH].
  intros I. apply in_map_iff in I as (q & E & I). apply filter_In in I as [I _]. apply (in_map fst) in I. now rewrite E in I.
Qed.

Lemma filter_perm {T} (p : T -> bool) l l' : Permutation l l' -> Permutation (filter p l) (filter p l').
Proof.
  induction 1; simpl; try easy.
  - destruct (p x); [now apply perm_skip|easy].
  - destruct (p x), (p y); try easy; apply perm_swap.
  - eapply perm_trans; eassumption.
Qed.

(** What depends on no order is [Local], where the records of others add nothing to what names a person. *)
Lemma local_step {A B U} `{Eq A} `{Eq B} `{Eq U} (w : A -> U) (w' : B -> U) (op : coll A -> coll B) :
  (forall c d, dict c -> Permutation c d -> equal (op c) (op d)) -> equal (op []) [] ->
  (forall c y, dict c -> weight (op c) y = weight (op (of_user w (w' y) c)) y) -> Local w w' (fun c => op (items c)).
Proof.
  intros P N L. split.
  - intros c d E. apply P; [apply items_dict|now apply items_perm].
  - exact N.
  - intros c y. rewrite L by apply items_dict. apply P; [apply dict_of_user, items_dict|apply items_of_user].
Qed.

Lemma local_step2 {A B C U} `{Eq A} `{Eq B} `{Eq C} `{Eq U} (w : A -> U) (w' : B -> U) (w'' : C -> U)
    (op : coll A -> coll B -> coll C) :
  (forall c c' d d', dict c -> dict d -> Permutation c c' -> Permutation d d' -> equal (op c d) (op c' d')) ->
  equal (op [] []) [] ->
  (forall c d z, dict c -> dict d -> weight (op c d) z = weight (op (of_user w (w'' z) c) (of_user w' (w'' z) d)) z) ->
  Local2 w w' w'' (fun c d => op (items c) (items d)).
Proof.
  intros P N L. split.
  - intros c c' d d' E F. apply P; try apply items_dict; now apply items_perm.
  - exact N.
  - intros c d z. rewrite L by apply items_dict.
    apply P; try apply dict_of_user, items_dict; apply items_of_user.
Qed.

(** Record by record: what is made of a record names whom the record names. *)
Theorem each_is_local {A B U} `{Eq A} `{Eq B} `{Eq U} (w : A -> U) (w' : B -> U) (g : A -> Z -> coll B) :
  (forall x v y, w' y <> w x -> weight (g x v) y = 0) -> Local w w' (fun c => each g (items c)).
Proof.
  intros G. apply local_step.
  - intros c d _ P y. rewrite !weight_each. now apply sum_perm.
  - easy.
  - intros c y _. rewrite !weight_each. unfold of_user. rewrite sum_filter. apply sum_ext. intros [x v] _. cbn [fst snd].
    destruct (same (w x) (w' y)) eqn:E; [easy|]. apply same_false in E. apply G. congruence.
Qed.

Lemma image_names {A B U} `{Eq A} `{Eq B} `{Eq U} (w : A -> U) (w' : B -> U) (image : A -> coll B) :
  (forall x q, In q (image x) -> w' (fst q) = w x) -> Local w w' (fun c => linear image (items c)).
Proof.
  intros I. apply (each_is_local w w'). intros x v y N. unfold weight. rewrite sum_map. apply sum_zero. intros q J.
  cbn [fst]. destruct (same (fst q) y) eqn:E; [|easy]. apply same_true in E. subst. apply I in J. congruence.
Qed.

Theorem filter_is_local {A U} `{Eq A} `{Eq U} (w : A -> U) p : Local w w (fun c => filter_records p (items c)).
Proof. apply image_names. intros x q. destruct (p x); simpl; [intros [<-|[]]|]; easy. Qed.

Theorem map_is_local {A B U} `{Eq A} `{Eq B} `{Eq U} (w : A -> U) (w' : B -> U) f :
  (forall x y, f x = Some y -> w' y = w x) -> Local w w' (fun c => map_records f (items c)).
Proof. intros F. apply image_names. intros x q. destruct (f x) eqn:E; simpl; [intros [<-|[]]|easy]. now apply F. Qed.

Lemma in_numbered {B} place (made : list B) q : In q (numbered place made) -> In (fst q) made.
Proof.
  revert place. induction made as [|y l IH]; intros place; simpl; [easy|]. intros [<-|I]; [now left|right]. eapply IH, I.
Qed.

Theorem flat_map_is_local {A B U} `{Eq A} `{Eq B} `{Eq U} (w : A -> U) (w' : B -> U) parts f :
  (forall x made y, f x = Some made -> In y made -> w' y = w x) ->
  Local w w' (fun c => flat_map_records parts f (items c)).
Proof.
  intros F. apply image_names. intros x q. destruct (f x) eqn:E; [|easy]. unfold shares. rewrite in_map_iff.
  intros (r & <- & I). cbn [fst]. apply (F x l); [easy|]. now apply in_numbered in I.
Qed.

Theorem distinct_is_local {A U} `{Eq A} `{Eq U} (w : A -> U) most : Local w w (fun c => distinct most (items c)).
Proof.
  apply (each_is_local w w). intros x v y N. rewrite weight_cons. change (weight [] y) with 0.
  destruct (same x y) eqn:E; [|lia]. apply same_true in E. now subst.
Qed.

Theorem shave_is_local {A U} `{Eq A} `{Eq U} (w : A -> U) thickness :
  Local w (fun y => w (fst y)) (fun c => shave thickness (items c)).
Proof.
  apply (each_is_local w (fun y => w (fst y))). intros x v [y i] N. cbn [fst] in N.
  destruct (thickness x); [|easy]. unfold weight, sliced. rewrite sum_map. apply sum_zero. intros q _. cbn [fst].
  destruct (same (x, fst q) (y, i)) eqn:E; [|easy]. apply same_true in E. inversion E; subst. now destruct N.
Qed.

(** Steps by a key that holds the person: [holder] finds the person in it. *)
Section ByKey.
Context {A K U : Type} `{Eq A} `{Eq K} `{Eq U}.
Variable key : A -> K.
Variable holder : K -> U.
Let whose := fun x => holder (key x).

Lemma of_key_of_user k (c : coll A) : of_key key k (of_user whose (holder k) c) = of_key key k c.
Proof.
  unfold of_key, of_user. induction c as [|p l IH]; simpl; [easy|]. destruct (same (whose (fst p)) (holder k)) eqn:E; simpl.
  - now rewrite IH.
  - destruct (same (key (fst p)) k) eqn:F; [|easy]. apply same_true in F. apply same_false in E. unfold whose in E. congruence.
Qed.

Variable canon : list A -> list A.
Hypothesis canon_perm : forall l l', Permutation l l' -> canon l = canon l'.

Theorem whole_groups_are_local : Local whose (fun y => holder (fst y)) (fun c => whole_groups key canon (items c)).
Proof.
  apply local_step.
  - intros c d _ P [k M]. rewrite !weight_whole_groups. now apply group_of_perm.
  - easy.
  - intros c [k M] _. rewrite !weight_whole_groups. unfold group_of. cbn [fst]. now rewrite of_key_of_user.
Qed.

Theorem prefixes_are_local : Local whose (fun y => holder (fst y)) (fun c => group_by key canon (items c)).
Proof.
  apply local_step.
  - intros c d _ P [k M]. rewrite !weight_group_by. f_equal; apply prefixes_perm; auto; now apply filter_perm.
  - easy.
  - intros c [k M] _. rewrite !weight_group_by. cbn [fst]. now rewrite of_key_of_user.
Qed.

Variable rank : A -> Z.
Hypothesis rank_one : forall x y, rank x = rank y -> x = y.

(** What others have changes neither the sums nor the bound of a key. *)
Lemma fill_of_user choose (c : coll A) y : forall b b' s s', b (key y) = b' (key y) -> s (key y) = s' (key y) ->
  weight (fill key choose b s c) y = weight (fill key choose b' s' (of_user whose (whose y) c)) y.
Proof.
  unfold of_user. induction c as [|[x w] c IH]; intros b b' s s' B S; [easy|]. cbn [filter fst].
  destruct (same (whose x) (whose y)) eqn:E; cbn [fill]; rewrite !weight_cons.
  - destruct (same (key x) (key y)) eqn:F.
    + apply same_true in F. rewrite F, B, S. f_equal. apply IH; [easy|]. now rewrite same_refl.
    + assert (same x y = false) as -> by (apply same_false in F; apply same_false; congruence).
      rewrite !Z.add_0_l. apply IH; [easy|]. now rewrite F.
  - assert (same (key x) (key y) = false) as F.
    { apply same_false in E. apply same_false. unfold whose in E. congruence. }
    assert (same x y = false) as -> by (apply same_false in F; apply same_false; congruence).
    rewrite Z.add_0_l. apply IH; [easy|]. now rewrite F.
Qed.

Lemma sort_of_sorted {T} (f : T -> Z) l : StronglySorted (fun p q => f p < f q) l -> sort f l = l.
Proof.
  induction 1 as [|p l S IH F]; simpl; [easy|]. rewrite IH. destruct l as [|q l]; [easy|]. simpl.
  inversion F; subst. destruct (Z.leb_spec (f p) (f q)); [easy|lia].
Qed.

Lemma filter_sorted {T} (R : T -> T -> Prop) p l : StronglySorted R l -> StronglySorted R (filter p l).
Proof.
  induction 1 as [|q l S IH F]; simpl; [constructor|]. destruct (p q); [|easy]. constructor; [easy|].
  rewrite Forall_forall in *. intros r I. apply filter_In in I as [I _]. now apply F.
Qed.

Lemma sorted_of_user u (c : coll A) : dict c ->
  of_user whose u (sort (fun p => rank (fst p)) c) = sort (fun p => rank (fst p)) (of_user whose u c).
Proof.
  intros D. set (f := fun p : A * Z => rank (fst p)). rewrite <- (sort_of_sorted f (of_user whose u (sort f c))).
  - apply sort_unique.
    + intros p q I J. apply filter_In in I as [I _], J as [J _].
      apply (Permutation_in _ (sort_perm f c)) in I, J. exact (dict_ranked rank c rank_one D p q I J).
    + apply filter_perm, sort_perm.
  - apply filter_sorted, sort_sorted; [exact (dict_ranked rank c rank_one D)|now apply dict_nodup].
Qed.

(** limit; its bound is the same for all keys. *)
Theorem limit_is_local most : Local whose whose (fun c => limit key rank most (items c)).
Proof.
  apply local_step; unfold limit, filled.
  - intros c d D P. erewrite sort_unique; [intros y; reflexivity| |easy]. now apply dict_ranked.
  - easy.
  - intros c y D. rewrite <- sorted_of_user by easy. apply fill_of_user; reflexivity.
Qed.

(** semijoin and antijoin, by a key of the other side that holds the person too. *)
Context {B : Type} `{Eq B}.
Variable key' : B -> K.

Lemma key_bound_of_user k (d : coll B) :
  key_bound key' (of_user (fun x => holder (key' x)) (holder k) d) k = key_bound key' d k.
Proof.
  unfold key_bound, of_user. rewrite sum_filter. f_equal. apply sum_ext. intros q _.
  destruct (same (key' (fst q)) k) eqn:E; [|now destruct (same (holder (key' (fst q))) (holder k))]. apply same_true in E. now rewrite E, same_refl.
Qed.

Theorem filled_is_local2 choose : Local2 whose (fun x => holder (key' x)) whose
  (fun c d => filled key rank choose (key_bound key' (items d)) (items c)).
Proof.
  apply local_step2 with (op := fun c d => filled key rank choose (key_bound key' d) c); unfold filled.
  - intros c c' d d' D _ P Q. erewrite (sort_unique _ c c'); [|now apply dict_ranked|easy]. intros y.
    erewrite fill_ext; [reflexivity| |easy]. intros k. unfold key_bound. f_equal. now apply sum_perm.
  - easy.
  - intros c d y D _. rewrite <- sorted_of_user by easy. apply fill_of_user; [|reflexivity].
    symmetry. apply key_bound_of_user.
Qed.

(** Without records here nothing is kept, whatever is there: `Fill.needs`. *)
Theorem filled_needs_records choose d : equal (filled key rank choose (key_bound key' (items d)) (items [])) [].
Proof. easy. Qed.

(** Joins: a pair names whom its key names. *)
Context {C : Type} `{Eq C}.
Variable pair : A -> B -> C.
Variable whose_pair : C -> U.
Hypothesis pair_names : forall x y, key x = key' y -> whose_pair (pair x y) = holder (key x).
Let whose' := fun x : B => holder (key' x).

Lemma pairs_of_user weigh weigh' c d z :
  (forall k, holder k = whose_pair z -> weigh k = weigh' k) ->
  weight (pairs key key' pair weigh c d) z =
  weight (pairs key key' pair weigh' (of_user whose (whose_pair z) c) (of_user whose' (whose_pair z) d)) z.
Proof.
  intros W. rewrite !weight_pairs. unfold of_user. rewrite sum_filter. apply sum_ext. intros [x a] _. cbn [fst snd].
  rewrite sum_filter. destruct (same (whose x) (whose_pair z)) eqn:E.
  - apply same_true in E. apply sum_ext. intros [y b] _. cbn [fst snd].
    destruct (same (key x) (key' y)) eqn:F; [|now destruct (same (whose' y) (whose_pair z))]. apply same_true in F.
    unfold whose'. rewrite <- F. fold (whose x). rewrite E, same_refl, (W (key x)) by easy. easy.
  - apply sum_zero. intros [y b] _. cbn [fst snd]. destruct (same (key x) (key' y)) eqn:F; [|easy].
    apply same_true in F. destruct (same (pair x y) z) eqn:G; [|easy]. apply same_true in G. subst.
    rewrite pair_names in E by easy. unfold whose in E. now rewrite same_refl in E.
Qed.

Lemma side_of_user {T} `{Eq T} (f : T -> K) k (c : coll T) :
  side f k (of_user (fun x => holder (f x)) (holder k) c) = side f k c.
Proof.
  unfold side, of_user. rewrite sum_filter. apply sum_ext. intros p _.
  destruct (same (f (fst p)) k) eqn:E; [|now destruct (same (holder (f (fst p))) (holder k))]. apply same_true in E. now rewrite E, same_refl.
Qed.

Lemma pairs_perm weigh weigh' c c' d d' : (forall k, weigh k = weigh' k) -> Permutation c c' -> Permutation d d' ->
  equal (pairs key key' pair weigh c d) (pairs key key' pair weigh' c' d').
Proof.
  intros W P Q z. rewrite !weight_pairs, (sum_perm _ c c' P). apply sum_ext. intros p _. rewrite (sum_perm _ d d' Q).
  apply sum_ext. intros q _. now rewrite W.
Qed.

Theorem join_is_local scale cut : Local2 whose whose' whose_pair
  (fun c d => join key key' pair scale cut (items c) (items d)).
Proof.
  apply local_step2; unfold join.
  - intros c c' d d' _ _ P Q. apply pairs_perm; try easy. intros k. f_equal. f_equal; now apply sum_perm.
  - easy.
  - intros c d z _ _. apply pairs_of_user. intros k <-. unfold whose, whose'.
    now rewrite (side_of_user key k c), (side_of_user key' k d).
Qed.

Theorem join_rows_is_local : Local2 whose whose' whose_pair (fun c d => join_rows key key' pair (items c) (items d)).
Proof.
  apply local_step2; unfold join_rows.
  - intros c c' d d' _ _ P Q. now apply pairs_perm.
  - easy.
  - intros c d z _ _. now apply pairs_of_user.
Qed.

(** A pair has a record of each input: `Join.needs`. *)
Theorem pairs_need_both weigh (c : coll A) (d : coll B) :
  equal (pairs key key' pair weigh [] d) [] /\ equal (pairs key key' pair weigh c []) [].
Proof.
  split; [easy|]. intros z. rewrite weight_pairs. apply sum_zero. easy.
Qed.

Variable lone : A -> C.
Hypothesis lone_names : forall x, whose_pair (lone x) = holder (key x).

Theorem left_rows_is_local unit : Local2 whose whose' whose_pair
  (fun c d => left_rows key key' pair lone unit (items c) (items d)).
Proof.
  apply local_step2; unfold left_rows.
  - intros c c' d d' _ _ P Q z. rewrite !weight_each, (sum_perm _ c c' P). apply sum_ext. intros p _. unfold rows_of.
    rewrite !weight_cons. unfold side. rewrite (sum_perm _ d d' Q). f_equal. apply weight_perm. now apply Permutation_flat_map.
  - easy.
  - intros c d z _ _. rewrite !weight_each. unfold of_user at 2. rewrite sum_filter. apply sum_ext. intros [x a] _.
    cbn [fst snd]. destruct (same (whose x) (whose_pair z)) eqn:E.
    + apply same_true in E. unfold rows_of. rewrite !weight_cons. rewrite <- E.
      unfold whose, whose'. rewrite (side_of_user key' (key x) d). f_equal.
      unfold weight, of_user. rewrite !sum_flat_map, sum_filter. apply sum_ext. intros [y b] _. cbn [fst snd].
      destruct (same (key x) (key' y)) eqn:F; [|now destruct (same (holder (key' y)) (holder (key x)))]. apply same_true in F.
      now rewrite <- F, same_refl.
    + unfold rows_of. rewrite weight_cons. apply same_false in E.
      assert (same (lone x) z = false) as ->.
      { apply same_false. intros <-. rewrite lone_names in E. now apply E. }
      unfold weight. rewrite sum_flat_map. apply sum_zero. intros [y b] _. cbn [fst snd].
      destruct (same (key x) (key' y)) eqn:F; [|easy]. apply same_true in F. cbn [sum fst snd].
      destruct (same (pair x y) z) eqn:G; [|easy]. apply same_true in G. subst. rewrite pair_names in E by easy.
      now destruct E.
Qed.

(** What stands alone is of the left side: `LeftRows.needs`. *)
Theorem left_rows_need_the_left unit d : equal (left_rows key key' pair lone unit [] d) [].
Proof. easy. Qed.

End ByKey.

(** concat, subtract, union, intersect. *)
Section SameRecords.
Context {A U : Type} `{Eq A} `{Eq U}.
Variable w : A -> U.

Lemma pointwise_is_local (op : coll A -> coll A -> coll A) (f : Z -> Z -> Z) : f 0 0 = 0 ->
  (forall c d x, weight (op c d) x = f (weight c x) (weight d x)) -> Local2 w w w (fun c d => op (items c) (items d)).
Proof.
  intros Z W. apply local_step2.
  - intros c c' d d' _ _ P Q x. rewrite !W. now rewrite (weight_perm c c' x P), (weight_perm d d' x Q).
  - intros x. rewrite W. exact Z.
  - intros c d x _ _. rewrite !W, !weight_of_user. now rewrite same_refl.
Qed.

Theorem sum_is_local sign : Local2 w w w (fun c d => signed_sum sign (items c) (items d)).
Proof.
  apply (pointwise_is_local _ (fun a b => a + sign * b)); [lia|]. intros c d x. unfold signed_sum.
  now rewrite weight_app, weight_signed.
Qed.

Theorem extreme_is_local choose : choose 0 0 = 0 -> Local2 w w w (fun c d => extreme choose (items c) (items d)).
Proof. intros Z. apply (pointwise_is_local _ choose); [easy|]. intros c d x. now apply weight_extreme. Qed.

End SameRecords.
