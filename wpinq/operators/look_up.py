"""Look up: records with the columns of a public table's row of their key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from wpinq.functions.rows import KEY, Rows
from wpinq.operators.keys import Extend
from wpinq.plan.shapes import Keyed, Shape
from wpinq.records.batch import WEIGHT, Batch, weight_series
from wpinq.records.identity import identities
from wpinq.records.schema import Schema
from wpinq.state.states import State
from wpinq.state.table import Table
from wpinq.state.waiting import Tally


@dataclass(frozen=True, eq=False)
class LookUp(Extend):
    """Plan node of a join with a public table, whose keys are unique: a record has one row or none.

    Stability:  1; each record goes to one place, or, if it has no row, is dropped (inner) or gets nulls (outer).
    """

    function: Rows

    @property
    def title(self) -> str:
        return f"look_up({self.function.note})"

    @property
    def local(self) -> Mapping[str, str]:
        """What it keeps of a record it passes on as it is."""
        return {name: name for name in self.kept}

    def lower(self, needed: frozenset[str]) -> Shape:
        """Where nothing of the record itself is needed, records are counted by key, and each row is looked at once."""
        if self.function.outer or needed & set(self.kept):
            return super().lower(needed)
        return Keyed((self.given,), lambda key: Counted(self, key))

    @cached_property
    def key(self) -> Schema:
        """The column that is looked up."""
        return Schema((replace(self.source.schema[self.given[0]], ranged=False),))


class Counted(State):
    """The weights of keys, until they are asked for: then each row of the table has the weight of its key."""

    def __init__(self, node: LookUp, identity_key: bytes) -> None:
        function, new = node.function, node.schema.columns[len(node.kept) :]
        self._schema, self._held = Schema(new), node.held
        self._tally = Tally(node.key, identity_key)
        self._ids = identities(function.table.select(pl.col(KEY).alias(node.given[0])), node.key, identity_key)
        names = zip(function.output.names, new, strict=True)
        self._rows = function.table.select(pl.col(old).alias(column.name) for old, column in names)

    def absorb(self, port: int, batch: Batch) -> None:
        """Add to the weights of keys."""
        self._tally.absorb(batch)

    def emit(self) -> Batch:
        """The rows whose keys came; a sum of changes is the change of a sum, so nothing is remembered."""
        table = Table(self._held.array)
        table.add(*self._tally.take())
        weights = table.lookup(self._ids)
        rows = np.flatnonzero(weights)
        frame = self._rows[rows].with_columns(weight_series(weights[rows], self._held).alias(WEIGHT))
        return Batch(frame, self._schema)
