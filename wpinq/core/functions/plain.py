"""The plain way: a Python function called once for each distinct record of the columns that it reads.

It is always right and slow: the work grows with the number of distinct records. It runs all functions that cannot be
traced, and traced functions on the single records where column arithmetic and Python differ.

`Many` runs functions that return several records for one, as `flat_map` takes them. Outputs are numbered, and weights
are divided by these numbers: output `position` of `count` (privacy rule 17). A set is sorted canonically, because
its own order is not a function of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np
import polars as pl

from wpinq.core.functions.binding import Binding
from wpinq.core.functions.code.capture import Captured, capture, outlined
from wpinq.core.functions.code.fingerprint import platform
from wpinq.core.functions.function import Dropped, Function
from wpinq.core.functions.isolate import each
from wpinq.core.records import canonical
from wpinq.core.records.kinds import Misfit, plain_record, read, reads, series, stored, writer
from wpinq.core.records.schema import Column
from wpinq.core.records.values import encode

MASK = "\0mask"


@dataclass(frozen=True, eq=False)
class Plain(Function):
    """A Python function as it stands.

    Attributes:
        held: The function, with all that it captured.
        binding: Which columns its parameters are given.
        size: How many items its result must have; None when it is one bare value.
    """

    held: Captured
    binding: Binding
    size: int | None

    @property
    def function(self) -> Callable[..., Any]:
        """The function."""
        return self.held.function

    @property
    def covered(self) -> tuple[object, ...] | None:
        """The function, and its platform unless it is versioned; None where a value that it holds was changed."""
        result = super().covered
        if result is None or (self.held.restless and capture(self.function).code != self.held.code):
            return None
        return result if self.held.named else (*result, platform(zoned=self.held.zoned))

    @property
    def portable(self) -> tuple[object, ...] | None:
        """The function as people know it, in whatever version of Python."""
        code = self.held.code if self.held.named else outlined(self.function)
        return None if code is None else (code, self.reads, self.output, self.projection)

    def call(self, record: tuple[Any, ...]) -> tuple[Any, ...]:  # noqa: D102
        (result,) = each(self._mapped, [plain_record(record, self.schema, self.reads)])
        if result is None:
            raise Dropped
        return tuple(read(value, column.kind) for value, column in zip(result, self.output, strict=True))

    def test(self, record: tuple[Any, ...]) -> bool:  # noqa: D102
        return each(self._tested, [plain_record(record, self.schema, self.reads)]) == [True]

    def apply(self, frame: pl.DataFrame, keep: Sequence[str]) -> pl.DataFrame:  # noqa: D102
        rows, distinct, records = self._distinct(frame, keep)
        result = each(self._mapped, records)
        outcomes = [outcome for outcome in result if outcome is not None]
        results = [
            series(f"\0out {index}", [outcome[index] for outcome in outcomes], column.kind)
            for index, column in enumerate(self.output)
        ]
        mapped = distinct.filter(pl.Series([outcome is not None for outcome in result], dtype=pl.Boolean))
        joined = rows.join(mapped.with_columns(results), on=distinct.columns, how="inner", nulls_equal=True)
        names = [pl.col(f"\0out {index}").alias(name) for index, name in enumerate(self.output.names)]
        return joined.select(*names, *keep)

    def predicate(self, frame: pl.DataFrame) -> pl.Series:  # noqa: D102
        rows, distinct, records = self._distinct(frame, ())
        result = each(self._tested, records)
        mask = distinct.with_columns(pl.Series(MASK, [outcome is True for outcome in result], dtype=pl.Boolean))
        joined = rows.join(mask, on=distinct.columns, how="left", nulls_equal=True, maintain_order="left")
        return joined.get_column(MASK)

    def _distinct(
        self, frame: pl.DataFrame, keep: Sequence[str]
    ) -> tuple[pl.DataFrame, pl.DataFrame, Iterator[tuple[Any, ...]]]:
        """All rows, the distinct ones of what is read, by whose columns the two join, and the records in these."""
        inputs = [Column(f"\0in {index}", self.schema[name].kind) for index, name in enumerate(self.reads)]
        read = [stored(self.schema[name]).alias(key.name) for name, key in zip(self.reads, inputs, strict=True)]
        keys = canonical.bits(frame.with_columns(read or [pl.lit(0).alias("\0in")]))
        keys = keys.select([key.name for key in inputs] or ["\0in"])
        rows = pl.concat([frame.select(keep), keys], how="horizontal")
        distinct = keys.unique()
        return rows, distinct, canonical.numbers(distinct, inputs).iter_rows()

    @cached_property
    def _result(self) -> Callable[[tuple[Any, ...]], Any]:
        """The function of one record as columns store it; how it is called is decided once."""
        function, binding = self.function, self.binding
        read = reads([self.schema[name].kind for name in self.reads])
        if read is None and binding.straight:
            return lambda values: function(*values)

        def result(values: tuple[Any, ...]) -> Any:
            positional, keywords = binding.arguments(read(values) if read else values)
            return function(*positional, **keywords)

        return result

    def _mapped(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return self._written(self._result(values))

    @cached_property
    def _written(self) -> Callable[[Any], tuple[Any, ...]]:
        size, writers = self.size, [writer(column.kind) for column in self.output]
        if size is None:
            (write,) = writers
            return lambda result: (None if result is None else write(result),)

        def written(result: Any) -> tuple[Any, ...]:
            if not isinstance(result, (tuple, list)) or len(result) != size:
                raise Misfit
            pairs = zip(writers, result, strict=True)
            return tuple([None if value is None else write(value) for write, value in pairs])

        return written

    def _tested(self, values: tuple[Any, ...]) -> bool:
        return bool(self._result(values))


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
