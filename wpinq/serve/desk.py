"""Where questions wait to be computed: a few at once, few in the queue, and what was answered is kept for a while.

A question goes on when its client gives up, so whoever asks again after a time-out finds its answer, or waits for it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from wpinq.serve.refusals import RefusedError

T = TypeVar("T")
RUNS, QUOTES = 2, 2
"""Threads that run dataflows, and threads that only price."""


class Desk:
    """Computes questions in threads; used by one event loop.

    Args:
        waiting: How many questions may be under way or waiting; one analyst has a quarter of these places at most.
        held: How many answers are kept.
    """

    def __init__(self, waiting: int, held: int) -> None:
        self._places, self._most = waiting, held
        self._runs, self._quotes = ThreadPoolExecutor(RUNS, "run"), ThreadPoolExecutor(QUOTES, "quote")
        self._busy: Counter[str] = Counter()
        self._held: OrderedDict[Hashable, asyncio.Future[Any]] = OrderedDict()

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

    async def answered(self, who: str, key: Hashable, work: Callable[[], T]) -> T:
        """What some work gives, which is done once for all who ask for the same key.

        Raises:
            RefusedError: Too much is waiting.
        """
        found: asyncio.Future[T] | None = self._held.get(key)
        if found is None:
            self._enter(who)
            found = asyncio.ensure_future(self._run(who, key, work))
            found.add_done_callback(lambda one: one.cancelled() or one.exception())  # told to who asks; never logged
            self._held[key] = found
            self._forget()
        self._held.move_to_end(key)
        return await asyncio.shield(found)

    def keep(self, key: Hashable, found: object) -> None:
        """Keep what is known, as an answer."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        done.set_result(found)
        self._held[key] = done
        self._held.move_to_end(key)
        self._forget()

    def held(self, key: Hashable) -> Any:
        """What was computed for a key, if it is still kept; else None."""
        found = self._held.get(key)
        return found.result() if found is not None and found.done() and not found.cancelled() else None

    async def _run(self, who: str, key: Hashable, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._runs, work)
        except BaseException:
            self._held.pop(key, None)
            raise
        finally:
            self._leave(who)

    def _enter(self, who: str) -> None:
        if self._busy.total() >= self._places or self._busy[who] >= max(1, self._places // 4):
            raise RefusedError(429)
        self._busy[who] += 1

    def _leave(self, who: str) -> None:
        self._busy[who] -= 1
        self._busy += Counter()  # forgets who has nothing under way

    def _forget(self) -> None:
        done = [key for key, one in self._held.items() if one.done()]
        for key in done[: max(0, len(self._held) - self._most)]:
            del self._held[key]
