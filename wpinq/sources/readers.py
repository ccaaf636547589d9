"""Base classes of readers: of files, and of objects in memory."""

from __future__ import annotations

from dataclasses import dataclass

from wpinq.core.records.reader import Reader, Steady, passed
from wpinq.core.records.schema import Schema
from wpinq.errors import SourceError
from wpinq.sources.files import Files, state


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
