"""UNION ALL of answers: each SELECT is measured by itself, and the rows stand one below the other.

Epsilon, rho and delta are shared equally, and all SELECTs are charged together or none. Rows that are counted
afterwards belong in a subquery with UNION ALL, which costs no more than its tables. `QuotedUnion` has what a quote of
one SELECT has, so that commands, servers and releases ask both in one way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.core.measurements.answer import About, Answer, Released
from wpinq.core.measurements.query import commit
from wpinq.core.pricing.quote import Quote
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError
from wpinq.exact import positive
from wpinq.query.explained import Line, explained
from wpinq.query.prepare import prepare
from wpinq.query.select.clauses import branches
from wpinq.query.select.derived import CALL
from wpinq.query.statement import Statement

if TYPE_CHECKING:
    from wpinq.aggregates.expected_noise import ExpectedNoise
    from wpinq.aggregates.scale import Bounds

NUMBERS = {Kind.INT, Kind.FLOAT}


@dataclass(frozen=True)
class QuotedUnion:
    """UNION ALL of answers that was priced and not charged yet.

    Attributes:
        query: Its text.
        parts: Each SELECT, priced at its share: a `QuotedSql`, whose file imports this one.
        notes: What its text asks for and is not done, as clauses.
        losses: None are asked.
    """

    query: str
    parts: Sequence[Any]
    notes: tuple[str, ...] = ()
    losses: list[Quote[Any]] = field(default_factory=list)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Each SELECT, parsed."""
        return tuple(statement for part in self.parts for statement in part.statements)

    @property
    def quotes(self) -> list[Quote[Any]]:
        """All that is charged."""
        return [quote for part in self.parts for quote in part.quotes]

    @property
    def lost(self) -> Fraction | None:
        """The delta of publishing groups, of all SELECTs."""
        return sum((part.lost for part in self.parts if part.lost is not None), Fraction(0)) or None

    @property
    def threshold(self) -> float | None:
        """The noisy count below which each SELECT that publishes its groups leaves them out: the least of them."""
        return min((part.threshold for part in self.parts if part.threshold is not None), default=None)

    @property
    def expected(self) -> list[ExpectedNoise]:
        """The noise of what each SELECT measures, by its number: one column of the answer is of several."""
        return [
            replace(noise, column=f"{noise.column}, SELECT {number}")
            for number, part in enumerate(self.parts, 1)
            for noise in part.expected
        ]

    @property
    def row_names(self) -> list[str]:
        """The columns that no SELECT computes from released numbers, under the names of the first one."""
        from sqlglot import exp

        rows = zip(*(each.items for each in self.statements), strict=True)
        return [
            items[0].label
            for items in rows
            if all(column.name[:4] == "key " for item in items for column in item.node.find_all(exp.Column))
        ]

    @property
    def lines(self) -> list[Line]:
        """What EXPLAIN says of each quote."""
        return [
            (f"SELECT {number}: {text}", *rest)
            for number, part in enumerate(self.parts, 1)
            for text, *rest in part.lines
        ]

    def explained(self, choice: Quote[Any] | None = None) -> Answer:
        """What each measurement would cost, as a table; nothing is charged and no record is read."""
        ranged = [
            (f"SELECT {number}: {text}", half)
            for number, part in enumerate(self.parts, 1)
            for text, half in part.lines_of_ranges
        ]
        return explained(self.query, self.lines, self.threshold, choice=choice, ranged=ranged)

    def charge(self) -> Answer:
        """Charge for all of it or nothing, and answer.

        Raises:
            BudgetError, LedgerError, PlanError: See `commit`; nothing was charged.
        """
        return self.answer(commit(self.quotes))

    def answer(self, made: list[Any]) -> Answer:
        """Answer from the charged queries of `quotes`, in their order."""
        answers, start = [], 0
        for part in self.parts:
            answers.append(part.answer(made[start : start + len(part.quotes)]))
            start += len(part.quotes)
        return stacked(self, answers, made)


def divided(parts: int, **amounts: Any) -> dict[str, Fraction | None]:
    """The share of each SELECT in what is asked.

    Raises:
        ExactnessError: An amount is no number above zero.
    """
    return {
        name: None if value is None else positive(value, f"{CALL}({name}=...)") / parts
        for name, value in amounts.items()
    }


def prepared(
    query: str, tables: Mapping[str, Any], bounds: Mapping[str, Bounds] | None, *, mechanism: str
) -> list[Statement]:
    """Read a query, or each SELECT of a UNION ALL; see `prepare`.

    Raises:
        PlanError: It cannot be read, or its SELECTs do not fit together.
    """
    result = [prepare(each, tables, bounds, mechanism=mechanism) for each in branches(query) or [query]]
    check_columns(result)
    return result


def check_columns(statements: Sequence[Statement]) -> None:
    """Refuse SELECTs whose columns do not fit, before anything is charged.

    Raises:
        PlanError: They are more or fewer, or of other types.
    """
    kinds = [[each.translator().term(item.node).kind for item in each.items] for each in statements]
    for number, other in enumerate(kinds[1:], 2):
        same = len(other) == len(kinds[0]) and all(
            one is two or None in (one, two) or {one, two} <= NUMBERS for one, two in zip(kinds[0], other, strict=True)
        )
        if not same:
            texts = [", ".join("NULL" if kind is None else kind.value for kind in row) for row in (kinds[0], other)]
            raise PlanError(f"{CALL}: the columns of the first SELECT are {texts[0]}, and those of SELECT number "
                            f"{number} are {texts[1]}; a UNION ALL has as many, of the same types.")  # fmt: skip


def stacked(union: QuotedUnion, answers: Sequence[Answer], charged: Sequence[Any]) -> Answer:
    """The rows of all answers, under the names of the first one."""
    bias = tuple(dict.fromkeys([*(clause for answer in answers for clause in answer._about.bias or ()), *union.notes]))

    def released_at(level: Fraction, simultaneous: bool) -> Released:
        released = [answer._find(level, simultaneous) for answer in answers]
        names = released[0][0].columns
        frames = [frame.rename(dict(zip(frame.columns, names, strict=True))) for frame, _ in released]
        ends = {}
        for index, name in enumerate(names):
            parts = [ends_of.get(frame.columns[index]) for frame, ends_of in released]
            if any(parts):
                rows = [frame.height for frame, _ in released]
                blank = [pl.Series([None] * many, dtype=pl.Float64) for many in rows]
                ends[name] = (
                    pl.concat(
                        [blank[at] if part is None else part[0].cast(pl.Float64) for at, part in enumerate(parts)]
                    ),
                    pl.concat(
                        [blank[at] if part is None else part[1].cast(pl.Float64) for at, part in enumerate(parts)]
                    ),
                )
        return pl.concat(frames, how="vertical_relaxed"), ends

    about = About(" ".join(union.query.split()), list(charged), union.lost or Fraction(0), union.threshold, bias)
    return Answer(about, released_at)
