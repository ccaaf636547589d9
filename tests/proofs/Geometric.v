(** The law of geometric noise (core/noise/geometric.py), whose digits are independent, and how near to it finite strings
    of words come (Sampler.v). *)

From Coq Require Import QArith Lqa Field Setoid Morphisms.
From Proofs Require Import Sums Tree Sampler.

(** In every field, so for the real ratio r = exp(-1/scale) too. *)
Section Field.
Context {F : Type} (zero one : F) (plus times minus : F -> F -> F) (opposite : F -> F) (divide : F -> F -> F) (inverse : F -> F).
Context (eq : F -> F -> Prop) (is_setoid : Equivalence eq) (extends : ring_eq_ext plus times opposite eq).
Context (inverts : Proper (eq ==> eq) inverse) (is_field : field_theory zero one plus times minus opposite divide inverse eq).
#[local] Infix "==" := eq. #[local] Infix "+" := plus. #[local] Infix "*" := times. #[local] Infix "-" := minus. #[local] Infix "/" := divide.
#[local] Existing Instance is_setoid.
#[local] Instance times_proper : Proper (eq ==> eq ==> eq) times := Rmul_ext extends.
#[local] Instance plus_proper : Proper (eq ==> eq ==> eq) plus := Radd_ext extends.
#[local] Existing Instance inverts.
Add Field the_field : is_field (setoid is_setoid extends).

#[local] Instance minus_proper : Proper (eq ==> eq ==> eq) minus.
Proof.
  intros a b E c d E'. transitivity (a + opposite c); [ring|]. rewrite E, (Ropp_ext extends _ _ E'). ring.
Qed.

Fixpoint power (x : F) (n : nat) : F := match n with O => one | S n => x * power x n end.

(** [thresholds]: digit j is 1 with chance x / (1 + x), x = r^(2^j), and each trial of the tail hits with chance r^(2^J). *)
Fixpoint chance_to_hit (x : F) (many : nat) (h : Z) : F :=
  match many with
  | O => if (0 =? h)%Z then one else zero
  | S many => x * chance_to_hit x many (h - 1)%Z + (if (0 =? h)%Z then one - x else zero)
  end.
Fixpoint chance (digits : nat) (x : F) (many : nat) (k : Z) : F :=
  match digits with
  | O => chance_to_hit x many k
  | S digits => (if Z.odd k then x / (one + x) else one / (one + x)) * chance digits (x * x) many (Z.div2 k)
  end.

(** No digit has a chance that is not defined: r is not -1, nor a root of it. *)
Fixpoint defined (digits : nat) (x : F) : Prop :=
  match digits with O => True | S digits => ~ one + x == zero /\ defined digits (x * x) end.

Lemma no_hits_below_zero x many : forall h, (h < 0)%Z -> chance_to_hit x many h == zero.
Proof.
  induction many as [|many IH]; intros h L; cbn [chance_to_hit].
  - destruct (Z.eqb_spec 0 h); [lia|]. reflexivity.
  - rewrite IH by lia. destruct (Z.eqb_spec 0 h); [lia|]. ring.
Qed.

Lemma so_many_hits x many : forall h, (0 <= h < Z.of_nat many)%Z -> chance_to_hit x many h == (one - x) * power x (Z.to_nat h).
Proof.
  induction many as [|many IH]; intros h L; [lia|]. cbn [chance_to_hit]. destruct (Z.eqb_spec 0 h) as [<-|N].
  - rewrite no_hits_below_zero by lia. cbn [Z.to_nat power]. ring.
  - rewrite IH by lia. replace (Z.to_nat h) with (S (Z.to_nat (h - 1))) by lia. cbn [power]. ring.
Qed.

Lemma square_power x n : power (x * x) n == power x (2 * n).
Proof.
  induction n as [|n IH]; [reflexivity|]. replace (2 * S n)%nat with (S (S (2 * n))) by lia. cbn [power]. rewrite IH. ring.
Qed.

