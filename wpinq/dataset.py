"""A protected data set: where its records come from, whom they are about, and the ledger that guards them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wpinq.unit import Unit
from wpinq.values import KEY_SIZE

if TYPE_CHECKING:
    from wpinq.ledger import Ledger
    from wpinq.sources import Reader


@dataclass(frozen=True, eq=False, slots=True)
class DataSet:
    """One version of one protected data set.

    Attributes:
        reader: Reads its records as columns.
        ledger: Its budget, shared by all of its versions.
        name: Names it in the ledger.
        version: Tells this version from others; not shown, since that of a file holds its size.
        unit: Whom the guarantee protects.
        declared: Whether the caller named the version; otherwise it follows the files.
        reading: How its files are read, where their columns do not tell.
    """

    reader: Reader = field(repr=False)
    ledger: Ledger = field(repr=False)
    name: str
    version: str = field(repr=False)
    unit: Unit
    declared: bool
    reading: str = ""

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
        """The key of the digests of histograms, one for all questions: a digest then follows from the one before."""
        return self.ledger.secret.derive("digest", self.name)

    def content(self) -> bytes | None:
        """A digest of what is read, where the caller declared the version; else the version itself is the digest."""
        return self.reader.content() if self.declared else None
