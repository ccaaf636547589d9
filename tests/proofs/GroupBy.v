(** group_by: prefixes of the records of each key in the order of falling weight, of each sign apart. In half units.

    The proof looks at groups as layers: the records of at least [t] units are one group of weight 1, for each t. *)

From Proofs Require Import Order.

Section GroupBy.
Context {A K : Type} `{Eq A} `{Eq K}.
Variable key : A -> K.

(** The canonical order of a group: the same for the same members. *)
Variable canon : list A -> list A.
Hypothesis canon_perm : forall l l', Permutation l l' -> canon l = canon l'.

(** core/operators/group_by.py, [GroupBy._levels]. *)
Definition sizes (sign : Z) (group : coll A) : coll A :=
  filter (fun p => 0 <? snd p) (map (fun p => (fst p, sign * snd p)) group).
Definition steps (found : coll A) : list Z := sort id (nodup Z.eq_dec (map snd found)).
Definition members (found : coll A) (level : Z) : list A := map fst (filter (fun p => level <=? snd p) found).

Fixpoint levels (found : coll A) (below : Z) (given : list Z) : list (list A * Z) :=
  match given with [] => [] | level :: rest => (members found level, level - below) :: levels found level rest end.

Definition prefixes (sign : Z) (group : coll A) : coll (list A) :=
  map (fun q => (canon (fst q), sign * snd q)) (levels (sizes sign group) 0 (steps (sizes sign group))).

(** core/operators/group_by.py, [GroupBy.define]. *)
Definition of_key (k : K) (c : coll A) : coll A := filter (fun p => same (key (fst p)) k) c.
Definition group_by (c : coll A) : coll (K * list A) :=
  flat_map (fun k => map (fun q => ((k, fst q), snd q)) (prefixes 1 (of_key k c) ++ prefixes (-1) (of_key k c)))
           (nodup eq_dec (map (fun p => key (fst p)) c)).

(** One layer: the members of at least [t] units, if there are any, are the group [M]. *)
Definition layer (found : coll A) (M : list A) (t : Z) : Z :=
  match members found t with [] => 0 | m => if same (canon m) M then 1 else 0 end.
Definition range (below n : nat) : list Z := map Z.of_nat (seq (S below) n).

Lemma in_range t below n : In t (range below n) <-> Z.of_nat below < t <= Z.of_nat (below + n).
Proof.
  unfold range. rewrite in_map_iff. split.
  - intros (i & <- & I). apply in_seq in I. lia.
  - intros I. exists (Z.to_nat t). rewrite in_seq. lia.
Qed.

Lemma range_nodup below n : NoDup (range below n).
Proof. apply FinFun.Injective_map_NoDup; [intros i j; lia|apply seq_NoDup]. Qed.

Lemma range_app below n m : range below (n + m) = range below n ++ range (below + n) m.
Proof. unfold range. rewrite seq_app, map_app. easy. Qed.

Lemma sum_const k below n f : (forall t, In t (range below n) -> f t = k) -> sum f (range below n) = Z.of_nat n * k.
Proof.
  intros E. rewrite (sum_ext f (fun _ => k)) by easy. unfold range.
  assert (forall l : list nat, sum (fun _ => k) (map Z.of_nat l) = Z.of_nat (length l) * k) as C.
  { induction l as [|i l IH]; cbn [map sum length]; lia. }
  now rewrite C, seq_length.
Qed.

Lemma no_members found t : (forall v, In v (map snd found) -> v < t) -> members found t = [].
Proof.
  intros N. unfold members. induction found as [|[x v] l IH]; simpl; [easy|].
  assert (v < t) by (apply N; now left). destruct (Z.leb_spec t v); [lia|]. apply IH. intros u I. apply N. now right.
Qed.

Lemma same_members found t u :
  (forall v, In v (map snd found) -> (t <= v <-> u <= v)) -> members found t = members found u.
Proof.
  intros E. unfold members. f_equal. induction found as [|[x v] l IH]; simpl; [easy|].
  assert (t <= v <-> u <= v) by (apply E; now left). rewrite IH by (intros w I; apply E; now right).
  destruct (Z.leb_spec t v), (Z.leb_spec u v); easy || lia.
Qed.

Lemma some_members found v : In v (map snd found) -> members found v <> [].
Proof.
  intros I E. apply in_map_iff in I as ([x u] & F & I). simpl in F; subst.
  assert (In x (members found v)) as J; [|now rewrite E in J].
  apply in_map_iff. exists (x, v). split; [easy|]. apply filter_In. split; [easy|]. simpl. now apply Z.leb_le.
