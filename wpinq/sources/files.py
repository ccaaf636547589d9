"""The files of a source: find them, check that they have not changed, and redact errors of reading them.

A digest of their bytes finds out in the same pass whether compressed files are whole. `FileReader` is the base of
readers of files.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import io
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from wpinq.core.records.reader import Reader, Steady, passed
from wpinq.core.records.schema import Schema
from wpinq.errors import ChangedError, SourceError

FORMATS = {
    ".csv": "csv", ".tsv": "tsv", ".txt": "pairs", ".log": "log", "_log": "log", ".jsonl": "json", ".ndjson": "json",
    ".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
"""Which ending is which form. Those of lines may be compressed as a whole, and have `.gz` at their end."""
LINES = ("csv", "tsv", "pairs", "log", "json")
ROTATED = re.compile(r"(\.log|_log)(?:\.[0-9]+|-[0-9]{6,14})$")
"""What logrotate appends: access.log.1, access.log-20260601."""
REMOTE = re.compile(r"(?!kafka:)[a-z][a-z0-9+.-]+://", re.IGNORECASE)
"""How a file begins that is not of this machine."""
BESIDE = re.compile(r"\.ledger(?:[.-][a-z.-]+)?$")
"""The ledger of a file and what lies by it, which a pattern of logs may match."""

CHANGED = "{}: changed after it was opened; open it again."
TICK = 100_000_000
"""Nanoseconds within which the clock of a file system surely goes on."""


class Kept(Protocol):
    """An open file; see `sources/kept.py`."""

    def check(self, file: File) -> None:
        """Refuse it where what was there is not any more."""

    def opened(self, size: int) -> io.RawIOBase:
        """Its first bytes as a file of their own."""


@dataclass(frozen=True, slots=True)
class File:
    """One file as it was when the source was opened.

    Attributes:
        given: The path as the caller wrote it, for messages.
        path: The file itself, where links end.
        size: In bytes.
        modified: In nanoseconds.
        kept: Its descriptor, where it may grow or get another name while it is read.
    """

    given: str
    path: Path
    size: int = field(repr=False)  # it tells how many records there are
    modified: int
    kept: Kept | None = field(default=None, repr=False, compare=False)

    @property
    def zipped(self) -> bool:
        """Whether it is compressed as a whole, so that it cannot be read from its middle."""
        return self.path.suffix.lower() == ".gz"

    def check(self) -> None:
        """Make sure that it is still the file that was opened.

        Raises:
            ChangedError: It is not.
        """
        if self.kept is not None:
            self.kept.check(self)
            return
        with reading(self.given):
            now = self.path.stat()
        if (now.st_size, now.st_mtime_ns) != (self.size, self.modified):
            raise ChangedError(CHANGED.format(self.given))

    @contextmanager
    def opened(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """Its contents, unzipped if need be, and the file itself, whose position tells how far a reader is."""
        with self.path.open("rb", buffering=0) if self.kept is None else self.kept.opened(self.size) as raw:
            plain = cast("BinaryIO", raw)
            if not self.zipped:
                yield plain, plain
                return
            with gzip.GzipFile(fileobj=plain) as unzipped:
                yield cast("BinaryIO", unzipped), plain


@dataclass(frozen=True, slots=True)
class Files:
    """The files behind a path or a pattern.

    Attributes:
        given: The path or pattern as the caller wrote it, for messages.
        form: csv, tsv, pairs, log, json, parquet or arrow.
        files: In the order of their paths.
        path: The file, or the directory of a pattern.
    """

    given: str
    form: str
    files: tuple[File, ...]
    path: Path

    @classmethod
    def find(cls, source: str | Path, declared: str | None = None) -> Files:
        """Find the files of a path, a glob pattern or a directory.

        Args:
            source: It. Of a directory all files below it are read, but hidden ones and those that begin with `_`.
            declared: Their form, where their ending does not tell it.

        Raises:
            SourceError: There is no such file, or it is of no known or more than one format.
        """
        written = str(source)
        if "\0" in written or not written.strip():
            raise SourceError("the path holds a NUL byte." if written.strip() else "the path is empty; name a file.")
        if scheme := REMOTE.match(written):
            raise SourceError(f"{written}: {scheme[0]} is not read; copy it to this machine first, and name the copy.")
        with reading(written):
            single = Path(written).exists()
            paths = _below(Path(written)) if single else _matching(written)
        if not paths:
            what = "no file matches this pattern" if glob.has_magic(written) else "no such file"
            if single:
                what = "holds no file"
            if written == "-" or written.startswith("kafka://"):
                what += "; streams are read by wpinq run and by wpinq.live(...)"
            raise SourceError(f"{written}: {what}.")
        forms = {declared} if declared else {form_of(path) for path in paths}
        if None in forms or len(forms) > 1:
            what = "not of one format" if len(forms) > 1 else "not of a known format"
            raise SourceError(
                f"{written}: {what}; the endings are {', '.join(FORMATS)}; those of lines also with .gz, and those of "
                "logs with the numbers and dates of logrotate. format= says it of other names, and table= of databases."
            )
        form = next(form for form in forms if form)
        homes: dict[Path, Path] = {}
        files = tuple(_file(path, homes) for path in paths)
        alone = single and paths == [Path(written)]  # then it is no directory, and where its links end is known
        return cls(written, form, files, files[0].path if alone else _anchor(written, single))

    def insist_on_once(self) -> Files:
        """The same, after checking that no file is there under two names: each record would count twice, and pay once.

        Raises:
            SourceError: One is.
        """
        known: dict[tuple[int, int], File] = {}
        for file in self.files:
            with reading(file.given):
                status = file.path.stat()
            other = known.setdefault((status.st_dev, status.st_ino), file)
            if other is not file:
                raise SourceError(f"{file.given}: is the same file as {other.given}, so each record would count twice;"
                                  " name it once, or copy it if its records are others.")  # fmt: skip
        return self

    @property
    def name(self) -> str:
        """The file's name, or the pattern's last part."""
        return plain(Path(self.given).name)

    @property
    def title(self) -> str:
        """The name of a file or directory; of a pattern its text from the first part that holds a wildcard."""
        path = Path(self.given)
        if path.exists() or not glob.has_magic(self.given):
            return plain(path.name or self.path.name)
        first = next(index for index, part in enumerate(path.parts) if glob.has_magic(part))
        return plain("/".join(path.parts[first:]))

    @property
    def total_bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for file in self.files)

    def version(self) -> str:
        """Path, size and modification time of every file."""
        return plain("\n".join(f"{file.path}\t{file.size}\t{file.modified}" for file in self.files))

    def content(self, key: bytes = b"") -> bytes:
        """BLAKE2b-256 over the files' sizes and bytes, in order, or under a key GMAC.

        What is compressed as a whole is decompressed in the same pass, so that damage shows before any charge.

        Raises:
            SourceError: A file cannot be read, is cut off or damaged, or changed.
        """
        digest = Digest(key)
        for file in self.files:
            digest.update(file.size.to_bytes(8, "little") + (b"gzip" if key and file.zipped else b""))
            with reading(file.given):
                digest.read(file.path, zipped=file.zipped and self.form in LINES)
            file.check()
        return digest.end()


def state(paths: Iterable[Path]) -> str | None:
    """Path, inode, size and times of files as the system shows them; None where one was changed just now.

    The time of change of an inode cannot be set, so any later writing shows, once the clock has gone on since.
    """
    result, now = [], time.time_ns()
    for path in paths:
        with reading(str(path)):
            status = path.stat()
        if not status.st_ctime_ns < now - TICK:
            return None
        result.append((str(path), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return plain("\n".join("\t".join(map(str, entry)) for entry in result))


def plain(path: str) -> str:
    """A path as text, with an escape for each byte that is not UTF-8."""
    return path.encode("utf-8", "backslashreplace").decode()


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn errors of the operating system or a decoder into one line that quotes nothing of a file.

    Raises:
        SourceError: Instead of any error of reading.
    """
    import zlib

    try:
        yield
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file.") from None
    except PermissionError:
        raise SourceError(f"{path}: may not be read; check its permissions.") from None
    except (OSError, EOFError, zlib.error, RuntimeError):  # the last of links that end in each other
        raise SourceError(f"{path}: cannot be read; it may be damaged or cut off.") from None


