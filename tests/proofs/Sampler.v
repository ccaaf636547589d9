(** Discrete Laplace noise (core/noise/geometric.py) as it is drawn: from words, each one of [W] = 2^64, that are uniform.

    A sampler is a function of a finite string of words: an outcome, or [None] where it needs more words. Its law is how
    many of all strings of a length lead to an outcome. With [W] = 2 words are bits. *)

From Coq Require Import Field.
From Proofs Require Import Sums Tree.

Fixpoint strings {A} (alphabet : list A) (n : nat) : list (list A) :=
  match n with O => [[]] | S n => flat_map (fun a => map (cons a) (strings alphabet n)) alphabet end.

(** How many elements of a list lead to an outcome. *)
Definition leads (outcome : option Z) (k : Z) : Z := match outcome with Some j => Z.b2z (j =? k) | None => 0 end.
Definition stuck (outcome : option Z) : Z := match outcome with Some _ => 0 | None => 1 end.

Section Sampler.
Variable W : Z.
Hypothesis W_some : 1 <= W.

(** [_bernoulli]: an endless word is compared with an endless threshold, from some depth on; the first difference decides. *)
Fixpoint below (limit : nat -> Z) (depth : nat) (words : list Z) : option bool :=
  match words with
  | [] => None
  | word :: rest => if word =? limit depth then below limit (S depth) rest else Some (word <? limit depth)
  end.

(** [_hits]: consecutive hits of the tail; there are no more than rows. *)
Fixpoint hits (tail : nat -> Z) (rows : list (list Z)) : option Z :=
  match rows with
  | [] => Some 0
  | row :: rest =>
      match below tail 0 row with
      | None => None
      | Some false => Some 0
      | Some true => match hits tail rest with Some h => Some (1 + h) | None => None end
      end
  end.

(** [_draw], one side: a row of words for each digit, then those of the tail. *)
Fixpoint geometric (limits : list (nat -> Z)) (tail : nat -> Z) (rows : list (list Z)) : option Z :=
  match limits with
  | [] => hits tail rows
  | limit :: more =>
      match rows with
      | [] => None
      | row :: rest =>
          match below limit 0 row, geometric more tail rest with
          | Some digit, Some k => Some (Z.b2z digit + 2 * k)
          | _, _ => None
          end
      end
  end.

Definition laplace limits tail (left right : list (list Z)) : option Z :=
  match geometric limits tail left, geometric limits tail right with Some a, Some b => Some (a - b) | _, _ => None end.

(** How many strings. *)
Lemma sum_strings {A} (alphabet : list A) n f :
  sum f (strings alphabet (S n)) = sum (fun a => sum (fun s => f (a :: s)) (strings alphabet n)) alphabet.
Proof. cbn [strings]. rewrite sum_flat_map. apply sum_ext. intros a _. apply sum_map. Qed.

Lemma sum_times {A} k (f : A -> Z) l : sum (fun x => f x * k) l = sum f l * k.
Proof. induction l; cbn [sum]; lia. Qed.

Lemma how_many_strings {A} (alphabet : list A) n : sum (fun _ => 1) (strings alphabet n) = sum (fun _ => 1) alphabet ^ Z.of_nat n.
Proof.
  induction n as [|n IH]; [easy|]. rewrite sum_strings, IH, Nat2Z.inj_succ, Z.pow_succ_r by lia.
  rewrite (sum_ext _ (fun _ => 1 * sum (fun _ => 1) alphabet ^ Z.of_nat n)) by (intros; lia). apply sum_times.
Qed.

Lemma sum_always {A} k (l : list A) : sum (fun _ => k) l = k * sum (fun _ => 1) l.
Proof. induction l; cbn [sum]; lia. Qed.

Lemma places_between low mid high : low <= mid <= high -> places low high = places low mid ++ places mid high.
Proof.
  intros L. unfold places. replace (Z.to_nat (high - low)) with (Z.to_nat (mid - low) + Z.to_nat (high - mid))%nat by lia.
  rewrite seq_app, map_app. f_equal.
  assert (forall n s, map (fun i => low + Z.of_nat i) (seq (Z.to_nat (mid - low) + s) n) = map (fun i => mid + Z.of_nat i) (seq s n)) as E.
  { induction n as [|n IH]; intros s; [easy|]. cbn [seq map]. rewrite plus_n_Sm, IH. f_equal. lia. }
  rewrite <- (E _ 0%nat). now rewrite Nat.add_0_r, Nat.add_0_l.
