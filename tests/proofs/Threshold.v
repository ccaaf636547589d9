(** The threshold of core/noise/threshold.py: of all ways in which a unit can be spread over bins, three are the worst.

    A unit puts [w] units, 1 to [C], into each bin that it alone is in, [M] in all. A bin stays hidden with the
    probability exp(-f w), and all of them with exp(-sum), so the largest sum is what counts. [f] is convex, since the
    noise is log-concave. Its values are integers here, which says it for real ones too: convexity and "more than all
    three" are linear inequalities with integer coefficients, and such have real solutions only where they have rational
    ones, and so, multiplied, integer ones. *)

From Proofs Require Import Sums.

Section Threshold.
Variable f : Z -> Z.
Variable C : Z.
Hypothesis positive : 1 <= C.
Hypothesis first : 0 <= f 1.
Hypothesis convex : forall w, 1 < w < C -> f w - f (w - 1) <= f (w + 1) - f w.

(** What [s] units show at the most, alone in a bin or each in its own: convex from 0 on. *)
Definition some (s : Z) : Z := if s =? 0 then 0 else Z.max (s * f 1) (f s).

Lemma some_convex s : 0 < s < C -> some s - some (s - 1) <= some (s + 1) - some s.
Proof.
  intros S. unfold some. replace ((s - 1) * f 1) with (s * f 1 - f 1) by ring.
  replace ((s + 1) * f 1) with (s * f 1 + f 1) by ring.
  destruct (Z.eqb_spec s 0), (Z.eqb_spec (s - 1) 0), (Z.eqb_spec (s + 1) 0); try lia.
  - replace s with 1 in * by lia. lia.
  - specialize (convex s). lia.
Qed.

Lemma slopes d : forall x, 0 <= x -> x + Z.of_nat d < C ->
  some (x + 1) - some x <= some (x + Z.of_nat d + 1) - some (x + Z.of_nat d).
Proof.
  induction d as [|d IH]; intros x X D; [rewrite Z.add_0_r; lia|]. specialize (IH x X ltac:(lia)).
  pose proof (some_convex (x + Z.of_nat (S d)) ltac:(lia)) as P.
  replace (x + Z.of_nat (S d) - 1) with (x + Z.of_nat d) in P by lia.
  replace (x + Z.of_nat d + 1) with (x + Z.of_nat (S d)) in IH by lia. lia.
Qed.

(** The further apart two numbers of the same sum are, the more they show. *)
Lemma apart d : forall x y, 0 <= x -> x + Z.of_nat d <= y - Z.of_nat d -> y <= C ->
  some (x + Z.of_nat d) + some (y - Z.of_nat d) <= some x + some y.
Proof.
  induction d as [|d IH]; intros x y X D Y; [rewrite Z.add_0_r, Z.sub_0_r; lia|].
  specialize (IH x y X ltac:(lia) Y).
  pose proof (slopes (Z.to_nat (y - Z.of_nat (S d) - (x + Z.of_nat d))) (x + Z.of_nat d) ltac:(lia) ltac:(lia)) as P.
  rewrite Z2Nat.id in P by lia.
  replace (x + Z.of_nat d + (y - Z.of_nat (S d) - (x + Z.of_nat d))) with (y - Z.of_nat (S d)) in P by lia.
  replace (y - Z.of_nat (S d) + 1) with (y - Z.of_nat d) in P by lia.
  replace (x + Z.of_nat d + 1) with (x + Z.of_nat (S d)) in P by lia. lia.
Qed.

