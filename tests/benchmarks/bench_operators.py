"""Join, group_by and triangles by intersect (TbI) beside the same weighted query written by hand in Polars.

Usage: python tests/benchmarks/bench_operators.py [--records N] [--rounds N] [--json OUT] [--smoke]

Each side of each case runs in a process of its own, so that its peak memory is its own; the two take turns, and the
least of the rounds counts, since other work on a machine only ever adds: of seconds, and of processor seconds, which
are what to compare on a machine that is shared. Starting up and making the tables is not in the times; it is in the
memory. By hand, weights are floats; here they are exact, by identity, and ready for noise.

How a heavy key is handled: each side is summed over the records of a key that agree in the columns read later, and the
sums are paired. So Zipf keys are quicker than uniform ones. `heavy key` is one key of 20,000 records a side, whose
4 * 10^8 pairs are all told apart by the function of the result: they are made some millions at a time and added up,
here and by hand (by hand all at once they would take more than 20 GB).
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from flags import flags

import wpinq
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.node import sources

sys.path.insert(0, str(Path(__file__).parents[2]))  # the shipped dataflows lie beside the tests

from wpinq import graphs as graph

DATA = Path(wpinq.__file__).parents[2] / "shared" / "data"
GRAPHS = ("CA-HepTh", "Caltech36")


def keys(kind, count, draw):
    return np.minimum(draw.zipf(1.3, count), count) if kind == "zipf" else draw.integers(0, count // 4, count)


def sides(kind, count):
    draw = np.random.default_rng(1)
    return [pl.DataFrame({"k": keys(kind, count, draw), name: draw.integers(0, 100, count)}) for name in ("x", "y")]


def heavy(count):
    return [pl.DataFrame({"k": np.ones(count, np.int64), name: np.arange(count)}) for name in ("x", "y")]


def arcs(name):
    """The edges of a graph in both directions: a real one, or a random one of 2,000 edges for a smoke run."""
    if name == "random":
        ends = np.random.default_rng(1).integers(0, 300, (2000, 2))
        frame = pl.DataFrame(ends, schema=["src", "dst"], orient="row")
        return pl.concat([frame, frame.select(pl.col("dst").alias("src"), pl.col("src").alias("dst"))])
    found = pl.read_parquet(DATA / f"{name}.parquet")
    return found.rename(dict(zip(found.columns, ["src", "dst"], strict=True)))


def join_by_hand(left, right):
    one = left.group_by("k", "x").agg(pl.len().alias("a"))
    two = right.group_by("k", "y").agg(pl.len().alias("b"))
    total = pl.concat([left.select("k"), right.select("k")]).group_by("k").agg(pl.len().alias("total"))
    weight = (pl.col("a") * pl.col("b") / pl.col("total")).alias("w")
    return one.join(total, on="k").join(two, on="k").with_columns(weight).group_by("x", "y").agg(pl.col("w").sum())


def groups_by_hand(left, right):
    weighed = left.group_by("k", "x").agg(pl.len().cast(pl.Int64).alias("w")).sort("k", "w", descending=[False, True])
    step = pl.col("w") - pl.col("w").shift(-1).over("k").fill_null(0)
    sized = weighed.with_columns(step.alias("d"), pl.col("w").cum_count().over("k").alias("size"))
    return sized.filter(pl.col("d") > 0).group_by("size").agg(pl.col("d").sum() / 2)


def heavy_by_hand(left, right):
    weight, piece = 1 / (left.height + right.height), 200
    parts = [
        left[start : start + piece]
        .join(right, on="k")
        .group_by((pl.col("x") * pl.col("y") % 10).alias("v"))
        .agg(pl.len() * weight)
        for start in range(0, left.height, piece)
    ]
    return pl.concat(parts).group_by("v").agg(pl.col("len").sum())


def tbi_by_hand(edges):
    simple = edges.filter(pl.col("src") != pl.col("dst")).unique()
    degrees = simple.group_by("src").agg((2 * pl.len()).alias("total")).rename({"src": "dst"})
    paths = simple.join(degrees, on="dst").join(simple, left_on="dst", right_on="src")
    ends = paths.group_by("src", "dst_right").agg((1 / pl.col("total")).sum().alias("w"))
    found = ends.join(simple, left_on=["src", "dst_right"], right_on=["src", "dst"])
    return found.select(pl.min_horizontal("w", pl.lit(1.0)).sum())


def value(x, y):
    return x * y % 10


CASES = {
    "join": (lambda one, two: one.join(two, on="k", result=lambda x, y: (x, y)), join_by_hand),
    "group_by": (lambda one, two: one.group_by("k", len).map(lambda value: value), groups_by_hand),
    "heavy key": (lambda one, two: one.join(two, on="k", result=value), heavy_by_hand),
    "TbI": (lambda edges: graph.triangles_by_intersect(graph.simple(edges)), tbi_by_hand),
}


def tables(case, kind, count):
    return [arcs(kind)] if case == "TbI" else heavy(count) if case == "heavy key" else sides(kind, count)


def work(case, kind, count, by_hand):
    """What is timed, made ready."""
    given = tables(case, kind, count)
    ours, theirs = CASES[case]
    if by_hand:
        return lambda: theirs(*given)
    place = tempfile.mkdtemp()
    protected = [
        wpinq.protect(one, budget=1, name=f"side {i}", ledger=f"{place}/{i}.ledger") for i, one in enumerate(given)
    ]
    root = fit_noise(ours(*protected)._node)
    from wpinq.core.engines.bytewax import flow  # which newer Pythons have not

    return lambda: flow.run(flow.Job([root], sources(root)[0].identity_key))


def once(answer, *case):
    """Run in a process of its own: seconds and processor seconds, after one run that warms up, and peak gigabytes."""
    run = work(*case)
    if case[0] != "heavy key":
        run()
    start, worked = time.perf_counter(), time.process_time()
    run()
    times = (time.perf_counter() - start, time.process_time() - worked)
    answer.send((*times, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20))


def apart(*case):
    here, there = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("spawn").Process(target=once, args=(there, *case))
    child.start()
    there.close()
    found = here.recv()
    child.join()
    return found


def compared(case, kind, count, rounds):
    runs = [[apart(case, kind, count, by_hand) for by_hand in (False, True)] for _ in range(rounds)]
    least = [[min(turn[side][what] for turn in runs) for side in (0, 1)] for what in (0, 1)]
    peaks = [max(turn[side][2] for turn in runs) for side in (0, 1)]
    (ours, theirs), (work, their_work) = least
    print(
        f"{case:10} {kind:10} {ours:7.2f} s  by hand {theirs:7.2f} s  ratio {ours / theirs:4.1f}"
        f"  of processor seconds {work / their_work:4.1f}  peak {peaks[0]:4.2f} GB  by hand {peaks[1]:4.2f} GB",
        flush=True,
    )
    return {
        "case": case, "kind": kind, "seconds": ours, "by_hand_seconds": theirs, "ratio": ours / theirs,
        "cpu_seconds": work, "by_hand_cpu_seconds": their_work, "cpu_ratio": work / their_work,
        "peak_gb": peaks[0], "by_hand_peak_gb": peaks[1],
    }  # fmt: skip


def main():
    parser = flags(__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="on each side")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    count, rounds, heaviest = (2000, 1, 500) if given.smoke else (given.records, given.rounds, 20_000)
    cases = [(case, kind, count) for case in ("join", "group_by") for kind in ("uniform", "zipf")]
    cases.append(("heavy key", "one", heaviest))
    graphs = [name for name in GRAPHS if (DATA / f"{name}.parquet").exists()]
    cases += [("TbI", name, 0) for name in (["random"] if given.smoke or not graphs else graphs)]
    found = [compared(*case, rounds) for case in cases]
    if given.json:
        given.json.write_text(json.dumps({"benchmark": "operators", "records": count, "cases": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
