"""The spool of one process: a directory beside the ledger, for its owner alone."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wpinq.errors import BusyError, SourceError
from wpinq.storage import settle, write

STATE = "state.json"


class Folder:
    """A `Store` (`spool.py`): files of open periods below `open`, a directory of each closed period, and `state.json`.

    Args:
        place: Its directory.

    Raises:
        BusyError: Another process writes to it.
        SourceError: It cannot be read or written.
    """

    full = False

    def __init__(self, place: Path) -> None:
        self.label, self._place, self._open = str(place), place, place / "open"
        self.facts: Mapping[str, Any] | None = None
        self._added: list[Path] = []
        with self._writing():
            for each in (place, self._open):
                each.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(place / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._number, self.facts = self._read()
        except BlockingIOError:
            self.release()
            raise BusyError(f"{place}: another process follows the stream; try again when it has ended.") from None
        except (OSError, ValueError, KeyError, TypeError):
            self.release()
            raise SourceError(f"{place}: {STATE} cannot be read, or is damaged.") from None

    def begin(self) -> None:
        """See `Store`. A process that was killed before it entered them has left some, too."""
        self._added = []
        with self._writing():
            for path in self._open.glob("*/*.parquet"):
                if int(path.name.partition("-")[0]) > self._number:
                    path.unlink()

    def add(self, period: str, content: bytes) -> None:
        """See `Store`."""
        with self._writing():
            self._added.append(self._written(period, f"{self._number + 1}-{len(self._added)}", content))

    def enter(self, facts: Mapping[str, Any]) -> None:
        """See `Store`."""
        with self._writing():
            for place in {path.parent for path in self._added}:
                settle(place)
            number = self._number + bool(self._added)
            write(self._place / STATE, json.dumps({**facts, "pieces": number}).encode())
        self.facts, self._number, self._added = facts, number, []

    def close(self, period: str, empty: bytes, facts: Mapping[str, Any]) -> None:
        """See `Store`."""
        with self._writing():
            if not self._of(period).exists():
                settle(self._written(period, "0-0", empty).parent)
                settle(self._open)
                (self._open / period).rename(self._of(period))
                settle(self._place)
            shutil.rmtree(self._open / period, ignore_errors=True)  # what came after a kill: it is too late
        self.enter(facts)

    def closed(self) -> list[str]:
        """See `Store`."""
        return sorted(one.name for one in self._place.iterdir() if one.is_dir() and one != self._open)

    def kept(self) -> list[str]:
        """See `Store`."""
        return self.closed()

    def files(self, period: str) -> None:
        """See `Store`: they are there."""

    def published(self, periods: Container[str]) -> None:
        """See `Store`: the register knows."""

    def forget(self, period: str) -> None:
        """See `Store`."""
        shutil.rmtree(self._of(period), ignore_errors=True)

    def release(self) -> None:
        """See `Store`."""
        os.close(self._lock)

    def _of(self, period: str) -> Path:
        return self._place / period

    def _written(self, period: str, name: str, content: bytes) -> Path:
        """Write a piece of an open period, whose name is not durable yet."""
        path = self._open / period / f"{name}.parquet"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return path

    def _read(self) -> tuple[int, dict[str, Any] | None]:
        path = self._place / STATE
        if not path.exists():
            return 0, None
        state: dict[str, Any] = json.loads(path.read_text())
        return int(state.pop("pieces")), state

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SourceError(f"{self._place}: cannot be written: {error.strerror}.") from None