Qed.

Lemma sum_places_const k low high : low <= high -> sum (fun _ => k) (places low high) = (high - low) * k.
Proof.
  intros L. unfold places. rewrite sum_map.
  assert (forall n s, sum (fun _ : nat => k) (seq s n) = Z.of_nat n * k) as ->; [|now rewrite Z2Nat.id by lia].
  induction n as [|n IH]; intros s; [easy|]. cbn [seq sum]. rewrite IH. lia.
Qed.

Lemma sum_of_a_comparison limit same less more : 0 <= limit < W ->
  sum (fun w => if w =? limit then same else if w <? limit then less else more) (places 0 W)
    = limit * less + same + (W - 1 - limit) * more.
Proof.
  intros L. rewrite (places_between 0 limit W), (places_between limit (limit + 1) W), !sum_app by lia.
  rewrite (sum_ext _ (fun _ => less) (places 0 limit)).
  2:{ intros w I. apply in_places in I. destruct (Z.eqb_spec w limit), (Z.ltb_spec w limit); lia. }
  rewrite (sum_ext _ (fun _ => same) (places limit (limit + 1))).
  2:{ intros w I. apply in_places in I. destruct (Z.eqb_spec w limit); lia. }
  rewrite (sum_ext _ (fun _ => more) (places (limit + 1) W)).
  2:{ intros w I. apply in_places in I. destruct (Z.eqb_spec w limit), (Z.ltb_spec w limit); lia. }
  rewrite !sum_places_const by lia. lia.
Qed.

(** The first [n] words of a threshold as a number: [binary_places], floor(W^n p). *)
Fixpoint first_words (limit : nat -> Z) (depth n : nat) : Z :=
  match n with O => 0 | S n => limit depth * W ^ Z.of_nat n + first_words limit (S depth) n end.
Definition words : list Z := places 0 W.
Definition row (n : nat) : list (list Z) := strings words n.
Definition all (n : nat) : Z := W ^ Z.of_nat n.
Definition of_words (limit : nat -> Z) : Prop := forall depth, 0 <= limit depth < W.

Lemma rows_of n : sum (fun _ => 1) (row n) = all n.
Proof. unfold row, all, words. rewrite how_many_strings, sum_places_const by lia. f_equal. lia. Qed.

Lemma all_positive n : 1 <= all n.
Proof. unfold all. pose proof (Z.pow_pos_nonneg W (Z.of_nat n)). lia. Qed.

Lemma first_words_bounds limit n : of_words limit -> forall depth, 0 <= first_words limit depth n < all n.
Proof.
  intros L. induction n as [|n IH]; intros depth; [easy|]. cbn [first_words]. specialize (IH (S depth)). specialize (L depth).
  unfold all in *. rewrite Nat2Z.inj_succ, Z.pow_succ_r by lia. nia.
Qed.

(** Of all strings of [n] words, floor(W^n p) are below the threshold, one needs more words, and all others are not below. *)
Theorem a_comparison_has_its_law limit n f : of_words limit -> forall depth,
  sum (fun string => f (below limit depth string)) (row n)
    = first_words limit depth n * f (Some true) + (all n - 1 - first_words limit depth n) * f (Some false) + f None.
Proof.
  intros L. unfold row. induction n as [|n IH]; intros depth; [cbn; lia|]. rewrite sum_strings. cbn [below].
  rewrite (sum_ext _ (fun w => if w =? limit depth then first_words limit (S depth) n * f (Some true)
    + (all n - 1 - first_words limit (S depth) n) * f (Some false) + f None
    else if w <? limit depth then all n * f (Some true) else all n * f (Some false))).
  - unfold words. rewrite sum_of_a_comparison by apply L. cbn [first_words]. unfold all.
    rewrite Nat2Z.inj_succ, Z.pow_succ_r by lia. ring.
  - intros w _. destruct (w =? limit depth); [apply IH|]. rewrite sum_always. fold (row n). rewrite rows_of.
    destruct (w <? limit depth); lia.
Qed.