(** The digits and the tail together have the law of a geometric variable, (1 - r) r^k, below 2^J times the trials. *)
Theorem digits_make_geometric_noise digits many : forall x k, defined digits x ->
  (0 <= k < 2 ^ Z.of_nat digits * Z.of_nat many)%Z -> chance digits x many k == (one - x) * power x (Z.to_nat k).
Proof.
  induction digits as [|digits IH]; intros x k D L; [apply so_many_hits; lia|]. destruct D as [D Ds].
  cbn [chance]. rewrite Nat2Z.inj_succ, Z.pow_succ_r in L by lia. pose proof (Z.div2_odd k) as O.
  set (q := Z.div2 k) in *. assert (0 <= q < 2 ^ Z.of_nat digits * Z.of_nat many)%Z as Q by (destruct (Z.odd k); cbn [Z.b2z] in O; nia).
  rewrite (IH _ _ Ds Q), square_power. destruct (Z.odd k); cbn [Z.b2z] in O.
  - replace (Z.to_nat k) with (S (2 * Z.to_nat q)) by lia. cbn [power]. field. exact D.
  - replace (Z.to_nat k) with (2 * Z.to_nat q)%nat by lia. field. exact D.
Qed.

(** So their difference has the law of discrete Laplace noise, (1 - r) / (1 + r) r^|k|, but for what so many terms leave. *)
Fixpoint difference (digits : nat) (x : F) (many : nat) (k : Z) (terms : nat) : F :=
  match terms with
  | O => zero
  | S terms => difference digits x many k terms + chance digits x many (k + Z.of_nat terms) * chance digits x many (Z.of_nat terms)
  end.

Lemma power_plus x n m : power x (n + m) == power x n * power x m.
Proof. induction n as [|n IH]; cbn [Nat.add power]; [ring|]. rewrite IH. ring. Qed.

Theorem differences_make_laplace_noise digits many x k : defined digits x -> (0 <= k)%Z ->
  forall terms, (k + Z.of_nat terms <= 2 ^ Z.of_nat digits * Z.of_nat many)%Z ->
  (one + x) * difference digits x many k terms == (one - x) * power x (Z.to_nat k) * (one - power x (2 * terms)).
Proof.
  intros D K. induction terms as [|terms IH]; intros L; cbn [difference]; [change (2 * 0)%nat with 0%nat; cbn [power]; ring|].
  rewrite !digits_make_geometric_noise by (easy || lia). rewrite Nat2Z.id.
  replace (Z.to_nat (k + Z.of_nat terms)) with (Z.to_nat k + terms)%nat by lia. rewrite power_plus.
  transitivity ((one + x) * difference digits x many k terms
    + (one + x) * ((one - x) * (power x (Z.to_nat k) * power x terms) * ((one - x) * power x terms))); [ring|].
  rewrite IH by lia. replace (2 * S terms)%nat with (S (S (terms + terms))) by lia.
  replace (2 * terms)%nat with (terms + terms)%nat by lia. cbn [power]. rewrite !power_plus. set (a := power x terms). ring.
Qed.
End Field.

#[local] Open Scope Q_scope.
Definition q_power := @power Q 1 Qmult.
Definition q_chance := @chance Q 0 1 Qplus Qmult Qminus Qdiv.
Definition q_hit := @chance_to_hit Q 0 1 Qplus Qmult Qminus.

Definition q_extends : ring_eq_ext Qplus Qmult Qopp Qeq := mk_reqe Qplus_comp Qmult_comp Qopp_comp.
Definition q_digits := digits_make_geometric_noise 0 1 Qplus Qmult Qminus Qopp Qdiv Qinv Qeq Q_Setoid q_extends Qinv_comp Qsft.
Definition q_no_hits := no_hits_below_zero 0 1 Qplus Qmult Qminus Qopp Qdiv Qinv Qeq Q_Setoid q_extends Qsft.

(** What finite strings of words lead to, from below: it is short by an [e]th at the most. *)
Definition near (a b e : Q) : Prop := 0 <= a /\ a <= b /\ b <= a + e /\ b <= 1.

