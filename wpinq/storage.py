"""What is kept on disk for a restart: encrypted and authenticated, whole or not at all, for its owner alone."""

from __future__ import annotations

import os
from pathlib import Path

from wpinq.errors import SourceError

NONCE = 12


def private(place: Path) -> None:
    """Make a directory where there is none, and refuse one that others may read.

    Raises:
        SourceError: Others may read it.
    """
    place.mkdir(mode=0o700, exist_ok=True)
    if place.stat().st_mode & 0o077:
        raise SourceError(f"--recover {place}: others may read it; run `chmod 700 {place}`, or give a new one.")


def sealed(key: bytes, name: str, content: bytes) -> bytes:
    """Encrypt what is kept under a name, so that nobody can read it, change it, or put it under another name."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(NONCE)
    return nonce + AESGCM(key).encrypt(nonce, content, name.encode())


def opened(key: bytes, name: str, content: bytes) -> bytes:
    """Decrypt what was kept under a name.

    Raises:
        SourceError: It was not sealed with this key under this name, or was changed.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(key).decrypt(content[:NONCE], content[NONCE:], name.encode())
    except (InvalidTag, ValueError):
        raise SourceError(
            "--recover: what was kept belongs to another dataflow, data set or version, or is damaged; "
            "give a new directory."
        ) from None


def write(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all, durably, for its owner alone."""
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}.draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    draft.replace(path)
    settle(path.parent)


def settle(place: Path) -> None:
    """Make the names in a directory durable."""
    directory = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
