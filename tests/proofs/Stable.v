(** Stability, and the one principle by which it is proved: look at one unit more of one record.

    A transformation is a function of dictionaries. It is stable by [s] when its output moves by [s] times as much as
    its input at the most, for all pairs of inputs, signed ones included. Where the output has a finer resolution than
    the input, [s] is the stability times the refinement. *)

From Proofs Require Export Weighted.

Definition Stable {A B} `{Eq A} `{Eq B} (op : coll A -> coll B) (s : Z) : Prop :=
  forall c d, dist (op (items c)) (op (items d)) <= s * dist c d.

Definition Stable2 {A B C} `{Eq A} `{Eq B} `{Eq C} (op : coll A -> coll B -> coll C) (s t : Z) : Prop :=
  forall c c' d d', dist (op (items c) (items d)) (op (items c') (items d')) <= s * dist c c' + t * dist d d'.

(** One unit more of what is there: the absolute weight grows. *)
Definition grows (w s : Z) : Prop := s = 1 /\ 0 <= w \/ s = -1 /\ w <= 0.

Section Steps.
Context {A B : Type} `{Eq A} `{Eq B}.
Variable op : coll A -> coll B.
Variable L : Z.

(** The order of a dictionary does not matter, nor does a record of weight 0. *)
Hypothesis perm : forall c d, dict c -> Permutation c d -> equal (op c) (op d).
Hypothesis zero : forall x c, dict ((x, 0) :: c) -> equal (op ((x, 0) :: c)) (op c).
Hypothesis step : forall x w s c,
  dict ((x, w) :: c) -> grows w s -> dist (op ((x, w + s) :: c)) (op ((x, w) :: c)) <= L.

Let F c := op (items c).

Lemma respects c d : equal c d -> equal (F c) (F d).
Proof. intros E. apply perm; [apply items_dict|now apply items_perm]. Qed.

Let others (x : A) (c : coll A) := filter (fun p => negb (same (fst p) x)) (items c).

Lemma others_dict x w c : dict ((x, w) :: others x c).
Proof.
  constructor; unfold others.
  - intros J. apply in_map_iff in J as ([y v] & E & I). simpl in E; subst. apply filter_In in I as [_ I]. simpl in I.
    now rewrite same_refl in I.
  - change (dict (filter (fun p => negb (same (fst p) x)) (items c))). unfold dict. assert (dict (items c)) as D by apply items_dict. unfold dict in D. induction (items c) as [|[y v] l IH]; simpl in *.
    { constructor. }
    inversion D; subst. destruct (negb (same y x)); [simpl; constructor|]; auto.
    intros J. apply in_map_iff in J as ([z u] & E & I). simpl in E; subst. apply filter_In in I as [I _].
    now apply (in_map fst) in I.
Qed.

Lemma others_weight x w c y : weight ((x, w) :: others x c) y = if same x y then w else weight c y.
Proof.
  rewrite weight_cons. unfold others. rewrite (weight_restrict _ (fun y => negb (same y x))), items_weight.
  cases; simpl; subst; try congruence; lia.
Qed.

Lemma others_nonzero x c : filter (fun p => negb (snd p =? 0)) (others x c) = others x c.
Proof.
  assert (forall q (l : coll A), (forall p, In p l -> q p = true) -> filter q l = l) as K.
  { intros q l I. induction l as [|p l IH]; simpl; [easy|].
    rewrite I by now left. rewrite IH; [easy|]. intros p' J. apply I. now right. }
  apply K. intros [y v] I. unfold others in I. apply filter_In in I as [I _]. apply in_items in I as [_ I]. simpl.
  now apply Bool.negb_true_iff, Z.eqb_neq.
Qed.

Lemma at_record x w c : weight c x = w -> equal (F c) (op ((x, w) :: others x c)).
Proof.
  intros W. pose proof (items_of_dict _ (others_dict x w c)) as P. simpl in P. rewrite others_nonzero in P.
  assert (Permutation (items c) (items ((x, w) :: others x c))) as Q.
  { apply items_perm. intros y. rewrite others_weight. cases; now subst. }
  pose proof (perm_trans Q P) as R. destruct (w =? 0) eqn:Z; simpl in R.
  - apply Z.eqb_eq in Z. intros y. rewrite Z in *. rewrite zero by apply others_dict.
    apply perm; [apply items_dict|easy].
  - apply perm; [apply items_dict|easy].
Qed.

Lemma growing_step c x s : grows (weight c x) s -> dist (F ((x, s) :: c)) (F c) <= L.
Proof.
  intros G. set (w := weight c x) in *.
  rewrite (dist_equal _ (op ((x, w + s) :: others x c)) _ (op ((x, w) :: others x c))).
  - apply step; [apply others_dict|easy].
  - intros y. rewrite (at_record x (w + s)); [|rewrite weight_cons, same_refl; fold w; lia].
    apply perm; [apply others_dict|]. apply perm_skip. unfold others.
    (* the other items are the same *)
    apply NoDup_Permutation; try apply NoDup_filter, dict_nodup, items_dict.
    intros [z v]. rewrite !filter_In, !in_items, weight_cons. simpl. cases; subst; simpl; intuition lia.
  - now apply at_record.
Qed.

Lemma unit_step c x s : s = 1 \/ s = -1 -> dist (F ((x, s) :: c)) (F c) <= L.
Proof.
  intros S. assert (grows (weight c x) s \/ grows (weight ((x, s) :: c) x) (- s)) as [G|G].
  { unfold grows. rewrite weight_cons, same_refl. lia. }
  - now apply growing_step.
  - rewrite dist_sym, (dist_equal _ (F ((x, - s) :: (x, s) :: c)) _ (F ((x, s) :: c))); [now apply growing_step| |easy].
    apply respects. intros y. rewrite !weight_cons. cases; lia.
Qed.

Lemma differ (c d : coll A) : dist c d <> 0 -> exists x, weight c x <> weight d x.
Proof.
  unfold dist. induction (records (c ++ d)) as [|x l IH]; simpl; [easy|]. intros N.
  destruct (Z.eq_dec (weight c x) (weight d x)) as [E|E]; [|now exists x]. apply IH. lia.
Qed.

Theorem by_steps : Stable op L.
Proof.
  intros c d. remember (Z.to_nat (dist c d)) as n eqn:E. revert c d E.
  induction n as [|n IH]; intros c d E; pose proof (dist_nonneg c d) as P.
  - assert (dist c d = 0) as Z by lia. rewrite Z.
    change (op (items c)) with (F c). change (op (items d)) with (F d).
    rewrite dist_refl; [lia|]. now apply respects, dist_zero.
  - destruct (differ c d) as [x N]; [lia|].
    set (s := if weight c x <? weight d x then 1 else -1).
    assert (dist ((x, s) :: c) d = dist c d - 1) as D.
    { set (l := nodup eq_dec (x :: map fst (c ++ d))).
      assert (NoDup l) as NL by apply NoDup_nodup.
      assert (In x l) as I by (apply nodup_In; now left).
      rewrite (dist_all _ d l), (dist_all c d l); try easy.
      - rewrite <- (sum_at x 1 l) at 1 by easy. rewrite <- sum_minus. apply sum_ext. intros y _. rewrite weight_cons.
        unfold s. cases; subst; destruct (Z.ltb_spec (weight c y) (weight d y)); lia.
      - intros y J. apply nodup_In. now right.
      - intros y J. apply nodup_In. exact J. }
    assert (n = Z.to_nat (dist ((x, s) :: c) d)) as M by lia. specialize (IH _ _ M).
    pose proof (triangle (op (items c)) (op (items ((x, s) :: c))) (op (items d))) as T.
    pose proof (unit_step c x s ltac:(unfold s; destruct (_ <? _); auto)) as U. unfold F in U. rewrite dist_sym in U.
    nia.
Qed.

End Steps.

(** Two inputs: one after the other. *)
Lemma both {A B C} `{Eq A} `{Eq B} `{Eq C} (op : coll A -> coll B -> coll C) s t :
  (forall d, dict d -> Stable (fun c => op c d) s) -> (forall c, dict c -> Stable (op c) t) -> Stable2 op s t.
