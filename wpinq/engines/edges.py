"""The two ends of a dataflow in bytewax's terms: batches in from a reader, histograms out to the caller."""

from __future__ import annotations

from collections.abc import Callable

from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition

from wpinq.batch import Batch
from wpinq.engines.failures import Failure
from wpinq.engines.reading import batches
from wpinq.plan import Read
from wpinq.state.histogram import Histogram


class ReaderSource(DynamicSource[Batch]):
    """Every worker reads its share of a source."""

    def __init__(self, read: Read, progress: Callable[[int], None] | None, failure: Failure) -> None:
        self._read, self._progress, self._failure = read, progress, failure

    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSourcePartition[Batch]:
        """One worker's share."""
        return _Share(self._read, (worker_index, worker_count), self._progress, self._failure)


class _Share(StatelessSourcePartition[Batch]):
    def __init__(
        self, read: Read, share: tuple[int, int], progress: Callable[[int], None] | None, failure: Failure
    ) -> None:
        self._batches = batches(read, share, progress)
        self._next: Callable[[], list[Batch] | None] = failure.guard(
            f"reading {read.data.name}", lambda: next(self._batches, None), None
        )

    def next_batch(self) -> list[Batch]:
        found = self._next()
        if found is None:
            self._batches.close()
            raise StopIteration
        return found


class Collector(DynamicSink[tuple[int, Histogram]]):
    """Adds the shards of each measurement's histogram up in this process."""

    def __init__(self, found: list[Histogram], failure: Failure) -> None:
        self._found, self._failure = found, failure

    def build(
        self, step_id: str, worker_index: int, worker_count: int
    ) -> StatelessSinkPartition[tuple[int, Histogram]]:
        """All workers of a process share one collector."""
        return _Collected(self._found, self._failure)


class _Collected(StatelessSinkPartition[tuple[int, Histogram]]):
    def __init__(self, found: list[Histogram], failure: Failure) -> None:
        self._merge = failure.guard("measure", lambda number, histogram: found[number].merge(histogram), None)

    def write_batch(self, items: list[tuple[int, Histogram]]) -> None:
        for number, histogram in items:
            self._merge(number, histogram)