Qed.

Lemma levels_are_layers found M : forall given n below,
  StronglySorted Z.lt given ->
  (forall v, In v given <-> Z.of_nat below < v /\ In v (map snd found)) ->
  (forall v, In v given -> v <= Z.of_nat (below + n)) ->
  sum (fun q => if same (canon (fst q)) M then snd q else 0) (levels found (Z.of_nat below) given) =
  sum (layer found M) (range below n).
Proof.
  induction given as [|level given IH]; intros n below Sorted Which Last; cbn [levels sum fst snd].
  - rewrite (sum_const 0); [lia|]. intros t T. apply in_range in T. unfold layer. rewrite no_members; [easy|].
    intros v I. destruct (Z.lt_ge_cases (Z.of_nat below) v); [|lia]. now destruct (proj2 (Which v)).
  - inversion Sorted as [|? ? Sorted' First]; subst. rewrite Forall_forall in First.
    destruct (proj1 (Which level) (or_introl eq_refl)) as [Above There].
    pose proof (Last level (or_introl eq_refl)) as Top.
    set (k := Z.to_nat (level - Z.of_nat below)). set (rest := Z.to_nat (Z.of_nat (below + n) - level)).
    replace n with (k + rest)%nat by lia. rewrite range_app, sum_app.
    specialize (IH rest (below + k)%nat). replace (Z.of_nat (below + k)) with level in IH by lia. rewrite <- IH; [|easy| |].
    + f_equal. rewrite (sum_const (if same (canon (members found level)) M then 1 else 0)).
      * destruct (same _ M); lia.
      * intros t T. apply in_range in T. unfold layer. rewrite (same_members found t level).
        { pose proof (some_members found level There). now destruct (members found level). }
        intros v I. split; intros V; [|lia]. destruct (Z.lt_ge_cases (Z.of_nat below) v) as [B|]; [|lia].
        destruct (proj2 (Which v) (conj B I)) as [->|J]; [lia|]. specialize (First v J). lia.
    + intros v. split.
      * intros I. split; [now apply First|]. now apply (Which v); right.
      * intros [V I]. destruct (proj2 (Which v)) as [->|J]; [|lia|easy]. split; [lia|easy].
    + intros v I. specialize (Last v (or_intror I)). lia.
Qed.

(** For any number of layers that is enough. *)
Lemma weight_prefixes sign group M n : sign = 1 \/ sign = -1 ->
  (forall p, In p group -> sign * snd p <= Z.of_nat n) ->
  weight (prefixes sign group) M = sign * sum (layer (sizes sign group) M) (range 0 n).
Proof.
  intros S Top. rewrite <- (levels_are_layers _ _ (steps (sizes sign group))).
  - unfold weight, prefixes. rewrite sum_map, <- sum_scale. apply sum_ext. intros q _. cbn [fst snd].
    destruct (same _ M); lia.
  - apply (sort_sorted id); [easy|apply NoDup_nodup].
  - intros v. unfold steps. rewrite (Permutation_in' eq_refl (sort_perm id _)), nodup_In. split; [|tauto].
    intros I. split; [|easy]. apply in_map_iff in I as (p & <- & I). apply filter_In in I as [_ I]. lia.
  - intros v I. unfold steps in I. apply (Permutation_in _ (sort_perm id _)), nodup_In, in_map_iff in I as (p & <- & I).
    apply filter_In in I as [I _]. apply in_map_iff in I as (q & <- & I). apply Top in I. simpl. lia.
Qed.

Lemma layer_of_group sign group M t : 0 < t -> layer (sizes sign group) M t =
  match map fst (filter (fun p => t <=? sign * snd p) group) with [] => 0 | m => if same (canon m) M then 1 else 0 end.
Proof.
  intros T. unfold layer, members, sizes. replace (map fst (filter _ (filter _ _))) with
    (map fst (filter (fun p => t <=? sign * snd p) group)); [easy|].
  induction group as [|[x w] l IH]; simpl; [easy|]. destruct (Z.ltb_spec 0 (sign * w)); simpl;
    destruct (Z.leb_spec t (sign * w)); simpl; try lia; now rewrite IH.
Qed.

(** What the group of one layer adds: nothing, if it has no members. *)
Definition emitted (k : K) (w : Z) (m : list A) : coll (K * list A) := match m with [] => [] | _ => [((k, canon m), w)] end.

Lemma emitted_mass k w m : mass (emitted k w m) <= Z.abs w.
Proof. unfold mass. destruct m; simpl; lia. Qed.

Lemma weight_emitted k w m k' M : weight (emitted k w m) (k', M) =
  if same k k' then w * match m with [] => 0 | m => if same (canon m) M then 1 else 0 end else 0.
Proof.
  destruct m as [|x m]; cbn [emitted]; rewrite ?weight_cons; change (weight [] (k', M)) with 0; [destruct (same k k'); lia|].
  destruct (same (k, canon (x :: m)) (k', M)) eqn:E.
  - apply same_true in E. inversion E; subst. rewrite !same_refl. lia.
  - apply same_false in E. destruct (same k k') eqn:F; [|lia]. destruct (same (canon (x :: m)) M) eqn:J; [|lia].
    apply same_true in F, J. congruence.
Qed.

Lemma weight_group_by c k M :
  weight (group_by c) (k, M) = weight (prefixes 1 (of_key k c)) M + weight (prefixes (-1) (of_key k c)) M.
Proof.
  rewrite <- weight_app. unfold group_by. set (f := fun k => prefixes 1 (of_key k c) ++ prefixes (-1) (of_key k c)).
  unfold weight at 1. rewrite sum_flat_map.
  rewrite (sum_ext _ (fun k' => if same k k' then weight (f k) M else 0)).
  - destruct (in_dec eq_dec k (map (fun p => key (fst p)) c)) as [I|N].
    + apply sum_at; [apply NoDup_nodup|now apply nodup_In].
    + rewrite sum_zero.
      * change (0 = weight (f k) M). unfold f, of_key. replace (filter _ c) with (@nil (A * Z)); [easy|].
        symmetry. induction c as [|p l IH]; simpl in *; [easy|].
        destruct (same (key (fst p)) k) eqn:E; [apply same_true in E; tauto|]. apply IH. tauto.
      * intros k' I. destruct (same k k') eqn:E; [|easy]. apply same_true in E; subst. now apply nodup_In in I.
  - intros k' _. rewrite sum_map. fold (f k'). cbn [fst snd]. destruct (same k k') eqn:E.
    + apply same_true in E; subst. unfold weight. apply sum_ext. intros [m w] _. cbn [fst snd].
      destruct (same m M) eqn:F.
      * apply same_true in F; subst. now rewrite same_refl.
      * destruct (same (k', m) (k', M)) eqn:G; [|easy]. apply same_true in G. apply same_false in F. congruence.
    + apply sum_zero. intros [m w] _. cbn [fst snd]. destruct (same (k', m) (k, M)) eqn:G; [|easy].
      apply same_true in G. apply same_false in E. congruence.
Qed.

(** How high the layers reach. *)
Definition top (c : coll A) : nat := Z.to_nat (mass c).

Lemma below_top c sign p : sign = 1 \/ sign = -1 -> In p c -> sign * snd p <= Z.of_nat (top c).
Proof.
  intros S I. unfold top, mass. assert (0 <= sum (fun q => Z.abs (snd q)) c) as P by (apply sum_nonneg; lia).
  rewrite Z2Nat.id by easy. induction c as [|q c IH]; simpl in *; [easy|].
  assert (0 <= sum (fun q : A * Z => Z.abs (snd q)) c) by (apply sum_nonneg; lia).
  destruct I as [->|I]; [lia|]. specialize (IH I ltac:(easy)). lia.
Qed.

Lemma prefixes_perm sign c d M : sign = 1 \/ sign = -1 -> Permutation c d ->
  weight (prefixes sign c) M = weight (prefixes sign d) M.
Proof.
  intros S P. rewrite (weight_prefixes sign c M (top c)), (weight_prefixes sign d M (top c)); try easy.
  - f_equal. apply sum_ext. intros t T. apply in_range in T. rewrite !layer_of_group by lia.
    assert (Permutation (map fst (filter (fun p => t <=? sign * snd p) c)) (map fst (filter (fun p => t <=? sign * snd p) d))) as Q.
    { apply Permutation_map. clear T. induction P; simpl; try easy.
      - destruct (t <=? sign * snd x); [now apply perm_skip|easy].
      - destruct (t <=? sign * snd x), (t <=? sign * snd y); try easy. apply perm_swap.
      - now transitivity (filter (fun p => t <=? sign * snd p) l'). }
    destruct (map fst (filter _ c)) eqn:E.
    + apply Permutation_nil in Q. now rewrite Q.
    + destruct (map fst (filter _ d)) eqn:F; [apply Permutation_sym, Permutation_nil in Q; easy|]. now rewrite (canon_perm _ _ Q).
  - intros p I. apply below_top; [easy|]. now apply (Permutation_in _ (Permutation_sym P)).
  - intros p I. now apply below_top.
Qed.

(** One unit more of [x] in its group: at one layer the members are one more. *)
Lemma prefixes_grow sign x w s g M : sign = 1 \/ sign = -1 -> grows w s ->
  let t := sign * w + 1 in
  let others := map fst (filter (fun p => t <=? sign * snd p) g) in
  weight (prefixes sign ((x, w + s) :: g)) M - weight (prefixes sign ((x, w) :: g)) M =
  if sign =? s then s * (if same (canon (x :: others)) M then 1 else 0)
    - s * match others with [] => 0 | m => if same (canon m) M then 1 else 0 end else 0.
Proof.
  intros Sg G t others. set (n := S (top ((x, w + s) :: (x, w) :: g))).
  assert (forall p, In p ((x, w + s) :: (x, w) :: g) -> sign * snd p <= Z.of_nat n) as Top.
  { intros p I. pose proof (below_top _ sign p Sg I). unfold n. lia. }
  rewrite !(weight_prefixes sign _ M n); try easy; try (intros p I; apply Top; simpl in *; tauto).
  rewrite <- Z.mul_sub_distr_l, <- sum_minus. destruct (Z.eqb_spec sign s) as [->|N].
  - rewrite (sum_ext _ (fun u => if same t u then (if same (canon (x :: others)) M then 1 else 0)
      - match others with [] => 0 | m => if same (canon m) M then 1 else 0 end else 0)).
    + rewrite sum_at; [lia|apply range_nodup|]. apply in_range. specialize (Top (x, w + s) (or_introl eq_refl)).
      simpl in Top. unfold t, grows in *. nia.
    + intros u U. apply in_range in U. rewrite !layer_of_group by lia. cbn [filter snd].
      assert (s * (w + s) = t) as -> by (unfold t, grows in *; nia).
      destruct (same t u) eqn:E.
      * apply same_true in E; subst u. rewrite Z.leb_refl. destruct (Z.leb_spec t (s * w)); [unfold t in *; lia|].
        cbn [map fst]. fold others. now destruct others.
      * apply same_false in E. destruct (Z.leb_spec u t), (Z.leb_spec u (s * w)); try (unfold t in *; lia);
          cbn [map fst]; apply Z.sub_diag.
  - rewrite sum_zero; [lia|]. intros u U. apply in_range in U. rewrite !layer_of_group by lia. cbn [filter snd].
    destruct (Z.leb_spec u (sign * (w + s))), (Z.leb_spec u (sign * w)); try (unfold grows in G; nia);
      cbn [map fst]; apply Z.sub_diag.
Qed.

Theorem group_by_stable : Stable group_by 2.
Proof.
  apply by_steps.
  - intros c d _ P [k M]. rewrite !weight_group_by. f_equal; apply prefixes_perm; auto;
      (induction P; simpl; try easy;
       [destruct (same _ k); [now apply perm_skip|easy]
       |destruct (same (key (fst x)) k), (same (key (fst y)) k); try easy; apply perm_swap
       |eapply perm_trans; eassumption]).
  - intros x c _ [k M]. rewrite !weight_group_by. unfold of_key. cbn [filter fst]. now destruct (same (key x) k).
  - intros x w s c _ G. set (k := key x). set (t := s * w + 1).
    set (others := map fst (filter (fun p => t <=? s * snd p) (of_key k c))).
    rewrite (dist_equal _ ((emitted k s (x :: others) ++ emitted k (- s) others) ++ group_by ((x, w) :: c)) _ (group_by ((x, w) :: c))).
    { etransitivity; [apply dist_added|]. unfold mass. rewrite sum_app.
      pose proof (emitted_mass k s (x :: others)). pose proof (emitted_mass k (- s) others). unfold mass in *.
      unfold grows in G. lia. }
    2: easy.
    intros [k' M]. rewrite !weight_app, !weight_group_by, !weight_emitted.
    unfold of_key at 1 2 3 4. cbn [filter fst]. fold k. destruct (same k k') eqn:E; [|lia].
    apply same_true in E; subst k'. fold (of_key k c).
    pose proof (prefixes_grow 1 x w s (of_key k c) M (or_introl eq_refl) G) as P1.
    pose proof (prefixes_grow (-1) x w s (of_key k c) M (or_intror eq_refl) G) as P2. cbv zeta in P1, P2.
    destruct G as [[-> W]|[-> W]]; cbn [Z.eqb Pos.eqb] in P1, P2; fold t in P1, P2; fold others in P1, P2; lia.
Qed.

End GroupBy.
