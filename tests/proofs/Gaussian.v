(** Discrete Gaussian noise as it is drawn (core/noise/blocks.py, core/noise/gaussian.py): a block by its cumulated
    chances, a number in it, a sign, and whether it stays; what is rejected is drawn again. *)

From Coq Require Import Field Setoid Morphisms.
From Proofs Require Import Sums Tree Sampler Geometric.

Section Find.
Variable W : Z.
Hypothesis W_some : 1 <= W.

(** [Blocks.find]: the first whose cumulated chance is above an endless number; the same words are compared with all. *)
Fixpoint find (limits : list (nat -> Z)) (words : list Z) : option Z :=
  match limits with
  | [] => Some 0
  | limit :: more =>
      match below limit 0 words with
      | None => None
      | Some true => Some 0
      | Some false => match find more words with Some k => Some (1 + k) | None => None end
      end
  end.

Fixpoint number (words : list Z) : Z :=
  match words with [] => 0 | word :: rest => word * all W (length rest) + number rest end.

Lemma number_bounds n : forall words, In words (row W n) -> length words = n /\ 0 <= number words < all W n.
Proof.
  unfold row. induction n as [|n IH]; intros s; cbn [strings].
  - intros [<-|[]]. easy.
  - rewrite in_flat_map. intros (w & I & J). apply in_places in I. apply in_map_iff in J as (t & <- & J). apply IH in J as [E B].
    cbn [length number]. rewrite E. split; [easy|]. unfold all in *. rewrite Nat2Z.inj_succ, Z.pow_succ_r by lia. nia.
Qed.

(** A comparison is that of two numbers, but where all words are equal. *)
Lemma below_by_number limit n : of_words W limit -> forall words depth, In words (row W n) ->
  below limit depth words = if number words =? first_words W limit depth n then None else Some (number words <? first_words W limit depth n).
Proof.
  intros L. unfold row. induction n as [|n IH]; intros s depth; cbn [strings].
  - intros [<-|[]]. easy.
  - rewrite in_flat_map. intros (w & I & J). apply in_places in I. apply in_map_iff in J as (t & <- & J).
    cbn [below number first_words]. destruct (number_bounds n t J) as [E B]. rewrite E, (IH t (S depth) J).
    pose proof (first_words_bounds W ltac:(lia) limit n L (S depth)) as V. fold (all W n).
    set (a := all W n) in *. set (v := first_words W limit (S depth) n) in *. set (x := number t) in *. specialize (L depth).
    destruct (Z.eqb_spec w (limit depth)) as [->|N].
    + destruct (Z.eqb_spec x v), (Z.eqb_spec (limit depth * a + x) (limit depth * a + v)); try lia; [easy|].
      destruct (Z.ltb_spec x v), (Z.ltb_spec (limit depth * a + x) (limit depth * a + v)); lia || easy.
    + destruct (Z.eqb_spec (w * a + x) (limit depth * a + v)); [nia|].
      destruct (Z.ltb_spec w (limit depth)), (Z.ltb_spec (w * a + x) (limit depth * a + v)); nia || easy.
Qed.

Lemma sum_shifted f low shift high : low <= high -> sum (fun i => f (shift + i)) (places low high) = sum f (places (shift + low) (shift + high)).
Proof.
  intros L. unfold places. rewrite !sum_map. replace (Z.to_nat (shift + high - (shift + low))) with (Z.to_nat (high - low)) by (f_equal; ring).
  apply sum_ext. intros i _. f_equal. ring.
Qed.

Lemma sum_in_blocks f size many : 0 <= size ->
  sum (fun w => sum (fun i => f (w * size + i)) (places 0 size)) (places 0 (Z.of_nat many)) = sum f (places 0 (Z.of_nat many * size)).
Proof.
  intros S. induction many as [|many IH]; [easy|].
  rewrite Nat2Z.inj_succ, (places_between 0 (Z.of_nat many) (Z.succ (Z.of_nat many))), sum_app, IH by lia.
  rewrite (places_between 0 (Z.of_nat many * size) (Z.succ (Z.of_nat many) * size)), sum_app by nia. f_equal.
  replace (places (Z.of_nat many) (Z.succ (Z.of_nat many))) with [Z.of_nat many].
  - cbn [sum]. rewrite sum_shifted by lia. rewrite !Z.add_0_r.
    now replace (Z.succ (Z.of_nat many) * size) with (Z.of_nat many * size + size) by lia.
  - unfold places. replace (Z.to_nat (Z.succ (Z.of_nat many) - Z.of_nat many)) with 1%nat by lia. cbn [seq map]. f_equal. lia.
Qed.

