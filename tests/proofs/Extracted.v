(** The definitions as a program: what the bridge to the engines runs. Integers stay Coq's own, of any size. *)

From Proofs Require Import Stable RecordByRecord WeightByWeight Fill GroupBy WholeGroups Join Users Threshold Tree Books Dither Sampler Gaussian.
From Coq Require Import Extraction ExtrOcamlBasic.

Extraction Language OCaml.
Extraction "definitions.ml" map_records filter_records flat_map_records first_outputs distinct shave signed_sum union
  intersect limit semijoin antijoin group_by whole_groups join join_rows left_rows by_user sample share above_zero ways
  parts composed rounded below laplace first_words find items Z.pow.
