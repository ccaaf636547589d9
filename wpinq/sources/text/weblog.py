"""Logs of web servers, in the common and the combined format, or in one that is declared (`logformat.py`).

    host identity user [10/Oct/2000:13:55:36 -0700] "GET /page HTTP/1.0" 200 2326 "referrer" "agent"

The columns are public and always the same. A line of another form is dropped, by itself and uncounted; a `-`, and what
is not of its column's type, is null. Quoted fields stay as the server escaped them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from wpinq.core.records import text as convert
from wpinq.core.records.schema import Column, Kind, Schema, in_columns
from wpinq.errors import SourceError
from wpinq.sources.files import Files
from wpinq.sources.form import Columns, chosen
from wpinq.sources.text.csv import TextReader
from wpinq.sources.text.grammar import Block, as_lines
from wpinq.sources.text.json import objects_of
from wpinq.sources.text.logformat import QUOTED, LogFormat
from wpinq.sources.text.servers import named

KINDS = {
    "host": Kind.TEXT, "identity": Kind.TEXT, "user": Kind.TEXT, "time": Kind.INSTANT, "method": Kind.TEXT,
    "page": Kind.TEXT, "protocol": Kind.TEXT, "status": Kind.INT, "size": Kind.INT, "referrer": Kind.TEXT,
    "agent": Kind.TEXT,
}  # fmt: skip
LINE = (
    r"^(?P<host>\S+) (?P<identity>\S+) (?P<user>\S+) \[(?P<time>[^\]]*)\] "
    rf'"(?P<request>{QUOTED})" (?P<status>[0-9]{{3}}|-) (?P<size>[0-9]+|-)'
    rf'(?: "(?P<referrer>{QUOTED})" "(?P<agent>{QUOTED})")?\s*$'
)
REQUEST = r"^(?P<method>[^ ]+) (?P<page>[^ ]+)(?: (?P<protocol>[^ ]+))?$"
TIME = r"^[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9]{2}:[0-9]{2}:[0-9]{2} [+-][0-9]{4}$"
EITHER = LogFormat(LINE, KINDS, {"time": "clf"}, {"time": 1})
"""What a log is read as, unless its format is declared: the common or the combined one."""
SCHEMA = Schema(tuple(Column(name, kind) for name, kind in KINDS.items()))
"""The columns of a web log."""


@dataclass(frozen=True, slots=True)
class WebLogReader(TextReader):
    """Lines of web logs.

    Attributes:
        form: What a line is made of.
    """

    form: LogFormat = EITHER

    @property
    def way(self) -> tuple[object, ...]:
        """The way of lines, and their format where it is declared."""
        return (*super(WebLogReader, self).way, *(() if self.form is EITHER else self.form.identity))

    def frames(self, block: Block, schema: Schema) -> Iterator[pl.DataFrame]:
        """The records of a block of whole lines."""
        frame = parse(convert.series(convert.valid_text(as_lines(block)), "line"), self.form)
        if frame.height:
            yield in_columns([_declared(frame[column.name], self.form.kinds[column.name], column) for column in schema])


def open_weblog(source: Files, columns: Columns, declared: str | None = None) -> WebLogReader:
    """Open web logs.

    Args:
        source: The files.
        columns: As for `open_source`; fields that are texts may be declared as other types.
        declared: The name or the string of their format.

    Raises:
        SourceError: A column is declared that there is not, or of another type, or the format is none.
    """
    form = EITHER if declared is None else named(declared)
    schema = chosen(form.kinds, columns, source.given)
    for column in schema:
        kind = form.kinds[column.name]
        if column.kind is not kind and kind is not Kind.TEXT:
            raise SourceError(
                f"{source.given}: the column {column.name!r} of web logs is a {kind.value}; leave its type out."
            )
    origins = (0,) * len(source.files)
    return WebLogReader(source, schema, tuple(form.kinds), origins, " ", form=form)


def parse(lines: pl.Series, form: LogFormat = EITHER) -> pl.DataFrame:
    """The records of lines of text; a line that is null or of another form is none.

    >>> line = 'h - ann [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 -'
    >>> parse(pl.Series([line, "nonsense"])).select("user", "page", "size").rows()
    [('ann', '/a', None)]
    """
    fields, _ = cut(lines, form)
    if "request" in fields.columns:
        fields = fields.with_columns(pl.col("request").str.extract_groups(REQUEST)).unnest("request")
    written = pl.col(pl.String)
    empty = ["-", ""] if form.paths else ["-"]
    fields = fields.with_columns(pl.when(~written.is_in(empty)).then(written))
    return fields.select(_typed(name, kind, form) for name, kind in form.kinds.items())


def cut(lines: pl.Series, form: LogFormat) -> tuple[pl.DataFrame, pl.Series]:
    """The fields of the lines that are of a form, as they are written, and the mask of these lines."""
    line = pl.col("line")
    if not form.paths:
        fields = lines.alias("line").to_frame().select(line.str.extract_groups(form.pattern)).unnest("line")
        mask = fields.to_series(0).is_not_null()
        return fields.filter(mask), mask
    text, mask = objects_of(lines)
    path, pattern = form.only
    found = text.alias("line").to_frame().select(
        line.str.json_path_match(path).str.contains(pattern).fill_null(value=False).alias("\0only"),
        *(line.str.json_path_match(where).alias(name) for name, where in form.paths.items()),
    )  # fmt: skip
    only = found.drop_in_place("\0only")
    return found.filter(only), mask.scatter(mask.arg_true().filter(only.not_()), False)


def _typed(name: str, kind: Kind, form: LogFormat) -> pl.Expr:
    """A field as a value of its kind."""
    field, clock = pl.col(name), form.clocks.get(name)
    if clock == "clf":
        known = pl.when(field.str.contains(TIME)).then(field)
        return known.str.to_datetime("%d/%b/%Y:%H:%M:%S %z", time_unit="us", time_zone="UTC", strict=False).alias(name)
    if clock == "tab":
        return convert.parsed(field.str.replace("\t", "T", literal=True) + "Z", Kind.INSTANT).alias(name)
    if clock in ("epoch", "either"):
        counted = _since_1970(field, form.scale[name]).alias(name)
        return counted if clock == "epoch" else pl.coalesce(counted, convert.parsed(field, kind))
    if kind is Kind.TEXT:
        return field
    if kind is Kind.INSTANT:
        return convert.parsed(field, kind).alias(name)
    return field.cast(pl.Int64 if kind is Kind.INT else pl.Float64, strict=False)


def _since_1970(field: pl.Expr, scale: int) -> pl.Expr:
    """An instant from what was counted since 1970, whole or as a decimal; without floats, so no digit is lost."""
    digits = 11 + len(str(scale))  # more would not fit 64 bits
    whole = field.str.extract(rf"^([0-9]{{1,{digits}}})(?:\.[0-9]*)?$").cast(pl.Int64, strict=False) * (
        1_000_000 // scale
    )
    rest = field.str.extract(r"\.([0-9]{1,6})").fill_null("0").str.pad_end(6, "0").cast(pl.Int64) // scale
    return (whole + rest).cast(pl.Datetime("us", "UTC"))


def _declared(field: pl.Series, native: Kind, column: Column) -> pl.Series:
    return field if column.kind is native else convert.parse_column(field, column.kind)
