"""A parsed SELECT: a plan for each of its counts and numbers, and the post-processing that makes its rows.

What is computed from released numbers costs nothing and shows nothing more. Of the numbers of records there are fewer
functions: there the last digit of one must not depend on another record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import pi
from typing import TYPE_CHECKING, Any

from wpinq.core.functions.sql.bind import RULES, translator
from wpinq.core.functions.sql.terms import NUMBERS, Term, constant, to
from wpinq.core.functions.sql.translator import Translator, argument
from wpinq.core.functions.tree import Node as Value
from wpinq.core.functions.tree import col, when
from wpinq.core.measurements.answer import LEVEL
from wpinq.core.plan.node import Node
from wpinq.core.plan.phrase import biases
from wpinq.core.plan.stability import Survey, by_ledger
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import PlanError
from wpinq.exact import decimal, positive
from wpinq.query.select.aggregates import Number
from wpinq.query.select.derived import CALL, plainly
from wpinq.query.select.ranged import MECHANISMS, RangedCounts, half_of_range

if TYPE_CHECKING:
    from wpinq.collection import Collection


@dataclass(frozen=True)
class OutputColumn:
    """One column of the answer, as an expression over group keys and counts."""

    label: str
    node: Any


@dataclass(frozen=True)
class Statement:
    """A SELECT that can be answered.

    Attributes:
        keys: Names of the group keys.
        groups: The group key of each record; a query without GROUP BY has one that is called 0.
        counts: The collection to measure for each count; its records are the group keys.
        numbers: The sums, means, spreads and ranks to measure.
        items: The columns of the answer.
        having: What released rows must fulfil.
        order: Expressions to order by, each with whether it descends and whether NULL comes first.
        limit: How many rows, after how many.
        distinct: Whether equal rows are shown once.
        stepped: The group key of which a count is what is measured of it, less what is measured of the next number;
            None where a count is what is measured.
        released: How the query writes what `key 0`, `count 0`, `number 0` and so on stand for in its expressions.
        sets: Of several sets of keys that it groups by the numbers, which the last key holds; see `missing`.
        notes: What its text asks for and is not done, as clauses.
        ranged: Counts that are measured together, since they are of ranges of one column.
        joined: What is measured for all counts together, with Gaussian noise; None where each has its own.
    """

    keys: tuple[str, ...]
    groups: Collection
    counts: tuple[Collection, ...]
    numbers: tuple[Number, ...]
    items: tuple[OutputColumn, ...]
    having: Any
    order: tuple[tuple[Any, bool, bool], ...]
    limit: tuple[int, int | None]
    distinct: bool
    stepped: str | None
    released: Mapping[str, tuple[Any, ...]]
    sets: tuple[int, ...]
    notes: tuple[str, ...] = ()
    ranged: tuple[RangedCounts, ...] = ()
    joined: Collection | None = None

    @property
    def separate(self) -> tuple[int, ...]:
        """The places of the counts that are measured one by one."""
        if self.joined is not None:
            return ()
        return tuple(place for place in range(len(self.counts)) if not any(place in each.spans for each in self.ranged))

    @property
    def alone(self) -> tuple[Collection, ...]:
        """What is measured for counts, but for those of ranges."""
        return tuple(self.counts[place] for place in self.separate) if self.joined is None else (self.joined,)

    @property
    def plans(self) -> tuple[Node, ...]:
        """The plans of all that may be measured."""
        every = (self.groups, *self.counts, *(number.collection for number in self.numbers))
        return tuple(dict.fromkeys(collection._node for collection in every))

    @property
    def widest(self) -> int:
        """The count that groups are published from: COUNT(*), if it is asked for."""
        plans = [count._node for count in self.counts]
        return plans.index(self.groups._node) if self.groups._node in plans else 0

    @property
    def bias(self) -> tuple[str, ...]:
        """What keeps answers from what people count, beside noise."""
        result = [clause for plan in (*self.counts, self.groups) for clause in biases(plan._node)]
        result += [clause for plan in self.plans for clause in biases(plan)]
        return tuple(dict.fromkeys([*result, *(item.bias for item in self.numbers), *self.notes]))

    @property
    def key_labels(self) -> tuple[str, ...]:
        """What its answer calls the group keys; by their own names where it has none."""
        labels = {item.node.name: item.label for item in self.items if type(item.node).__name__ == "Column"}
        return tuple(labels.get(f"key {place}", name) for place, name in enumerate(self.keys))

    @property
    def of_one_person(self) -> tuple[Fraction, int]:
        """How many times the epsilon and the delta of a measurement one person loses, in all tables of a ledger.

        All measurements read the same rows, so it is the same for all, also where how far a person moves these rows
        themselves is not known.
        """
        paid = by_ledger(Survey.of(self.groups._node).shares).values()
        return max(sum(each, Fraction(0)) for each in paid), max(map(len, paid))

    @property
    def schema(self) -> Schema:
        """The part of a name that stands for a group."""
        return self.groups._node.schema

    def published_from(self, listed: bool) -> tuple[Collection, ...]:
        """What is measured, where no count is asked for, to publish groups that are not given."""
        return () if listed or self.counts or not self.keys else (self.groups,)

    def parts(self, listed: bool) -> int:
        """How many measurements share epsilon, where groups are given or published."""
        numbers = {number.measured for number in self.numbers}
        return len(self.alone) + len(self.ranged) + len(numbers) + len(self.published_from(listed))

    def translator(self) -> Translator:
        """Translates what is computed from released numbers."""
        released = {f"key {index}": column.kind for index, column in enumerate(self.schema) if self.keys}
        released |= {f"number {index}": number.kind for index, number in enumerate(self.numbers)}
        ends = [f"count {index}" for index in range(len(self.counts))]
        ends += [f"number {index}" for index, number in enumerate(self.numbers) if number.kind is Kind.FLOAT]
        released |= {f"{word} {name}": Kind.FLOAT for word in ("low", "high") for name in ends}
        for index, count in enumerate(self.counts):  # weights that people share are fractions
            fitted = any(each.fitted and index in each.spans for each in self.ranged)
            released[f"count {index}"] = Kind.INT if count._node.held.whole and not fitted else Kind.FLOAT
        return released_translator(
            lambda node: Term(col(node.name), released[node.name], self._spelled(node)), self._spelled
        )

    def _spelled(self, node: Any) -> str:
        """An expression over released numbers as the query has it."""

        def written(part: Any) -> Any:
            what, _, index = part.name.partition(" ") if type(part).__name__ == "Column" else ("", "", "")
            return self.released[what][int(index)] if what in self.released else part

        return plainly(node.transform(written))

    def explain(self, epsilon: Any = None, listed: bool = False, rho: Any = None) -> str:
        """Print and return the plan of each measurement, and what it would cost at its share of epsilon, or of rho.

        Args:
            epsilon: What the query costs in all.
            listed: Whether its groups are given.
            rho: Instead of epsilon, with Gaussian noise.
        """
        if rho is not None:
            each = positive(rho, "explain(rho=...)") / self.parts(listed)
            plans = [*self.published_from(listed), *self.alone, *(number.collection for number in self.numbers)]
            result = []
            for plan in plans:
                result += [str(plan.explain(rho=each, mechanism="gaussian"))]
            return "\n".join(result)
        whole = None if epsilon is None else positive(epsilon, "explain(epsilon=...)") / self.of_one_person[0]
        share = None if whole is None else whole / self.parts(listed)
        result = [str(item.explain(share)) for item in (*self.published_from(listed), *self.alone)]
        for ranges in self.ranged:
            result.append(str(ranges.records.explain()))
            if share is not None:
                quote = ranges.quote(share, {"name": None, "analyst": None}, MECHANISMS[0])
                lines = [f"{ranges.written(0)}, epsilon {decimal(share)}"]
                for place, span in ranges.spans.items():
                    half = half_of_range(quote, span, LEVEL)
                    lines.append(f"  {plainly(self.released['count'][place])}: noise moves it by at most {half:g} with "
                                 f"probability {float(LEVEL):g}")  # fmt: skip
                result.append("\n".join([*lines, *quote.noise[1:]]))
                print(result[-1])  # noqa: T201  as explain of a collection does
        for number in self.numbers:
            result.append(str(number.collection.explain()))
            result.append(number.text + ("" if share is None else f", epsilon {decimal(share)}"))
            print(result[-1])  # noqa: T201  as explain of a collection does
        return "\n".join(result)


def check(statement: Statement) -> None:
    """Check, before anything is charged, that the post-processing can be done."""
    translator = statement.translator()
    for item in statement.items:
        translator.term(item.node)
    if statement.having is not None:
        translator.condition(statement.having)
    for node, _, _ in statement.order:
        if translator.term(node).kind is Kind.ANY:
            raise PlanError(f"{CALL}: ORDER BY a column of any type has no order; declare its type with columns=.")


DOUBLES: dict[str, Callable[[Value], Value]] = {
    "Cos": lambda x: x.cos(), "Sin": lambda x: x.sin(), "Tan": lambda x: x.tan(), "Cot": lambda x: x.cot(),
    "Acos": lambda x: x.arccos(), "Asin": lambda x: x.arcsin(), "Atan": lambda x: x.arctan(),
    "Cosh": lambda x: x.cosh(), "Sinh": lambda x: x.sinh(), "Tanh": lambda x: x.tanh(), "Acosh": lambda x: x.arccosh(),
    "Asinh": lambda x: x.arcsinh(), "Atanh": lambda x: x.arctanh(), "Degrees": lambda x: x.degrees(),
    "Radians": lambda x: x.radians(), "Cbrt": lambda x: x.cbrt(),
}  # fmt: skip


def released_translator(resolve: Callable[[Any], Term], spelled: Callable[[Any], str]) -> Translator:
    """Translates what is computed from released numbers."""
    known = "computed from released numbers here"
    result = translator(resolve, CALL, spelled=spelled, known=known)
    result.rules = {**RULES, **MORE}
    return result


def _double(translate: Translator, node: Any) -> Value:
    return to(argument(translate, node, *NUMBERS), Kind.FLOAT, CALL).value


def _finite(value: Value) -> Term:
    """A double, NULL where it is none."""
    return Term(when(value.is_finite(), value), Kind.FLOAT, "")


def _function(translate: Translator, node: Any) -> Term:
    return _finite(DOUBLES[type(node).__name__](_double(translate, node.this)))


def _power(translate: Translator, node: Any) -> Term:
    return _finite(_double(translate, node.this).pow(_double(translate, node.expression)))


MORE: dict[str, tuple[frozenset[str], Any]] = {
    **dict.fromkeys(DOUBLES, (frozenset(["this"]), _function)),
    "Pow": (frozenset(["this", "expression"]), _power),
    "Pi": (frozenset(), lambda translate, node: constant(pi, Kind.FLOAT, "PI()")),
}
