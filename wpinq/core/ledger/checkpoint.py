"""Checkpoints: each 256th row says what the rows since the checkpoint before it changed, so that these need no replay.

A checkpoint is a row of the chain like any other. It holds the sums of the ledger, what of the accountant's tables the
rows since the last checkpoint changed, a digest of these rows (with that checkpoint), and one of the last checkpoint's
text. It does not hold the tables themselves: they grow with the rows, and 390 copies of them would take a gigabyte in a
ledger of 100,000 rows. All checkpoints together are the accountant; `replay.py` puts it together, and a replay of the
rows makes each checkpoint anew and compares it.

**Why a digest of rows is as good as their codes.** Whoever has no secret cannot make the code of the last checkpoint,
so its text is what was written. It has the digest of all rows from the checkpoint before it on; so these, the
checkpoint before among them, are what was written; and so on to the first row. A digest is made of many rows at once,
in SQLite and in hashlib, and takes a tenth of the time that their codes take, one by one.

Source: privacy rule 38.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Mapping
from copy import copy
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from struct import Struct
from typing import Any

from wpinq.core.ledger import cost
from wpinq.core.ledger.chain import Row

EVERY = 256
"""The number of each checkpoint is a multiple of it."""
KIND = "checkpoint"
CODES = ("charges", "seals")
"""Tables of which each key and each value is 32 bytes."""
TEXTS = ("poisoned", "contents", "tables", "asked")
"""Tables of texts."""
NAMED = ("labels", "pure", "renyi")
"""Tables whose keys are several names; those of all others are one, and values are amounts."""
_PAIRS = Struct("32s32s")
_BREAK = b"\n"

_ratio = lru_cache(4096)(cost.read)


def digest(text: str) -> str:
    """Of a checkpoint's text."""
    return blake2b(text.encode(), digest_size=32).hexdigest()


def of_rows(joined: bytes) -> str:
    """Of rows that are packed and joined by `_BREAK`: no text of a row holds one, since JSON escapes it."""
    return blake2b(joined + _BREAK, digest_size=32).hexdigest()


def packed(row: Row) -> bytes:
    """A row's code and text, as SQLite's `quote(mac) || body` writes them."""
    return b"X'" + row.mac.hex().upper().encode() + b"'" + row.body.encode()


class Since:
    """What the rows from the last checkpoint on changed, and their digest.

    Args:
        checkpoint: The last checkpoint; None where there was none.
    """

    def __init__(self, checkpoint: Row | None = None) -> None:
        self._before = "" if checkpoint is None else digest(checkpoint.body)
        self._changed: dict[tuple[str, Any], None] = {}
        self._rows = blake2b(digest_size=32)
        if checkpoint is not None:
            self.row(checkpoint)

    def draft(self) -> Since:
        """A copy to go on with."""
        result = copy(self)
        result._changed, result._rows = dict(self._changed), self._rows.copy()
        return result

    def change(self, table: str, key: Any) -> None:
        """An entry of a table was set."""
        self._changed[table, key] = None

    def row(self, row: Row) -> None:
        """A row came."""
        self._rows.update(packed(row) + _BREAK)

    def body(self, tables: Mapping[str, Mapping[Any, Any]]) -> dict[str, Any]:
        """A checkpoint that ends here, without the sums of the ledger."""
        changed: dict[str, dict[Any, Any]] = {}
        for table, key in self._changed:
            changed.setdefault(table, {})[key] = tables[table][key]
        written = {table: _written(table, entries) for table, entries in changed.items()}
        return {"kind": KIND, "before": self._before, "rows": self._rows.hexdigest(), "changed": written}


def _written(table: str, entries: Mapping[Any, Any]) -> Any:
    if table in CODES:
        return b2a_base64(b"".join(_PAIRS.pack(*entry) for entry in entries.items()), newline=False).decode()
    return [[_plain(key), _plain(value)] for key, value in entries.items()]


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return cost.write(value)
    return list(value) if isinstance(value, tuple) else value


def changes(table: str, written: Any) -> Iterable[tuple[Any, Any]]:
    """The entries of a table that a checkpoint has, as an accountant holds them.

    Raises:
        ValueError, TypeError: Another version of wpinq has written it.
    """
    if table in CODES:
        return _PAIRS.iter_unpack(a2b_base64(written))
    if table in TEXTS:
        return ((key, value) for key, value in written)
    if table in NAMED:
        return ((tuple(key), _ratio(value)) for key, value in written)
    return ((key, _ratio(value)) for key, value in written)
