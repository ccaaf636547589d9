"""A process that runs tasks for another one: it reads lines of JSON, and answers each by a line.

A line says what is to be computed, under which key and where what is sent lies; or which share of a data set is read to
find damage; or it is one task. An answer says where what a task made lies, or why it failed. When the other process is
gone this one removes the directory of the run and ends at once, whatever it is doing. It prints nothing: its output may
quote data.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from wpinq.core.engines.job import Job
from wpinq.core.engines.shuffle.content import Content, pack, unpack
from wpinq.core.engines.shuffle.tasks import Item, Task, Tasks
from wpinq.core.records.reader import Reader
from wpinq.core.state.spill import Kept, Spill
from wpinq.errors import InternalError, SourceError, redact

OTHERWISE = "the plans have other steps in another process; nothing was answered. Please report this."


def alike(tasks: Tasks, outline: list[Any]) -> Tasks:
    """The tasks, if they are numbered as in the first process.

    Raises:
        InternalError: They are not.
    """
    if json.loads(json.dumps(tasks.outline)) != outline:
        raise InternalError(OTHERWISE)
    return tasks


@dataclass
class Lazy:
    """The items of a task, each read when it is asked for."""

    spill: Spill
    items: list[tuple[int, int, str, int, int]]

    def __iter__(self) -> Iterator[Item[Content]]:
        for port, shard, file, start, size in self.items:
            yield Item(port, shard, unpack(self.spill.read(Kept(file, start, size))))


def serve_tasks(rebuilt: Callable[[dict[str, Any]], Job], opened: Callable[[dict[str, Any]], Reader]) -> None:
    """Run tasks until the other process is gone.

    Args:
        rebuilt: Makes the plans of what was told.
        opened: Opens a data set that was told.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process is asked to stop, and stops this one
    answers, lines = _private_output(), Lines()
    tasks: Tasks | None = None
    answer: dict[str, Any]
    while True:
        message = lines.next()
        try:
            if "job" in message:
                answer, tasks = {"ready": True}, _begun(rebuilt, message["job"])
            elif "prove" in message:
                opened(message["prove"]).prove(tuple(message["share"]))
                answer = {"made": [], "read": 0}
            else:
                answer = _done(tasks, lines.spill, message)
        except BaseException as error:  # noqa: BLE001  its text may quote data
            known = redact("a task", error)
            answer = {"failed": str(known), "source": isinstance(known, SourceError)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _begun(rebuilt: Callable[[dict[str, Any]], Job], message: dict[str, Any]) -> Tasks:
    """The tasks of a job."""
    return alike(Tasks(rebuilt(message["told"]), message["parts"], message["each"]), message["outline"])


class Lines:
    """Messages, each a line of standard input, read by a thread of their own; it ends this process after the last.

    Attributes:
        spill: Where what the tasks of the last job send lies, of which this process knows before it begins the job.
    """

    def __init__(self) -> None:
        self.spill = Spill(Path(), b"")
        self._messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def next(self) -> dict[str, Any]:
        """The next message."""
        return self._messages.get()

    def _read(self) -> None:
        try:
            for line in sys.stdin:
                message = json.loads(line)
                with suppress(ValueError, KeyError, TypeError):  # what is no job is answered as one that fails
                    self.spill = Spill(Path(message["job"]["place"]), bytes.fromhex(message["job"]["key"]))
                self._messages.put(message)
        finally:
            if self.spill.key:
                self.spill.remove()
            os._exit(0)


def _done(tasks: Tasks | None, spill: Spill, message: dict[str, Any]) -> dict[str, Any]:
    """Run a task, and say where what it made lies."""
    if tasks is None:
        raise InternalError(OTHERWISE)
    items = None if message["items"] is None else Lazy(spill, message["items"])
    read: list[int] = []
    writer = spill.writer(message["file"])
    try:
        made = [
            (piece.step, piece.port, piece.shard, *writer.write(pack(piece.content)))
            for piece in tasks.run(Task(message["step"], message["part"], items), read.append)
        ]
    finally:
        writer.close()
    return {"made": made, "read": sum(read)}


def _private_output() -> IO[str]:
    """Where answers go; what anything else prints goes nowhere."""
    answers = os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    return answers
