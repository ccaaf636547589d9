"""Tasks in other processes of this machine, each with its part of the cores and of the memory.

They are commands (`python -m ...`) that read what they are to do from a pipe as JSON, and records from a private
directory as Arrow IPC (`core/state/run_files.py`): nothing is pickled, and no port is opened. A process that dies is
replaced, and its task alone is given out again; one that ends several processes is given up, with the run. The first
failure of a task ends the run: it would fail again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from wpinq.core.engines.job import Job
from wpinq.core.engines.shuffle import stages
from wpinq.core.engines.shuffle.tasks import ROOT, Made, Task, Tasks
from wpinq.core.engines.shuffle.worker import failed
from wpinq.core.plan.shapes import Read
from wpinq.core.state.histogram import Histogram
from wpinq.core.state.memory import LIMIT, MEMORY
from wpinq.core.state.run_files import Kept, Spill, Writer
from wpinq.core.state.workers import THREADS, cores
from wpinq.errors import EngineError
from wpinq.failures import STAYS

TRIES = 3
"""Processes that one task may end."""
BYTES_PER_PART = 1 << 26
"""Bytes of files in a share, at the most."""
BYTES_PER_SHARD = 1 << 21
"""Bytes of files of which a step holds the keys at a time, about."""
MOST_PARTS, MOST_SHARDS, MOST_EACH = 1 << 12, 1 << 8, 1 << 4
SECRETS = ("WPINQ_SECRET", "WPINQ_SECRET_FILE")
"""Names in the environment that no other process is told."""


def run(crew: Crew, job: Job, told: Mapping[str, Any], travels: Callable[[Read], bool]) -> list[Histogram]:
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
        spill = Spill.made(LIMIT.place)
        tasks = Tasks(job, *cut(job, len(crew.workers)))
        crew.tell(
            {
                "place": str(spill.place), "key": spill.key.hex(), "told": told, "parts": tasks.parts,
                "each": tasks.each, "outline": tasks.outline,
            },
            tasks.job.progress,
        )  # fmt: skip
        return stages.run(tasks, Processes(crew, spill, travels))
    finally:
        crew.end()
        if spill is not None:
            spill.remove()


def prove(crew: Crew, told: Mapping[str, Any]) -> None:
    """Let each process read a share of a data set to find damage; see `Reader.prove`.

    Args:
        crew: The processes.
        told: The data set as they are told of it.

    Raises:
        SourceError: It is damaged.
        EngineError: Processes died.
    """
    number = len(crew.workers)
    for _ in crew.perform([{"prove": told, "share": [share, number]} for share in range(number)]):
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
        self._own: Writer | None = None
        self._left: Counter[str] = Counter()

    def perform(self, tasks: Sequence[Task[Kept]]) -> Iterator[Made[Kept]]:
        """Run all tasks; files that nobody will read any more are removed."""
        for answer in self._crew.perform([_asked(task) for task in tasks]):
            for step, port, shard, *kept in answer["made"]:
                place = Kept(*kept)
                self._left[place.file] += step != ROOT
                yield Made(step, port, shard, place)
        self._left.subtract(item.content.file for task in tasks for item in task.items or ())
        for file in [file for file, left in self._left.items() if not left]:
            self._spill.forget(file)
            del self._left[file]

    def keep(self, content: memoryview) -> Kept:
        """Keep what was read here."""
        self._own = self._own or self._spill.writer("read")
        kept = self._own.write(content)
        self._left[kept.file] += 1
        return kept

    def read(self, kept: Kept) -> bytes:
        """What was kept."""
        return self._spill.read(kept)


def _asked(task: Task[Kept]) -> dict[str, Any]:
    """A task as a process is told of it."""
    items = None if task.items is None else [(item.port, item.shard, *item.content) for item in task.items]
    return {"step": task.step, "part": task.part, "items": items}


class Crew:
    """Some processes that run tasks; they start at once.

    Args:
        number: How many.
        command: The module that each runs, and its arguments.

    Attributes:
        environment: What they were started with: their part of cores and memory.
    """

    def __init__(self, number: int, command: Sequence[str]) -> None:
        self._command = [sys.executable, "-m", *command]
        self._job: str | None = None
        self.environment = environment(number)
        self._progress: Callable[[int], None] | None = None
        self._files = 0
        self._lock = threading.Lock()
        self._ended = False
        self.workers = [Worker(self._command, self.environment) for _ in range(number)]

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
            threading.Thread(target=self._serve, args=(place, left, answers), daemon=True)
            for place in range(min(len(self.workers), len(tasks)))
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
        self, place: int, left: Iterator[Mapping[str, Any]], answers: SimpleQueue[dict[str, Any] | BaseException]
    ) -> None:
        """Give one process its tasks, until there are none left."""
        try:
            while True:
                with self._lock:
                    task = next(left, None)
                if task is None or self._ended:
                    return
                answer = self._done(place, task)
                answers.put(failed(answer) if "failed" in answer else answer)
        except BaseException as error:  # noqa: BLE001  it is raised where answers are waited for
            answers.put(error)

    def _done(self, place: int, task: Mapping[str, Any]) -> dict[str, Any]:
        for _ in range(TRIES):
            with self._lock:
                self._files += 1
                file = str(self._files)
            answer = self.workers[place].ask({**task, "file": file}, self._job)
            if answer is not None:
                return answer
            with self._lock:
                if self._ended:
                    break
                self.workers[place].end()
                self.workers[place] = Worker(self._command, self.environment)
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


def environment(number: int) -> dict[str, str]:
    """The environment of each of so many processes: its part of cores and memory, and no secret."""
    own = {name: value for name, value in os.environ.items() if name not in SECRETS}
    threads = str(max(1, cores() // number))
    home = str(Path(__file__).parents[4])
    path = os.pathsep.join(filter(None, [home, own.get("PYTHONPATH")]))
    return {**own, THREADS: threads, "POLARS_MAX_THREADS": threads, MEMORY: str(LIMIT.most // number),
            "PYTHONPATH": path}  # fmt: skip
