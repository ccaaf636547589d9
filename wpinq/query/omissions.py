"""What a query leaves out: records beyond a bound, and what is counted in groups that pass no threshold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import polars as pl

from wpinq.aggregates.clipping_loss import ask_loss_of
from wpinq.core.functions.tree import lit
from wpinq.core.measurements.answer import Answer, Released
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.measurements.provenance import About
from wpinq.core.operators.contribution.sample import Bound
from wpinq.core.plan.node import steps
from wpinq.core.pricing.quote import Quote
from wpinq.errors import PlanError
from wpinq.postprocess.degrees.posterior.law import NoiseTerm, half_width
from wpinq.query.aggregates import ChargeNames
from wpinq.query.statement import Statement

Told: TypeAlias = Callable[[Sequence[Any], Measurement | None, pl.Series | None], Answer]


def ask_lost(
    statement: Statement, epsilon: Fraction, charged: ChargeNames, *, published: bool
) -> tuple[list[Quote[Any]], Told]:
    """Quote how much a query leaves out, and say how its answer follows from what was charged.

    Args:
        statement: The query.
        epsilon: What it costs in all: equally for what each bound and for what a threshold leaves out.
        charged: The name of the charge, and who is charged.
        published: Whether groups are published by a threshold.

    Raises:
        PlanError: It leaves out nothing.
    """
    bounded = [node for node in steps(statement.groups._node) if isinstance(node, Bound)]
    parts = len(bounded) + published
    if not parts:
        raise PlanError("sql(loss=...): no bound on people and no threshold leaves anything out here; leave it out.")
    dropped = [ask_loss_of(statement.groups, node, epsilon / parts, **charged) for node in bounded]
    quotes: list[Quote[Any]] = [loss.quote for loss in dropped]
    if published:
        counted = [*statement.counts, *statement.published_from(False)][statement.widest].map(lit(0).alias("all"))
        quotes.append(counted.quote(epsilon / parts / statement.of_one_person[0], **charged))
    names = [node.data.name if len(bounded) > 1 else "" for node in bounded]

    def answer_loss(made: Sequence[Any], shown: Measurement | None, counts: pl.Series | None) -> Answer:
        losses = [loss.answer(paid, None) for loss, paid in zip(dropped, made, strict=False)]

        def released_at(level: Fraction, simultaneous: bool) -> Released:
            rows = [
                (f"{what} of {name}" if name else what, *numbers)
                for loss, name in zip(losses, names, strict=True)
                for what, *numbers in loss.table(level, simultaneous=simultaneous).rows()
            ]
            if shown is not None and counts is not None:
                count_noise = NoiseTerm(float(shown.scale), len(counts), shown.gaussian)
                noise = (count_noise, NoiseTerm(float(made[-1].scale), 1))
                hidden, half = made[-1].observe(0) - float(counts.sum()), half_width(noise, float(level))
                rows = [*rows, ("in groups that are not shown", hidden, hidden - half, hidden + half)]
            frame = pl.DataFrame(rows, ["lost", "count", "low", "high"], orient="row")
            return frame.select("lost", "count"), {"count": (frame["low"], frame["high"])}

        bias = tuple(
            f"{name}: {clause}" if name else clause
            for loss, name in zip(losses, names, strict=True)
            for clause in loss.bias
        )
        return Answer(About("what is left out", tuple(made), bias=bias), released_at)

    return quotes, answer_loss
