"""The note of states beside a ledger: in which states files were compared with pins; nothing depends on it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

APPEND = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW


def remember(ledger: Path, code: str) -> None:
    """Add a line; what cannot be written is looked up anew."""
    with suppress(OSError), open(os.open(_note(ledger), APPEND, 0o600), "ab", buffering=0) as file:  # noqa: PTH123
        file.write(f"{code}\n".encode())


def recalls(ledger: Path, code: str) -> bool:
    """Whether the note has the line."""
    with suppress(OSError):
        return code.encode() in _note(ledger).read_bytes().splitlines()
    return False


def _note(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.states")
