"""Functions that return several records for one, as `flat_map` takes: run by the plain way, with numbered outputs.

Weights are divided by these numbers: output `place` of `count` (privacy rule 17). A set is sorted canonically, because
its own order is not a function of its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
import polars as pl

from wpinq.core.functions.function import Dropped
from wpinq.core.functions.isolate import each
from wpinq.core.functions.plain import Plain
from wpinq.core.records.kinds import Misfit, plain_record, read, series
from wpinq.core.records.values import encode

PLACE = "\0place"
COUNT = "\0count"
MAX_OUTPUTS = 720_720  # outputs of one record; a record with more is dropped, so a generator that never ends does end


@dataclass(frozen=True, eq=False)
class Many(Plain):
    """A Python function that returns an iterable of records for each record."""

    def call_many(self, record: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Map one record to a list of records.

        Raises:
            Dropped: The function raised, or returned what is no iterable of records.
        """
        (result,) = each(self._listed, [plain_record(record, self.schema, self.reads)])
        if result is None:
            raise Dropped
        kinds = [column.kind for column in self.output]
        return [tuple(read(value, kind) for value, kind in zip(row, kinds, strict=True)) for row in result]

    def apply_many(self, frame: pl.DataFrame, keep: Sequence[str]) -> pl.DataFrame:
        """Map all rows of a frame.

        Returns:
            The output columns, `PLACE` (from 0) and `COUNT`, followed by `keep`; one row for each output of each row.
        """
        rows, distinct, records = self._distinct(frame, keep)
        result = each(self._listed, records)
        listed = [outcome or () for outcome in result]
        counts = np.array([len(outcome) for outcome in listed], np.int64)
        origin = np.repeat(np.arange(len(counts)), counts)
        position = np.arange(len(origin)) - np.repeat(np.cumsum(counts) - counts, counts)
        outputs = list(chain.from_iterable(listed))
        results = [
            pl.Series("\0origin", origin, dtype=pl.Int64),
            pl.Series(PLACE, position, dtype=pl.Int64),
            pl.Series(COUNT, np.repeat(counts, counts), dtype=pl.Int64),
            *(
                series(f"\0out {n}", [output[n] for output in outputs], column.kind)
                for n, column in enumerate(self.output)
            ),
        ]
        inputs = distinct.with_row_index("\0origin").cast({"\0origin": pl.Int64})
        joined = rows.join(inputs, on=distinct.columns, nulls_equal=True).join(pl.DataFrame(results), on="\0origin")
        names = [pl.col(f"\0out {n}").alias(name) for n, name in enumerate(self.output.names)]
        return joined.select(*names, PLACE, COUNT, *keep)

    def _listed(self, values: tuple[Any, ...]) -> Sequence[tuple[Any, ...]]:
        result = self._result(values)
        if isinstance(result, (set, frozenset)):
            result = sorted(result, key=encode)
        items = result if type(result) is list else list(islice(result, MAX_OUTPUTS + 1))
        if len(items) > MAX_OUTPUTS:
            raise Misfit
        written = self._written
        return tuple([written(item) for item in items])  # the garbage collector looks at tuples of values once
