"""Whole lines of a file, in blocks, so that no line changes how another one is read.

A line ends at a line feed and belongs to the share in which its first byte lies. The lines do not depend on where
blocks and shares are cut.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, cast

from wpinq.sources.files import File

if TYPE_CHECKING:
    import pyarrow as pa

Block: TypeAlias = bytes | bytearray
"""Whole lines; immutable."""
BLOCK = 1 << 22  # bytes read at a time, no more than LONGEST
LONGEST = 1 << 26  # a longer line is ill-formed, so that no line can fill the memory
TOO_LONG = b"\r \n"  # an ill-formed line that stands for a longer one
END = 1 << 63


@contextmanager
def opened(file: File) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """A file's contents, unzipped if need be, and the file itself, whose position tells how far we are."""
    with file.path.open("rb", buffering=0) if file.kept is None else file.kept.opened(file.size) as raw:
        plain = cast("BinaryIO", raw)
        if not file.zipped:
            yield plain, plain
            return
        with gzip.GzipFile(fileobj=plain) as unzipped:
            yield cast("BinaryIO", unzipped), plain


def blocks(stream: BinaryIO, origin: int, start: int, stop: int = END) -> Iterator[Block]:
    """Read the lines whose first byte lies in [start, stop), in blocks that end with a line feed.

    Args:
        stream: Bytes; it is moved forward only.
        origin: Where the very first line begins.
        start: Where this share begins, at or after the origin.
        stop: Where this share ends.
    """
    foreign, long = start > origin, False  # the line that holds the byte before belongs to another share
    position = stream.seek(start - foreign)
    rest: Block = b""
    while position < stop or rest:
        late = position >= stop
        data = _read(stream, rest, BLOCK if late else min(BLOCK, stop - position))
        read = len(data) - len(rest)
        if not read:
            break
        position += read
        end = (data.find(b"\n", len(rest)) if late else data.rfind(b"\n", len(rest))) + 1
        if not end:
            long = long or (not foreign and len(data) > LONGEST)
            rest = b"" if foreign or long else data
            continue
        first = data.find(b"\n", len(rest)) + 1
        long = long or (not foreign and first - 1 > LONGEST)
        rest = b"" if late else data[end:]
        del data[end:]  # in place: to copy a block takes a good part of the time that it takes to split it
        if long or foreign:
            data[:first] = TOO_LONG if long else b""
        foreign = long = False
        if data:
            yield data
    if rest or long:
        yield TOO_LONG if long else rest + b"\n"


def _read(stream: BinaryIO, rest: Block, size: int) -> bytearray:
    """What was left over, and up to so many bytes more."""
    data = bytearray(len(rest) + size)
    data[: len(rest)] = rest
    with memoryview(data) as view:
        read = stream.readinto(view[len(rest) :])  # type: ignore[attr-defined]
    del data[len(rest) + read :]
    return data


def as_lines(block: Block) -> pa.Array:
    """The lines of a block as an array of bytes, each with its line feed."""
    import numpy as np
    import pyarrow as pa

    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10) + 1
    offsets = np.concatenate([np.zeros(1, np.int64), ends.astype(np.int64)])
    return pa.Array.from_buffers(pa.large_binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(block)])


def as_block(lines: pa.Array) -> Any:
    """The bytes of lines that a filter has made new, as one buffer."""
    import numpy as np
    import pyarrow as pa

    if not len(lines):
        return pa.py_buffer(b"")
    offsets = np.frombuffer(lines.buffers()[1], np.int64)[lines.offset : lines.offset + len(lines) + 1]
    return lines.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
