(** Ways to the owner: a table that names no person is counted by who owns its rows (sources/owned.py). *)

From Proofs Require Import Person.

Section Ways.
Context {R K U : Type} `{Eq R} `{Eq K} `{Eq U}.
Variable key : R -> option K.

(** [Owned.pairs]: each key and each of its owners, once. The owner table has rows of a key, which may be null, and an
    owner. *)
Definition owners (o : list (option K * U)) : list (K * U) :=
  nodup eq_dec (flat_map (fun q => match fst q with Some k => [(k, snd q)] | None => [] end) o).

(** [owned]: each row with each owner of its key. *)
Definition led (p : R * Z) (ku : K * U) : coll (R * U) :=
  if same (key (fst p)) (Some (fst ku)) then [((fst p, snd ku), snd p)] else [].
Definition pairs (t : coll R) (o : list (option K * U)) : coll (R * U) :=
  flat_map (fun p => flat_map (led p) (owners o)) t.

Definition owns (o : list (option K * U)) (x : R) (u : U) : Prop := exists k, key x = Some k /\ In (Some k, u) o.

Lemma in_owners o k u : In (k, u) (owners o) <-> In (Some k, u) o.
Proof.
  unfold owners. rewrite nodup_In, in_flat_map. split.
  - intros ([[k'|] u'] & I & J); simpl in J; [|easy]. destruct J as [E|[]]. now inversion E; subst.
  - intros I. exists (Some k, u). split; [easy|]. now left.
Qed.

Lemma owns_dec o x u : {owns o x u} + {~ owns o x u}.
Proof.
  destruct (key x) as [k|] eqn:E.
  - destruct (in_dec eq_dec (Some k, u) o) as [I|N]; [left; now exists k|right].
    intros (k' & F & I). rewrite E in F. now inversion F; subst.
  - right. intros (k & F & _). congruence.
Qed.

Lemma weight_led p ku x u :
  weight (led p ku) (x, u)
  = if same (fst p) x then (if same (key x) (Some (fst ku)) then (if same (snd ku) u then snd p else 0) else 0) else 0.
Proof.
  unfold led. destruct (same (fst p) x) eqn:E.
  - apply same_true in E. subst. destruct (same (key (fst p)) (Some (fst ku))) eqn:F; [|easy].
    unfold weight; simpl. destruct (same (snd ku) u) eqn:G.
    + apply same_true in G; subst. rewrite same_refl. lia.
    + destruct (same (fst p, snd ku) (fst p, u)) eqn:S; [|easy].
      apply same_true in S. inversion S. apply same_false in G. congruence.
  - destruct (same (key (fst p)) (Some (fst ku))); [|easy]. unfold weight; simpl.
    destruct (same (fst p, snd ku) (x, u)) eqn:S; [|easy].
    apply same_true in S. inversion S. apply same_false in E. congruence.
Qed.

(** A row is a record of each of its owners, with its own weight. *)
Theorem pairs_weigh_rows t o x u : weight (pairs t o) (x, u) = if owns_dec o x u then weight t x else 0.
Proof.
  unfold pairs. unfold weight at 1. rewrite sum_flat_map.
  destruct (owns_dec o x u) as [(k & E & I)|N].
  - apply sum_ext. intros p _. rewrite sum_flat_map.
    rewrite (sum_ext _ (fun ku => if same (k, u) ku then (if same (fst p) x then snd p else 0) else 0)).
    + apply sum_at; [apply NoDup_nodup|now apply in_owners].
    + intros [k' u'] _. fold (weight (led p (k', u')) (x, u)). rewrite weight_led. simpl. rewrite E.
      destruct (same (fst p) x); [|now destruct (same (k, u) (k', u'))].
      destruct (same (k, u) (k', u')) eqn:S.
      * apply same_true in S. inversion S; subst. now rewrite !same_refl.
      * destruct (same (Some k) (Some k')) eqn:F; [|easy]. destruct (same u' u) eqn:G; [|easy].
        apply same_true in F, G. inversion F; subst. now rewrite same_refl in S.
  - apply sum_zero. intros p _. rewrite sum_flat_map. apply sum_zero. intros [k' u'] I.
    fold (weight (led p (k', u')) (x, u)). rewrite weight_led. simpl.
    destruct (same (fst p) x); [|easy]. destruct (same (key x) (Some k')) eqn:F; [|easy].
    destruct (same u' u) eqn:G; [|easy]. apply same_true in F, G. subst. contradict N.
    exists k'. split; [easy|]. now apply in_owners.
Qed.

(** One person more, with whatever rows in the owner table: their own pairs come, and nobody else's change. *)
Theorem one_owner_adds_their_own t u o d :
  (forall q, In q o -> snd q <> u) -> (forall q, In q d -> snd q = u) ->
  equal (pairs t (d ++ o)) (pairs t d ++ pairs t o)
  /\ (forall x v, v <> u -> weight (pairs t d) (x, v) = 0) /\ (forall x, weight (pairs t o) (x, u) = 0).
Proof.
  intros O D.
  assert (forall x v, v <> u -> weight (pairs t d) (x, v) = 0) as Own.
  { intros x v N. rewrite pairs_weigh_rows. destruct (owns_dec d x v) as [(k & _ & I)|]; [|easy].
    now apply D in I. }
  assert (forall x, weight (pairs t o) (x, u) = 0) as Others.
  { intros x. rewrite pairs_weigh_rows. destruct (owns_dec o x u) as [(k & _ & I)|]; [|easy].
    now apply O in I. }
  split; [|easy]. intros [x v]. rewrite weight_app. destruct (eq_dec v u) as [->|N].
  - rewrite Others, !pairs_weigh_rows.
    destruct (owns_dec (d ++ o) x u) as [(k & E & I)|M], (owns_dec d x u) as [P|P]; try lia.
    + apply in_app_iff in I as [I|I]; [|now apply O in I]. contradict P. now exists k.
    + destruct P as (k & E & I). contradict M. exists k. split; [easy|]. apply in_app_iff. now left.
  - rewrite Own by easy. rewrite !pairs_weigh_rows.
    destruct (owns_dec (d ++ o) x v) as [(k & E & I)|M], (owns_dec o x v) as [P|P]; try lia.
    + apply in_app_iff in I as [I|I]; [now apply D in I|]. contradict P. now exists k.
    + destruct P as (k & E & I). contradict M. exists k. split; [easy|]. apply in_app_iff. now right.
Qed.

(** Which pairs of key and owner there are is all that counts, so an owner table may be pairs itself: those of a person
    more are the others' and their own, by the theorem. *)
Theorem only_who_owns_counts t o o' :
  (forall k u, In (Some k, u) o <-> In (Some k, u) o') -> equal (pairs t o) (pairs t o').
Proof.
  intros S [x u]. rewrite !pairs_weigh_rows.
  destruct (owns_dec o x u) as [(k & E & I)|N], (owns_dec o' x u) as [(k' & E' & I')|N']; try easy.
  - contradict N'. exists k. split; [easy|]. now apply S.
  - contradict N. exists k'. split; [easy|]. now apply S.
Qed.

End Ways.

(** Of a row of two owners one is chosen: when the other comes, the first loses it. *)
Definition first_owner (t : coll Z) (o : list (option Z * Z)) : coll (Z * Z) :=
  flat_map (fun p => firstn 1 (flat_map (led (fun r => Some r) p) (owners o))) t.
Example a_chosen_owner_is_anothers_loss :
  weight (first_owner [(5, 1)] [(Some 5, 2)]) (5, 2) = 1
  /\ weight (first_owner [(5, 1)] [(Some 5, 1); (Some 5, 2)]) (5, 2) = 0.
Proof. now split. Qed.

(** Owners who are people in periods: a pair has what the owner's rows of its key say, such as their first time.

    [U] is a person in a period, [W] what an owner row says beside its key, [first] any function of such rows. *)
Section Periods.
Context {R K U T W : Type} `{Eq R} `{Eq K} `{Eq U} `{Eq T}.
Variable key : R -> option K.
Variable who : W -> U.
Variable first : list W -> T.

Definition whom (o : list (option K * W)) : list (option K * U) := map (fun q => (fst q, who (snd q))) o.
Definition mine (o : list (option K * W)) (k : option K) (u : U) : list W :=
  map snd (filter (fun q => same (fst q) k && same (who (snd q)) u)%bool o).
Definition told (t : coll R) (o : list (option K * W)) : coll (R * U * T) :=
  map (fun p => ((fst p, first (mine o (key (fst (fst p))) (snd (fst p)))), snd p)) (pairs key t (whom o)).

Lemma weight_told t o x u z :
  weight (told t o) (x, u, z)
  = if same (first (mine o (key x) u)) z then weight (pairs key t (whom o)) (x, u) else 0.
Proof.
  unfold told, weight at 1. rewrite sum_map.
  rewrite (sum_ext _ (fun p =>
    if same (first (mine o (key x) u)) z then (if same (fst p) (x, u) then snd p else 0) else 0)).
  - destruct (same _ z); [easy|]. now apply sum_zero.
  - intros [[y v] w] _. cbn [fst snd]. destruct (same (y, v) (x, u)) eqn:E.
    + apply same_true in E. injection E as -> ->. destruct (same (first (mine o (key x) u)) z) eqn:F.
      * apply same_true in F. rewrite F. now rewrite same_refl.
      * destruct (same (x, u, first (mine o (key x) u)) (x, u, z)) eqn:G; [|easy].
        apply same_true in G. apply same_false in F. congruence.
    + apply same_false in E. destruct (same (y, v, first (mine o (key y) v)) (x, u, z)) eqn:G.
      * apply same_true in G. congruence.
      * now destruct (same (first (mine o (key x) u)) z).
Qed.

Lemma mine_app d o k u : mine (d ++ o) k u = mine d k u ++ mine o k u.
Proof. unfold mine. now rewrite filter_app, map_app. Qed.

Lemma mine_none o k u : (forall q, In q o -> who (snd q) <> u) -> mine o k u = [].
Proof.
  intros N. unfold mine. induction o as [|q o IH]; [easy|]. simpl.
  destruct (same (who (snd q)) u) eqn:E; [apply same_true in E; now apply N in E; [|left]|].
  rewrite Bool.andb_false_r. apply IH. intros r I. apply N. now right.
Qed.

(** One unit more adds pairs of its own, with what its own rows say, and changes nobody else's. *)
Theorem one_owner_in_a_period_adds_its_own t u o d :
  (forall q, In q o -> who (snd q) <> u) -> (forall q, In q d -> who (snd q) = u) ->
  equal (told t (d ++ o)) (told t d ++ told t o)
  /\ (forall x v z, v <> u -> weight (told t d) (x, v, z) = 0) /\ (forall x z, weight (told t o) (x, u, z) = 0).
Proof.
  intros O D.
  assert (forall q, In q (whom o) -> snd q <> u) as O'.
  { intros q I. apply in_map_iff in I as (r & <- & I). now apply O. }
  assert (forall q, In q (whom d) -> snd q = u) as D'.
  { intros q I. apply in_map_iff in I as (r & <- & I). now apply D. }
  destruct (one_owner_adds_their_own key t u (whom o) (whom d) O' D') as (A & Own & Others).
  split; [|split].
  - intros [[x v] z]. rewrite weight_app, !weight_told, mine_app.
    assert (whom (d ++ o) = whom d ++ whom o) as E by apply map_app.
    specialize (A (x, v)). rewrite weight_app in A. rewrite E, A. destruct (eq_dec v u) as [->|N].
    + rewrite (mine_none o _ _ O), app_nil_r, Others. destruct (same _ z), (same (first []) z); lia.
    + rewrite (mine_none d); [|intros q I; rewrite (D q I); congruence]. simpl. rewrite Own by easy.
      destruct (same (first (mine o (key x) v)) z), (same (first []) z); lia.
  - intros x v z N. rewrite weight_told, Own by easy. now destruct (same _ z).
  - intros x z. rewrite weight_told, Others. now destruct (same _ z).
Qed.

End Periods.

(** The first time of all periods instead: when rows of period 1 come, the time of a pair of period 2 changes. *)
Definition first_of_all (o : list (option Z * (Z * Z))) (k : option Z) (person : Z) : Z :=
  fold_right (fun q least =>
    if (same (fst q) k && same (fst (snd q)) person)%bool then Z.min (snd (snd q)) least else least) 99 o.
Example a_time_of_all_periods_is_anothers :
  first_of_all [(Some 5, (1, 20))] (Some 5) 1 = 20 /\ first_of_all [(Some 5, (1, 3)); (Some 5, (1, 20))] (Some 5) 1 = 3.
Proof. now split. Qed.
