"""`wpinq graph`: a synthetic graph that keeps degrees, joint degrees and triangles, by one command."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wpinq.apps.cli import arguments, options
from wpinq.apps.cli.inputs import Input
from wpinq.apps.cli.outputs import check_fit, write_json
from wpinq.errors import PlanError, needs
from wpinq.exact import decimal

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.graphs.measure import GraphQuotes
    from wpinq.postprocess.graphs.fit import Fitted


@arguments.over(arguments.protected)
def graph(
    data: Input,
    *,
    epsilon: options.Epsilon = None,
    budget: options.BudgetOrAll = None,
    mutual: Annotated[
        bool,
        typer.Option(
            "--mutual",
            help="Keep only edges that both ends list: with --unit COLUMN and --at-most K nodes are protected, with "
            "all of their edges.",
        ),
    ] = False,
    bipartite: Annotated[
        bool,
        typer.Option(
            "--bipartite",
            help="The columns name nodes of two sides, such as people and what they chose; those with few pairs each "
            "stand in the first.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the search: the same seed gives the same graph.")] = 0,
    chains: Annotated[int, typer.Option(help="Searches, of which R-hat tells whether they agree.", min=1, max=64)] = 1,
    steps: Annotated[
        int | None,
        typer.Option(help="Swaps that each search proposes: 600 for each edge, or 200 for each pair, or more.", min=0,
                     show_default=False),
    ] = None,
    analyst: options.Analyst = None,
    explain: options.Explain = False,
    json: options.JsonPath = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw what was measured and the graph here: .png, .svg or .pdf.", metavar="OUT",
                     show_default=False),
    ] = None,
    synthesize: Annotated[
        Path | None,
        typer.Option(
            help="Write the edges of the graph here: .parquet, .arrow, .csv, .tsv or .txt.",
            metavar="OUT",
            show_default=False,
        ),
    ] = None,
) -> None:  # fmt: skip
    """Measure a graph, given as a table of edges, and search for a synthetic one that gives the same answers.

    What is measured: the degrees, the degrees at both ends of edges, and the triangles by the degrees of their corners.
    Nothing else leaves the data, and the graph follows from it. Edges have no direction; loops and repetitions do not
    count.

    What is protected is one edge, or with --unit all edges that one node lists; with --mutual one node.

    With --bipartite the degrees of both sides are measured, who is joined to whom, and butterflies: how much what one
    chooses goes with what else one chooses.
    """
    from wpinq.apps.cli.show import explained, prices
    from wpinq.errors import installed
    from wpinq.graphs import fit
    from wpinq.postprocess.graphs.chain import ready

    cost, allowed = options.cost_or_all("graph", epsilon, options.amount(budget, "--budget"))
    ready("wpinq graph")
    if not bipartite:
        needs("graphs", "wpinq graph")
    written = check_fit(json, plot, synthesize, data.files())
    if bipartite and mutual:
        raise PlanError("--mutual is of edges that both ends list; --bipartite has pairs. Leave one of them out.")
    quoted, measure = questions(mutual=mutual, bipartite=bipartite)
    empty = data.limitless()
    quotes = quoted(empty, cost, analyst=analyst)  # what is refused is refused here, without records
    if explain:
        typer.echo(explained([prices("graph", quotes.quotes.values())], data, empty, allowed, epsilon=cost))
        return
    edges = data.protect_to_spend(cost, budget=allowed)
    measured = measure(edges, cost, analyst=analyst)
    fitted = fit(measured, seed=seed, steps=steps, chains=chains)
    if json is not None:
        write_json(json, {"wpinq": installed(), **fitted.content()})
    if plot is not None:
        fitted.plot(plot)
    if synthesize is not None:
        first, second = edges._node.schema.names
        fitted.save(synthesize, (first, second))
    show(edges, cost, fitted, written)


def questions(*, mutual: bool, bipartite: bool) -> tuple[Callable[..., GraphQuotes], Callable[..., Any]]:
    """What quotes a graph, and what measures it, of one side or two."""
    from wpinq.graphs import bipartite as two_sides
    from wpinq.graphs.measure import measure, quoted

    if bipartite:
        return two_sides.quoted, two_sides.measure_pairs
    return partial(quoted, mutual=mutual), partial(measure, mutual=mutual)


def show(edges: Collection, epsilon: Fraction, fitted: Fitted[Any, Any], written: list[Path]) -> None:
    """Tell what was found, what it cost, and whom it protects."""
    from wpinq.apps.cli.show import aligned, budget_line, protects_line
    from wpinq.core import sources

    graphs = dict(reversed(fitted.summary().items()))
    table: list[tuple[str, ...]] = [("", *graphs)]
    rows = list(graphs.values())
    table += [(name.replace("_", " "), *(_formatted(row[name]) for row in rows)) for name in rows[0]]
    typer.echo(f"{aligned(table, right=True)}\n")
    more = "butterflies" if "random" in graphs else "triangles"
    crowded = getattr(fitted, "crowded", 0)
    for line in (
        f"The seed has the fitted degrees and joint degrees; the fitted graph has the {more} as well.",
        f"R-hat {max(fitted.r_hat.values()):.2f} at most (to 1.1: settled), epsilon {decimal(epsilon)} in all.",
        *([f"Crowded edges, where triangles count less: {crowded:,}."] if crowded else []),
        protects_line(edges._node),
        budget_line(sources(edges._node)[0].ledger),
        *(f"Written: {path}" for path in written),
    ):
        typer.echo(line)


def _formatted(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:.3f}"
