"""Tasks in other processes of this machine, each with its part of the cores and of the memory.

They (`crew.py`) send each other records through a private directory as Arrow IPC (`core/state/spill.py`). A process
that dies is replaced, and its task alone is given out again; one that ends several processes is given up, with the run.
The first failure of a task ends the run: it would fail again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from wpinq.core.engines.job import Job
from wpinq.core.engines.shuffle import stages
from wpinq.core.engines.shuffle.crew import Crew
from wpinq.core.engines.shuffle.tasks import ROOT, Made, Task, Tasks
from wpinq.core.plan.shapes import Read
from wpinq.core.state.histogram import Histogram
from wpinq.core.state.memory import LIMIT
from wpinq.core.state.spill import Kept, Spill, Writer

BYTES_PER_PART = 1 << 28
"""Bytes of files in a share, at the most."""
BYTES_PER_SHARD = 1 << 21
"""Bytes of files of which a step holds the keys at a time, about."""
MOST_PARTS, MOST_SHARDS, MOST_EACH = 1 << 12, 1 << 8, 1 << 5


def run(crew: Crew, job: Job, plans: Mapping[str, Any], travels: Callable[[Read], bool]) -> list[Histogram]:
    """Compute the histograms of all roots in some other processes, which are ended.

    Args:
        crew: They.
        job: The plans.
        told: The plans as the others are told of them, in plain values of JSON.
        travels: Whether the others can read a source themselves; else this process reads it for them.

    Raises:
        SourceError: A source could not be read to its end.
        EngineError: A step failed, or processes died; the message never quotes data.
    """
    spill = None
    try:
        spill = Spill.made(LIMIT.folder)
        tasks = Tasks(job, *cut(job, len(crew.workers)))
        crew.tell(
            {
                "place": str(spill.folder), "key": spill.key.hex(), "told": plans, "parts": tasks.parts,
                "each": tasks.each, "outline": tasks.outline,
            },
            tasks.job.progress,
        )  # fmt: skip
        return stages.run(tasks, Processes(crew, spill, travels))
    finally:
        crew.end()
        if spill is not None:
            spill.remove()


def prove(crew: Crew, source: Mapping[str, Any]) -> None:
    """Let each process read a share of a data set to find damage; see `Reader.prove`.

    Args:
        crew: The processes.
        told: The data set as they are told of it.

    Raises:
        SourceError: It is damaged.
        EngineError: Processes died.
    """
    number = len(crew.workers)
    for _ in crew.perform([{"prove": source, "share": [share, number]} for share in range(number)]):
        pass


def cut(job: Job, number: int) -> tuple[int, int]:
    """Into how many tasks a source or a step is cut for so many workers, and how many shards each folds.

    Every worker has as many tasks as every other.
    """
    size = Tasks(job, 1).plan.size or 0
    rounds = min(-(-size // (number * BYTES_PER_PART)), MOST_PARTS // number)
    parts = number * max(1, rounds)
    return parts, max(1, min(size // (parts * BYTES_PER_SHARD), MOST_SHARDS // parts, MOST_EACH))


class Processes:
    """Runs tasks in the processes of a crew; see `stages.Shuffle`."""

    def __init__(self, crew: Crew, spill: Spill, travels: Callable[[Read], bool]) -> None:
        self._crew, self._spill = crew, spill
        self.travels = travels
        self._writer: Writer | None = None
        self._left: Counter[str] = Counter()

    def perform(self, tasks: Sequence[Task[Kept]]) -> Iterator[Made[Kept]]:
        """Run all tasks; files that nobody will read any more are removed."""
        for answer in self._crew.perform([_as_json(task) for task in tasks]):
            for step, port, shard, *address in answer["made"]:
                extent = Kept(*address)
                self._left[extent.file] += step != ROOT
                yield Made(step, port, shard, extent)
        self._left.subtract(item.content.file for task in tasks for item in task.items or ())
        for file in [file for file, left in self._left.items() if not left]:
            self._spill.forget(file)
            del self._left[file]

    def keep(self, content: memoryview) -> Kept:
        """Keep what was read here."""
        self._writer = self._writer or self._spill.writer("read")
        extent = self._writer.write(content)
        self._left[extent.file] += 1
        return extent

    def read(self, kept: Kept) -> bytes:
        """What was kept."""
        return self._spill.read(kept)


def _as_json(task: Task[Kept]) -> dict[str, Any]:
    """A task as a process is told of it."""
    items = None if task.items is None else [(item.port, item.shard, *item.content) for item in task.items]
    return {"step": task.step, "part": task.part, "items": items}
