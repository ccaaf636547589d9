"""Check the lines of logs, of web servers and of JSON: a part of `check.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.core.records import canonical
from wpinq.core.records import text as convert
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.sources.report import FORM, FORM_JSON, TYPE, Report
from wpinq.sources.text.json import objects
from wpinq.sources.text.json import values as values_of
from wpinq.sources.text.lines import Block, as_lines
from wpinq.sources.text.logformat import compiled
from wpinq.sources.text.servers import FORMATS
from wpinq.sources.text.weblog import EITHER, WebLogReader, cut

if TYPE_CHECKING:
    import numpy as np

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
    text, good = objects(as_lines(block))
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
