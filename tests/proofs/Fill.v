(** limit, semijoin and antijoin: the records of a key in the order of a keyed hash, cut at a bound. *)

From Proofs Require Import Order.

Section Fill.
Context {A B K : Type} `{Eq A} `{Eq B} `{Eq K}.
Variable key : A -> K.
Variable key' : B -> K.

(** The keyed hash of a record. That no two records share one is part of the computational promise. *)
Variable rank : A -> Z.
Hypothesis rank_one : forall x y, rank x = rank y -> x = y.

(** core/operators/semijoin.py, [Fill.define]: [sums] is the weight so far of each key; [choose] is min or, above, max. *)
Fixpoint fill (choose : Z -> Z -> Z) (bound : K -> Z) (sums : K -> Z) (c : coll A) : coll A :=
  match c with
  | [] => []
  | (x, w) :: rest =>
      let k := key x in
      let before := sums k in
      let now := before + Z.max w 0 in
      (x, choose now (bound k) - choose before (bound k)) ::
      fill choose bound (fun k' => if same k k' then now else sums k') rest
  end.

Definition filled choose (bound : K -> Z) (c : coll A) : coll A :=
  fill choose bound (fun _ => 0) (sort (fun p => rank (fst p)) c).

Definition limit (most : Z) : coll A -> coll A := filled Z.min (fun _ => most).

Definition key_bound (d : coll B) (k : K) : Z :=
  Z.max (sum (fun q => if same (key' (fst q)) k then snd q else 0) d) 0.
Definition semijoin (c : coll A) (d : coll B) : coll A := filled Z.min (key_bound d) c.
Definition antijoin (c : coll A) (d : coll B) : coll A := filled Z.max (key_bound d) c.

Variable choose : Z -> Z -> Z.
Hypothesis chosen : choose = Z.min \/ choose = Z.max.

Lemma fill_ext b b' s s' (c : coll A) :
  (forall k, b k = b' k) -> (forall k, s k = s' k) -> fill choose b s c = fill choose b' s' c.
Proof.
  intros B'. revert s s'. induction c as [|[x w] c IH]; intros s s' S; simpl; [easy|].
  rewrite (B' (key x)), (S (key x)). f_equal. apply IH. intros k. now rewrite S.
Qed.

(** One unit more in the sums or in the bound of one key: later records move one way, by one unit in all. *)
Lemma fill_moves k b b' (c : coll A) : (forall k', k' <> k -> b k' = b' k') ->
  forall s s', (forall k', k' <> k -> s k' = s' k') -> Z.abs (s k - s' k) + Z.abs (b k - b' k) <= 1 ->
  let h t := choose (s k + t) (b k) - choose (s' k + t) (b' k) in
  let total := sum (fun p => if same (key (fst p)) k then Z.max (snd p) 0 else 0) c in
  dist (fill choose b s c) (fill choose b' s' c) <= Z.abs (h total - h 0).
Proof.
  intros Eb. induction c as [|[x w] c IH]; intros s s' Es Near; cbn [fill sum fst snd].
  - rewrite dist_refl by easy. lia.
  - assert (0 <= sum (fun p : A * Z => if same (key (fst p)) k then Z.max (snd p) 0 else 0) c) as P.
    { apply sum_nonneg. intros p _. destruct (same _ _); lia. }
    set (total := sum _ c) in *. etransitivity; [apply dist_cons|].
    destruct (same (key x) k) eqn:E.
    + apply same_true in E. rewrite E.
      specialize (IH (fun k' => if same k k' then s k + Z.max w 0 else s k')
                     (fun k' => if same k k' then s' k + Z.max w 0 else s' k')). cbv zeta beta in IH.
      rewrite same_refl in IH. specialize (IH ltac:(intros k' N; cases; [now subst|now apply Es]) ltac:(lia)).
      assert (0 <= Z.max w 0) as W by lia. rewrite !Z.add_assoc, !Z.add_0_r in *.
      set (moved := dist (fill _ _ _ c) _) in *. clearbody moved. set (m := Z.max w 0) in *. clearbody m total.
      generalize dependent (s k). generalize dependent (s' k). generalize dependent (b k). generalize dependent (b' k).
      clear - chosen W P. intros v v' t t' IH Near. 
      assert (t' = t /\ (v' = v \/ v' = v + 1 \/ v' = v - 1) \/ v' = v /\ (t' = t + 1 \/ t' = t - 1)) as C by lia.
      clear Near. destruct chosen as [-> | ->], C as [[-> [-> | [-> | ->]]]|[-> [-> | ->]]]; lia.
    + apply same_false in E. rewrite (Eb (key x)), (Es (key x)), Z.sub_diag by easy.
      specialize (IH (fun k' => if same (key x) k' then s' (key x) + Z.max w 0 else s k')
                     (fun k' => if same (key x) k' then s' (key x) + Z.max w 0 else s' k')). cbv zeta beta in IH.
      replace (same (key x) k) with false in IH by (symmetry; now apply same_false).
      specialize (IH ltac:(intros k' N; cases; [easy|now apply Es]) ltac:(lia)). simpl Z.abs. lia.
Qed.

Let ranked := fun p : A * Z => rank (fst p).

Lemma fill_zero b x (c : coll A) s : equal (fill choose b s ((x, 0) :: c)) (fill choose b s c).
Proof.
  intros z. cbn [fill]. rewrite weight_cons. change (Z.max 0 0) with 0. rewrite Z.add_0_r, Z.sub_diag.
  rewrite (fill_ext b b _ s c); [now destruct (same x z)|easy|intros k; cases; congruence].
Qed.

Lemma insert_zero b x (c : coll A) s : equal (fill choose b s (insert ranked (x, 0) c)) (fill choose b s c).
Proof.
  revert s. induction c as [|[y w] c IH]; intros s; [apply fill_zero|].
  cbn [insert]. destruct (_ <=? _); [apply fill_zero|]. intros z. cbn [fill]. now rewrite !weight_cons, IH.
Qed.

Lemma insert_one b x w step (c : coll A) s : grows w step ->
  dist (fill choose b s (insert ranked (x, w + step) c)) (fill choose b s (insert ranked (x, w) c)) <= 2.
Proof.
  intros G.
  assert (forall s c, dist (fill choose b s ((x, w + step) :: c)) (fill choose b s ((x, w) :: c)) <= 2) as Here.
  { clear s c. intros s c. cbn [fill]. etransitivity; [apply dist_cons|].
    pose proof (fill_moves (key x) b b c ltac:(easy) (fun k' => if same (key x) k' then s (key x) + Z.max (w + step) 0 else s k')
      (fun k' => if same (key x) k' then s (key x) + Z.max w 0 else s k')) as M.
    cbv zeta beta in M. rewrite same_refl in M. unfold grows in G.
    specialize (M ltac:(intros k' N; cases; [now subst|easy]) ltac:(lia)). destruct chosen as [-> | ->]; lia. }
  revert s. induction c as [|[y v] c IH]; intros s; cbn [insert]; [apply Here|].
  change (ranked (x, w + step)) with (ranked (x, w)). destruct (_ <=? _); [apply Here|].
  cbn [fill]. etransitivity; [apply dist_cons|]. rewrite Z.sub_diag. apply IH.
Qed.

Theorem filled_stable b : Stable (filled choose b) 2.
Proof.
  apply by_steps; unfold filled.
  - intros c d D P. erewrite sort_unique; [intros y; reflexivity| |easy]. now apply dict_ranked.
  - intros x c D. apply insert_zero.
  - intros x w s c D G. now apply insert_one.
Qed.

Theorem bounds_stable c : Stable (fun d => filled choose (key_bound d) c) 1.
Proof.
  apply by_steps; unfold filled.
  - intros d d' _ P y. erewrite fill_ext; [reflexivity| |easy]. intros k. unfold key_bound. f_equal. now apply sum_perm.
  - intros x d _ y. erewrite fill_ext; [reflexivity| |easy]. intros k. unfold key_bound. simpl. now destruct (same (key' x) k).
  - intros x w s d _ G.
    pose proof (fill_moves (key' x) (key_bound ((x, w + s) :: d)) (key_bound ((x, w) :: d))
      (sort (fun p => rank (fst p)) c)) as M.
    assert (forall k, k <> key' x -> key_bound ((x, w + s) :: d) k = key_bound ((x, w) :: d) k) as Other.
    { intros k N. unfold key_bound. simpl. destruct (same (key' x) k) eqn:E; [|easy]. apply same_true in E. now subst. }
    specialize (M Other (fun _ => 0) (fun _ => 0) ltac:(easy)). cbv zeta beta in M.
    assert (Z.abs (key_bound ((x, w + s) :: d) (key' x) - key_bound ((x, w) :: d) (key' x)) <= 1) as Near.
    { unfold key_bound. simpl. rewrite same_refl. unfold grows in G. lia. }
    specialize (M ltac:(lia)). destruct chosen as [-> | ->]; lia.
Qed.

End Fill.

Theorem limit_stable {A K} `{Eq A} `{Eq K} (key : A -> K) rank most :
  (forall x y, rank x = rank y -> x = y) -> Stable (limit key rank most) 2.
Proof. intros R. apply filled_stable; auto. Qed.

Theorem semijoin_stable {A B K} `{Eq A} `{Eq B} `{Eq K} (key : A -> K) (key' : B -> K) rank :
  (forall x y, rank x = rank y -> x = y) -> Stable2 (semijoin key key' rank) 2 1.
Proof. intros R. apply both; intros c _; [apply filled_stable|apply bounds_stable]; auto. Qed.

Theorem antijoin_stable {A B K} `{Eq A} `{Eq B} `{Eq K} (key : A -> K) (key' : B -> K) rank :
  (forall x y, rank x = rank y -> x = y) -> Stable2 (antijoin key key' rank) 2 1.
Proof. intros R. apply both; intros c _; [apply filled_stable|apply bounds_stable]; auto. Qed.
