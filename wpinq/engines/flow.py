"""The engine that everyone runs: plans lowered to columnar steps on bytewax.

Items are whole batches, never records. A keyed step is cut into shards by identity; a shard's label is all that bytewax
knows of a record, so neither its errors nor its logs can name one. A finite source is absorbed first and answered once,
at its end. Nothing here draws at random, charges anything or knows what a measurement is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, TypeVar, assert_never

import bytewax.operators as op
from bytewax.dataflow import Dataflow, Stream
from bytewax.operators import KeyedStream, StatefulBatchLogic
from bytewax.testing import run_main

from wpinq.batch import Batch
from wpinq.engines.edges import Collector, ReaderSource
from wpinq.engines.failures import Failure
from wpinq.engines.placement import labels
from wpinq.engines.shards import split
from wpinq.engines.sharing import needed_columns, representatives
from wpinq.plan import Keyed, Merge, Node, Read, State, Stateless, steps
from wpinq.state.histogram import Histogram, is_steps

V = TypeVar("V")
W = TypeVar("W")

Progress: TypeAlias = Callable[[int], None]
"""Called with the number of bytes of files read so far. Never rows: their number is protected."""


@dataclass(frozen=True, slots=True)
class Job:
    """What one run computes.

    Attributes:
        roots: The plans to measure; their common steps run once.
        key: Identity key of the data set.
        shards: Into how many shards each keyed step is cut.
        progress: Told how many bytes were read.
        failure: Keeps the first failure of a step.
        gather: Whether the shards lie on several processes, and end in the first.
    """

    roots: Sequence[Node]
    key: bytes
    shards: int = 1
    progress: Progress | None = None
    failure: Failure = field(default_factory=Failure)
    gather: bool = False


def run(job: Job) -> list[Histogram]:
    """Read the sources once and compute the histograms of all roots.

    Raises:
        SourceError: A source could not be read to its end.
        EngineError: A step failed; the message names it and never the data.
    """
    found: list[Histogram] = []
    job.failure.guard("the dataflow", _run, None)(job, found)
    job.failure.tell()
    return found


def _run(job: Job, found: list[Histogram]) -> None:
    found += [Histogram(root.schema, job.key) for root in job.roots]
    run_main(build(job, found))  # type: ignore[no-untyped-call]


def build(job: Job, found: list[Histogram]) -> Dataflow:
    """Lower the plans to a bytewax dataflow that adds its histograms to `found`."""
    flow = Dataflow("wpinq")
    lowering = Lowering(flow, job)
    streams = lowering.streams()
    for number, root in enumerate(job.roots):
        keys = () if is_steps(root.schema) else root.schema.names
        exchanged = _exchange(f"measure_{number}_in", streams[lowering.chosen[root]], keys, 0, job)
        counted = op.stateful_batch(f"measure_{number}", exchanged, _builder(partial(_Counter, root, job)))
        tagged = op.map(f"measure_{number}_tag", counted, _tagger(number))
        if job.gather:
            tagged = _gather(f"measure_{number}_home", tagged, labels(job.shards)[0])
        op.output(f"measure_{number}_out", tagged, Collector(found, job.failure))
    return flow


class Lowering:
    """Turns the steps of some plans into streams of batches, common steps once.

    Attributes:
        job: What is computed.
        chosen: For each step the one that is computed in its place.
        eager: Whether keyed steps answer every change at once, or only at the end.
    """

    eager = False

    def __init__(self, flow: Dataflow, job: Job) -> None:
        self._flow, self.job, self.chosen = flow, job, representatives(job.roots)
        self._needed = needed_columns(job.roots, self.chosen)

    def streams(self) -> dict[Node, Stream[Batch]]:
        """One stream for each representative step."""
        found: dict[Node, Stream[Batch]] = {}
        for node in steps(*self.job.roots):
            if self.chosen[node] is node:
                ups = [found[self.chosen[one]] for one in node.inputs]
                found[node] = self._step(f"step_{len(found)}", node, ups)
        return found

    def _step(self, name: str, node: Node, ups: list[Stream[Batch]]) -> Stream[Batch]:
        shape = node.lower(self._needed[node])
        match shape:
            case Read():
                return self.read(name, shape)
            case Stateless():
                return op.flat_map_batch(name, ups[0], _each(self.job.failure.guard(node.title, shape.kernel, None)))
            case Merge():
                scaled = [
                    _scaled(f"{name}_{i}", up, f) for i, (up, f) in enumerate(zip(ups, shape.factors, strict=True))
                ]
                return op.merge(name, *scaled)
            case Keyed():
                return self._keyed(name, node, shape, ups)
            case _:
                assert_never(shape)

    def read(self, name: str, shape: Read) -> Stream[Batch]:
        """The batches of a source."""
        return op.input(name, self._flow, ReaderSource(shape, self.job.progress, self.job.failure))

    def _keyed(self, name: str, node: Node, shape: Keyed, ups: list[Stream[Batch]]) -> Stream[Batch]:
        ports = [
            _exchange(f"{name}_{port}", up, keys, port, self.job)
            for port, (up, keys) in enumerate(zip(ups, shape.keys, strict=True))
        ]
        logic = _builder(lambda: _Step(node.title, shape.state(self.job.key), self.job.failure, self.eager))
        changed = op.stateful_batch(name, op.merge(f"{name}_ports", *ports), logic)
        return op.flat_map_batch(f"{name}_out", changed, lambda items: [batch for _, batch in items])


Routed: TypeAlias = "KeyedStream[tuple[int, Batch]]"


def _exchange(name: str, up: Stream[Batch], keys: Sequence[str], port: int, job: Job) -> Routed:
    """Send every record to the shard of its key."""

    def route(batches: list[Batch]) -> list[tuple[str, tuple[int, Batch]]]:
        pieces = (split(batch, keys, job.key, job.shards) for batch in batches)
        return [(label, (port, part)) for parts in pieces for label, part in parts]

    return op.flat_map_batch(name, up, job.failure.guard("exchange", route, []))


def _each(kernel: Callable[[Batch], Batch | None]) -> Callable[[list[Batch]], list[Batch]]:
    return lambda batches: [out for batch in batches if (out := kernel(batch))]


def _scaled(name: str, up: Stream[Batch], factor: int) -> Stream[Batch]:
    return up if factor == 1 else op.flat_map_batch(name, up, _each(lambda batch: batch.scale(factor)))


def _gather(name: str, up: Stream[V], home: str) -> Stream[V]:
    """Send all items to the worker of one label."""
    sent = op.map(f"{name}_sent", up, lambda item: (home, item))
    arrived = op.stateful_batch(name, sent, _builder(_Through))
    return op.map(f"{name}_arrived", arrived, lambda item: item[1])


def _tagger(number: int) -> Callable[[tuple[str, Histogram]], tuple[int, Histogram]]:
    return lambda item: (number, item[1])


def _builder(make: Callable[[], StatefulBatchLogic[V, W, None]]) -> Callable[[object], StatefulBatchLogic[V, W, None]]:
    return lambda _resume: make()


class _Step(StatefulBatchLogic[tuple[int, Batch], Batch, None]):
    """One shard of a keyed step."""

    def __init__(self, title: str, state: State, failure: Failure, eager: bool) -> None:
        self._eager = eager
        self._absorb = failure.guard(title, state.absorb, None)
        self._emit: Callable[[], Batch | None] = failure.guard(title, state.emit, None)

    def on_batch(self, values: list[tuple[int, Batch]]) -> tuple[list[Batch], bool]:
        for port, batch in values:
            self._absorb(port, batch)
        return self._changes() if self._eager else [], False

    def on_eof(self) -> tuple[list[Batch], bool]:
        return [] if self._eager else self._changes(), False

    def _changes(self) -> list[Batch]:
        change = self._emit()
        return [change] if change else []

    def snapshot(self) -> None:
        return None


class _Through(StatefulBatchLogic[V, V, None]):
    """Passes on what arrives."""

    def on_batch(self, values: list[V]) -> tuple[list[V], bool]:
        return values, False

    def snapshot(self) -> None:
        return None


class _Counter(StatefulBatchLogic[tuple[int, Batch], Histogram, None]):
    """One shard of a measured histogram."""

    def __init__(self, root: Node, job: Job) -> None:
        self._histogram = Histogram(root.schema, job.key)
        self._absorb = job.failure.guard("measure", self._histogram.absorb, None)

    def on_batch(self, values: list[tuple[int, Batch]]) -> tuple[list[Histogram], bool]:
        for _, batch in values:
            self._absorb(batch)
        return [], False

    def on_eof(self) -> tuple[list[Histogram], bool]:
        return [self._histogram], False

    def snapshot(self) -> None:
        return None
