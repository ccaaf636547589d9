"""`wpinq.processes(4)`: an engine that runs plans in other processes of this machine."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from wpinq.core.engines.job import Job
from wpinq.core.engines.shuffle import processes as crews
from wpinq.core.engines.shuffle.processes import Crew, environment
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node
from wpinq.core.records.reader import Reader
from wpinq.core.state.histogram import Histogram
from wpinq.distributed.data import data_told, data_untold, travels
from wpinq.distributed.plans import plans_told, plans_untold
from wpinq.errors import PlanError


class Processes:
    """Runs plans in some processes of this machine, each with its part of the cores and the memory.

    Args:
        number: How many.

    Raises:
        PlanError: It is no number of processes.
    """

    command: tuple[str, ...] = ("wpinq.distributed",)

    def __init__(self, number: int) -> None:
        if type(number) is not int or not 1 <= number <= MOST:
            raise PlanError(f"processes(...): takes a number of processes, from 1 to {MOST}.")
        self.number = number
        self._started: list[Crew] = []
        weakref.finalize(self, _end, self._started)

    def start(self) -> None:
        """Start the processes now, while this one has other things to do; else the first that is asked starts them."""
        if not self._started:
            self._started.append(Crew(self.number, self.command))

    def _crew(self) -> Crew:
        """Processes that run: those that were started, if they have their part of what there is now."""
        try:
            crew = self._started.pop()
        except IndexError:
            return Crew(self.number, self.command)
        if crew.environment == environment(self.number):
            return crew
        crew.end()
        return self._crew()

    def check(self, roots: Sequence[Node]) -> None:
        """Refuse plans that cannot be told to another process; nothing was charged.

        Raises:
            PlanError: There is one.
        """
        plans_told(roots)

    def told(self, job: Job) -> Mapping[str, Any]:
        """What the other processes are told of some plans.

        Raises:
            PlanError: They cannot be told.
        """
        return {"plans": plans_told(job.roots), "key": job.key.hex()}

    def prove(self, data: DataSet) -> None:
        """Let each process read its share of the files, which then wait for the first question.

        Raises:
            SourceError: One is damaged.
            EngineError: Processes died.
        """
        if not travels(data):
            data.reader.prove()
            return
        crew = self._crew()
        self._started.append(crew)
        crews.prove(crew, data_told(data))

    def run(self, job: Job) -> list[Histogram]:
        """Compute the histograms of all roots.

        Raises:
            PlanError: They cannot be told to another process.
            SourceError: A source could not be read to its end.
            EngineError: A step failed, or processes died.
        """
        told = self.told(job)
        return crews.run(self._crew(), job, told, lambda read: travels(read.data))

    def __repr__(self) -> str:
        return f"processes({self.number})"


MOST = 256


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


def rebuilt(told: Mapping[str, Any]) -> Job:
    """The plans that a process was told, as a job."""
    return Job(plans_untold(told["plans"]), bytes.fromhex(told["key"]))


def opened(told: Mapping[str, Any]) -> Reader:
    """The records of a data set that a process was told."""
    return data_untold(told).reader


def _end(started: list[Crew]) -> None:
    """End processes that nobody will ask any more."""
    while started:
        started.pop().end()