(** How many strings are above and below a threshold, then how many of [many] trials hit, then of all digits. *)
Definition digit_ways (n : nat) (limit : nat -> Z) (digit : bool) : Z :=
  if digit then first_words limit 0 n else all n - 1 - first_words limit 0 n.
Fixpoint ways_to_hit (n : nat) (tail : nat -> Z) (many : nat) (h : Z) : Z :=
  match many with
  | O => Z.b2z (0 =? h)
  | S many => digit_ways n tail true * ways_to_hit n tail many (h - 1) + digit_ways n tail false * (Z.b2z (0 =? h) * all n ^ Z.of_nat many)
  end.
Fixpoint ways_to_draw (n : nat) (limits : list (nat -> Z)) (tail : nat -> Z) (many : nat) (k : Z) : Z :=
  match limits with
  | [] => ways_to_hit n tail many k
  | limit :: more => digit_ways n limit (Z.odd k) * ways_to_draw n more tail many (Z.div2 k)
  end.

Lemma hits_have_their_law n tail many : of_words tail -> forall h,
  sum (fun rows => leads (hits tail rows) h) (strings (row n) many) = ways_to_hit n tail many h.
Proof.
  intros L. induction many as [|many IH]; intros h; [cbn; lia|]. rewrite sum_strings. cbn [hits ways_to_hit].
  pose (f := fun first => sum (fun rest => leads (match first with None => None | Some false => Some 0
    | Some true => match hits tail rest with Some h => Some (1 + h) | None => None end end) h) (strings (row n) many)).
  transitivity (sum (fun first => f (below tail 0 first)) (row n)); [reflexivity|].
  rewrite a_comparison_has_its_law by easy. unfold digit_ways.
  assert (f None = 0) as -> by (unfold f; now apply sum_zero).
  assert (f (Some true) = ways_to_hit n tail many (h - 1)) as ->.
  { unfold f. rewrite <- IH. apply sum_ext. intros rest _. destruct (hits tail rest) as [j|]; [|easy]. cbn [leads].
    f_equal. apply Bool.eq_true_iff_eq. rewrite !Z.eqb_eq. lia. }
  assert (f (Some false) = Z.b2z (0 =? h) * all n ^ Z.of_nat many) as ->; [|lia].
  unfold f. cbn [leads]. rewrite sum_always, how_many_strings, rows_of. reflexivity.
Qed.

(** All digits are independent: of all strings, the product of theirs leads to an outcome, whatever the thresholds are. *)
Theorem geometric_has_its_law n limits tail many : Forall of_words limits -> of_words tail -> forall k,
  sum (fun rows => leads (geometric limits tail rows) k) (strings (row n) (length limits + many)) = ways_to_draw n limits tail many k.
Proof.
  intros Ls L. induction Ls as [|limit more Limit Ls IH]; intros k; [now apply hits_have_their_law|].
  cbn [length Nat.add]. rewrite sum_strings. cbn [geometric ways_to_draw].
  pose (f := fun first => sum (fun rest => leads (match first, geometric more tail rest with
    | Some digit, Some k => Some (Z.b2z digit + 2 * k) | _, _ => None end) k) (strings (row n) (length more + many))).
  transitivity (sum (fun first => f (below limit 0 first)) (row n)); [reflexivity|].
  rewrite a_comparison_has_its_law by easy. unfold digit_ways. rewrite <- IH.
  assert (f None = 0) as -> by (unfold f; now apply sum_zero).
  assert (forall digit, f (Some digit) = if Bool.eqb digit (Z.odd k)
    then sum (fun rows => leads (geometric more tail rows) (Z.div2 k)) (strings (row n) (length more + many)) else 0) as E.
  { intros digit. unfold f. pose proof (Z.div2_odd k) as D. destruct (Bool.eqb_spec digit (Z.odd k)) as [->|N].
    - apply sum_ext. intros rest _. destruct (geometric more tail rest) as [j|]; [|easy]. cbn [leads]. f_equal.
      apply Bool.eq_true_iff_eq. rewrite !Z.eqb_eq. lia.
    - apply sum_zero. intros rest _. destruct (geometric more tail rest) as [j|]; [|easy]. cbn [leads].
      destruct (Z.eqb_spec (Z.b2z digit + 2 * j) k); [|easy]. destruct digit, (Z.odd k); cbn [Z.b2z] in *; lia || easy. }
  rewrite !E. destruct (Z.odd k); cbn [Bool.eqb]; lia.
