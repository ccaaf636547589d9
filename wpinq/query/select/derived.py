"""What a subquery makes: records, and what is known of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from wpinq.collection import Collection
from wpinq.core.functions.sql.bind import column
from wpinq.core.functions.sql.terms import Term, shown
from wpinq.core.functions.tree import col
from wpinq.core.plan.stability import Survey
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import PlanError

CALL = "sql"
Rows: TypeAlias = Any
"""A `Collection`, or `PublicRows`, which has those of its methods that a subquery uses."""
Reach: TypeAlias = tuple[Fraction, Fraction]
"""The least and the largest number that an expression can have."""


@dataclass(frozen=True)
class Degrees:
    """A subquery that counts the records of each key, and nothing else: `SELECT page, COUNT(*) AS c .. GROUP BY page`.

    Attributes:
        read: The keys of each record.
        keys: The subquery's columns that are keys, with the names of these in `read`.
        counts: Its columns that are the count.
    """

    read: Rows
    keys: Mapping[str, str]
    counts: frozenset[str]


@dataclass(frozen=True)
class Derived:
    """What a subquery makes.

    Attributes:
        rows: Its records.
        reach: The range of a column, where declared bounds say it.
        computed: Its columns that are none of a given table under their own name.
        degrees: How it counts records by key, if that is all it does.
    """

    rows: Rows
    reach: Mapping[str, Reach | None] = field(default_factory=dict)
    computed: frozenset[str] = frozenset()
    degrees: Degrees | None = None

    def renamed(self, alias: Any) -> Derived:
        """With the names of columns that an alias gives: `AS t (page, n)`.

        Raises:
            PlanError: They are more than its columns, or alike.
        """
        aliases = [column.name for column in alias.args.get("columns") or ()] if alias is not None else []
        if not aliases:
            return self
        before = self.rows.columns
        after = [*aliases, *before[len(aliases) :]]
        if len(after) > len(before) or len(set(after)) < len(before):
            raise PlanError(f"{CALL}: {shown(alias)}: name no more columns than there are, each by its own name.")
        rows = self.rows.map([col(old).alias(new) for old, new in zip(before, after, strict=True)])
        reach = {new: self.reach.get(old) for old, new in zip(before, after, strict=True)}
        return Derived(rows, reach, frozenset(after))

    def combined(self, other: Derived, node: Any) -> Derived:
        """UNION, INTERSECT and EXCEPT, with ALL and without, column by column as in SQL.

        ALL counts records as often as they are there: UNION adds weights up, INTERSECT takes the smaller one, and
        EXCEPT what is left of the first. Without ALL each record is there once.

        Raises:
            PlanError: The columns differ, or one side is public.
        """
        kind, names, theirs = type(node).__name__, self.rows.columns, other.rows.columns
        if not (isinstance(self.rows, Collection) and isinstance(other.rows, Collection)):
            raise PlanError(f"{CALL}: {shown(node)}: {kind.upper()} is of protected tables; unite public ones "
                            "beforehand, or compare with IN (SELECT ...).")  # fmt: skip
        if len(names) != len(theirs):
            raise PlanError(
                f"{CALL}: {shown(node)}: both sides of {kind.upper()} have as many columns, of the same types."
            )
        second = other.rows.map([col(old).alias(new) for old, new in zip(theirs, names, strict=True)])
        kinds = [", ".join(schema_of(table)[name].kind.value for name in names) for table in (self.rows, second)]
        if kinds[0] != kinds[1]:
            raise PlanError(
                f"{CALL}: {shown(node)}: its columns are {kinds[0]} on one side and {kinds[1]} on the other; cast them."
            )
        once = bool(node.args.get("distinct"))
        if kind == "Union":
            united: Collection = self.rows.concat(second)
            rows = united.distinct() if once else united
        else:
            sides = [side.distinct() if once else side for side in (self.rows, second)]
            rows = common(*sides) if kind == "Intersect" else sides[0].antijoin(sides[1], on=names)
        reach = {new: hull(self.reach.get(new), other.reach.get(old)) for old, new in zip(theirs, names, strict=True)}
        return Derived(rows, reach, frozenset(names))


def common(first: Collection, second: Collection) -> Collection:
    """The records of both, as often as both have them: by the one of two equal plans that a unit moves less.

    How far a person moves the records whose key another collection has is known where the key names the person, and
    how far one record does, where weights are compared.
    """
    plans = [first.intersect(second), first.semijoin(second, on=first.columns)]
    surveys = [Survey.of(plan._node) for plan in plans]
    if any(survey.unbounded for survey in surveys):
        return plans[0]
    scales = [survey.scale(Fraction(1)) for survey in surveys]
    return plans[scales.index(min(scales))]


def hull(first: Reach | None, second: Reach | None) -> Reach | None:
    """What holds both ranges."""
    return None if first is None or second is None else (min(first[0], second[0]), max(first[1], second[1]))


def schema_of(rows: Rows) -> Schema:
    """The columns of protected or public rows."""
    schema: Schema = rows._node.schema if isinstance(rows, Collection) else rows.schema
    return schema


def identifier(name: str) -> Any:
    """A name of a column, as it is spelled."""
    from sqlglot import exp

    return exp.column(name, quoted=True)


def base_columns(rows: Rows) -> dict[str, Term]:
    """The columns of rows, by name."""
    schema = schema_of(rows)
    result = {}
    for item in schema:
        any_ = item.kind is Kind.ANY
        result[item.name] = (
            Term(col(item.name), Kind.ANY, item.name) if any_ else column(identifier(item.name), schema, CALL)
        )
    return result


def plainly(node: Any) -> str:
    """An expression with canonical columns, as a person would write it over one table."""
    from sqlglot import exp

    def bare(part: Any) -> Any:
        if type(part).__name__ != "Column":
            return part
        return exp.column(part.name, quoted=not (part.name.isidentifier() and part.name.islower()))

    return shown(node.transform(bare))
