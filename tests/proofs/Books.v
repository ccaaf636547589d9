(** How a ledger adds up (core/ledger/sums/cost.py, [Total]): of the parts of a group only the largest counts. An amount is an epsilon
    or a divergence, in units of one grid: both are linear in what a unit moves. *)

From Proofs Require Import Weighted.

Section Books.
Context {N : Type} `{Eq N}.

(** The parts on the way to a measurement, outermost first: each the name of its group and its own. *)
Notation path := (list (N * N)).

(** What is held: the amount of each part, and the largest of each group. *)
Definition book : Type := (path -> Z) * (path * N -> Z).
Definition empty : book := (fun _ => 0, fun _ => 0).
Definition put {T} `{Eq T} (t : T) (v : Z) (held : T -> Z) : T -> Z := fun t' => if same t t' then v else held t'.

(** [Total.add]: the innermost part first; only the growth of the largest goes on to what holds the group. *)
Fixpoint add (above under : path) (growth : Z) (b : book) : book * Z :=
  match under with
  | [] => (b, growth)
  | (group, name) :: rest =>
      let part := above ++ [(group, name)] in
      let (b, growth) := add part rest growth b in
      let amount := fst b part + growth in
      let largest := snd b (above, group) in
      ((put part amount (fst b), put (above, group) (Z.max amount largest) (snd b)), Z.max (amount - largest) 0)
  end.

Fixpoint composed (costs : list (path * Z)) : book * Z :=
  match costs with
  | [] => (empty, 0)
  | (under, growth) :: before =>
      let (b, amount) := composed before in let (b, growth) := add [] under growth b in (b, amount + growth)
  end.

(** All names that occur. *)
Variable names : list N.
Hypothesis names_once : NoDup names.

Definition groups (b : book) (v : path) : Z := sum (fun g => snd b (v, g)) names.
Definition at_part (u v : path) (amount : Z) : Z := if same u v then amount else 0.
Definition ruled (b : book) : Prop :=
  (forall v g p, fst b (v ++ [(g, p)]) <= snd b (v, g)) /\ (forall v, 0 <= snd b v) /\ fst b [] = 0.

