(** The filter of a ledger that adds up epsilons and Renyi divergences (core/ledger/sums/accountant.py, privacy rule 47).

    A course of questions, each chosen by the answers before, is a tree. At a question the answer [o] has the chance [p o]
    on one of two neighbours and [q o] on the other; [x o] stands for p^a q^(1-a), a the order of the ledger. Losses stand
    here as their exponentials, which multiply where losses add up: [bound] is exp(epsilon) of a question and [whole]
    that of the budget; [moment] is exp((a - 1) D), D the divergence of a question, and [limit] that of the ledger's
    limit. Noise has finitely many answers here, of rational chances. *)

From Coq Require Import QArith Lqa List.
Import ListNotations.

Fixpoint total {A} (f : A -> Q) (l : list A) : Q := match l with [] => 0 | x :: rest => f x + total f rest end.

Lemma total_le {A} (f g : A -> Q) l : (forall x, In x l -> f x <= g x) -> total f l <= total g l.
Proof.
  induction l as [|x l IH]; cbn [total]; intros L; [lra|].
  pose proof (L x (or_introl eq_refl)). specialize (IH (fun y I => L y (or_intror I))). lra.
Qed.

Lemma total_scale {A} k (f : A -> Q) l : total (fun x => k * f x) l == k * total f l.
Proof. induction l as [|x l IH]; cbn [total]; [ring|]. rewrite IH. ring. Qed.

Lemma total_minus {A} (f g : A -> Q) l : total (fun x => f x - g x) l == total f l - total g l.
Proof. induction l as [|x l IH]; cbn [total]; [ring|]. rewrite IH. ring. Qed.

Inductive course : Type :=
  | Done
  | Ask (bound : option Q) (* none of Gaussian noise *) (moment : Q) (answers : list nat) (p q x : nat -> Q) (next : nat -> course).

Section Filter.
Variables whole limit spare : Q.
Hypothesis whole_one : 1 <= whole.
Hypothesis limit_positive : 0 <= limit.
Hypothesis spare_positive : 0 <= spare.

