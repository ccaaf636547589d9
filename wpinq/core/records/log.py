"""The log of a live source: the records that were sent, epoch by epoch.

Epochs and the watermark come from the caller or the clock, never from the number or the contents of records (privacy
rule 13). A closed epoch never changes: records that are sent later belong to a later epoch.

Records are held for windows that are observed after they closed, and for plans that are measured later. A log that
keeps n epochs holds twice as many: a window can be observed while the epoch that closed it is among the last n, and
counts the records of the n epochs up to that one, so that its answer does not depend on the time of the observation.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import polars as pl

from wpinq.core.records import canonical
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.reader import HeldReader, passed, wanted
from wpinq.core.records.schema import Schema
from wpinq.core.records.weights import CAPACITY
from wpinq.errors import NotReadyError, SourceError


@dataclass(frozen=True)
class Merged:
    """What is known of epochs that were merged into one: all from the second on up to one.

    Attributes:
        last: The last of them.
        records: How many records the epochs had; it is never shown.
        columns: Those that hold the values that were sent; the others are null.
        bound: The fingerprint of the bound on users by which records were left out, in hexadecimal digits; else empty.
    """

    last: int
    records: int
    columns: tuple[str, ...]
    bound: str


@dataclass(frozen=True, eq=False, repr=False)
class Epoch:
    """A closed epoch.

    Attributes:
        frame: Its records, with their weights.
        watermark: All windows that end by this time are closed; a time as columns store it.
        merged: Where it stands for several epochs, what is known of them.
    """

    frame: pl.DataFrame
    watermark: int | None
    merged: Merged | None = None


def records_in(frame: pl.DataFrame) -> int:
    """How many records a frame with weights holds; those that were taken back count too."""
    return int(np.abs(frame[WEIGHT].to_numpy()).sum())


@dataclass(eq=False, repr=False)
class Log(HeldReader):
    """The records that were sent, as one frame with weights for each closed epoch.

    Attributes:
        schema: All columns with their kinds.
        name: Names the data set.
        keep: For how many epochs records are held for what is asked later; None for all.
        closed: How many epochs are closed.
        forgotten: How many of them are held no more.
        records: How many records the closed epochs hold; it is never shown.
        kept: Whether the epochs are kept for a restart, after which its questions are asked again.
        merged: Of which epochs what was kept for a restart is merged.
        lock: Is held while an epoch is closed, and while a query of the open one is charged.
    """

    grows: ClassVar[bool] = True

    schema: Schema
    name: str
    keep: int | None = None
    forgotten: int = 0
    records: int = 0
    kept: bool = False
    merged: Merged | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    _epochs: list[Epoch] = field(default_factory=list)
    _before: int | None = None
    _sent: list[pl.DataFrame] = field(default_factory=list)
    _taken_back: list[pl.DataFrame] = field(default_factory=list)
    _counted_before: list[pl.DataFrame] = field(default_factory=list)

    @property
    def closed(self) -> int:
        """How many epochs are closed."""
        return self.forgotten + len(self._epochs)

    @property
    def whole(self) -> bool:
        """Whether all that was sent is held, and will be when the open epoch closes."""
        return not self.forgotten and (self.keep is None or len(self._epochs) <= 2 * self.keep)

    def send(self, frame: pl.DataFrame, *, back: bool = False) -> None:
        """Take in records for the epoch that is open, or take them back."""
        names = list(self.schema.names)
        rows = frame if frame.columns == names else frame[names]
        (self._taken_back if back else self._sent).append(canonical.frame(rows, self.schema))

    def add(self, frame: pl.DataFrame) -> None:
        """Take in records for the epoch that is open which were counted elsewhere: canonical ones, with weights."""
        self._counted_before.append(frame.select(*self.schema.names, WEIGHT))

    def ready(self, watermark: int | None) -> Epoch:
        """The open epoch as it would be closed now: equal records are added up, and the watermark never decreases.

        Raises:
            SourceError: With all that was sent before there are more records than can be counted (`weights.py`).
        """
        counted_before = sum(int(frame[WEIGHT].sum()) for frame in self._counted_before)
        if self.records + counted_before + sum(each.height for each in (*self._sent, *self._taken_back)) > CAPACITY:
            raise SourceError(f"advance: {self.name} was sent more records than can be counted, 2^40; make another.")
        before = self.watermark(self.closed)
        latest = before if watermark is None else watermark if before is None else max(before, watermark)
        counted, more = self._counted(self._sent), list(self._counted_before)
        if self._taken_back:
            more.append(self._counted(self._taken_back).with_columns(-pl.col(WEIGHT)))
        if more:
            counted = Batch(pl.concat([counted, *more], how="vertical_relaxed"), self.schema).consolidate().frame
        return Epoch(counted, latest)

    def close(self, epoch: Epoch) -> Batch:
        """Close the open epoch as this and return its records; after those that were merged none before is held."""
        self._sent, self._taken_back, self._counted_before = [], [], []
        if epoch.merged is None:
            self.records += records_in(epoch.frame)
            self._epochs.append(epoch)
        else:
            self.records += epoch.merged.records
            self._epochs, self.forgotten, self._before = [], epoch.merged.last, epoch.watermark
        return Batch(epoch.frame, self.schema)

    def _counted(self, sent: list[pl.DataFrame]) -> pl.DataFrame:
        """How often each record stands in some frames."""
        frames = sent or [Batch.empty(self.schema).frame.drop(WEIGHT)]
        rows = pl.concat(frames, how="vertical_relaxed") if len(frames) > 1 else frames[0]
        return Batch.of(rows, self.schema).consolidate().frame

    def forget(self) -> None:
        """Drop records that no query can need any more."""
        with self.lock:
            while self.keep is not None and len(self._epochs) > 2 * self.keep:
                self._before = self._epochs.pop(0).watermark
                self.forgotten += 1

    def watermark(self, epoch: int) -> int | None:
        """The watermark at the end of an epoch that is held; None before the first."""
        number = epoch - self.forgotten
        return self._epochs[number - 1].watermark if number > 0 else self._before

    def closing(self, end: int) -> int | None:
        """The first epoch at whose end all windows that end by this time were closed; None if none was yet.

        Raises:
            NotReadyError: What they hold is kept no more.
        """
        least = -(1 << 63)
        index = bisect_left(
            self._epochs, end, key=lambda epoch_: least if epoch_.watermark is None else epoch_.watermark
        )
        if index == len(self._epochs):
            return None
        epoch = self.forgotten + index + 1
        early = self._before is not None and self._before >= end
        if early or (self.keep is not None and epoch <= self.closed - self.keep):
            raise NotReadyError(
                f"observe: {self.name} has closed this window more than {self.keep} epochs ago, and keeps no more; "
                "see live(keep=...)."
            )
        return epoch

    def read(
        self, columns: Sequence[str], epochs: int, share: tuple[int, int] = (0, 1), after: int = 0
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns of the epochs up to one, the last `keep` of them, with the weights of their rows."""
        first = after if self.keep is None else max(epochs - self.keep, after)
        if first < self.forgotten:
            raise NotReadyError(f"observe: {self.name} keeps no records for epoch {epochs}; see live(keep=...).")
        return self._frames(columns, first, epochs, share)

    def sent(self, columns: Sequence[str], epoch: int) -> Iterator[pl.DataFrame]:
        """What was sent in an epoch that is held."""
        return self._frames(columns, epoch - 1, epoch, (0, 1)) if epoch > self.forgotten else iter(())

    def held(self, epochs: int) -> Iterator[pl.DataFrame]:
        """All that was sent in the epochs up to one and is still held."""
        return self._frames(self.schema.names, self.forgotten, epochs, (0, 1))

    def _frames(self, columns: Sequence[str], first: int, last: int, share: tuple[int, int]) -> Iterator[pl.DataFrame]:
        names = wanted(self.schema, columns, self.name).names
        for number in range(first, last):
            frame = self._epochs[number - self.forgotten].frame
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
class Closed(HeldReader):
    """The first epochs of a log, once they are closed.

    Attributes:
        log: The log.
        epochs: How many of its epochs.
        after: Those after this one alone.
        at: The column that a mask reads.
        mask: Which rows are read; all by default.
    """

    grows: ClassVar[bool] = True

    log: Log
    epochs: int
    after: int = 0
    at: str = ""
    mask: pl.Expr | None = None

    schema, name, kept = passed("schema", "name", "kept", by="log")

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
            return self.log.read(columns, self.epochs, share, self.after)
        read = self.log.read(list(dict.fromkeys([*columns, self.at])), self.epochs, share, self.after)
        return (frame.filter(self.mask).select(*columns, WEIGHT) for frame in read)
