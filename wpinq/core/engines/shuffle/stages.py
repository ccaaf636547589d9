"""The driver's part of a run: which task is next, what it is sent, and the sum of what all have counted.

`Loop` runs tasks one after another in this process. It is the adapter without machinery, on which the contracts are
tested.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from wpinq.core.engines.job import Job
from wpinq.core.engines.reading import batches
from wpinq.core.engines.shuffle.content import Content, pack, unpack
from wpinq.core.engines.shuffle.tasks import ROOT, Item, Made, Task, Tasks, added
from wpinq.core.plan.shapes import Read
from wpinq.core.state.histogram import Histogram

H = TypeVar("H")


class Shuffle(Protocol[H]):
    """What runs tasks and keeps what they send; `H` stands for content that is kept."""

    def perform(self, tasks: Sequence[Task[H]]) -> Iterator[Made[H]]:
        """Run all of these tasks, in any order, and say what they made; of a task that was run twice, once."""

    def keep(self, content: memoryview) -> H:
        """Keep what the driver itself has read."""

    def read(self, kept: H) -> bytes:
        """What was kept."""

    def travels(self, read: Read) -> bool:
        """Whether tasks read this source themselves; else the driver does."""


def run(tasks: Tasks, by: Shuffle[H]) -> list[Histogram]:
    """Run all tasks, and give the histograms of all roots.

    Raises:
        SourceError: A source could not be read to its end.
        EngineError: A step failed.
    """
    histograms = tasks.job.empty()
    inbox: defaultdict[tuple[int, int], list[Item[H]]] = defaultdict(list)
    for stage in tasks.stages():
        todo = [task for step in stage for task in _tasks_of(tasks, step, by, inbox)]
        for made in by.perform(todo):
            if made.step == ROOT:
                added(histograms, made.port, unpack(by.read(made.content)))
            else:
                inbox[made.step, made.shard // tasks.each].append(Item(made.port, made.shard, made.content))
    return histograms


def _tasks_of(
    tasks: Tasks, step: int, by: Shuffle[H], inbox: defaultdict[tuple[int, int], list[Item[H]]]
) -> Iterator[Task[H]]:
    """The tasks of a step; nothing follows from nothing, so a shard to which nothing was sent needs none."""
    shape = tasks.shape(step)
    itself = isinstance(shape, Read) and by.travels(shape)
    if isinstance(shape, Read) and not itself:
        lots = (lot for some in batches(shape, (0, 1), tasks.job.progress) for lot in some)
        for number, lot in enumerate(lots):
            inbox[step, number % tasks.parts].append(Item(0, 0, by.keep(pack(lot))))
    for part in range(tasks.parts):
        if itself:
            yield Task(step, part, None)
        elif items := inbox.pop((step, part), None):
            yield Task(step, part, sorted(items, key=lambda item: item.shard))


class Loop:
    """Runs one task after another; what they send is bytes, as everywhere."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def perform(self, tasks: Sequence[Task[bytes]]) -> Iterator[Made[bytes]]:
        """Run all tasks."""
        for task in tasks:
            items = (
                None
                if task.items is None
                else tuple(Item(item.port, item.shard, unpack(item.content)) for item in task.items)
            )
            for made in self._tasks.run(Task(task.step, task.part, items), self._tasks.job.progress):
                yield Made(made.step, made.port, made.shard, bytes(pack(made.content)))

    def keep(self, content: memoryview) -> bytes:
        """The bytes themselves."""
        return bytes(content)

    def read(self, content: bytes) -> bytes:
        """The bytes themselves."""
        return content

    def travels(self, read: Read) -> bool:
        """Tasks read all sources themselves."""
        return True


def _unpacked(item: Item[bytes]) -> Item[Content]:
    return Item(item.port, item.shard, unpack(item.content))


def run_in_loop(job: Job, parts: int, each: int = 1) -> list[Histogram]:
    """Compute the histograms of all roots in so many tasks, of so many shards each.

    Raises:
        SourceError, EngineError: See `run`.
    """
    tasks = Tasks(job, parts, each)
    return run(tasks, Loop(tasks))