Qed.

(** Strings that need more words: no more than one in W^n for each row. *)
Lemma few_hits_are_stuck n tail many : of_words tail ->
  sum (fun rows => stuck (hits tail rows)) (strings (row n) many) * all n <= Z.of_nat many * all n ^ Z.of_nat many.
Proof.
  intros L. induction many as [|many IH]; [cbn; lia|]. rewrite sum_strings. cbn [hits].
  pose (f := fun first => sum (fun rest => stuck (match first with None => None | Some false => Some 0
    | Some true => match hits tail rest with Some h => Some (1 + h) | None => None end end)) (strings (row n) many)).
  change (sum (fun first => f (below tail 0 first)) (row n) * all n <= Z.of_nat (S many) * all n ^ Z.of_nat (S many)).
  rewrite a_comparison_has_its_law by easy.
  assert (f None = all n ^ Z.of_nat many) as ->.
  { unfold f. cbn [stuck]. now rewrite how_many_strings, rows_of. }
  assert (f (Some false) = 0) as -> by (unfold f; now apply sum_zero).
  assert (f (Some true) = sum (fun rows => stuck (hits tail rows)) (strings (row n) many)) as ->.
  { unfold f. apply sum_ext. intros rest _. now destruct (hits tail rest). }
  pose proof (first_words_bounds tail n L 0). rewrite Nat2Z.inj_succ, Z.pow_succ_r by lia.
  assert (0 <= sum (fun rows => stuck (hits tail rows)) (strings (row n) many)) by (apply sum_nonneg; intros r _; now destruct (hits tail r)).
  set (s := sum _ _) in *. set (p := all n ^ Z.of_nat many) in *. nia.
Qed.

Theorem few_strings_are_stuck n limits tail many : Forall of_words limits -> of_words tail ->
  sum (fun rows => stuck (geometric limits tail rows)) (strings (row n) (length limits + many)) * all n
    <= Z.of_nat (length limits + many) * all n ^ Z.of_nat (length limits + many).
Proof.
  intros Ls L. induction Ls as [|limit more Limit Ls IH]; [now apply few_hits_are_stuck|].
  cbn [length Nat.add]. rewrite sum_strings. cbn [geometric].
  pose (f := fun first => sum (fun rest => stuck (match first, geometric more tail rest with
    | Some digit, Some k => Some (Z.b2z digit + 2 * k) | _, _ => None end)) (strings (row n) (length more + many))).
  change (sum (fun first => f (below limit 0 first)) (row n) * all n
    <= Z.of_nat (S (length more + many)) * all n ^ Z.of_nat (S (length more + many))).
  rewrite a_comparison_has_its_law by easy.
  assert (f None = all n ^ Z.of_nat (length more + many)) as ->.
  { unfold f. cbn [stuck]. now rewrite how_many_strings, rows_of. }
  assert (forall digit, f (Some digit) = sum (fun rows => stuck (geometric more tail rows)) (strings (row n) (length more + many))) as E.
  { intros digit. unfold f. apply sum_ext. intros rest _. now destruct (geometric more tail rest). }
  rewrite !E. pose proof (first_words_bounds limit n Limit 0). rewrite Nat2Z.inj_succ, Z.pow_succ_r by lia.
  assert (0 <= sum (fun rows => stuck (geometric more tail rows)) (strings (row n) (length more + many)))
    by (apply sum_nonneg; intros r _; now destruct (geometric more tail r)).
  set (s := sum _ _) in *. set (p := all n ^ Z.of_nat (length more + many)) in *. nia.
Qed.

(** What is drawn of so many rows is below 2^J times one more than the trials. *)
Lemma hits_range tail rows h : hits tail rows = Some h -> 0 <= h <= Z.of_nat (length rows).
Proof.
  revert h. induction rows as [|row rows IH]; intros h; cbn [hits length]; [intros [= <-]; lia|].
  destruct (below tail 0 row) as [[|]|]; [|intros [= <-]; lia|easy].
  destruct (hits tail rows) as [j|]; [|easy]. intros E. assert (h = 1 + j) as -> by congruence. specialize (IH j eq_refl). lia.
Qed.