Lemma moved x y x' y' : 0 <= x' <= x -> y <= y' <= C -> x' <= y -> x + y = x' + y' -> some x + some y <= some x' + some y'.
Proof.
  intros X Y O E. destruct (Z.le_ge_cases x y).
  - pose proof (apart (Z.to_nat (x - x')) x' y' ltac:(lia) ltac:(lia) ltac:(lia)) as P.
    rewrite Z2Nat.id in P by lia. replace (x' + (x - x')) with x in P by lia. now replace (y' - (x - x')) with y in P by lia.
  - pose proof (apart (Z.to_nat (y - x')) x' y' ltac:(lia) ltac:(lia) ltac:(lia)) as P.
    rewrite Z2Nat.id in P by lia. replace (x' + (y - x')) with y in P by lia. replace (y' - (y - x')) with x in P by lia. lia.
Qed.

(** What [n] units show at the most: full bins, and what is left. *)
Definition most (n : Z) : Z := n / C * some C + some (n mod C).

Lemma one_more_bin n w : 0 <= n -> 1 <= w <= C -> most n + some w <= most (n + w).
Proof.
  intros N W. unfold most. pose proof (Z.div_mod n C ltac:(lia)) as E. pose proof (Z.mod_pos_bound n C ltac:(lia)) as B.
  destruct (Z.lt_ge_cases (n mod C + w) C) as [L|L].
  - rewrite <- (Z.div_unique_pos (n + w) C (n / C) (n mod C + w)), <- (Z.mod_unique_pos (n + w) C (n / C) (n mod C + w)) by lia.
    pose proof (moved (n mod C) w 0 (n mod C + w)). change (some 0) with 0 in *. lia.
  - rewrite <- (Z.div_unique_pos (n + w) C (n / C + 1) (n mod C + w - C)), <- (Z.mod_unique_pos (n + w) C (n / C + 1) (n mod C + w - C)) by lia.
    pose proof (moved (n mod C) w (n mod C + w - C) C). lia.
Qed.

Lemma bins_show_less ws : (forall w, In w ws -> 1 <= w <= C) -> sum f ws <= most (sum id ws).
Proof.
  intros W. induction ws as [|w ws IH].
  - unfold most. cbn [sum]. rewrite Z.div_0_l, Z.mod_0_l by lia. easy.
  - cbn [sum]. specialize (IH ltac:(intros v I; apply W; now right)). pose proof (W w (or_introl eq_refl)) as V.
    assert (0 <= sum id ws) as P. { apply sum_nonneg. intros v I. specialize (W v (or_intror I)). unfold id. lia. }
    pose proof (one_more_bin _ w P V) as O. rewrite (Z.add_comm (id w)). change (id w) with w.
    enough (f w <= some w) by lia. unfold some. destruct (Z.eqb_spec w 0); lia.
Qed.

Lemma most_grows d : forall n, 0 <= n -> most n <= most (n + Z.of_nat d).
Proof.
  induction d as [|d IH]; intros n N; [rewrite Z.add_0_r; lia|]. specialize (IH n N).
  pose proof (one_more_bin (n + Z.of_nat d) 1 ltac:(lia) ltac:(lia)) as O.
  replace (n + Z.of_nat d + 1) with (n + Z.of_nat (S d)) in O by lia.
  assert (0 <= some 1) by (unfold some; simpl; lia). lia.
Qed.

(** core/noise/threshold.py, [seen_bounds]: M bins of 1; q of C and s of 1; q of C and one of s. *)
Definition ways (M : Z) : list (list (Z * Z)) :=
  let (full, rest) := (M / C, M mod C) in [[(1, M)]; [(C, full); (1, rest)]; [(C, full); (rest, if rest =? 0 then 0 else 1)]].
Definition shown (way : list (Z * Z)) : Z := sum (fun bins => snd bins * f (fst bins)) way.

(** Where [C] units show no more in one bin than in bins of their own, no smaller number does. *)
Lemma above d : forall s, 1 <= s -> s + Z.of_nat d <= C -> s * f 1 < f s -> (s + Z.of_nat d) * f 1 < f (s + Z.of_nat d).
Proof.
  induction d as [|d IH]; intros s L D A; [now rewrite Z.add_0_r|]. specialize (IH s L ltac:(lia) A).
  set (t := s + Z.of_nat d) in *. replace (s + Z.of_nat (S d)) with (t + 1) in * by lia.
  pose proof (slopes (Z.to_nat t) 0 ltac:(lia) ltac:(lia)) as P. rewrite Z2Nat.id in P by lia. cbn [Z.add] in P.
  unfold some in P. replace ((t + 1) * f 1) with (t * f 1 + f 1) in * by ring.
  destruct (Z.eqb_spec t 0), (Z.eqb_spec (t + 1) 0); try lia. cbn [Z.eqb] in P. lia.
Qed.

Lemma most_is_a_way M : 0 <= M -> exists way, In way (ways M) /\ most M <= shown way.
Proof.
  intros P. pose proof (Z.div_mod M C ltac:(lia)) as E. pose proof (Z.mod_pos_bound M C ltac:(lia)) as B.
  assert (0 <= M / C) as Q by (apply Z.div_pos; lia). unfold most, ways. set (q := M / C) in *. set (s := M mod C) in *.
  assert (some C = Z.max (C * f 1) (f C)) as Full by (unfold some; destruct (Z.eqb_spec C 0); lia).
  destruct (Z.le_gt_cases (f C) (C * f 1)) as [F|F].
  - (* each in its own *)
    assert (some s <= s * f 1) as R.
    { unfold some. destruct (Z.eqb_spec s 0); [lia|]. enough (~ s * f 1 < f s) by lia. intros A.
      pose proof (above (Z.to_nat (C - s)) s ltac:(lia) ltac:(lia) A) as N. rewrite Z2Nat.id in N by lia.
      replace (s + (C - s)) with C in N by lia. lia. }
    eexists. split; [now left|]. unfold shown. cbn [sum fst snd]. rewrite Full, Z.max_l by lia. nia.
  - rewrite Full, Z.max_r by lia. unfold some, shown. destruct (Z.eqb_spec s 0) as [->|N].
    + eexists. split; [now right; left|]. cbn [sum fst snd]. lia.
    + destruct (Z.max_spec (s * f 1) (f s)) as [[_ ->]|[_ ->]]; eexists.
      * split; [now right; right; left|]. cbn [sum fst snd]. lia.
      * split; [now right; left|]. cbn [sum fst snd]. lia.
Qed.

(** However a unit is spread over bins: one of the three shows at least as much. *)
Theorem three_ways_are_the_worst M ws : (forall w, In w ws -> 1 <= w <= C) -> sum id ws <= M ->
  exists way, In way (ways M) /\ sum f ws <= shown way.
Proof.
  intros W L. assert (0 <= sum id ws) as P. { apply sum_nonneg. intros w I. specialize (W w I). unfold id. lia. }
  destruct (most_is_a_way M ltac:(lia)) as (way & I & S). exists way. split; [easy|].
  pose proof (bins_show_less ws W). pose proof (most_grows (Z.to_nat (M - sum id ws)) _ P) as G.
  rewrite Z2Nat.id in G by lia. replace (sum id ws + (M - sum id ws)) with M in G by lia. lia.
Qed.

(** And they are ways to spread it: none is looked at in vain. *)
Theorem ways_spend_it_all M way : 0 <= M -> In way (ways M) -> sum (fun bins => snd bins * fst bins) way = M.
Proof.
  intros P I. pose proof (Z.div_mod M C ltac:(lia)) as E. unfold ways in I.
  destruct I as [<-|[<-|[<-|[]]]]; cbn [sum fst snd]; try lia. destruct (Z.eqb_spec (M mod C) 0); lia.
Qed.

End Threshold.
