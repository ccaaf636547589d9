"""What a stream brought, counted exactly: for its curator alone, and never a part of an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from wpinq.core.operators.contribution.preprocess import Derive
from wpinq.core.operators.contribution.unit_key import ByUnit
from wpinq.core.operators.window import Window
from wpinq.core.plan.forms import Where
from wpinq.core.plan.node import Source, steps
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.log import Log


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

    @property
    def facts(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        return {"offered": self.offered, "records": self.records, "nulls": dict(self.nulls)}

    def add(self, offered: int, records: int, nulls: Mapping[str, int]) -> None:
        """Add what another process has counted."""
        self.offered += offered
        self.records += records
        self.nulls.update(nulls)


def late(window: Window, log: Log, epoch: int) -> int | None:
    """How many records of an epoch are of windows that had closed before, and so are counted in none.

    Returns:
        The exact number, for the curator alone; None where the time is computed from other columns.
    """
    for node in steps(window.source):
        as_it_came = isinstance(node, (Source, Where, ByUnit)) or (isinstance(node, Derive) and node.name != window.at)
        if not as_it_came:
            return None
    before = log.watermark(epoch - 1)
    if before is None:
        return 0
    passed = window.span.numbers(window.at) < window.span.number_at(before)
    return sum(int(frame.filter(passed)[WEIGHT].abs().sum()) for frame in log.sent([window.at], epoch))
