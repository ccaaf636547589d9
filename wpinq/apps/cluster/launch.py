"""`wpinq run --processes N`: a run on several processes of this machine, or on several machines.

The first process is the command itself: it alone opens the ledger, charges, and answers. The others get the script,
input and columns, and the keys for identities, samples and kept records, through a pipe or a file of mode 0600. They
never get the secret, so they can neither charge nor add or remove noise (privacy rule 37).

All processes connect before the first charge (`membership.py`). Errors that are found then cost nothing: another
script, other files, a port in use, a missing process. A later failure has been charged; the same query again is free.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from wpinq.apps.cluster.connection import listen
from wpinq.apps.cluster.membership import Host, Member
from wpinq.apps.cluster.task import Task, describe, read_task, rebuilt, same_plans
from wpinq.errors import EngineError, WpinqError

if TYPE_CHECKING:
    from wpinq.core.engines.job import Job
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.failures import Failure

LOSS_TIMEOUT = 5.0
"""Seconds for the engine to notice that a process is gone; afterwards this process ends itself."""


class Cluster:
    """The first process of a run, and the others.

    Args:
        addresses: Of all processes.
        children: Those of them that were started here.
    """

    def __init__(self, addresses: Sequence[str], children: Sequence[subprocess.Popen[bytes]] = ()) -> None:
        _check_engine()
        self._addresses, self._children = addresses, children
        self._host: Host | None = None
        self._plans = ""

    def meet(self, task: Task) -> None:
        """Connect to the others, which have the task; nothing has been charged yet.

        Raises:
            PlanError, SourceError, EngineError: They cannot compute this together.
        """
        hello = describe(task, rebuilt(task), self._addresses)
        self._plans = hello["dataflow"]
        self._host = Host(self._addresses, task.meeting, self._alive)
        for child in self._children:
            _tell(child, json.dumps(asdict(task)).encode())
        self._host.meet(hello)

    def compute(self, task: Task, measurements: Mapping[str, Measurement]) -> None:
        """Answer all measurements.

        Raises:
            SourceError, LedgerError, EngineError: It could not be computed; nothing was answered.
        """
        from wpinq.core.engines import cluster
        from wpinq.failures import Failure

        assert self._host is not None  # noqa: S101  see `meet`
        if same_plans(task, measurements) != self._plans:
            raise EngineError("the script makes other measurements each time it is run; nothing was answered.")
        every = list(measurements.values())
        every[0].key_owner.check()
        self._host.begin(self._lost, LOSS_TIMEOUT)
        try:
            result = cluster.run(job(every, 0, self._addresses, Failure()), 0, self._addresses)
        except cluster.LostError as error:
            raise EngineError(self._host.lost(LOSS_TIMEOUT) or str(error)) from None
        self._host.stop_watching()
        from wpinq.core.runs.run import answer  # here: the command line starts without what it loads

        waiting = [(item, histogram) for item, histogram in zip(every, result, strict=True) if not item.settled]
        answer((item, histogram, item.digest(histogram)) for item, histogram in waiting)

    def close(self, error: BaseException | None) -> None:
        """Tell the others how it ended."""
        if self._host is not None:
            why = str(error) if isinstance(error, WpinqError) else "it was stopped."
            self._host.close(**({"ended": why} if error else {"done": ""}))
        for child in self._children:
            with suppress(subprocess.TimeoutExpired):
                child.wait(LOSS_TIMEOUT if error is None else 0.2)

    def _alive(self) -> None:
        if any(child.poll() is not None for child in self._children):
            raise EngineError("another process of the cluster could not begin; nothing was charged.")

    def _lost(self, why: str) -> None:
        """End this process, because the engine would wait for ever for the one that is gone."""
        for child in self._children:
            child.kill()
        _leave(why)


def help_out(task: Task, process: int, addresses: Sequence[str]) -> None:
    """Run as another process of a cluster.

    Raises:
        PlanError, SourceError, EngineError: It cannot be, or another process failed.
    """
    _check_engine()
    from wpinq.core.engines import cluster

    with Member(addresses, process, task.meeting) as member:
        try:
            if process < len(addresses) - 1:
                listen(addresses[process]).close()
            every = rebuilt(task)
            hello = describe(task, every, addresses)
        except WpinqError as error:
            member.fail(str(error))
            raise
        member.announce(hello)
        member.watch(_leave)
        result = job(list(every.values()), process, addresses, cluster.FatalFailure(member.fail))
        try:
            cluster.run(result, process, addresses)
        except cluster.LostError:
            member.wait(LOSS_TIMEOUT)  # process 0 says more, and ends this process
            raise
        member.wait()


def _check_engine() -> None:
    from wpinq.core.engines.select import check_cluster

    check_cluster()


@contextmanager
def helpers(number: int) -> Iterator[Cluster]:
    """Start the other processes on this machine, and end them with the block."""
    _check_engine()
    addresses = [f"127.0.0.1:{port}" for port in _free_ports(number)]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for process in range(1, number):
            command = [sys.executable, "-m", "wpinq.apps.cluster.launch", str(process), ";".join(addresses)]
            started.append(_spawn(command))
        with closing(Cluster(addresses, started)) as cluster:
            yield cluster
    finally:
        for child in started:
            child.kill()
            child.wait()
            if child.stdin is not None:
                with suppress(OSError):
                    child.stdin.close()


@contextmanager
def closing(cluster: Cluster) -> Iterator[Cluster]:
    """Tell the others at the end of the block how it ended."""
    try:
        yield cluster
    except BaseException as error:
        cluster.close(error)
        raise
    cluster.close(None)


def job(every: Sequence[Measurement], process: int, addresses: Sequence[str], failure: Failure) -> Job:
    """The job of a process."""
    from wpinq.core.engines.job import Job

    hosts = [address.rpartition(":")[0] for address in addresses]
    return Job(
        [item.node for item in every],
        every[0].key_owner.identity_key,
        len(addresses),
        failure=failure,
        process=process,
        beside=hosts.count(hosts[process]),
    )


def _leave(why: str) -> None:
    """Print the reason, and end this process, whatever its other threads do."""
    from wpinq.core.engines.cluster import say

    say(why)
    os._exit(2)


def _spawn(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a process without output: the first process prints the script's output and all failures."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, env=_environment())  # noqa: S603


def _tell(child: subprocess.Popen[bytes], text: bytes) -> None:
    assert child.stdin is not None  # noqa: S101  it is a pipe
    with suppress(BrokenPipeError), child.stdin as pipe:
        pipe.write(text)


def _free_ports(number: int) -> list[int]:
    """Unused ports."""
    held = [socket.socket() for _ in range(number)]
    try:
        for item in held:
            item.bind(("127.0.0.1", 0))
        return [item.getsockname()[1] for item in held]
    finally:
        for entry in held:
            entry.close()


def _environment() -> dict[str, str]:
    """The environment of another process, without a secret."""
    hidden = ("WPINQ_SECRET", "WPINQ_SECRET_FILE", "BYTEWAX_DATAFLOW_API_ENABLED")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def main(words: Sequence[str]) -> None:
    """The entry of another process: its number and all addresses; the task comes by standard input.

    What takes long to load is loaded while the first process still looks at the script.
    """
    import polars  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from wpinq.core.engines.cluster import end

    text = sys.stdin.read()
    try:
        if text:  # else the first process has nothing to tell any more
            help_out(read_task(text), int(words[0]), words[1].split(";"))
    except WpinqError:
        sys.exit(2)  # the first process has received it, and prints it
    except BaseException as error:  # noqa: BLE001  its text may quote data
        from wpinq.failures import redact

        end(redact("the process", error))


if __name__ == "__main__":
    main(sys.argv[1:])
