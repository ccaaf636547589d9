r"""The grammar of text files: rows and fields, line by line.

- A row is one physical line, ended by LF, CRLF or the end of the file. Blank lines are no rows.
- A field is bare or quoted. A quoted field begins and ends with `"`, and holds `""` for one; a bare one holds none.
- A line is ill-formed if its quotes are not so, if it holds a carriage return anywhere else, or is longer than 64 MiB.
- A line is ragged if it has another number of fields than the columns.
- NUL is a byte like any other.

Ill-formed and ragged lines are no records. A quoted field cannot hold a line break: with one, a single lost quote
would change how all later lines are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wpinq.errors import InternalError
from wpinq.sources.text.lines import Block, as_block, as_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa


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
