"""`wpinq check INPUT`: what is wrong with a file, for its curator."""

from __future__ import annotations

import json as json_format
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wpinq.apps.cli import arguments
from wpinq.apps.cli.inputs import Input
from wpinq.sources.columns import parse_columns

if TYPE_CHECKING:
    from wpinq.sources.report import Problem, Report

WARNING = "For the curator only: this shows records' positions and counts."


@arguments.over(arguments.records)
def check(
    place: Input,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show every row and field that would be left out in silence: exit code 1 if there are any, 2 if unreadable.

    With --unit or --where it tells, exactly, how many records a bound keeps, and with --through how many have no owner:
    whoever sees that sees no noisy answer.
    """
    from wpinq.core import contributions
    from wpinq.sources.check import check as check_source

    report = check_source(place.source, parse_columns(place.columns), **place.words)
    bounded = bool(place.unit or place.where or place.derive)
    if bounded:
        place.insist_on_a_number()
    kept = contributions(place.limitless()._node, place.paired()) if bounded else None
    lost = place.without_owner()
    if json:
        told = ({"unit": asdict(kept)} if kept else {}) | ({"without owner": lost[1]} if lost else {})
        typer.echo(json_format.dumps(_as_json(report) | told, indent=2))
    else:
        _print(report)
        typer.echo(kept.text if kept else "", nl=kept is not None)
        if lost:
            typer.echo(f"Of {lost[0]:,} records {lost[1]:,} have no owner by --through, and are left out.")
    raise typer.Exit(0 if report.clean else 1)


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "note": WARNING,
        "name": report.name,
        "columns": {column.name: column.kind.value for column in report.schema},
        "bytes": report.size,
        "rows": report.rows,
        "dropped": report.dropped,
        "counts": dict(report.counts),
        "problems": [asdict(problem) for problem in report.problems],
        "hints": report.hints,
        "looks": [
            {"column": name, "read as": one.column.kind.value, "filled": one.filled, "null": report.rows - one.filled
             + one.lost, "looks like": one.looks, "to mend": one.mend}
            for name, one in report.looks.items()
        ],
    }  # fmt: skip


def _print(report: Report) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    console.print(WARNING, highlight=False)
    size = "" if report.size is None else f", {report.size:,} bytes"
    what = f"{report.dropped:,} rows dropped" if report.counts or report.missing else "nothing is wrong"
    console.print(Text(f"{report.name}{size}: {report.rows:,} records of {report.schema}; {what}."))
    table = Table("what is wrong", "how often", "column", "rows")
    for reason, number in report.counts.items():
        shown = [problem for problem in report.problems if problem.reason == reason]
        for column in dict.fromkeys(problem.column for problem in shown):
            rows = ", ".join(_place(problem) for problem in shown if problem.column == column)
            more = ", ..." if number > len(shown) else ""
            table.add_row(reason, f"{number:,}", Text(column or ""), Text(rows + more))
    if report.counts:
        console.print(table)
    if report.looks and report.rows:
        table = Table("column", "read as", "null", "looks like", "to read it so")
        for name, one in report.looks.items():
            null = f"{report.rows - one.filled + one.lost:,}"
            table.add_row(Text(name), one.column.kind.value, null, one.looks, Text(one.mend))
        console.print(table)
    for hint in report.hints:
        console.print(Text(f"{hint}."), soft_wrap=True)


def _place(problem: Problem) -> str:
    return f"{problem.file}:{problem.row}" if problem.file else str(problem.row)
