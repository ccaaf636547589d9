"""Frames of a journal: how closed epochs are written into its file, and found there."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import polars as pl

from wpinq.core.records.log import Epoch, Merged
from wpinq.errors import SourceError
from wpinq.storage import opened, sealed

Positions: TypeAlias = dict[str, Any]
"""How far each source was read, by its name."""

SIZE = 8
SMALL = 1 << 19
"""Bytes up to which an epoch is compressed in half the time to twice as much: it takes longer than all else then."""
MERGED = 2
"""The place of the frame of merged epochs, after the version and the first epoch."""


def framed(frame: bytes) -> bytes:
    """A frame as it stands in the file: its size and itself."""
    return len(frame).to_bytes(SIZE, "little") + frame


def frames(file: int) -> Iterator[bytes]:
    """The complete frames of a file."""
    place = 0
    for size in sizes(file):
        yield _bytes(file, place + SIZE, size)
        place += SIZE + size


def sizes(file: int) -> Iterator[int]:
    """The sizes of the complete frames of a file."""
    place, end = 0, os.fstat(file).st_size
    while place + SIZE <= end:
        size = int.from_bytes(_bytes(file, place, SIZE), "little")
        if place + SIZE + size > end:
            return
        yield size
        place += SIZE + size


def chained(chain: bytes, frame: bytes) -> bytes:
    """A code for all frames up to one, from the code for those before."""
    return blake2b(chain + frame, digest_size=32).digest()


def sealed_epoch(key: bytes, number: int, chain: bytes, epoch: Epoch, positions: Positions) -> bytes:
    """The frame of an epoch, or of several that were merged, after frames with a code."""
    about = [epoch.watermark, positions, *([] if epoch.merged is None else [asdict(epoch.merged)])]
    buffer = io.BytesIO()
    buffer.write(framed(json.dumps(about).encode()))
    compression: Literal["lz4", "zstd"] = "lz4" if epoch.frame.estimated_size() < SMALL else "zstd"
    epoch.frame.write_ipc_stream(buffer, compression=compression)  # a file with its footer takes ten times as long
    return sealed(key, _name(None if epoch.merged else number, chain), buffer.getvalue())


def opened_epoch(key: bytes, number: int | None, chain: bytes, frame: bytes) -> tuple[Epoch, Positions]:
    """The epoch of a frame; without a number that of several which were merged.

    Raises:
        SourceError: It is another one, or damaged.
    """
    return _epoch(opened(key, _name(number, chain), frame))


def _epoch(content: bytes) -> tuple[Epoch, Positions]:
    size = SIZE + int.from_bytes(content[:SIZE], "little")
    watermark, positions, *more = json.loads(content[SIZE:size])
    merged = Merged(**{**more[0], "columns": tuple(more[0]["columns"])}) if more else None
    return Epoch(pl.read_ipc_stream(io.BytesIO(content[size:])), watermark, merged), positions


def merged_of(key: bytes, chain: bytes, frame: bytes) -> Merged | None:
    """What is known of the epochs that the frame at `MERGED` holds, after frames with a code; None where it holds one.

    A frame that is damaged is told of where the epochs are read.
    """
    with suppress(SourceError):
        return opened_epoch(key, None, chain, frame)[0].merged
    return None


def numbered(key: bytes, kept: Iterator[bytes], merged: Merged | None) -> Iterator[tuple[int, tuple[Epoch, Positions]]]:
    """The epochs of frames with their numbers; of merged ones that of the last.

    Raises:
        SourceError: One is damaged.
    """
    return ((number, _epoch(content)) for number, content in _contents(key, kept, merged))


def _contents(key: bytes, kept: Iterator[bytes], merged: Merged | None) -> Iterator[tuple[int, bytes]]:
    """The same, as they lie in their frames."""
    chain, number = b"", -1
    for index, frame in enumerate(kept):
        whole = merged if index == MERGED else None
        number = number + 1 if whole is None else whole.last
        if number:
            yield number, opened(key, _name(number if whole is None else None, chain), frame)
        chain = chained(chain, frame)


def rewritten(
    key: bytes, kept: Callable[[], Iterator[bytes]], merged: Merged | None, last: int,
    make: Callable[[Iterator[Epoch]], Epoch],
) -> Iterator[tuple[bytes, int]]:  # fmt: skip
    """Frames as they are, with the epochs from the second on up to one as a single one.

    Args:
        kept: Gives them as they are, each time it is called.
        merged: What is known of the epochs that are merged already.
        last: The last that is to be merged.
        make: Makes it of the epochs from the first on.

    Returns:
        The frames, each with the number of its (last) epoch.

    Raises:
        SourceError: An epoch is damaged.
    """
    reading, before, chain = _contents(key, kept(), merged), kept(), b""
    positions: list[Positions] = []

    def first() -> Iterator[Epoch]:
        for number, content in reading:
            epoch, then = _epoch(content)
            positions[:] = [then]
            yield epoch
            if number == last:
                return

    for number in range(MERGED):
        frame = next(before)
        chain = chained(chain, frame)
        yield frame, number
    frame = sealed_epoch(key, last, chain, make(first()), *positions)
    chain = chained(chain, frame)
    yield frame, last
    for number, content in reading:
        frame = sealed(key, _name(number, chain), content)
        chain = chained(chain, frame)
        yield frame, number


def _name(number: int | None, chain: bytes) -> str:
    return f"merged epochs {chain.hex()}" if number is None else f"epoch {number} {chain.hex()}"


def _bytes(file: int, place: int, size: int) -> bytes:
    result = bytearray()
    while len(result) < size and (some := os.pread(file, size - len(result), place + len(result))):
        result += some
    return bytes(result)
