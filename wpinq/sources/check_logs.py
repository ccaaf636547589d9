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
from wpinq.sources.text.weblog import EITHER, WebLogReader

if TYPE_CHECKING:
    import numpy as np

VHOST = compiled("vhost_combined").pattern


def check_log(reader: WebLogReader, block: Block, first: int, file: str | None, report: Report) -> None:
    """Check lines of a web log; a field that is present but null once it is read is a problem."""
    lines = convert.valid_text(as_lines(block), "line")
    written = lines.str.extract_groups(reader.form.pattern).struct.unnest()
    good = written.to_series(0).is_not_null()
    if reader.form is EITHER:
        others = lines.filter(~good)
        report.fits["--format vhost_combined"] += int(others.str.contains(VHOST).sum())
        report.fits["--format json, with --columns"] += int(others.str.contains(r"^\s*\{.*\}\s*$").sum())
    written, numbers = written.filter(good), _unless_blank(lines, good, first, FORM, file=file, report=report)
    for frame in reader.frames(block, report.schema):
        report.rows += frame.height
        records = canonical.frame(frame, report.schema)
        for name in report.schema.names:
            field = "request" if name == "page" and "request" in written.columns else name
            if field in written.columns:
                _check_field(records[name], written[field] != "-", numbers, file, report)


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
        _check_field(records[name], written[name].is_not_null(), numbers, file, report)


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
    read: pl.Series, present: pl.Series, numbers: np.ndarray[Any, Any], file: str | None, report: Report
) -> None:
    odd = (read.is_null() & present.fill_null(value=False)).to_numpy()
    report.add(TYPE, numbers[odd], int(odd.sum()), column=read.name, file=file)
