"""Text files of whitespace-separated fields, such as published graphs: no header, no quotes, `#` comments."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from wpinq.core.records.schema import Kind
from wpinq.sources.files import Files
from wpinq.sources.form import PAIR, Columns, named
from wpinq.sources.text.csv import TextReader
from wpinq.sources.text.grammar import Block, as_block, as_lines, without_returns

if TYPE_CHECKING:
    import pyarrow as pa

BLANKS = bytes.maketrans(b"\t\v\f", b"   ")


def open_pairs(source: Files, columns: Columns) -> TextReader:
    """Open whitespace-separated files; the columns are called user and page unless they are declared."""
    schema = named(columns, Kind.TEXT, PAIR, source.given)
    origins = (0,) * len(source.files)
    return TextReader(source, schema, schema.names, origins, " ", quotes=False, prepare=tidy)


def tidy(block: Block) -> Block:
    r"""Leave one blank between two fields and none elsewhere, and leave comment lines out.

    >>> tidy(b"# a graph\n 1\t 2 \n3 4\n")
    b'1 2\n3 4\n'
    """
    import pyarrow.compute as pc

    block = single_blanks(block)
    if b"#" not in block:
        return block
    lines = as_lines(block)
    return cast("bytes", as_block(lines.filter(pc.invert(is_comment(lines)))).to_pybytes())


def single_blanks(block: Block) -> Block:
    """Leave one blank between two fields and none elsewhere; the lines stay as many as they are."""
    import numpy as np

    block = without_returns(block).translate(BLANKS)
    if b"  " in block or b" \n" in block or b"\n " in block or block.startswith(b" "):
        data = np.frombuffer(block, np.uint8)
        after = np.append(data[1:], 10)
        data = data[(data != 32) | ((after != 32) & (after != 10))]
        before = np.append(10, data[:-1])
        block = data[(data != 32) | (before != 10)].tobytes()
    return block


def is_comment(lines: pa.Array) -> pa.Array:
    """Which lines begin with `#`."""
    import pyarrow.compute as pc

    return pc.starts_with(lines, "#")
