(** distinct and shave: functions of each record's weight; union and intersect: of two weights; concat and subtract. *)

From Proofs Require Import Stable.

Section OneRecord.
Context {A : Type} `{Eq A}.

(** core/operators/distinct.py, [Distinct.define]. *)
Definition distinct (most : Z) : coll A -> coll A := each (fun x w => [(x, Z.min (Z.max w 0) most)]).

Theorem distinct_stable most : 0 <= most -> Stable (distinct most) 1.
Proof.
  intros P. apply each_stable.
  - intros x y. rewrite weight_cons. change (weight [] y) with 0. cases; lia.
  - intros x w s G. etransitivity; [apply dist_one|]. unfold grows in G. lia.
Qed.

(** core/operators/slices.py, [sliced]: [cut] takes slices off what is left; a thickness is at least one unit, so there are
    no more slices than units. The last thickness repeats. *)
Definition thick (thickness : list Z) (index : nat) : Z := nth (Nat.min index (length thickness - 1)) thickness 1.

Fixpoint cut (t : nat -> Z) (fuel : nat) (rest : Z) (index : nat) : list (Z * Z) :=
  match fuel with
  | O => []
  | S fuel => if 0 <? rest then
      let one := Z.min rest (t index) in (Z.of_nat index + 1, one) :: cut t fuel (rest - one) (S index)
    else []
  end.

Definition sliced (thickness : list Z) (x : A) (w : Z) : coll (A * Z) :=
  map (fun q => ((x, fst q), if 0 <? w then snd q else - snd q)) (cut (thick thickness) (Z.to_nat (Z.abs w)) (Z.abs w) 0).

Definition shave (thickness : A -> option (list Z)) : coll A -> coll (A * Z) :=
  each (fun x w => match thickness x with Some given => sliced given x w | None => [] end).

(** One unit more makes the last slice thicker, or a new slice. *)
Lemma cut_grows t (T : forall i, 1 <= t i) x sign : sign = 1 \/ sign = -1 ->
  forall fuel' fuel rest index, 0 <= rest <= Z.of_nat fuel -> rest + 1 <= Z.of_nat fuel' ->
  dist (map (fun q => ((x, fst q), sign * snd q)) (cut t fuel' (rest + 1) index))
       (map (fun q => ((x, fst q), sign * snd q)) (cut t fuel rest index)) <= 1.
Proof.
  intros S. induction fuel' as [|fuel' IH]; intros fuel rest index R R'; [lia|].
  assert (forall fuel i, cut t fuel 0 i = []) as Nil by (intros [|n] i; easy).
  specialize (T index) as Ti. destruct (Z.eq_dec rest 0) as [->|N].
  - rewrite Nil. etransitivity; [apply dist_nil|]. unfold mass. cbn [cut Z.ltb Z.add Z.compare].
    rewrite Z.min_l, Z.sub_diag, Nil by easy. simpl. lia.
  - destruct fuel as [|fuel]; [lia|]. cbn [cut].
    destruct (Z.ltb_spec 0 (rest + 1)) as [_|]; [|lia]. destruct (Z.ltb_spec 0 rest) as [_|]; [|lia].
    destruct (Z.le_gt_cases (rest + 1) (t index)).
    + rewrite !Z.min_l, !Z.sub_diag, !Nil by lia. simpl.
      etransitivity; [apply dist_one|]. lia.
    + rewrite !Z.min_r by lia. simpl map.
      replace (rest + 1 - t index) with (rest - t index + 1) by lia.
      etransitivity; [apply dist_cons|].
      specialize (IH fuel (rest - t index) (Datatypes.S index)). lia.
Qed.

Theorem shave_stable thickness :
  (forall x given, thickness x = Some given -> forall t, In t given -> 1 <= t) -> Stable (shave thickness) 1.
Proof.
  intros T. apply each_stable.
  - intros x. now destruct (thickness x).
  - intros x w s G. destruct (thickness x) as [given|] eqn:E; [|now rewrite dist_refl].
    assert (forall i, 1 <= thick given i) as Ti.
    { intros i. unfold thick. destruct (nth_in_or_default (Nat.min i (length given - 1)) given 1) as [I| ->]; [|lia].
      eapply T; eauto. }
    assert (forall v, Z.sgn v = s \/ v = 0 ->
      sliced given x v = map (fun q => ((x, fst q), s * snd q)) (cut (thick given) (Z.to_nat (Z.abs v)) (Z.abs v) 0)) as Sl.
    { intros v V. unfold sliced. destruct (Z.eq_dec v 0) as [->|N]; [easy|]. apply map_ext. intros q.
      destruct (Z.ltb_spec 0 v); f_equal; destruct G as [[-> _]|[-> _]]; lia. }
    rewrite !Sl by (unfold grows in G; lia).
    replace (Z.abs (w + s)) with (Z.abs w + 1) by (unfold grows in G; lia).
    apply cut_grows; [easy|unfold grows in G; lia|lia|lia].
Qed.

(** core/operators/concat.py, [Sum.define]: concat with sign 1, subtract with sign -1. *)
Definition signed_sum (sign : Z) (c d : coll A) : coll A := c ++ map (fun p => (fst p, sign * snd p)) d.

Lemma weight_signed sign (d : coll A) x : weight (map (fun p => (fst p, sign * snd p)) d) x = sign * weight d x.
Proof. unfold weight. rewrite sum_map, <- sum_scale. apply sum_ext. intros [y w] _; simpl. destruct (same y x); lia. Qed.

Lemma dist_pointwise (f : Z -> Z -> Z) (c c' d d' e e' : coll A) :
  (forall x, weight e x = f (weight c x) (weight d x)) -> (forall x, weight e' x = f (weight c' x) (weight d' x)) ->
  (forall a b a' b', Z.abs (f a b - f a' b') <= Z.abs (a - a') + Z.abs (b - b')) ->
  dist e e' <= dist c c' + dist d d'.
Proof.
  intros E E' F. unfold dist at 1. transitivity
    (sum (fun x => Z.abs (weight c x - weight c' x) + Z.abs (weight d x - weight d' x)) (records (e ++ e'))).
  - apply sum_le. intros x _. rewrite E, E'. apply F.
  - rewrite sum_plus. pose proof (dist_some c c' (records (e ++ e')) (NoDup_nodup _ _)).
    pose proof (dist_some d d' (records (e ++ e')) (NoDup_nodup _ _)). lia.
Qed.

Theorem concat_stable : Stable2 (signed_sum 1) 1 1.
Proof.
  intros c c' d d'. rewrite !Z.mul_1_l.
  apply (dist_pointwise Z.add); intros; try lia; unfold signed_sum; rewrite weight_app, weight_signed, !items_weight; lia.
Qed.

Theorem subtract_stable : Stable2 (signed_sum (-1)) 1 1.
Proof.
  intros c c' d d'. rewrite !Z.mul_1_l.
  apply (dist_pointwise Z.sub); intros; try lia; unfold signed_sum; rewrite weight_app, weight_signed, !items_weight; lia.
Qed.

(** core/operators/union.py, [Extreme.define]. *)
Definition extreme (choose : Z -> Z -> Z) (c d : coll A) : coll A :=
  map (fun x => (x, choose (weight c x) (weight d x))) (records (c ++ d)).
Definition union := extreme Z.max.
Definition intersect := extreme Z.min.

Lemma weight_extreme choose c d x : choose 0 0 = 0 -> weight (extreme choose c d) x = choose (weight c x) (weight d x).
Proof.
  intros Z0. unfold extreme. destruct (in_dec eq_dec x (records (c ++ d))) as [I|N].
  - apply weight_dict; [|apply in_map_iff; now exists x]. unfold dict. rewrite map_map; simpl. rewrite map_id. apply NoDup_nodup.
  - rewrite weight_absent by (rewrite map_map; simpl; now rewrite map_id).
    assert (~ In x (map fst c) /\ ~ In x (map fst d)) as [C D].
    { split; intros I; apply N, nodup_In; rewrite map_app; apply in_or_app; auto. }
    now rewrite !weight_absent.
Qed.

(** Both of one pair move by no more together than the inputs do. *)
Theorem union_intersect_pair (c c' d d' : coll A) :
  dist (union (items c) (items d)) (union (items c') (items d')) +
  dist (intersect (items c) (items d)) (intersect (items c') (items d')) <= dist c c' + dist d d'.
Proof.
  unfold union, intersect.
  set (l := nodup eq_dec (map fst (c ++ c' ++ d ++ d'))).
  assert (NoDup l) as N by apply NoDup_nodup.
  assert (forall x, ~ In x l -> weight c x = 0 /\ weight c' x = 0 /\ weight d x = 0 /\ weight d' x = 0) as Out.
  { intros x I. unfold l in I. rewrite nodup_In, !map_app, !in_app_iff in I. rewrite !weight_absent by tauto. easy. }
  assert (forall u v : coll A, (forall x, ~ In x l -> weight u x = weight v x) ->
          dist u v = sum (fun x => Z.abs (weight u x - weight v x)) l) as D.
  { intros u v E. apply dist_over; [easy|]. intros x X. destruct (in_dec eq_dec x l) as [I|I]; [easy|]. now apply E in I. }
  rewrite !D, <- !sum_plus; [|intros x I; apply Out in I; rewrite ?weight_extreme, ?items_weight by easy; lia..].
  apply sum_le. intros x _. rewrite !weight_extreme, !items_weight by easy. lia.
Qed.

Theorem union_stable : Stable2 union 1 1.
Proof.
  intros c c' d d'. pose proof (union_intersect_pair c c' d d').
  pose proof (dist_nonneg (intersect (items c) (items d)) (intersect (items c') (items d'))). lia.
Qed.

Theorem intersect_stable : Stable2 intersect 1 1.
Proof.
  intros c c' d d'. pose proof (union_intersect_pair c c' d d').
  pose proof (dist_nonneg (union (items c) (items d)) (union (items c') (items d'))). lia.
Qed.

End OneRecord.
