"""A protected data set: its records, its privacy unit and its ledger."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from wpinq.core.plan.unit import Unit
from wpinq.core.records.reader import Steady
from wpinq.core.records.values import KEY_SIZE

if TYPE_CHECKING:
    import polars as pl

    from wpinq.core.functions.tree import Node as Condition
    from wpinq.core.ledger import Ledger
    from wpinq.core.ledger.rows.secret import Secret
    from wpinq.core.ledger.versions import Pin
    from wpinq.core.records.reader import Reader


@runtime_checkable
class Counting(Protocol):
    """A reader that can count equal rows where they lie."""

    def counted(
        self,
        columns: Sequence[str],
        anyone: Sequence[Condition] = (),
        *,
        apart: bool = False,
        share: tuple[int, int] = (0, 1),
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[pl.DataFrame]:
        """Frames as those of `Reader.batches`, some with the numbers of equal rows as their weights.

        Args:
            columns: Names out of the schema, at least one.
            anyone: Conditions; rows for which none is true may be left out.
            apart: Whether nothing is counted.
            share: As for `batches`.
            progress: As for `batches`.
        """


@dataclass(frozen=True, eq=False, slots=True)
class DataSet:
    """One version of one protected data set.

    Attributes:
        reader: Reads its records as columns.
        ledger: Its budget, shared by all of its versions.
        name: Its name in the ledger.
        version: The public name of this version; what is first charged under it is pinned.
        unit: The privacy unit.
        lasting: Whether its ledger can be opened again, with other records under the same name.
        repeat: What to do before a question is charged that was charged on another version: see `protect`.
        reading: Options by which its files are read, beside their columns.
        before: What is done to each record before a person's are bounded, for people; plans have the steps themselves.
        retractions: Whether records can be taken back, so that one may weigh less than nothing.
        opened: How another process opens the same files; None where this one alone can read the records.
        engine: What computes its answers, if that is not this process (`core/engines/job.py`: `Engine`).
        indexes: The reader whose people index is kept in a file beside the ledger; None where it is held in memory from
            the second question on, and False where people are bounded anew for each.
        turn: A lock that is held while its queries are answered, so that each is computed once.
        held: What it holds, once it was looked at: how it was read, the digest, and the state of its files by then.
        made: What runs made of its records to use it again, by a name; it holds for all units of one version.
    """

    reader: Reader = field(repr=False)
    ledger: Ledger = field(repr=False)
    name: str
    version: str
    unit: Unit
    lasting: bool = True
    reading: str = ""
    repeat: str = "charge"
    before: tuple[str, ...] = ()
    retractions: bool = False
    opened: Mapping[str, Any] | None = field(default=None, repr=False)
    engine: object = field(default=None, repr=False)
    indexes: Reader | Literal[False] | None = field(default=None, repr=False)
    turn: RLock = field(default_factory=RLock, repr=False)
    held: list[tuple[str, bytes | None, str | None]] = field(default_factory=list, repr=False)
    made: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def book(self) -> str:
        """The identity of its ledger."""
        return self.ledger.identity

    @property
    def edition(self) -> str:
        """What the ledger calls its version: that of a table."""
        from wpinq.core.ledger.versions import key  # here: the workers of a run load no ledger

        return key(self.name, self.version)

    @property
    def covered(self) -> tuple[object, ...]:
        """What a plan's fingerprint covers of it: one version of one data set, and how it is read.

        The path is not covered. A copied directory has a budget of its own and the same secret, so equal queries must
        have equal noise there; and a version is the same wherever its files are.
        """
        way = (self.reader.schema, self.reader.way, self.reading)
        fields = (self.book, self.name, self.version, self.unit, way)
        return (*fields, "retractions") if self.retractions else fields

    @property
    def portable(self) -> tuple[object, ...]:
        """What tells its questions from those of other data sets, on whatever version; of a stream at one epoch."""
        return (self.book, self.name, self.unit, *([self.version] if self.live else ()))

    @property
    def live(self) -> bool:
        """Whether its records come epoch by epoch, so that a plan may be measured at several of them."""
        return bool(getattr(self.reader, "grows", False))

    @property
    def kept(self) -> bool:
        """Whether its epochs are kept for a restart, after which its questions are asked again."""
        return self.live and bool(getattr(self.reader, "kept", False))

    @property
    def secret(self) -> Secret:
        """What its keys and its noise are derived from: that of its ledger, unless its records come with their own."""
        separate: Secret | None = getattr(self.reader, "secret", None)
        return separate or self.ledger.secret

    @property
    def identity_key(self) -> bytes:
        """The key of the identities of its records and bins."""
        return self.secret.derive("identity", self.name, size=KEY_SIZE)

    @property
    def sampling_key(self) -> bytes:
        """The key of the sample that bounds each user's records, the same for all questions and versions."""
        return self.secret.derive("sampling", self.name, size=KEY_SIZE)

    @property
    def content_key(self) -> bytes:
        """The key of the digest of what a version holds."""
        return self.secret.derive("content", self.name, size=KEY_SIZE)

    @property
    def digest_key(self) -> bytes:
        """The key of the digests of histograms, the same for all queries, so that a digest can be updated."""
        return self.secret.derive("digest", self.name)

    def check(self) -> None:
        """Refuse a closed version, and files that are no longer as they were opened.

        Raises:
            ChangedError: A file changed after it was opened.
            SourceError: A file cannot be read.
            LedgerError: The version is closed.
        """
        self.ledger.check_version(self.edition)
        self.reader.check()

    def pin(self) -> Pin | None:
        """What its version holds, for the ledger; None where nobody can come with anything else.

        Files are read once, and looked at each time. What only reading shows is read each time, before the charge.

        Raises:
            ChangedError: A file changed after it was opened.
            SourceError: It cannot be read.
        """
        if not self.lasting or self.live:
            return None
        from wpinq.core.ledger.versions import Pin

        self.reader.check()
        if not self.held or self.reader.steady is Steady.UNKNOWN:
            state = self.reader.state()
            recalled = self.ledger.recalls(self.edition, state)
            self.held[:] = [(*(("", None) if recalled else self._content()), state)]
        return Pin(self.edition, self.reader.name, *self.held[0][:2])

    def confirm(self) -> None:
        """Compare what it holds with what is pinned under the name of its version, if anything is.

        Raises:
            ChangedError: It is other content.
            SourceError: It cannot be read.
            LedgerError: The version is closed.
        """
        if self.ledger.pinned(self.edition) and (pin := self.pin()) is not None:
            same = False
            try:
                self.ledger.compare(pin)
                same = True
            finally:
                self.remember(same=same)

    def remember(self, *, same: bool = True) -> None:
        """Note the state of its files, whose content was compared, so that they need not be read again.

        Of other content as much is written, so that what lies beside the ledger does not tell how it ended.
        """
        for way, digest, state in list(self.held):
            if digest is not None and state is not None and state == self.reader.state():
                self.ledger.remember(self.edition, state if same else os.urandom(16).hex())
                self.held[:] = [(way, digest, None)]  # once is enough

    def _content(self) -> tuple[str, bytes]:
        """How its content was read, where that matters, and its digest: of bytes, or of rows in whatever order."""
        digest = self.reader.content(self.content_key)
        if digest is not None:
            getattr(self.engine, "prove", lambda data: data.reader.prove())(self)
            return "", digest
        total = Rows(self)
        if (summed := getattr(self.reader, "summed", None)) is not None:  # where the rows are
            return total.way, summed(self.content_key).tobytes()
        for frame in self._held(self.reader.schema.names, (0, 1), None):
            total.add(frame)
        return total.way, total.digest

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns with canonical values (`canonical.py`); see `Reader.batches`.

        Whether a query is refused must not depend on its plan. So where only reading shows whether the records are
        still those of the version, each pass reads all columns, whatever a plan needs, and compares a keyed digest of
        all records with that of the first pass that read the same columns as the same types.

        Raises:
            SourceError: It cannot be read.
            ChangedError: It is not what was protected.
        """
        if self.reader.steady is Steady.UNKNOWN:
            return self._compared(columns, share, progress)
        return self._held(columns, share, progress)

    def counted(
        self,
        columns: Sequence[str],
        anyone: Sequence[Condition] = (),
        *,
        share: tuple[int, int] = (0, 1),
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[pl.DataFrame]:
        """The same, with weights where the source has counted equal rows of these columns.

        It may leave out rows for which none of some conditions is true; all of them come where there is none.

        Such a source (`sources/databases/counting.py`) is refused where it is not what it was when its version was
        digested. Where the unit is a person it counts nothing: a sample of a person's records is drawn by all of their
        columns, and whole records repeat too little to gain.

        Raises:
            SourceError, ChangedError: As above.
        """
        if not isinstance(self.reader, Counting) or self.reader.steady is not Steady.FILES:
            return self.batches(columns, share=share, progress=progress)
        person = self.unit.column is not None
        frames = self.reader.counted(columns, anyone, apart=person, share=share, progress=progress)
        return self._canonical(frames, columns)

    def _held(
        self, columns: Sequence[str], share: tuple[int, int], progress: Callable[[int], None] | None
    ) -> Iterator[pl.DataFrame]:
        return self._canonical(self.reader.batches(columns, share=share, progress=progress), columns)

    def _canonical(self, frames: Iterator[pl.DataFrame], columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        from wpinq.core.records import canonical

        schema = self.reader.schema.select(columns)
        for frame in frames:
            yield canonical.frame(frame, schema)

    def _compared(
        self, columns: Sequence[str], share: tuple[int, int], progress: Callable[[int], None] | None
    ) -> Iterator[pl.DataFrame]:
        from wpinq.core.ledger.versions import Pin
        from wpinq.core.records.batch import WEIGHT

        total = Rows(self)
        for frame in self._held(self.reader.schema.names, share, progress):
            total.add(frame)
            yield frame.select(*columns, *([WEIGHT] if WEIGHT in frame.columns else []))
        self.ledger.pin(Pin(self.edition, self.reader.name, total.way, total.digest))


class Rows:
    """The digest of all rows of a data set, in any order, and however equal ones are counted together.

    It is the sum of the keyed identities of the rows. Columns of other types have other identities, so what was read
    in another way is compared by itself.
    """

    def __init__(self, data: DataSet) -> None:
        import numpy as np

        secret, reader = data.secret, data.reader
        self._schema, self._total = reader.schema, np.zeros(2, np.uint64)
        self._key = data.content_key
        self.way = secret.mac("content of", repr((reader.schema, reader.way)).encode()).hex()

    def add(self, frame: pl.DataFrame) -> None:
        """Add the rows of a frame with all columns."""
        from wpinq.core.records.batch import sum_of_rows

        self._total += sum_of_rows(frame, self._schema, self._key)

    @property
    def digest(self) -> bytes:
        """The digest of the rows so far."""
        return self._total.tobytes()
