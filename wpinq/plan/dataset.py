"""A protected data set: its records, its privacy unit and its ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING

from wpinq.plan.unit import Unit
from wpinq.records.values import KEY_SIZE
from wpinq.sources.columns import Steady

if TYPE_CHECKING:
    import polars as pl

    from wpinq.ledger import Ledger
    from wpinq.ledger.secret import Secret
    from wpinq.sources import Reader


def code_of(version: str, secret: Secret) -> str:
    """The code of a version that follows the files.

    Such a version holds their size, and the size tells how many records there are: so it is never published, and the
    code is keyed by the secret.
    """
    return secret.mac("command line version", version.encode()).hex()[:16]


UNNAMED = "unnamed "
"""What versions begin with that nobody named and no file tells: each time that they are protected is another."""


@dataclass(frozen=True, eq=False, slots=True)
class DataSet:
    """One version of one protected data set.

    Attributes:
        reader: Reads its records as columns.
        ledger: Its budget, shared by all of its versions.
        name: Its name in the ledger.
        version: The name of this version; not shown, because that of a file holds its size.
        unit: The privacy unit.
        declared: Whether the caller named the version; otherwise it is derived from the files.
        repeat: What to do before a question is charged that was charged on another version: see `protect`.
        reading: Options by which its files are read, beside their columns.
        before: What is done to each record before a person's are bounded, for people; plans have the steps themselves.
        retractions: Whether records can be taken back, so that one may weigh less than nothing.
        turn: A lock that is held while its queries are answered, so that each is computed once.
    """

    reader: Reader = field(repr=False)
    ledger: Ledger = field(repr=False)
    name: str
    version: str = field(repr=False)
    unit: Unit
    declared: bool
    reading: str = ""
    repeat: str = "charge"
    before: tuple[str, ...] = ()
    retractions: bool = False
    turn: RLock = field(default_factory=RLock, repr=False)

    @property
    def book(self) -> str:
        """The identity of its ledger."""
        return self.ledger.identity

    @property
    def covered(self) -> tuple[object, ...]:
        """What a plan's fingerprint covers of it: one version of one data set, and how it is read.

        The path is not covered. A copied directory has a budget of its own and the same secret, so equal queries must
        have equal noise there; and a version that the caller named is the same wherever its files are.
        """
        way = (self.reader.schema, self.reader.way, self.reading)
        own = (self.book, self.name, self.version, self.declared, self.unit, way)
        return (*own, "retractions") if self.retractions else own

    @property
    def asked(self) -> tuple[object, ...]:
        """What tells its questions from those of other data sets, on whatever version."""
        return (self.book, self.name, self.unit)

    @property
    def code(self) -> str:
        """The version for people: what the curator declared, else a code for it."""
        return self.version if self.declared else code_of(self.version, self.ledger.secret)

    @property
    def unnamed(self) -> bool:
        """Whether it is a version of its own in each run: of records in memory, of which nobody said which they are."""
        return not self.declared and self.version.startswith(UNNAMED)

    @property
    def live(self) -> bool:
        """Whether its records come epoch by epoch."""
        from wpinq.sources.log import Closed, Log  # the command line starts without what they load

        return isinstance(self.reader, (Log, Closed))

    @property
    def identity_key(self) -> bytes:
        """The key of the identities of its records and bins."""
        return self.ledger.secret.derive("identity", self.name, size=KEY_SIZE)

    @property
    def sampling_key(self) -> bytes:
        """The key of the sample that bounds each user's records, the same for all questions and versions."""
        return self.ledger.secret.derive("sampling", self.name, size=KEY_SIZE)

    @property
    def digest_key(self) -> bytes:
        """The key of the digests of histograms, the same for all queries, so that a digest can be updated."""
        return self.ledger.secret.derive("digest", self.name)

    def check(self) -> None:
        """Refuse a closed version, and files whose content is not that of the version.

        Raises:
            SourceError: A file cannot be read, or changed after it was opened.
            LedgerError: The version is closed, or is now.
        """
        if self.declared or self.reader.steady is not Steady.FILES:
            self.ledger.check_version(self.version, self.reader.content() if self.declared else None)
        else:
            self._confirm()

    def seal(self) -> None:
        """Seal what its files hold, so that the version is known by that from its first charge on."""
        files = not self.declared and self.reader.steady is Steady.FILES
        if files and not self.ledger.knows(self.version):
            self._confirm()

    def _confirm(self) -> None:
        from wpinq.ledger.contents import confirm  # here: the workers of a run load no ledger

        confirm(self.ledger, self.version, self.reader)

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns with canonical values (`canonical.py`); see `Reader.batches`.

        Whether a query is refused must not depend on its plan. So where only reading shows whether the records are
        still those of the version, each pass reads all columns, whatever a plan needs, and compares a keyed digest of
        all records with that of the first pass that read the same columns as the same types.

        Raises:
            SourceError: It cannot be read, or is not what was protected.
            LedgerError: Its records are not those of the version any more; the version is now closed for every query.
        """
        if self.reader.steady is Steady.FILES or (self.reader.steady is Steady.MEMORY and not self.declared):
            return self._held(columns, share, progress)
        return self._compared(columns, share, progress)

    def _held(
        self, columns: Sequence[str], share: tuple[int, int], progress: Callable[[int], None] | None
    ) -> Iterator[pl.DataFrame]:
        from wpinq.records import canonical

        schema = self.reader.schema.select(columns)
        for frame in self.reader.batches(columns, share=share, progress=progress):
            yield canonical.frame(frame, schema)

    def _compared(
        self, columns: Sequence[str], share: tuple[int, int], progress: Callable[[int], None] | None
    ) -> Iterator[pl.DataFrame]:
        import numpy as np

        from wpinq.records.batch import WEIGHT
        from wpinq.records.identity import identities

        schema, total = self.reader.schema, np.zeros(2, np.uint64)
        key = self.ledger.secret.derive("content", self.name, size=KEY_SIZE)
        for frame in self._held(schema.names, share, progress):
            weight = [WEIGHT] if WEIGHT in frame.columns else []
            rows = identities(frame, schema, key)
            if weight:
                rows = rows * frame[WEIGHT].to_numpy().astype(np.uint64)[:, None]
            total += rows.sum(axis=0, dtype=np.uint64)  # in any order, and however rows are counted together
            yield frame.select(*columns, *weight)
        read = self.ledger.secret.mac("content of", repr((schema, self.reader.way)).encode()).hex()
        self.ledger.check_version(self.version, total.tobytes(), read)

    @property
    def grows(self) -> bool:
        """Whether its records come epoch by epoch, so that a plan may be measured at several of them."""
        return bool(getattr(self.reader, "grows", False))
