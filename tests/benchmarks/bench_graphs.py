"""How near synthetic graphs come to real ones: relative errors at some epsilons, beside published ones where given.

    python tests/benchmarks/bench_graphs.py [GRAPH ...] [--epsilon 1] [--runs 10] [--shares 3,2,3,2]
        [--json FILE] [--markdown] [--published FILE] [--noise]

The unit is an edge. Degrees are released by `wpinq.degrees.release`; the other answers are computed by the columns of
`postprocess/graphs/counts.py`, which `tests/graphs` holds to the queries, and get Laplace noise of the scale that the
plan says (8, 12 and 6 over their share of epsilon): the engine's own are the same, and take up to a minute a run.
`--json` appends a line for each run and leaves out the runs that the file has, so that it can be continued; with
`--markdown` nothing is run, and the table of what the file has is made. `--published` is a file of relative errors by
graph, question and algorithm, at epsilon 0.1, 0.5, 1, 2, 5, 10; the best of its algorithms is shown for each number by
itself. `--noise` runs nothing either: it prints by how much noise alone moves the number of triangles.

Errors are relative, but for KL (of true degrees from those of the graph, and from `frequencies` of the fit; 2e-16
stands for none), and assortativity, absolute. The diameter is a lower bound by two sweeps, of both.
"""

from __future__ import annotations

import argparse
import json
import resource
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars as pl
from graph_runs import asked, collect, parser

import wpinq
from wpinq.graphs import Graph, Measurements, Noisy, Summary, SyntheticGraph, fit
from wpinq.postprocess.graphs.counts import buckets_of, intersected, joint, middle, shares

DATA = Path(wpinq.__file__).parents[2] / "shared" / "data"
GRAPHS = ("facebook", "wiki-vote", "p2p-gnutella25", "CA-GrQc", "CA-HepTh", "Caltech36")
EPSILONS = ("0.1", "0.5", "1", "10")
PUBLISHED = {"facebook": "Facebook", "wiki-vote": "Wiki-Vote", "p2p-gnutella25": "p2p-Gnutella"}
QUESTIONS = {
    "edges": "Q2", "triangles": "Q3", "variance": "Q5", "KL": "Q6", "GCC": "Q10", "ACC": "Q11", "assort": "Q14",
}  # fmt: skip
AT = (0.1, 0.5, 1, 2, 5, 10)
COLUMNS = ("edges", "triangles", "variance", "GCC", "ACC", "assort", "KL", "KL fit", "diameter", "R-hat", "seconds")


def load(name: str) -> Graph:
    return Graph.of(pl.read_parquet(DATA / f"{name}.parquet").to_numpy())


def measure(graph: Graph, epsilon: float, split: list[float], rng: np.random.Generator) -> Measurements:
    """What `graphs.measure` would release."""
    degrees, *rest = (epsilon * part / sum(split) for part in split)
    rows = wpinq.protect(pl.DataFrame({"node": graph.edges.ravel()}), budget=10**6)
    released = wpinq.degrees.release(rows, epsilon=f"{degrees / 2:.6f}")
    found = buckets_of([released.interval("largest", 0.999)[1], *released.sequence[:1]])
    mix, triangles = shares(graph.degrees, found), graph.at_nodes()
    whole = np.array([intersected(triangles, graph.degrees)])
    true = np.triu(joint(graph.edges, mix)), middle(triangles, graph.degrees, mix), whole
    noised = []
    for values, uses, share in zip(true, (8, 12, 6), [*rest, 0.0], strict=False):
        noisy = Noisy(values + rng.laplace(0, uses / share, values.shape), uses / share) if share else None
        noised.append(noisy)
    return Measurements(released, *noised)


def divergence(true: np.ndarray, other: np.ndarray) -> float:
    size = max(len(true), len(other))
    p, q = (np.pad(one, (0, size - len(one))) / one.sum() for one in (true, np.maximum(other, 0)))
    p, q = (np.where(one == 0, 2e-16, one) for one in (p, q))
    return float((p * np.log(p / q)).sum())


def diameter(graph: Graph) -> float:
    made = SyntheticGraph(graph.edges, graph.nodes).to_networkx()
    whole = made.subgraph(max(nx.connected_components(made), key=len))
    return float(nx.approximation.diameter(whole, seed=0))


def summary(graph: Graph) -> dict[str, float]:
    found = asdict(Summary.of(graph.edges, graph.at_nodes(), graph.degrees))
    names = {"edges": "edges", "triangles": "triangles", "variance": "degree_variance", "GCC": "clustering",
             "ACC": "average_clustering", "assort": "assortativity"}  # fmt: skip
    return {name: found[key] for name, key in names.items()} | {"diameter": diameter(graph)}


