"""`wpinq run --listen`: what is sent is appended to a file of JSON lines, durably, and that file is followed.

The file is the one store: a line holds a record and, where it was sent with a key, a digest of person and key, by which
it is known again for as long as its line is there. A line that a killed process left half written was not acknowledged,
and is taken off. A file that was renamed (logrotate) is followed to its end, and a new one is begun.

Nothing of it is destroyed: running counts, a start after a kill and the noise of answers all go on from what was there
before, so no epoch has a secret of its own.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import msgspec

from wpinq.apps.publish.intake import Sent
from wpinq.core import Schema
from wpinq.errors import SourceError

KEY = "idempotency key"
"""The field of a line by which a record is known again; no column of that name is declared."""


def tokens_beside(path: Path) -> Path:
    """Where the tokens of those who send to a file are: no name that a renamed log of it could have."""
    return path.with_suffix(".tokens")


@dataclass
class Appending:
    """See above. One process appends.

    Attributes:
        path: The file.
        schema: The columns of records.
        name: That of the file, which tokens are for.
        tokens: The file of the tokens that senders may show; None where there was none at the start.
    """

    path: Path
    schema: Schema
    name: str = field(init=False)
    tokens: Path | None = field(init=False)
    _known: set[str] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        """Look for tokens."""
        beside = tokens_beside(self.path)
        self.name, self.tokens = self.path.name, beside if os.path.lexists(beside) else None

    def begin(self) -> None:
        """Make the file where there is none, for its owner alone, and see what it holds.

        Raises:
            SourceError: It cannot be written.
        """
        with self.connected():
            pass

    @contextmanager
    def connected(self) -> Iterator[list[IO[bytes]]]:
        """The file, which nobody else appends to.

        Raises:
            SourceError: It cannot be written, or another process appends to it.
        """
        held = list[IO[bytes]]()
        try:
            held.append(self._opened())
            yield held
        except BlockingIOError:
            raise SourceError(f"{self.path}: another process appends to it; try again when it has ended.") from None
        except OSError as error:
            raise SourceError(f"{self.path}: cannot be written: {error.strerror}.") from None
        finally:
            for file in held:
                file.close()

    def take(self, held: list[IO[bytes]], sent: Iterable[Sent], _: dt.datetime) -> None:
        """Append records durably: when this returns, each is in the file, once.

        Raises:
            OSError: Nothing of them is.
        """
        if not self.path.exists() or not os.path.samestat(self.path.stat(), os.fstat(held[0].fileno())):
            held[0].close()
            held[0] = self._opened()
        lines, new = [], set[str]()
        for record in sent:
            known = None if record.key is None else _known(record)
            if known is None or (known not in self._known and known not in new):
                row = dict(zip(self.schema.names, record.values, strict=True))
                lines.append(msgspec.json.encode(row if known is None else {**row, KEY: known}) + b"\n")
                new |= set() if known is None else {known}
        file = held[0]
        size = os.fstat(file.fileno()).st_size
        try:
            file.write(b"".join(lines))
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            os.ftruncate(file.fileno(), size)
            raise
        self._known |= new

    def _opened(self) -> IO[bytes]:
        file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, 0o600), "ab", 0)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        whole = 0
        with self.path.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    whole += len(line)
                    self._see(line)
        if whole < os.fstat(file.fileno()).st_size:
            os.ftruncate(file.fileno(), whole)
            os.fsync(file.fileno())
        return file

    def _see(self, line: bytes) -> None:
        try:
            known = json.loads(line).get(KEY)
        except (ValueError, AttributeError):
            return
        if isinstance(known, str):
            self._known.add(known)


def _known(record: Sent) -> str:
    parts: list[Any] = [str(record.person), record.key]
    return blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()
