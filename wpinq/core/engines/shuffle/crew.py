"""Processes of this machine that run tasks: each is started, told, asked, replaced where it died, and ended.

They are commands (`python -m ...`) that read what they are to do from a pipe as JSON: nothing is pickled, and no port
is opened. This module loads nothing that a task needs, so that they may start before this process has loaded that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from wpinq.core.state.memory import LIMIT, MEMORY
from wpinq.core.state.workers import THREADS, cores
from wpinq.errors import STAYS, EngineError, SourceError

TRIES = 3
"""Processes that one task may end."""
SECRETS = ("WPINQ_SECRET", "WPINQ_SECRET_FILE", "WPINQ_SECRET_COMMAND")
"""Names in the environment that no other process is told."""


class Crew:
    """Some processes that run tasks; they start at once.

    Args:
        number: How many.
        module: The module that each runs.

    Attributes:
        share: Of the cores and the memory that each was told to have.
    """

    def __init__(self, number: int, module: str) -> None:
        self._command = [sys.executable, "-m", module]
        self._job: str | None = None
        self.share = share(number)
        self._progress: Callable[[int], None] | None = None
        self._files = 0
        self._lock = threading.Lock()
        self._ended = False
        self.workers = [Worker(self._command, environment(self.share)) for _ in range(number)]

    def tell(self, job: Mapping[str, Any], progress: Callable[[int], None] | None) -> None:
        """Say what the next tasks are of.

        Args:
            job: What all are told before their first task.
            progress: Called with the number of bytes of files that they have read.
        """
        self._job, self._progress = json.dumps({"job": job}) + "\n", progress

    def perform(self, tasks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Run all tasks, and give their answers as they come.

        Raises:
            SourceError, EngineError: One failed, or ended process after process.
        """
        left, answers = iter(list(tasks)), SimpleQueue[dict[str, Any] | BaseException]()
        threads = [
            threading.Thread(target=self._serve, args=(index, left, answers), daemon=True)
            for index in range(min(len(self.workers), len(tasks)))
        ]
        for thread in threads:
            thread.start()
        for _ in tasks:
            answer = answers.get()
            if isinstance(answer, BaseException):
                raise answer
            if self._progress is not None and answer["read"]:
                self._progress(answer["read"])
            yield answer
        for thread in threads:
            thread.join()

    def end(self) -> None:
        """End all processes."""
        with self._lock:
            self._ended = True
        for worker in self.workers:
            worker.end()

    def _serve(
        self, index: int, left: Iterator[Mapping[str, Any]], answers: SimpleQueue[dict[str, Any] | BaseException]
    ) -> None:
        """Give one process its tasks, until there are none left."""
        try:
            while True:
                with self._lock:
                    task = next(left, None)
                if task is None or self._ended:
                    return
                answer = self._done(index, task)
                answers.put(failed(answer) if "failed" in answer else answer)
        except BaseException as error:  # noqa: BLE001  it is raised where answers are waited for
            answers.put(error)

    def _done(self, index: int, task: Mapping[str, Any]) -> dict[str, Any]:
        for _ in range(TRIES):
            with self._lock:
                self._files += 1
                file = str(self._files)
            answer = self.workers[index].ask({**task, "file": file}, self._job)
            if answer is not None:
                return answer
            with self._lock:
                if self._ended:
                    break
                self.workers[index].end()
                self.workers[index] = Worker(self._command, environment(self.share))
        raise EngineError(
            f"{TRIES} processes died one after another in the same task; nothing was answered. Is there memory left? "
            f"Fewer processes, or --memory, need less. {STAYS}"
        )


class Worker:
    """A process that runs tasks (`worker.py`)."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
            text=True,
        )  # fmt: skip
        self._job: str | None = None

    def ask(self, task: Mapping[str, Any], job: str | None) -> dict[str, Any] | None:
        """The answer to a task of a job; None where the process is gone."""
        if job is not self._job and job is not None:
            self._write(job)
            answer = self._read()
            if answer is None or "failed" in answer:
                return answer
            self._job = job
        self._write(json.dumps(task) + "\n")
        return self._read()

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()  # before its input ends, by which it would know that this process is gone
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _write(self, text: str) -> None:
        assert self.process.stdin is not None  # noqa: S101  it is a pipe
        with suppress(OSError):
            self.process.stdin.write(text)
            self.process.stdin.flush()

    def _read(self) -> dict[str, Any] | None:
        assert self.process.stdout is not None  # noqa: S101  it is a pipe
        try:
            line = self.process.stdout.readline()
            return json.loads(line) if line.endswith("\n") else None
        except (OSError, ValueError):
            return None


def share(number: int) -> dict[str, str]:
    """What each of so many processes has of the cores and the memory."""
    threads = str(max(1, cores() // number))
    return {THREADS: threads, "POLARS_MAX_THREADS": threads, MEMORY: str(LIMIT.most // number)}


def environment(shared: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process with its share: this one's, without the secret."""
    others = {name: value for name, value in os.environ.items() if name not in SECRETS}
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[4]), others.get("PYTHONPATH")]))
    return {**others, **shared, "PYTHONPATH": path}


def failed(answer: Mapping[str, Any]) -> EngineError | SourceError:
    """The error that a worker told."""
    return (SourceError if answer.get("source") else EngineError)(str(answer["failed"]))
