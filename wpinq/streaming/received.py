"""What a stream brought, counted exactly: for its curator alone, and never a part of an answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import polars as pl


@dataclass(repr=False)
class Received:
    """How much came since this process began. No noise protects it: whoever sees it can tell that one record came.

    Attributes:
        offered: Lines of files and standard input, and messages of topics.
        records: Those that are records; the others were dropped.
        nulls: For each column, in how many records it is null, because it was missing or not of its type.
    """

    offered: int = 0
    records: int = 0
    nulls: Counter[str] = field(default_factory=Counter)

    def take(self, frame: pl.DataFrame) -> None:
        """Count records."""
        self.records += frame.height
        self.nulls.update({column.name: column.null_count() for column in frame.get_columns()})
