"""The people index as a file beside the ledger, so that the next process need not make it again.

    FORM | key, wrapped | pieces, one after another | directory | length of the directory

Everything but the form and the length is encrypted and authenticated (AES-256-GCM) under a fresh random key, which is
wrapped by a key that follows from the secret and from what the file is of: the ledger, the version, the code of the
digest that is pinned for it, whose records belong together, the columns and how they were read, and who reads them. So
under any other circumstances it cannot be opened, and is made anew. A piece is bound to its number. The file is for its
owner alone. Its name says nothing; that it is there, and how large it is, is as private as the data.

It appears whole or not at all. Who writes it holds a lock on the draft; a draft that nobody holds was left by a process
that was killed, and is removed by whoever comes next. Nothing depends on the file: where it cannot be written or read,
the index is made anew, or people are bounded anew.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import polars as pl

from wpinq.core.ledger.stores.file import PEOPLE
from wpinq.core.ledger.versions import Pin
from wpinq.core.records.fields import encode
from wpinq.core.records.reader import DamagedError
from wpinq.core.runs.people_parts import Column, Part
from wpinq.errors import SourceError, installed
from wpinq.storage import opened, sealed, settle

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet
    from wpinq.core.records.schema import Schema

FORM = b"wpinq people index 1\n"
KEY, LENGTH = 32, 8
WRAPPED = KEY + 12 + 16
"""Bytes of a wrapped key: with its nonce and its tag."""
PIECE = 1 << 24
"""Bytes that are encrypted together."""

Place = tuple[int, int, int]
"""A content: the number of its first piece, where that begins, and its bytes."""


class PeopleFile:
    """The file of one index, whether it is there or not.

    Attributes:
        path: Where it stands.
    """

    def __init__(self, path: Path, wrapping: bytes) -> None:
        self.path, self._wrapping = path, wrapping
        self._draft = path.with_name(f".{path.name}.draft")

    @classmethod
    def of(cls, data: DataSet) -> PeopleFile | None:
        """That of a version and its unit; None where none is asked for, or nothing is pinned that binds it."""
        if data.indexes is not data.reader or not data.lasting or not data.held:
            return None
        pin = Pin(data.edition, "", data.held[0][0], None)
        code = data.ledger.content_code(pin)
        if code is None:
            return None
        secret, unit = data.secret, data.unit
        of = encode(data.book, data.edition, repr((unit.column, unit.period, unit.zone)))
        columns = encode(*((column.name, column.kind.value) for column in data.reader.schema))
        way = repr((data.reader.way, data.reading, installed(), pl.__version__))
        ledger = Path(data.ledger)
        name = f"{ledger.name}{PEOPLE}{secret.mac('people index', of).hex()[:16]}"
        return cls(ledger.with_name(name), secret.derive("people index", of, code, columns, way))

    def read(self) -> Filed | None:
        """What is in it, if it is there and is the one that is looked for."""
        try:
            return Filed(self.path, self._wrapping)
        except (OSError, ValueError, SourceError):
            return None

    @contextmanager
    def writing(self) -> Iterator[Writing | None]:
        """Write it: it appears when this ends without an exception. None where another process is about to.

        Raises:
            OSError: It cannot be written; nothing of it is left.
        """
        file = _locked(self._draft)
        if file is None:
            yield None
            return
        with file:
            try:
                writing = Writing(file, self._wrapping)
                yield writing
                writing.end()
                self._draft.replace(self.path)
            except BaseException:
                with suppress(OSError):
                    self._draft.unlink()
                raise
        settle(self.path.parent)


def _locked(draft: Path) -> BinaryIO | None:
    """A new draft, locked; None where another process writes one."""
    with suppress(FileNotFoundError), draft.open("rb") as left:
        try:
            fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        draft.unlink()
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return None
    file = open(descriptor, "wb")  # noqa: PTH123, SIM115
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


class Writing:
    """A file that is being written."""

    def __init__(self, file: BinaryIO, wrapping: bytes) -> None:
        self._file, self._key = file, os.urandom(KEY)
        self._pieces = 0
        self._parts: list[dict[str, object]] = []
        file.write(FORM + sealed(wrapping, "key", self._key))

    def add(self, part: Part) -> None:
        """Write a part.

        Raises:
            OSError: There is no room.
        """
        columns = {}
        for name, column in part.columns.items():
            numbers = None if column.numbers is None else self._numbers(column, part)
            columns[name] = {"values": self._keep(_values(column.values)), "numbers": numbers}
        people = self._keep(np.bincount(part.people).astype(np.uint32))
        self._parts.append({"size": part.size, "people": people, "columns": columns})

    def _numbers(self, column: Column, part: Part) -> Place | str:
        return "people" if column.numbers is part.people else self._keep(column.numbers)

    def _keep(self, content: object) -> Place:
        plain = memoryview(content).cast("B")  # type: ignore[arg-type]  # an array or bytes
        first, start = self._pieces, self._file.tell()
        for low in range(0, max(1, plain.nbytes), PIECE):
            self._file.write(sealed(self._key, str(self._pieces), bytes(plain[low : low + PIECE])))
            self._pieces += 1
        return first, start, plain.nbytes

    def end(self) -> None:
        """Write what says where everything is, and wait until all of it is on the disk."""
        directory = sealed(self._key, "directory", json.dumps(self._parts).encode())
        self._file.write(directory + len(directory).to_bytes(LENGTH, "little"))
        self._file.flush()
        os.fsync(self._file.fileno())


class Filed:
    """A file that is there: parts, of which columns are read when they are asked for.

    Attributes:
        size: Bytes that its parts take in memory, about.
        damaged: Whether a piece of it could not be read.

    Raises:
        OSError, ValueError, SourceError: It is not there, of something else, or not whole.
    """

    def __init__(self, path: Path, wrapping: bytes) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        weakref.finalize(self, os.close, self._file)
        self._path, self.damaged = path, False
        state = os.fstat(self._file)
        end = state.st_size
        if self._at(0, len(FORM)) != FORM or state.st_mode & 0o077:
            raise ValueError
        self._key = opened(wrapping, "key", self._at(len(FORM), WRAPPED))
        length = int.from_bytes(self._at(end - LENGTH, LENGTH), "little")
        self._parts = json.loads(opened(self._key, "directory", self._at(end - LENGTH - length, length)))
        self.size = sum(part["size"] for part in self._parts)

    def parts(self, schema: Schema) -> Iterator[Part]:
        """The parts, one after another."""
        for part in self._parts:
            counts = np.frombuffer(self._content(part["people"]), np.uint32)
            people = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
            yield Part(schema, people, _Columns(self, part["columns"], people))

    def column(self, entry: Mapping[str, Any], people: np.ndarray) -> Column:
        """One column of a part.

        Raises:
            DamagedError: It is not as it was written.
        """
        values = pl.read_ipc_stream(io.BytesIO(self._content(entry["values"]))).to_series().rechunk()
        numbers = entry["numbers"]
        if numbers is None or numbers == "people":
            return Column(values, people if numbers else None)
        return Column(values, np.frombuffer(self._content(numbers), np.int32))

    def _content(self, extent: Sequence[int]) -> bytes:
        number, start, size = extent
        edges = [*range(0, max(1, size), PIECE), size] if size else [0, 0]
        pieces = []
        try:
            for low, high in pairwise(edges):
                pieces.append(opened(self._key, str(number), self._at(start, high - low + WRAPPED - KEY)))
                number, start = number + 1, start + high - low + WRAPPED - KEY
        except (OSError, ValueError, SourceError):
            self.damaged = True
            with suppress(OSError):
                self._path.unlink()
            raise DamagedError(
                f"{self._path.name}: it is not as it was written, and was removed; ask again, which is free."
            ) from None
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _at(self, start: int, size: int) -> bytes:
        content = os.pread(self._file, size, start) if start >= 0 else b""
        if len(content) != size:
            raise ValueError
        return content


class _Columns(Mapping[str, Column]):
    """The columns of a part, each read when it is first asked for."""

    def __init__(self, file: Filed, entries: Mapping[str, Mapping[str, Any]], people: np.ndarray) -> None:
        self._file, self._entries, self._people = file, entries, people
        self._read: dict[str, Column] = {}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> Column:
        with self._lock:
            if name not in self._read:
                self._read[name] = self._file.column(self._entries[name], self._people)
            return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _values(values: pl.Series) -> bytes:
    plain = io.BytesIO()
    values.alias("").to_frame().write_ipc_stream(plain, compat_level=pl.CompatLevel.oldest())
    return plain.getvalue()
