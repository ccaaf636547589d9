"""The grammar of text files: whole lines, in blocks, and rows and fields, line by line.

No line changes how another one is read. A line ends at a line feed and belongs to the share in which its first byte
lies; the lines do not depend on where blocks and shares are cut.

- A row is one physical line, ended by LF, CRLF or the end of the file. Blank lines are no rows.
- A field is bare or quoted. A quoted field begins and ends with `"`, and holds `""` for one; a bare one holds none.
- A line is ill-formed if its quotes are not so, if it holds a carriage return anywhere else, or is longer than 64 MiB.
- A line is ragged if it has another number of fields than the columns.
- NUL is a byte like any other.

Ill-formed and ragged lines are no records. A quoted field cannot hold a line break: with one, a single lost quote
would change how all later lines are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from wpinq.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa


Block: TypeAlias = bytes | bytearray
"""Whole lines; immutable."""
BLOCK = 1 << 22  # bytes read at a time, no more than LONGEST
LONGEST = 1 << 26  # a longer line is ill-formed, so that no line can fill the memory
TOO_LONG = b"\r \n"  # an ill-formed line that stands for a longer one
END = 1 << 63


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


def without_returns(block: Block) -> Block:
    """The block with every CRLF as LF."""
    return block.replace(b"\r\n", b"\n") if b"\r" in block else block


def has_return(lines: pa.Array) -> pa.Array:
    """Which lines hold a carriage return that ends no line."""
    import pyarrow.compute as pc

    return pc.match_substring(lines, "\r")


def has_quote(lines: pa.Array) -> pa.Array:
    """Which lines hold a quote."""
    import pyarrow.compute as pc

    return pc.match_substring(lines, '"')


def well_quoted(lines: pa.Array, delimiter: str) -> pa.Array:
    """Which lines are made of bare and quoted fields."""
    import pyarrow.compute as pc

    mark = f"\\x{ord(delimiter):02x}"
    field = f'(?:[^"{mark}\\n]*|"(?:[^"]|"")*")'
    return pc.match_substring_regex(lines, rf"\A{field}(?:{mark}{field})*\n\z")


def width(lines: pa.Array, delimiter: str, *, quotes: bool) -> pa.Array:
    """The number of fields of each line."""
    import pyarrow.compute as pc

    bare = pc.replace_substring_regex(lines, '"[^"]*"', "") if quotes else lines
    return pc.add(pc.count_substring(bare, delimiter), 1)


def rows(block: Block, delimiter: str, *, quotes: bool = True) -> Iterator[tuple[pa.Buffer, bool]]:
    """The well-formed lines of a block without CRLF: those without quotes, and those with quotes."""
    import pyarrow as pa

    quoted, returns = quotes and b'"' in block, b"\r" in block
    if not quoted and not returns:
        yield pa.py_buffer(block), False
        return
    import pyarrow.compute as pc

    lines = as_lines(block)
    if returns:
        lines = lines.filter(pc.invert(has_return(lines)))
    if quoted:
        mask = has_quote(lines)
        candidates = lines.filter(mask)
        yield as_block(candidates.filter(well_quoted(candidates, delimiter))), True
        lines = lines.filter(pc.invert(mask))
    yield as_block(lines), False


def fields(buffer: pa.Buffer, delimiter: str, number: int, take: Sequence[int], *, quotes: bool) -> pa.Table:
    """Split well-formed lines into fields, as bytes, and leave ragged lines out.

    Args:
        buffer: Lines, each with its line feed.
        delimiter: One byte between fields.
        number: How many fields a row has.
        take: The positions of the wanted fields.
        quotes: Whether there are quoted fields.
    """
    import pyarrow as pa

    try:
        return _split(buffer, delimiter, number, take, quotes=quotes)
    except pa.ArrowInvalid:  # some line is ragged; pyarrow's handler of such lines fails on invalid UTF-8
        import pyarrow.compute as pc

        lines = as_lines(buffer.to_pybytes())
        whole = pc.equal(width(lines, delimiter, quotes=quotes), number)
    try:
        return _split(as_block(lines.filter(whole)), delimiter, number, take, quotes=quotes)
    except pa.ArrowInvalid:
        raise InternalError("sources: rows of the right width could not be split into fields.") from None


def _split(buffer: Any, delimiter: str, number: int, take: Sequence[int], *, quotes: bool) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    names = [str(position) for position in range(number)]
    picked = [names[position] for position in take]
    if not buffer.size:
        return pa.table({name: pa.array([], pa.binary()) for name in picked})
    if buffer[0] == 0xEF:  # pyarrow drops a byte order mark, and a line in the middle of a file has none
        buffer = pa.py_buffer(b"\n" + buffer.to_pybytes())
    return csv.read_csv(
        pa.BufferReader(buffer),
        csv.ReadOptions(column_names=names, block_size=buffer.size + 1, use_threads=False),
        csv.ParseOptions(delimiter=delimiter, quote_char='"' if quotes else False, newlines_in_values=False),
        csv.ConvertOptions(
            include_columns=picked, column_types=dict.fromkeys(picked, pa.binary()), strings_can_be_null=False
        ),
    )
