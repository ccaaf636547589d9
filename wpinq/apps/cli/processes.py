"""`--processes`, `--process-id`, `--addresses`, `--keys`: the processes of a run, and the number of this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from wpinq.apps.cluster import launch as cluster
from wpinq.apps.cluster.task import read_task, write_task
from wpinq.errors import PlanError, SourceError

if TYPE_CHECKING:
    from wpinq.apps.cluster.task import Task
    from wpinq.collection import Collection
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.core.plan.dataset import DataSet


@dataclass(frozen=True)
class ClusterOptions:
    """The processes of a run.

    Attributes:
        number: How many there are on this machine.
        process: Which of those at the addresses this is.
        addresses: Of all processes, where they are on several machines.
        keys: The file that holds the task for the others.
    """

    number: int
    process: int
    addresses: tuple[str, ...]
    keys: Path | None

    @classmethod
    def read(cls, number: int, process: int, addresses: str | None, keys: Path | None) -> ClusterOptions:
        """Read the options.

        Raises:
            PlanError: They do not fit together.
        """
        result = tuple(item.strip() for item in (addresses or "").split(",") if item.strip())
        if (keys is None) != (not result) or (result and number > 1):
            raise PlanError("--addresses and --keys go together, and not with --processes.")
        if not all(entry.rpartition(":")[0] and entry.rpartition(":")[2].isdigit() for entry in result):
            raise PlanError("--addresses: write host:port of each process, as in a.example:2101,b.example:2101.")
        if len(set(result)) < len(result) or len(result) == 1:
            raise PlanError("--addresses: give two or more, each of another process.")
        if not 0 <= process < max(len(result), 1):
            raise PlanError(f"--process-id {process}: it counts the addresses, from 0.")
        return cls(number, process, result, keys)

    @property
    def several(self) -> bool:
        """Whether there is more than this process."""
        return self.number > 1 or len(self.addresses) > 1

    @contextmanager
    def meeting(self, task: Callable[[DataSet], Task]) -> Iterator[ClusterRun]:
        """Start the others or wait for them; at the end of the block they are told whether it succeeded."""
        if self.number > 1:
            with cluster.helpers(self.number) as result:
                yield ClusterRun(result, task)
        elif self.addresses:
            with cluster.closing(cluster.Cluster(self.addresses)) as result:
                yield ClusterRun(result, task, self.keys)
        else:
            yield ClusterRun(None, task)

    def join(self, script: Path, source: str, recover: Path | None) -> None:
        """Run as one of the other processes, with the script and the input of this machine.

        Raises:
            SourceError: The file of keys cannot be read.
        """
        assert self.keys is not None  # noqa: S101  see `read`
        try:
            shared_task = read_task(self.keys.read_text(encoding="utf-8"))
        except OSError as error:
            raise SourceError(f"--keys {self.keys}: {error.strerror}; process 0 writes it, copy it here.") from None
        kept = None if recover is None else str(recover)
        cluster.help_out(
            replace(shared_task, script=str(script), source=source, recover=kept), self.process, self.addresses
        )
        if recover is not None:
            from wpinq.sources.recovered import forget

            forget(recover)


@dataclass
class ClusterRun:
    """The run of the first process, with other processes or alone.

    Attributes:
        cluster: All processes; None where this one is alone.
        task: Makes the task of the others for a data set.
        keys: The file of the task, for processes on other machines.
    """

    cluster: cluster.Cluster | None
    task: Callable[[DataSet], Task]
    keys: Path | None = None
    shared_task: Task | None = None

    def meet(self, views: Collection) -> Collection:
        """Connect to the others; `views` are protected, and nothing has been charged yet."""
        if self.cluster is not None:
            from wpinq.core.plan.node import sources

            self.shared_task = self.task(sources(views._node)[0])
            if self.keys is not None:
                write_task(self.shared_task, self.keys)
            self.cluster.meet(self.shared_task)
        return views

    def compute(self, measurements: Mapping[str, Measurement]) -> None:
        """Compute with the others; alone there is nothing to do yet."""
        if self.cluster is not None and self.shared_task is not None:
            self.cluster.compute(self.shared_task, measurements)
