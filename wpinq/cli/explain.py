"""`wpinq explain`: the plan of a dataflow script and what it would cost, without any input."""

from __future__ import annotations

from fractions import Fraction

import typer

from wpinq.cli import options
from wpinq.cli.dataflow import load, rehearse


def explain(
    dataflow: options.DataflowName,
    columns: options.ColumnNames = "user,page",
    budget: options.Budget = None,
) -> None:
    """Show the plan of a dataflow script and what it costs. Nothing is read, charged or written."""
    from wpinq.cli.columns import parse_columns
    from wpinq.exact import positive
    from wpinq.ledger.cost import people
    from wpinq.schema import Kind
    from wpinq.sources.columns import named

    amount = None if budget is None else positive(budget, "--budget")
    schema = named(parse_columns(columns), Kind.TEXT, None, "--columns")
    measurements = rehearse(load(dataflow), schema)
    for name, measurement in measurements.items():
        typer.echo(f"{name}:")
        measurement.explain()
        typer.echo("")
    epsilon, _ = next(iter(measurements.values())).home.ledger.spent()
    typer.echo(f"It costs epsilon {people(epsilon)} in all{_verdict(epsilon, amount)}.")


def _verdict(epsilon: Fraction, budget: Fraction | None) -> str:
    from wpinq.ledger.cost import people

    if budget is None:
        return ""
    if epsilon > budget:
        return f", {people(epsilon - budget)} more than the budget of {people(budget)}: it would be refused"
    return f", and leaves {people(budget - epsilon)} of the budget of {people(budget)}"
