"""The chain of rows: each row's authentication code covers the code before, so no row can be changed, moved or removed.

Codes are made with the data set's secret. The head, a file beside the ledger, holds the number of rows and a code over
it, so an older copy of the ledger, which is a valid chain, is recognised as older.

The head file holds the number of durable rows, that of the changes of side tables (`side.py`), and a code over the last
of both; it is replaced as a whole.

Source: privacy rules 38 and 39.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import NamedTuple

from wpinq import storage
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.records.fields import encode
from wpinq.errors import LedgerError

START = bytes(32)


class RefusedError(LedgerError):
    """Why a ledger is refused, and what to do; the store puts the ledger's path in front of the message."""


OLDER = (
    "it is older than its head says: a copy was restored or rows were removed. Put back the newest copy of"
    " the ledger and its head together; what was spent since cannot be spent again."
)
FORKED = (
    "its head belongs to another history: the ledger was forked, or the head was edited or is an older one."
    " Put back the ledger and its head from the same moment, the newest that there is."
)
EDITED = (
    "its rows do not fit its secret: it was edited or damaged, or the secret (PATH.secret, secret=, or that of"
    " WPINQ_SECRET, WPINQ_SECRET_FILE or WPINQ_SECRET_COMMAND, if one is set) is not the one it was made with."
    " Put back the right secret, or the newest copy of the ledger and its head."
)


class Row(NamedTuple):
    """One row of the ledger: its number from 1, its text and the code that links it to the row before."""

    number: int
    body: str
    mac: bytes


class Change(NamedTuple):
    """An entry of a side table as it becomes (`side.py`).

    Attributes:
        table: The table.
        key: The entry's name in it.
        text: What it says; None where it goes.
        basis: The digest of the table as it was when this was decided: of another table nothing is changed. None where
            that does not matter.
    """

    table: str
    key: str
    text: str | None
    basis: str | None = None

    def apply(self, entries: MutableMapping[str, str]) -> None:
        """Make it in its table."""
        entries.pop(self.key, None)
        if self.text is not None:
            entries[self.key] = self.text


BREAK = b"\n"
"""What joins packed rows: no text of a row holds one, since JSON escapes it."""


def of_rows(joined: bytes) -> str:
    """Of rows that are packed and joined by `BREAK`: a digest, in hexadecimal digits."""
    return blake2b(joined + BREAK, digest_size=32).hexdigest()


def packed(row: Row) -> bytes:
    """A row's code and text, as SQLite's `quote(mac) || body` writes them."""
    return b"X'" + row.mac.hex().upper().encode() + b"'" + row.body.encode()


@dataclass(frozen=True)
class Head:
    """What is durable; written before any answer is returned.

    Attributes:
        number: How many rows.
        turn: How many changes of side tables.
        code: Of the last of these.
        mac: A code over the last row and the last change.
    """

    number: int
    turn: int
    code: bytes
    mac: bytes


def link(secret: Secret, last: Row | None, body: str) -> Row:
    """Make the row that follows `last`."""
    number, before = (last.number + 1, last.mac) if last else (1, START)
    return Row(number, body, secret.mac("ledger row", encode(before, number, body)))


def head(secret: Secret, last: Row | None, turn: int = 0, code: bytes = START) -> Head:
    """Make the head of a chain that ends with `last`, beside tables at a turn of this code."""
    number, mac = (last.number, last.mac) if last else (0, START)
    return Head(number, turn, code, secret.mac("ledger head", encode(number, mac, turn, code)))


def follow(secret: Secret, last: Row | None, rows: Iterable[Row]) -> Iterator[Row]:
    """Give rows, each of which was seen to be the one that was written after the one before.

    Args:
        secret: The data set's secret.
        last: The row before them.
        rows: Rows as they were read.

    Raises:
        RefusedError: One of them is not.
    """
    for row in rows:
        expected = link(secret, last, row.body)
        if row.number != expected.number or not compare_digest(row.mac, expected.mac):
            raise RefusedError(EDITED)
        last = row
        yield row


def behind(secret: Secret, end: Sequence[Row], turns: Mapping[int, bytes], stored: Head) -> bool:
    """Compare the end of a chain, and the turn of its side tables, with the head.

    Args:
        secret: The data set's secret.
        end: The rows from the one on that the head names; all, where it names none.
        turns: The codes of the last turn and of the one before, by their numbers.
        stored: The head.

    Returns:
        True when the head is one act behind: the process crashed between writing the act and the head. No answer can
        have been returned, and what was written stays.

    Raises:
        RefusedError: There were more rows, or the head is of another history.
    """
    named, after = (end[:1], end[1:]) if stored.number else ([], end)
    if (stored.number and not (named and named[0].number == stored.number)) or stored.turn > max(turns):
        raise RefusedError(OLDER)
    acts = {json.loads(row.body).get("act", row.number) for row in after}
    right = head(secret, named[0] if named else None, stored.turn, turns.get(stored.turn, b""))
    if len(acts) > 1 or not compare_digest(right.code + right.mac, stored.code + stored.mac):
        raise RefusedError(FORKED)
    return bool(after) or stored.turn < max(turns)


HEAD_VERSION = 2


def read_head(path: Path) -> Head:
    """Read a head file; its code is checked with the rows, by `chain.behind`.

    Raises:
        RefusedError: It is damaged.
    """
    text = path.read_bytes()[:256].decode("ascii", "replace")
    words = text.split()
    if len(words) == 6 and re.fullmatch(r"\d+ \d+ [0-9a-f]{64} [0-9a-f]{64}", " ".join(words[2:]), re.ASCII):
        result = Head(int(words[2]), int(words[3]), bytes.fromhex(words[4]), bytes.fromhex(words[5]))
        if text == _text(result):
            return result
    raise RefusedError(f"its head {path.name} is damaged; put back the newest copy of the ledger and its head.")


def _text(head: Head) -> str:
    return f"wpinq-head {HEAD_VERSION} {head.number} {head.turn} {head.code.hex()} {head.mac.hex()}\n"


def write_head(path: Path, head: Head) -> None:
    """Replace the head file durably: after a crash it is the old one or the new one."""
    storage.write(path, _text(head).encode("ascii"), draft=path.with_name(path.name + ".new"))