def run(
    graph: Graph, true: dict[str, float], epsilon: float, split: list[float], seed: int, steps: int | None, chains: int
) -> list[float]:
    rng = np.random.default_rng(seed)
    began = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    made = fit(measure(graph, epsilon, split, rng), seed=seed, steps=steps, chains=chains)
    seconds = resource.getrusage(resource.RUSAGE_SELF).ru_utime - began
    found = summary(made.graph)
    errors = {name: abs(found[name] - true[name]) / (abs(true[name]) if name != "assort" else 1) for name in true}
    counts = np.bincount(graph.degrees)[1:]
    errors["KL"] = divergence(counts, np.bincount(made.graph.degrees)[1:])
    errors["KL fit"] = divergence(counts, made.measurements.degrees.frequencies())
    errors |= {"R-hat": max(made.r_hat.values()), "seconds": seconds}
    return [errors[name] for name in COLUMNS]


def noise_alone(graph: Graph, epsilon: float, split: list[float]) -> float:
    """The relative deviation of the triangles that the answers leave open, without a search, to the first order.

    The triangles at nodes of each octave of degrees are off by a factor of their own, which lies around one by one.
    """
    _, _, buckets, whole = (epsilon * part / sum(split) for part in split)
    degrees, triangles, size = graph.degrees.astype(float), graph.at_nodes().astype(float), buckets_of(graph.degrees)
    octave = np.eye(size)[np.frexp(degrees)[1] - 1]
    slope = triangles * degrees**3 / (degrees**2 + triangles) ** 2
    moved = np.vstack([shares(graph.degrees, size).T @ (octave * slope[:, None]), (triangles / degrees) @ octave])
    sure = np.append(np.full(size, (buckets / 12) ** 2 / 2), (whole / 6) ** 2 / 2)
    spread = np.linalg.inv(moved.T @ (sure[:, None] * moved) + np.eye(size))
    return float(np.sqrt((triangles @ octave) @ spread @ (triangles @ octave)) / triangles.sum())


def best(published: dict, name: str, epsilon: float) -> list[str]:
    questions, shown = published.get(PUBLISHED.get(name, ""), {}), []
    for column in COLUMNS:
        known = questions.get(QUESTIONS.get(column, ""), {})
        at = AT.index(epsilon) if epsilon in AT else None
        values = [one[at] for one in known.values() if at is not None and len(one) > at and one[at] is not None]
        shown.append(f"{min(values):.3f}" if values else "")
    return shown


def main() -> None:
    arguments = parser(__doc__, GRAPHS, EPSILONS, 10)
    arguments.add_argument("--shares", default="3,2,3,2", help="Degrees, joint, triangles, intersect.")
    arguments.add_argument("--published", type=Path)
    arguments.add_argument("--noise", action="store_true", help="Run nothing: what noise alone does to triangles.")
    given, lines, split = asked(arguments)
    if given.noise:
        for name, epsilon in product(given.graphs, given.epsilon):
            alone = noise_alone(load(name), float(epsilon), split)
            print(f"{name} at epsilon {epsilon}: noise alone moves triangles by {alone:.3f}")
        return
    if not given.markdown:
        made = Graph.of(np.array(nx.powerlaw_cluster_graph(300, 4, 0.8, seed=1).edges))
        graphs = {name: made if given.smoke else load(name) for name in given.graphs}
        true = {name: summary(graph) for name, graph in graphs.items()}

        def one(name: str, epsilon: float, seed: int) -> dict[str, float]:
            found = run(graphs[name], true[name], epsilon, split, seed, given.steps, given.chains)
            return dict(zip(COLUMNS, found, strict=True))

        collect(given, lines, one)
    table(given, lines)


def table(given: argparse.Namespace, lines: list[dict[str, Any]]) -> None:
    published = json.loads(given.published.read_text()) if given.published else {}
    print("| graph | epsilon | runs | " + " | ".join(COLUMNS) + " |\n" + "|---" * (3 + len(COLUMNS)) + "|")
    for name, epsilon in product(given.graphs, given.epsilon):
        runs = [[line[column] for column in COLUMNS] for line in lines
                if (line["graph"], line["epsilon"], line["shares"]) == (name, epsilon, given.shares)]  # fmt: skip
        if not runs:
            continue
        mean = [f"{value:.3g}" for value in np.mean(runs, axis=0)]
        print(f"| {name} | {epsilon} | {len(runs)} | " + " | ".join(mean) + " |")
        if any(told := best(published, name, float(epsilon))):
            print("| best published | | | " + " | ".join(told) + " |")


if __name__ == "__main__":
    main()
