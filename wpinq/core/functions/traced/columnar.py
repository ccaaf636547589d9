"""The column way: a traced function as Polars expressions, with the plain way for the records where they differ.

Compare a traced function with plain Python on fixed values, when the plan is written (privacy rule 23).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from wpinq.core.functions.function import FAILURES, ROW, TRUTHFUL, Constant, Function, told_apart, truthful
from wpinq.core.functions.plain import Plain
from wpinq.core.functions.probes import probe_frame
from wpinq.core.functions.traced.expression import Expression, safe
from wpinq.core.records import canonical
from wpinq.core.records.kinds import read, write
from wpinq.core.records.schema import Kind

SAFE = "\0safe"
TRUTH = "\0truth"


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


def agrees(function: Columnar, plain: Plain) -> bool:
    """Whether both ways give the same for every probe record, as a map and as a filter.

    The typed results must be what Python returned; missing may be only what the kind cannot hold (big integers).
    """
    frame = probe_frame(plain.schema, plain.reads, _constants([*function.steps, *function.nodes]))
    if not function.predicate(frame).equals(plain.predicate(frame)):
        return False
    kinds = [column.kind for column in function.output]
    typed = {row[-1]: _free(row[:-1], kinds) for row in _rows(function.apply(frame, (ROW,)))}
    wanted = {row[-1]: row[:-1] for row in _rows(plain.apply(frame, (ROW,)))}
    missing = wanted.keys() - typed.keys()
    return all(wanted.get(row) == result for row, result in typed.items()) and not any(
        _fits(wanted[row], kinds) for row in missing
    )


def _constants(nodes: Sequence[Expression]) -> list[Constant]:
    """What the nodes compute with."""
    held: list[Constant] = [(part.kind, part.options[0]) for node in nodes for part in node.parts()
                            if part.name == "constant"]  # fmt: skip
    return held + [(Kind.TEXT, option) for node in nodes for option in node.options if isinstance(option, str)]


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
