"""A case of an audit: records of a schema with and without one privacy unit, drawn from a number."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from types import CodeType
from typing import Any

from wpinq.core.plan.node import Record
from wpinq.core.plan.unit import Unit
from wpinq.core.records.schema import Kind, Schema

Row = tuple[int, Record]
"""The epoch in which a record comes, from 1, and the record."""

FEW: dict[Kind, list[Any]] = {
    Kind.INT: [0, 1, 2, 3, -1, None],
    Kind.FLOAT: [0.0, 1.0, 0.5, 2.0, -1.5, None],
    Kind.TEXT: ["a", "b", "c", "a b", "", None],
    Kind.BOOL: [False, True, None],
    Kind.BYTES: [b"a", b"b", b"", None],
    Kind.DATE: [dt.date(2026, 1, day) for day in (1, 2, 9)] + [None],
    Kind.TIME: [dt.datetime(2026, 1, day, hour) for day in (1, 2) for hour in (0, 7)] + [None],
    Kind.INSTANT: [dt.datetime(2026, 1, day, 7, tzinfo=dt.UTC) for day in (1, 2, 9)] + [None],
    Kind.SPAN: [dt.timedelta(hours=hours) for hours in (0, 1, 30)] + [None],
    Kind.ANY: [0, 1, "a", "b", 0.5, (1, "a"), None],
}
"""Values of each kind: few, so that many records are equal."""

ODD: dict[Kind, list[Any]] = {
    Kind.INT: [2**63 - 1, -(2**63), 2**53 + 1, 10, 100],
    Kind.FLOAT: [math.nan, -0.0, math.inf, -math.inf, 1e300, 0.1, float(2**53), 10.0, 100.0],
    Kind.TEXT: ["A", "\u00e9", "e\u0301", " a ", "nan", "1", "a,b", "x" * 40, "\0"],
    Kind.BYTES: [b"\xff", b"n"],
    Kind.DATE: [dt.date(1970, 1, 1), dt.date(9999, 12, 31), dt.date(1, 1, 1), dt.date(2026, 3, 29)],
    Kind.TIME: [dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(9999, 12, 31, 23), dt.datetime(2026, 3, 29, 1)],
    Kind.INSTANT: [dt.datetime(2026, 3, 29, 0, 59, 59, tzinfo=dt.UTC), dt.datetime(1969, 12, 31, tzinfo=dt.UTC)],
    Kind.SPAN: [dt.timedelta(microseconds=-1), dt.timedelta(days=400)],
    Kind.ANY: [math.nan, True, 1.0, "1", b"n", (), dt.date(2020, 1, 1), ((1,), None)],
}
"""Values that look like others, or that columns and Python hold in their own ways."""
SIZES = (0, 1, 1, 2, 3, 5, 8, 13, 30)
"""How many records others have."""
EPOCHS = 3


@dataclass(frozen=True)
class Case:
    """Records without and with one privacy unit, and how the records are protected.

    Attributes:
        columns: Names and types of the columns, in order, as `protect` takes them.
        others: The records of others, each with the epoch in which it comes.
        own: Those of the unit by which neighbours differ: one record, or all of one person.
        words: What `protect` and `live` are told besides: unit, where, derive.
        live: Whether they are sent to a live source, epoch by epoch.
        early: Of a live source, whether the first epoch closes before the dataflow is called.
    """

    columns: Mapping[str, str | None]
    others: tuple[Row, ...]
    own: tuple[Row, ...]
    words: Mapping[str, Any] = field(default_factory=dict)
    live: bool = False
    early: bool = False

    def rows(self, *, own: bool) -> list[Row]:
        """All records; those of the unit stand among the others."""
        if not own:
            return list(self.others)
        half = len(self.others) // 2
        return [*self.others[:half], *self.own, *self.others[half:]]

    def values(self, column: str) -> list[Any]:
        """The values of a column, with and without the unit, each once and in order; null is none of them."""
        index = list(self.columns).index(column)
        distinct = {row[index] for _, row in (*self.others, *self.own)}
        return sorted(value for value in distinct if value is not None and not _nan(value))

    def __repr__(self) -> str:
        unit = self.words.get("unit")
        words = {name: value for name, value in self.words.items() if name != "unit"}
        options = ", ".join(
            [*([f"'unit': {written(unit)}"] if unit else []), *(f"{k!r}: {v!r}" for k, v in words.items())]
        )
        rows = "".join(f"\n    {name}=({''.join(f'{row!r}, ' for row in getattr(self, name))}),"
                       for name in ("others", "own"))  # fmt: skip
        ends = f"\n    live={self.live}, early={self.early}," if self.live else ""
        return f"Case(\n    columns={dict(self.columns)},{rows}\n    words={{{options}}},{ends}\n)".replace(
            "datetime.", "dt."
        )


def written(unit: Unit) -> str:
    """A unit as Python.

    >>> written(Unit("user", 3, ("page", 1)))
    "wpinq.users('user', at_most=3, per=('page', 1))"
    """
    options = {
        "at_most": unit.at_most, "shared": (unit.at_most is None and not unit.whole) or None, "per": unit.per,
        "period": unit.period and unit.period[0], "at": unit.period and unit.period[1], "zone": unit.zone,
    }  # fmt: skip
    return (
        f"wpinq.users({', '.join([repr(unit.column), *(f'{k}={v!r}' for k, v in options.items() if v is not None)])})"
    )


class Drawing:
    """Cases of one dataflow, each a function of the seed and of its number.

    Args:
        schema: The columns of the source.
        words: What `protect` is told besides.
        seed: Chooses the cases.
        met: Values that the dataflow compares with, and others to draw from.
    """

    def __init__(self, schema: Schema, words: Mapping[str, Any], seed: int, met: Sequence[Any]) -> None:
        self.schema, self.words, self.seed = schema, words, seed
        self.columns = {column.name: None if column.kind is Kind.ANY else column.kind.value for column in schema}
        self._met = {kind: [value for value in met if of_kind(value, kind)] for kind in Kind}

    def case(self, number: int, *, live: bool) -> Case:
        """The case of a number."""
        rng = Random(f"{self.seed} {number} {live}")  # noqa: S311  it makes records up
        pools = [self._pool(rng, column.kind) for column in self.schema]
        count = rng.choice(SIZES)
        others = [tuple(rng.choice(pool) for pool in pools) for _ in range(count)]
        if others and rng.random() < 0.4:
            others += [rng.choice(others[:2]) for _ in range(rng.randint(1, 12))]  # the same records again
        unit_rows = self._unit(rng, pools, others)
        others = self._not_of(unit_rows[0], others)
        last = EPOCHS if live else 1
        dated = [tuple((rng.randint(1, last), row) for row in rows) for rows in (others, unit_rows)]
        return Case(self.columns, dated[0], dated[1], self.words, live, early=live and rng.random() < 0.5)

    def _pool(self, rng: Random, kind: Kind) -> list[Any]:
        """Few values, so that records agree in some of them."""
        odd = ODD.get(kind, []) if rng.random() < 0.3 else []
        met = self._met[kind] if rng.random() < 0.8 else []
        plain = [value for value in FEW[kind] if value is not None]
        pool = [*rng.sample(plain, min(len(plain), rng.randint(1, 4))), *rng.sample(met, min(len(met), 3)),
                 *rng.sample(odd, min(len(odd), 2))]  # fmt: skip
        return [*pool, None] if rng.random() < 0.3 else pool

    def _unit(self, rng: Random, pools: list[list[Any]], others: list[Record]) -> list[Record]:
        """One record, at times one that others have too; or the records of one person, at times of a heavy one."""
        unit = self.words.get("unit")
        made = tuple(rng.choice(pool) for pool in pools)
        first = rng.choice(others) if others and rng.random() < 0.4 else made
        if unit is None or unit.column is None:
            return [first]
        fixed = {self.schema.names.index(name) for name in unit.columns if name in self.schema.names}
        most = rng.choice([1, 2, unit.bound + 1, 2 * unit.bound + 3])
        return [
            tuple(first[at] if at in fixed else rng.choice(pool) for at, pool in enumerate(pools))
            for _ in range(min(int(most), 40))
        ]

    def _not_of(self, record_of_unit: Record, others: list[Record]) -> list[Record]:
        """The records of others than one person; two values that columns hold as one are one person."""
        unit = self.words.get("unit")
        if unit is None or unit.column is None:
            return others
        at = self.schema.names.index(unit.column)
        return [record for record in others if _person(record[at]) != _person(record_of_unit[at])]


def _nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _person(value: Any) -> Any:
    return None if _nan(value) else (isinstance(value, str | bytes), value)


def of_kind(value: Any, kind: Kind) -> bool:
    """Whether a constant can be in a column."""
    types: dict[Kind, tuple[type, ...]] = {
        Kind.INT: (int,), Kind.FLOAT: (int, float), Kind.TEXT: (str,), Kind.BYTES: (bytes,), Kind.BOOL: (bool,),
        Kind.DATE: (dt.date,), Kind.TIME: (dt.datetime,), Kind.SPAN: (dt.timedelta,),
    }  # fmt: skip
    if isinstance(value, bool) != (kind is Kind.BOOL) or (isinstance(value, dt.datetime) and kind is Kind.DATE):
        return False
    fits = not isinstance(value, int) or kind is not Kind.INT or -(2**63) <= value < 2**63
    return isinstance(value, types.get(kind, ())) and fits


def constants(function: Callable[..., Any]) -> list[Any]:
    """The constants in the code of a function and of those that its module defines: what filters look for.

    Of text, the parts in quotes and the numbers as well, for it may be SQL.
    """
    names = getattr(function, "__globals__", {})
    home = names.get("__file__") or names.get("__name__")
    codes = [function_.__code__ for function_ in (function, *names.values())
             if hasattr(function_, "__code__") and _home(function_) == home]  # fmt: skip
    values: dict[Any, None] = {}
    for code in codes:
        values |= dict.fromkeys(_of(code))
    near = [
        number + step
        for number in values
        if isinstance(number, int) and not isinstance(number, bool)
        for step in (-1, 1)
    ]
    return list(dict.fromkeys([*values, *near], None))


def _home(function: Any) -> Any:
    names = getattr(function, "__globals__", {})
    return names.get("__file__") or names.get("__name__")


def _of(code: CodeType) -> list[Any]:
    values: list[Any] = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            values += _of(constant)
        elif isinstance(constant, tuple | frozenset):
            values += [part for part in constant if isinstance(part, str | bytes | int | float)]
        elif isinstance(constant, str):
            values += in_text(constant)
        elif isinstance(constant, bytes | int | float):
            values.append(constant)
    return values


def in_text(text: str) -> list[Any]:
    """A text, and the texts and whole numbers in it, where it is SQL."""
    return [text, *re.findall(r"'([^']*)'", text), *map(int, re.findall(r"\b\d{1,9}\b", text))]


def smaller(case: Case) -> list[Case]:
    """Cases with fewer records than one, half of them first; a unit keeps one record."""
    cases = []
    for name, least in (("others", 0), ("own", 1)):
        rows: tuple[Row, ...] = getattr(case, name)
        size = len(rows) // 2
        while size:
            for at in range(0, len(rows), size):
                left = rows[:at] + rows[at + size :]
                if len(left) >= least:
                    cases.append(replace(case, others=left) if name == "others" else replace(case, own=left))
            size //= 2
        if len(rows) == 1 and not least:
            cases.append(replace(case, others=()))
    return cases
