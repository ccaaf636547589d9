"""A plan's five shapes as tasks: what one task does, wherever it runs.

    Read     read a share, and cut what follows by the key of who reads next
    Keyed    take in what was sent to a shard, fold it, and cut what follows again
    root     every task counts what it makes for a measured histogram; the driver adds the parts up, exactly

A task is a function of its plan, its number and its items: state, samples and dithers are functions of keys and records
and not of their order. So a task that dies is run again with the same outcome, and in however many parts a plan is cut,
its histograms are the same bit for bit. A task knows the keys that identify and sample records, and neither the secret,
the ledger nor noise (privacy rule 37).

A `Sender` cuts what a task made by the key of the next reader. Equal records are added up before they travel, where the
first lot of a route shows that this shrinks them; it changes no answer. Where a step needs identities alone
(`Keyed.hashed`), a task sends 24 bytes for each distinct record, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, TypeVar

import polars as pl

from wpinq.core.engines.job import Job, Lowered
from wpinq.core.engines.linear import Linear, StepBatches
from wpinq.core.engines.reading import batches
from wpinq.core.engines.shards import cut, split
from wpinq.core.engines.shuffle.content import Content
from wpinq.core.engines.threads import fitting, state_of
from wpinq.core.plan.node import Node
from wpinq.core.plan.shapes import Keyed, Read
from wpinq.core.records.batch import Batch
from wpinq.core.records.schema import Schema
from wpinq.core.state.histogram import Histogram
from wpinq.core.state.memory import LIMIT
from wpinq.core.state.spill import Disk, Overflow, Sized
from wpinq.core.state.states import Hashed, HashedState, State
from wpinq.core.state.workers import cores
from wpinq.core.state.write_buffer import Shrinking, Tally
from wpinq.errors import InternalError, redact

ROWS, OF_SHARD, MOST_ROWS = 1 << 16, 1 << 14, 1 << 20
"""Rows that are cut, and perhaps added up, at once: so many for each shard, and at least and at most so many."""
MAX_HELD_IDENTITIES = 1 << 27
"""Identities that a task adds up before it sends them: pages of 3 gigabytes."""
IDENTITIES_AT_ONCE = 1 << 20
"""Identities that are sent as one piece, of 24 megabytes."""


class Records:
    """Sends batches to the shards of their keys.

    Args:
        keys: The columns of the key.
        key: The key of identities.
        shards: How many shards there are.
    """

    def __init__(self, keys: Sequence[str], key: bytes, shards: int) -> None:
        self._keys, self._key, self._shards = tuple(keys), key, shards
        self._waiting: list[Batch] = []
        self._rows, self._most = 0, max(ROWS, min(OF_SHARD * shards, MOST_ROWS))
        self._shrinking = Shrinking()

    def add(self, batch: Batch) -> Iterator[tuple[int, Batch]]:
        """Let records wait, or send all that wait."""
        self._waiting.append(batch)
        self._rows += len(batch)
        if self._rows >= self._most:
            yield from self.rest()

    def rest(self) -> Iterator[tuple[int, Batch]]:
        """Send what waits."""
        if not self._waiting:
            return
        whole = Batch.concat(self._waiting, self._waiting[0].schema)
        self._waiting, self._rows = [], 0
        whole = self._shrinking(whole)
        yield from (piece for piece in split(whole, self._keys, self._key, self._shards) if len(piece[1]))


class Identities:
    """Sends the sums of records by identity; see `Records`."""

    def __init__(self, schema: Schema, key: bytes, shards: int) -> None:
        self._tally, self._shards = Tally(schema, key, threads=1), shards

    def add(self, batch: Batch) -> Iterator[tuple[int, Hashed]]:
        """Add records up."""
        self._tally.absorb(batch)
        if self._tally.size >= MAX_HELD_IDENTITIES:
            yield from self.rest()

    def rest(self) -> Iterator[tuple[int, Hashed]]:
        """Send the sums."""
        for shard, (ids, weights) in enumerate(cut(*self._tally.take(), self._shards)):
            for start in range(0, len(ids), IDENTITIES_AT_ONCE):
                some = slice(start, start + IDENTITIES_AT_ONCE)
                yield shard, Hashed(ids[some], weights[some])


H_co = TypeVar("H_co", covariant=True)
"""What stands for content that was sent: its bytes, or a place where they lie."""
TOGETHER = 1 << 18
"""Rows that a shard takes in at once."""
ROOT = -1
"""In the place of a step: the histogram of a measurement."""


@dataclass(frozen=True, slots=True)
class Item(Generic[H_co]):
    """What is sent to a task of a step: which of the step's inputs it is for, which shard, and the content."""

    port: int
    shard: int
    content: H_co


