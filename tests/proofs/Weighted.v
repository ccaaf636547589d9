(** Weighted collections, how far two of them are apart, and stable transformations.

    A collection is a list of records with integer weights; a record that stands several times has the sum of its
    weights. Weights are counted in units of 1/resolution. [items] are the records of non-zero weight, each once: what
    the reference engine gives to a definition as a dictionary. *)

From Proofs Require Export Sums.

Class Eq (A : Type) := eq_dec : forall x y : A, {x = y} + {x <> y}.
Definition same {A} `{Eq A} (x y : A) : bool := if eq_dec x y then true else false.
#[global] Instance eq_Z : Eq Z := Z.eq_dec.
#[global] Instance eq_pair {A B} `{Eq A} `{Eq B} : Eq (A * B).
Proof. intros [a b] [c d]. destruct (eq_dec a c), (eq_dec b d); (left; congruence) || (right; congruence). Defined.
#[global] Instance eq_list {A} `{Eq A} : Eq (list A) := list_eq_dec eq_dec.
#[global] Instance eq_option {A} `{Eq A} : Eq (option A).
Proof. intros [a|] [b|]; try destruct (eq_dec a b); (left; congruence) || (right; congruence). Defined.

Definition coll (A : Type) := list (A * Z).

Section Collections.
Context {A : Type} `{Eq A}.
Implicit Types (c d e : coll A) (x y : A).

Definition weight c x : Z := sum (fun p => if same (fst p) x then snd p else 0) c.
Definition records c : list A := nodup eq_dec (map fst c).
Definition items c : coll A := filter (fun p => negb (snd p =? 0)) (map (fun x => (x, weight c x)) (records c)).

(** How far two collections are apart: the summed absolute difference of their weights. *)
Definition dist c d : Z := sum (fun x => Z.abs (weight c x - weight d x)) (records (c ++ d)).
Definition mass c : Z := sum (fun p => Z.abs (snd p)) c.

(** The same weights. *)
Definition equal c d : Prop := forall x, weight c x = weight d x.

(** A dictionary: no record stands twice. *)
Definition dict c : Prop := NoDup (map fst c).

Lemma same_refl x : same x x = true.
Proof. unfold same. now destruct (eq_dec x x). Qed.

Lemma same_true x y : same x y = true <-> x = y.
Proof. unfold same. destruct (eq_dec x y); split; congruence. Qed.

Lemma same_false x y : same x y = false <-> x <> y.
Proof. unfold same. destruct (eq_dec x y); split; congruence. Qed.

Lemma weight_app c d x : weight (c ++ d) x = weight c x + weight d x.
Proof. apply sum_app. Qed.

Lemma weight_cons y w c x : weight ((y, w) :: c) x = (if same y x then w else 0) + weight c x.
Proof. easy. Qed.

Lemma weight_perm c d x : Permutation c d -> weight c x = weight d x.
Proof. apply sum_perm. Qed.

Lemma weight_absent c x : ~ In x (map fst c) -> weight c x = 0.
Proof.
  intros N. apply sum_zero. intros [y w] I; simpl. destruct (same y x) eqn:E; [|easy].
  apply same_true in E; subst. contradict N. now apply (in_map fst) in I.
Qed.

Lemma weight_dict c x w : dict c -> In (x, w) c -> weight c x = w.
Proof.
  induction c as [|[y v] c IH]; simpl; [easy|]. intros D I. inversion D; subst. rewrite weight_cons.
  destruct I as [E|I].
  - inversion E; subst. rewrite same_refl, weight_absent by easy. lia.
  - rewrite IH by easy. assert (same y x = false) as ->; [|easy].
    apply same_false. intros ->. now apply (in_map fst) in I.
Qed.

Lemma weight_restrict c (p : A -> bool) x : weight (filter (fun q => p (fst q)) c) x = if p x then weight c x else 0.
Proof.
  unfold weight. rewrite sum_filter. destruct (p x) eqn:E.
  - apply sum_ext. intros [y w] _; simpl. destruct (same y x) eqn:S; [|now destruct (p y)].
    apply same_true in S; subst. now rewrite E.
  - apply sum_zero. intros [y w] _; simpl. destruct (same y x) eqn:S; [|now destruct (p y)].
    apply same_true in S; subst. now rewrite E.
Qed.

Lemma in_records c x : weight c x <> 0 -> In x (records c).
Proof.
  intros N. apply nodup_In. destruct (in_dec eq_dec x (map fst c)) as [I|I]; [easy|].
  contradict N. now apply weight_absent.
Qed.

Lemma sum_at x k (l : list A) : NoDup l -> In x l -> sum (fun y => if same x y then k else 0) l = k.
Proof.
  induction l as [|y l IH]; simpl; [easy|]. intros N I. inversion N; subst. destruct (same x y) eqn:S.
  - apply same_true in S; subst. enough (sum (fun z => if same y z then k else 0) l = 0) by lia.
    apply sum_zero. intros z J. destruct (same y z) eqn:S; [|easy]. apply same_true in S; subst. easy.
  - apply same_false in S. rewrite IH; [easy|easy|]. destruct I; [now subst|easy].
Qed.

(** [dist] does not depend on the list of records, as long as it holds all that differ. *)
Lemma dist_over c d l :
  NoDup l -> (forall x, weight c x <> weight d x -> In x l) -> dist c d = sum (fun x => Z.abs (weight c x - weight d x)) l.
Proof.
  intros N I. apply sum_support; [apply NoDup_nodup|easy|]. intros x Hx. split; intros _.
  - apply I. lia.
  - apply nodup_In. rewrite map_app. apply in_or_app.
    destruct (in_dec eq_dec x (map fst c)) as [J|J]; [now left|].
    destruct (in_dec eq_dec x (map fst d)) as [K|K]; [now right|].
    apply weight_absent in J, K. lia.
Qed.

Lemma dist_all c d l : incl (map fst (c ++ d)) l -> NoDup l -> dist c d = sum (fun x => Z.abs (weight c x - weight d x)) l.
Proof.
  intros I N. apply dist_over; [easy|]. intros x Hx. apply I. rewrite map_app. apply in_or_app.
  destruct (in_dec eq_dec x (map fst c)) as [J|J]; [now left|].
  destruct (in_dec eq_dec x (map fst d)) as [K|K]; [now right|].
  apply weight_absent in J, K. lia.
Qed.

(** Whatever finite set of records is looked at moves by no more than [dist]. *)
Lemma dist_some c d l : NoDup l -> sum (fun x => Z.abs (weight c x - weight d x)) l <= dist c d.
Proof.
  intros N. set (m := nodup eq_dec (l ++ map fst (c ++ d))).
  rewrite (dist_all c d m); [|intros x I; apply nodup_In, in_or_app; now right|apply NoDup_nodup].
  apply sum_incl; [lia|easy|]. intros x I. apply nodup_In, in_or_app. now left.
Qed.

Lemma dist_equal c c' d d' : equal c c' -> equal d d' -> dist c d = dist c' d'.
Proof.
  intros E F. set (l := nodup eq_dec (map fst (c ++ d) ++ map fst (c' ++ d'))).
  rewrite (dist_all c d l), (dist_all c' d' l); try apply NoDup_nodup;
    try (intros x I; apply nodup_In, in_or_app; tauto).
  apply sum_ext. intros x _. now rewrite (E x), (F x).
Qed.

Lemma dist_sym c d : dist c d = dist d c.
Proof.
  rewrite (dist_all c d (records (d ++ c))); [|intros x I; apply nodup_In|apply NoDup_nodup].
  - apply sum_ext. intros. lia.
  - rewrite map_app in *. apply in_or_app. apply in_app_or in I. tauto.
Qed.

Lemma dist_nonneg c d : 0 <= dist c d.
Proof. apply sum_nonneg. lia. Qed.

Lemma dist_refl c d : equal c d -> dist c d = 0.
Proof. intros E. apply sum_zero. intros x _. rewrite (E x). lia. Qed.

Lemma dist_zero c d : dist c d = 0 -> equal c d.
Proof.
  intros E x. assert (sum (fun x => Z.abs (weight c x - weight d x)) [x] <= dist c d) as L.
  { apply dist_some. repeat constructor; auto. }
  simpl in L. lia.
Qed.

Theorem triangle c d e : dist c e <= dist c d + dist d e.
Proof.
  set (l := nodup eq_dec (map fst (c ++ d ++ e))).
  assert (forall u v, incl (map fst (u ++ v)) (map fst (c ++ d ++ e)) ->
          dist u v = sum (fun x => Z.abs (weight u x - weight v x)) l) as D.
  { intros u v I. apply dist_all; [intros x J; now apply nodup_In, I|apply NoDup_nodup]. }
  rewrite !D, <- sum_plus.
  - apply sum_le. intros. lia.
  - intros x. rewrite !map_app, !in_app_iff. tauto.
  - intros x. rewrite !map_app, !in_app_iff. tauto.
  - intros x. rewrite !map_app, !in_app_iff. tauto.
Qed.

Lemma dist_nil c : dist c [] <= mass c.
Proof.
  unfold dist. rewrite app_nil_r. unfold weight at 1.
  transitivity (sum (fun x => sum (fun p => Z.abs (if same (fst p) x then snd p else 0)) c) (records c)).
  { apply sum_le. intros x _. change (weight [] x) with 0. rewrite Z.sub_0_r. apply sum_abs. }
  rewrite sum_swap. apply sum_le. intros [x w] I; simpl.
  assert (In x (records c)) as J by (apply nodup_In; now apply (in_map fst) in I).
  rewrite (sum_ext _ (fun y => if same x y then Z.abs w else 0)) by (intros y _; now destruct (same x y)).
  rewrite sum_at; [reflexivity|apply NoDup_nodup|easy].
Qed.

Lemma dist_app c c' d d' : dist (c ++ d) (c' ++ d') <= dist c c' + dist d d'.
Proof.
  set (l := nodup eq_dec (map fst (c ++ d ++ c' ++ d'))).
  assert (forall u v, incl (map fst (u ++ v)) (map fst (c ++ d ++ c' ++ d')) ->
          dist u v = sum (fun x => Z.abs (weight u x - weight v x)) l) as D.
  { intros u v I. apply dist_all; [intros x J; now apply nodup_In, I|apply NoDup_nodup]. }
  rewrite !D, <- sum_plus.
  - apply sum_le. intros. rewrite !weight_app. lia.
  - intros x. rewrite !map_app, !in_app_iff. tauto.
  - intros x. rewrite !map_app, !in_app_iff. tauto.
  - intros x. rewrite !map_app, !in_app_iff. tauto.
Qed.

Lemma dist_added c d : dist (d ++ c) c <= mass d.
Proof.
  transitivity (dist d [] + dist c c); [apply (dist_app d [] c c)|].
  rewrite (dist_refl c c) by easy. pose proof (dist_nil d). lia.
Qed.

Lemma dist_one x v w : dist [(x, v)] [(x, w)] <= Z.abs (v - w).
Proof.
  rewrite (dist_all _ _ [x]); [|intros y; simpl; tauto|repeat constructor; auto].
  cbn [sum]. rewrite !weight_cons, same_refl. change (weight [] x) with 0. lia.
Qed.

Lemma dist_cons x v w c d : dist ((x, v) :: c) ((x, w) :: d) <= Z.abs (v - w) + dist c d.
Proof. etransitivity; [apply (dist_app [(x, v)] [(x, w)])|]. pose proof (dist_one x v w). lia. Qed.

(** Two lists of the same records, in the same order. *)
Lemma dist_positions {I} (l : list I) (r : I -> A) (f g : I -> Z) :
  dist (map (fun i => (r i, f i)) l) (map (fun i => (r i, g i)) l) <= sum (fun i => Z.abs (f i - g i)) l.
Proof.
  induction l as [|i l IH]; simpl; [reflexivity|]. etransitivity; [apply dist_cons|]. lia.
Qed.

(** Dictionaries. *)

Lemma items_dict c : dict (items c).
Proof.
  unfold dict, items. assert (NoDup (records c)) as N by apply NoDup_nodup.
  induction (records c) as [|x l IH]; simpl; [constructor|]. inversion N; subst.
  destruct (negb (weight c x =? 0)); simpl; [constructor|]; auto.
  rewrite in_map_iff. intros ([y w] & E & I). apply filter_In in I as [I _]. apply in_map_iff in I as (z & F & J).
  inversion F; subst. simpl in *. now subst.
Qed.

Lemma in_items c x w : In (x, w) (items c) <-> weight c x = w /\ w <> 0.
Proof.
  unfold items. rewrite filter_In, in_map_iff, Bool.negb_true_iff, Z.eqb_neq; simpl. split.
  - intros [(y & E & _) N]. inversion E; subst. auto.
  - intros [<- N]. split; [|easy]. exists x. split; [easy|]. now apply in_records.
Qed.

Lemma items_weight c x : weight (items c) x = weight c x.
Proof.
  destruct (Z.eq_dec (weight c x) 0) as [E|N].
  - rewrite E. apply weight_absent. rewrite in_map_iff. intros ([y w] & F & I). simpl in F; subst.
    apply in_items in I as [F N]. congruence.
  - apply weight_dict; [apply items_dict|]. now apply in_items.
Qed.

Lemma dict_nodup c : dict c -> NoDup c.
Proof. apply NoDup_map_inv. Qed.

Lemma items_perm c d : equal c d -> Permutation (items c) (items d).
Proof.
  intros E. apply NoDup_Permutation; try apply dict_nodup, items_dict.
  intros [x w]. rewrite !in_items, (E x). tauto.
Qed.

Lemma items_of_dict c : dict c -> Permutation (items c) (filter (fun p => negb (snd p =? 0)) c).
Proof.
  intros D. apply NoDup_Permutation; [apply dict_nodup, items_dict|now apply NoDup_filter, dict_nodup|].
  intros [x w]. rewrite in_items, filter_In, Bool.negb_true_iff, Z.eqb_neq; simpl. split; intros [I N]; split; auto.
  - subst. apply in_records, nodup_In, in_map_iff in N as ([y v] & E & J); simpl in E; subst.
    now rewrite (weight_dict c x v).
  - now apply weight_dict.
Qed.

Lemma dict_perm c d : Permutation c d -> dict c -> dict d.
Proof. intros P. apply Permutation_NoDup. now apply Permutation_map. Qed.

End Collections.

Ltac cases := repeat match goal with
  | |- context [same ?a ?b] => let E := fresh "E" in destruct (same a b) eqn:E;
      [apply same_true in E|apply same_false in E]
  | H : context [same ?a ?b] |- _ => let E := fresh "E" in destruct (same a b) eqn:E;
      [apply same_true in E|apply same_false in E]
  end.
