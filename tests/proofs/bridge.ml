(* Runs the definitions that Coq extracted: a case on each line, its answer on a line.
   A line is "name;integers;table/table;collection;collection": a table has a list of integers for each record, which is
   its number, and a collection is "record:weight record:weight". An answer is a collection, whose records are integers
   with dots between them, and whose weights are in binary. *)

open Definitions

let rec positive n = if n = 1 then XH else if n land 1 = 1 then XI (positive (n lsr 1)) else XO (positive (n lsr 1))
let integer n = if n = 0 then Z0 else if n > 0 then Zpos (positive n) else Zneg (positive (-n))
let rec nat n = if n = 0 then O else S (nat (n - 1))
let rec small_nat n = match n with O -> 0 | S n -> 1 + small_nat n
let rec bits p = match p with XH -> "1" | XO p -> bits p ^ "0" | XI p -> bits p ^ "1"
let binary z = match z with Z0 -> "0" | Zpos p -> bits p | Zneg p -> "-" ^ bits p
let rec small p = match p with XH -> 1 | XO p -> 2 * small p | XI p -> (2 * small p) + 1
let number z = match z with Z0 -> 0 | Zpos p -> small p | Zneg p -> -small p

let split c text = if text = "" then [] else String.split_on_char c text
let integers text = List.map int_of_string (split ' ' text)
let table text = Array.of_list (List.map integers (String.split_on_char ',' text))
let collection text =
  let item one = Scanf.sscanf one "%d:%d" (fun record weight -> (record, integer weight)) in
  List.map item (split ' ' text)

let shown records answer =
  let item (record, weight) = String.concat "." (List.map string_of_int (records record)) ^ ":" ^ binary weight in
  String.concat " " (List.map item answer)

let same (a : int) (b : int) = a = b
let one record = [ record ]
let rank place = fun record -> integer (List.hd place.(record))
let key place = fun record -> List.hd place.(record)
let power bits = Z.pow (integer 2) (integer bits)

let rec words row = match row with
  | high :: low :: rest -> Z.add (Z.mul (integer high) (power 32)) (integer low) :: words rest
  | _ -> []
let threshold row depth = List.nth (words row) (small_nat depth)

