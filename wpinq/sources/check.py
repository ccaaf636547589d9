"""Check a source row by row; for its curator only, because the report shows positions and counts of records.

The lines of logs, of web servers and of JSON, are checked one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from wpinq.core.records import canonical
from wpinq.core.records import kinds as objects
from wpinq.core.records import text as convert
from wpinq.core.records.reader import Reader
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.errors import SourceError
from wpinq.sources import open_source
from wpinq.sources.databases.duckdb import DuckDbReader
from wpinq.sources.files import reading
from wpinq.sources.form import PAIR, Columns, Words, named
from wpinq.sources.report import FORM, FORM_JSON, LOST, NUL, QUOTING, RAGGED, RETURN, TYPE, UTF8, Report
from wpinq.sources.tables.arrays import public_kind
from wpinq.sources.tables.arrow import TableReader, column_of
from wpinq.sources.tables.hive import HiveReader, in_path
from wpinq.sources.tables.ipc import ArrowReader
from wpinq.sources.tables.parquet import ParquetReader
from wpinq.sources.tables.tuples import proper
from wpinq.sources.text import grammar
from wpinq.sources.text.csv import UTF16, TextReader
from wpinq.sources.text.grammar import Block, as_block, as_lines
from wpinq.sources.text.json import JsonReader
from wpinq.sources.text.json import objects as json_objects
from wpinq.sources.text.json import values as values_of
from wpinq.sources.text.logformat import compiled
from wpinq.sources.text.servers import FORMATS
from wpinq.sources.text.weblog import EITHER, WebLogReader, cut
from wpinq.sources.text.whitespace import is_comment, single_blanks
from wpinq.sources.zoned import Zoned

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


def check(source: object, columns: Columns = None, limit: int = 20, **words: Unpack[Words]) -> Report:
    """Read a whole source and report every row and field that `protect` would leave out without a message.

    Args:
        source: As for `open_source`.
        columns: As for `open_source`.
        limit: How many problems of each reason to list; all are counted.
        words: As for `open_source`.

    Raises:
        SourceError: The source cannot be read at all, or is a database, which knows its own types.
    """
    if isinstance(source, Iterable) and not _has_reader(source):
        return _check_tuples(source, columns, limit)
    reader = open_source(source, columns=columns, **words)
    if isinstance(reader, Zoned):
        reader = reader.reader
    report = Report(reader.name, reader.schema, reader.total_bytes, limit)
    report.named = frozenset(columns or ())
    if isinstance(reader, TextReader):
        for file, first, block in _numbered(reader, report):
            if isinstance(reader, WebLogReader):
                check_log(reader, block, first, file, report)
            elif isinstance(reader, JsonReader):
                check_json(block, first, file, report)
            elif type(reader) is TextReader:
                _check_block(reader, block, first, file, report)
            else:
                raise _unknown(reader)
    elif isinstance(reader, (ParquetReader, ArrowReader, DuckDbReader)):
        _check_batches(reader, report)
    elif isinstance(reader, HiveReader):
        _check_hive(reader, report)
    elif isinstance(reader, TableReader):
        _check_cells(reader.raw(reader.schema), report)
    else:
        raise _unknown(reader)
    return report


def _unknown(reader: Reader) -> SourceError:
    return SourceError(
        f"{reader.name}: {type(reader).__name__} cannot be checked; files, DuckDB tables and tables in memory can. "
        "If it is a database, ask the database itself what does not fit its types."
    )


def _check_batches(reader: ParquetReader | ArrowReader | DuckDbReader, report: Report) -> None:
    names = reader.schema.names
    _check_cells(({name: batch.column(name) for name in names} for batch in reader.raw(reader.schema)), report)


def _check_hive(reader: HiveReader, report: Report) -> None:
    """Check the files, and then the values in their paths."""
    for inner, values, file in zip(reader.inner, reader.values, reader.source.files, strict=True):
        assert isinstance(inner, (ParquetReader, ArrowReader))  # noqa: S101  `open_tables` makes no other
        inside = Report(report.name, inner.schema.select([n for n in inner.schema.names if n in report.schema]), None,
                        report.limit)  # fmt: skip
        _check_cells(({n: batch.column(n) for n in inside.schema.names} for batch in inner.raw(inside.schema)), inside)
        report.rows += inside.rows
        for reason, number in inside.counts.items():
            rows = [problem.row for problem in inside.problems if problem.reason == reason]
            report.add(reason, rows, number, file=file.given)
        for name, value in values.items():
            if name in report.schema and value is not None and in_path(report.schema[name], value).has_nulls():
                report.add(TYPE, [1], inside.rows, column=name, file=file.given)


def _has_reader(source: object) -> bool:
    return isinstance(source, str) or hasattr(source, "__arrow_c_stream__") or hasattr(source, "collect_batches")


def _numbered(reader: TextReader, report: Report) -> Iterator[tuple[str | None, int, Block]]:
    """Blocks of whole lines with their file, if there are several, and the number of their first line."""
    for index, (file, origin) in enumerate(zip(reader.source.files, reader.origins, strict=True)):
        with reading(file.given), file.opened() as (stream, _):
            line = stream.read(origin).count(b"\n") + 1
            stream.seek(0)
            report.wide += [file.given] if stream.read(2) in UTF16 else []
        for block in reader.file_blocks(index):
            yield (file.given if len(reader.source.files) > 1 else None), line, block
            line += block.count(b"\n")


def _check_block(reader: TextReader, block: Block, first: int, file: str | None, report: Report) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    pairs = not reader.quotes
    lines = as_lines(single_blanks(block) if pairs else grammar.without_returns(block))
    numbers = pa.array(np.arange(first, first + len(lines)))
    rows = pc.greater(pc.binary_length(lines), 1)
    keep = pc.and_not(rows, is_comment(lines)) if pairs else rows
    quoted = grammar.has_quote(lines) if reader.quotes else pc.equal(numbers, 0)
    bare_width = pc.not_equal(grammar.width(lines, reader.delimiter, quotes=reader.quotes), len(reader.fields))
    tests = [(RETURN, grammar.has_return(lines))]
    if reader.quotes:
        tests.append((QUOTING, pc.and_not(quoted, grammar.well_quoted(lines, reader.delimiter))))
    for reason, wrong in [*tests, (RAGGED, bare_width)]:
        result = numbers.filter(pc.and_(keep, wrong)).to_numpy()
        report.add(reason, result, len(result), file=file)
        keep = pc.and_not(keep, wrong)
    for quotes, mask in ((False, pc.and_not(keep, quoted)), (True, pc.and_(keep, quoted))):
        result = numbers.filter(mask).to_numpy()
        _check_rows(reader, as_block(lines.filter(mask)), result, report, quotes=quotes, file=file)


def _check_rows(
    reader: TextReader,
    rows: pa.Buffer,
    numbers: np.ndarray[Any, Any],
    report: Report,
    *,
    quotes: bool,
    file: str | None,
) -> None:
    """Check the fields of rows that are right as such."""
    import pyarrow.compute as pc

    take = [reader.fields.index(column.name) for column in reader.schema]
    table = grammar.fields(rows, reader.delimiter, len(reader.fields), take, quotes=quotes)
    report.rows += len(numbers)
    for column, cells in zip(reader.schema, table.columns, strict=True):
        valid = pc.match_substring_regex(cells, convert.UTF8).to_numpy()
        if column.kind is Kind.BYTES:
            valid[:] = True
        values = canonical.column(reader.value(cells, column), column.kind)
        read = ~values.is_null().to_numpy()
        some = pc.greater(pc.binary_length(cells), 0).to_numpy()
        if column.kind is not Kind.BYTES:
            report.see(column.name, convert.valid_text(cells).filter(pl.Series(some)), values.filter(pl.Series(some)))
        nul = pc.match_substring(cells, "\0").to_numpy() & (column.kind is not Kind.BYTES)
        for reason, wrong in ((UTF8, ~valid), (NUL, nul), (TYPE, valid & some & ~read)):
            report.add(reason, numbers[wrong], int(wrong.sum()), column=column.name, file=file)


def _check_cells(parts: Iterable[dict[str, Any]], report: Report) -> None:
    """Check columns of typed cells; a cell that is present but null once it is read is a problem."""
    import numpy as np

    for cells in parts:
        height = 0
        for column in report.schema:
            array = cells[column.name]
            is_list = isinstance(array, list)
            present = np.array([v is not None for v in array]) if is_list else np.asarray(array.is_valid())
            held = canonical.column(column_of(array, column), column.kind)
            wrong = present.astype(bool) & held.is_null().to_numpy()
            height = len(wrong)
            rows = report.rows + 1 + np.flatnonzero(wrong)
            report.add(_reason(array, column), rows, len(rows), column=column.name)
        report.rows += height


def _reason(array: Any, column: Column) -> str:
    if column.kind is Kind.ANY:
        return LOST
    native = None if isinstance(array, list) else public_kind(array.type)
    return UTF8 if native is Kind.TEXT and column.kind is Kind.TEXT else TYPE


def _check_tuples(source: Iterable[Any], columns: Columns, limit: int) -> Report:
    if isinstance(source, (bytes, bytearray, dict)):
        raise SourceError(f"{type(source).__name__} is not a source of records; pass tuples.")
    schema = named(columns, Kind.ANY, PAIR, "the records")
    report = Report("records", schema, None, limit)
    for row, record in enumerate(source, 1):
        rows_read = list(proper([record], schema.names))
        if not rows_read:
            report.add(RAGGED, [row], 1)
            continue
        report.rows += 1
        for column, value in zip(schema, rows_read[0], strict=True):
            if value is not None and objects.cell(value, column.kind) is None:
                report.add(LOST if column.kind is Kind.ANY else TYPE, [row], 1, column=column.name)
    return report


OTHERS = {"vhost_combined": compiled("vhost_combined"), **FORMATS}
"""What lines may be of that are not of the common format, for the curator."""


def check_log(reader: WebLogReader, block: Block, first: int, file: str | None, report: Report) -> None:
    """Check lines of a web log; a field that is present but null once it is read is a problem."""
    lines = convert.valid_text(as_lines(block), "line")
    written, good = cut(lines, reader.form)
    if reader.form is EITHER:
        others = lines.filter(~good)
        for name, form in OTHERS.items():
            report.fits[f"--format {name}"] += cut(others, form)[0].height
        report.fits["--format json, with --columns"] += int(others.str.contains(r"^\s*\{.*\}\s*$").sum())
    if comments := reader.form.comments:
        lines = lines.set(lines.str.starts_with(comments).fill_null(value=False), "")
    numbers = _unless_blank(lines, good, first, FORM, file=file, report=report)
    for frame in reader.frames(block, report.schema):
        report.rows += frame.height
        records = canonical.frame(frame, report.schema)
        for name in report.schema.names:
            field = "request" if name == "page" and "request" in written.columns else name
            if field in written.columns:
                _check_field(records[name], _filled(written[field], reader), numbers, file, report)


def _filled(written: pl.Series, reader: WebLogReader) -> pl.Series:
    """The fields that hold something: what is not there is written as `-`, in JSON as an empty text too."""
    return written.set(written.is_in(["-", ""] if reader.form.paths else ["-"]).fill_null(value=False), None)


def check_json(block: Block, first: int, file: str | None, report: Report) -> None:
    """Check lines of JSON; a key that is there but null once it is read is a problem."""
    text, good = json_objects(as_lines(block))
    numbers = _unless_blank(
        convert.valid_text(as_lines(block), "line"), good, first, FORM_JSON, file=file, report=report
    )
    report.rows += len(text)
    written = values_of(text, Schema(tuple(Column(name, Kind.TEXT) for name in report.schema.names)))
    records = canonical.frame(values_of(text, report.schema), report.schema)
    for name in report.schema.names:
        _check_field(records[name], written[name], numbers, file, report)


def _unless_blank(
    lines: pl.Series, good: pl.Series, first: int, reason: str, *, file: str | None, report: Report
) -> np.ndarray[Any, Any]:
    """Report lines that are no records, unless they are blank, and give the numbers of those that are."""
    import numpy as np

    numbers, mask = np.arange(first, first + len(lines)), good.to_numpy()
    wrong = numbers[~mask & (lines.str.strip_chars() != "").fill_null(value=True).to_numpy()]
    report.add(reason, wrong, len(wrong), file=file)
    read: np.ndarray[Any, Any] = numbers[mask]
    return read


def _check_field(
    read: pl.Series, written: pl.Series, numbers: np.ndarray[Any, Any], file: str | None, report: Report
) -> None:
    there = written.is_not_null()
    report.see(read.name, written.filter(there), read.filter(there))
    odd = (read.is_null() & there).to_numpy()
    report.add(TYPE, numbers[odd], int(odd.sum()), column=read.name, file=file)
