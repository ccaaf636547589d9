"""Random programs over the public face, run with and without one privacy unit, and what must hold of any of them.

A case (`case`) is tables and lines of Python: it is grown at random (`grow`, over `pools` of odd values), run twice or
more (`run`), judged (`judge`, with the definitions of the papers in `oracle`), made small (`shrink`) and printed as a
program. `plants` are bugs that once were there, and the seeds that find them when they are put back. `served` asks two
servers, over data with and without one unit, the same (`served_steps`), with plants of its own (`served_plants`).
`readers` (over `files`) and `streams` grow files and streams of their own, by `hunting`.

`zones` and `restarts` do so of periods on clocks, and of live sources that end and begin again (`search` runs them).

    python -m attacks.fuzz [--minutes 10] [--seed 0] [--served] [--plant NAME]     in tests/, or with PYTHONPATH=tests

Beside it, by the same command line (`long`): `attacks.fuzz.queries` (SQL on neighbours), `attacks.fuzz.divergences`
(exact divergences of both books) and `attacks.fuzz.lengths` (what pricing takes, over `shapes` of all functions).
"""
