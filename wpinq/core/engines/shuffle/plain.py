"""Tasks in a loop of this process: the adapter without any machinery, over which the contracts are tested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wpinq.core.engines.job import Job
from wpinq.core.engines.shuffle import stages
from wpinq.core.engines.shuffle.content import Content, pack, unpack
from wpinq.core.engines.shuffle.tasks import Item, Made, Task, Tasks
from wpinq.core.plan.shapes import Read
from wpinq.core.state.histogram import Histogram


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


def run(job: Job, parts: int, each: int = 1) -> list[Histogram]:
    """Compute the histograms of all roots in so many tasks, of so many shards each.

    Raises:
        SourceError, EngineError: See `stages.run`.
    """
    tasks = Tasks(job, parts, each)
    return stages.run(tasks, Loop(tasks))
