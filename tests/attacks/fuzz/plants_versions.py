"""Bugs of versions, put back: content that grants, or that refuses under a name that it was not pinned under."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from wpinq.core.ledger.transaction import Transaction
from wpinq.core.plan.dataset import DataSet
from wpinq.errors import ChangedError


def equal_content() -> list[Any]:
    """What a version holds says which version it is, so that equal content is free under another name."""

    def edition(self: DataSet) -> str:
        return f"{self.name}\t{self._content()[1].hex()}"

    def covers(self: DataSet) -> tuple[object, ...]:
        return (self.book, self.edition, self.unit, self.reader.schema)

    return [patch.object(DataSet, "edition", property(edition)), patch.object(DataSet, "covered", property(covers))]


def content_refuses_names() -> list[Any]:
    """Content that is pinned under one name is refused under another one."""
    real = Transaction.pin

    def pin(self: Transaction, given: Any) -> None:
        seen = self.accountant.caps  # a map that a ledger keeps, and that these cases leave empty
        if given.digest is not None and seen.setdefault(given.digest.hex(), given.version) != given.version:
            raise ChangedError("it is there under another name")
        real(self, given)

    return [patch.object(Transaction, "pin", pin)]
