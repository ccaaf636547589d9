(** How far one person moves a step that keeps the key apart: by what the records of one key weigh at the most
    (core/plan/person_bound.py). And how far a key moves whatever moves (`Node.moves_at_most`). *)

From Proofs Require Export PersonSteps.

Lemma dist_of_one {A} `{Eq A} (c : coll A) n : 0 <= n -> (forall x, Z.abs (weight c x) <= n) ->
  (forall x y, weight c x <> 0 -> weight c y <> 0 -> x = y) -> dist c [] <= n.
Proof.
  intros P N One. destruct (Z.eq_dec (dist c []) 0) as [E|E]; [lia|]. apply differ in E as [x X].
  change (weight [] x) with 0 in X. rewrite (dist_over c [] [x]).
  - specialize (N x). cbn [sum]. change (weight [] x) with 0. lia.
  - repeat constructor; easy.
  - intros y Y. change (weight [] y) with 0 in Y. left. now apply One.
Qed.

Lemma dist_masses {A} `{Eq A} (c d : coll A) : dist c d <= mass c + mass d.
Proof.
  pose proof (triangle c [] d) as T. pose proof (dist_nil c). pose proof (dist_nil d) as D. rewrite dist_sym in D. lia.
Qed.

(** distinct, on the key alone. *)
Lemma weight_by_weight {A} `{Eq A} (g : Z -> Z) (c : coll A) y : dict c -> g 0 = 0 ->
  weight (each (fun x w => [(x, g w)]) c) y = g (weight c y).
Proof.
  intros D Z. rewrite weight_each. induction c as [|[x w] c IH]; [easy|]. inversion D; subst. cbn [sum fst snd].
  rewrite IH, !weight_cons by easy. change (weight [] y) with 0. destruct (same x y) eqn:E; [|now rewrite !Z.add_0_l].
  apply same_true in E; subst. rewrite (weight_absent c y), Z, !Z.add_0_r by easy. easy.
Qed.

Section OneUnit.
Context {S A U : Type} `{Eq S} `{Eq A} `{Eq U}.

(** The plan so far, of which one unit comes: [d] beside [c]. *)
Variable whose : S -> U.
Variable f : coll S -> coll A.
Variable u : U.
Variable c d : coll S.
Hypothesis others : forall p, In p c -> whose (fst p) <> u.
Hypothesis own : forall p, In p d -> whose (fst p) = u.

Theorem distinct_moves_its_bound (w : A -> U) most : Local whose w f -> 0 <= most -> (forall x y, w x = w y -> x = y) ->
  dist (distinct most (items (f (d ++ c)))) (distinct most (items (f c))) <= most.
Proof.
  intros L P One. apply (one_unit_moves_its_key whose w (fun c => distinct most (items (f c))) u most); try easy.
  - apply (local_after_local whose w w f (fun c => distinct most (items c))); [easy|apply distinct_is_local].
  - intros e. apply dist_of_one; [easy| |].
    + intros x. rewrite weight_of_user. destruct (same (w x) u); [|easy]. unfold distinct.
      rewrite (weight_by_weight (fun v => Z.min (Z.max v 0) most)) by (apply items_dict || lia). lia.
    + intros x y. rewrite !weight_of_user. destruct (same (w x) u) eqn:X; [|easy]. destruct (same (w y) u) eqn:Y; [|easy].
      apply same_true in X, Y. intros _ _. apply One. congruence.
Qed.

(** A whole group by the key is there once, or not; that of a key leaves, and another takes its place. *)
Variable key : A -> U.
Variable canon : list A -> list A.
Hypothesis canon_perm : forall l l', Permutation l l' -> canon l = canon l'.

