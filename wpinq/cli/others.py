"""`--processes`, `--process-id`, `--addresses`, `--keys`: which processes a run has, and which of them this one is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from wpinq.cli import cluster
from wpinq.cli.task import read_task, write_task
from wpinq.errors import PlanError, SourceError

if TYPE_CHECKING:
    from wpinq.cli.task import Task
    from wpinq.measurement import Measurement


@dataclass(frozen=True)
class Others:
    """The processes of a run.

    Attributes:
        number: How many there are on this machine.
        process: Which of those at the addresses this is.
        addresses: Of all processes, where they are on several machines.
        keys: The file that tells the others what they must know.
    """

    number: int
    process: int
    addresses: tuple[str, ...]
    keys: Path | None

    @classmethod
    def read(cls, number: int, process: int, addresses: str | None, keys: Path | None) -> Others:
        """Read the options.

        Raises:
            PlanError: They do not fit together.
        """
        found = tuple(one.strip() for one in (addresses or "").split(",") if one.strip())
        if (keys is None) != (not found) or (found and number > 1):
            raise PlanError("--addresses and --keys go together, and not with --processes.")
        if not all(one.rpartition(":")[0] and one.rpartition(":")[2].isdigit() for one in found):
            raise PlanError("--addresses: write host:port of each process, as in a.example:2101,b.example:2101.")
        if not 0 <= process < max(len(found), 1):
            raise PlanError(f"--process-id {process}: it counts the addresses, from 0.")
        return cls(number, process, found, keys)

    @property
    def several(self) -> bool:
        """Whether there is more than this process."""
        return self.number > 1 or len(self.addresses) > 1

    def check(self, recover: Path | None, version: str | None) -> None:
        """Refuse what does not go with several processes.

        Raises:
            PlanError: It does not.
        """
        if self.several and recover is not None:
            raise PlanError("--recover: goes with one process; a cluster that fails is run again from the start.")
        if self.addresses and version is None:
            raise PlanError("--addresses: files differ in place and time on each machine; name them by --data-version.")

    def compute(self, measurements: Mapping[str, Measurement], task: Callable[[], Task]) -> None:
        """Compute with the others, as the first of them; alone there is nothing to do yet."""
        if self.keys is not None and self.addresses:
            write_task(task(), self.keys)
            cluster.compute(measurements, self.addresses)
        elif self.number > 1:
            with cluster.helpers(task(), self.number) as addresses:
                cluster.compute(measurements, addresses)

    def join(self, script: Path, source: str) -> None:
        """Be one of the others, with the script and the input as they lie on this machine.

        Raises:
            SourceError: The file of keys cannot be read.
        """
        assert self.keys is not None  # noqa: S101  see `read`
        try:
            told = read_task(self.keys.read_text(encoding="utf-8"))
        except OSError as error:
            raise SourceError(f"--keys {self.keys}: {error.strerror}; process 0 writes it, copy it here.") from None
        cluster.help_out(replace(told, script=str(script), source=source), self.process, self.addresses)