#[local] Instance near_proper : Proper (Qeq ==> Qeq ==> Qeq ==> iff) near.
Proof. intros a b E c d E' e f E''. unfold near. rewrite E, E', E''. reflexivity. Qed.

Lemma near_times a b e c d f : near a b e -> near c d f -> 0 <= e -> near (a * c) (b * d) (e + f).
Proof.
  intros (A & B & C & D) (A' & B' & C' & D') E. repeat split.
  - now apply Qmult_le_0_compat.
  - assert (0 <= (b - a) * c) by (apply Qmult_le_0_compat; lra). assert (0 <= b * (d - c)) by (apply Qmult_le_0_compat; lra). lra.
  - assert (0 <= (1 - c) * (b - a)) by (apply Qmult_le_0_compat; lra).
    assert (0 <= (1 - b) * (d - c)) by (apply Qmult_le_0_compat; lra). lra.
  - assert (0 <= (1 - b) * d) by (apply Qmult_le_0_compat; lra). lra.
Qed.

Section Law.
Variable W : Z.
Hypothesis W_some : (2 <= W)%Z.

(** A threshold is the words of a probability: its first [n] are floor(W^n p), for every [n] (core/noise/words.py). *)
Definition words_of (limit : nat -> Z) (p : Q) : Prop := of_words W limit /\ 0 <= p <= 1 /\
  forall n, inject_Z (first_words W limit 0 n) <= p * inject_Z (all W n) <= inject_Z (first_words W limit 0 n) + 1.
Fixpoint expands (limits : list (nat -> Z)) (tail : nat -> Z) (x : Q) : Prop :=
  match limits with
  | [] => words_of tail x
  | limit :: more => words_of limit (x / (1 + x)) /\ expands more tail (x * x)
  end.

(** The share of all strings, where each of [m] rows has [n] words. *)
Definition share (n m : nat) (ways : Z) : Q := inject_Z ways / inject_Z (all W n ^ Z.of_nat m).
Definition rest (n m : nat) : Q := inject_Z (Z.of_nat m) / inject_Z (all W n).

Lemma all_some n : 0 < inject_Z (all W n).
Proof. change 0 with (inject_Z 0). rewrite <- Zlt_Qlt. pose proof (all_positive W ltac:(lia) n). lia. Qed.

Lemma strings_some n m : 0 < inject_Z (all W n ^ Z.of_nat m).
Proof.
  change 0 with (inject_Z 0). rewrite <- Zlt_Qlt. pose proof (all_positive W ltac:(lia) n). apply Z.pow_pos_nonneg; lia.
Qed.

Lemma share_times n m a b : share n (S m) (a * b) == (inject_Z a / inject_Z (all W n)) * share n m b.
Proof.
  unfold share. rewrite Nat2Z.inj_succ, Z.pow_succ_r, !inject_Z_mult by lia. pose proof (all_some n). pose proof (strings_some n m).
  field. split; lra.
Qed.

Lemma rest_step n m : rest n (S m) == 1 / inject_Z (all W n) + rest n m.
Proof.
  unfold rest. rewrite Nat2Z.inj_succ, <- Z.add_1_r, inject_Z_plus. pose proof (all_some n). field. lra.
Qed.

Lemma rest_positive n m : 0 <= rest n m.
Proof.
  unfold rest. apply Qle_shift_div_l; [apply all_some|]. rewrite Qmult_0_l. change 0 with (inject_Z 0). rewrite <- Zle_Qle. lia.
Qed.

Lemma digit_near n limit p digit : words_of limit p ->
  near (inject_Z (digit_ways W n limit digit) / inject_Z (all W n)) (if digit then p else 1 - p) (1 / inject_Z (all W n)).
