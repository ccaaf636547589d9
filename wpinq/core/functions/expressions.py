"""Trees of operations as functions of one record: those of SQL, and expressions of Polars.

They mean what Polars says: integers wrap around at 64 bits, nulls stay null, comparisons with null are null. A result
that is NaN, or a time beyond the years of Python, is null. All of that is element-wise, so it moves no other record. A
record on which an expression raises is dropped, and it alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import polars as pl

from wpinq.core.functions.admit import INSTEAD, admit, bare, bounded, empty
from wpinq.core.functions.function import (
    FAILURES,
    ROW,
    Columnwise,
    Constant,
    columns_code,
    columns_of,
    named,
    projection_code,
    told_apart,
)
from wpinq.core.functions.polars_tree import Read, tree
from wpinq.core.functions.probes import probe_frame
from wpinq.core.functions.tree import Node, col
from wpinq.core.records import canonical
from wpinq.core.records.kinds import declared_kinds
from wpinq.core.records.schema import Kind, Schema, polars_type
from wpinq.core.records.values import digest
from wpinq.errors import PlanError, UntraceableError

TYPES: dict[type[pl.DataType], Kind] = {
    pl.String: Kind.TEXT, pl.Boolean: Kind.BOOL, pl.Binary: Kind.BYTES, pl.Date: Kind.DATE, pl.Duration: Kind.SPAN,
    pl.Float32: Kind.FLOAT, pl.Float64: Kind.FLOAT, pl.Int8: Kind.INT, pl.Int16: Kind.INT, pl.Int32: Kind.INT,
    pl.Int64: Kind.INT, pl.UInt8: Kind.INT, pl.UInt16: Kind.INT, pl.UInt32: Kind.INT, pl.UInt64: Kind.INT,
}  # fmt: skip
FIRST = "\0first"
"""The first row that holds the same as this one."""
UNCHANGED = pl.QueryOptFlags.none()
REMEMBERED = 4096
"""Expressions that are not probed again, at the most."""
_passed: set[bytes] = set()
"""Fingerprints of expressions that passed their probe in this process, which depends on nothing else."""
Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


@dataclass(frozen=True, eq=False)
class Expressions(Columnwise):
    """Element-wise Polars expressions, one for each output, of the kinds of the output."""

    expressions: tuple[pl.Expr, ...]
    growth: int = 1
    bare: tuple[str | None, ...] = ()
    """The column that each expression is; None where it is computed."""
    constant: tuple[tuple[str, Constant | None], ...] = ()
    """The outputs that read no column, each with its value; see `Function.constants`."""

    @property
    def passed(self) -> dict[str, str]:  # noqa: D102
        return {name: column for name, column in zip(self.output.names, self.bare, strict=False) if column is not None}

    @property
    def constants(self) -> Mapping[str, Constant | None]:  # noqa: D102
        return dict(self.constant)

    @property
    def condition(self) -> Node | None:  # noqa: D102
        return tree(self.expressions[0], "filter") if [item.kind for item in self.output] == [Kind.BOOL] else None

    def apply(self, frame: pl.DataFrame, keep: Sequence[str]) -> pl.DataFrame:  # noqa: D102
        return canonical.frame(_each(frame, lambda part: self._made(part, keep)), self.output)

    def one_by_one(self, frame: pl.DataFrame, keep: Sequence[str]) -> pl.DataFrame:
        """What `apply` gives for each record by itself, one below the other."""
        rows = [frame[index : index + 1] for index in range(frame.height)]
        try:
            made = pl.collect_all([self._made(row.lazy(), keep) for row in rows], optimizations=UNCHANGED)
        except FAILURES:
            return pl.concat([self.apply(row, keep) for row in rows])
        return canonical.frame(pl.concat(made), self.output)

    def _made(self, frame: Frame, keep: Sequence[str]) -> Frame:
        values = [value.alias(f"\0out {index}") for index, value in enumerate(self.expressions)]
        result = [pl.col(f"\0out {index}").alias(name) for index, name in enumerate(self.output.names)]
        return frame.with_columns(values).select(*result, *keep)


def expressions(
    values: Sequence[object], schema: Schema, call: str, names: Sequence[str] | Mapping[str, object] | None
) -> Expressions:
    """Bind Polars expressions to columns.

    Raises:
        UntraceableError: One is not element-wise.
        PlanError: One does not fit the columns, or the outputs do not fit `columns=`.
    """
    parts = [part for item in values for part in _expanded(item, schema, call)]
    for part in parts:
        if bare(part) not in schema.names:
            admit(part, schema, call)
    reads = tuple(dict.fromkeys(name for part in parts for name in part.columns))
    typed = [_typed(part, schema, call) for part in parts]
    growths = [bounded(part, schema, call) for part in parts if bare(part) not in schema.names]
    passed = tuple(name for part in parts if (name := bare(part)) is not None)
    projection = passed if len(passed) == len(parts) == len(set(passed)) else None
    ranged = [schema[name].ranged for name in projection] if projection else [False] * len(parts)
    output = _output(named(list(map(_label, parts))), [kind for _, kind in typed], ranged, names, call)
    if projection is None:
        meaning = (pl.__version__, tuple(map(_meaning, parts)), columns_code(schema, reads), columns_code(output))
        fingerprint = digest("polars", *meaning)
    else:
        fingerprint = projection_code(projection, schema, output)
    bound = Expressions(
        schema=schema,
        reads=reads,
        output=output,
        projection=projection,
        note=("columns: " if projection else "polars: ") + ", ".join(map(_shown, parts)),
        fingerprint=fingerprint,
        expressions=tuple(value for value, _ in typed),
        growth=max(growths, default=1),
        bare=tuple(map(bare, parts)),
        constant=tuple(
            (column.name, _value(value, column.kind))
            for part, (value, _), column in zip(parts, typed, output, strict=True)
            if not part.columns
        ),
    )
    if projection is None and fingerprint not in _passed:
        _probed(bound, call)
        if len(_passed) >= REMEMBERED:
            _passed.clear()
        _passed.add(fingerprint)
    return bound


def _value(expression: pl.Expr, kind: Kind) -> Constant | None:
    """The value of an expression that reads no column, where values of its kind are told apart."""
    try:
        return told_apart(pl.select(expression).item(), kind)
    except FAILURES:
        return None


def chosen(names: Sequence[str], schema: Schema, call: str) -> Expressions:
    """Some of the columns, of whatever types.

    Raises:
        PlanError: There is no such column.
    """
    different = tuple(dict.fromkeys(names))
    for name in different:
        if name not in schema.names:
            raise PlanError(f"{call}: no column {name!r}; there are {schema.listed}.")
    output = schema.select(different)
    return Expressions(
        schema=schema, reads=different, output=output, projection=different,
        note="columns: " + ", ".join(different), fingerprint=projection_code(different, schema, output),
        expressions=tuple(pl.col(name) for name in different),
    )  # fmt: skip


def _output(
    labels: Sequence[str],
    kinds: Sequence[Kind],
    ranged: Sequence[bool],
    names: Sequence[str] | Mapping[str, object] | None,
    call: str,
) -> Schema:
    """The columns of the output, under the names that were asked for."""
    wanted = declared_kinds(names, call) if names is not None else tuple((label, None) for label in labels)
    if len(wanted) != len(labels):
        raise PlanError(f"{call}: there are {len(labels)} expressions and columns= names {len(wanted)}; name each.")
    for (name, declared), kind in zip(wanted, kinds, strict=True):
        if declared not in (None, kind):
            raise PlanError(f"{call}: {name!r} is of type {kind.value}, and columns= declares another; cast it.")
    return columns_of([name for name, _ in wanted], kinds, ranged)


def _label(part: Node) -> str | None:
    """What Polars would call the output; None for what it calls a literal."""
    name = part.expr.meta.output_name()
    return None if name == "literal" and part.name != "Alias" else name


def _expanded(item: object, schema: Schema, call: str) -> list[Node]:
    """An expression, or one for each column that a selector stands for (names and types are public)."""
    if not isinstance(item, (pl.Expr, Node)):
        raise PlanError(f"{call}: expected Polars expressions, and found {type(item).__name__}; write pl.lit(...).")
    part = tree(item, call)
    if part.name != "expression Selector":
        return [part]
    try:
        names = empty(schema).select(part.expr).collect_schema().names()
    except pl.exceptions.PolarsError:
        names = []
    if not names:
        raise PlanError(f"{call}: a selector fits no column; there are {schema.listed}.")
    return [col(name) for name in names]


def _typed(part: Node, schema: Schema, call: str) -> tuple[pl.Expr, Kind]:
    """The expression in the type of its kind."""
    passed = bare(part)
    if passed is not None and schema[passed].kind is Kind.ANY:
        return part.expr, Kind.ANY
    try:
        (result,) = empty(schema).select(part.expr).collect_schema().dtypes()
    except pl.exceptions.PolarsError:
        raise PlanError(f"{call}: the expression {_shown(part)} does not fit the types of {schema}.") from None
    kind = TYPES.get(type(result))
    if isinstance(result, pl.Datetime):
        kind = Kind.TIME if result.time_zone is None else Kind.INSTANT
    if kind is None:
        raise PlanError(
            f"{call}: an expression of type {result} is no column here; cast it to text, a number, a boolean, bytes, a "
            "date, a timestamp or a duration."
        )
    return part.expr.cast(polars_type(kind), strict=False), kind


def _each(frame: pl.DataFrame, work: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """Do element-wise work; where it raises, halve the rows until only the records that raise are left out."""
    try:
        return work(frame)
    except FAILURES:
        if frame.height <= 1:
            return work(frame.clear())
        half = frame.height // 2
        return pl.concat([_each(frame[:half], work), _each(frame[half:], work)])


def _probed(function: Expressions, call: str) -> None:
    """Run an expression on fixed values: alone, together and turned round it must give the same."""
    frame = probe_frame(function.schema, function.reads)
    try:
        function.apply(frame.clear(), ())
        together = function.apply(frame, (ROW,))
        turned = function.apply(frame.reverse(), (ROW,)).reverse()
        alone = _alone(function, frame)
    except FAILURES:
        raise PlanError(f"{call}: Polars cannot compute {function.note}; check its arguments.") from None
    if together.is_empty():
        raise PlanError(f"{call}: Polars cannot compute {function.note}; check its arguments.")
    if not together.equals(turned) or not together.equals(alone):
        raise UntraceableError(f"{call}: {function.note} gives a record another value among other records; {INSTEAD}.")


def _alone(function: Expressions, frame: pl.DataFrame) -> pl.DataFrame:
    """What each row gives by itself; rows that hold the same are computed once."""
    contents = canonical.bits(frame).with_columns(pl.lit(0).alias(ROW)).select(pl.all().to_physical()).rows()
    first: dict[tuple[object, ...], int] = {}
    same = pl.DataFrame({ROW: frame[ROW], FIRST: [first.setdefault(row, index) for index, row in enumerate(contents)]})
    once = function.one_by_one(frame[list(first.values())], (ROW,))
    made = once.rename({ROW: FIRST}).cast({FIRST: pl.Int64})
    return same.join(made, on=FIRST, maintain_order="left").select(once.columns)


def _meaning(part: Node) -> bytes:
    """An expression as its operations; one of Polars as that writes it, whose JSON has one word for all infinities."""
    if not isinstance(part, Read):
        return part.code
    return part.expr.meta.serialize(format="binary")


def _shown(part: Node) -> str:
    """An expression as Polars writes it, with the time zones that Polars leaves out."""
    text = re.sub(r"\bdyn (int|float): ", "", str(part.expr).replace("\n", " "))  # Polars' word for a literal
    for zone in _zones(part):
        text = text.replace("convert_time_zone()", f'convert_time_zone("{zone}")', 1)
    return bare(part) or text


def _zones(part: Node) -> Iterator[str]:
    """The zones of the clocks in it, in the order in which Polars writes them."""
    zones: list[str] = []
    pending = [part]
    while pending:
        node = pending.pop()
        zones += [node.options["time_zone"]] if node.name == "TemporalExpr.ConvertTimeZone" else []
        pending += node.inputs
    return reversed(zones)
