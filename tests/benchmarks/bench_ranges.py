"""Ranges of buckets: the standard deviation of a count, on average over all ranges, at epsilon 1; exact, without data.

Usage: python tests/benchmarks/bench_ranges.py

"HB" is the hierarchy of equal shares of Qardaji, Yang and Li (PVLDB 2013) with the branching that errs least, made to
agree in the same way. "single buckets" adds up the counts of a histogram.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flags import flags

from wpinq.aggregates.range_tree import Tree
from wpinq.core.noise import DiscreteLaplace


def usual(tree: Tree) -> float:
    """The root of the mean variance over all ranges."""
    size = tree.sizes[0]
    at = np.arange(size)
    often = (np.minimum.outer(at, at) + 1) * (size - np.maximum.outer(at, at)) / (size * (size + 1) / 2)
    precise = np.zeros((size, size))
    for level, share in enumerate(tree.shares):
        node = at // tree.base**level
        precise += np.equal.outer(node, node) / DiscreteLaplace(1 / share).variance()
    return float(np.sqrt(np.sum(np.linalg.inv(precise) * often)))


def equal(size: int, base: int) -> Tree:
    """A tree of equal shares."""
    sizes = [size]
    while sizes[-1] > base:
        sizes.append(-(-sizes[-1] // base))
    return Tree(tuple(sizes), base, (Fraction(1, len(sizes)),) * len(sizes))


def main(smoke: bool) -> None:
    """One row for each number of buckets."""
    print("| buckets | single buckets | HB | `ranges` |")
    print("|--:|--:|--:|--:|")
    for size in (16, 64, 256) if smoke else (16, 64, 256, 1024, 2048):
        best = min(usual(equal(size, base)) for base in (4, 6, 8, 10, 12, 16, 24, 32, 48))
        flat = usual(Tree((size,), size, (Fraction(1),)))
        print(f"| {size:,} | {flat:.1f} | {best:.1f} | {usual(Tree.of(size)):.1f} |", flush=True)


if __name__ == "__main__":
    main(flags(__doc__).parse_args().smoke)
