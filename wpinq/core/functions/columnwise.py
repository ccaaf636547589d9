"""Functions that are computed in columns only; of one record, in a frame of one row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wpinq.core.functions.function import Dropped, Function
from wpinq.core.functions.traced.columnar import ROW, truthful
from wpinq.core.records.kinds import plain_record, read, series
from wpinq.core.records.schema import in_columns
from wpinq.errors import PlanError

ONE = "\0one"  # a frame without columns would have no rows


@dataclass(frozen=True, eq=False)
class Columnwise(Function):
    """A function that says what `apply` does."""

    def call(self, record: tuple[Any, ...]) -> tuple[Any, ...]:  # noqa: D102
        rows = self.apply(self._one(record), ()).select(pl.all().to_physical()).rows()
        if not rows:
            raise Dropped
        return tuple(read(value, column.kind) for value, column in zip(rows[0], self.output, strict=True))

    def test(self, record: tuple[Any, ...]) -> bool:  # noqa: D102
        return bool(self.predicate(self._one(record))[0])

    def predicate(self, frame: pl.DataFrame) -> pl.Series:  # noqa: D102
        if len(self.output) != 1:
            raise PlanError(f"a filter takes one expression, and got {len(self.output)}; join them with &.")
        (column,) = self.output
        answers = self.apply(frame.with_row_index(ROW), (ROW,))
        true = answers.filter(truthful(pl.col(column.name), column.kind)).get_column(ROW)
        mask = np.zeros(frame.height, dtype=bool)
        mask[true.to_numpy()] = True
        return pl.Series(mask, dtype=pl.Boolean)

    def _one(self, record: tuple[Any, ...]) -> pl.DataFrame:
        values = zip(self.reads, plain_record(record, self.schema, self.reads), strict=True)
        result = [series(name, [value], self.schema[name].kind) for name, value in values]
        return in_columns(result or [pl.Series(ONE, [0])])
