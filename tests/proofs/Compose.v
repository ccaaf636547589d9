(** Rules of composition: plans of many paths, parts that are disjoint, and parts that are measured at several epochs. *)

From Proofs Require Import Stable RecordByRecord WeightByWeight.

Section Paths.
Context {A : Type} `{Eq A}.

(** core/plan/stability.py, [Survey.paths]: a plan reads sources, by steps of one input and of two. *)
Inductive plan : Type :=
  | Source (i : nat)
  | Step (op : coll A -> coll A) (s : Z) (p : plan)
  | Step2 (op : coll A -> coll A -> coll A) (s t : Z) (p q : plan).

Fixpoint answer (p : plan) (data : nat -> coll A) : coll A :=
  match p with
  | Source i => data i
  | Step op _ p => op (items (answer p data))
  | Step2 op _ _ p q => op (items (answer p data)) (items (answer q data))
  end.

(** The sum over all paths to a source of the product of the stabilities on the path. *)
Fixpoint stability (i : nat) (p : plan) : Z :=
  match p with
  | Source j => if Nat.eqb i j then 1 else 0
  | Step _ s p => s * stability i p
  | Step2 _ s t p q => s * stability i p + t * stability i q
  end.

Fixpoint sound (p : plan) : Prop :=
  match p with
  | Source _ => True
  | Step op s p => 0 <= s /\ Stable op s /\ sound p
  | Step2 op s t p q => 0 <= s /\ 0 <= t /\ Stable2 op s t /\ sound p /\ sound q
  end.

Fixpoint reads (p : plan) : list nat :=
  match p with Source i => [i] | Step _ _ p => reads p | Step2 _ _ _ p q => reads p ++ reads q end.

Theorem paths_add_up p sources data data' : sound p -> NoDup sources -> incl (reads p) sources ->
  dist (answer p data) (answer p data') <= sum (fun i => stability i p * dist (data i) (data' i)) sources.
Proof.
  intros S N. revert S. induction p as [i|op s p IH|op s t p IHp q IHq]; cbn [answer stability sound reads]; intros S I.
  - assert (In i sources) as J by (apply I; now left).
    transitivity (sum (fun j => stability j (Source i) * dist (data j) (data' j)) [i]).
    { cbn [sum stability]. rewrite Nat.eqb_refl. lia. }
    apply sum_incl; [|repeat constructor; auto|intros j [<-|[]]; easy].
    intros j. cbn [stability]. pose proof (dist_nonneg (data j) (data' j)). destruct (Nat.eqb j i); lia.
  - destruct S as (P & St & S). specialize (IH S I). etransitivity; [apply St|].
    rewrite (sum_ext _ (fun i => s * (stability i p * dist (data i) (data' i)))) by (intros; ring). rewrite sum_scale.
    now apply Z.mul_le_mono_nonneg_l.
  - destruct S as (P & P' & St & S & S'). specialize (IHp S ltac:(intros j J; apply I, in_or_app; now left)).
    specialize (IHq S' ltac:(intros j J; apply I, in_or_app; now right)). etransitivity; [apply St|].
    rewrite (sum_ext _ (fun i => s * (stability i p * dist (data i) (data' i)) + t * (stability i q * dist (data i) (data' i))))
      by (intros; ring).
    rewrite sum_plus, !sum_scale.
    apply (Z.mul_le_mono_nonneg_l _ _ s P) in IHp. apply (Z.mul_le_mono_nonneg_l _ _ t P') in IHq. lia.
Qed.

End Paths.

Section Parts.
Context {A P : Type} `{Eq A} `{Eq P}.

(** core/operators/partition.py and window.py, [accepts]: the part in which a record is. *)
Variable place : A -> P.
Definition part (p : P) : coll A -> coll A := filter_records (fun x => same (place x) p).

Lemma weight_part p c x : weight (part p c) x = if same (place x) p then weight c x else 0.
Proof.
  unfold part, filter_records, linear, each. induction c as [|[y w] c IH]; cbn [flat_map fst snd].
  - now destruct (same (place x) p).
  - rewrite weight_app, IH, weight_cons. destruct (same y x) eqn:E.
    + apply same_true in E; subst. destruct (same (place x) p); cbn [map fst snd]; rewrite ?weight_cons, ?same_refl;
        change (weight [] x) with 0; lia.
    + destruct (same (place y) p); cbn [map fst snd]; rewrite ?weight_cons, ?E; change (weight [] x) with 0;
        destruct (same (place x) p); lia.
Qed.

Theorem part_stable p : Stable (part p) 1.
Proof. apply filter_stable. Qed.

(** Each part at its own price, over pairs of collections that differ by the same change or by nothing. *)
Lemma parts_of_a_change price most (parts : list P) (c d : P -> coll A) (e : coll A) :
  0 <= most -> NoDup parts -> (forall p, In p parts -> 0 <= price p <= most) ->
  (forall p, equal (d p) (c p) \/ equal (d p) (e ++ c p)) ->
  sum (fun p => price p * dist (part p (c p)) (part p (d p))) parts <= most * dist e [].
Proof.
  intros Most N Price Change. set (l := records e).
  assert (forall p, dist (part p (c p)) (part p (d p)) <= sum (fun x => if same (place x) p then Z.abs (weight e x) else 0) l) as D.
  { intros p. rewrite (dist_over (part p (c p)) (part p (d p)) l (NoDup_nodup eq_dec _)).
    - apply sum_le. intros x _. rewrite !weight_part. destruct (same _ p); [|lia].
      destruct (Change p) as [E|E]; rewrite (E x), ?weight_app; lia.
    - intros x. rewrite !weight_part. intros X. apply in_records. intros Z.
      destruct (Change p) as [E|E]; rewrite (E x), ?weight_app in X; destruct (same _ p); lia. }
  transitivity (sum (fun p => most * sum (fun x => if same (place x) p then Z.abs (weight e x) else 0) l) parts).
  - apply sum_le. intros p I. specialize (Price p I). specialize (D p).
    pose proof (dist_nonneg (part p (c p)) (part p (d p))).
    apply Z.mul_le_mono_nonneg; lia.
  - rewrite sum_scale. apply Z.mul_le_mono_nonneg_l; [easy|]. rewrite sum_swap.
    assert (dist e [] = sum (fun x => Z.abs (weight e x - weight [] x)) l) as ->.
    { apply dist_over; [apply NoDup_nodup|]. intros x X. now apply in_records. }
    apply sum_le. intros x _. change (weight [] x) with 0. rewrite Z.sub_0_r.
    destruct (in_dec eq_dec (place x) parts) as [I|O]; [now rewrite sum_at|].
    rewrite sum_zero; [lia|]. intros p I. destruct (same (place x) p) eqn:E; [|easy]. apply same_true in E. congruence.
Qed.

(** Parallel composition: all parts of one collection, each at its own price, cost the largest. *)
Theorem parts_cost_the_largest price most (parts : list P) (c d : coll A) :
  0 <= most -> NoDup parts -> (forall p, In p parts -> 0 <= price p <= most) ->
  sum (fun p => price p * dist (part p c) (part p d)) parts <= most * dist c d.
Proof.
  intros Most N Price. set (e := d ++ map (fun q => (fst q, -1 * snd q)) c).
  assert (forall x, weight e x = weight d x - weight c x) as E.
  { intros x. unfold e. rewrite weight_app, weight_signed. lia. }
  etransitivity; [apply (parts_of_a_change price most parts (fun _ => c) (fun _ => d) e); try easy|].
  - intros p. right. intros x. rewrite weight_app, E. lia.
  - apply Z.mul_le_mono_nonneg_l; [easy|]. rewrite dist_sym.
    set (l := nodup eq_dec (map fst (c ++ d) ++ map fst (e ++ []))).
    rewrite (dist_all [] e l), (dist_all c d l); try apply NoDup_nodup.
    + apply sum_le. intros x _. rewrite E. change (weight [] x) with 0. lia.
    + intros x I. apply nodup_In, in_or_app. now left.
    + intros x I. apply nodup_In, in_or_app. right. now rewrite app_nil_r.
Qed.

(** core/operators/window.py: parts that are measured at different epochs. What a unit changes of the step must be the same
    at every epoch from its first on, which is so where all steps below are linear for each record. *)
Theorem parts_at_epochs price most (parts : list P) (at_epoch : P -> nat) (c d : nat -> coll A) (e : coll A) (first : nat) :
  0 <= most -> NoDup parts -> (forall p, In p parts -> 0 <= price p <= most) ->
  (forall t, (t < first)%nat -> equal (d t) (c t)) -> (forall t, (first <= t)%nat -> equal (d t) (e ++ c t)) ->
  sum (fun p => price p * dist (part p (c (at_epoch p))) (part p (d (at_epoch p)))) parts <= most * dist e [].
Proof.
  intros Most N Price Before After.
  apply (parts_of_a_change price most parts (fun p => c (at_epoch p)) (fun p => d (at_epoch p)) e); try easy.
  intros p. destruct (Nat.lt_ge_cases (at_epoch p) first); [left|right]; auto.
Qed.

End Parts.

(** Without that condition prices add up: one unit, in another part at each of two epochs. *)
Theorem epochs_add_up_elsewhere : exists c d : nat -> coll Z,
  (forall t, dist (c t) (d t) <= 1) /\
  sum (fun p => dist (part id p (c (Z.to_nat p))) (part id p (d (Z.to_nat p)))) [0; 1] = 2.
Proof.
  exists (fun _ => []), (fun t => match t with O => [(0, 1)] | _ => [(1, 1)] end). split; [|reflexivity].
  intros [|t]; easy.
Qed.
