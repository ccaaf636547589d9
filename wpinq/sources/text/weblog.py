"""Logs of web servers, in the common and the combined format.

    host identity user [10/Oct/2000:13:55:36 -0700] "GET /page HTTP/1.0" 200 2326 "referrer" "agent"

The columns are public and always the same. A line of another form is dropped, by itself and uncounted; a `-`, and what
is not of its column's type, is null. Quoted fields stay as the server escaped them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from wpinq.errors import SourceError
from wpinq.records.schema import Column, Kind, Schema
from wpinq.records.text import series, valid_text
from wpinq.sources.columns import Columns, chosen
from wpinq.sources.files import Files
from wpinq.sources.text.csv import TextReader, start_of
from wpinq.sources.text.lines import Block, as_lines

KINDS = {
    "host": Kind.TEXT, "identity": Kind.TEXT, "user": Kind.TEXT, "time": Kind.INSTANT, "method": Kind.TEXT,
    "page": Kind.TEXT, "protocol": Kind.TEXT, "status": Kind.INT, "size": Kind.INT, "referrer": Kind.TEXT,
    "agent": Kind.TEXT,
}  # fmt: skip
QUOTED = r'"((?:[^"\\]|\\.)*)"'
LINE = (
    r"^(?P<host>\S+) (?P<identity>\S+) (?P<user>\S+) \[(?P<time>[^\]]*)\] "
    rf"{QUOTED.replace('(', '(?P<request>', 1)} (?P<status>[0-9]{{3}}|-) (?P<size>[0-9]+|-)"
    rf"(?: {QUOTED.replace('(', '(?P<referrer>', 1)} {QUOTED.replace('(', '(?P<agent>', 1)})?\s*$"
)
REQUEST = r"^(?P<method>[^ ]+) (?P<page>[^ ]+)(?: (?P<protocol>[^ ]+))?$"
TIME = r"^[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9]{2}:[0-9]{2}:[0-9]{2} [+-][0-9]{4}$"


@dataclass(frozen=True, slots=True)
class WebLogReader(TextReader):
    """Lines of web logs."""

    def frames(self, block: Block, schema: Schema) -> Iterator[pl.DataFrame]:
        """The records of a block of whole lines."""
        frame = parse(series(valid_text(as_lines(block)), "line")).select(schema.names)
        if frame.height:
            yield frame


def open_weblog(found: Files, columns: Columns) -> WebLogReader:
    """Open web logs.

    Raises:
        SourceError: A column is declared that there is not, or of another type.
    """
    schema = chosen(KINDS, columns, found.given)
    for column in schema:
        if column.kind is not KINDS[column.name]:
            kind = KINDS[column.name].value
            raise SourceError(f"{found.given}: the column {column.name!r} of web logs is a {kind}; leave its type out.")
    origins = tuple(start_of(file) for file in found.files)
    return WebLogReader(found, schema, tuple(KINDS), origins, " ")


SCHEMA = Schema(tuple(Column(name, kind) for name, kind in KINDS.items()))
"""The columns of a web log."""


def parse(lines: pl.Series) -> pl.DataFrame:
    """The records of lines of text; a line that is null or of another form is none.

    >>> line = 'h - ann [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 -'
    >>> parse(pl.Series([line, "nonsense"])).select("user", "page", "size").rows()
    [('ann', '/a', None)]
    """
    fields = lines.alias("line").to_frame().select(pl.col("line").str.extract_groups(LINE)).unnest("line")
    fields = fields.filter(pl.col("host").is_not_null())
    fields = fields.with_columns(pl.col("request").str.extract_groups(REQUEST)).unnest("request")
    written = pl.col(pl.String)
    fields = fields.with_columns(pl.when(written != "-").then(written))
    time = pl.when(pl.col("time").str.contains(TIME)).then(pl.col("time"))
    return fields.select(
        *(pl.col(name) for name in ("host", "identity", "user")),
        time.str.to_datetime("%d/%b/%Y:%H:%M:%S %z", time_unit="us", time_zone="UTC", strict=False).alias("time"),
        *(pl.col(name) for name in ("method", "page", "protocol")),
        *(pl.col(name).cast(pl.Int64, strict=False) for name in ("status", "size")),
        *(pl.col(name) for name in ("referrer", "agent")),
    )
