"""The head file: the number of durable rows and a code over the last one; it is replaced as a whole.

Source: privacy rule 38.
"""

from __future__ import annotations

import re
from pathlib import Path

from wpinq import storage
from wpinq.core.ledger.chain import Head, RefusedError

VERSION = 1


def read(path: Path) -> Head:
    """Read a head file; its code is checked with the rows, by `chain.behind`.

    Raises:
        RefusedError: It is damaged.
    """
    text = path.read_bytes()[:256].decode("ascii", "replace")
    words = text.split()
    if len(words) == 4 and words[2].isdecimal() and re.fullmatch("[0-9a-f]{64}", words[3]):
        result = Head(int(words[2]), bytes.fromhex(words[3]))
        if text == _text(result):
            return result
    raise RefusedError(f"its head {path.name} is damaged; put back the newest copy of the ledger and its head.")


def _text(head: Head) -> str:
    return f"wpinq-head {VERSION} {head.number} {head.mac.hex()}\n"


def write(path: Path, head: Head) -> None:
    """Replace the head file durably: after a crash it is the old one or the new one."""
    storage.write(path, _text(head).encode("ascii"), draft=path.with_name(path.name + ".new"))
