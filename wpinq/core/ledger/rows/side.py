"""Tables beside the rows of a ledger, whose entries are replaced: what was published by now, and the like.

Rows of the chain stay for ever. What counts only as it is now, such as the stage of a period, is an entry of a side
table: small, always read whole, and written in the transaction of an act, all of it with its charges or nothing.

A *turn* counts the changes. It holds a digest of each table under the secret, and the code of the turn before; the head
holds its number and code, as it holds those of the last row. So an entry that was changed, moved, removed or put back
from an older copy does not fit its digest, older tables do not fit the head, and a head that is one turn behind is
known for that of a process that was killed in between.

Source: privacy rules 38 and 39.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import NamedTuple, Protocol

from wpinq.core.ledger.rows.chain import EDITED, START, Change, RefusedError
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.records.fields import encode

MEANWHILE = "another process has changed what this one decided by, and nothing was charged or written; run it again."
TURN = ""
"""The table, and the key in it, of the turn."""


class Sides(Protocol):
    """The side tables of a locked ledger, which each store keeps in its way."""

    def side(self, table: str) -> dict[str, str]:
        """The entries of a table by their keys, as they are there."""


@dataclass(frozen=True)
class Turn:
    """How often side tables were changed, and what they are since.

    Attributes:
        number: How often; 0 where there are none.
        before: The code of the turn before.
        digests: By table, its digest in hexadecimal digits.
        code: Over all of it, under the secret.
    """

    number: int = 0
    before: bytes = START
    digests: Mapping[str, str] = field(default_factory=dict)
    code: bytes = START

    @classmethod
    def of(cls, pages: Sides, secret: Secret) -> Turn:
        """The turn of a locked ledger.

        Raises:
            RefusedError: It was changed, or is missing beside tables.
        """
        tables = pages.side(TURN)
        if not tables:
            return cls()
        try:
            body = json.loads(tables[TURN])
            result = cls(body["number"], bytes.fromhex(body["before"]), body["digests"], bytes.fromhex(body["code"]))
            right = _code(secret, result.number, result.before, result.digests)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RefusedError(EDITED) from None
        if len(tables) > 1 or not compare_digest(right, result.code):
            raise RefusedError(EDITED)
        return result

    def following(self, secret: Secret, tables: Mapping[str, Mapping[str, str]]) -> Turn:
        """The next turn, after which tables are these; all others are as they were."""
        digests = {**self.digests, **{name: _digest(secret, name, table) for name, table in tables.items()}}
        number = self.number + 1
        return Turn(number, self.code, digests, _code(secret, number, self.code, digests))

    @property
    def change(self) -> Change:
        """What writes it."""
        body = {"number": self.number, "before": self.before.hex(), "digests": dict(self.digests),
                "code": self.code.hex()}  # fmt: skip
        return Change(TURN, TURN, json.dumps(body))

    @property
    def behind(self) -> dict[int, bytes]:
        """The codes of this turn and of the one before, by their numbers: what a head may say."""
        return {self.number: self.code, **({self.number - 1: self.before} if self.number else {})}

    def table(self, pages: Sides, secret: Secret, name: str) -> SideTable:
        """A table.

        Raises:
            RefusedError: They are not what was written.
        """
        entries = pages.side(name)
        digest = self.digests.get(name)
        if entries and digest is None:
            raise RefusedError(EDITED)
        if digest is not None and not compare_digest(_digest(secret, name, entries).encode(), digest.encode()):
            raise RefusedError(EDITED)
        return SideTable(entries, digest or "")


class SideTable(NamedTuple):
    """A side table as it was read.

    Attributes:
        entries: Its texts, by their keys.
        digest: Of all of them, under the secret; "" for a table that never was.
    """

    entries: dict[str, str]
    digest: str


def _digest(secret: Secret, name: str, table: Mapping[str, str]) -> str:
    return secret.mac(
        "ledger side table", encode(name, *(part for entry in sorted(table.items()) for part in entry))
    ).hex()


def _code(secret: Secret, number: int, before: bytes, digests: Mapping[str, str]) -> bytes:
    return secret.mac(
        "ledger turn", encode(number, before, *(part for entry in sorted(digests.items()) for part in entry))
    )
