"""The spool of a release that several hosts follow: in the database of the ledger, sealed under a key of the stream.

What workers have read comes as parts (`streaming/shared`). Pieces of periods, the removal of the parts that they were
made of, positions and facts are one act of the keeper, and the head in the ledger covers them: a record is in a part
or in a piece, and a database that was put back by one act is refused. A piece is sealed under its period, its number
and a code of those before it; how many a period has, and their code, stands among the facts until it is published.

The files of a closed period are the pieces as they are, so that each host gets the same bytes, and the ledger knows
their version wherever they are read. What lies in the directory of a host is a copy.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Container, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import polars as pl

from wpinq.apps.publish.streams.spool_folder import STATE
from wpinq.core import Change, Ledger
from wpinq.errors import PlanError, SourceError
from wpinq.storage import HeldDirectory, remove_abandoned, settle
from wpinq.streaming.frames import chained
from wpinq.streaming.shared.home import Home
from wpinq.streaming.shared.keeper import HeldError, Keeper
from wpinq.streaming.shared.leases import SECONDS
from wpinq.streaming.shared.parts import Parts

FORMAT = 1
"""The format of parts, pieces and facts; no other is read."""
NOTE = "spool"
"""The note of a stream that holds the facts, and what they are sealed under."""
DRAFT = ".draft-"
"""How the names of directories begin in which the files of a closed period are written."""
MANY = 1 << 20
"""Records of parts that become one piece, about."""
LARGE = 64 << 20
"""Bytes of pieces that are entered together, about."""
PAGE = 16
"""Pieces that are read from the database at a time."""
LOST = (
    "{}: its records are not those that its ledger knows of; the database was edited, or put back. Put back its newest"
    " state."
)


class Taken:
    """What workers have read, each record as often as it came: a `Reader` (`spool.py`).

    Args:
        parts: What they wrote.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def take(self) -> Iterator[pl.DataFrame]:
        """See `Reader`. When a frame is given, all parts that were taken by then are in frames."""
        frames, rows = list[pl.DataFrame](), 0
        for part in self._parts.take():
            frames.append(part.records)
            rows += frames[-1].height
            if rows >= MANY:
                yield pl.concat(frames)
                frames, rows = [], 0
        if rows:
            yield pl.concat(frames)

    def positions(self) -> dict[str, Any]:
        """See `Reader`."""
        return self._parts.positions()

    def close(self) -> None:
        """Nothing is held open."""


