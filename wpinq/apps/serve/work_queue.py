"""Where questions wait to be computed: a few at once, few in the queue, and what was answered is kept for a while.

A question is charged in milliseconds and computed in a pass over its records. So charges have threads of their own, and
each data set has one that computes: its next run answers all that was charged while the last one went on, in one pass.
A question goes on when its client gives up, so whoever asks again after a time-out finds its answer, or waits for it.

Answers that are kept in memory are bounded by number and by bytes.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Semaphore
from typing import Any, Generic, TypeVar

import msgspec

from wpinq.apps.serve.refusals import RefusedError

T = TypeVar("T")
RUNS, CHARGES, QUOTES = 2, 4, 2
"""Data sets that are read at once, and threads that charge, and that only price."""


@dataclass(frozen=True)
class Charged(Generic[T]):
    """A question that is paid for.

    Attributes:
        of: What is read for it: questions of one data set wait for each other, and share a pass.
        answer: Computes the answer.
        check: Refuses what cannot be computed any more, such as of a file that was replaced.
    """

    of: Hashable
    answer: Callable[[], T]
    check: Callable[[], None] = lambda: None


class Desk:
    """Computes questions in threads; used by one event loop.

    Args:
        waiting: How many questions may be under way or waiting; one analyst has a quarter of these places at most.
        held: How many answers are kept, questions are known to have been answered, and measurements known by name.
        memory: How many bytes answers may take together.
    """

    def __init__(self, waiting: int, held: int, memory: int) -> None:
        self._most_waiting = waiting
        self._charges, self._quotes = ThreadPoolExecutor(CHARGES, "charge"), ThreadPoolExecutor(QUOTES, "quote")
        self._checks = ThreadPoolExecutor(CHARGES, "check")  # its own: a ledger that is away holds nothing else up
        self._runners: dict[Hashable, ThreadPoolExecutor] = {}
        self._reading = Semaphore(RUNS)
        self._busy: Counter[str] = Counter()
        self._running: dict[Hashable, asyncio.Future[Any]] = {}
        self.cache, self._answered, self._named = Kept(held, memory), Kept(held), Kept(held)

    async def quoted(self, who: str, work: Callable[[], T]) -> T:
        """Do what reads no records.

        Raises:
            RefusedError: Too much is waiting.
        """
        self._enter(who)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._quotes, work)
        finally:
            self._leave(who)

    async def answered(self, who: str, key: Hashable, charge: Callable[[], Charged[T]]) -> T:
        """The answer to a question, which is charged and computed once for all who ask for the same key.

        One of the last so many that were answered takes no place, whether its answer is kept or not, and any other
        takes one; and one that could not be computed again is refused, kept or not. Which answers are kept follows from
        how large they are, so from records, and must show in no refusal.

        Raises:
            RefusedError: Too much is waiting.
        """
        running: asyncio.Future[T] | None = self._running.get(key)
        if running is None:
            entering = None if self._answered.get(key) is not None else who
            if entering is not None:
                self._enter(entering)
            running = self._start(key, charge, entering)
        return await asyncio.shield(running)

    def name(self, name: Hashable, key: Hashable, charge: Callable[[], Charged[Any]]) -> None:
        """Let an answer be found by a name, too."""
        self._named.put(name, (key, charge))

    async def again(self, name: Hashable) -> Any:
        """What was answered under a name, computed anew where it is kept no more; None where the name is not known.

        It takes none of the places of questions (see `answered`).
        """
        named = self._named.get(name)
        if named is None:
            return None
        key, charge = named
        return await asyncio.shield(self._running.get(key) or self._start(key, charge))

    def _start(self, key: Hashable, charge: Callable[[], Charged[T]], who: str | None = None) -> asyncio.Future[T]:
        running = self._running[key] = asyncio.ensure_future(self._run(key, charge, who))
        running.add_done_callback(
            lambda future: future.cancelled() or future.exception()
        )  # told to who asks; never logged
        return running

    async def _run(self, key: Hashable, charge: Callable[[], Charged[T]], who: str | None) -> T:
        loop = asyncio.get_running_loop()
        try:
            known: T | None = self.cache.get(key)
            if known is not None and (check := self._answered.get(key)) is not None:
                await loop.run_in_executor(self._checks, check)
                return self._done(key, known, check)
            charged = await loop.run_in_executor(self._charges, charge)

            def weighed() -> tuple[T, int]:
                with self._reading:
                    answer = charged.answer()
                return answer, weight((key, answer))

            if charged.of not in self._runners:
                self._runners[charged.of] = ThreadPoolExecutor(1, "run")
            answer, size = await loop.run_in_executor(self._runners[charged.of], weighed)
            self.cache.put(key, answer, size)
            return self._done(key, answer, charged.check)
        finally:
            self._running.pop(key, None)
            if who is not None:
                self._leave(who)

    def _done(self, key: Hashable, answer: T, check: Callable[[], None]) -> T:
        """Know that a question was answered, and what it takes to answer it again."""
        self._answered.put(key, check)
        return answer

    def _enter(self, who: str) -> None:
        if self._busy.total() >= self._most_waiting or self._busy[who] >= max(1, self._most_waiting // 4):
            raise RefusedError(429)
        self._busy[who] += 1

    def _leave(self, who: str) -> None:
        self._busy[who] -= 1
        self._busy += Counter()  # forgets who has nothing under way


class Kept:
    """Values by key; the one that was used longest ago goes first. Safe under threads.

    Args:
        most: How many there may be.
        memory: How many bytes they may take together; a value that takes more is not kept, and 0 bytes fit always.
    """

    def __init__(self, most: int, memory: int = 0) -> None:
        self._most, self._memory, self._taken = most, memory, 0
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def taken(self) -> int:
        """Bytes that they take."""
        return self._taken

    def get(self, key: Hashable) -> Any:
        """The value of a key; None where there is none."""
        with self._lock:
            held = self._held.get(key)
            if held is None:
                return None
            self._held.move_to_end(key)
            return held[0]

    def put(self, key: Hashable, value: object, size: int = 0) -> None:
        """Keep a value, and drop others until there is room."""
        with self._lock:
            self._taken -= self._held.pop(key, (None, 0))[1]
            if size > self._memory:
                return
            self._held[key] = value, size
            self._taken += size
            while self._taken > self._memory or len(self._held) > self._most:
                _, (_, gone) = self._held.popitem(last=False)
                self._taken -= gone


def weight(value: Any) -> int:
    """How many bytes a value takes, about: with all that it holds, or as it says itself (`size`).

    >>> weight(["page", 1.5]) > weight(["page"]) > weight([]) > 0
    True
    """
    size = getattr(value, "size", None)
    if isinstance(size, int):
        return size
    parts: Iterable[Any] = ()
    if isinstance(value, (list, tuple, set, frozenset)):
        parts = value
    elif isinstance(value, dict):
        parts = (*value, *value.values())
    elif isinstance(value, msgspec.Struct):
        parts = (getattr(value, name) for name in value.__struct_fields__)
    return sys.getsizeof(value) + sum(map(weight, parts))
