"""The two ends of a dataflow in bytewax's terms: batches in from a reader, histograms out to the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition

from wpinq.engines.exchange import Parcel
from wpinq.engines.reading import until_failure
from wpinq.failures import Failure
from wpinq.plan.shapes import Read
from wpinq.records.batch import Batch
from wpinq.state.histogram import Histogram, HistogramPart


class ReaderSource(DynamicSource[Batch]):
    """Every worker reads its share of a source."""

    def __init__(self, read: Read, progress: Callable[[int], None] | None, failure: Failure, beside: int) -> None:
        self._read, self._progress, self._failure, self._beside = read, progress, failure, beside

    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSourcePartition[Batch]:
        """One worker's share."""
        share = worker_index, worker_count
        return _Share(until_failure(self._read, share, self._progress, self._failure, self._beside))


class _Share(StatelessSourcePartition[Batch]):
    def __init__(self, found: Iterator[list[Batch]]) -> None:
        self._batches = found

    def next_batch(self) -> list[Batch]:
        return next(self._batches)


Counted: TypeAlias = "Histogram | Parcel[HistogramPart]"
"""What a process has counted: of its own all, of another the parts that were sent."""


class Collector(DynamicSink[tuple[int, Counted]]):
    """Adds the shards of each measurement's histogram up in this process."""

    def __init__(self, found: list[Histogram], failure: Failure) -> None:
        self._found, self._failure = found, failure

    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSinkPartition[tuple[int, Counted]]:
        """All workers of a process share one collector."""
        return _Collected(self._found, self._failure)


class _Collected(StatelessSinkPartition[tuple[int, Counted]]):
    def __init__(self, found: list[Histogram], failure: Failure) -> None:
        def add(number: int, counted: Counted) -> None:
            if isinstance(counted, Histogram):
                found[number].merge(counted)
            else:
                found[number].add(counted.content)

        self._add = failure.guard("measure", add, None)

    def write_batch(self, items: list[tuple[int, Counted]]) -> None:
        for number, counted in items:
            self._add(number, counted)
