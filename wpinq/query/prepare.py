"""Parse a SELECT, clause by clause, into a `Statement`.

Group keys, WHERE and public joins are functions of one record. HAVING, ORDER BY, LIMIT and expressions over counts are
post-processing of released numbers, so they cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from wpinq.collection import Collection
from wpinq.core.functions.function import named as uniquely
from wpinq.core.functions.sql.terms import Term, shown
from wpinq.core.functions.tree import col, question_size
from wpinq.core.operators.filter import after_bound
from wpinq.core.plan.node import sources, steps
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.privacy_cost import LAPLACE
from wpinq.core.records.schema import Kind
from wpinq.core.runs.epochs import log_of, refuse_windows
from wpinq.errors import PlanError
from wpinq.query.joined import joined_counts
from wpinq.query.outer import inner_of, over
from wpinq.query.select.aggregates import DISTINCT, LISTED, NOISY, Number, read, with_joint_quantiles
from wpinq.query.select.bounds import Limits
from wpinq.query.select.clauses import ROW, label, limits_of, plain_select
from wpinq.query.select.datetimes import TIMES, as_number
from wpinq.query.select.derived import CALL, plainly
from wpinq.query.select.google import google
from wpinq.query.select.grouping import NAME, missing
from wpinq.query.select.joins import bare
from wpinq.query.select.names import OutputNames
from wpinq.query.select.ranged import RangedCounts, ranged_counts
from wpinq.query.select.select_context import Reads, aggregates
from wpinq.query.select.subquery import Scope
from wpinq.query.statement import OutputColumn, Statement, check

if TYPE_CHECKING:
    from wpinq.aggregates.scale import Bounds


def prepare(
    query: str, tables: Mapping[str, Any], bounds: Mapping[str, Bounds] | None = None, *, shaved: bool = True,
    together: bool = True, mechanism: str | None = LAPLACE,
) -> Statement:  # fmt: skip
    """Read a query; nothing is charged, and nothing of protected tables is read.

    Args:
        query: One SELECT over protected tables, subqueries and public tables.
        tables: Protected collections and public tables (what `protect` takes: frames, paths) by name.
        bounds: The least and the largest number of each column or expression that is summed or ranked.
        shaved: Whether a degree distribution may be asked as differences of a `shave`; see `_Select._distribution`.
        together: Whether the quantiles of one expression are one measurement; `within` speaks of each by itself.
        mechanism: What adds noise: with Laplace noise counts of ranges of one column are one measurement, and with
            Gaussian noise all counts where a ledger adds up epsilons. With None each count is one by itself.

    Raises:
        ExactnessError: A bound is no finite number.
        PlanError: It cannot be read, or cannot be private; the message says which part, and why.
    """
    with question_size():
        result = _prepared(query, tables, bounds, shaved=shaved, mechanism=mechanism)
        return replace(result, numbers=with_joint_quantiles(result.numbers)) if together else result


def _prepared(
    query: str, tables: Mapping[str, Any], bounds: Mapping[str, Bounds] | None, *, shaved: bool, mechanism: str | None
) -> Statement:
    select = plain_select(query)
    written = google(query)
    limits = Limits(written.with_bounds(bounds))
    try:
        scope, outer, inner = Scope(dict(tables), limits), None, inner_of(select)
        if inner is not None:
            outer, (select, clause) = select, inner
            scope = scope.within(clause)
        scope = scope.within(select.args.get("with_"))
        result = scope.tables(select)
        if not isinstance(result.base, Collection):
            raise PlanError(f"{CALL}: FROM names public tables alone, of which all is known; name the protected one.")
        statement = _Select(select, result, scope).read(outer, shaved=shaved, mechanism=mechanism)
        refuse_windows(steps(statement.groups._node), CALL)
        if log_of(sources(statement.groups._node)) is not None:
            raise PlanError(
                f"{CALL}: a query is answered at once, and a live source when an epoch closes; measure(...)."
            )
    except RecursionError:
        raise PlanError(f"{CALL}: the query is nested too deeply.") from None
    limits.check()
    written.check_unit(sources(statement.groups._node))
    return replace(statement, notes=written.notes)


class _Select(Reads):
    """Reads the clauses of a query in their logical order."""

    def read(self, outer: Any = None, *, shaved: bool, mechanism: str | None) -> Statement:
        """The query, planned; with the SELECT that is over its answer, if there is one."""
        from sqlglot import exp

        selected = self.selected
        for item in selected:
            if "Star" in (type(item).__name__, type(item.this).__name__ if type(item).__name__ == "Column" else ""):
                raise PlanError(f"{CALL}: SELECT * would show records; select GROUP BY columns and counts.")
        if self.select.args.get("distinct") and not self.select.args.get("group") and not aggregates(selected):
            self.select.set("group", exp.Group(expressions=[exp.Literal.number(n + 1) for n in range(len(selected))]))
        self.group(selected)
        if outer is not None:
            self.select = over(outer, self.select)
            selected, self.outputs = self.selected, OutputNames(self.select.expressions, self.tables.canonical)
        released = [self.by_position(self.outputs.in_ends(entry)) for entry in selected]
        condition = self._having()
        order = tuple(self._order(item, selected) for item in getattr(self.select.args.get("order"), "expressions", ()))
        if not self.counts and not self.numbers and not self.groups:
            raise PlanError(f"{CALL}: the query counts nothing, so it would show records; {LISTED}.")
        names = self.names()
        filtered = self.filtered()
        groups = self.rows(filtered, names)
        stepped, steps_of = self._distribution(names) if shaved else (None, None)
        if steps_of is not None and _nearer(steps_of, groups):
            groups = steps_of
        else:
            stepped = None
        ranges = () if self.groups else ranged_counts(self.counts, self._term, filtered, mechanism)
        counts = self._counts(filtered, groups, names, ranges)
        whole = all(count._node.held.whole for count in counts)
        labels = uniquely([label(expression, whole=whole) for expression in self.select.expressions])
        items = tuple(map(OutputColumn, labels, released))
        numbers = tuple(self._summed(filtered, names, item) for item in self.numbers)
        result = Statement(
            names if self.groups else (),
            groups,
            counts,
            numbers,
            items,
            condition,
            order,
            limits_of(self.select),
            bool(self.select.args.get("distinct")),
            stepped,
            {"key": (*self.groups, exp.column(NAME)), "count": tuple(self.counts), "number": tuple(self.numbers)},
            tuple(missing(self.groups, chosen) for chosen in self.sets),
            ranged=ranges,
            joined=None if self.sets else joined_counts(counts, mechanism),
        )
        check(result)
        return result

    def _having(self) -> Any:
        having = self.select.args.get("having")
        return self.by_position(self.outputs.in_expression(having.this, self.groups)) if having else None

    def _term(self, node: Any) -> Term:
        return self.tables.translator.term(self.canonical(node))

    def _distribution(self, names: tuple[str, ...]) -> tuple[str | None, Collection | None]:
        """The count among the keys of a degree distribution, and the plan that it is asked of.

        `SELECT c, COUNT(*) FROM (SELECT page, COUNT(*) AS c FROM views GROUP BY page) GROUP BY c` asks how many pages
        have c records. A `shave` has as many records of index c as there are pages of c records or more, so the answer
        is the difference of two neighbours. One record moves one of these by 1, while it moves two of the counts that
        `group_by` would give: with half of the noise each, a difference has half of the variance. How many people have
        c records is another matter: a person is in one count, and in as many indices as it has records. So the plan
        that has less noise is taken, which follows from what one unit moves.
        """
        known, where = self.tables.degrees, self.select.args.get("where")
        counted = (
            [type(count.this).__name__ for count in self.counts] == ["Star"] and not self.numbers and not self.sets
        )
        if known is None or where or not counted or any(type(key).__name__ != "Column" for key in self.groups):
            return None, None
        columns_read = [key.name for key in self.groups]
        positions = [position for position, name in enumerate(columns_read) if name in known.counts]
        if len(positions) != 1 or not set(columns_read) <= known.counts | known.keys.keys():
            return None, None
        steps_of = known.read.shave()
        index = steps_of.columns[-1]
        columns = [col(known.keys.get(key, index)).alias(name) for key, name in zip(columns_read, names, strict=True)]
        result: Collection = steps_of.map(columns)
        return names[positions[0]], result

    def _order(self, node: Any, selected: list[Any]) -> tuple[Any, bool, bool]:
        inner = self.numbered(node.this, selected)
        inner = inner if inner is not bare(node.this) else self.outputs.in_order_by(inner)
        descending = bool(node.args.get("desc"))
        first = node.args.get("nulls_first")
        return self.by_position(self.outputs.in_ends(inner)), descending, descending if first is None else bool(first)

    def _counts(
        self, filtered: Collection, groups: Collection, names: tuple[str, ...], ranges: Sequence[RangedCounts]
    ) -> tuple[Collection, ...]:
        """What is measured for each count."""
        together = {place: each.records for each in ranges for place in each.spans}
        return tuple(
            together[place] if place in together else self._counted(filtered, groups, names, count)
            for place, count in enumerate(self.counts)
        )

    def _counted(self, filtered: Collection, groups: Collection, names: tuple[str, ...], count: Any) -> Collection:
        """The collection whose bins are the groups and whose weights are the counts."""
        what = count.this
        if type(what).__name__ == "Star" and not count.expressions:
            return groups
        distinct = type(what).__name__ == "Distinct"
        expressions = what.expressions if distinct else [what]
        if (distinct and what.args.get("on")) or count.expressions or not expressions:
            raise PlanError(f"{CALL}: {shown(count)}: {LISTED}.")
        terms = [self.tables.translator.term(self.canonical(item)).value for item in expressions]
        needed = terms[: what.meta[ROW]] if ROW in what.meta else terms
        if needed:
            filtered = after_bound(filtered, reduce(and_, [term.is_not_null() for term in needed]))
        if not distinct:
            rows: Collection = self.rows(filtered, names)
            return rows
        counted = [term.alias(f"counted {index}") for index, term in enumerate(terms)]
        pairs: Collection = self.rows(filtered, names, *counted).distinct()
        return pairs.map([col(name) for name in pairs.columns[: -len(counted)]])

    def _summed(self, filtered: Collection, names: tuple[str, ...], number: Any) -> Number:
        """The group keys and the number of each record."""
        what, distinct, measured, ask = read(number)
        *_, name = uniquely([*names, what.name if type(what).__name__ == "Column" else "number"])
        term, bounds = self.tables.translator.term(what), self.declared.of(number, what)
        value, kind = term.value, Kind.FLOAT
        if term.kind in TIMES and measured not in NOISY:
            value, bounds = as_number(term, bounds, plainly(number))
            kind = term.kind or kind
        records = self.rows(filtered, names, value.alias(name)) if self.groups else filtered.map([value.alias(name)])
        if distinct and measured not in ("min", "max"):
            records, measured = records.distinct(), f"{measured}{DISTINCT}"
        return Number(records, (measured, what), ask, bounds, plainly(number), kind)


def _nearer(steps_of: Collection, groups: Collection) -> bool:
    """Whether differences of steps, which are two measured bins each, are nearer to the truth than groups are."""
    surveys = [Survey.of(collection._node) for collection in (steps_of, groups)]
    if any(survey.unbounded for survey in surveys):  # of which the query has none, or is refused
        return False
    step, group = (survey.scale(Fraction(1)) for survey in surveys)
    return group**2 > 2 * step**2
