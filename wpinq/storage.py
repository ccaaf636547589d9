"""Write files atomically, and encrypt what is kept for a restart, readable by its owner only."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from wpinq.errors import PlanError, SourceError

NONCE = 12


class DamagedError(SourceError):
    """What was kept does not open: it was changed, or is that of another key or name."""


def private(place: Path) -> None:
    """Make a directory where there is none, and refuse one that others may read.

    Raises:
        SourceError: Others may read it.
    """
    place.mkdir(mode=0o700, exist_ok=True)
    if place.stat().st_mode & 0o077:
        raise SourceError(f"--recover {place}: others may read it; run `chmod 700 {place}`, or give a new one.")


class HeldDirectory:
    """A new directory for this process alone, which holds it until it is closed, or ends.

    Those of the same kind that nobody holds any more are removed first: who made them was killed. Where the file system
    locks no directories they stay.

    Args:
        place: In which directory it is made; in that of the system for temporary files, if none is named.
        kind: How the names of its kind begin.

    Attributes:
        path: The directory.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, place: Path | None, kind: str) -> None:
        from tempfile import gettempdir  # whoever makes none does not load it

        self._descriptor: int | None = None
        place = place or Path(gettempdir())
        remove_abandoned(place, kind)
        while self._descriptor is None:
            self.path = place / f"{kind}{os.urandom(8).hex()}"
            self.path.mkdir(mode=0o700)
            self._descriptor = _hold(self.path)

    def close(self) -> None:
        """Hold it no more; what is left of it is removed."""
        from shutil import rmtree

        rmtree(self.path, ignore_errors=True)
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _hold(path: Path) -> int | None:
    """A descriptor that holds a directory; None where another process has removed it as one that nobody held yet."""
    descriptor = None
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    if descriptor is not None:
        os.close(descriptor)
    return None


def remove_abandoned(place: Path, kind: str) -> None:
    """Remove directories whose names begin so, and that no process holds; see `HeldDirectory`."""
    from shutil import rmtree

    with suppress(OSError):
        for path in [path for path in place.iterdir() if path.name.startswith(kind)]:
            with suppress(OSError):
                descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    rmtree(path, ignore_errors=True)
                finally:
                    os.close(descriptor)


def sealed(key: bytes, name: str, content: bytes) -> bytes:
    """Encrypt a file's content under its name; without the key it cannot be read, changed or renamed unnoticed."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(NONCE)
    return nonce + AESGCM(key).encrypt(nonce, content, name.encode())


def opened(key: bytes, name: str, content: bytes) -> bytes:
    """Decrypt what was kept under a name.

    Raises:
        DamagedError: It was not sealed with this key under this name, or was changed.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(key).decrypt(content[:NONCE], content[NONCE:], name.encode())
    except (InvalidTag, ValueError):
        raise DamagedError(
            "--recover: what was kept belongs to another dataflow, data set or version (a stream with retractions is "
            "another one than without), or is damaged; "
            "give a new directory."
        ) from None


@contextmanager
def appearing(path: Path, mode: int = 0o600, *, draft: Path | None = None, replace: bool = True) -> Iterator[IO[bytes]]:
    """Write a file atomically: it exists as a whole or not at all.

    Args:
        path: Where it shall stand.
        mode: Who may use it, as far as the process's mask lets them; its owner alone, unless it is no secret.
        draft: Where it is written before; by default under a name that nothing else has.
        replace: Whether it takes the place of a file that is there; if not, that one stays.

    Raises:
        OSError: It cannot be written there; nothing is left of it.
    """
    how = os.O_EXCL if draft is None else os.O_TRUNC
    draft = draft or path.with_name(f".{path.name[:100]}.{os.urandom(8).hex()}.draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | how, mode)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123
            yield file
        if replace:
            draft.replace(path)
        else:
            with suppress(FileExistsError):
                os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def replacing(call: str, path: str | Path, suffixes: tuple[str, ...]) -> Iterator[IO[bytes]]:
    """Write a file whole or not at all; see `appearing`.

    Args:
        call: The name of the public call, for the error.
        path: Where the file shall stand; what stands there is replaced.
        suffixes: The endings that `call` can write.

    Raises:
        PlanError: It is no path.
        SourceError: The suffix is not one of `suffixes`, or the place cannot be written.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise PlanError(f"{call}(path): takes a path, and {type(path).__name__} was given.")
    path = Path(path)
    if path.suffix.lower() not in suffixes or "\0" in str(path):
        raise SourceError(f"{call}({str(path)!r}): the file's name must end in one of {', '.join(suffixes)}.")
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "Is a directory")
        with appearing(path, 0o666) as file:
            yield file
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SourceError(f"{call}({str(path)!r}): cannot be written: {reason}. Choose another place; what was "
                          "charged stays charged, and asking the same again is free.") from None  # fmt: skip


def write(path: Path, content: bytes, *, draft: Path | None = None, replace: bool = True) -> None:
    """Write a file that is there whole or not at all, durably, for its owner alone; see `appearing`."""
    with appearing(path, draft=draft, replace=replace) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    settle(path.parent)


def settle(place: Path) -> None:
    """Make the names in a directory durable."""
    directory = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
