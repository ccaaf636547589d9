"""The workers that one process starts, and starts again where one ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from wpinq.core.engines.shuffle.crew import environment, share
from wpinq.errors import PlanError
from wpinq.sources.form import Words
from wpinq.streaming.shared.home import Home
from wpinq.streaming.shared.leases import SECONDS
from wpinq.streaming.shared.sources import check, told
from wpinq.streaming.topic import Topic

EVERY = 1.0
LONGEST = 10.0
"""Seconds between two looks of a worker of a program that looks seldom, at most."""
MOST = 256
MODULE = "wpinq.streaming.shared"
PAUSE = 1.0
"""Seconds after which it is looked whether one ended."""


class Workers:
    """Some workers of this host, which run until they are closed or this process ends.

    Args:
        number: How many.
        told: What each is told (`worker.work`).
    """

    def __init__(self, number: int, told: dict[str, Any]) -> None:
        self._told, self._stop = json.dumps(told) + "\n", threading.Event()
        self._environment = environment(share(number))
        self._lock = threading.Lock()
        self.processes = [self._started() for _ in range(number)]
        threading.Thread(target=self._watch, name="wpinq watches workers", daemon=True).start()

    def close(self, patience: float = 30.0) -> None:
        """Let each finish what it reads, and give its leases back; after the patience, in seconds, it is ended."""
        self._stop.set()
        with self._lock:
            for process in self.processes:
                assert process.stdin is not None  # noqa: S101  it is a pipe
                process.stdin.close()
            for process in self.processes:
                try:
                    process.wait(patience)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def _watch(self) -> None:
        """Start those again that have ended."""
        while not self._stop.wait(PAUSE):
            with self._lock:
                if not self._stop.is_set():
                    self.processes = [self._alive(process) for process in self.processes]

    def _alive(self, process: subprocess.Popen[str]) -> subprocess.Popen[str]:
        """A process, or another one in the place of one that has ended."""
        if process.poll() is None:
            return process
        assert process.stdin is not None  # noqa: S101  it is a pipe
        process.stdin.close()
        return self._started()

    def _started(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(  # noqa: S603  our own module
            [sys.executable, "-m", MODULE], stdin=subprocess.PIPE, env=self._environment, text=True,
            start_new_session=True,
        )  # fmt: skip
        assert process.stdin is not None  # noqa: S101  it is a pipe
        with suppress(OSError):  # it has ended already, and is started again
            process.stdin.write(self._told)
            process.stdin.flush()
        return process


def employed(
    home: Home, source: str | os.PathLike[str] | Topic, form: Words, number: int, every: float = EVERY, *,
    history: bool = False,
) -> Workers:  # fmt: skip
    """Let some processes of this host read a source for a stream.

    Args:
        home: The stream.
        source: A topic, or a path or pattern of files of this host.
        form: The form of files.
        number: How many processes.
        every: Seconds between two looks of each.
        history: Whether files that were rotated before the first look are read, too.

    Raises:
        PlanError: It is no number of processes.
        SourceError: The columns cannot be read from such a source.
    """
    if not 0 < number <= MOST:
        raise PlanError(f"workers={number}: takes a number of processes, from 1 to {MOST}.")
    source = source if isinstance(source, Topic) else os.fspath(source)
    check(source, home.columns, form)
    words = {"home": home.told(), "source": told(source, form, history=history), "every": every, "seconds": SECONDS}
    return Workers(number, words)
