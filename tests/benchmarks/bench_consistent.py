"""Counts of a census-like tree made to add up: `answer.consistent()` at each level, its time and its memory.

People are made up: a country of 50 states, 3,000 counties, 75,000 tracts and 1,000,000 blocks, whose sizes are drawn
from power laws. One question counts them at all five levels (`GROUP BY ROLLUP`), with Gaussian noise of rho 2.56 in
all, that of people in the redistricting data of 2020 (Abowd et al., "The 2020 Census Disclosure Avoidance System
TopDown Algorithm", Harvard Data Science Review, special issue 2, 2022). What is told of each level is the root of the
mean square error as measured, and after `consistent()`.

For comparison the same least squares are computed by conjugate gradients over a sparse matrix (SciPy), which is slow:
only with `--smoke`. The Census Bureau's own estimator from noisy measurements is these least squares, too
(Cumings-Menon, "Full-information estimation for hierarchical data", 2024); the TopDown algorithm itself is not: it
makes counts of people, which are not negative, level by level, with some totals public.

Usage: python tests/benchmarks/bench_consistent.py [--smoke]

`--smoke` takes a tree of 2,000 blocks.
"""

from __future__ import annotations

import resource
import time

import numpy as np
import numpy.typing as npt
import polars as pl
from flags import flags
from scipy.sparse import csr_matrix, vstack
from scipy.sparse.linalg import lsqr

import wpinq

LEVELS = ("state", "county", "tract", "block")
SIZES = {False: (50, 3_000, 75_000, 1_000_000), True: (5, 30, 200, 2_000)}
RHO = "2.56"
Floats = npt.NDArray[np.float64]


def tree(sizes: tuple[int, ...], rng: np.random.Generator) -> list[npt.NDArray[np.int64]]:
    """For each level the place of the node above each node: each has some below it, shared out by a power law."""
    above = []
    for size, parents in zip(sizes, (1, *sizes[:-1]), strict=True):
        shares = rng.pareto(1.5, parents) + 0.2
        drawn = rng.choice(parents, size - parents, p=shares / shares.sum())
        above.append(np.sort(np.concatenate([np.arange(parents), drawn])))
    return above


def groups(above: list[npt.NDArray[np.int64]]) -> pl.DataFrame:
    """All groups of the question, the country first: a code for each level, and the number of the set."""
    frames, codes = [], pl.DataFrame({"": [0]})
    for level, (name, parents) in enumerate(zip(LEVELS, above, strict=True)):
        codes = codes[parents].with_columns(pl.Series(name, np.arange(len(parents))))
        frames.append(codes.drop("").with_columns(grouping=pl.lit((1 << (len(LEVELS) - 1 - level)) - 1, pl.Int64)))
    total = pl.DataFrame({"grouping": [(1 << len(LEVELS)) - 1]}, schema={"grouping": pl.Int64})
    return pl.concat([total, *frames], how="diagonal").select(*LEVELS, "grouping")


def least_squares(noisy: list[Floats], above: list[npt.NDArray[np.int64]]) -> list[Floats]:
    """The blocks whose sums are nearest to what was measured, and their sums, by SciPy."""
    path, rows = np.arange(len(noisy[-1])), []
    for parents in reversed(above):
        rows.insert(0, csr_matrix((np.ones(len(path)), (path, np.arange(len(path)))),
                                  (len(parents), len(noisy[-1]))))  # fmt: skip
        path = parents[path]
    rows.insert(0, csr_matrix(np.ones((1, len(noisy[-1])))))
    whole = vstack(rows).tocsr()
    blocks = lsqr(whole, np.concatenate(noisy), atol=1e-14, btol=1e-14, iter_lim=100_000)[0]
    return list(np.split(whole @ blocks, np.cumsum([len(each) for each in noisy])[:-1]))


def main(smoke: bool) -> None:
    """A line for each level."""
    rng = np.random.default_rng(2020)
    above = tree(SIZES[smoke], rng)
    blocks = len(above[-1])
    people = rng.geometric(1 / 3, blocks) - 1
    where: list[npt.NDArray[np.int64]] = [np.repeat(np.arange(blocks), people)]
    for parents in reversed(above[1:]):
        where.insert(0, parents[where[0]])
    records = pl.DataFrame(dict(zip(LEVELS, where, strict=True)))
    country = wpinq.protect(records, rho=10, name="country")
    query = f"SELECT {', '.join(LEVELS)}, COUNT(*) AS n FROM country GROUP BY ROLLUP ({', '.join(LEVELS)})"
    start = time.process_time()
    answer = wpinq.sql(query, {"country": country}, rho=RHO, mechanism="gaussian", keys=groups(above))
    ends = np.cumsum([1, *map(len, above)])[:-1]
    noisy = np.split(answer.frame["n"].to_numpy().astype(float), ends)
    asked = time.process_time() - start
    start = time.process_time()
    moved = np.split(answer.consistent().frame["n"].to_numpy().astype(float), ends)
    seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    true = [people.astype(float)]
    for level in range(len(above) - 1, -1, -1):
        true.insert(0, np.bincount(above[level], true[0], len(noisy[level])))
    print(f"{len(records):,} people; asked in {asked:.1f} s of CPU, made to add up in {seconds:.1f} s; {peak:.1f} GB")
    print("| level | nodes | as measured | `consistent()` |\n|---|--:|--:|--:|")
    for name, *columns in zip(("country", *LEVELS), true, noisy, moved, strict=True):
        errors = [f"{np.sqrt(((column - columns[0]) ** 2).mean()):.4f}" for column in columns[1:]]
        print("|", " | ".join([name, f"{len(columns[0]):,}", *errors]), "|")
    if smoke:
        other = least_squares(noisy, above)
        print(f"SciPy differs by {max(np.abs(a - b).max() for a, b in zip(moved, other, strict=True)):.1e} at most")


if __name__ == "__main__":
    main(flags(__doc__).parse_args().smoke)
