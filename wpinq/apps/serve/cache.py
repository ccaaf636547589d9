"""What a server keeps in memory to answer sooner: bounded by number and by bytes."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Any

import msgspec


class Kept:
    """Values by key; the one that was used longest ago goes first. Safe under threads.

    Args:
        most: How many there may be.
        memory: How many bytes they may take together; a value that takes more is not kept.
    """

    def __init__(self, most: int, memory: int) -> None:
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

    def put(self, key: Hashable, value: object, size: int) -> None:
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