Lemma group_of_key k (e : coll A) : equal (of_user fst k (whole_groups key canon e)) (group_of key canon k e).
Proof.
  intros [k' M]. rewrite weight_of_user, weight_whole_groups. cbn [fst]. destruct (same k' k) eqn:E.
  - apply same_true in E. now subst.
  - unfold group_of. rewrite weight_emitted. apply same_false in E. now replace (same k k') with false by (symmetry; apply same_false; congruence).
Qed.

Theorem a_whole_group_moves_one : Local whose key f ->
  dist (whole_groups key canon (items (f (d ++ c)))) (whole_groups key canon (items (f c))) <= 1.
Proof.
  intros L. apply (one_unit_moves_its_key whose fst (fun c => whole_groups key canon (items (f c))) u 1); try easy.
  - apply (local_after_local whose key fst f (fun c => whole_groups key canon (items c))); [easy|].
    apply (whole_groups_are_local key (fun k => k)), canon_perm.
  - intros e. rewrite (dist_equal _ _ [] [] (group_of_key u _)) by easy.
    etransitivity; [apply dist_nil|]. apply emitted_mass.
Qed.

Theorem a_group_moves_two_whatever_moves k (e e' : coll A) :
  dist (of_user fst k (whole_groups key canon e)) (of_user fst k (whole_groups key canon e')) <= 2.
Proof.
  rewrite (dist_equal _ _ _ _ (group_of_key k e) (group_of_key k e')). etransitivity; [apply dist_masses|].
  unfold group_of. pose proof (emitted_mass canon k 1 (copies (of_key key k e))) as M.
  pose proof (emitted_mass canon k 1 (copies (of_key key k e'))) as M'. change (Z.abs 1) with 1 in *. lia.
Qed.

(** limit leaves a key its bound. *)
Variable rank : A -> Z.
Hypothesis rank_one : forall x y, rank x = rank y -> x = y.

Lemma filled_weight k b (e : coll A) : forall s, mass (of_user key k (fill key Z.min b s e)) =
  Z.min (s k + sum (fun p => if same (key (fst p)) k then Z.max (snd p) 0 else 0) e) (b k) - Z.min (s k) (b k).
Proof.
  unfold of_user, mass. induction e as [|[x v] e IH]; intros s; cbn [fill sum filter fst snd]; [rewrite Z.add_0_r; lia|].
  assert (0 <= sum (fun p : A * Z => if same (key (fst p)) k then Z.max (snd p) 0 else 0) e) as P.
  { apply sum_nonneg. intros p _. destruct (same _ k); lia. }
  destruct (same (key x) k) eqn:E; cbn [sum snd]; rewrite IH; cbv beta.
  - apply same_true in E. rewrite E, same_refl. lia.
  - rewrite E. lia.
Qed.

Lemma limited_weight k most (e : coll A) : 0 <= most -> mass (of_user key k (limit key rank most e)) <= most.
Proof.
  intros P. unfold limit, filled. rewrite filled_weight. cbv beta.
  assert (0 <= sum (fun p : A * Z => if same (key (fst p)) k then Z.max (snd p) 0 else 0) (sort (fun p => rank (fst p)) e)).
  { apply sum_nonneg. intros p _. destruct (same _ k); lia. }
  lia.
Qed.

Theorem a_limit_moves_its_bound most : Local whose key f -> 0 <= most ->
  dist (limit key rank most (items (f (d ++ c)))) (limit key rank most (items (f c))) <= most.
Proof.
  intros L P. apply (one_unit_moves_its_key whose key (fun c => limit key rank most (items (f c))) u most); try easy.
  - apply (local_after_local whose key key f (fun c => limit key rank most (items c))); [easy|].
    apply (limit_is_local key (fun k => k)), rank_one.
  - intros e. etransitivity; [apply dist_nil|]. now apply limited_weight.
Qed.

Theorem a_limited_key_moves_twice_its_bound k most (e e' : coll A) : 0 <= most ->
  dist (of_user key k (limit key rank most e)) (of_user key k (limit key rank most e')) <= 2 * most.
Proof.
  intros P. etransitivity; [apply dist_masses|].
  pose proof (limited_weight k most e P). pose proof (limited_weight k most e' P). lia.
Qed.

(** Prefixes of a key, in half units: as many of these as its records have units, so half of their weight. *)
Lemma levels_weight found top : forall given below, StronglySorted Z.lt given ->
  (forall v, In v given -> below < v <= top) -> below <= top ->
  sum (fun q => Z.abs (snd q)) (levels (A := A) found below given) <= top - below.
Proof.
  induction given as [|level given IH]; intros below Sorted In' B; cbn [levels sum snd]; [lia|].
  inversion Sorted as [|? ? Sorted' First]; subst. rewrite Forall_forall in First.
  pose proof (In' level (or_introl eq_refl)) as L.
  specialize (IH level Sorted'). assert (forall v, In v given -> level < v <= top) as I.
  { intros v I. specialize (First v I). specialize (In' v (or_intror I)). lia. }
  specialize (IH I). lia.
Qed.

Lemma prefixes_weight sign (g : coll A) : sign = 1 \/ sign = -1 ->
  mass (prefixes canon sign g) <= sum (fun p => Z.max (sign * snd p) 0) g.
Proof.
  intros Sg. unfold mass, prefixes. rewrite sum_map. cbn [snd].
  rewrite (sum_ext _ (fun q => Z.abs (snd q))) by (intros q _; destruct Sg as [-> | ->]; lia).
  assert (0 <= sum (fun p : A * Z => Z.max (sign * snd p) 0) g) as P by (apply sum_nonneg; lia).
  set (top := sum _ g) in *. rewrite <- (Z.sub_0_r top). apply levels_weight; [| |easy].
  - apply (sort_sorted id); [easy|apply NoDup_nodup].
  - intros v I. unfold steps in I. apply (Permutation_in _ (sort_perm id _)), nodup_In, in_map_iff in I as (p & <- & I).
    apply filter_In in I as [I V]. split; [lia|]. apply in_map_iff in I as (q & <- & I). cbn [snd] in *.
    unfold top. clear - I. induction g as [|r g IH]; [easy|]. cbn [sum].
    assert (0 <= sum (fun p : A * Z => Z.max (sign * snd p) 0) g) by (apply sum_nonneg; lia).
    destruct I as [->|I]; [lia|]. specialize (IH I). lia.
Qed.

Lemma grouped_weight k (e : coll A) : dist (of_user fst k (group_by key canon e)) [] <= side key k e.
Proof.
  rewrite (dist_equal _ (map (fun q => ((k, fst q), snd q)) (prefixes canon 1 (of_key key k e) ++ prefixes canon (-1) (of_key key k e))) [] []); [| |easy].
  - etransitivity; [apply dist_nil|]. unfold mass. rewrite sum_map. cbn [snd]. rewrite sum_app.
    pose proof (prefixes_weight 1 (of_key key k e) ltac:(now left)) as P.
    pose proof (prefixes_weight (-1) (of_key key k e) ltac:(now right)) as M. unfold mass in P, M.
    assert (sum (fun p : A * Z => Z.max (1 * snd p) 0) (of_key key k e) + sum (fun p => Z.max (-1 * snd p) 0) (of_key key k e)
      = side key k e) as E; [|lia].
    rewrite <- sum_plus. unfold side, of_key. rewrite sum_filter. apply sum_ext. intros p _. destruct (same _ k); lia.
  - intros [k' M]. rewrite weight_of_user, weight_group_by, <- weight_app. cbn [fst]. unfold weight at 2. rewrite sum_map. cbn [fst snd].
    destruct (same k' k) eqn:E.
    + apply same_true in E; subst. unfold weight. apply sum_ext. intros q _.
      destruct (same (fst q) M) eqn:F; [apply same_true in F; subst; now rewrite same_refl|].
      destruct (same (k, fst q) (k, M)) eqn:G; [|easy]. apply same_true in G. apply same_false in F. congruence.
    + symmetry. apply sum_zero. intros q _. destruct (same (k, fst q) (k', M)) eqn:G; [|easy].
      apply same_true in G. apply same_false in E. congruence.
Qed.

Theorem prefixes_move_half n : Local whose key f -> (forall e, side key u (items (f e)) <= n) ->
  dist (group_by key canon (items (f (d ++ c)))) (group_by key canon (items (f c))) <= n.
Proof.
  intros L N. apply (one_unit_moves_its_key whose fst (fun c => group_by key canon (items (f c))) u n); try easy.
  - apply (local_after_local whose key fst f (fun c => group_by key canon (items c))); [easy|].
    apply (prefixes_are_local key (fun k => k)), canon_perm.
  - intros e. etransitivity; [apply grouped_weight|apply N].
Qed.

(** Joins on the key, of what is made of the unit here and there. *)
Context {B C : Type} `{Eq B} `{Eq C}.
Variable g : coll S -> coll B.
Variable key' : B -> U.
Variable pair : A -> B -> C.
Variable whose_pair : C -> U.
Hypothesis pair_names : forall x y, key x = key' y -> whose_pair (pair x y) = key x.
Variable a b : Z.
Hypothesis here : forall e, side key u (items (f e)) <= a.
Hypothesis there : forall e, side key' u (items (g e)) <= b.
Hypothesis f_local : Local whose key f.
Hypothesis g_local : Local whose key' g.

Lemma pairs_weight weigh (e : coll A) (e' : coll B) :
  dist (of_user whose_pair u (pairs key key' pair weigh e e')) [] <= side key u e * side key' u e' * Z.abs (weigh u).
Proof.
  etransitivity; [apply dist_nil|]. unfold mass, of_user. rewrite sum_filter. unfold pairs. rewrite sum_flat_map.
  rewrite <- Z.mul_assoc, Z.mul_comm. unfold side at 2. rewrite <- sum_scale. apply sum_le. intros [x v] _. cbn [fst snd].
  rewrite sum_flat_map. destruct (same (key x) u) eqn:E.
  - apply same_true in E. rewrite <- Z.mul_assoc, Z.mul_comm. unfold side. rewrite <- sum_scale. apply sum_le. intros [y v'] _.
    cbn [fst snd]. destruct (same (key x) (key' y)) eqn:F.
    + apply same_true in F. cbn [sum fst snd]. rewrite pair_names, E, same_refl by easy.
      replace (same (key' y) u) with true by (symmetry; apply same_true; congruence). rewrite !Z.abs_mul. lia.
    + cbn [sum]. destruct (same (key' y) u); lia.
  - rewrite sum_zero; [lia|]. intros [y v'] _. cbn [fst snd]. destruct (same (key x) (key' y)) eqn:F; [|easy].
    apply same_true in F. cbn [sum fst snd]. rewrite pair_names by easy. now rewrite E.
Qed.

Theorem join_rows_moves_a_b :
  dist (join_rows key key' pair (items (f (d ++ c))) (items (g (d ++ c)))) (join_rows key key' pair (items (f c)) (items (g c)))
    <= a * b.
Proof.
  apply (one_unit_moves_its_key whose whose_pair (fun c => join_rows key key' pair (items (f c)) (items (g c))) u (a * b)); try easy.
  - apply (two_that_meet whose key key' whose_pair f g (fun c d => join_rows key key' pair (items c) (items d))); try easy.
    now apply (join_rows_is_local key (fun k => k) key' pair whose_pair).
  - intros e. etransitivity; [apply pairs_weight|]. specialize (here e). specialize (there e).
    pose proof (side_nonneg key u (items (f e))). pose proof (side_nonneg key' u (items (g e))).
    change (Z.abs 1) with 1. rewrite Z.mul_1_r. apply Z.mul_le_mono_nonneg; easy.
Qed.

(** In units of 1/scale^2: at most a b / (a + b). *)
Theorem join_moves_a_b_over_their_sum scale cut : 0 <= scale <= cut ->
  (a + b) * dist (join key key' pair scale cut (items (f (d ++ c))) (items (g (d ++ c))))
                 (join key key' pair scale cut (items (f c)) (items (g c))) <= scale * scale * (a * b).
Proof.
  intros R.
  assert (0 <= a /\ 0 <= b) as [PA PB].
  { specialize (here []). specialize (there []). pose proof (side_nonneg key u (items (f []))).
    pose proof (side_nonneg key' u (items (g []))). lia. }
  destruct (Z.eq_dec (a + b) 0) as [Z|N]. { rewrite Z. nia. }
  set (n := scale * scale * (a * b) / (a + b)).
  assert (forall m, (a + b) * m <= scale * scale * (a * b) -> m <= n) as Below.
  { intros m M. unfold n. apply Z.div_le_lower_bound; lia. }
  enough (dist (join key key' pair scale cut (items (f (d ++ c))) (items (g (d ++ c))))
               (join key key' pair scale cut (items (f c)) (items (g c))) <= n) as E.
  { pose proof (Z.mul_div_le (scale * scale * (a * b)) (a + b) ltac:(lia)) as M. fold n in M. nia. }
  apply (one_unit_moves_its_key whose whose_pair (fun c => join key key' pair scale cut (items (f c)) (items (g c))) u n); try easy.
  - apply (two_that_meet whose key key' whose_pair f g (fun c d => join key key' pair scale cut (items c) (items d))); try easy.
    now apply (join_is_local key (fun k => k) key' pair whose_pair).
  - intros e. apply Below. unfold join.
    pose proof (pairs_weight (fun k => rate scale cut (side key k (items (f e)) + side key' k (items (g e)))) (items (f e)) (items (g e))) as P.
    cbv beta in P. specialize (here e). specialize (there e).
    pose proof (side_nonneg key u (items (f e))) as PA'. pose proof (side_nonneg key' u (items (g e))) as PB'.
    set (moved := dist _ []) in *. set (x := side key u (items (f e))) in *. set (y := side key' u (items (g e))) in *.
    clearbody moved x y. unfold rate in P. rewrite Z.abs_eq in P by lia.
    destruct (Z.eq_dec (x + y) 0) as [Z0|Z0]. { assert (x = 0 /\ y = 0) as [-> ->] by lia. nia. }
    set (q := scale * scale / (x + y)) in *.
    pose proof (Z.mul_div_le (scale * scale) (x + y) ltac:(lia)) as Q. fold q in Q.
    assert (0 <= q) as Q0 by (apply Z.div_pos; nia). clearbody q.
    assert (moved <= x * y * q) as M. { etransitivity; [apply P|]. apply Z.mul_le_mono_nonneg_l; nia. }
    assert ((a + b) * (x * y) <= a * b * (x + y)) as Grow.
    { assert (0 <= a * x * (b - y)) by (repeat apply Z.mul_nonneg_nonneg; lia).
      assert (0 <= b * y * (a - x)) by (repeat apply Z.mul_nonneg_nonneg; lia). lia. }
    assert ((a + b) * (x * y) * q <= a * b * (x + y) * q) by (apply Z.mul_le_mono_nonneg_r; lia).
    assert (a * b * ((x + y) * q) <= a * b * (scale * scale)).
    { apply Z.mul_le_mono_nonneg_l; [now apply Z.mul_nonneg_nonneg|lia]. }
    assert ((a + b) * moved <= (a + b) * (x * y * q)) by (apply Z.mul_le_mono_nonneg_l; lia). lia.
Qed.

End OneUnit.

(** What goes wrong without a condition: people and pages are numbers, a record is (person, page), ann is 7. *)
Definition row : Type := Z * Z.
Definition ranked (x : row) : Z := fst x * 10 + snd x.
Definition people_by_records (c : coll row) : coll Z :=
  map_records (fun g => Some (Z.of_nat (length (snd g)))) (items (whole_groups fst id (items c))).
Definition who (x : row) : option Z := Some (fst x).

(** A public row for ann, beside three of her own. *)
Example a_public_row_names_ann :
  dist (people_by_records ([(7, 1, 1); (7, 2, 1); (7, 3, 1)] ++ [(7, 0, 1)])) (people_by_records [(7, 0, 1)]) = 2.
Proof. vm_compute. reflexivity. Qed.

(** limit by page: ann, with two pages, pushes two others out. *)
Example a_limit_by_page_lets_ann_push_others_out :
  let people := fun c => distinct 1 (items (map_records who (items (limit snd ranked 1 (items c))))) in
  dist (people ([(7, 1, 1); (7, 2, 1)] ++ [(8, 1, 1); (9, 2, 1)])) (people [(8, 1, 1); (9, 2, 1)]) = 3.
Proof. vm_compute. reflexivity. Qed.

(** A left join whose preserved side another ledger has: who stood there alone changes when ann's row comes. *)
Example what_stands_alone_changes :
  let town := fun c => left_rows fst fst (fun x y : row => (fst x, Some (snd y))) (fun x => (fst x, None)) 1 [(7, 0, 1)] (items c) in
  dist (town [(7, 5, 1)]) (town []) = 2 /\ equal (town []) [(7, None, 1)].
Proof. split; [vm_compute; reflexivity|]. intros y. reflexivity. Qed.
