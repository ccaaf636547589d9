"""Messages of a topic as columns: each holds one record, or none, whatever others hold.

The value of a key of a JSON object is read as a field of a text file is; what is no record is dropped, by itself and
uncounted. Each record keeps the time of arrival of its message, where that is wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from wpinq.core.records.schema import Column, Kind, Schema, in_columns, polars_type
from wpinq.streaming.topic import log_of

if TYPE_CHECKING:
    import pyarrow as pa

    from wpinq.sources.text.logformat import LogFormat


def _json(values: pa.Array, times: pl.Series | None, schema: Schema) -> pl.DataFrame:
    """Objects, as in files of lines of JSON."""
    from wpinq.sources.text import json

    text, mask = json.objects(values)
    result = json.values(text, schema)
    return result if times is None else result.with_columns(times.filter(mask))


def _separated(delimiter: str, values: pa.Array, times: pl.Series | None, schema: Schema) -> pl.DataFrame:
    """One line each, led by its time of arrival, so that it keeps it when others are dropped."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from wpinq.core.records import text as convert
    from wpinq.sources.text import grammar
    from wpinq.sources.text.grammar import as_block

    stamps = pl.Series([None], dtype=pl.Int64).new_from_index(0, len(values)) if times is None else times.to_physical()
    lead = pa.array(stamps.cast(pl.String).fill_null("").cast(pl.Binary).to_list(), pa.large_binary())
    whole = pc.and_(pc.greater(pc.binary_length(values), 0), pc.invert(pc.match_substring(values, "\n")))
    values, lead = values.filter(whole), lead.filter(whole)
    empty, end = pa.scalar(b"", pa.large_binary()), pa.scalar(b"\n", pa.large_binary())
    lines = pc.binary_join_element_wise(lead, values, pa.scalar(delimiter.encode(), pa.large_binary()))
    block = as_block(pc.binary_join_element_wise(lines, end, empty)).to_pybytes()
    columns = (Column("\0arrived", Kind.INT), *schema)
    frames = [pl.DataFrame(schema={column.name: polars_type(column.kind) for column in columns})]
    for rows, quotes in grammar.rows(grammar.without_returns(block), delimiter):
        table = grammar.fields(rows, delimiter, len(columns), range(len(columns)), quotes=quotes)
        frames.append(in_columns([convert.from_field(*item) for item in zip(table.columns, columns, strict=True)]))
    result = pl.concat(frames)
    if times is None:
        return result
    return result.with_columns(pl.col("\0arrived").cast(times.dtype).alias(times.name))


def _log(form: LogFormat, values: pa.Array, times: pl.Series | None, schema: Schema) -> pl.DataFrame:
    from wpinq.core.records.text import valid_text
    from wpinq.sources.text.weblog import cut, parse

    lines = valid_text(values, "line")
    if times is None:
        return parse(lines, form)
    _, good = cut(lines, form)
    return parse(lines, form).with_columns(times.filter(good))


def read_as(form: str) -> Callable[[pa.Array, pl.Series | None, Schema], pl.DataFrame]:
    """What reads the messages of a form; see `kafka`.

    Raises:
        SourceError: There is no such form.
    """
    log = log_of(form)
    if log is not None:
        return partial(_log, log)
    return _json if form == "json" else partial(_separated, "," if form == "csv" else "\t")