Proof.
  intros S T c c' d d'. specialize (S (items d) (items_dict d) c c'). specialize (T (items c') (items_dict c') d d').
  pose proof (triangle (op (items c) (items d)) (op (items c') (items d)) (op (items c') (items d'))). simpl in S. lia.
Qed.

Lemma dist_flat_map {I B} `{Eq B} (l : list I) (f g : I -> coll B) :
  dist (flat_map f l) (flat_map g l) <= sum (fun i => dist (f i) (g i)) l.
Proof. induction l as [|i l IH]; simpl; [reflexivity|]. etransitivity; [apply dist_app|]. lia. Qed.

(** Transformations that look at each record and its weight alone. *)
Definition each {A B} (g : A -> Z -> coll B) (c : coll A) : coll B := flat_map (fun p => g (fst p) (snd p)) c.

Lemma weight_each {A B} `{Eq B} (g : A -> Z -> coll B) c y : weight (each g c) y = sum (fun p => weight (g (fst p) (snd p)) y) c.
Proof. apply sum_flat_map. Qed.

Theorem each_stable {A B} `{Eq A} `{Eq B} (g : A -> Z -> coll B) L :
  (forall x, equal (g x 0) []) ->
  (forall x w s, grows w s -> dist (g x (w + s)) (g x w) <= L) ->
  Stable (each g) L.
Proof.
  intros Z S. apply by_steps.
  - intros c d _ P y. rewrite !weight_each. now apply sum_perm.
  - intros x c _ y. rewrite !weight_each. simpl. now rewrite (Z x y).
  - intros x w s c _ G. unfold each; simpl. etransitivity; [apply dist_app|].
    rewrite (dist_refl (flat_map _ c)) by easy. specialize (S x w s G). lia.
Qed.

(** Linear transformations: [image x] is what becomes of a record of weight 1. *)
Definition linear {A B} (image : A -> coll B) : coll A -> coll B :=
  each (fun x w => map (fun q => (fst q, snd q * w)) (image x)).

(** The largest weight of an image is the stability. *)
Theorem linear_stable {A B} `{Eq A} `{Eq B} (image : A -> coll B) L :
  (forall x, mass (image x) <= L) -> Stable (linear image) L.
Proof.
  intros M. apply each_stable.
  - intros x y. unfold weight. rewrite sum_map. simpl. apply sum_zero. intros q _. destruct (same (fst q) y); lia.
  - intros x w s G. etransitivity; [apply (dist_positions (image x) fst)|].
    rewrite (sum_ext _ (fun q => Z.abs (snd q))); [apply M|].
    intros q _. replace (snd q * (w + s) - snd q * w) with (snd q * s) by lia. destruct G as [[-> _]|[-> _]]; lia.
Qed.

(** What a stable transformation is followed by. *)
Theorem compose {A B C} `{Eq A} `{Eq B} `{Eq C} (f : coll A -> coll B) (g : coll B -> coll C) s t :
  0 <= t -> Stable f s -> Stable g t -> Stable (fun c => g (items (f c))) (t * s).
Proof. intros P S T c d. etransitivity; [apply T|]. specialize (S c d). nia. Qed.
