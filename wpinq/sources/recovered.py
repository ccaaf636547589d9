"""A source for runs that may be killed: the parts that were read are kept in a directory, and not read again.

A source is cut into parts that depend on the source only. When a part has been read, its records, with equal ones added
up, are written atomically as one file; after a restart the part is read from this file. So nothing is lost or counted
twice, and since noise is a function of the secret every answer is the same.

The files are encrypted and authenticated under a key of the data set's secret, so they hold no names and cannot be
changed; only their owner may read them. They belong to one data set, version and dataflow, and to no other.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import polars as pl

from wpinq.core.records import canonical
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.reader import Reader, passed, wanted
from wpinq.core.records.schema import Schema
from wpinq.errors import SourceError
from wpinq.storage import opened, private, sealed, write

BYTES_PER_PART = 1 << 25
"""Bytes of files that make a part; there are at least `LEAST` parts."""
LEAST = 16
HEAD = "belongs-to"


@dataclass(frozen=True)
class Recovered:
    """A reader whose parts are kept in a directory.

    Attributes:
        reader: The source itself.
        folder: The directory.
        key: 32 secret bytes, of this data set, version and dataflow alone.
        parts: Into how many parts the source is cut.
    """

    reader: Reader
    folder: Path
    key: bytes = field(repr=False)
    parts: int

    schema, name, title, path, way, total_bytes = passed("schema", "name", "title", "path", "way", "total_bytes")
    steady, version, check, state, content = passed("steady", "version", "check", "state", "content")

    def prove(self, share: tuple[int, int] = (0, 1)) -> None:
        """Prove the source."""
        self.reader.prove(share)

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns, with the weights of their rows; see `Reader.batches`.

        Raises:
            SourceError: The source or a kept part cannot be read.
        """
        schema = wanted(self.schema, columns, self.name)
        for part in range(share[0], self.parts, share[1]):
            frame = self._part(schema, part)
            if frame is None:
                read = self.reader.batches(schema.names, share=(part, self.parts), progress=progress)
                held = (Batch.of(canonical.frame(item, schema), schema) for item in read)
                frame = Batch.concat(held, schema).consolidate().frame
                self._keep(schema, part, frame)
            if frame.height:
                yield frame.select(*schema.names, WEIGHT)

    def _file(self, schema: Schema, part: int) -> Path:
        """A name that holds none of a column."""
        digest = blake2b(repr((schema, part, self.parts)).encode(), key=self.key, digest_size=12).hexdigest()
        return self.folder / f"{digest}.part"

    def _part(self, schema: Schema, part: int) -> pl.DataFrame | None:
        path = self._file(schema, part)
        try:
            return pl.read_ipc(io.BytesIO(opened(self.key, path.name, path.read_bytes())))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SourceError(f"--recover {self.folder}: {error.strerror}; give a directory of your own.") from None

    def _keep(self, schema: Schema, part: int, frame: pl.DataFrame) -> None:
        buffer = io.BytesIO()
        frame.write_ipc(buffer)
        path = self._file(schema, part)
        write(path, sealed(self.key, path.name, buffer.getvalue()))


def recovered(reader: Reader, folder: Path, key: bytes) -> Recovered:
    """Keep the parts of a source in a directory, or continue with those that were kept there.

    Args:
        reader: The source.
        folder: The directory; it is made where there is none.
        key: 32 secret bytes that depend on all that the parts depend on.

    Raises:
        SourceError: It belongs to another dataflow, data set or version, others may read it, or it cannot be used.
    """
    parts = max(LEAST, (reader.total_bytes or 0) // BYTES_PER_PART)
    head = folder / HEAD
    try:
        private(folder)
        if not head.exists() and any(item.suffix == ".part" for item in folder.iterdir()):
            raise SourceError(f"--recover {folder}: it lacks {HEAD!r}; give a new directory.")
        if not head.exists():
            write(head, sealed(key, HEAD, str(parts).encode()))
        parts = int(opened(key, HEAD, head.read_bytes()))
    except OSError as error:
        raise SourceError(f"--recover {folder}: {error.strerror}; give a directory that can be written.") from None
    return Recovered(reader, folder, key, parts)


def forget(folder: Path) -> None:
    """Remove what was kept, when it is needed no more."""
    for path in [*folder.glob("*.part"), *folder.glob(".*.draft"), folder / HEAD]:
        path.unlink(missing_ok=True)
