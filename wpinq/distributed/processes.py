"""`wpinq.processes(4)`: an engine that runs plans in other processes of this machine.

What plans are made of is loaded where it is needed, so that a command can start the processes before.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wpinq.core.engines.shuffle.crew import Crew, share
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq.core.engines.job import Job
    from wpinq.core.plan.dataset import DataSet
    from wpinq.core.plan.node import Node
    from wpinq.core.state.histogram import Histogram

MOST = 256
WORKER = "wpinq.distributed"
"""The module that each process runs, where nothing else is said."""


class Processes:
    """Runs plans in some processes of this machine, each with its part of the cores and the memory.

    Args:
        number: How many.
        worker: The module that each runs.

    Raises:
        PlanError: It is no number of processes.
    """

    def __init__(self, number: int, worker: str = WORKER) -> None:
        if type(number) is not int or not 1 <= number <= MOST:
            raise PlanError(f"processes(...): takes a number of processes, from 1 to {MOST}.")
        self.number, self._worker = number, worker
        self._started: list[Crew] = []
        weakref.finalize(self, _end, self._started)

    def start(self) -> None:
        """Start the processes now, while this one has other things to do; else the first that is asked starts them."""
        if not self._started:
            self._started.append(Crew(self.number, self._worker))

    def handed(self, worker: str) -> list[Crew]:
        """The processes that were started, for another engine, if they run its module."""
        if self._worker != worker:
            return []
        crews = self._started[:]
        self._started.clear()
        return crews

    def _crew(self) -> Crew:
        """Processes that run: those that were started, if they have their part of what there is now."""
        try:
            crew = self._started.pop()
        except IndexError:
            return Crew(self.number, self._worker)
        if crew.share == share(self.number):
            return crew
        crew.end()
        return self._crew()

    def check(self, roots: Sequence[Node]) -> None:
        """Refuse plans that cannot be told to another process; nothing was charged.

        Raises:
            PlanError: There is one.
        """
        from wpinq.distributed.plans import plans_to_json

        plans_to_json(roots)

    def message(self, job: Job) -> Mapping[str, Any]:
        """What the other processes are told of some plans.

        Raises:
            PlanError: They cannot be told.
        """
        from wpinq.distributed.plans import plans_to_json

        return {"plans": plans_to_json(job.roots), "key": job.key.hex()}

    def prove(self, data: DataSet) -> None:
        """Let each process read its share of the files, which then wait for the first question.

        Raises:
            SourceError: One is damaged.
            EngineError: Processes died.
        """
        from wpinq.core.engines.shuffle import processes as shuffle
        from wpinq.distributed.data import data_to_json, travels

        if not travels(data):
            data.reader.prove()
            return
        crew = self._crew()
        self._started.append(crew)
        shuffle.prove(crew, data_to_json(data))

    def run(self, job: Job) -> list[Histogram]:
        """Compute the histograms of all roots.

        Raises:
            PlanError: They cannot be told to another process.
            SourceError: A source could not be read to its end.
            EngineError: A step failed, or processes died.
        """
        from wpinq.core.engines.shuffle import processes as shuffle
        from wpinq.distributed.data import travels

        message = self.message(job)
        return shuffle.run(self._crew(), job, message, lambda read: travels(read.data))

    def __repr__(self) -> str:
        return f"processes({self.number})"


def processes(number: int) -> Processes:
    """Run what is asked in so many processes of this machine: `protect(..., engine=wpinq.processes(4))`.

    Each reads a share of the files, and holds what belongs to some of the keys; each has its part of the cores and of
    the memory that counting may take. They are told the plan, how to open the files, and the keys that identify and
    sample records; never the secret. What they send each other lies encrypted in a private directory beside the ledger,
    or where `limit_memory(spill=...)` says, and is removed at the end. A process that dies is replaced.

    The answers are those of one process, bit for bit. What other processes cannot be told, such as a function of plain
    Python, is refused before it is charged; `wpinq run` runs it from its script. Records in memory, and tables of
    databases, are read by this process and sent to the others.

    Args:
        number: How many processes; as many as there are cores is a good number for large files.

    Raises:
        PlanError: It is no number of processes.
    """
    return Processes(number)


def _end(started: list[Crew]) -> None:
    """End processes that nobody will ask any more."""
    while started:
        started.pop().end()
