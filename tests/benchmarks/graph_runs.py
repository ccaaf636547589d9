"""What benchmarks of synthetic graphs share: their arguments, and runs of which a file keeps a line each."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from flags import flags

Lines = list[dict[str, Any]]


def parser(
    description: str | None, graphs: Sequence[str], epsilon: Sequence[str], runs: int
) -> argparse.ArgumentParser:
    """The arguments of both; `--shares` differs."""
    made = flags(description, "A made-up graph, in seconds.")
    made.add_argument("graphs", nargs="*", default=list(graphs))
    made.add_argument("--epsilon", nargs="*", default=list(epsilon))
    made.add_argument("--runs", type=int, default=runs)
    made.add_argument("--steps", type=int)
    made.add_argument("--chains", type=int, default=1, help="R-hat of one chain compares its halves alone.")
    made.add_argument("--json", type=Path, help="Append a line for each run, and leave out those it has.")
    made.add_argument("--markdown", action="store_true", help="Run nothing: the table of what --json has.")
    return made


def asked(made: argparse.ArgumentParser) -> tuple[argparse.Namespace, Lines, list[float]]:
    """What was asked for, the lines that its file has, and the shares of epsilon."""
    given = made.parse_args()
    if given.smoke:
        given.graphs, given.epsilon, given.runs, given.steps = ["made up"], ["1"], 1, 20_000
    known = given.json.read_text().splitlines() if given.json and given.json.exists() else []
    return given, [json.loads(line) for line in known], [float(part) for part in given.shares.split(",")]


def collect(
    given: argparse.Namespace, lines: Lines, run: Callable[[str, float, int], dict[str, Any]], *also: str
) -> None:
    """The runs that are missing: the first of all graphs and epsilons, then the second of all.

    Args:
        given: What was asked for.
        lines: Those that there are; new ones are appended, and written to the file.
        run: What a run of a graph, an epsilon and a seed gives.
        also: Other arguments that tell runs apart.
    """
    for seed, epsilon, name in product(range(given.runs), given.epsilon, given.graphs):
        key = {"graph": name, "epsilon": epsilon, "seed": seed, "shares": given.shares}
        key |= {argument: getattr(given, argument) for argument in also}
        if any(key.items() <= line.items() for line in lines):
            continue
        lines.append(key | run(name, float(epsilon), seed))
        if given.json:
            with given.json.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
