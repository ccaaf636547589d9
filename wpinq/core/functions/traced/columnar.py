"""The column way: a traced function as Polars expressions, with the plain way for the records where they differ.

Compare a traced function with plain Python on fixed values, when the plan is written (privacy rule 23).
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from wpinq.core.functions.function import Constant, Function, told_apart
from wpinq.core.functions.plain import Plain
from wpinq.core.functions.traced.expression import Expression, safe
from wpinq.core.records import canonical
from wpinq.core.records.kinds import read, series, write
from wpinq.core.records.schema import Kind, Schema, in_columns

SAFE = "\0safe"
TRUTH = "\0truth"
TRUTHFUL = (Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.TEXT)
FAILURES = (pl.exceptions.PolarsError, pl.exceptions.PanicException)


@dataclass(frozen=True, eq=False)
class Columnar(Function):
    """A function that is column arithmetic.

    Attributes:
        nodes: The expression of each output.
        steps: Every operation of the function, also of what it does not return: all must succeed.
        plain: The same function with the same kinds of outputs, run plainly.
    """

    nodes: tuple[Expression, ...]
    steps: tuple[Expression, ...]
    plain: Plain

    @property
    def passed(self) -> dict[str, str]:  # noqa: D102
        pairs = zip(self.output.names, self.nodes, strict=True)
        return {name: node.options[0] for name, node in pairs if node.name == "column"}

    @property
    def constants(self) -> Mapping[str, Constant | None]:  # noqa: D102
        pairs = zip(self.output, self.nodes, strict=True)
        return {
            column.name: told_apart(node.options[0], column.kind) for column, node in pairs if node.name == "constant"
        }

    @property
    def whole(self) -> bool:
        """Whether it returns all that it computes; what it does not return may fail, and then the record is dropped."""
        return {part for node in self.nodes for part in node.parts()}.issuperset(self.steps)

    @property
    def growth(self) -> int:  # noqa: D102
        return max((node.growth() for node in self.steps), default=1)

    def call(self, record: tuple[Any, ...]) -> tuple[Any, ...]:  # noqa: D102
        return self.plain.call(record)

    def test(self, record: tuple[Any, ...]) -> bool:  # noqa: D102
        return self.plain.test(record)

    def apply(self, frame: pl.DataFrame, keep: Sequence[str]) -> pl.DataFrame:  # noqa: D102
        try:
            fast, slow = _split(frame, safe(self.steps))
            mapped = canonical.frame(_select(fast, self.nodes, self.output.names, keep), self.output)
        except FAILURES:
            return self.plain.apply(frame, keep)
        if slow is None or slow.is_empty():
            return mapped
        return pl.concat([mapped, self.plain.apply(slow, keep)])

    def predicate(self, frame: pl.DataFrame) -> pl.Series:  # noqa: D102
        (node, *more) = self.nodes
        if more or node.kind not in TRUTHFUL:
            return self.plain.predicate(frame)
        mark = truthful(node.value_tree.expr, node.kind)
        test = safe((*self.steps, *self.nodes))
        known = mark if test is None else pl.when(test).then(mark)
        try:
            mask = frame.with_columns(known.alias(TRUTH)).get_column(TRUTH)
        except FAILURES:
            return self.plain.predicate(frame)
        unknown = mask.is_null()
        if not unknown.any():
            return mask
        return mask.scatter(unknown.arg_true(), self.plain.predicate(frame.filter(unknown)))


def truthful(value: pl.Expr, kind: Kind) -> pl.Expr:
    """What `bool()` of a value is; for kinds that are not in `TRUTHFUL` every value counts as true."""
    if kind is Kind.BOOL:
        return value
    if kind in (Kind.INT, Kind.FLOAT):
        return value != 0
    return value != "" if kind is Kind.TEXT else value.is_not_null()


def projected(nodes: Sequence[Expression]) -> tuple[str, ...] | None:
    """The columns that these outputs are, when each is a column of its own."""
    names = tuple(node.options[0] for node in nodes if node.name == "column")
    return names if len(names) == len(nodes) == len(set(names)) else None


def columns_read(names: Sequence[str], nodes: Sequence[Expression]) -> frozenset[str]:
    """Which of these columns the nodes look at."""
    result = {name for node in nodes for name in node.value_tree.columns}
    return frozenset(result & set(names))


def _split(frame: pl.DataFrame, test: pl.Expr | None) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    if test is None:
        return frame, None
    marked = frame.with_columns(test.alias(SAFE))
    return marked.filter(pl.col(SAFE)), marked.filter(~pl.col(SAFE))


def _select(
    frame: pl.DataFrame, nodes: Sequence[Expression], names: Sequence[str], keep: Sequence[str]
) -> pl.DataFrame:
    result = [node.value_tree.expr.alias(f"\0out {index}") for index, node in enumerate(nodes)]
    renamed = [pl.col(f"\0out {index}").alias(name) for index, name in enumerate(names)]
    return frame.with_columns(result).select(*renamed, *keep)


ROW = "\0probe"
STAMPS = (dt.datetime.min, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(1970, 1, 1),
          dt.datetime(2000, 2, 29, 12, 30, 45, 1), dt.datetime(2026, 12, 31, 23), dt.datetime.max)  # fmt: skip
VALUES: dict[Kind, tuple[Any, ...]] = {
    Kind.INT: (None, 0, 1, -1, 2, 7, -7, 10, 1000, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)),
    Kind.FLOAT: (None, 0.0, -0.0, 1.0, -1.5, 0.1, 1e308, -1e308, 5e-324, 2.0**53, math.inf, -math.inf, math.nan),
    Kind.TEXT: (
        None,
        "",
        "a",
        "B",
        "Aa",
        " a\t",
        "/a/B",
        "é",
        "e\u0301",
        "ß",
        "İ",
        "Σας",
        "ǅ",
        "\x1c x\x85",
        "\u2003",
        "😀b",
        "a\0b",
        "$1",
        "%s",
        "A" * 40,
    ),
    Kind.BOOL: (None, True, False),
    Kind.BYTES: (None, b"", b"a", b"\0\xff"),
    Kind.DATE: (None, *(stamp.date() for stamp in STAMPS)),
    Kind.TIME: (None, *STAMPS),
    Kind.INSTANT: (None, *(stamp.replace(tzinfo=dt.UTC) for stamp in STAMPS)),
    Kind.SPAN: (None, dt.timedelta(0), dt.timedelta(microseconds=-1), dt.timedelta(days=1)),
    Kind.ANY: (None, 1, "a", 0.5, (1, "b")),
}


def agrees(function: Columnar, plain: Plain) -> bool:
    """Whether both ways give the same for every probe record, as a map and as a filter.

    The typed results must be what Python returned; missing may be only what the kind cannot hold (big integers).
    """
    frame = probe_frame(plain.schema, plain.reads, [*function.steps, *function.nodes])
    if not function.predicate(frame).equals(plain.predicate(frame)):
        return False
    kinds = [column.kind for column in function.output]
    typed = {row[-1]: _free(row[:-1], kinds) for row in _rows(function.apply(frame, (ROW,)))}
    wanted = {row[-1]: row[:-1] for row in _rows(plain.apply(frame, (ROW,)))}
    missing = wanted.keys() - typed.keys()
    return all(wanted.get(row) == result for row, result in typed.items()) and not any(
        _fits(wanted[row], kinds) for row in missing
    )


def _rows(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    return frame.select(pl.all().to_physical()).rows()


def _free(values: Sequence[Any], kinds: Sequence[Kind]) -> tuple[bytes, ...]:
    return tuple(write(read(value, kind), Kind.ANY) for value, kind in zip(values, kinds, strict=True))


def _fits(values: Sequence[bytes], kinds: Sequence[Kind]) -> bool:
    try:
        for value, kind in zip(values, kinds, strict=True):
            write(read(value, Kind.ANY), kind)
    except Exception:  # noqa: BLE001
        return False
    return True


def probe_frame(schema: Schema, names: Sequence[str], nodes: Sequence[Expression] = ()) -> pl.DataFrame:
    """Rows of edge cases for these columns, each with a number in `ROW`."""
    pools = [_pool(schema[name].kind, nodes) for name in names]
    height = 1 + 4 * max(map(len, pools), default=1)
    columns = [
        series(
            name,
            [pool[(row + row // len(pool) * (3 * index + 1)) % len(pool)] for row in range(height)],
            schema[name].kind,
        )
        for index, (name, pool) in enumerate(zip(names, pools, strict=True))
    ]
    return in_columns([*columns, pl.Series(ROW, range(height), dtype=pl.UInt32)])


def _pool(kind: Kind, nodes: Sequence[Expression]) -> list[Any]:
    """The probe values of a kind as stored, with the neighbours of the constants that the function names."""
    stored = [write(value, kind) for value in VALUES[kind]]
    for constant in (
        constant for node in nodes for constant in node.parts() if (constant.name, constant.kind) == ("constant", kind)
    ):
        stored += _neighbours(constant.options[0], kind)
    stored += [neighbour for node in nodes for option in node.options if kind is Kind.TEXT and isinstance(option, str)
               for neighbour in _neighbours(option, kind)]  # fmt: skip
    return list(dict.fromkeys(stored))


def _neighbours(value: Any, kind: Kind) -> list[Any]:
    if kind is Kind.TEXT:
        return [
            value,
            value + "x",
            "x" + value,
            value + value,
            value[:-1],
            value[1:],
            value.swapcase(),
            f"a{value}b{value}c",
        ]
    if kind in (Kind.INT, Kind.DATE, Kind.TIME, Kind.INSTANT, Kind.SPAN):
        return [neighbour for neighbour in (value - 1, value, value + 1) if -(2**63) <= neighbour < 2**63]
    return [value]
