"""Join and group_by beside the same weighted query written by hand in Polars: time, ratio and peak memory.

    python tests/benchmarks/bench_operators.py [records a side]

A heavy key is not expanded: each side is summed over the records of a key that agree in the columns read later, and the
sums are paired. So Zipf keys are quicker than uniform ones, and memory follows the number of distinct (key, columns).
"""

import resource
import sys
import time

import numpy as np
import polars as pl

import wpinq
from wpinq.engines import flow
from wpinq.operators.lattice import measurable
from wpinq.plan import sources


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def engine(collection):
    root = measurable(collection._node)
    return timed(lambda: flow.run(flow.Job([root], sources(root)[0].identity_key)))


def keys(kind, count, draw):
    return np.minimum(draw.zipf(1.3, count), count) if kind == "zipf" else draw.integers(0, count // 4, count)


def sides(kind, count):
    draw = np.random.default_rng(1)
    return [pl.DataFrame({"k": keys(kind, count, draw), name: draw.integers(0, 100, count)}) for name in ("x", "y")]


def join_by_hand(left, right):
    one = left.group_by("k", "x").agg(pl.len().alias("a"))
    two = right.group_by("k", "y").agg(pl.len().alias("b"))
    total = pl.concat([left.select("k"), right.select("k")]).group_by("k").agg(pl.len().alias("total"))
    weight = (pl.col("a") * pl.col("b") / pl.col("total")).alias("w")
    one.join(total, on="k").join(two, on="k").with_columns(weight).group_by("x", "y").agg(pl.col("w").sum())


def groups_by_hand(left):
    weighed = left.group_by("k", "x").agg(pl.len().cast(pl.Int64).alias("w")).sort("k", "w", descending=[False, True])
    step = pl.col("w") - pl.col("w").shift(-1).over("k").fill_null(0)
    sized = weighed.with_columns(step.alias("d"), pl.col("w").cum_count().over("k").alias("size"))
    sized.filter(pl.col("d") > 0).group_by("size").agg(pl.col("d").sum() / 2)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for kind in ("uniform", "zipf"):
        left, right = sides(kind, count)
        one, two = (wpinq.protect(side, budget=1, name=name) for side, name in ((left, "left"), (right, "right")))
        joined = one.join(two, on="k", result=lambda x, y: (x, y))
        grouped = one.group_by("k", len).map(lambda value: value)
        for name, ours, theirs in (
            ("join", joined, lambda left=left, right=right: join_by_hand(left, right)),
            ("group_by", grouped, lambda left=left: groups_by_hand(left)),
        ):
            spent = min(engine(ours) for _ in range(2))
            plain = min(timed(theirs) for _ in range(2))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            times = f"{spent:6.2f} s  by hand {plain:6.2f} s  ratio {spent / plain:4.1f}"
            print(f"{name:9} {kind:8} {times}  peak {peak:4.1f} GB")


if __name__ == "__main__":
    main()
