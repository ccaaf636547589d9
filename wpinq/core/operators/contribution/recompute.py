"""Anew: what a unit is left with, found anew from its records whenever some of them come or are taken back.

A sample forgets the records that it pushed out, and a share does not know which of its records weigh less than nothing.
So where records can be taken back all records of each person are held, and those of persons who moved go through the
step once more, from the beginning, as if they were all there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.schema import Schema
from wpinq.core.records.weights import WeightType
from wpinq.core.state.bykey import ByKey, Port
from wpinq.core.state.states import State


def anew(  # noqa: PLR0917
    make: Callable[[], State], schema: Schema, user: str, keep: Sequence[str], held: WeightType, key: bytes
) -> ByKey:
    """The state of a step over the records of a source that can be taken back.

    Args:
        make: Makes the state of the step for records that only come.
        schema: The columns of the source.
        user: The one that names the person; a person's records in all periods are looked at together.
        keep: The columns that are needed later.
        held: How the weights of the source are held.
        key: The key of identities.
    """

    def compute(sides: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
        """What is left of the records of some whole persons: of those that are there."""
        state = make()
        state.absorb(0, Batch(sides[0].select(*schema.names, WEIGHT).filter(pl.col(WEIGHT) > 0), schema))
        return [state.emit().frame]

    return ByKey([Port(schema, (user,), schema.names, held, held)], compute, schema.select(keep), key)
