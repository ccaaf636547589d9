"""The default engine: plans lowered to columnar steps on bytewax.

Items are whole batches, never records. Steps are those of bytewax's core: its others, `map` say, are made of two or
three of them, each of which takes as long to make as a small batch to compute. A keyed step is cut into shards by
identity. bytewax sees the shard's label only, so neither its errors nor its logs can show a record. A finite source is
read to its end before keyed steps emit. This module draws no random numbers, charges nothing and does not know
measurements.

The ends of a dataflow are `Feed`, which every worker reads, and `HandOver`, which the caller receives. An exchange
between workers sends records to the shard of their key within one process: each batch is cut as it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar, assert_never

import bytewax.operators as op
from bytewax.dataflow import Dataflow, Stream
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.operators import KeyedStream, StatefulBatchLogic
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import run_main

from wpinq.core.engines.job import Job, Lowered
from wpinq.core.engines.linear import Linear, StepBatches, match
from wpinq.core.engines.reading import until_failure
from wpinq.core.engines.shards import split
from wpinq.core.plan.node import Node
from wpinq.core.plan.shapes import Keyed, Read
from wpinq.core.records.batch import Batch
from wpinq.core.state.histogram import Histogram
from wpinq.core.state.states import State
from wpinq.core.state.workers import cores
from wpinq.errors import Failure

T = TypeVar("T")


class Feed(DynamicSource[T]):
    """Items for every worker.

    Args:
        share: Gives, for a worker's number and that of all workers, its items in lists.
    """

    def __init__(self, share: Callable[[int, int], Iterator[list[T]]]) -> None:
        self._share = share

    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSourcePartition[T]:
        """One worker's share."""
        return _Share(self._share(worker_index, worker_count))


class _Share(StatelessSourcePartition[T]):
    def __init__(self, items: Iterator[list[T]]) -> None:
        self._items = items

    def next_batch(self) -> list[T]:
        return next(self._items)


class HandOver(DynamicSink[T]):
    """Hands every item to the caller.

    Args:
        take: Called with each item; all workers of a process call the same function.
    """

    def __init__(self, take: Callable[[T], None]) -> None:
        self._take = take

    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSinkPartition[T]:
        """All workers of a process hand over to one place."""
        return _Handed(self._take)


class _Handed(StatelessSinkPartition[T]):
    def __init__(self, take: Callable[[T], None]) -> None:
        self._take = take

    def write_batch(self, items: list[T]) -> None:
        for item in items:
            self._take(item)


Routed: TypeAlias = "KeyedStream[tuple[int, Batch]]"


def send(
    name: str, up: Stream[Batch], keys: Sequence[str], port: int, *, key: bytes, shards: int, failure: Failure
) -> Routed:  # fmt: skip
    """Send every record to the shard of its key; the engine sees the number of the shard, and nothing of the key."""

    def step(items: list[Batch]) -> list[tuple[str, tuple[int, Batch]]]:
        return [(str(shard), (port, part)) for item in items for shard, part in split(item, keys, key, shards)]

    return op.flat_map_batch(name, up, failure.guard("exchange", step, []))


V = TypeVar("V")
W = TypeVar("W")
Counts: TypeAlias = dict[Node, list[Callable[[Batch], None]]]
"""What counts the records that leave a step, where measurements alone read them."""


def run(job: Job, plan: Lowered | None = None) -> list[Histogram]:
    """Read the sources once and compute the histograms of all roots.

    Args:
        job: The plans.
        plan: They, where they are lowered already.

    Raises:
        SourceError: A source could not be read to its end.
        EngineError: A step failed; the message names it and never the data.
    """
    result = job.empty()
    job.failure.guard("the dataflow", lambda: run_main(build(job, result, plan)), None)()  # type: ignore[no-untyped-call]
    job.failure.raise_if_failed()
    return result


def build(job: Job, histograms: list[Histogram], plan: Lowered | None = None) -> Dataflow:
    """Lower the plans to a bytewax dataflow that adds to these histograms."""
    flow = Dataflow("wpinq")
    lowering = Lowering(flow, job, [histogram.absorb for histogram in histograms], plan)
    streams = lowering.streams()
    for number, root in enumerate(job.roots):
        keyed = op.flat_map_batch(f"measure_{number}_in", streams[lowering.plan.chosen[root]], _at_one_place)
        counted = op.stateful_batch(f"measure_{number}", keyed, _builder(partial(_Counter, root, job)))
        collect = job.failure.guard("measure", partial(_collect, histograms[number]), None)
        op.output(f"measure_{number}_out", counted, HandOver(collect))
    return flow


