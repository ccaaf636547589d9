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
from collections.abc import Mapping, MutableMapping
from copy import copy
from functools import lru_cache
from hashlib import blake2b
from struct import Struct
from typing import Any, TypeAlias

from wpinq.core.ledger.rows.chain import BREAK, Row, packed
from wpinq.core.ledger.sums import cost

Tables: TypeAlias = Mapping[str, MutableMapping[Any, Any]]
EVERY = 256
"""The number of each checkpoint is a multiple of it."""
KIND = "checkpoint"
CODES = {"charges": Struct("32s16s"), "seals": Struct("32s32s")}
"""Tables whose keys and values are codes of these sizes."""
TEXTS = ("poisoned", "contents", "tables", "asked")
"""Tables of texts."""
NAMED = {"labels": ("labels",), "parts": ("pure", "renyi"), "sums": ("pure sums", "renyi sums")}
"""Tables whose keys are several names, and values amounts; some have the same keys. Keys of all others are one name."""

_ratio = lru_cache(4096)(cost.read_amount)


def digest(text: str) -> str:
    """Of a checkpoint's text."""
    return blake2b(text.encode(), digest_size=32).hexdigest()


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
        self._rows.update(packed(row) + BREAK)

    def body(self, tables: Tables) -> dict[str, Any]:
        """A checkpoint that ends here, without the sums of the ledger."""
        changed: dict[str, list[Any]] = {}
        for table, key in self._changed:
            changed.setdefault(table, []).append(key)
        written = {table: _written(table, keys, tables) for table, keys in changed.items()}
        return {"kind": KIND, "before": self._before, "rows": self._rows.hexdigest(), "changed": written}


def _written(table: str, keys: list[Any], tables: Tables) -> Any:
    """Entries in columns, which are read much faster than one by one."""
    if table in NAMED:
        several = [tables[name] for name in NAMED[table] if tables[name]]
        sizes: dict[str, list[list[Any]]] = {}
        for key in keys:
            names, *columns = sizes.setdefault(str(len(key)), [[] for _ in range(1 + len(several))])
            names += key
            for column, amounts in zip(columns, several, strict=True):
                column.append(cost.write_amount(amounts[key]))
        return sizes
    values = [tables[table][key] for key in keys]
    if table in CODES:
        return b2a_base64(b"".join(map(CODES[table].pack, keys, values)), newline=False).decode()
    return [keys, values if table in TEXTS else [*map(cost.write_amount, values)]]


def restore(changed: Mapping[str, Any], tables: Tables) -> None:
    """Set the entries that a checkpoint has.

    Raises:
        KeyError, ValueError, TypeError: Another version of wpinq has written it.
    """
    for table, written in changed.items():
        if table in CODES:
            tables[table].update(CODES[table].iter_unpack(a2b_base64(written)))
        elif table in TEXTS:
            tables[table].update(zip(*written, strict=True))
        elif table in NAMED:
            for size, (names, *columns) in written.items():
                keys = [*zip(*[iter(names)] * int(size), strict=True)]
                for name, amounts in zip(NAMED[table], columns, strict=False):
                    tables[name].update(zip(keys, map(_ratio, amounts), strict=True))
        else:
            keys, amounts = written
            tables[table].update(zip(keys, map(_ratio, amounts), strict=True))