let answer name numbers tables c d =
  let c = items same c and d = items same d in
  let number_at i = List.nth numbers i and t i = List.nth tables i in
  let made = fun record -> match (t 0).(record) with [] -> None | -1 :: made -> Some made | made -> Some made in
  match name with
  | "map" -> shown one (map_records (fun x -> match (t 0).(x) with [] -> None | y :: _ -> Some y) c)
  | "filter" -> shown one (filter_records (fun x -> (t 0).(x) <> []) c)
  | "flat_map" -> shown one (flat_map_records (integer (number_at 0)) made c)
  | "first" -> shown one (first_outputs (nat (number_at 0)) made c)
  | "distinct" -> shown one (distinct (integer (number_at 0)) c)
  | "shave" ->
      let thickness x = match (t 0).(x) with [] -> None | many -> Some (List.map integer many) in
      shown (fun (x, i) -> [ x; number i ]) (shave thickness c)
  | "sum" -> shown one (signed_sum (integer (number_at 0)) c d)
  | "union" -> shown one (union same c d)
  | "intersect" -> shown one (intersect same c d)
  | "limit" -> shown one (limit same (key (t 0)) (rank (t 1)) (integer (number_at 0)) c)
  | "semijoin" -> shown one (semijoin same (key (t 0)) (key (t 2)) (rank (t 1)) c d)
  | "antijoin" -> shown one (antijoin same (key (t 0)) (key (t 2)) (rank (t 1)) c d)
  | "group_by" ->
      shown (fun (k, members) -> k :: members) (group_by same (key (t 0)) (List.sort compare) c)
  | "whole" -> shown (fun (k, members) -> k :: members) (whole_groups same (key (t 0)) (List.sort compare) c)
  | "sample" ->
      (* the bound, and that of each place; tables of users, of ranks of each copy, and of places *)
      let rank record n = integer (List.nth (t 1).(record) (number n - 1)) in
      let per = match numbers with [ _; most ] -> Some (nat most) | _ -> None in
      shown one (by_user same (key (t 0)) (sample same (key (t 2)) rank per (nat (number_at 0))) c)
  | "share" -> shown one (by_user same (key (t 0)) (fun g -> share (integer (number_at 0)) (above_zero g)) c)
  | "ways" ->
      (* no collection: of each bin of a way its units, and how many there are *)
      let numbered i = List.map (fun (units, bins) -> ((i, units), bins)) in
      let ways = List.mapi numbered (ways (integer (number_at 0)) (integer (number_at 1))) in
      shown (fun (way, units) -> [ way; number units ]) (List.concat ways)
  | "parts" ->
      let found = parts (integer (number_at 0)) Z0 (integer (number_at 1)) (List.map integer (t 0).(0)) in
      shown (fun (level, place) -> [ number level; number place ]) found
  | "book" ->
      (* each row of the table an amount and its path; the total after each of them *)
      let rec pairs row = match row with group :: name :: rest -> (group, name) :: pairs rest | _ -> [] in
      let after (i, costs) row =
        let costs = (pairs (List.tl row), integer (List.hd row)) :: costs in
        ((i + 1, costs), (i, snd (composed same costs))) in
      shown one (snd (List.fold_left_map after (0, []) (Array.to_list (t 0))))
  | "rounded" ->
      (* a numerator, its denominator, and a draw of 64 bits in two halves *)
      let draw = Z.add (Z.mul (integer (number_at 2)) (power 32)) (integer (number_at 3)) in
      shown one [ (0, rounded (power 64) (integer (number_at 1)) (integer (number_at 0)) draw) ]
  | "laplace" ->
      (* tables of thresholds, the tail last, and of both sides' rows: the words of each, in two halves *)
      let tail, digits = match List.rev (List.map threshold (Array.to_list (t 0))) with
        | tail :: rest -> (tail, List.rev rest)
        | [] -> failwith name in
      let side i = List.map words (Array.to_list (t i)) in
      (match laplace digits tail (side 1) (side 2) with Some noise -> shown one [ (0, noise) ] | None -> "")
  | "below" ->
      (match below (threshold (t 0).(0)) O (words (t 1).(0)) with
       | Some taken -> shown one [ (0, if taken then Zpos XH else Z0) ]
       | None -> "")
  | "find" ->
      (* cumulated chances, and the words that are compared with them, of 32 bits *)
      let limit row depth = integer (List.nth row (small_nat depth)) in
      (match find (List.map limit (Array.to_list (t 0))) (List.map integer (t 1).(0)) with
       | Some block -> shown one [ (0, block) ]
       | None -> "")
  | "places" ->
      let depth = nat (List.length (t 0).(0) / 2) in
      shown one [ (0, first_words (power 64) (threshold (t 0).(0)) O depth) ]
  | "join" ->
      (* K, a power of two, and what is subtracted, in two halves of 40 bits *)
      let cut = Z.add (Z.mul (integer (number_at 1)) (power 40)) (integer (number_at 2)) in
      shown (fun pair -> pair) (join same (key (t 0)) (key (t 1)) (fun x y -> [ x; y ]) (power (number_at 0)) cut c d)
  | "join_rows" ->
      shown (fun pair -> pair) (join_rows same (key (t 0)) (key (t 1)) (fun x y -> [ x; y ]) c d)
  | "left_rows" ->
      let unit = integer (number_at 0) in
      shown (fun pair -> pair) (left_rows same (key (t 0)) (key (t 1)) (fun x y -> [ x; y ]) (fun x -> [ x ]) unit c d)
  | _ -> failwith name

let () =
  try
    while true do
      match String.split_on_char ';' (input_line stdin) with
      | [ name; numbers; tables; c; d ] ->
          let tables = List.map table (split '/' tables) in
          print_endline (answer name (integers numbers) tables (collection c) (collection d))
      | _ -> failwith "a line has five fields"
    done
  with End_of_file -> ()
