"""`wpinq explain`: the plan of a dataflow script and what it would cost, without any input."""

from __future__ import annotations

from fractions import Fraction

import typer

from wpinq.cli import options
from wpinq.scripts.script import load, rehearse


def explain(
    dataflow: options.DataflowName,
    columns: options.ColumnNames = "user,page",
    budget: options.Budget = None,
) -> None:
    """Show the plan of a dataflow script and what it costs. Nothing is read, charged or written."""
    from wpinq.exact import decimal, positive
    from wpinq.records.schema import Kind
    from wpinq.sources.columns import named, parse_columns

    amount = None if budget is None else positive(budget, "--budget")
    schema = named(parse_columns(columns), Kind.TEXT, None, "--columns")
    measurements = rehearse(load(dataflow), schema).measurements
    for name, measurement in measurements.items():
        typer.echo(f"{name}:")
        measurement.explain()
        typer.echo("")
    epsilon, _ = next(iter(measurements.values())).key_owner.ledger.spent()
    typer.echo(f"It costs epsilon {decimal(epsilon)} in all{_verdict(epsilon, amount)}.")


def _verdict(epsilon: Fraction, budget: Fraction | None) -> str:
    from wpinq.exact import decimal

    if budget is None:
        return ""
    if epsilon > budget:
        return f", {decimal(epsilon - budget)} more than the budget of {decimal(budget)}: it would be refused"
    return f", and leaves {decimal(budget - epsilon)} of the budget of {decimal(budget)}"