(** Every number stands for one string. *)
Lemma sum_by_number f n : sum (fun words => f (number words)) (row W n) = sum f (places 0 (all W n)).
Proof.
  revert f. induction n as [|n IH]; intros f; [now cbn|]. unfold row. rewrite sum_strings. fold (row W n).
  rewrite (sum_ext _ (fun w => sum (fun i => f (w * all W n + i)) (places 0 (all W n)))).
  - unfold words. replace W with (Z.of_nat (Z.to_nat W)) at 1 by lia.
    rewrite sum_in_blocks by (pose proof (all_positive W W_some n); lia).
    unfold all. rewrite Nat2Z.inj_succ, Z.pow_succ_r by lia. f_equal. f_equal. lia.
  - intros w _. rewrite <- (IH (fun i => f (w * all W n + i))). apply sum_ext. intros t I. cbn [number].
    now destruct (number_bounds n t I) as [-> _].
Qed.

(** The strings that lead to a block lie between two cumulated numbers: as many as the chance of the block says, but the
    two borders. *)
Fixpoint between (n : nat) (low : Z) (limits : list (nat -> Z)) (k : Z) : Z :=
  match limits with
  | [] => if k =? 0 then all W n - low else 0
  | limit :: more => let high := first_words W limit 0 n in
      if k =? 0 then high - low else between n (high + 1) more (k - 1)
  end.
Fixpoint rising (n : nat) (low : Z) (limits : list (nat -> Z)) : Prop :=
  match limits with
  | [] => low <= all W n
  | limit :: more => low <= first_words W limit 0 n /\ rising n (first_words W limit 0 n + 1) more
  end.

Lemma find_from n limits : Forall (of_words W) limits -> forall low k, 0 <= low -> rising n low limits ->
  sum (fun words => if number words <? low then 0 else leads (find limits words) k) (row W n) = between n low limits k.
