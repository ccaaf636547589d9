"""Descriptions of data sets and measurements, as clients get them before any bin is asked."""

from __future__ import annotations

import wpinq
from wpinq.apps.remote.wire import ColumnTold, Described, Unit, exact_text
from wpinq.apps.serve.catalogue import Served
from wpinq.core import LEVEL, Schema, biases


def described(served: Served) -> Described:
    """What is told of a measurement before any bin is asked."""
    made = served.measurement
    cost = {"rho": exact_text(made.rho)} if made.rho else {"epsilon": exact_text(made.epsilon)}
    cost |= {"delta": exact_text(made.quote.payment.delta)} if made.quote.payment.delta else {}
    return Described(
        name=served.name, data=served.data, meaning=served.meaning, columns=columns(made.node.schema),
        mechanism=made.quote.mechanism.name, scale=float(made.scale), half_width=made.interval(LEVEL),
        level=float(LEVEL), cost=cost, protects=made.key_owner.unit.protects, beside_noise=list(biases(made.node)),
    )  # fmt: skip


def columns(schema: Schema) -> list[ColumnTold]:
    """The columns of a record."""
    return [ColumnTold(name=column.name, type=column.kind.value) for column in schema]


def unit_of(unit: wpinq.Unit) -> Unit | None:
    """Whom a data set protects; None where that is one record."""
    if unit.column is None:
        return None
    length, at = unit.period or (None, None)
    return Unit(
        column=unit.column, at_most=unit.at_most, per=dict([unit.per] if unit.per else []),
        shared=unit.at_most is None and not unit.whole, period=None if length is None else str(length), at=at,
        zone=unit.zone,
    )  # fmt: skip
