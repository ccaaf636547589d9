"""The answers of `select`: the names of bins."""

from __future__ import annotations

from typing import Any

import polars as pl

from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.measurements.published import by_name
from wpinq.core.measurements.query import ChargedQuery
from wpinq.core.noise.selection import PartitionSelection
from wpinq.core.pricing.quote import Quote
from wpinq.core.pricing.threshold import names_of, present
from wpinq.core.records.schema import Schema
from wpinq.exact import decimal
from wpinq.failures import redacted


class Selection(ChargedQuery):
    """Charged names of bins, found when they are first asked for and the same for ever."""

    purpose = "selection"

    def __init__(self, quote: Quote[Any]) -> None:
        super().__init__(quote)
        self.delta = quote.delta
        self._mechanism: PartitionSelection = quote.mechanism
        self._shown: Schema = self.node.schema
        self._found: pl.DataFrame | None = None

    @property
    def bins(self) -> pl.DataFrame:
        """The bins that were selected, ordered by name: one column for each of the collection's.

        Raises:
            SourceError, EngineError, LedgerError: The dataflow could not run.
        """
        refuse_inside("select")
        if self._found is None:
            histogram, words = self._settled()
            keep = self._mechanism.keep
            chosen = redacted(
                "select",
                lambda: [known[keep(words, ids, true)] for known, ids, true in present(histogram, self.node)],
            )
            self._found = by_name(names_of(self.node, chosen), self.node.schema)
        return self._found

    def __repr__(self) -> str:
        label = f"{self.name!r}, " if self.name else ""
        cost = f"epsilon {decimal(self.epsilon)}, delta {decimal(self.delta)}"
        return f"<selection {label}{self._shown}, {cost}>"