Proof.
  intros Ls. induction Ls as [|limit more L Ls IH]; intros low k Low R; cbn [rising between find] in *.
  - rewrite (sum_by_number (fun v => if v <? low then 0 else leads (Some 0) k)).
    rewrite (places_between 0 low), sum_app by lia.
    rewrite (sum_zero _ (places 0 low)) by (intros v I; apply in_places in I; destruct (Z.ltb_spec v low); lia).
    rewrite (sum_ext _ (fun _ => if k =? 0 then 1 else 0)), sum_places_const; [destruct (k =? 0); lia|lia|].
    intros v I. apply in_places in I. cbn [leads]. destruct (Z.ltb_spec v low); [lia|]. rewrite Z.eqb_sym. now destruct (k =? 0).
  - destruct R as [Low' R]. set (high := first_words W limit 0 n) in *.
    pose proof (first_words_bounds W ltac:(lia) limit n L 0) as B. fold high in B.
    rewrite (sum_ext _ (fun words => (if (low <=? number words) && (number words <? high) then Z.b2z (k =? 0) else 0)
      + (if number words <? high + 1 then 0 else leads (find more words) (k - 1)))%bool).
    + rewrite sum_plus, (IH (high + 1) (k - 1) ltac:(lia) R).
      rewrite (sum_by_number (fun v => if ((low <=? v) && (v <? high))%bool then Z.b2z (k =? 0) else 0)).
      rewrite (places_between 0 low), (places_between low high), !sum_app by lia.
      rewrite (sum_zero _ (places 0 low)) by (intros v I; apply in_places in I; destruct (Z.leb_spec low v); cbn; lia).
      rewrite (sum_zero _ (places high _)) by (intros v I; apply in_places in I; destruct (Z.ltb_spec v high), (low <=? v); cbn; lia).
      rewrite (sum_ext _ (fun _ => Z.b2z (k =? 0))), sum_places_const by
        (try lia; intros v I; apply in_places in I; destruct (Z.leb_spec low v), (Z.ltb_spec v high); cbn; lia || easy).
      destruct (Z.eqb_spec k 0) as [->|N]; cbn [Z.b2z]; [|lia].
      assert (forall l h, between n h l (0 - 1) = 0) as ->; [|lia].
      { clear. assert (forall l h j, j < 0 -> between n h l j = 0) as E; [|intros; apply E; lia].
        induction l as [|limit l IH]; intros h j J; cbn [between]; destruct (Z.eqb_spec j 0); try lia; auto. apply IH. lia. }
    + intros words I. rewrite (below_by_number limit n L words 0 I). fold high. destruct (number_bounds n words I) as [_ V].
      destruct (Z.ltb_spec (number words) low), (Z.leb_spec low (number words)), (Z.eqb_spec (number words) high),
        (Z.ltb_spec (number words) high), (Z.ltb_spec (number words) (high + 1)); cbn [andb leads]; try lia.
      * rewrite (Z.eqb_sym 0 k). lia.
      * destruct (find more words) as [j|]; [|easy]. cbn [leads]. destruct (Z.eqb_spec (1 + j) k), (Z.eqb_spec j (k - 1)); cbn; lia.
Qed.

Theorem a_block_has_its_law n limits k : Forall (of_words W) limits -> rising n 0 limits ->
  sum (fun words => leads (find limits words) k) (row W n) = between n 0 limits k.
Proof.
  intros Ls R. rewrite <- (find_from n limits Ls 0 k ltac:(lia) R). apply sum_ext. intros words I.
  destruct (number_bounds n words I) as [_ B]. destruct (Z.ltb_spec (number words) 0); [lia|easy].
Qed.
End Find.

(** In every field, so for real exponentials too: [weight x] is exp(-x / (2 square)), of which only the sum of two exponents
    is taken, and [total] the sum over all blocks. *)
Section Law.
Context {F : Type} (zero one : F) (plus times minus : F -> F -> F) (opposite : F -> F) (divide : F -> F -> F) (inverse : F -> F).
Context (eq : F -> F -> Prop) (is_setoid : Equivalence eq) (extends : ring_eq_ext plus times opposite eq).
Context (inverts : Proper (eq ==> eq) inverse) (is_field : field_theory zero one plus times minus opposite divide inverse eq).
#[local] Infix "==" := eq (at level 70). #[local] Infix "+!" := plus (at level 50, left associativity).
#[local] Infix "*!" := times (at level 40, left associativity). #[local] Infix "-!" := minus (at level 50, left associativity).
#[local] Infix "/!" := divide (at level 40, left associativity).
#[local] Existing Instance is_setoid.
#[local] Existing Instance inverts.
#[local] Instance times_is_proper : Proper (eq ==> eq ==> eq) times := Rmul_ext extends.
#[local] Instance plus_is_proper : Proper (eq ==> eq ==> eq) plus := Radd_ext extends.
#[local] Instance divide_is_proper : Proper (eq ==> eq ==> eq) divide.
Proof. intros a b E c d E'. rewrite !(Fdiv_def is_field), E, E'. reflexivity. Qed.
Add Field the_field_of_rounds : is_field (setoid is_setoid extends).

Context (weight : Z -> F) (adds : forall x y, weight (x + y) == weight x *! weight y).
Context (width : Z) (width_some : 1 <= width) (wide total : F) (wide_some : ~ wide == zero) (total_some : ~ total == zero).
Context (two_some : ~ one +! one == zero).
#[local] Notation two := (one +! one).

(** [_settled]: a number is drawn as a block, a place in it, and a sign; it stays with a chance of its own. Numbers of
    [width] above 1 are zero once, by their sign; where blocks are single numbers, zero has half of its chance and both. *)
Definition drawn (number : Z) : F :=
  let size := Z.abs number in let block := size / width in let offset := size mod width in
  let chosen := weight (block * width * (block * width)) /! total in
  let stays := weight (offset * (2 * (block * width) + offset)) in
  if andb (width =? 1) (number =? 0) then (chosen /! two) *! stays *! (one /! two +! one /! two) /! wide
  else chosen *! (one /! wide) *! stays *! (one /! two).

Theorem a_round_draws_gaussian_weights number : drawn number == weight (number * number) /! (two *! wide *! total).
Proof.
  unfold drawn. set (size := Z.abs number). set (block := size / width). set (offset := size mod width).
  assert (number * number = block * width * (block * width) + offset * (2 * (block * width) + offset)) as ->.
  { pose proof (Z.div_mod size width ltac:(lia)) as D. fold block offset in D. unfold size in D.
    assert (number * number = Z.abs number * Z.abs number) as -> by (destruct number; lia). rewrite D. ring. }
  rewrite adds. destruct (andb (width =? 1) (number =? 0)); field; repeat split; easy.
Qed.

(** What is rejected is drawn again, so many times at the most. *)
Fixpoint after (rejected : F) (rounds : nat) (once : F) : F :=
  match rounds with O => zero | S rounds => once +! rejected *! after rejected rounds once end.

Theorem rounds_keep_the_law rejected rounds once :
  (one -! rejected) *! after rejected rounds once == once *! (one -! @power F one times rejected rounds).
Proof.
  induction rounds as [|rounds IH]; cbn [after power]; [ring|].
  transitivity ((one -! rejected) *! once +! rejected *! ((one -! rejected) *! after rejected rounds once)); [ring|]. rewrite IH. ring.
Qed.
End Law.