Lemma geometric_range limits tail : forall rows k, geometric limits tail rows = Some k ->
  0 <= k < 2 ^ Z.of_nat (length limits) * (Z.of_nat (length rows) - Z.of_nat (length limits) + 1).
Proof.
  induction limits as [|limit more IH]; intros rows k; cbn [geometric length].
  - intros H. apply hits_range in H. lia.
  - destruct rows as [|row rows]; [easy|]. destruct (below limit 0 row) as [digit|]; [|easy].
    destruct (geometric more tail rows) as [j|] eqn:E; [|easy]. intros K. assert (k = Z.b2z digit + 2 * j) as -> by congruence.
    apply IH in E. cbn [length].
    rewrite !Nat2Z.inj_succ, Z.pow_succ_r by lia. 
    replace (Z.succ (Z.of_nat (length rows)) - Z.succ (Z.of_nat (length more)) + 1) with (Z.of_nat (length rows) - Z.of_nat (length more) + 1) by lia.
    rewrite <- Z.mul_assoc. set (p := 2 ^ _ * _) in *. destruct digit; cbn [Z.b2z]; lia.
Qed.

Lemma strings_length {A} (alphabet : list A) n : forall s, In s (strings alphabet n) -> length s = n.
Proof.
  induction n as [|n IH]; intros s; cbn [strings]; [intros [<-|[]]; easy|]. rewrite in_flat_map. intros (a & _ & I).
  apply in_map_iff in I as (t & <- & I). cbn [length]. f_equal. now apply IH.
Qed.

Lemma sum_single (f : Z -> Z) r high : 0 <= r < high -> sum (fun b => f b * Z.b2z (r =? b)) (places 0 high) = f r.
Proof.
  intros R. rewrite (places_between 0 r high), (places_between r (r + 1) high), !sum_app by lia.
  rewrite (sum_zero _ (places 0 r)), (sum_zero _ (places (r + 1) high)).
  - rewrite (sum_ext _ (fun _ => f r)), sum_places_const; [lia|lia|].
    intros b I. apply in_places in I. assert (b = r) as -> by lia. rewrite Z.eqb_refl. cbn [Z.b2z]. lia.
  - intros b I. apply in_places in I. destruct (Z.eqb_spec r b); cbn [Z.b2z]; lia.
  - intros b I. apply in_places in I. destruct (Z.eqb_spec r b); cbn [Z.b2z]; lia.
Qed.

(** Both sides together: the law of the difference of two independent draws. *)
Theorem laplace_has_its_law n limits tail many : Forall of_words limits -> of_words tail -> forall k,
  let both := strings (row n) (length limits + many) in
  sum (fun left => sum (fun right => leads (laplace limits tail left right) k) both) both
    = sum (fun b => ways_to_draw n limits tail many (k + b) * ways_to_draw n limits tail many b)
        (places 0 (2 ^ Z.of_nat (length limits) * (Z.of_nat many + 1))).
Proof.
  intros Ls L k both. set (high := 2 ^ Z.of_nat (length limits) * (Z.of_nat many + 1)).
  pose (f := fun rows j => leads (geometric limits tail rows) j).
  rewrite (sum_ext _ (fun left => sum (fun b => f left (k + b) * ways_to_draw n limits tail many b) (places 0 high))).
  - rewrite sum_swap. apply sum_ext. intros b _. rewrite sum_times. unfold f, both. now rewrite geometric_has_its_law.
  - intros left _. transitivity (sum (fun b => sum (fun right => f left (k + b) * f right b) both) (places 0 high)).
    + rewrite sum_swap. apply sum_ext. intros right I. apply strings_length in I. unfold f, laplace.
      destruct (geometric limits tail right) as [r|] eqn:E.
      * apply geometric_range in E. cbn [leads]. rewrite sum_single by (unfold high; nia).
        destruct (geometric limits tail left) as [l|]; [|easy]. cbn [leads]. f_equal.
        apply Bool.eq_true_iff_eq. rewrite !Z.eqb_eq. lia.
      * cbn [leads]. rewrite (sum_zero _ (places 0 high)) by (intros; lia). now destruct (geometric limits tail left).
    + apply sum_ext. intros b _. rewrite sum_scale. unfold f, both. now rewrite geometric_has_its_law.
Qed.

End Sampler.