Proof.
  intros (L & P & V). specialize (V n). pose proof (first_words_bounds W ltac:(lia) limit n L 0) as B. pose proof (all_some n) as S.
  assert (0 <= inject_Z (digit_ways W n limit digit)) as N.
  { change 0 with (inject_Z 0). rewrite <- Zle_Qle. unfold digit_ways. destruct digit; lia. }
  repeat split.
  - apply Qle_shift_div_l; lra.
  - apply Qle_shift_div_r; [easy|]. unfold digit_ways. destruct digit; [lra|]. unfold Z.sub. rewrite !inject_Z_plus, !inject_Z_opp. change (inject_Z 1) with 1. lra.
  - assert (forall a b, a / b + 1 / b == (a + 1) / b) as -> by (intros; unfold Qdiv; ring).
    apply Qle_shift_div_l; [easy|]. unfold digit_ways. destruct digit; [lra|]. unfold Z.sub. rewrite !inject_Z_plus, !inject_Z_opp. change (inject_Z 1) with 1. lra.
  - destruct digit; lra.
Qed.

Lemma no_ways_below_zero n tail many : forall h, (h < 0)%Z -> ways_to_hit W n tail many h = 0%Z.
Proof.
  induction many as [|many IH]; intros h L; cbn [ways_to_hit]; [|rewrite IH by lia]; destruct (Z.eqb_spec 0 h); cbn [Z.b2z]; lia.
Qed.

Lemma hits_near n tail p many : words_of tail p -> forall h,
  near (share n many (ways_to_hit W n tail many h)) (q_hit p many h) (rest n many).
Proof.
  intros T. induction many as [|many IH]; intros h.
  - cbn [ways_to_hit q_hit chance_to_hit]. unfold share, rest. change (all W n ^ Z.of_nat 0)%Z with 1%Z. change (Z.of_nat 0) with 0%Z. pose proof (all_some n).
    assert (inject_Z 0 / inject_Z (all W n) == 0) as R by (unfold Qdiv; change (inject_Z 0) with 0; ring).
    destruct h; unfold near; rewrite R; repeat split; unfold Qle; cbn; lia.
  - pose proof (digit_near n tail p true T) as Hit. pose proof (digit_near n tail p false T) as Miss.
    pose proof (all_some n). assert (0 <= 1 / inject_Z (all W n)) by (apply Qle_shift_div_l; lra).
    cbn [ways_to_hit]. unfold q_hit in *. cbn [chance_to_hit]. rewrite rest_step. destruct (Z.eqb_spec 0 h) as [<-|N].
    + rewrite no_ways_below_zero, Z.mul_0_r, Z.add_0_l by lia. cbn [Z.b2z]. rewrite share_times.
      rewrite q_no_hits by lia.
      assert (share n many (1 * all W n ^ Z.of_nat many) == 1) as One.
      { rewrite Z.mul_1_l. unfold share. pose proof (strings_some n many). field. lra. }
      assert (near 1 1 (rest n many)) as Full by (pose proof (rest_positive n many); unfold near; lra).
      pose proof (near_times _ _ _ _ _ _ Miss Full ltac:(easy)) as (A & B & C & D). unfold near. rewrite One. lra.
    + cbn [Z.b2z]. rewrite Z.mul_0_l, Z.mul_0_r, Z.add_0_r, share_times.
      pose proof (near_times _ _ _ _ _ _ Hit (IH (h - 1)%Z) ltac:(easy)) as (A & B & C & D). unfold near. lra.
Qed.

Lemma square_in x : 0 < x < 1 -> 0 < x * x < 1.
Proof. intros X. split; nra. Qed.

Lemma draws_near n tail many : forall limits x k, 0 < x < 1 -> expands limits tail x ->
  near (share n (length limits + many) (ways_to_draw W n limits tail many k)) (q_chance (length limits) x many k)
    (rest n (length limits + many)).
Proof.
  induction limits as [|limit more IH]; intros x k X E; [now apply hits_near|]. destruct E as [E Es].
  cbn [length Nat.add ways_to_draw]. unfold q_chance in *. cbn [chance]. rewrite share_times, rest_step.
  pose proof (digit_near n limit _ (Z.odd k) E) as D. pose proof (all_some n).
  assert (0 <= 1 / inject_Z (all W n)) by (apply Qle_shift_div_l; lra).
  pose proof (near_times _ _ _ _ _ _ D (IH (x * x) (Z.div2 k) (square_in x X) Es) ltac:(easy)) as N.
  assert ((if Z.odd k then x / (1 + x) else 1 - x / (1 + x)) == (if Z.odd k then x / (1 + x) else 1 / (1 + x))) as Same.
  { destruct (Z.odd k); [reflexivity|]. field. lra. }
  unfold near in *. rewrite Same in N. exact N.