(** All that is used of p^a q^(1-a): it multiplies as chances do, and p - exp(epsilon) q is at most so much of it. *)
Variable good : Q -> Q -> Q -> Prop.
Hypothesis good_start : good 1 1 1.
Hypothesis good_product : forall p q x p' q' x', good p q x -> good p' q' x' -> good (p * p') (q * q') (x * x').
Hypothesis conversion : forall p q x, good p q x -> 0 <= p -> 0 <= q -> p - whole * q <= spare * x.

(** What is charged for a question holds for it: no loss above its epsilon, which Gaussian noise has none of, and no
    divergence above its own. *)
Fixpoint sound (c : course) : Prop :=
  match c with
  | Done => True
  | Ask bound moment answers p q x next =>
      0 < moment /\ total x answers <= moment /\ (forall b, bound = Some b -> 0 < b) /\
      forall o, In o answers -> 0 <= p o /\ 0 <= q o /\ 0 <= x o /\ good (p o) (q o) (x o) /\
        (forall b, bound = Some b -> p o <= b * q o) /\ sound (next o)
  end.

Definition times (u v : option Q) : option Q := match u, v with Some u, Some v => Some (u * v) | _, _ => None end.
Definition within (bound : option Q) (moment : Q) : Prop := (exists b, bound = Some b /\ b <= whole) \/ moment <= limit.

(** A question is admitted where, with it, either book is within its limit. *)
Fixpoint admitted (bound : option Q) (moment : Q) (c : course) : Prop :=
  match c with
  | Done => True
  | Ask b m answers _ _ _ next =>
      within (times bound b) (moment * m) /\ forall o, In o answers -> admitted (times bound b) (moment * m) (next o)
  end.

(** The chance of an event, which is a set of courses of answers. *)
Fixpoint chance (side : (nat -> Q) -> (nat -> Q) -> nat -> Q) (event : list nat -> bool) (so_far : Q) (c : course) : Q :=
  match c with
  | Done => if event [] then so_far else 0
  | Ask _ _ answers p q _ next =>
      total (fun o => chance side (fun rest => event (o :: rest)) (so_far * side p q o) (next o)) answers
  end.
Definition here (p q : nat -> Q) := p.
Definition there (p q : nat -> Q) := q.

Lemma excess c : forall event bound moment P O X, sound c -> within bound moment -> admitted bound moment c ->
  0 < moment -> 0 <= P -> 0 <= O -> 0 <= X -> good P O X -> (forall b, bound = Some b -> 0 < b /\ P <= b * O) ->
  moment * (chance here event P c - whole * chance there event O c) <= spare * limit * X.
Proof.
  induction c as [|b m answers p q x next IH]; cbn [sound admitted chance]; intros event bound moment P O X S W A M HP HO HX G B.
  - assert (0 <= spare * limit * X) as N by (repeat apply Qmult_le_0_compat; assumption).
    destruct (event []); [|lra]. destruct W as [(e & -> & E)|W].
    + destruct (B e eq_refl) as [E0 PB]. assert (e * O <= whole * O) by (apply Qmult_le_compat_r; assumption).
      assert (P - whole * O <= 0) by lra. nra.
    + specialize (conversion _ _ _ G HP HO). assert (0 <= spare * X) by (apply Qmult_le_0_compat; assumption). nra.
  - destruct S as (Hm & Moment & Hb & S). destruct A as [W' A].
    set (f := fun o => chance here (fun rest => event (o :: rest)) (P * p o) (next o)).
    set (g := fun o => chance there (fun rest => event (o :: rest)) (O * q o) (next o)).
    change (moment * (total f answers - whole * total g answers) <= spare * limit * X).
    assert (0 < moment * m) as MM by nra.
    assert (total (fun o => moment * m * (f o - whole * g o)) answers <= total (fun o => spare * limit * X * x o) answers) as T.
    { apply total_le. intros o I. destruct (S o I) as (Hp & Hq & Hx & Go & Bo & So).
      rewrite <- (Qmult_assoc (spare * limit)). unfold f, g. apply (IH o _ (times bound b)); try easy; try (apply Qmult_le_0_compat; assumption).
      - now apply A.
      - now apply good_product.
      - intros e E. destruct bound as [u|], b as [v|]; try discriminate. cbn in E. injection E as <-.
        destruct (B u eq_refl) as [U PU]. specialize (Hb v eq_refl). specialize (Bo v eq_refl). split; [nra|].
        apply Qle_trans with (u * O * p o); [now apply Qmult_le_compat_r|].
        assert (0 <= u * O) by nra. nra. }
    rewrite !total_scale, total_minus, total_scale in T.
    assert (0 <= spare * limit * X) as N by (repeat apply Qmult_le_0_compat; assumption).
    set (d := total f answers - whole * total g answers) in *. nra.
Qed.

(** Whoever asks, whatever is chosen by the answers: (epsilon, delta) holds, delta being [spare * limit]. *)
Theorem filter_keeps_the_promise c event : sound c -> admitted (Some 1) 1 c ->
  chance here event 1 c <= whole * chance there event 1 c + spare * limit.
Proof.
  intros S A. pose proof (excess c event (Some 1) 1 1 1 1 S) as E.
  assert (within (Some 1) 1) as W by (left; exists 1; split; [easy|lra]).
  specialize (E W A ltac:(lra) ltac:(lra) ltac:(lra) ltac:(lra) good_start).
  assert (forall b, Some 1 = Some b -> 0 < b /\ 1 <= b * 1) as B by (intros b [= <-]; lra). specialize (E B). lra.
Qed.

End Filter.

Lemma square_nonneg t : 0 <= t * t.
Proof. destruct (Qlt_le_dec t 0); nra. Qed.

(** All of this is so at order 2, where x = p^2 / q, a limit [limit] and delta = limit / (4 exp(epsilon)). *)
Definition second (p q x : Q) : Prop := 0 <= x /\ p * p <= x * q.

Theorem at_order_2 whole limit c event : 1 <= whole -> 0 <= limit -> sound second c -> admitted whole limit (Some 1) 1 c ->
  chance here event 1 c <= whole * chance there event 1 c + 1 / (4 * whole) * limit.
Proof.
  intros W L. assert (0 < 1 / (4 * whole)) as K. { apply Qlt_shift_div_l; nra. }
  assert (1 / (4 * whole) * (4 * whole) == 1) as E by (field; lra).
  apply filter_keeps_the_promise; try easy; try lra.
  - intros p q x p' q' x' [X P] [X' P']. split; [now apply Qmult_le_0_compat|].
    pose proof (square_nonneg p). pose proof (square_nonneg p').
    assert (p * p * (p' * p') <= x * q * (x' * q')) by (apply Qmult_le_compat_nonneg; lra). lra.
  - intros p q x [X P] HP HQ. set (k := 1 / (4 * whole)) in *.
    destruct (Qlt_le_dec (k * x) (p - whole * q)) as [N|N]; [|easy].
    assert (4 * whole * (k * x) < 4 * whole * (p - whole * q)) as M by (apply Qmult_lt_l; lra).
    assert (4 * whole * (k * x) == x) as X4 by (setoid_replace (4 * whole * (k * x)) with (k * (4 * whole) * x) by ring; rewrite E; ring).
    rewrite X4 in M.
    destruct (Qlt_le_dec 0 q) as [Q0|Q0].
    + assert (x * q < 4 * whole * (p - whole * q) * q) by now apply Qmult_lt_r.
      pose proof (square_nonneg (p - 2 * whole * q)). nra.
    + assert (q == 0) as Z by lra. rewrite Z in *. nra.
Qed.
