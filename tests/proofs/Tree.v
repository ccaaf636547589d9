(** The counting trees of continual release (core/noise/counting_tree.py): what one unit moves in all nodes together, and that
    the nodes of an epoch add up to its count, so that an answer is a function of noisy nodes. *)

From Proofs Require Import Stable.

Section Tree.
Context {A : Type} `{Eq A}.

(** Of each segment its first epoch, the sizes of its levels, and what each level spends of [whole], that is epsilon. *)
Variable segment : Z -> Z.
Variable start : Z -> Z.
Variable sizes : Z -> list Z.
Variable shares : Z -> list Z.
Variable whole : Z.
Hypothesis spends : forall s, sum id (shares s) = whole /\ forall share, In share (shares s) -> 0 <= share.

(** A node: its segment, level and place. *)
Definition node : Type := Z * Z * Z.
Definition at_level {T} (l : list T) (level : Z) (default : T) : T := nth (Z.to_nat level) l default.
Definition node_of (epoch level : Z) : node :=
  (segment epoch, level, (epoch - start (segment epoch)) / at_level (sizes (segment epoch)) level 1).
Definition spent (n : node) : Z := let '(s, level, _) := n in if level <? 0 then 0 else at_level (shares s) level 0.
Definition counts (n : node) (epoch : Z) : bool := let '(_, level, _) := n in same (node_of epoch level) n.

(** What a node counts of a stream, which is what changes at each epoch. *)
Definition count (epochs : list Z) (n : node) (stream : Z -> coll A) : coll A := flat_map stream (filter (counts n) epochs).

Lemma spent_positive n : 0 <= spent n.
Proof.
  destruct n as [[s level] place]. unfold spent, at_level. destruct (level <? 0); [easy|].
  destruct (nth_in_or_default (Z.to_nat level) (shares s) 0) as [I| ->]; [now apply spends in I|easy].
Qed.

(** An epoch is in one node of each level. *)
Lemma one_of_each_level nodes epoch : NoDup nodes -> sum (fun n => if counts n epoch then spent n else 0) nodes <= whole.
Proof.
  intros N. rewrite <- (proj1 (spends (segment epoch))).
  set (levels := map Z.of_nat (seq 0 (length (shares (segment epoch))))).
  transitivity (sum (fun level => spent (node_of epoch level)) levels).
  - transitivity (sum (fun n => sum (fun level => if same (node_of epoch level) n then spent n else 0) levels) nodes).
    + apply sum_le. intros [[s level] place] _. unfold counts.
      assert (forall l, 0 <= sum (fun level' => if same (node_of epoch level') (s, level, place) then spent (s, level, place) else 0) l) as P.
      { intros l. apply sum_nonneg. intros x _. pose proof (spent_positive (s, level, place)). destruct (same _ _); lia. }
      destruct (same (node_of epoch level) (s, level, place)) eqn:E; [|apply P].
      destruct (in_dec Z.eq_dec level levels) as [I|O].
      * destruct (in_split _ _ I) as (u & v & ->). rewrite sum_app. cbn [sum]. rewrite E.
        pose proof (P u). pose proof (P v). lia.
      * apply same_true in E. enough (spent (s, level, place) = 0) as Zero by (pose proof (P levels); lia).
        unfold node_of in E. injection E as <- _. unfold spent, at_level.
        destruct (Z.ltb_spec level 0) as [L|L]; [easy|]. apply nth_overflow. apply Nat.nlt_ge. intros M. apply O.
        unfold levels. apply in_map_iff. exists (Z.to_nat level). split; [lia|]. apply in_seq. lia.
    + rewrite sum_swap. apply sum_le. intros level _. destruct (in_dec eq_dec (node_of epoch level) nodes) as [I|O].
      * rewrite (sum_ext _ (fun n => if same (node_of epoch level) n then spent (node_of epoch level) else 0)).
        { rewrite sum_at by easy. lia. }
        intros n _. destruct (same (node_of epoch level) n) eqn:E; [|easy]. apply same_true in E. now subst.
      * rewrite sum_zero; [apply spent_positive|]. intros n I. destruct (same (node_of epoch level) n) eqn:E; [|easy].
        apply same_true in E. now subst.
  - unfold levels. rewrite sum_map. apply Z.eq_le_incl. unfold spent, node_of, at_level.
    rewrite (sum_ext _ (fun i => nth i (shares (segment epoch)) 0)).
    + induction (shares (segment epoch)) as [|x l IH]; [easy|]. cbn [length seq sum nth]. rewrite <- seq_shift, sum_map, IH. easy.
    + intros i _. destruct (Z.ltb_spec (Z.of_nat i) 0); [lia|]. now rewrite Nat2Z.id.
Qed.

(** All nodes, each weighed by its share of epsilon: they move by no more than the changes of all epochs together. *)
Theorem a_unit_costs_epsilon epochs nodes (c d : Z -> coll A) : NoDup nodes ->
  sum (fun n => spent n * dist (count epochs n c) (count epochs n d)) nodes
    <= whole * sum (fun epoch => dist (c epoch) (d epoch)) epochs.
Proof.
  intros N. transitivity (sum (fun n => sum (fun epoch => if counts n epoch then spent n * dist (c epoch) (d epoch) else 0) epochs) nodes).
  - apply sum_le. intros n _. unfold count. etransitivity.
    + apply Z.mul_le_mono_nonneg_l; [apply spent_positive|apply dist_flat_map].
    + rewrite sum_filter, <- sum_scale. apply sum_le. intros epoch _. destruct (counts n epoch); lia.
  - rewrite sum_swap, <- sum_scale. apply sum_le. intros epoch _.
    rewrite (sum_ext _ (fun n => dist (c epoch) (d epoch) * (if counts n epoch then spent n else 0)))
      by (intros n _; destruct (counts n epoch); lia).
    rewrite sum_scale. pose proof (one_of_each_level nodes epoch N). pose proof (dist_nonneg (c epoch) (d epoch)). nia.
Qed.

End Tree.

(** core/noise/counting_tree.py, [Segment.parts]: which nodes of one tree, with which signs, make its first [many] nodes. *)
Definition places (low high : Z) : list Z := map (fun i => low + Z.of_nat i) (seq 0 (Z.to_nat (high - low))).
Fixpoint parts (length level many : Z) (sizes : list Z) : list (Z * Z * Z) :=
  match sizes with
  | [] => []
  | size :: rest =>
      match rest with
      | [] => if many =? 0 then [] else [(level, 0, 1)]
      | larger :: _ =>
          let held := - (- length / size) in
          let group := - (- larger / size) in
          let low := many - many mod group in
          let high := Z.min (low + group) held in
          if many - low <=? high - many
          then map (fun place => (level, place, 1)) (places low many) ++ parts length (level + 1) (low / group) rest
          else map (fun place => (level, place, -1)) (places many high)
            ++ parts length (level + 1) ((low + group) / group) rest
      end
  end.

(** The first node of a level has [size] epochs, the next so many more, and the largest holds all. *)
Fixpoint fits (length : Z) (sizes : list Z) : Prop :=
  match sizes with
  | [] => False
  | size :: rest => 1 <= size <= length /\
      match rest with [] => size = length | larger :: more => fits length rest /\ ((size | larger) \/ more = []) end
  end.

Section Prefix.
Variable length : Z.

(** What changes at each epoch of the segment, from 0: of one bin. *)
Variable change : Z -> Z.
Definition prefix (n : Z) : Z := sum (fun i => if i <? n then change i else 0) (places 0 length).
Definition value (size place : Z) : Z := sum (fun i => if i / size =? place then change i else 0) (places 0 length).

Lemma in_places low high i : In i (places low high) <-> low <= i < high.
Proof.
  unfold places. rewrite in_map_iff. split; [intros (j & <- & I); apply in_seq in I; lia|].
  intros I. exists (Z.to_nat (i - low)). rewrite in_seq. lia.
Qed.

Lemma prefix_full n m : length <= n -> length <= m -> prefix n = prefix m.
Proof.
  intros N M. apply sum_ext. intros i I. apply in_places in I. destruct (Z.ltb_spec i n), (Z.ltb_spec i m); lia.
Qed.

Lemma value_of_node size place : 1 <= size -> value size place = prefix ((place + 1) * size) - prefix (place * size).
Proof.
  intros P. unfold value, prefix. rewrite <- sum_minus. apply sum_ext. intros i _.
  pose proof (Z.div_mod i size ltac:(lia)). pose proof (Z.mod_pos_bound i size ltac:(lia)).
  destruct (Z.eqb_spec (i / size) place), (Z.ltb_spec i ((place + 1) * size)), (Z.ltb_spec i (place * size)); nia.
Qed.

Lemma nodes_in_a_row size low n : 1 <= size ->
  sum (value size) (map (fun i => low + Z.of_nat i) (seq 0 n)) = prefix ((low + Z.of_nat n) * size) - prefix (low * size).
Proof.
  intros P. induction n as [|n IH]; [rewrite Z.add_0_r; cbn [seq map sum]; lia|].
  rewrite seq_S, map_app, sum_app, IH. cbn [map sum Nat.add]. rewrite value_of_node by easy.
  replace (low + Z.of_nat n + 1) with (low + Z.of_nat (S n)) by lia. lia.
Qed.

Lemma nodes_between size low high : 1 <= size -> low <= high ->
  sum (value size) (places low high) = prefix (high * size) - prefix (low * size).
Proof. intros P L. unfold places. rewrite nodes_in_a_row by easy. rewrite Z2Nat.id by lia. do 3 f_equal. lia. Qed.

(** The nodes of [parts], each with its sign. *)
Definition signed (all : list Z) (n : Z * Z * Z) : Z := let '(level, place, sign) := n in sign * value (at_level all level 1) place.

Lemma signed_level all level size sign ps : at_level all level 1 = size ->
  sum (signed all) (map (fun place => (level, place, sign)) ps) = sign * sum (value size) ps.
Proof. intros E. rewrite sum_map, <- sum_scale. apply sum_ext. intros place _. unfold signed. now rewrite E. Qed.

Theorem parts_make_the_count all sizes : forall level many, fits length sizes -> 0 <= level ->
  (forall i, 0 <= i -> at_level all (level + i) 1 = at_level sizes i 1) -> 0 <= many -> (many - 1) * hd 1 sizes < length ->
  sum (signed all) (parts length level many sizes) = prefix (many * hd 1 sizes).
Proof.
  induction sizes as [|size rest IH]; intros level many F L E M B; [easy|]. cbn [hd] in *.
  assert (at_level all level 1 = size) as Here. { rewrite <- (Z.add_0_r level), E by lia. easy. }
  destruct F as [P F]. destruct rest as [|larger more].
  - subst size. cbn [parts]. destruct (Z.eqb_spec many 0) as [->|N].
    + cbn [sum]. unfold prefix. symmetry. apply sum_zero. intros i I. apply in_places in I. destruct (Z.ltb_spec i (0 * length)); lia.
    + assert (many = 1) as -> by nia. cbn [sum signed]. rewrite Here, value_of_node by lia.
      assert (prefix (0 * length) = 0) as ->. { apply sum_zero. intros i I. apply in_places in I. destruct (Z.ltb_spec i (0 * length)); lia. }
      cbn [Z.add]. lia.
  - destruct F as [F D]. set (held := - (- length / size)). set (group := - (- larger / size)).
    set (low := many - many mod group). set (high := Z.min (low + group) held).
    assert (1 <= larger <= length) as PL by (destruct more; apply F).
    assert (larger <= group * size < larger + size) as G.
    { unfold group. pose proof (Z.div_mod (- larger) size ltac:(lia)). pose proof (Z.mod_pos_bound (- larger) size ltac:(lia)). nia. }
    assert (length <= held * size < length + size) as Hd.
    { unfold held. pose proof (Z.div_mod (- length) size ltac:(lia)). pose proof (Z.mod_pos_bound (- length) size ltac:(lia)). nia. }
    assert (1 <= group) as G1 by nia. assert (many <= held) as MH by nia.
    pose proof (Z.div_mod many group ltac:(lia)) as Q. pose proof (Z.mod_pos_bound many group ltac:(lia)) as R.
    set (q := many / group) in *. assert (low = group * q) as Low by (unfold low; lia).
    assert (0 <= q) as Q0 by (apply Z.div_pos; lia).
    assert (low / group = q) as Dq by (rewrite Low, Z.mul_comm; apply Z.div_mul; lia).
    assert ((low + group) / group = q + 1) as Dq'.
    { rewrite Low. replace (group * q + group) with ((q + 1) * group) by ring. apply Z.div_mul; lia. }
    assert (group * size = larger \/ larger = length) as Whole.
    { destruct D as [[k K]|D]; [left|right]; [assert (k <= group) by nia; assert (group <= k) by nia; replace group with k by lia; lia|]. subst more. now destruct F. }
    assert (forall k, 0 <= k -> prefix (group * k * size) = prefix (k * larger)) as Same.
    { intros k K. destruct Whole as [W|W]; [f_equal; nia|]. destruct (Z.eq_dec k 0) as [->|N]; [f_equal; lia|].
      apply prefix_full; nia. }
    assert (forall i, 0 <= i -> at_level all (level + 1 + i) 1 = at_level (larger :: more) i 1) as E'.
    { intros i I. replace (level + 1 + i) with (level + (1 + i)) by lia. rewrite E by lia. unfold at_level.
      now replace (Z.to_nat (1 + i)) with (S (Z.to_nat i)) by lia. }
    change (parts length level many (size :: larger :: more)) with
      (if many - low <=? high - many
       then map (fun place => (level, place, 1)) (places low many) ++ parts length (level + 1) (low / group) (larger :: more)
       else map (fun place => (level, place, -1)) (places many high)
         ++ parts length (level + 1) ((low + group) / group) (larger :: more)).
    rewrite Dq, Dq'. destruct (Z.leb_spec (many - low) (high - many)) as [C|C]; rewrite sum_app, (signed_level all level size) by easy.
    + rewrite nodes_between by lia. rewrite IH; try easy; try lia; cbn [hd].
      * rewrite Low, Same by lia. lia.
      * destruct Whole as [W|W]; [nia|]. assert (q <= 1) by nia. nia.
    + rewrite nodes_between by lia. rewrite IH; try easy; try lia; cbn [hd].
      * assert (prefix (high * size) = prefix ((low + group) * size)) as ->.
        { unfold high. destruct (Z.min_spec (low + group) held) as [[_ ->]|[W ->]]; [easy|]. apply prefix_full; nia. }
        rewrite Low. replace (group * q + group) with (group * (q + 1)) by ring. rewrite Same by lia. lia.
      * destruct Whole as [W|W]; [nia|]. assert (q = 0) by nia. nia.
Qed.

End Prefix.
