"""A note of a ledger's verified state: its totals, and the file's times, so that old rows need not be read again.

Beside the ledger stands a note. It holds what an accountant made of the first rows, with the code of the last of them,
and how the file system described the ledger after the last session; both under codes of the data set's secret.

Why no promise of the chain is weaker for it. The code of a row covers all rows before it, so an accountant whose last
row is found in the ledger says what these rows said when they were written: whatever was done to them since, no charge,
seal or total is decided otherwise. That nothing was done to them is seen from the ledger's inode, size and time of
change, which the system sets to its clock at every write, and which the note was written after; where they are not the
noted ones, or a log of SQLite is there, every code is computed again, and an edit is refused at this very use. Rows
after the noted one and the head are verified always, so what was cut off, put back or forked is refused as ever.

What is not seen so is a change of a row that leaves no trace in the file's times: by a clock that was set to the noted
nanosecond, by writing to the disk below the file system, by a page that was mapped and written to before, in the very
milliseconds in which SQLite moves its log to the file, or by a disk that rots. It changes no answer and no charge, and
is refused by whatever reads the rows themselves: `Ledger.entries`, `wpinq ledger show`, `export` and `verify`, and a
process without this note.

The note is not made durable: whatever is wrong with it, all rows are read. Source: privacy rules 38 and 39.
"""

from __future__ import annotations

import marshal
import os
import sys
import time
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from hmac import compare_digest
from pathlib import Path
from typing import Any

from wpinq.core.ledger.accountant import MAPS, Accountant
from wpinq.core.ledger.chain import Row
from wpinq.core.ledger.cost import Total
from wpinq.core.ledger.privacy_filter import FORMATS, Promise
from wpinq.core.ledger.secret import Secret

FEW = 256
"""So many rows, and one in so many more, are entered again by a process that opens the ledger."""
SHARE = 64
CODE = 32
WORD = 16
HEADER = 6 * WORD + CODE
LOGS = ("-wal", "-shm", "-journal")
PAUSES = (0, 0, 0.001, 0.002, 0.004, 0.008, 0.016)
"""Seconds to wait for the clock of the file system to go on: its steps are of up to ten milliseconds."""
FORM = (tuple(FORMATS.items()), MAPS, sys.implementation.cache_tag or "", marshal.version)


class Note:
    """The note beside one ledger, as one session finds and leaves it.

    Args:
        path: The ledger.
        place: The note.
        secret: The data set's secret.
    """

    def __init__(self, path: Path, place: Path, secret: Secret) -> None:
        self._path, self._place, self._secret = path, place, secret
        self._noted, self._count = b"", 0
        with suppress(OSError), open(os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb") as file:  # noqa: PTH123
            self._noted = file.read(HEADER)
        plain = self._noted[:-CODE]
        if compare_digest(self._noted, self._coded(plain)):
            self._count = int.from_bytes(plain[:WORD], "little")
        self._begun: tuple[int, ...] | None = None
        self._calm = False
        state = self._state()
        self.untouched = state is not None and compare_digest(self._noted, self._header(state))

    def begin(self) -> None:
        """Rows are read from now on."""
        self._begun = self._times()

    def end(self) -> None:
        """Until now new rows went to the log alone: whoever wrote to the file meanwhile had not asked for the lock."""
        self._calm = self._times() == self._begun

    def kept(self) -> Accountant:
        """What was noted of the first rows; an empty accountant where nothing can be trusted."""
        with suppress(OSError, ValueError, EOFError, TypeError):
            content = self._place.read_bytes()[HEADER:]
            if compare_digest(content[:CODE], self._secret.mac("ledger note", content[CODE:])):
                return _read(content[CODE:])
        self._count = 0  # it is written anew as soon as there are rows enough: an upgrade reads all of them once
        return Accountant()

    def keep(self, accountant: Accountant) -> None:
        """Note how the ledger was left, and from time to time what its rows say.

        Nothing depends on it, so that a disk that is full refuses no charge that is durable.
        """
        state, number = self._state(), accountant.last.number if accountant.last else 0
        due = number > self._count + FEW + self._count // SHARE
        if state is None or not self._calm or (not due and self._noted == self._header(state)):
            return
        with suppress(OSError):
            if due or len(self._noted) < HEADER:
                self._replace(accountant, number)
            self._stamp(state)

    def _replace(self, accountant: Accountant, number: int) -> None:
        draft = self._place.with_name(self._place.name + ".new")
        content = _written(accountant)
        flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            with open(os.open(draft, flags, 0o600), "wb") as file:  # noqa: PTH123
                file.write(bytes(HEADER) + self._secret.mac("ledger note", content) + content)
            draft.replace(self._place)
        finally:
            draft.unlink(missing_ok=True)
        self._count = number

    def _stamp(self, state: tuple[int, ...]) -> None:
        """Write down how the ledger was left, at a later time of the file system's clock, or not at all.

        A later change of the ledger gives it a time that is not before the note's.
        """
        descriptor = os.open(self._place, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            header = self._header(state)
            for pause in PAUSES:
                time.sleep(pause)
                os.pwrite(descriptor, header, 0)
                if os.fstat(descriptor).st_ctime_ns > state[-1]:
                    return
            os.pwrite(descriptor, bytes(HEADER), 0)
        finally:
            os.close(descriptor)

    def _state(self) -> tuple[int, ...] | None:
        """How the file system describes the ledger; None where a log beside it may hold more."""
        if any(self._path.with_name(self._path.name + end).exists() for end in LOGS):
            return None
        return self._times()

    def _times(self) -> tuple[int, ...] | None:
        with suppress(OSError):
            found = self._path.stat()
            return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        return None

    def _header(self, state: tuple[int, ...]) -> bytes:
        return self._coded(b"".join(word.to_bytes(WORD, "little") for word in (self._count, *state)))

    def _coded(self, plain: bytes) -> bytes:
        return plain + self._secret.mac("ledger state", plain)


def _written(accountant: Accountant) -> bytes:
    """What an accountant holds, as plain values: ratios are pairs."""
    last, spent = accountant.last, accountant.spent
    maps = [
        {key: one.as_integer_ratio() if isinstance(one, Fraction) else one for key, one in found.items()}
        for found in (*(getattr(accountant, name) for name in MAPS), spent.pure.parts, spent.renyi.parts)
    ]
    amounts = [one.as_integer_ratio() for one in (spent.epsilon, spent.delta, spent.divergence)]
    ends = None if last is None else (last.number, last.mac)
    names, body = (accountant.identity, accountant.name, accountant.unit), accountant.promise.body()
    return marshal.dumps((FORM, ends, names, body, amounts, spent.gaussian, maps))


def _read(content: bytes) -> Accountant:
    """Read what `_written` has written; only what bears the secret's code may come here.

    Raises:
        ValueError, EOFError, TypeError: Another version of Python or of wpinq has written it.
    """
    maps: list[Any]
    form, (number, mac), (identity, name, unit), body, amounts, gaussian, maps = marshal.loads(content)  # noqa: S302
    if form != FORM:
        raise ValueError
    ratio = lru_cache(1024)(lambda pair: Fraction(*pair))
    maps = [{key: ratio(one) if isinstance(one, tuple) else one for key, one in one.items()} for one in maps]
    *maps, pure, renyi = maps
    epsilon, delta, divergence = map(ratio, amounts)
    promise = Promise.opened(body)
    spent = replace(
        promise.begun(), pure=Total(epsilon, pure), delta=delta, renyi=Total(divergence, renyi), gaussian=gaussian
    )
    return Accountant(identity, name, unit, promise, Row(number, "", mac), spent, *maps)
