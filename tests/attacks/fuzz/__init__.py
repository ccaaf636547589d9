"""Random programs over the public face, run with and without one privacy unit, and what must hold of any of them.

A case (`case`) is tables and lines of Python: it is grown at random (`grow`, over `pools` of odd values), run twice or
more (`run`), judged (`judge`, with the definitions of the papers in `oracle`), made small (`shrink`) and printed as a
program. `plants` are bugs that once were there, and the seeds that find them when they are put back.

These are the fuzzer `cases`. Each of the others has cases of its own: `queries` (SQL on neighbours), `divergences`
(exact divergences of both books), `lengths` (what pricing takes, over `shapes` of all functions), `zones` (periods on
clocks), `restarts` (live sources that end and begin again), `readers` (files, over `files`), `streams` (continual keys)
and `served` (two servers that are asked the same). One `fuzzer.Fuzzer` each runs them, by one command line:

    python -m attacks.fuzz [--of NAME] [--minutes 10] [--seed S] [--case S] [--theme NAME] [--plant [WHICH]]

in tests/, or with PYTHONPATH=tests. `--plant` puts bugs back (`plant`), and tells which case finds each.
"""
