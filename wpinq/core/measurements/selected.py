"""The answers of `select`: the names of bins.

`WeightedSelection` publishes names by rounds. In each, a person's names weigh less the more of them there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.measurements.published import by_name
from wpinq.core.measurements.query import ChargedQuery
from wpinq.core.noise import Words
from wpinq.core.noise.selection import PartitionSelection
from wpinq.core.noise.weighted_rounds import OfRound, WeightedRounds, weights
from wpinq.core.pricing.quote import Quote
from wpinq.core.pricing.threshold import names_of, present
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Schema
from wpinq.core.state.table import Ids
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


class WeightedSelection(Selection):
    """Charged names of bins, by rounds (`core/noise/weighted_rounds.py`). Its plan gives pairs of a person and a name.

    The noise of a name in a round is a keyed function of both, so the names are the same for ever.
    """

    def __init__(self, quote: Quote[Any], person: tuple[str, ...], shown: Schema) -> None:
        super().__init__(quote)
        self._rounds: WeightedRounds = quote.mechanism
        self._person, self._shown = person, shown

    @property
    def bins(self) -> pl.DataFrame:
        """The names that were selected, ordered: one column for each of the collection's."""
        refuse_inside("select")
        if self._found is None:
            histogram, words = self._settled()
            there = redacted("select", lambda: [known[true > 0] for known, _, true in present(histogram, self.node)])
            pairs = names_of(self.node, there)
            self._found = redacted("select", lambda: self._selected(pairs, words))
        return self._found

    def _selected(self, pairs: pl.DataFrame, words: Words) -> pl.DataFrame:
        """The names that some round publishes."""
        names = [name for name in self.node.schema.names if name not in self._person]
        _, _, person = self._numbered(pairs.select(self._person))
        ids, first, name = self._numbered(pairs.select(names))
        published = np.zeros(len(ids), np.bool_)
        for number, round_ in enumerate(self._rounds.rounds):
            left = ~published[name]
            many = np.bincount(person[left], minlength=len(person) + 1)
            total = np.zeros(len(ids), np.int64)
            np.add.at(total, name[left], weights(many[person[left]]))
            published |= total + round_.noise.draw(OfRound(words, number), ids) >= round_.threshold
        chosen = pairs.select(names)[first[published]].rename(dict(zip(names, self._shown.names, strict=True)))
        return by_name(chosen, self._shown)

    def _numbered(self, frame: pl.DataFrame) -> tuple[Ids, np.ndarray, np.ndarray]:
        """The distinct rows of a frame: their identities, where each stands first, and for each row its number."""
        ids = identities(frame, self.node.schema.select(frame.columns), self.key_owner.identity_key)
        both = np.ascontiguousarray(ids).view([("low", np.uint64), ("high", np.uint64)]).reshape(-1)
        _, first, number = np.unique(both, return_index=True, return_inverse=True)
        return ids[first], first, number