def text_of(path: Path, call: str = "") -> str:
    """The text of a small file that a person wrote, which is UTF-8.

    Args:
        path: The file.
        call: What a message begins with; by default the path.

    Raises:
        SourceError: It cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "no UTF-8"
        raise SourceError(f"{call or path}: cannot be read: {why}.") from None


def form_of(path: Path) -> str | None:
    """The form that the name of a file tells; None if it is not known."""
    name = path.name.lower()
    whole = ROTATED.sub(r"\1", name.removesuffix(".gz"))
    form = next((form for ending, form in FORMATS.items() if whole.endswith(ending)), None)
    return None if form not in LINES and whole != name else form


def _below(path: Path) -> list[Path]:
    """A file, or the files below a directory."""
    if not path.is_dir():
        return [path]
    below = sorted(path.rglob("*"))
    return [entry for entry in below if entry.is_file() and not _hidden(entry.relative_to(path))]


def _hidden(path: Path) -> bool:
    """Whether it is a sign that a program left for others, as `_SUCCESS` is."""
    return any(part.startswith((".", "_")) for part in path.parts) or BESIDE.search(path.name) is not None


def _matching(pattern: str) -> list[Path]:
    paths = [Path(path) for path in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207
    return [path for path in paths if not BESIDE.search(path.name)]


def _file(path: Path, homes: dict[Path, Path]) -> File:
    """A file that can be read.

    Args:
        path: It.
        homes: Where the links of directories end, as far as it was looked up; what is looked up here is added.
    """
    with reading(str(path)):
        if path.parent not in homes:
            homes[path.parent] = path.parent.resolve(strict=True)
        real = path.resolve(strict=True) if stat.S_ISLNK(path.lstat().st_mode) else homes[path.parent] / path.name
        if not real.is_file():
            raise SourceError(f"{path}: is not a file.")
        with real.open("rb", buffering=0) as file:
            status = os.fstat(file.fileno())
    return File(str(path), real, status.st_size, status.st_mtime_ns)


def _anchor(written: str, single: bool) -> Path:
    """The file itself, or the deepest directory of a pattern that is certain."""
    path = Path(written)
    if not single:
        while glob.has_magic(str(path)):
            path = path.parent
    return path.resolve()


BLOCK = 1 << 20


class Digest:
    """A digest of bytes: BLAKE2b-256, or under a key GMAC (NIST SP 800-38D), which takes a twentieth of the time.

    GMAC under one key and nonce is a universal hash: two contents of n bytes that were chosen without the key collide
    with a probability below n / 2^130. It tells of the key, so it is shown to nobody; the ledger keeps a code of it.
    """

    def __init__(self, key: bytes = b"") -> None:
        if key:
            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

            self._gmac = Cipher(algorithms.AES(key), modes.GCM(bytes(12))).encryptor()
            self.update: Callable[[bytes], object] = self._gmac.authenticate_additional_data
        else:
            self._hash = hashlib.blake2b(digest_size=32)
            self.update = self._hash.update
        self._keyed = bool(key)

    def read(self, path: Path, *, zipped: bool = False) -> None:
        """Add the bytes of a file; one that is zipped is decompressed as well, as whoever reads it does.

        Raises:
            OSError, EOFError, zlib.error: It cannot be read, or decompressed.
        """
        with path.open("rb", buffering=0) as stream:
            if not zipped:
                while block := stream.read(BLOCK):
                    self.update(block)
                return
            with gzip.GzipFile(fileobj=cast("BinaryIO", _Tapped(stream, self.update))) as whole:
                while whole.read(BLOCK):
                    pass

    def end(self) -> bytes:
        """The digest."""
        if not self._keyed:
            return self._hash.digest()
        self._gmac.finalize()
        return self._gmac.tag


@dataclass(frozen=True, slots=True)
class _Tapped:
    """A file that tells of each block that is read of it, in order and to its end."""

    stream: BinaryIO
    tap: Callable[[bytes], object]

    def read(self, size: int = -1) -> bytes:
        """As of a file."""
        block = self.stream.read(size)
        self.tap(block)
        return block


@dataclass(frozen=True, slots=True)
class FileReader:
    """A reader of files.

    Attributes:
        source: The files.
        schema: All columns with their kinds.
    """

    source: Files
    schema: Schema

    name, title, path, total_bytes, version = passed("name", "title", "path", "total_bytes", "version", by="source")

    @property
    def way(self) -> tuple[object, ...]:
        """The format."""
        return (type(self).__name__, self.source.form)

    @property
    def steady(self) -> Steady:
        """A file that changed is refused when it is read."""
        return Steady.FILES

    def check(self) -> None:
        """Refuse files that are no longer as they were opened."""
        for file in self.source.files:
            file.check()

    def state(self) -> str | None:
        """Path, inode, size and times of every file now."""
        return state(file.path for file in self.source.files)

    def content(self, key: bytes = b"") -> bytes | None:
        """BLAKE2b-256 over the files' sizes and bytes, or under a key GMAC, which is quicker."""
        return self.source.content(key)

    def prove(self, share: tuple[int, int] = (0, 1)) -> None:
        """Nothing that the digest has not read can be damaged."""


def ran(reader: Reader) -> None:
    """Read all that a query, a view or a lazy table gives, and keep nothing.

    Raises:
        SourceError: It fails, on some value perhaps.
    """
    try:
        for _ in reader.batches(reader.schema.names):
            pass
    except SourceError as error:
        raise SourceError(f"{str(error).rstrip('.')}. It was run once, before anything is charged: what is computed of "
                          "a row must not fail on any value.") from None  # fmt: skip
