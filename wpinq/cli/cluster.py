"""`wpinq run --processes N`: a run on several processes of this machine, or on several machines.

The first process is the command itself: it alone opens the ledger, charges, and answers. The others are told which
script, input and columns to use, and the two keys that identify and sample records, through a pipe or a file of mode
0600; they are never given the secret, so they could neither charge nor add or remove any noise (privacy rule 37).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from wpinq.cli.task import Task, read_task, rebuilt
from wpinq.errors import EngineError

if TYPE_CHECKING:
    from wpinq.engines.failures import Failure
    from wpinq.engines.flow import Job
    from wpinq.measurement import Measurement


READY = b"ready\n"
PATIENCE = 5.0
"""Seconds in which the engine notices that a process went away, unless it still waits for its first word."""


def compute(measurements: Mapping[str, Measurement], addresses: Sequence[str]) -> None:
    """Answer all measurements from a cluster of which this is the first process.

    Raises:
        SourceError, LedgerError, EngineError: It could not be computed; nothing was answered.
    """
    from wpinq.engines import cluster
    from wpinq.engines.failures import Failure

    every = list(measurements.values())
    home = every[0].home
    home.ledger.check_version(home.version, home.content())
    found = cluster.run(_job(every, 0, addresses, Failure()), 0, addresses)
    for one, histogram in zip(every, found, strict=True):
        if not one.settled:
            one.answer_from(histogram)


def help_out(
    told: Task, process: int, addresses: Sequence[str], ready: Callable[[], object] = lambda: None
) -> None:  # fmt: skip
    """Be another process of a cluster, and say when it is about to join."""
    from wpinq.engines import cluster

    job = _job(rebuilt(told), process, addresses, cluster.Fatal())
    ready()
    cluster.run(job, process, addresses)


@contextmanager
def helpers(told: Task, number: int) -> Iterator[list[str]]:
    """Start the other processes on this machine, and end them with the block.

    Yields:
        The addresses of all processes, on the loopback interface.
    """
    addresses = [f"127.0.0.1:{port}" for port in _free_ports(number)]
    started: list[subprocess.Popen[bytes]] = []
    done = threading.Event()
    try:
        for process in range(1, number):
            command = [sys.executable, "-m", "wpinq.cli.cluster", str(process), ";".join(addresses)]
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment())  # noqa: S603
            started.append(child)
            _tell(child, json.dumps(asdict(told)).encode())
        for child in started:
            _hear(child)
        threading.Thread(target=_watch, args=(started, done), daemon=True).start()
        yield addresses
        for child in started:
            child.wait()
    finally:
        done.set()
        for child in started:
            child.kill()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()


def _job(every: Sequence[Measurement], process: int, addresses: Sequence[str], failure: Failure) -> Job:
    from wpinq.engines.flow import Job

    hosts = [one.rpartition(":")[0] for one in addresses]
    return Job(
        [one.node for one in every],
        every[0].home.identity_key,
        len(addresses),
        failure=failure,
        process=process,
        beside=hosts.count(hosts[process]),
    )


def _tell(child: subprocess.Popen[bytes], text: bytes) -> None:
    assert child.stdin is not None  # noqa: S101  it is a pipe
    with suppress(BrokenPipeError), child.stdin as pipe:
        pipe.write(text)


def _hear(child: subprocess.Popen[bytes]) -> None:
    """Wait until a process is about to join the cluster: before that it could fail, and be waited for in vain."""
    assert child.stdout is not None  # noqa: S101  it is a pipe
    if child.stdout.readline() != READY:
        raise EngineError("another process of the cluster could not begin; nothing was answered.")


def _watch(started: Sequence[subprocess.Popen[bytes]], done: threading.Event) -> None:
    """End this process where another went away so early that the engine waits for it for ever."""
    while not done.wait(0.2):
        if any(child.poll() for child in started) and not done.wait(PATIENCE):
            for child in started:
                child.kill()
            print("wpinq: another process of the cluster went away; nothing was answered.", file=sys.stderr, flush=True)
            os._exit(2)


def _follow(parent: int) -> None:
    """End this process when the first one is gone."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(3)


def _free_ports(number: int) -> list[int]:
    """Ports that nobody uses."""
    held = [socket.socket() for _ in range(number)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def _environment() -> dict[str, str]:
    """The environment of another process, without a secret."""
    hidden = ("WPINQ_SECRET", "WPINQ_SECRET_FILE", "BYTEWAX_DATAFLOW_API_ENABLED")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def main(words: Sequence[str]) -> None:
    """The entry of another process: its number and all addresses; the task comes by standard input."""
    from wpinq.engines.cluster import end

    out = os.dup(1)
    threading.Thread(target=_follow, args=(os.getppid(),), daemon=True).start()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the script prints is printed by the first process
    try:
        help_out(read_task(sys.stdin.read()), int(words[0]), words[1].split(";"), lambda: os.write(out, READY))
    except BaseException as error:  # noqa: BLE001  its text may quote data
        from wpinq.engines.failures import told

        end(told("the process", error))


if __name__ == "__main__":
    main(sys.argv[1:])
