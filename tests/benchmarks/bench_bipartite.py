"""How near synthetic bipartite graphs come to real ones, beside a random graph of the same fitted degrees.

    python tests/benchmarks/bench_bipartite.py [GRAPH ...] [--epsilon 1] [--runs 3] [--shares 3,3,4,10] [--steps N]
        [--json FILE] [--markdown]

The unit is a pair. Degrees are released by `wpinq.degrees.release`; the other answers are computed by the columns of
`postprocess/graphs/pair_counts.py`, which `tests/graphs` holds to the queries, and get Laplace noise of the scale that
the plan says (4 and 3 over their share of epsilon). `--json` appends a line for each run and leaves out the runs that
the file has; with `--markdown` nothing is run, and the table of what the file has is made.

Pairs, butterflies and clustering are off relative to the truth, assortativity absolutely; degrees of each side are off
by the sum of differences of sorted degrees, over all pairs. `loss` is what the graph misses of the answers, and the
true graph's beside it: below that, answers are met as well as noise lets any graph meet them.
"""

from __future__ import annotations

import argparse
import resource
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from graph_runs import asked, collect, parser

import wpinq
from wpinq.graphs import Noisy, PairGraph, PairMeasurements, PairSummary, fit
from wpinq.graphs.measure import reached
from wpinq.postprocess.graphs.bipartite import BipartiteChain
from wpinq.postprocess.graphs.counts import buckets_of
from wpinq.postprocess.graphs.measured import BEYOND
from wpinq.postprocess.graphs.target import Target

DATA = Path(wpinq.__file__).parents[2] / "shared" / "data"
GRAPHS = ("BMS-WebView-1", "retail")
NAMES = ("pairs", "butterflies", "clustering", "assortativity")
ERRORS = (*NAMES, "left", "right")
COLUMNS = (*ERRORS, "loss", "R-hat", "seconds")


def load(name: str) -> PairGraph:
    return PairGraph.of(pl.read_parquet(DATA / f"{name}.parquet").to_numpy())


def made_up() -> PairGraph:
    rng = np.random.default_rng(1)
    return PairGraph.of([(user, 10 * (user % 5) + item) for user in range(600) for item in rng.choice(10, 3)])


def measure(graph: PairGraph, epsilon: float, split: list[float], rng: np.random.Generator) -> PairMeasurements:
    """What `graphs.measure_pairs` would release."""
    *of_degrees, joint, slices = (epsilon * part / sum(split) for part in split)
    fits = []
    for side, share in enumerate(of_degrees):
        rows = wpinq.protect(pl.DataFrame({"node": graph.pairs[:, side]}), budget=10**6)
        fits.append(wpinq.degrees.release(rows, epsilon=f"{share / 2:.6f}"))
    left, right = map(reached, fits)
    most = [max(one, buckets_of(degrees)) for one, degrees in zip((left, right), graph.degrees, strict=True)]
    true, noisy = counts(graph, (most[0], most[1])), []
    for values, size, scale in zip(
        true, ((left, right), (right, right + BEYOND)), (4 / joint, 3 / slices), strict=True
    ):
        noisy.append(Noisy(values[: size[0], : size[1]] + rng.laplace(0, scale, size), scale))
    return PairMeasurements(*fits, *noisy)


def counts(graph: PairGraph, sides: tuple[int, int]) -> list[np.ndarray]:
    row = BipartiteChain(graph, np.random.default_rng(0), sides).counts()
    return [row[: sides[0] * sides[1]].reshape(sides), row[sides[0] * sides[1] :].reshape(sides[1], -1)]


def loss(target: Target, row: np.ndarray) -> float:
    gap, slack = np.abs(row - target.wanted), np.maximum(target.slack, 1e-300)
    return float(target.weight @ np.where(gap < slack, gap * gap / (2 * slack), gap - slack / 2))


def errors(graph: PairGraph, true: PairGraph) -> dict[str, float]:
    found, wanted = (asdict(PairSummary.of(one)) for one in (graph, true))
    result = {}
    for name in NAMES:
        result[name] = abs(found[name] - wanted[name]) / (1 if name == "assortativity" else abs(wanted[name]))
    for side, one, other in zip(("left", "right"), graph.degrees, true.degrees, strict=True):
        size = max(len(one), len(other))
        sorted_, goal = (np.pad(-np.sort(-degrees), (0, size - len(degrees))) for degrees in (one, other))
        result[side] = float(np.abs(sorted_ - goal).sum() / len(true.pairs))
    return result


def run(true: PairGraph, epsilon: float, split: list[float], seed: int, given: argparse.Namespace) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    measured = measure(true, epsilon, split, rng)
    began = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    made = fit(measured, seed=seed, steps=given.steps, chains=given.chains)
    seconds = resource.getrusage(resource.RUSAGE_SELF).ru_utime - began
    row = np.concatenate([part.ravel() for part in counts(true, made._chains[0].sides)])
    found = errors(made.graph, true) | {"R-hat": max(made.r_hat.values()), "seconds": seconds}
    found |= {"loss": loss(made._target, made.counts), "true loss": loss(made._target, row)}
    return found | {"random": errors(made.random_graph, true)}


def main() -> None:
    arguments = parser(__doc__, GRAPHS, ["1"], 3)
    arguments.add_argument("--shares", default="3,3,4,10", help="Left degrees, right degrees, joint, butterflies.")
    given, lines, split = asked(arguments)
    if not given.markdown:
        graphs = {name: made_up() if given.smoke else load(name) for name in given.graphs}
        collect(given, lines, lambda name, epsilon, seed: run(graphs[name], epsilon, split, seed, given), "steps")
    table(given, lines)


def table(given: argparse.Namespace, lines: list[dict[str, Any]]) -> None:
    print("| graph | epsilon | runs | " + " | ".join(COLUMNS) + " |\n" + "|---" * (3 + len(COLUMNS)) + "|")
    for name, epsilon in product(given.graphs, given.epsilon):
        key = {"graph": name, "epsilon": epsilon, "shares": given.shares, "steps": given.steps}
        runs = [line for line in lines if key.items() <= line.items()]
        if not runs:
            continue
        mean = [np.mean([one[column] for one in runs]) for column in COLUMNS]
        chance = [np.mean([one["random"][column] for one in runs]) for column in ERRORS]
        goal = np.mean([one["true loss"] for one in runs])
        shown = [f"{value:.3g}" + (f" (true {goal:.3g})" if column == "loss" else "")
                 for column, value in zip(COLUMNS, mean, strict=True)]  # fmt: skip
        print(f"| {name} | {epsilon} | {len(runs)} | " + " | ".join(shown) + " |")
        print("| random, of its degrees | | | " + " | ".join(f"{value:.3g}" for value in chance) + " | | | |")


if __name__ == "__main__":
    main()
