"""A source that is still being written: what was sent, epoch by epoch, each closed by whoever sends.

Epochs and the time up to which windows are closed come from the caller or the clock, never from the number or the
contents of records (privacy rule 13). A closed epoch never changes: what is sent later belongs to a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from wpinq.batch import WEIGHT, Batch
from wpinq.errors import NotReadyError
from wpinq.schema import Schema
from wpinq.sources.columns import wanted
from wpinq.sources.readers import ObjectReader


@dataclass(eq=False, repr=False)
class Log(ObjectReader):
    """Everything that was sent, as one counted frame for each closed epoch.

    Attributes:
        schema: All columns with their kinds.
        name: Names the data set.
        closed: How many epochs are closed.
        until: For each closed epoch, up to which time its windows are closed; times as columns store them.
        asked: Measurements that wait for the next epoch, each with its plan over the open source.
        versions: The data set as of the end of each epoch, as far as anybody asked.
    """

    schema: Schema
    name: str
    until: list[int | None] = field(default_factory=list)
    asked: list[tuple[Any, Any]] = field(default_factory=list)
    versions: dict[int, object] = field(default_factory=dict)
    _epochs: list[pl.DataFrame] = field(default_factory=list)
    _sent: list[pl.DataFrame] = field(default_factory=list)

    @property
    def closed(self) -> int:
        """How many epochs are closed."""
        return len(self._epochs)

    def send(self, frame: pl.DataFrame) -> None:
        """Take in records for the epoch that is open."""
        self._sent.append(frame.select(self.schema.names))

    def close(self, until: int | None) -> Batch:
        """Close the open epoch and return its records, equal ones counted together."""
        sent = [Batch.of(frame, self.schema) for frame in self._sent]
        batch = Batch.concat(sent, self.schema).consolidate()
        self._sent = []
        before = self.until[-1] if self.until else None
        self.until.append(before if until is None else until if before is None else max(before, until))
        self._epochs.append(batch.frame)
        return batch

    def closing(self, end: int) -> int | None:
        """The first epoch at whose end all windows that end by this time were closed; None if none was yet."""
        epochs = (number for number, until in enumerate(self.until, 1) if until is not None and until >= end)
        return next(epochs, None)

    def read(self, columns: Sequence[str], epochs: int, share: tuple[int, int] = (0, 1)) -> Iterator[pl.DataFrame]:
        """Frames of these columns of the first epochs, with the weights of their rows."""
        names = wanted(self.schema, columns, self.name).names
        for number, frame in enumerate(self._epochs[:epochs]):
            if number % share[1] == share[0] and frame.height:
                yield frame.select(*names, WEIGHT)

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Refuse: an open source has no end.

        Raises:
            NotReadyError: Always.
        """
        raise NotReadyError(f"{self.name}: it is still open; only its closed epochs can be read.")

    def __repr__(self) -> str:
        return f"Log{self.schema}"


@dataclass(frozen=True, eq=False)
class Closed(ObjectReader):
    """The first epochs of a log, once they are closed.

    Attributes:
        log: The log.
        epochs: How many of its epochs.
        at: The column that a mask reads.
        mask: Which rows are read; all by default.
    """

    log: Log
    epochs: int
    at: str = ""
    mask: pl.Expr | None = None

    @property
    def schema(self) -> Schema:
        """The columns of the log."""
        return self.log.schema

    @property
    def name(self) -> str:
        """The name of the log."""
        return self.log.name

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns, with the weights of their rows; see `Reader.batches`.

        Raises:
            NotReadyError: The last of the epochs is still open.
        """
        if self.log.closed < self.epochs:
            raise NotReadyError(f"observe: epoch {self.epochs} of {self.name} is still open; call advance() first.")
        if self.mask is None:
            return self.log.read(columns, self.epochs, share)
        read = self.log.read(list(dict.fromkeys([*columns, self.at])), self.epochs, share)
        return (frame.filter(self.mask).select(*columns, WEIGHT) for frame in read)
