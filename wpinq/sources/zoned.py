"""A source whose instants are given as the clocks of one zone showed them, without a zone.

So days and hours of such a column are those that people of that zone mean, wherever it is used. Each value is converted
by itself, once it is null where no column holds it: of a far time Polars panics, also of one that lies under a null.
When clocks are put back, an hour has one name for two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from wpinq.core.records import canonical
from wpinq.core.records.reader import Reader
from wpinq.core.records.schema import Kind, Schema


@dataclass(frozen=True, slots=True)
class Zoned:
    """A reader with the clocks of a zone; all else is that of the source.

    Attributes:
        reader: The source.
        zone: The zone, such as Europe/Amsterdam.
    """

    reader: Reader
    zone: str

    @property
    def schema(self) -> Schema:
        """The columns, whose instants have become times without a zone."""
        schema = self.reader.schema
        return replace(schema, columns=tuple(replace(column, kind=_kind(column.kind)) for column in schema))

    @property
    def way(self) -> tuple[object, ...]:
        """The way of the source, and the zone with the version of its rules, which come with Polars."""
        return (*self.reader.way, type(self).__name__, self.zone, pl.__version__)

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns; see `Reader.batches`."""
        schema = self.reader.schema
        instants = [name for name in columns if name in schema and schema[name].kind is Kind.INSTANT]
        for frame in self.reader.batches(columns, share=share, progress=progress):
            yield frame.with_columns(self._shown(frame[name]) for name in instants)

    def _shown(self, instants: pl.Series) -> pl.Series:
        held = canonical.column(instants, Kind.INSTANT)
        return held.dt.convert_time_zone(self.zone).dt.replace_time_zone(None)

    def copied(self) -> Zoned:
        """The same over a copy of what its owner could change."""
        return Zoned(self.reader.copied(), self.zone) if hasattr(self.reader, "copied") else self

    def __getattr__(self, name: str) -> Any:
        if name == "counted":  # a database counts rows, and leaves some out, by instants and not by what clocks show
            raise AttributeError(name)
        return getattr(object.__getattribute__(self, "reader"), name)


def _kind(kind: Kind) -> Kind:
    return Kind.TIME if kind is Kind.INSTANT else kind
