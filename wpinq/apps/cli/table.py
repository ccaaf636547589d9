"""`wpinq table`: counts and numbers by several columns with totals, as a page, or several tables, from one charge."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wpinq.apps.cli import arguments, options
from wpinq.apps.cli.inputs import Input
from wpinq.apps.cli.outputs import check_outputs
from wpinq.errors import PlanError, SourceError
from wpinq.sources.files import text_of

if TYPE_CHECKING:
    from wpinq import Collection


@arguments.over(arguments.protected)
def table(
    data: Input,
    *,
    down: Annotated[
        str, typer.Option(help="The columns at the side of the table: age,town.", metavar="COLUMNS", show_default=False)
    ] = "",
    across: Annotated[
        str, typer.Option(help="The columns above it: sex.", metavar="COLUMNS", show_default=False)
    ] = "",
    want: Annotated[
        list[str] | None,
        typer.Option(help="Instead of --down and --across, one of several tables: its columns, age,sex. Repeat it for "
                          "others. What is measured for all of them together leaves the least error.",
                     metavar="COLUMNS", show_default=False),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show what would be measured for --want, and the error of each cell, and "
                                          "charge nothing."),
    ] = False,
    aim: Annotated[
        str | None,
        typer.Option(help="Of --want, what errs least: all cells on the average, as without it; or all tables, where "
                          "each counts the same, so that small ones err less; or max, the cell that errs most.",
                     metavar="cells|tables|max", show_default=False),
    ] = None,
    categories: Annotated[
        Path | None,
        typer.Option(help="The values that the table has, which do not depend on the records: lines of COLUMN,VALUE, "
                          'or JSON: {"sex": ["f", "m"]}. Of a column that is true or false they may be left out, '
                          "and so are then records without a value; of another one with --names-delta.",
                     metavar="FILE", show_default=False),
    ] = None,
    names_delta: Annotated[
        str | None,
        typer.Option(help="Tell the values that enough records have of columns that --categories leaves out: the delta "
                          "that they cost, beside an equal part of --epsilon for each: 1e-6.",
                     metavar="DELTA", show_default=False),
    ] = None,
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(help="A column of codes with a CSV of what is above each, such as NUTS: region=nuts.csv, of lines "
                          "of CODE,PARENT or CODE,PARENT,GRANDPARENT and so on. The table has a row of each level.",
                     metavar="COLUMN=FILE", show_default=False),
    ] = None,
    public_numbers: Annotated[
        list[str] | None,
        typer.Option("--keep", help="A count that is public and stays as it is: region=North,age=90+:0, of a column "
                                    "that is left out the total; or a CSV of columns and count. May be repeated.",
                     metavar="COLUMN=VALUE,...:COUNT", show_default=False),
    ] = None,
    sums: Annotated[
        str, typer.Option("--sum", help="Columns to sum up, beside counts; with --bounds.",
                          metavar="COLUMNS", show_default=False),
    ] = "",
    means: Annotated[
        str, typer.Option("--mean", help="Columns to average, likewise.", metavar="COLUMNS", show_default=False)
    ] = "",
    medians: Annotated[
        str, typer.Option("--median", help="Columns of which to tell the median, likewise, of all totals too.",
                          metavar="COLUMNS", show_default=False),
    ] = "",
    bounds: Annotated[
        list[str] | None,
        typer.Option(help="The least and largest number of a column, which do not depend on the records: "
                          "income=0..400000. May be repeated.",
                     metavar="COLUMN=LOW..HIGH", show_default=False),
    ] = None,
    epsilon: options.Epsilon = None,
    rho: Annotated[
        str | None,
        typer.Option(metavar="RHO", show_default=False, help="What it costs instead, with Gaussian noise."),
    ] = None,
    budget: options.Budget = None,
    other: Annotated[str, typer.Option(help="What records are counted under that have none of the values.")] = "other",
    listed: Annotated[
        bool, typer.Option("--listed", help="Leave records out that have none of the values, instead of --other.")
    ] = False,
    total: Annotated[str, typer.Option(help="What totals are called.")] = "all",
    title: Annotated[str | None, typer.Option(help="The heading.", metavar="TEXT", show_default=False)] = None,
    analyst: options.Analyst = None,
    explain: options.Explain = False,
    html: Annotated[
        Path | None, typer.Option(help="Write the table as a page here, for screens and paper.", metavar="OUT",
                                  show_default=False),
    ] = None,
    save: options.Save = None,
) -> None:  # fmt: skip
    """Count records by several columns, with all totals, in whole numbers that add up; sum up and average them, too.

    Nothing is left out because it is small: each number, also of one person or none, has the same noise, and the table
    says how far that moves it. With --unit it protects people, else one record.
    """
    import wpinq
    from wpinq.apps.cli.bins import parse_bounds
    from wpinq.apps.cli.show import explained
    from wpinq.query.crosstabs.crosstab import layout, priced

    numbers_too = (sums, means, medians, bounds, hierarchy, public_numbers, names_delta)
    _check(want, (down, across, explain, html, *numbers_too), title, plan=plan, aim=aim, save=save)
    if (epsilon is None) is (rho is None):
        raise PlanError("table: give --epsilon, what it costs, or --rho, with Gaussian noise.")
    read = {*data.files(), *([categories.resolve()] if categories else [])}
    check_outputs({"--html": (html, (".html", ".htm")), "--save": (save, options.TABLES)}, read)
    side, above, wanted = _columns(down), _columns(across), [_columns(text) for text in want or []]
    columns = list(dict.fromkeys(name for names in (side, above, *wanted) for name in names))
    terms: dict[str, Any] = {
        "categories": read_categories(categories, columns), "other": None if listed else other,
        "epsilon": options.amount(epsilon, "--epsilon"),
        "rho": options.amount(rho, "--rho"), "mechanism": "geometric" if rho is None else "gaussian",
    }  # fmt: skip
    if want:
        _several(data, wanted, terms | {"aim": aim or "cells"}, plan=plan, budget=budget, analyst=analyst, save=save)
        return
    public = [pair for entry in public_numbers or [] for pair in read_kept(entry)]
    trees = options.by_name("--hierarchy", map(read_hierarchy, hierarchy or []))
    numbers: dict[str, Any] = {"sum": _columns(sums), "mean": _columns(means), "median": _columns(medians)}
    limits = options.by_name("--bounds", map(parse_bounds, bounds or []))
    empty = layout(data.limitless(), side, above, terms["categories"], other=terms["other"], total=total,
                   numbers=numbers, bounds=limits, hierarchy=trees)  # fmt: skip
    empty.public(public)
    if empty.unlisted and names_delta is None:
        raise PlanError(f"--categories: list the values of {empty.unlisted[0]!r}, which do not depend on the records;"
                        " or give --names-delta 1e-6, to tell those that enough records have.")  # fmt: skip
    costs = {**{word: terms[word] for word in ("epsilon", "rho")}, "delta": names_delta if empty.unlisted else None}
    choice = empty.choice(costs, mechanism=terms["mechanism"])
    quotes = priced(empty, costs if choice is None else choice.rest, mechanism=terms["mechanism"])
    if explain:
        lines = [*(choice.lines if choice else []), *(str(quote.explained()) for quote in quotes)]
        price = {word: terms[word] for word in ("epsilon", "rho")}
        typer.echo(explained(lines, data, empty.records, options.amount(budget, "--budget"), **price))
        return
    records = _spending(data, terms, budget)
    counts = wpinq.table(
        records, side, above, total=total, analyst=analyst, bounds=limits, delta=costs["delta"], hierarchy=trees,
        keep=public, **numbers, **terms,
    )  # fmt: skip
    if html is not None:
        counts.html(html, title)
    if save is not None:
        counts.save(save)
    _tell([*([title, ""] if title else []), repr(counts)], records, [path for path in (html, save) if path is not None])


def _check(
    want: list[str] | None,
    others: tuple[object, ...],
    title: str | None,
    *,
    plan: bool,
    aim: str | None,
    save: Path | None,
) -> None:
    """Refuse options that do not go together.

    Raises:
        PlanError: They do not.
    """
    if (plan or aim is not None) and not want:
        raise PlanError(f"{'--plan' if plan else '--aim'}: is of several tables; name each of them: --want age,sex.")
    if title is not None and not title.isprintable():
        raise PlanError("--title: holds what cannot be printed; write it in one line of UTF-8.")
    if want and any((*others, title)):
        raise PlanError(
            "--want: is of counts, and takes no --down, --across, --explain, --html, --title, --sum, --mean, --median, "
            "--bounds, --hierarchy, --keep or --names-delta; it has --plan and --save."
        )
    if aim is not None and aim not in ("cells", "tables", "max"):
        raise PlanError(f"--aim {aim}: write cells, tables or max.")
    if plan and save is not None:
        raise PlanError("--plan: measures nothing that could be saved; leave out --save.")


def _several(
    data: Input, wanted: list[list[str]], terms: dict[str, Any], *, plan: bool, budget: str | None,
    analyst: str | None, save: Path | None,
) -> None:  # fmt: skip
    """Plan several tables, and measure them unless the plan is all that is asked."""
    import wpinq
    from wpinq.apps.cli.show import protects_line

    planned = wpinq.plan_tables(data.limitless(), wanted, **terms)
    if plan:
        typer.echo(f"{planned}\n{protects_line(planned.records._node)}")
        return
    records = _spending(data, terms, budget)
    tables = wpinq.plan_tables(records, wanted, **terms).measure(analyst=analyst)
    if save is not None:
        tables.save(save)
    _tell([repr(tables)], records, [] if save is None else [save])


def _spending(data: Input, terms: dict[str, Any], budget: str | None) -> Collection:
    """The records, protected to spend what the tables cost."""
    spender = data if terms["rho"] is None else replace(data, rho=None)
    return spender.protect_to_spend(terms["epsilon"], terms["rho"], options.amount(budget, "--budget"))


def _tell(lines: list[str], records: Collection, files: list[Path]) -> None:
    """Print an answer, whom it protects if not people, what is left of the budget, and which files were written."""
    from wpinq.apps.cli.show import ONE_RECORD, budget_line, protected, protects_line
    from wpinq.core import sources

    alone = [protects_line(records._node)] if protected(records._node) == ONE_RECORD else []
    left = budget_line(sources(records._node)[0].ledger)
    typer.echo("\n".join([*lines, *alone, left, *(f"Written: {path}" for path in files)]))


def _columns(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def read_kept(entry: str) -> list[tuple[dict[str, str], int]]:
    """Read public counts: COLUMN=VALUE,...:COUNT, or a CSV whose last column is `count`; what is empty is a total.

    Raises:
        PlanError: It is of another form.
        SourceError: The file cannot be read.

    >>> read_kept("region=North,age=90+:0"), read_kept(":1200")
    ([({'region': 'North', 'age': '90+'}, 0)], [({}, 1200)])
    """
    call = f"--keep {entry}"
    if entry.lower().endswith(".csv"):
        text = text_of(Path(entry), call)
        try:
            rows = list(csv.DictReader(io.StringIO(text, newline=None), strict=True))
        except csv.Error as error:
            raise SourceError(f"{call}: is no CSV: {error}.") from None
        pairs = [
            ({name: value for name, value in row.items() if value and name != "count"}, row.get("count"))
            for row in rows
        ]
    else:
        places, _, number = entry.rpartition(":")
        parts = [part.partition("=") for part in places.split(",") if part]
        pairs = [({name: value for name, _, value in parts}, number)]
    if any(not isinstance(number, str) or not number.isdecimal() or not number.isascii() for _, number in pairs):
        raise PlanError(f"{call}: write COLUMN=VALUE,...:COUNT, or a CSV with a column count, of whole numbers.")
    return [(where, int(number)) for where, number in pairs if isinstance(number, str)]


def read_hierarchy(entry: str) -> tuple[str, dict[str, str]]:
    """Read COLUMN=FILE: of lines of CODE,PARENT,... what is above each code.

    Raises:
        PlanError: It is not COLUMN=FILE.
        SourceError: The file cannot be read, or gives a code two parents.
    """
    column, equals, file = entry.partition("=")
    if not column or not equals or not file:
        raise PlanError("--hierarchy: write COLUMN=FILE, for example region=nuts.csv.")
    call = f"--hierarchy {file}"
    result: dict[str, str] = {}
    lines = csv.reader(io.StringIO(text_of(Path(file), call), newline=None), strict=True)
    try:
        for row in lines:
            for code, parent in pairwise(row):
                if result.setdefault(code, parent) != parent:
                    raise SourceError(f"{call}, line {lines.line_num}: a code has two parents; each has one.")
    except csv.Error as error:
        raise SourceError(f"{call}: is no CSV: {error}.") from None
    return column, result


def read_categories(path: Path | None, names: list[str]) -> dict[str, list[str]]:
    """Read the values of each column.

    Args:
        path: A JSON object of lists, or lines of COLUMN,VALUE.
        names: The columns of the table.

    Raises:
        SourceError: It cannot be read, or is of another form.
    """
    if path is None:
        return {}
    import msgspec

    call = f"--categories {path}"
    text = text_of(path, call)
    try:
        if text.lstrip().startswith("{"):
            lists = msgspec.json.decode(text, type=dict[str, list[str | int | bool]])
            if len(json.loads(text, object_pairs_hook=list)) > len(lists):
                raise SourceError(f"{call}: lists a column twice.")
            return {name: [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
                    for name, values in lists.items()}  # fmt: skip
    except (msgspec.DecodeError, RecursionError):
        raise SourceError(f'{call}: is no JSON of lists: {{"sex": ["f", "m"]}}.') from None
    result: dict[str, list[str]] = {}
    lines = csv.reader(io.StringIO(text, newline=None), strict=True)
    try:
        for row in lines:
            if row and (len(row) != 2 or row[0] not in names):
                what = "write COLUMN,VALUE" if len(row) != 2 else f"{row[0]!r} is no column of the table"
                there = f"the columns of the table are {', '.join(names)}"
                raise SourceError(f"{call}, line {lines.line_num}: {what}; {there}.")
            if row:
                result.setdefault(row[0], []).append(row[1])
    except csv.Error as error:
        raise SourceError(f"{call}, line {lines.line_num}: is no CSV: {error}.") from None
    return result
