"""`wpinq explain`: the plan of a dataflow script and what it would cost; of an input, only the columns are read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import typer

from wpinq.apps.cli import arguments, options
from wpinq.apps.cli.inputs import Input
from wpinq.apps.cli.stream import Stream, streams
from wpinq.apps.scripts.script import Dataflow, Rehearsal, find, load, rehearsed
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq import Measurement
    from wpinq.collection import Collection

GAUSSIAN = ", which a budget of epsilon alone refuses: give --rho instead, or --delta and --accounting renyi beside it"


@arguments.over(arguments.records)
def explain(
    dataflow: options.DataflowName,
    data: Input,
    *,
    source: options.ColumnsOf = "",
    budget: options.Budget = None,
    accounting: options.Accounting = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    follow: options.Follow = False,
) -> None:
    """Show the plan of a dataflow script and what it costs. No record is read, nothing is charged or written.

    A dataflow for streams is explained with --follow, or with the stream as INPUT.
    """
    from wpinq.apps.cli.show import protects_line
    from wpinq.exact import decimal

    amount = options.amount(budget, "--budget")
    data.insist_on_a_number()
    script = load(dataflow)
    stream = Stream(data, find(dataflow), budget, 60.0, 60.0, None) if streams(data.source, follow=follow) else None
    if stream is None:
        rehearsal = _rehearsed(script, data, epsilons=replace(data, accounting=accounting, rho=rho).adds_epsilons)
    else:
        rehearsal = stream.rehearse(script)
    for name, measurement in rehearsal.measurements.items():
        typer.echo(f"{name}:")
        measurement.explain()
        typer.echo("")
    first = next(iter(rehearsal.measurements.values()))
    spent = first.key_owner.ledger
    epsilon, lost = spent.spent()
    gaussian = any(measured.rho for measured in rehearsal.measurements.values())
    typer.echo(protects_line(first.node))
    verdict = _verdict(epsilon, amount) if not gaussian else GAUSSIAN if amount is not None else ""
    if accounting is not None or rho is not None:
        allowed = replace(data, accounting=accounting, delta=delta, rho=rho)
        verdict = _allowed(lambda: allowed.empty(amount) if stream is None else stream.empty(allowed, amount), script)
    cost = f"rho {decimal(spent.divergence)}" if gaussian else f"epsilon {decimal(epsilon)}"
    cost += f" and delta {decimal(lost)}" if lost else ""
    typer.echo(f"It costs {cost} in all{_each(rehearsal.measurements)}{verdict}.")


def _rehearsed(script: Dataflow, data: Input, *, epsilons: bool) -> Rehearsal:
    """The script over no records: in a ledger of epsilons and deltas where one is meant, and takes what it asks."""
    if epsilons:
        with suppress(PlanError):
            return rehearsed(script, data.limitless(epsilons=True))
    return rehearsed(script, data.limitless())


def _each(measurements: dict[str, Measurement]) -> str:
    """What is charged only when a window is asked for."""
    from wpinq.exact import decimal

    each = [measurement for measurement in measurements.values() if measurement.times.each]
    total, rho = (
        sum((measurement.epsilon for measurement in each), Fraction(0)),
        sum((measurement.rho for measurement in each), Fraction(0)),
    )
    costs = [*([decimal(total)] if total else []), *([f"rho {decimal(rho)}"] if rho else [])]
    return f", and {' and '.join(costs)} for each window that is asked for" if each else ""


def _allowed(views: Callable[[], Collection], script: Dataflow) -> str:
    """Whether a ledger that adds up divergences allows it: a second run over no records is charged to one."""
    from wpinq.core import sources
    from wpinq.errors import BudgetError

    views_empty = views()
    promise = sources(views_empty._node)[0].ledger.promise.text
    try:
        rehearsed(script, views_empty)
    except BudgetError:
        return f", more than the budget of {promise} allows: it would be refused"
    left = sources(views_empty._node)[0].ledger.told
    return f", which the budget of {promise} allows; {left[:1].lower()}{left[1:]}"


def _verdict(epsilon: Fraction, budget: Fraction | None) -> str:
    from wpinq.exact import decimal

    if budget is None:
        return ""
    if epsilon > budget:
        return f", {decimal(epsilon - budget)} more than the budget of {decimal(budget)}: it would be refused"
    return f", and leaves {decimal(budget - epsilon)} of the budget of {decimal(budget)}"
