(** The definitions as a program: what the bridge to the engines runs. Integers stay Coq's own, of any size. *)

From Proofs Require Import Stable RecordByRecord WeightByWeight Fill GroupBy Join Users.
From Coq Require Import Extraction ExtrOcamlBasic.

Extraction Language OCaml.
Extraction "definitions.ml" map_records filter_records flat_map_records first_outputs distinct shave signed_sum union
  intersect limit semijoin antijoin group_by join join_rows left_rows items Z.pow.
