"""Answers on their way to sinks: in order, again until they arrive, and from where they had arrived after a restart."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from wpinq.errors import SourceError
from wpinq.streaming.notes import Notes
from wpinq.streaming.sinks.sink import Release, Sink

NAME = "delivered"
PATIENCE = 30.0
"""Seconds that a stream which ends gives its sinks."""
PAUSES = (0.1, 5.0)
"""Seconds between attempts while a stream waits for a sink: the first, and the longest."""


@dataclass(eq=False)
class _Queue:
    sink: Sink
    delivered: int
    waiting: deque[Release] = field(default_factory=deque)
    error: str | None = None


class Delivery:
    """Hands the answers of each epoch to every sink.

    A sink that fails gets its epochs later, in order. A stream may be a few epochs ahead of it and then waits, so that
    what has not arrived can still be answered after a restart: nothing is lost, and nothing is charged again.

    Args:
        sinks: The sinks.
        stream: The code of the stream.
        notes: In which it is kept how far each sink is; None where nothing is recovered.
        keep: How many of the last epochs can be answered again; fewer may wait for a sink.
        stop: Set when the process shall end.
        tell: Is told when a sink fails and when it works again.
    """

    def __init__(
        self, sinks: Sequence[Sink], stream: str, notes: Notes | None, keep: int, *, stop: threading.Event,
        tell: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._stream = stream
        self._notes, self._keeps, self._stop, self._tell = notes, keep, stop, tell
        known: dict[str, int] = {}
        if self._notes is not None:
            with suppress(SourceError, ValueError, LookupError, TypeError):
                kept = json.loads(self._notes.read(NAME) or b"")
                known = kept["sinks"] if kept["stream"] == stream else {}
        self._queues = [_Queue(sink, known.get(sink.name, 0)) for sink in sinks]

    def missing(self, last: int) -> range:
        """The epochs that a sink has not got, of those that can be answered again."""
        first = 1 + min((queue.delivered for queue in self._queues), default=last)
        return range(max(first, last - self._keeps + 1), last + 1)

    def offer(self, release: Release) -> None:
        """Hand over the answers of the next epoch; wait while a sink is too far behind."""
        for queue in self._queues:
            if release.epoch > queue.delivered:
                queue.waiting.append(release)
        self._attempt()
        self._wait(self._keeps - 1, None)

    def finish(self) -> None:
        """Hand over what waits still, at the end.

        Raises:
            SourceError: A sink has not got all.
        """
        self._wait(0, None if self._stop.is_set() else PATIENCE)
        late = [queue for queue in self._queues if queue.waiting]
        if late:
            raise SourceError(
                f"{late[0].sink.name}: has not got the answers from epoch {late[0].waiting[0].epoch} on. What was "
                "charged stays charged; with --recover the same command hands them over."
            )

    def close(self) -> None:
        """Let go of the sinks."""
        for queue in self._queues:
            queue.sink.close()

    def state(self) -> dict[str, dict[str, object]]:
        """How far each sink is, for its operator."""
        return {
            queue.sink.name: {"delivered": queue.delivered, "waiting": len(queue.waiting), "error": queue.error}
            for queue in self._queues
        }

    def _wait(self, most: int, patience: float | None) -> None:
        """Try again until few epochs wait, the time is over, or the process shall end."""
        end, pause = None if patience is None else time.monotonic() + patience, PAUSES[0]
        while any(len(queue.waiting) > most for queue in self._queues) and not self._stop.wait(pause):
            if end is not None and time.monotonic() > end:
                return
            pause = min(2 * pause, PAUSES[1])
            self._attempt()

    def _attempt(self) -> None:
        before = [queue.delivered for queue in self._queues]
        for queue in self._queues:
            try:
                while queue.waiting:
                    queue.sink.deliver(queue.waiting[0])
                    queue.delivered = queue.waiting.popleft().epoch
            except SourceError as error:
                self._failed(queue, str(error))
            else:
                self._works(queue)
        if before != [queue.delivered for queue in self._queues]:
            self._keep()

    def _failed(self, queue: _Queue, why: str) -> None:
        if queue.error is None:
            self._tell(f"{why} Its answers wait, and are handed over when it works again.")
        queue.error = why

    def _works(self, queue: _Queue) -> None:
        if queue.error is not None:
            self._tell(f"{queue.sink.name}: works again; it has all answers up to epoch {queue.delivered}.")
        queue.error = None

    def _keep(self) -> None:
        """Write how far the sinks are; if it is lost, they get answers again that they have."""
        if self._notes is None:
            return
        sinks = {queue.sink.name: queue.delivered for queue in self._queues}
        with suppress(SourceError):
            self._notes.write(NAME, json.dumps({"stream": self._stream, "sinks": sinks}).encode(), durable=False)