Lemma put_same {T} `{Eq T} (t : T) v held : put t v held t = v.
Proof. unfold put. now rewrite same_refl. Qed.

Lemma groups_put parts largest u g more v : In g names ->
  groups (parts, put (u, g) (largest (u, g) + more) largest) v = groups (parts, largest) v + at_part u v more.
Proof.
  intros I. unfold groups, at_part, put. cbn [snd]. destruct (same u v) eqn:E.
  - apply same_true in E; subst v. transitivity (sum (fun g' => largest (u, g') + (if same g g' then more else 0)) names);
      [|now rewrite sum_plus, sum_at]. apply sum_ext. intros g' _.
    destruct (same g g') eqn:F.
    + apply same_true in F; subst g'. now rewrite same_refl.
    + destruct (same (u, g) (u, g')) eqn:G; [|lia]. apply same_true in G. apply same_false in F. congruence.
  - rewrite Z.add_0_r. apply sum_ext. intros g' _. destruct (same (u, g) (v, g')) eqn:G; [|easy].
    apply same_true in G. apply same_false in E. congruence.
Qed.

(** What a part holds beside its groups grows where the measurement is, by its amount, and nowhere else. *)
Lemma add_balance under : forall above growth b v, incl (map fst under) names ->
  let (b', growth') := add above under growth b in
  fst b' v - groups b' v + at_part above v growth' = fst b v - groups b v + at_part (above ++ under) v growth.
Proof.
  induction under as [|[g p] rest IH]; intros above growth b v I; cbn [add]; [now rewrite app_nil_r|].
  set (part := above ++ [(g, p)]). specialize (IH part growth b v ltac:(intros x J; apply I; now right)).
  destruct (add part rest growth b) as [[parts largest] growth1]. cbn [fst snd] in *.
  replace (above ++ (g, p) :: rest) with (part ++ rest) by (unfold part; now rewrite <- app_assoc). rewrite <- IH.
  set (amount := parts part + growth1). replace (Z.max amount (largest (above, g)))
    with (largest (above, g) + Z.max (amount - largest (above, g)) 0) by lia.
  rewrite groups_put by (apply I; now left). unfold groups, put, at_part. cbn [fst snd].
  destruct (same part v) eqn:E; [apply same_true in E; subst v; unfold amount|]; rewrite ?same_refl, ?E; destruct (same above _); lia.
Qed.

Lemma add_ruled under : forall above growth b, ruled b -> ruled (fst (add above under growth b)) /\ (0 <= growth -> 0 <= snd (add above under growth b)).
Proof.
  induction under as [|[g p] rest IH]; intros above growth b R; cbn [add]; [easy|].
  set (part := above ++ [(g, p)]). specialize (IH part growth b R). destruct (add part rest growth b) as [[parts largest] growth1].
  cbn [fst snd] in *. destruct IH as [(D & P & Z) _]. cbn [fst snd] in *. split; [|lia]. unfold ruled. cbn [fst snd]. unfold put. repeat split.
  - intros v g' p'. specialize (D v g' p'). destruct (same part (v ++ [(g', p')])) eqn:E.
    + apply same_true in E. apply app_inj_tail in E as [-> E]. injection E as <- <-. rewrite same_refl. lia.
    + destruct (same (above, g) (v, g')) eqn:F; [|easy]. apply same_true in F. injection F as <- <-. lia.
  - intros v. destruct (same (above, g) v) eqn:F; [|apply P]. apply same_true in F; subst. specialize (P (above, g)). lia.
  - destruct (same part []) eqn:E; [|easy]. apply same_true in E. unfold part in E. now destruct above.
Qed.

(** What was charged at a part itself, and what a unit loses there and further in if it moves each part by so much. *)
Definition own (costs : list (path * Z)) (v : path) : Z := sum (fun c => at_part (fst c) v (snd c)) costs.
Fixpoint starts (v u : path) : bool :=
  match v, u with [], _ => true | x :: v, y :: u => (same x y && starts v u)%bool | _ :: _, [] => false end.
Definition loss (moves : path -> Z) (costs : list (path * Z)) (v : path) : Z :=
  sum (fun c => if starts v (fst c) then snd c * moves (fst c) else 0) costs.
Definition named (c : path * Z) : Prop := incl (map fst (fst c)) names /\ incl (map snd (fst c)) names /\ 0 <= snd c.

Lemma composed_balance costs : Forall named costs ->
  let (b, amount) := composed costs in
  ruled b /\ 0 <= amount /\ forall v, fst b v - groups b v + at_part [] v amount = own costs v.
Proof.
  induction 1 as [|[under growth] before (I & _ & P) F IH]; cbn [composed].
  - split; [easy|]. split; [easy|]. intros v. unfold groups, at_part, own. cbn [fst snd empty sum]. rewrite sum_zero by easy. now destruct (same [] v).
  - destruct (composed before) as [b amount]. destruct IH as (R & A & B). cbn [fst snd] in *.
    pose proof (add_ruled under [] growth b R) as [R' P']. pose proof (fun v => add_balance under [] growth b v I) as Bal.
    destruct (add [] under growth b) as [b' growth']. cbn [fst snd] in *. split; [easy|]. split; [lia|].
    intros v. specialize (Bal v). specialize (B v). unfold own. cbn [sum fst snd]. fold (own before v). cbn [app] in Bal.
    unfold at_part in *. destruct (same [] v); lia.
Qed.

Lemma starts_here_or_further v u : incl (map fst u) names -> incl (map snd u) names -> forall k,
  (if starts v u then k else 0) = at_part u v k + sum (fun g => sum (fun p => if starts (v ++ [(g, p)]) u then k else 0) names) names.
Proof.
  intros I J k. revert u I J. induction v as [|x v IH]; intros [|y u] I J; cbn [starts app].
  - rewrite sum_zero; [unfold at_part; rewrite same_refl; lia|]. intros g _. now apply sum_zero.
  - destruct y as [g p]. unfold at_part. destruct (same ((g, p) :: u) []) eqn:E; [apply same_true in E; easy|].
    rewrite (sum_ext _ (fun g' => if same g g' then k else 0)).
    + rewrite sum_at; [easy|easy|]. apply I. now left.
    + intros g' _. destruct (same g g') eqn:F.
      * apply same_true in F; subst g'. rewrite (sum_ext _ (fun p' => if same p p' then k else 0)).
        { apply sum_at; [easy|]. apply J. now left. }
        intros p' _. destruct (same p p') eqn:G; [apply same_true in G; subst; now rewrite same_refl|].
        destruct (same (g, p') (g, p)) eqn:G'; [|easy]. apply same_true in G'. apply same_false in G. congruence.
      * apply sum_zero. intros p' _. destruct (same (g', p') (g, p)) eqn:G; [|easy].
        apply same_true in G. apply same_false in F. congruence.
  - rewrite sum_zero; [unfold at_part; destruct (same [] (x :: v)) eqn:E; [now apply same_true in E|lia]|]. intros g _. now apply sum_zero.
  - destruct (same x y) eqn:E; cbn [andb].
    + apply same_true in E; subst y. rewrite (IH u (fun z Q => I z (or_intror Q)) (fun z Q => J z (or_intror Q))). f_equal.
      unfold at_part. destruct (same u v) eqn:F; [apply same_true in F; subst; now rewrite same_refl|].
      destruct (same (x :: u) (x :: v)) eqn:G; [|easy]. apply same_true in G. apply same_false in F. congruence.
    + rewrite sum_zero; [|intros g _; now apply sum_zero]. unfold at_part. destruct (same (y :: u) (x :: v)) eqn:G; [|easy].
      apply same_true in G. apply same_false in E. congruence.
Qed.

(** A unit moves a collection by so much: its parts by no more together, at every group of parts. *)
Variable moves : path -> Z.
Hypothesis moves_some : forall v, 0 <= moves v.
Hypothesis moves_divided : forall v g, sum (fun p => moves (v ++ [(g, p)])) names <= moves v.

Lemma loss_of_parts costs v : Forall named costs ->
  loss moves costs v = own costs v * moves v + sum (fun g => sum (fun p => loss moves costs (v ++ [(g, p)])) names) names.
Proof.
  induction 1 as [|[u growth] costs (I & J & _) F IH]; unfold loss, own in *; cbn [sum fst snd] in *.
  - rewrite sum_zero; [lia|]. intros g _. now apply sum_zero.
  - set (f := fun g p => if starts (v ++ [(g, p)]) u then growth * moves u else 0).
    set (h := fun g p => sum (fun c : path * Z => if starts (v ++ [(g, p)]) (fst c) then snd c * moves (fst c) else 0) costs).
    rewrite IH, (starts_here_or_further v u I J).
    assert (sum (fun g => sum (fun p => f g p + h g p) names) names
      = sum (fun g => sum (f g) names) names + sum (fun g => sum (h g) names) names) as S.
    { rewrite <- sum_plus. apply sum_ext. intros g _. apply sum_plus. }
    unfold f, h in S. rewrite S.
    unfold at_part. destruct (same u v) eqn:E; [apply same_true in E; subst|]; lia.
Qed.

Lemma loss_far costs v : (forall c, In c costs -> (length (fst c) < length v)%nat) -> loss moves costs v = 0.
Proof.
  intros L. apply sum_zero. intros c I. specialize (L c I).
  assert (forall v u, (length u < length v)%nat -> starts v u = false) as S.
  { clear. induction v as [|x v IH]; intros [|y u] L; cbn [starts length] in *; try lia.
    rewrite IH by lia. now destruct (same x y). }
  now rewrite S.
Qed.

(** The amount of a ledger is what any unit loses by all of its charges, at the most. *)
Theorem a_ledger_covers_every_unit costs : Forall named costs ->
  sum (fun c => snd c * moves (fst c)) costs <= snd (composed costs) * moves [].
Proof.
  intros F. pose proof (composed_balance costs F) as T. destruct (composed costs) as [b amount].
  destruct T as ((D & P & Zero) & A & B). cbn [snd].
  assert (forall v, 0 <= own costs v) as Own.
  { intros v. apply sum_nonneg. intros c I. rewrite Forall_forall in F. destruct (F c I) as (_ & _ & N0). unfold at_part. destruct (same _ _); lia. }
  set (value := fun v => fst b v + at_part [] v amount).
  assert (forall v, value v = own costs v + groups b v) as V by (intros v; specialize (B v); unfold value; lia).
  assert (forall n v, (forall c, In c costs -> (length (fst c) < length v + n)%nat) -> loss moves costs v <= value v * moves v) as All.
  { induction n as [|n IH]; intros v L.
    - rewrite loss_far by (intros c I; specialize (L c I); lia). apply Z.mul_nonneg_nonneg; [|easy]. rewrite V.
      specialize (Own v). assert (0 <= groups b v) by (apply sum_nonneg; intros; apply P). lia.
    - rewrite loss_of_parts, V, Z.mul_add_distr_r by easy. apply Z.add_le_mono_l. unfold groups.
      rewrite Z.mul_comm, <- sum_scale. apply sum_le. intros g _.
      transitivity (sum (fun p => snd b (v, g) * moves (v ++ [(g, p)])) names).
      + apply sum_le. intros p _. etransitivity.
        { apply IH. intros c I. specialize (L c I). rewrite app_length. cbn [length]. lia. }
        apply Z.mul_le_mono_nonneg_r; [easy|]. unfold value, at_part. specialize (D v g p).
        destruct (same [] (v ++ [(g, p)])) eqn:E; [|lia]. apply same_true in E. now destruct v.
      + rewrite sum_scale. specialize (P (v, g)). specialize (moves_divided v g).
        rewrite (Z.mul_comm (moves v)). now apply Z.mul_le_mono_nonneg_l. }
  specialize (All (S (fold_right Nat.max 0%nat (map (fun c => length (fst c)) costs))) []).
  assert (loss moves costs [] = sum (fun c => snd c * moves (fst c)) costs) as <- by (apply sum_ext; intros [u k] _; easy).
  replace (value []) with amount in All; [apply All|unfold value, at_part; rewrite same_refl; lia].
  intros c I. cbn [length Nat.add]. apply Nat.lt_succ_r. clear - I. induction costs as [|d l IH]; [easy|].
  cbn [map fold_right]. destruct I as [->|I]; [lia|]. specialize (IH I). lia.
Qed.

End Books.

(** [so_many_largest]: of the parts of which a unit moves each by one part of [times] of what it moves them together by, so
    many count. The losses of parts are [height], and [share] is how much of it the unit loses there, of [whole]; [times] is
    [over] / [under]. For every x the right side is a bound, and it is the sum of so many largest where x is the next one:
    the parts above x give their losses, and the others together no more than what is left of [times], times x. *)
Theorem so_many_largest_count {P} (height share : P -> Z) (parts : list P) over under whole x :
  0 <= x -> 0 <= under -> (forall p, In p parts -> 0 <= share p <= whole) ->
  under * sum share parts <= over * whole ->
  under * sum (fun p => height p * share p) parts
    <= (over * x + under * sum (fun p => Z.max (height p - x) 0) parts) * whole.
Proof.
  intros X U S T.
  assert (sum (fun p => height p * share p) parts <= x * sum share parts + sum (fun p => Z.max (height p - x) 0) parts * whole) as B.
  { rewrite (Z.mul_comm (sum _ parts) whole), <- !sum_scale, <- sum_plus. apply sum_le. intros p I. specialize (S p I). nia. }
  nia.
Qed.
