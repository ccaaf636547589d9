"""`wpinq check INPUT`: what is wrong with a file, for its curator."""

from __future__ import annotations

import json as json_format
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wpinq.apps.cli import arguments
from wpinq.apps.cli.inputs import Input
from wpinq.apps.cli.lines import one_line, printable
from wpinq.sources.form import parse_columns

if TYPE_CHECKING:
    from wpinq.sources.report import Problem, Report

WARNING = "For the curator only: this shows records' positions and counts."


@arguments.over(arguments.records)
def check(data: Input, *, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show every row and field that would be left out in silence: exit code 1 if there are any, 2 if unreadable.

    With --unit or --where it tells, exactly, how many records a bound keeps, and with --through how many have no owner:
    whoever sees that sees no noisy answer.
    """
    from wpinq.core import contributions
    from wpinq.sources.check import check as check_source

    report = check_source(data.source, parse_columns(data.columns), **data.words)
    bounded = bool(data.unit or data.where or data.derive)
    if bounded:
        data.insist_on_a_number()
    bounds = contributions(data.limitless()._node, data.paired()) if bounded else None
    lost = data.without_owner()
    if json:
        extra = ({"unit": asdict(bounds)} if bounds else {}) | ({"without owner": lost[1]} if lost else {})
        typer.echo(json_format.dumps(_as_json(report) | extra, indent=2))
    else:
        _print(report)
        typer.echo(bounds.text if bounds else "", nl=bounds is not None)
        if lost:
            typer.echo(f"Of {lost[0]:,} records {lost[1]:,} have no owner by --through, and are left out.")
    raise typer.Exit(0 if report.clean else 1)


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "note": WARNING,
        "name": report.name,
        "columns": {column.name: column.kind.value for column in report.schema},
        "left out": dict(report.schema.left_out),
        "bytes": report.size,
        "rows": report.rows,
        "dropped": report.dropped,
        "counts": dict(report.counts),
        "problems": [asdict(problem) for problem in report.problems],
        "hints": report.hints,
        "looks": [
            {"column": name, "read as": look.column.kind.value, "filled": look.filled, "null": report.rows - look.filled
             + look.lost, "looks like": look.looks, "to mend": look.mend}
            for name, look in report.looks.items()
        ],
    }  # fmt: skip


def _print(report: Report) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    console.print(WARNING, highlight=False)
    size = "" if report.size is None else f", {report.size:,} bytes"
    records = f"{report.rows:,} records of {report.schema}"
    console.print(Text(one_line(f"{report.name}{size}: {records}; {_verdict(report)}.")))
    table = Table("what is wrong", "how often", "column", "rows")
    for reason, number in report.counts.items():
        shown = [problem for problem in report.problems if problem.reason == reason]
        for column in dict.fromkeys(problem.column for problem in shown):
            rows = ", ".join(_position(problem) for problem in shown if problem.column == column)
            more = ", ..." if number > len(shown) else ""
            table.add_row(reason, f"{number:,}", Text(printable(column or "")), Text(printable(rows + more)))
    if report.counts:
        console.print(table)
    if report.looks and report.rows:
        table = Table("column", "read as", "null", "looks like", "to read it so")
        for name, look in report.looks.items():
            null = f"{report.rows - look.filled + look.lost:,}"
            table.add_row(Text(printable(name)), look.column.kind.value, null, look.looks, Text(printable(look.mend)))
        console.print(table)
    for hint in report.hints:
        console.print(Text(one_line(f"{hint}.")), soft_wrap=True)


def _verdict(report: Report) -> str:
    """What is wrong in all, as a clause."""
    if report.counts or report.missing:
        return f"{report.dropped:,} rows dropped"
    number = len(report.schema.left_out)
    if number > 1:
        return f"{number:,} columns are left out"
    return "a column is left out" if number else "nothing is wrong"


def _position(problem: Problem) -> str:
    return f"{problem.file}:{problem.row}" if problem.file else str(problem.row)
