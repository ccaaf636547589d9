"""The register of periods: what was begun, computed, held back, delivered and published; durable before it counts.

It holds released numbers, public names and codes only, in side tables of the release's ledger: so an entry that was
changed, moved, removed or put back from an older copy is refused as a row of the ledger is, and a period is entered in
the transaction that charges for it. A period moves through its stages in one order. What each stage needs from the one
before is durable by then, so that a process that was killed at any moment is followed by one that goes on where it
stopped:

    begun      the version of its records is fixed, and what it costs; its questions are charged, once, with this entry
    computed   its answers and evidence lie as files beside the ledger; the records are not needed any more
    held       the same, and a check wants the curator to look first
    published  every sink has it

Killed between a charge and the next stage, the questions are charged already and asked again, which is free, and gives
the same answers. A sink is handed the same files again, and takes them once.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from wpinq.core import Change, Ledger
from wpinq.errors import BusyError, LedgerError

PERIODS, REFUSALS, ALERTS = "periods", "refusals", "alerts"
"""The side tables: periods, why they were refused last, and what the curator was told; by release and name."""


@dataclass(frozen=True)
class Record:
    """What the register holds of a period.

    Attributes:
        period: Its name.
        every: What kind of period it is.
        stage: See above.
        version: Which version of its records it is of: the first one, or one that was charged for again.
        definition: A digest of the questions that were asked.
        facts: What its evidence was written from: times, costs, digests of files; nothing that was not released. Of
            what is begun, what it costs, and what was charged for it before, of other records or questions.
        notes: Why it is held back, for the curator.
    """

    period: str
    every: str
    stage: str
    version: str
    definition: str
    facts: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Read(NamedTuple):
    """The periods of all releases over a ledger, each with its release, in order of their names, and their digest."""

    periods: list[tuple[str, Record]]
    digest: str


class Register:
    """The register of one release, in its ledger.

    Args:
        ledger: The ledger.
        release: The release's name; several releases may share a ledger.
    """

    def __init__(self, ledger: Path, release: str) -> None:
        self._path, self.release = ledger, release
        self._opened: Ledger | None = None
        self._alone = False
        self._read: Read | None = None
        self.write: Callable[..., None] | None = None
        """What changes entries, where not everybody may who has the ledger; else the ledger does."""
        self.files = ledger.with_name(f"{ledger.name}.published") / release
        """Where the files of each period are kept."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other publishing processes of this machine out, for as long as this one lives.

        Raises:
            BusyError: There is one.
            LedgerError: The directory cannot be written.
        """
        path = self._path.with_name(f"{self._path.name}.publishing")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LedgerError(f"{path}: cannot be written: {error.strerror}.") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._alone = True
            yield
        except BlockingIOError:
            raise BusyError(f"{path}: another process is publishing; try again when it is done.") from None
        finally:
            self._alone, self._read = False, None
            os.close(descriptor)

    def records(self) -> dict[str, Record]:
        """All periods, by name, in order of their names."""
        return {record.period: record for release, record in self.everybody() if release == self.release}

    def everybody(self) -> list[tuple[str, Record]]:
        """The periods of all releases over this ledger, each with its release, in order of their names.

        Under the lock they are read once, until `refresh`.

        Raises:
            LedgerError: One of them was changed or removed, or the ledger cannot be trusted.
        """
        return self._periods().periods

    def refresh(self) -> None:
        """Have the periods read again."""
        self._read = None

    def _periods(self) -> Read:
        read = self._read or self._reread()
        self._read = read if self._alone else None
        return read

    def _reread(self) -> Read:
        if self._ledger is None:
            return Read([], "")
        entries, digest = self._ledger.side(PERIODS)
        records = [(json.loads(key)[0], _record(text)) for key, text in entries.items()]
        return Read(sorted(records, key=lambda entry: entry[1].period), digest)

    @property
    def _ledger(self) -> Ledger | None:
        """The ledger; None where there is none yet."""
        if self._opened is None:
            self._opened = Ledger.find(self._path)
        return self._opened

    def entry(self, record: Record, *, decided: bool = False) -> list[Change]:
        """What enters a period.

        Args:
            record: What is known of it.
            decided: Whether that follows from the periods that were read: then nothing is entered where another
                process has entered one since.
        """
        key = self._key(record.period)
        basis = self._periods().digest if decided else None
        return [Change(PERIODS, key, json.dumps(asdict(record)), basis), Change(REFUSALS, key, None)]

    def enter(self, record: Record) -> None:
        """Write what is known of a period, durably."""
        self._change(*self.entry(record))
        self.refresh()

    def refuse(self, period: str, at: str, why: str) -> None:
        """Note that a period was refused, and why."""
        self._change(Change(REFUSALS, self._key(period), json.dumps([at, why])))

    def refusals(self) -> dict[str, tuple[str, str]]:
        """When and why periods were refused last, that have not gone on since."""
        return {name: (at, why) for name, text in self._ours(REFUSALS).items() for at, why in [json.loads(text)]}

    def alerted(self, what: str) -> bool:
        """Whether the curator was told this."""
        return what in self._ours(ALERTS)

    def alert(self, what: str, at: str) -> None:
        """Note that the curator was told."""
        self._change(Change(ALERTS, self._key(what), json.dumps(at)))

    def _ours(self, table: str) -> dict[str, str]:
        """The entries of this release in a side table, by their names, in order."""
        entries = {} if self._ledger is None else self._ledger.side(table).entries
        return {json.loads(key)[1]: text for key, text in sorted(entries.items()) if json.loads(key)[0] == self.release}

    def _change(self, *changes: Change) -> None:
        if self._ledger is None:
            raise LedgerError(f"{self._path}: there is no ledger; run the release first.")
        (self.write or self._ledger.change)(*changes)

    def _key(self, name: str) -> str:
        return json.dumps([self.release, name])


def _record(text: str) -> Record:
    fields = json.loads(text)
    return Record(**{**fields, "notes": tuple(fields["notes"])})