Qed.

Lemma all_defined digits : forall x, 0 < x < 1 -> @defined Q 0 1 Qplus Qmult Qeq digits x.
Proof.
  induction digits as [|digits IH]; intros x X; cbn [defined]; [easy|]. split; [lra|]. apply IH. now apply square_in.
Qed.

(** Of all strings of [n] words a row, so large a share draws [k]: it is never above (1 - r) r^k, and short of it by no
    more than the rows times W^-n, here 2^(-64 n). [r] is rational here. *)
Theorem strings_draw_geometric_noise n limits tail many r k : 0 < r < 1 -> expands limits tail r ->
  (0 <= k < 2 ^ Z.of_nat (length limits) * Z.of_nat many)%Z ->
  let drawn := share n (length limits + many)
    (sum (fun rows => leads (geometric limits tail rows) k) (strings (row W n) (length limits + many))) in
  drawn <= (1 - r) * q_power r (Z.to_nat k) <= drawn + rest n (length limits + many).
Proof.
  intros R E K drawn. unfold drawn. rewrite geometric_has_its_law; [|lia| |].
  - pose proof (draws_near n tail many limits r k R E) as (_ & A & B & _).
    pose proof (q_digits (length limits) many r k (all_defined _ r R) K) as G. rewrite G in A, B. easy.
  - clear - E. revert r E. induction limits as [|limit more IH]; intros r E; constructor; [apply E|]. destruct E as [_ E]. now apply IH in E.
  - clear - E. revert r E. induction limits as [|limit more IH]; intros r E; [apply E|]. destruct E as [_ E]. now apply IH in E.
Qed.
End Law.

(** Noise of this law hides a movement by [d]: no answer is less likely by more than r^|d| = exp(-|d| / scale), whichever
    way the movement goes. *)
Definition laplace_chance (r : Q) (k : Z) : Q := (1 - r) / (1 + r) * q_power r (Z.to_nat (Z.abs k)).

Lemma q_power_bounds r n : 0 < r < 1 -> 0 <= q_power r n <= 1.
Proof. intros R. induction n as [|n IH]; unfold q_power in *; cbn [power]; [lra|nra]. Qed.

Lemma q_power_falls r n m : 0 < r < 1 -> (n <= m)%nat -> q_power r m <= q_power r n.
Proof.
  intros R L. induction L as [|m L IH]; [lra|]. pose proof (q_power_bounds r m R). unfold q_power in *. cbn [power]. nra.
Qed.

Lemma q_power_plus r n m : q_power r (n + m) == q_power r n * q_power r m.
Proof. induction n as [|n IH]; unfold q_power in *; cbn [Nat.add power]; [ring|]. rewrite IH. ring. Qed.

Theorem a_movement_is_hidden r k d : 0 < r < 1 ->
  q_power r (Z.to_nat (Z.abs d)) * laplace_chance r k <= laplace_chance r (k + d).
Proof.
  intros R. unfold laplace_chance. assert (0 <= (1 - r) / (1 + r)) as P by (apply Qle_shift_div_l; lra).
  pose proof (q_power_falls r (Z.to_nat (Z.abs (k + d))) (Z.to_nat (Z.abs k) + Z.to_nat (Z.abs d)) R ltac:(lia)) as F.
  rewrite q_power_plus in F. set (c := (1 - r) / (1 + r)) in *.
  assert (c * (q_power r (Z.to_nat (Z.abs k)) * q_power r (Z.to_nat (Z.abs d))) <= c * q_power r (Z.to_nat (Z.abs (k + d)))) as G.
  { rewrite !(Qmult_comm c). apply Qmult_le_compat_r; easy. }
  lra.
Qed.