class Lowering:
    """Turns the steps of some plans into streams of batches, common steps once.

    Attributes:
        job: What is computed.
        plan: Its steps as shapes.
        eager: Whether keyed steps answer every change at once, or only at the end.

    Args:
        flow: Where they go.
        job: What is computed.
        count: For each measurement what counts records in this process. It is called with each piece of the last answer
            of a step that it alone reads, which as a stream would be held as a whole.
        plan: The steps, where they are lowered already.
    """

    eager = False

    def __init__(
        self, flow: Dataflow, job: Job, count: Sequence[Callable[[Batch], None]] = (), plan: Lowered | None = None
    ) -> None:
        self._flow, self.job, self.plan = flow, job, plan or Lowered(job)
        others = {
            self.plan.chosen[up]
            for node, shape in self.plan.shapes.items()
            for up in node.inputs
            if isinstance(shape, Keyed)
        }
        self._count: Counts = {}
        for root, absorb in zip(job.roots, count, strict=False):
            if (end := self.plan.chosen[root]) not in others:
                self._count.setdefault(end, []).append(job.failure.guard("measure", absorb, None))

    def streams(self) -> dict[Node, Stream[Batch]]:
        """For each representative step that a measurement or a keyed step reads, the stream of its batches."""
        plan = self.plan
        result: dict[Node, list[Stream[Batch]]] = {node: [] for node in plan.read}
        every = {node: plan.follows(node) for node, shape in plan.shapes.items() if isinstance(shape, Read | Keyed)}
        if not self.eager and self.job.shards == 1:
            match(plan.shapes, plan.chosen, self.job.roots, every.values())
        for number, (node, shape) in enumerate(plan.shapes.items()):
            if isinstance(shape, Read | Keyed):
                follows = every[node]
                ups = [_merged(f"step_{number}_up_{i}", result[up]) for i, up in enumerate(plan.ups(node))]
                out = self._step(f"step_{number}", node, shape, ups, follows)
                for i, end in enumerate(follows.ends):
                    result[end].append(op.flat_map_batch(f"step_{number}_to_{i}", out, _picker(end)))
        return {node: _merged(f"read_{number}", result[node]) for number, node in enumerate(plan.read)}

    def _step(
        self, name: str, node: Node, shape: Read | Keyed, ups: list[Stream[Batch]], follows: Linear
    ) -> Stream[StepBatches]:
        match shape:
            case Read():
                push = self.job.failure.guard("exchange", follows.push, {})
                return op.flat_map_batch(f"{name}_on", self.read(name, shape), partial(map, push))
            case Keyed():
                return self._keyed(name, node, shape, ups, follows)
            case _:
                assert_never(shape)

    def read(self, name: str, shape: Read) -> Stream[Batch]:
        """The batches of a source."""
        job = self.job

        def share(part: int, parts: int) -> Iterator[list[Batch]]:
            return until_failure(shape, (part, parts), job.progress, job.failure)

        return op.input(name, self._flow, Feed(share))

    def _keyed(
        self, name: str, node: Node, shape: Keyed, ups: list[Stream[Batch]], follows: Linear
    ) -> Stream[StepBatches]:
        from wpinq.core.engines.threads import state_of  # many plans have no step with a state

        job = self.job
        ports = [
            send(f"{name}_{port}", up, shape.keys[port], port, key=job.key, shards=job.shards, failure=job.failure)
            for port, up in enumerate(ups)
        ]
        threads = None if self.eager else cores()
        make = partial(state_of, shape, self.job.key, threads, self.plan.size)
        guard = partial(self.job.failure.guard, node.title)
        logic = _builder(lambda: _Step(guard, make(), follows, self._count, eager=self.eager))
        changed = op.stateful_batch(name, op.merge(f"{name}_ports", *ports), logic)
        return op.flat_map_batch(f"{name}_out", changed, partial(map, itemgetter(1)))


def _merged(name: str, streams: list[Stream[V]]) -> Stream[V]:
    return streams[0] if len(streams) == 1 else op.merge(name, *streams)


def _picker(end: Node) -> Callable[[list[StepBatches]], list[Batch]]:
    return lambda items: [batch for parts in items for batch in parts.get(end, ())]


def _at_one_place(items: list[Batch]) -> list[tuple[str, Batch]]:
    """Batches that a measurement counts, for one place."""
    return [("all", batch) for batch in items]


def _collect(histogram: Histogram, item: tuple[str, Histogram]) -> None:
    """Add a shard of a measurement's histogram up."""
    histogram.merge(item[1])


def _builder(make: Callable[[], StatefulBatchLogic[V, W, None]]) -> Callable[[object], StatefulBatchLogic[V, W, None]]:
    return lambda _resume: make()


class _Step(StatefulBatchLogic[tuple[int, Batch], StepBatches, None]):
    """One shard of a keyed step, and the linear steps that follow."""

    def __init__(self, guard: Callable[..., Any], state: State, follows: Linear, count: Counts, *, eager: bool) -> None:
        self._state, self._follows, self._eager, self._count = state, follows, eager, count
        self._absorb = guard(state.absorb, None)
        self._emit: Callable[[], StepBatches] = guard(self._emitted, {})

    def on_batch(self, values: list[tuple[int, Batch]]) -> tuple[list[StepBatches], bool]:
        for port, batch in values:
            self._absorb(port, batch)
        return [self._emit()] if self._eager else [], False

    def on_eof(self) -> tuple[list[StepBatches], bool]:
        return [] if self._eager else [self._emit()], False

    def _emitted(self) -> StepBatches:
        """What goes on; what a measurement alone reads is counted at once."""
        result: StepBatches = {}
        for parts in self._follows.changes(self._state, last=not self._eager):
            for end, batches in parts.items():
                if end not in self._count:
                    result.setdefault(end, []).extend(batches)
                for count in self._count.get(end, ()):
                    for batch in batches:
                        count(batch)
        return result

    def snapshot(self) -> None:
        return None


class _Counter(StatefulBatchLogic[Batch, Histogram, None]):
    """Counts a measured histogram."""

    def __init__(self, root: Node, job: Job) -> None:
        self._histogram = job.histogram(root)
        self._absorb = job.failure.guard("measure", self._histogram.absorb, None)

    def on_batch(self, values: list[Batch]) -> tuple[list[Histogram], bool]:
        for batch in values:
            self._absorb(batch)
        return [], False

    def on_eof(self) -> tuple[list[Histogram], bool]:
        return [self._histogram], False

    def snapshot(self) -> None:
        return None
