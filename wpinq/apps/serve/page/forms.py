"""What is typed on a page, as the API has it."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Sequence
from typing import Any

from wpinq.apps.remote.wire import ColumnTold, DataTold
from wpinq.errors import BinError, PlanError
from wpinq.sources.databases.postgres import quoted

BOOLEANS = {"true": True, "false": False}
KINDS: dict[str, str] = {"count": "COUNT(*)", "distinct": "COUNT(DISTINCT {})", "sum": "SUM({})", "avg": "AVG({})",
                         "min": "MIN({})", "max": "MAX({})", "median": "MEDIAN({})"}  # fmt: skip
"""What the form that builds a question offers."""


def lines(typed: str) -> list[str]:
    """The lines of a text that are not empty."""
    return [line for line in typed.replace("\r\n", "\n").split("\n") if line]


def bins(typed: str, columns: Sequence[ColumnTold]) -> list[Any]:
    """Bins, one in each line, of the types of their columns; several columns are divided by commas.

    Raises:
        BinError: A line has another number of columns, or another type.

    >>> page, size = ColumnTold(name="page", type="text"), ColumnTold(name="size", type="integer")
    >>> bins("a, b", [page]), bins('"a, b",3', [page, size])
    (['a, b'], [['a, b', 3]])
    """
    if len(columns) == 1:
        return [_read(line, columns[0]) for line in lines(typed)]
    read: list[Any] = []
    for cells in csv.reader(lines(typed), skipinitialspace=True):
        if len(cells) != len(columns):
            raise BinError(f"a line holds {len(columns)} values with commas between: {_named(columns)}.")
        read.append([_read(cell, column) for cell, column in zip(cells, columns, strict=True)])
    return read


def groups(typed: str) -> list[Any]:
    r"""Groups, one in each line: text as it is, or as JSON has it.

    >>> groups('Page 1\n12\n"12"\n["NL", 3]')
    ['Page 1', 12, '12', ['NL', 3]]
    """
    return [_json(line) for line in lines(typed)]


def question(fields: dict[str, str], *, dry: bool) -> dict[str, Any]:
    """A question as `POST /api/sql` has it. What was not typed is left out."""
    typed = {
        name: fields[name].strip() for name in ("epsilon", "within", "delta", "name") if fields.get(name, "").strip()
    }
    keys = groups(fields.get("keys", ""))
    return {
        "query": fields.get("query", "").replace("\r\n", "\n"),
        **typed,
        **({"keys": keys} if keys else {}),
        "dry": dry,
    }


FIELDS = {"keys": "Groups to show", "delta": "Delta", "epsilon": "Epsilon to pay", "within": "an error of at most",
          "name": "Name"}  # fmt: skip
"""What the form calls the arguments of a question."""


def in_its_words(message: str) -> str:
    """A message about a question in the words of the form instead of those of a call.

    >>> in_its_words("sql: which groups there are is private too; give keys=, or delta= (for example 1e-6).")
    'which groups there are is private too; give "Groups to show", or "Delta" (for example 1e-6).'
    """
    names = "|".join(FIELDS)
    text = re.sub(rf"\bsql\(({names})=[^()]*\)", lambda match: f'"{FIELDS[match[1]]}"', message)
    text = re.sub(rf"\b({names})=(\[\.\.\.\]|\.\.\.)?", lambda match: f'"{FIELDS[match[1]]}"', text)
    return text.removeprefix("sql: ")


def built(fields: dict[str, str], data: Sequence[DataTold]) -> str:
    """A SELECT from what was chosen in the form that builds one.

    Raises:
        PlanError: It was not chosen from what there is.
    """
    of = next((data_set for data_set in data if data_set.name == fields.get("data") and data_set.questions), None)
    names = {column.name for column in of.columns} if of is not None else set()
    what, column, by, where = (fields.get(name, "") for name in ("what", "column", "by", "where"))
    if of is None or what not in KINDS or {column, by} - {""} - names:
        raise PlanError("choose a data set, what to compute, and columns that there are.")
    if "{}" in KINDS[what] and not column:
        raise PlanError(f"choose the column of which to compute {what!r}.")
    select = f"{KINDS[what].format(quoted(column))} AS answer"
    head = f"SELECT {quoted(by)}, {select}" if by else f"SELECT {select}"
    text = [head, f"FROM {quoted(of.name)}", f"WHERE {where.strip()}" if where.strip() else "",
            f"GROUP BY {quoted(by)}" if by else ""]  # fmt: skip
    return "\n".join(line for line in text if line)


def _named(columns: Sequence[ColumnTold]) -> str:
    return ", ".join(f"{column.name} ({column.type})" for column in columns)


def _json(typed: str) -> Any:
    try:
        parsed = json.loads(typed, parse_constant=str)
    except (ValueError, RecursionError):
        return typed
    return typed if isinstance(parsed, dict) else parsed


def _read(typed: str, column: ColumnTold) -> Any:
    try:
        if column.type == "integer":
            return int(typed)
        if column.type == "number":
            number = float(typed)
            return number if math.isfinite(number) else BOOLEANS[typed]  # JSON has no such numbers
        if column.type == "boolean":
            return BOOLEANS[typed.strip().lower()]
    except (ValueError, KeyError):
        raise BinError(f"{_named([column])}: {typed[:80]!r} is no {column.type}.") from None
    return _json(typed) if column.type == "value" else typed