@dataclass(frozen=True, slots=True)
class Made(Generic[H_co]):
    """What a task made.

    Attributes:
        step: The number of the step that reads it, or `ROOT`.
        port: Which input of the step, or which measurement.
        shard: Which shard of the step.
        content: It.
    """

    step: int
    port: int
    shard: int
    content: H_co


@dataclass(frozen=True, slots=True)
class Task(Generic[H_co]):
    """What one task is to do.

    Attributes:
        step: The number of the step that reads or remembers.
        part: Which share of the source, or which shards.
        items: What was sent to it, shard by shard; None where it reads the source itself.
    """

    step: int
    part: int
    items: Iterable[Item[H_co]] | None


class Tasks:
    """The tasks of some plans.

    Args:
        job: The plans.
        parts: Into how many tasks a source or a step is cut.
        each: How many shards a task folds, one after the other; of fewer keys at a time the tables are in the cache.
    """

    def __init__(self, job: Job, parts: int, each: int = 1) -> None:
        self.job, self.parts, self.each, self.plan = job, parts, each, Lowered(job)
        self.origins = [node for node, shape in self.plan.shapes.items() if isinstance(shape, Read | Keyed)]
        self._roots: dict[Node, list[int]] = {}
        for number, root in enumerate(job.roots):
            self._roots.setdefault(self.plan.chosen[root], []).append(number)
        self._readers: dict[Node, list[tuple[int, int]]] = {}
        for number, node in enumerate(self.origins):
            for port, up in enumerate(self.plan.ups(node)):
                self._readers.setdefault(up, []).append((number, port))

    @property
    def outline(self) -> list[list[object]]:
        """The steps in their order and who reads what: processes that number them otherwise must not work together."""
        return [
            [node.title, sorted([*self._readers.get(end, ()), *((ROOT, root) for root in self._roots.get(end, ()))])]
            for node in self.origins
            for end in self._follows(node).ends
        ]

    def shape(self, step: int) -> Read | Keyed:
        """The shape of a step."""
        shape = self.plan.shapes[self.origins[step]]
        assert isinstance(shape, Read | Keyed)  # noqa: S101  see `origins`
        return shape

    def readers(self, step: int) -> set[int]:
        """The steps that read what a step makes."""
        ends = self._follows(self.origins[step]).ends
        return {reader for end in ends for reader, _ in self._readers.get(end, ())}

    def counted(self, step: int) -> bool:
        """Whether what a step makes is measured."""
        return any(end in self._roots for end in self._follows(self.origins[step]).ends)

    def stages(self) -> Iterator[list[int]]:
        """The steps in turn: those of a stage read what earlier stages made."""
        made = [self.readers(step) for step in range(len(self.origins))]
        left = set(range(len(self.origins)))
        while left:
            stage = sorted(step for step in left if not any(step in made[other] for other in left))
            yield stage
            left.difference_update(stage)

    def run(self, task: Task[Content], progress: Callable[[int], None] | None = None) -> Iterator[Made[Content]]:
        """What a task makes.

        Raises:
            SourceError: A source could not be read to its end.
            EngineError: A step failed; the message names it and never the data.
        """
        node, failed = self.origins[task.step], None
        try:
            yield from self._made(task, node, progress)
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001  Polars panics are no Exceptions; any text may quote data
            failed = redact(node.title, error)
        self.job.failure.raise_if_failed()
        if failed is not None:
            raise failed from None

    def _made(self, task: Task[Content], node: Node, progress: Callable[[int], None] | None) -> Iterator[Made[Content]]:
        follows = self._follows(node)
        senders = {(end, *reader): self._sender(end, *reader)
                   for end in follows.ends for reader in self._readers.get(end, ())}  # fmt: skip
        counted = {(end, root): self.job.histogram(self.job.roots[root])
                   for end in follows.ends for root in self._roots.get(end, ())}  # fmt: skip
        for some in self._folded(task, node, follows, progress):
            for end, changes in some.items():
                for batch in changes:
                    for root in self._roots.get(end, ()):
                        counted[end, root].absorb(batch)
                    for step, port in self._readers.get(end, ()):
                        sent = senders[end, step, port].add(batch)
                        yield from (Made(step, port, shard, content) for shard, content in sent)
        for (_, step, port), sender in senders.items():
            yield from (Made(step, port, shard, content) for shard, content in sender.rest())
        for (_, root), histogram in counted.items():
            yield from (Made(ROOT, root, 0, part) for part in histogram.parts() if len(part[0]))

    def _folded(
        self, task: Task[Content], node: Node, follows: Linear, progress: Callable[[int], None] | None
    ) -> Iterator[StepBatches]:
        shape = self.shape(task.step)
        if isinstance(shape, Read):
            yield from map(follows.push, self._read(shape, task, progress))
            return
        for _, items in groupby(task.items or (), lambda item: item.shard):
            state = self._state(shape)
            for port, content in _lots(items):
                if isinstance(content, Batch):
                    state.absorb(port, content)
                elif isinstance(content, Hashed) and isinstance(state, HashedState):
                    state.absorb_hashed(content)
                else:
                    raise InternalError(f"{node.title}: was sent what it does not take in; please report this.")
            yield from follows.changes(state, last=True)

    def _state(self, shape: Keyed) -> State:
        """A state for one shard; in one thread its keys are cut further only where they may not fit in memory."""
        threads, size = cores(), self.plan.size
        share = None if size is None else size // (self.parts * self.each)
        if threads > 1 or share is None or fitting(threads, share) > 1:
            return state_of(shape, self.job.key, threads, share)
        state = shape.state(self.job.key)
        return Overflow(state, Disk(LIMIT)) if isinstance(state, Sized) else state

    def _read(self, shape: Read, task: Task[Content], progress: Callable[[int], None] | None) -> Iterator[Batch]:
        if task.items is None:
            for some in batches(shape, (task.part, self.parts), progress):
                yield from some
            return
        yield from (item.content for item in task.items if isinstance(item.content, Batch))

    def _follows(self, node: Node) -> Linear:
        return self.plan.follows(node)

    def _sender(self, end: Node, step: int, port: int) -> Records | Identities:
        shape = self.shape(step)
        assert isinstance(shape, Keyed)  # noqa: S101  nothing else reads what was sent
        if shape.hashed:
            return Identities(end.schema, self.job.key, self.parts * self.each)
        return Records(shape.keys[port], self.job.key, self.parts * self.each)


def _lots(items: Iterable[Item[Content]]) -> Iterator[tuple[int, Content]]:
    """The contents of a shard, with batches of one input together, so that few calls take in many records."""
    waiting: dict[int, list[Batch]] = {}
    rows = 0
    for item in items:
        if not isinstance(item.content, Batch):
            yield item.port, item.content
            continue
        waiting.setdefault(item.port, []).append(item.content)
        rows += len(item.content)
        if rows >= TOGETHER:
            yield from ((port, _concat(batches)) for port, batches in waiting.items())
            waiting, rows = {}, 0
    yield from ((port, _concat(batches)) for port, batches in waiting.items())


def _concat(batches: list[Batch]) -> Batch:
    frames = [batch.frame for batch in batches]
    return Batch(pl.concat(frames, how="vertical_relaxed", rechunk=True), batches[0].schema)


def added(histograms: list[Histogram], number: int, content: Content) -> None:
    """Add a part of a measurement's histogram up.

    Raises:
        InternalError: It is none.
    """
    if isinstance(content, Batch | Hashed):
        raise InternalError("measure: a task sent records for a histogram; please report this.")
    histograms[number].add(content)
