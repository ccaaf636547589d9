"""Plans in JSON as collections: each step is the public operator of its name, within limits that no data move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.apps.remote import grammar
from wpinq.apps.remote.bins import received, value
from wpinq.apps.serve.config import Limits
from wpinq.core import Schema, check_limits, question_size
from wpinq.core import steps as walk
from wpinq.errors import PlanError
from wpinq.exact import exact

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.query.statement import Statement


def collection(steps: Sequence[grammar.AnyStep], tables: Mapping[str, Collection], limits: Limits) -> Collection:
    """The collection that a plan describes; nothing is read or charged.

    Raises:
        PlanError: It is too large, names what there is not, or an operator refuses it.
    """
    if len(steps) > limits.steps:
        raise PlanError(f"plan: {len(steps)} steps; at most {limits.steps} here.")
    with question_size():
        made = _made(steps, tables, limits)
    check_limits(made._node, limits.gain, "plan")
    return made


def insist_on_limits(statement: Statement, limits: Limits) -> None:
    """Refuse an SQL query that reads too much: for each of its measurements the limits of plans hold.

    Raises:
        PlanError: One has too many steps, or would move too far.
    """
    for root in statement.plans:
        count = len(walk(root))
        if count > limits.steps:
            raise PlanError(f"sql: the query makes {count} steps; at most {limits.steps} here.")
        check_limits(root, limits.gain, "sql")


def _made(steps: Sequence[grammar.AnyStep], tables: Mapping[str, Collection], limits: Limits) -> Collection:
    size = _Size(limits)
    made: list[Collection] = []
    for index, step in enumerate(steps):
        call = f"plan, step {index} ({_name(step)})"
        reads = _reads(step)
        if any(read >= index for read in reads):
            raise PlanError(f"{call}: a step reads earlier ones; those are 0 to {index - 1}.")
        size.grow(step, reads, call)
        if isinstance(step, grammar.Table):
            if step.name not in tables:
                raise PlanError(f"{call}: no data set of that name; there are {', '.join(tables) or 'none'}.")
            made.append(tables[step.name])
        else:
            made.append(_Applied(made, call).do(step))
    return made[-1]


class _Applied:
    """Applies one step to those that were made before."""

    def __init__(self, made: Sequence[Collection], call: str) -> None:
        self._made, self._call = made, call

    def do(self, step: grammar.AnyStep) -> Collection:
        """The collection that a step makes."""
        if isinstance(step, grammar.Unary):
            return self._unary(step, self._made[step.of])
        if isinstance(step, grammar.Keyed):
            return self._keyed(step, self._made[step.left], self._made[step.right])
        assert isinstance(step, grammar.Binary)  # noqa: S101  tables were made before
        operator = getattr(self._made[step.left], _name(step))
        result: Collection = operator(self._made[step.right])
        return result

    def _unary(self, step: grammar.Unary, of: Collection) -> Collection:
        schema, call = of._node.schema, self._call
        if isinstance(step, grammar.Map):
            if isinstance(step.function, grammar.Chosen):
                return of.map([pl.col(name) for name in step.function.names])
            return of.map(*function(step.function, schema, call))
        if isinstance(step, grammar.Filter):
            return of.filter(function(step.function, schema, call)[0])
        if isinstance(step, grammar.Shave):
            return of.shave([exact(level, call) for level in step.thickness], step.name)
        if isinstance(step, grammar.Distinct):
            return of.distinct(step.at_most)
        assert isinstance(step, (grammar.GroupBy, grammar.Limit, grammar.PartOf))  # noqa: S101  all others
        key = function(step.key, schema, call)[0]
        if isinstance(step, grammar.GroupBy):
            names = None if step.name is None else [step.name]
            return of.group_by(key, len if step.sizes else None, names, whole=step.whole)
        if isinstance(step, grammar.Limit):
            return of.limit(key, step.at_most)
        return self._part(step, of, key)

    def _part(self, step: grammar.PartOf, of: Collection, key: Any) -> Collection:
        from wpinq.core import keyed

        node, names = keyed(of._node, key, self._call)
        schema = Schema(tuple(node.schema[name] for name in names))
        if step.part >= len(step.parts):
            raise PlanError(f"{self._call}: part {step.part} of {len(step.parts)}; they are numbered from 0.")
        listed = [value(bin_, schema) for bin_ in step.parts]
        return of.partition(key, listed)[listed[step.part]]

    def _keyed(self, step: grammar.Keyed, left: Collection, right: Collection) -> Collection:
        keys = {
            "left": function(step.left_key, left._node.schema, self._call)[0],
            "right": function(step.right_key, right._node.schema, self._call)[0],
        }
        if isinstance(step, grammar.Join):
            return left.join(right, **keys, at_most=step.at_most, how=step.how)
        if isinstance(step, grammar.JoinRows):
            return left.join_rows(right, **keys, how=step.how)
        return left.semijoin(right, **keys) if isinstance(step, grammar.SemiJoin) else left.antijoin(right, **keys)


def function(written: grammar.Function, schema: Schema, call: str) -> tuple[Any, list[str] | None]:
    """What an operator takes for a function of the grammar, and the names of its outputs, if it says them.

    Raises:
        PlanError: See `received`.
    """
    if isinstance(written, grammar.Written):
        return written.text, None
    if isinstance(written, grammar.Chosen):
        return tuple(written.names), None
    return received(written, schema, call), written.names


def _name(step: grammar.Step) -> str:
    """What a step is called in JSON, which is what its operator is called."""
    return str(type(step).__struct_config__.tag)


def _reads(step: grammar.AnyStep) -> tuple[int, ...]:
    if isinstance(step, grammar.Unary):
        return (step.of,)
    return (step.left, step.right) if isinstance(step, grammar.Binary) else ()


class _Size:
    """How large a plan grows, step by step; it is refused before any operator sees what is too large."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._operations, self._joins = limits, 0, 0
        self._depth: list[int] = []
        self._partners: list[int] = []

    def grow(self, step: grammar.AnyStep, reads: Sequence[int], call: str) -> None:
        """Count a step.

        Raises:
            PlanError: It passes a limit.
        """
        limits = self._limits
        self._insist(1 + max((self._depth[read] for read in reads), default=0), limits.depth, call, "steps in a row")
        self._depth.append(1 + max((self._depth[read] for read in reads), default=0))
        for field in ("function", "key", "left_key", "right_key"):
            function = getattr(step, field, None)
            for output in function.values if isinstance(function, grammar.Traced) else ():
                self._count(output, 1, call)
        partners = 1
        for read in reads:
            partners *= self._partners[read]
        if isinstance(step, (grammar.Join, grammar.JoinRows)):
            self._joins += 1
            self._insist(self._joins, limits.joins, call, "joins")
            partners *= step.at_most if isinstance(step, grammar.Join) else 1
        self._insist(partners, limits.partners, call, "records of one key that joins take")
        self._partners.append(partners)

    def _count(self, expression: grammar.Expression, depth: int, call: str) -> None:
        """Count the operations of an expression."""
        self._operations += 1
        self._insist(self._operations, self._limits.operations, call, "operations")
        self._insist(depth, self._limits.depth, call, "operations in a row")
        for part in expression.of if isinstance(expression, grammar.Do) else ():
            self._count(part, depth + 1, call)

    @staticmethod
    def _insist(count: int, most: int, call: str, what: str) -> None:
        if count > most:
            raise PlanError(f"{call}: at most {most:,} {what} here.")