class Database:
    """A `Store` (`spool.py`), of which this process is the keeper.

    Args:
        home: The stream.
        ledger: Its ledger.
        place: The directory of this host that has the files of closed periods.
        seconds: For how long the keeper's lease holds without being renewed.

    Attributes:
        parts: What workers have read.

    Raises:
        HeldError: Another process keeps the stream.
        PlanError: This host has followed it without workers, and has records of it.
        SourceError, LedgerError: The database was edited, put back from a copy, or cannot be used.
    """

    def __init__(self, home: Home, ledger: Ledger, place: Path, seconds: float = SECONDS) -> None:
        self.label, self._home, self._place, self.parts = home.label, home, place, Parts(home)
        if (place / STATE).exists():
            raise PlanError(f"--workers: {place} holds records of this release, which one process followed alone; let"
                            " it go on without --workers, or move the directory away to leave them out.")  # fmt: skip
        try:
            self._keeper = Keeper(home, ledger, seconds)
        except HeldError:
            self._stored()
            self._tidy()
            raise
        try:
            self._state = self._opened()
            self._tidy()
        except BaseException:
            self.release()
            raise
        self._fetched = set[str]()
        self._draft: dict[str, list[Any]] = {}
        self._pending: list[tuple[str, int, bytes]] = []
        self.begin()
        self.parts.resume(self._state.get("facts", {}).get("positions", {}))

    @property
    def facts(self) -> Mapping[str, Any] | None:
        """See `Store`."""
        facts: Mapping[str, Any] | None = self._state.get("facts")
        return facts

    @property
    def full(self) -> bool:
        """See `Store`."""
        return sum(len(frame) for *_, frame in self._pending) >= LARGE

    def begin(self) -> None:
        """See `Store`."""
        self._pending, self._draft = [], dict(self._state.get("held", {}))

    def add(self, period: str, content: bytes) -> None:
        """See `Store`. One without content ends a period."""
        number, chain = self._draft.get(period, (0, ""))
        frame = self._home.sealed(_name(period, number, chain), content)
        self._pending.append((period, number, frame))
        self._draft[period] = [number + 1, chained(chain.encode(), frame).hex()]

    def enter(self, facts: Mapping[str, Any]) -> None:
        """See `Store`."""
        if self._pending or self.parts.taken or facts != self.facts:
            self._act(facts)

    def close(self, period: str, empty: bytes, facts: Mapping[str, Any]) -> None:
        """See `Store`."""
        self.begin()
        if period not in self._draft:
            self.add(period, empty)
        self.add(period, b"")
        self._act(facts)

    def closed(self) -> list[str]:
        """See `Store`."""
        first = "" if self.facts is None else self.facts["first"]
        return sorted(name for name in self._state.get("held", {}) if name < first)

    def kept(self) -> list[str]:
        """See `Store`."""
        query = self._home.sql("SELECT stream FROM {epochs} WHERE stream LIKE %s AND number = 0")
        with self._home.connected() as connection:
            rows = connection.execute(query, [self._stream("%")]).fetchall()
        names = (stream.removeprefix(self._stream("")) for (stream,) in rows)
        return sorted(name for name in names if self.facts is not None and name < self.facts["first"])

    def files(self, period: str) -> None:
        """See `Store`. What lies there of an earlier life of this process is written anew."""
        if period in self._fetched:
            return
        try:
            self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
            with closing(HeldDirectory(self._place, DRAFT)) as draft:
                for number, content in enumerate(self._pieces(period)):
                    with (draft.path / f"{number:08}.parquet").open("wb") as file:
                        file.write(content)
                        file.flush()
                        os.fsync(file.fileno())
                settle(draft.path)
                shutil.rmtree(self._place / period, ignore_errors=True)
                draft.path.rename(self._place / period)
                settle(self._place)
        except OSError as error:
            raise SourceError(f"{self._place}: cannot be written: {error.strerror}.") from None
        self._fetched.add(period)

    def published(self, periods: Container[str]) -> None:
        """See `Store`: what ends a period is sealed, and what was published of it is pinned in the ledger."""
        for name in self.closed():
            if name in periods:
                del self._state["held"][name]

    def forget(self, period: str) -> None:
        """See `Store`: in the database, and here."""
        self.begin()
        self._draft.pop(period, None)
        self._act(self.facts or {}, forget=period)
        shutil.rmtree(self._place / period, ignore_errors=True)

    def release(self) -> None:
        """See `Store`."""
        self._keeper.close()

    def change(self, *changes: Change) -> None:
        """Change entries of side tables of the ledger, if this is the keeper still.

        Raises:
            EngineError: It is not; nothing was written.
        """
        self._keeper.change(*changes)

    def _act(self, facts: Mapping[str, Any], forget: str | None = None) -> None:
        """Write what is pending, and facts; remove the parts that were taken, and a period that is to be forgotten.

        Raises:
            EngineError: Another process keeps the stream now; nothing was written.
            SourceError: There are pieces already that nobody has written; nothing was.
            LedgerError: The database cannot be used; whoever opens it next sees whether it was written.
        """
        number = self._state.get("number", 0) + 1
        state = {"format": FORMAT, "number": number, "facts": dict(facts), "held": self._draft}
        sealed, begins = self._home.sealed(NOTE, json.dumps(state).encode()), self.facts is None
        with self._keeper.act(_head(number, sealed)) as database:
            if begins:
                database.execute(self._home.sql("DELETE FROM {epochs} WHERE stream LIKE %s"), [self._stream("%")])
            if forget is not None:
                database.execute(self._home.sql("DELETE FROM {epochs} WHERE stream = %s"), [self._stream(forget)])
            columns = [[self._stream(period) for period, *_ in self._pending],
                       *([row[index] for row in self._pending] for index in (1, 2))]  # fmt: skip
            insert = self._home.sql(
                "INSERT INTO {epochs} SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bytea[])"
                " ON CONFLICT DO NOTHING"  # there is one after an edit alone
            )
            if database.execute(insert, columns).rowcount != len(self._pending):
                raise SourceError(LOST.format(self.label))
            delete = self._home.sql("DELETE FROM {parts} WHERE stream = %s AND number = ANY(%s)")
            database.execute(delete, [self._home.stream, self.parts.taken])
            replace = self._home.sql(
                "INSERT INTO {notes} VALUES (%s, %s, %s)"
                " ON CONFLICT (stream, name) DO UPDATE SET content = excluded.content"
            )
            database.execute(replace, [self._home.stream, NOTE, sealed])
        self.parts.closed()
        self._state = state
        self.begin()

    def _opened(self) -> dict[str, Any]:
        """What was entered last, as the ledger knows it; nothing where the stream has not begun.

        Raises:
            SourceError: It is something else.
        """
        if self._keeper.head is None:
            return {}
        sealed, state = self._stored()
        if self._keeper.head != _head(state.get("number", 0), sealed):
            raise SourceError(LOST.format(self.label))
        return state

    def _stored(self) -> tuple[bytes, dict[str, Any]]:
        """What was entered last, sealed and open; nothing where nothing was.

        Raises:
            SourceError: It is damaged, or of another version of wpinq.
        """
        query = self._home.sql("SELECT content FROM {notes} WHERE stream = %s AND name = %s")
        with self._home.connected() as connection:
            row = connection.execute(query, [self._home.stream, NOTE]).fetchone()
        if row is None:
            return b"", {}
        state: dict[str, Any] = json.loads(self._home.opened(NOTE, row[0]))
        if state["format"] != FORMAT:
            raise SourceError(
                f"{self.label}: was written by another version of wpinq, of format {state['format']}, and this one has"
                f" {FORMAT}: start that one again, and the release goes on. Nothing was changed."
            )
        return bytes(row[0]), state

    def _pieces(self, period: str) -> Iterator[bytes]:
        """The pieces of a closed period, in order.

        Raises:
            SourceError: They are not those that were written.
        """
        query = self._home.sql(
            "SELECT number, frame FROM {epochs} WHERE stream = %s AND number >= %s ORDER BY number LIMIT %s"
        )
        number, chain, content = 0, "", b""
        with self._home.connected() as connection:
            while rows := connection.execute(query, [self._stream(period), number, PAGE]).fetchall():
                for found, frame in rows:
                    if number and not content:
                        raise SourceError(LOST.format(self.label))  # it goes on after its end
                    content = self._home.opened(_name(period, number if found == number else -1, chain), frame)
                    number, chain = number + 1, chained(chain.encode(), bytes(frame)).hex()
                    if content:
                        yield content
        held = self._state.get("held", {}).get(period, [number, chain])
        if not number or content or [number, chain] != held:
            raise SourceError(LOST.format(self.label))

    def _tidy(self) -> None:
        """Delete what this host has of periods that were forgotten since, and what a process left that was killed."""
        remove_abandoned(self._place, DRAFT)
        mine = [one.name for one in self._place.glob("[0-9]*") if one.is_dir()] if self._place.exists() else []
        query = self._home.sql("SELECT stream FROM {epochs} WHERE stream = ANY(%s) AND number = 0")
        if not mine:
            return
        with self._home.connected() as connection:
            known = {name for (name,) in connection.execute(query, [[self._stream(one) for one in mine]]).fetchall()}
        for one in mine:
            if self._stream(one) not in known:
                with suppress(OSError):
                    shutil.rmtree(self._place / one)

    def _stream(self, period: str) -> str:
        """Under which name pieces of a period stand among epochs: no stream has it."""
        return f"{self._home.stream} {period}"


def _name(period: str, number: int, chain: str) -> str:
    """What a piece is sealed under."""
    return f"piece {period} {number} {chain}"


def _head(number: int, sealed: bytes) -> str:
    return f"{number} {chained(b'', sealed).hex()}"
