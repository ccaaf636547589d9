"""The files of a period: written whole or not at all, beside the ledger and by directory sinks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from wpinq.errors import SourceError
from wpinq.storage import settle


def digest(files: Mapping[str, bytes]) -> str:
    """A digest of names and contents.

    >>> digest({"a": b"1"}) == digest({"a": b"1"}) != digest({"a1": b""})
    True
    """
    lines = "".join(f"{name} {sha256(content).hexdigest()}\n" for name, content in sorted(files.items()))
    return sha256(lines.encode()).hexdigest()


def found(place: Path) -> dict[str, bytes] | None:
    """The files of a directory, by name; None where there is none."""
    if not place.is_dir():
        return None
    return {path.name: path.read_bytes() for path in sorted(place.iterdir()) if path.is_file()}


def put(place: Path, files: Mapping[str, bytes], call: str, mode: int = 0o755) -> None:
    """Make a directory with these files, which is there whole or not at all; one that holds them already is left.

    They are written to a directory beside it, made durable, and renamed. What a killed process left there goes away.

    Args:
        place: The directory.
        files: Its files.
        call: What messages call it.
        mode: Who may enter it.

    Raises:
        SourceError: It holds other files, or cannot be written.
    """
    draft = place.with_name(f".{place.name}.draft")
    try:
        there = found(place)
        if there is not None:
            if digest(there) != digest(files):
                raise SourceError(f"{call}: {place} holds other files than were published; move them away.")
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=mode)
        for name, content in files.items():
            with (draft / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        settle(draft)
        draft.rename(place)
        settle(place.parent)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise SourceError(f"{call}: {place} cannot be written: {error.strerror or type(error).__name__}.") from None
