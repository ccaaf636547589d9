"""Random SQL over one to three tables, with and without one privacy unit: nothing but true histograms may differ.

A case is tables of one ledger or of several, of records or of people, and one SELECT over them: joins, subqueries, WITH,
UNION, IN and EXISTS, HAVING, groups of groups. What is refused, priced and planned is the same for neighbours, and every
true histogram moves by no more than the quote says of the data sets that the unit is in; what all of it loses is no more
than the ledgers of these were charged.
"""

# ruff: noqa: E501

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
from attacks.fuzz.fuzzer import Fuzzer
from attacks.fuzz.judge import DITHER, dithered, moves
from attacks.fuzz.plant import Plant
from attacks.fuzz.run import QuotedAggregate, ledgers_in_memory, silent, watched
from attacks.fuzz.shapes import LEAVES, SHAPES, Texts

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.operators.concat import Sum
from wpinq.core.operators.group_by import GroupBy as GroupSizes
from wpinq.core.operators.group_columns import GroupColumns
from wpinq.core.plan.node import sources, steps
from wpinq.errors import PlanError, WpinqError
from wpinq.query import quoted
from wpinq.query.select.subquery import Scope

SECRET = Secret(bytes(range(32)))
COLUMNS = {"user": str, "t": str, "n": int, "x": float}
DONE = {"pairs": 0, "answered": 0, "refused": 0, "histograms": 0, "that moved": 0}
CONSTANTS = {**LEAVES, "t": ["t", "'a'", "'b c'"], "n": ["n", "1", "n"], "x": ["x", "0.5"], "b": ["n > 1", "t = 'a'", "x IS NULL"],
             "c": ["TIMESTAMP '2020-01-01 10:00'"], "i": ["TIMESTAMPTZ '2020-01-01 10:00+00'"], "d": ["DATE '2020-02-29'"]}  # fmt: skip
Row = tuple[str | None, str | None, int | None, float | None]


@dataclass(frozen=True)
class Given:
    """A table of a case: its rows, the arguments of its unit, and the number of its ledger."""

    name: str
    rows: tuple[Row, ...]
    unit: dict[str, Any] | None
    ledger: int


@dataclass(frozen=True)
class Question:
    """A query, and how it is asked."""

    text: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Tables, the neighbour's, the names of those that differ, and a query."""

    tables: list[Given]
    other: list[Given]
    differ: list[str]
    asked: Question


# ---- cases


def grow(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    person, one = rng.random() < 0.6, rng.random() < 0.5
    tables = []
    for name in "vwy"[: rng.choice([1, 2, 2, 3])]:
        unit = None
        if person:
            unit = {"at_most": rng.choice([1, 2, 3])} | ({"per": ("t", 1)} if rng.random() < 0.3 else {})
            unit = unit if rng.random() < 0.8 else {}
        tables.append(Given(name, rows(rng), unit, 0 if one else len(tables)))
    if person:
        gone = rng.choice([row[0] for table in tables for row in table.rows])
        other = [replace(one, rows=tuple(row for row in one.rows if row[0] != gone)) for one in tables]
    else:
        at, place = rng.randrange(len(tables)), rng.randrange(8)
        other = [replace(one, rows=tuple(row for p, row in enumerate(one.rows) if (number, p % len(one.rows)) != (at, place % len(one.rows))))
                 for number, one in enumerate(tables)]  # fmt: skip
    differ = [one.name for one, two in zip(tables, other, strict=True) if one.rows != two.rows]
    return Case(tables, other, differ, question(rng, [one.name for one in tables]))


def rows(rng: random.Random) -> tuple[Row, ...]:
    return tuple(
        (rng.choice(["u1", "u2", "u3", "u4", None] if rng.random() < 0.1 else ["u1", "u2", "u3", "u4"]),
         rng.choice(["a", "b", "b c", "", None]), rng.choice([0, 1, 2, 3, None]), rng.choice([0.0, 0.5, -1.5, None]))
        for _ in range(rng.randrange(1, 10))
    )  # fmt: skip


def question(rng: random.Random, names: list[str]) -> Question:
    """A SELECT over rows that are made of the tables in some levels."""
    texts = Texts(rng, SHAPES, CONSTANTS, 120)
    inner = rng.choice(names)
    parts, source = [], inner
    for level in range(rng.choice([0, 1, 1, 1, 2, 3])):
        made = made_of(rng, texts, source, names)
        if rng.random() < 0.5:
            parts.append(f"q{level} AS ({made})")
            source = f"q{level}"
        else:
            source = f"({made}) AS s{level}"
    where = f" WHERE {condition(rng, texts, names)}" if rng.random() < 0.5 else ""
    joined = ""
    if rng.random() < 0.25:
        joined = f" JOIN {rng.choice(names)} AS o USING (user)" if rng.random() < 0.5 else " JOIN p ON t = p.page"
    key = rng.choice(["t", "n", "n", "n", "user", texts.tree("t", 1), texts.tree("n", 1)])
    told = rng.choice(["COUNT(*)", "COUNT(*)", f"COUNT({texts.tree('t', 1)})", "COUNT(DISTINCT user)", "COUNT(DISTINCT (t, n))",
                       f"COUNT(*) FILTER (WHERE {texts.tree('b', 1)})"])  # fmt: skip
    numbers = source in names and not joined and rng.random() < 0.4
    told = rng.choice(["SUM(n)", "AVG(x)", "MEDIAN(n)", "MAX(n)", "VARIANCE(x)", "SUM(n), AVG(n)"]) if numbers else told
    grouped = rng.random() < 0.6
    selected = f"SELECT {key} AS k, {told} AS c" if grouped else f"SELECT {told} AS c"
    after = (
        rng.choice([" GROUP BY 1", " GROUP BY 1", " GROUP BY 1 HAVING COUNT(*) > 2", " GROUP BY 1 ORDER BY 2 LIMIT 2"])
        if grouped
        else ""
    )
    head = f"WITH {', '.join(parts)} " if parts else ""
    options: dict[str, Any] = {"epsilon": rng.choice([1, 4, 40])}
    if numbers:
        options["bounds"] = {"x": (-2, 2)} if "(x)" in told else {"n": (0, 3)}
    if grouped:
        options["delta"] = rng.choice(["1e-3", "1e-6"])
    return Question(f"{head}{selected} FROM {source}{joined}{where}{after}", options)


def made_of(rng: random.Random, texts: Texts, source: str, names: list[str]) -> str:
    """A SELECT that makes the same columns of a table."""
    other = rng.choice(names)
    t, n = texts.tree("t", 1), texts.tree("n", 1)
    where = f" WHERE {condition(rng, texts, names)}" if rng.random() < 0.4 else ""
    having = rng.choice(["", "", " HAVING COUNT(*) > 1", " HAVING MAX(n) > 1"])
    if (later := random.Random(f"{source} {t} {n}")).random() < 0.2:  # a draw of its own, so that seeds of plants stay
        return later.choice([
            f"SELECT user, t, n, x FROM {source} {later.choice(['INTERSECT', 'EXCEPT', 'EXCEPT ALL', 'INTERSECT ALL'])} SELECT user, t, {n} AS n, x FROM {other}",
            f"SELECT user, t, ROW_NUMBER() OVER (PARTITION BY user ORDER BY {n}, t) AS n, x FROM {source}{where}",
            f"SELECT user, LAG(t) OVER (PARTITION BY user ORDER BY n) AS t, RANK() OVER (PARTITION BY t, user ORDER BY x) AS n, x FROM {source}",
            f"SELECT user, t, n, x FROM {source} QUALIFY COUNT(*) OVER (PARTITION BY user ORDER BY n) <= 2",
        ])  # fmt: skip
    if rng.random() < 0.4:  # what a unit changes is another record of the same group
        return f"SELECT user, MAX(t) AS t, {rng.choice(['COUNT(*)', 'SUM(n)', 'COUNT(DISTINCT t)'])} AS n, MIN(x) AS x FROM {source} GROUP BY user"
    return rng.choice([
        f"SELECT user, {t} AS t, {n} AS n, x FROM {source}{where}",
        f"SELECT DISTINCT user, {t} AS t, n, x FROM {source}{where}",
        f"SELECT user, t, {n} AS n, x FROM {source} UNION ALL SELECT user, t, n, x FROM {other}",
        f"SELECT user, t, n, x FROM {source} UNION SELECT user, {t} AS t, n, x FROM {other}",
        f"SELECT user, t, COUNT(*) AS n, MAX(x) AS x FROM {source}{where} GROUP BY user, t{having}",
        f"SELECT MIN(user) AS user, t, SUM(n) AS n, AVG(x) AS x FROM {source}{where} GROUP BY t{having}",
        f"SELECT user, MAX(t) AS t, COUNT(DISTINCT n) AS n, MIN(x) AS x FROM {source} GROUP BY user{having}",
        f"SELECT user, t, n, x FROM {source}{where}",
    ])  # fmt: skip


def condition(rng: random.Random, texts: Texts, names: list[str]) -> str:
    other, word = rng.choice(names), rng.choice(["", "", "NOT "])
    return rng.choice([
        texts.tree("b", 2), texts.tree("b", 1), texts.tree("b", 1), f"user {word}IN (SELECT user FROM {other} WHERE {texts.tree('b', 1)})",
        texts.tree("b", 3), "t IN (SELECT page FROM p)",
        f"{word}EXISTS (SELECT 1 FROM {other} AS e WHERE e.t = t)", f"({texts.tree('b', 1)}) AND user IN (SELECT user FROM {other})",
    ])  # fmt: skip


# ---- what is seen


@dataclass
class Seen:
    """What came of a case: what is told before it is answered, and every histogram."""

    told: list[Any]
    asked: list[QuotedAggregate]
    sensitivities: dict[str, list[tuple[str, Fraction]]]
    spent: dict[str, tuple[Fraction, Fraction]]
    wrong: str = ""


def run(tables: list[Given], asked: Question) -> Seen:
    """Ask the query of tables."""
    with ledgers_in_memory(), silent() as said, watched() as trace:
        given: dict[str, Any] = {"p": pl.DataFrame({"page": ["a", "b"], "size": [1, 2]})}
        for one in tables:
            unit = {} if one.unit is None else {"unit": wpinq.users("user", **one.unit)}
            given[one.name] = wpinq.protect(
                list(one.rows), columns=COLUMNS, secret=SECRET, name=one.name, version="1", budget=10**9, delta="0.9",
                ledger=Path(f"/nowhere/ledger{one.ledger}"), **unit,
            )  # fmt: skip
        seen = Seen([], trace.asked, {}, {})
        try:
            made = quoted(asked.text, given, **asked.options)
            told = [(str(one.epsilon), str(one.delta), str(one.scale), [type(step).__name__ for step in steps(one.node)],
                     one.node.schema, [str(move) for move in one.sensitivities.values()]) for one in made.quotes]  # fmt: skip
            seen.told += told
            for one in made.quotes:
                seen.sensitivities[one.question] = [(data.name, move) for data, move in one.sensitivities.items()]
            answer = made.charge()
            seen.told.append(answer.columns)
            for each in trace.asked:
                with suppress(PlanError):  # of aggregates in groups those that others stand for are never charged
                    each.question._settled()
        except WpinqError as error:
            seen.told.append((type(error).__name__, str(error)))
            if trace.asked:
                seen.wrong = f"charged, and no answer: {error}"
        except Exception as error:
            seen.wrong = f"no error of wpinq: {type(error).__name__}"
        for one in tables:
            seen.spent[one.name] = sources(given[one.name]._node)[0].ledger.spent()
    if said[0]:
        seen.wrong = f"written to standard error: {said[0][:200]}"
    return seen


def judge(case: Case) -> list[str]:
    """Compare neighbours; give what is wrong."""
    one, two = run(case.tables, case.asked), run(case.other, case.asked)
    DONE["pairs"] += 1
    DONE["answered" if one.asked else "refused"] += 1
    return [f"{text}: {case.asked.text}" for text in compared(case.tables, case.differ, one, two)]


def compared(tables: list[Given], differ: list[str], one: Seen, two: Seen) -> Iterator[str]:
    if one.wrong or two.wrong:
        yield one.wrong or two.wrong
    if one.told != two.told or one.spent != two.spent:
        yield f"what is told depends on the records: {one.told} and {two.told}"
        return
    total, slack, done = Fraction(0), Fraction(0), set()
    books = {table.ledger for table in tables if table.name in differ}  # people move all tables of a ledger together
    together = {*differ, *(table.name for table in tables if table.unit is not None and table.ledger in books)}
    for mine, others in zip(one.asked, two.asked, strict=True):
        if mine.question.question in done or mine.question.question not in one.sensitivities or mine.content is None:
            continue
        done.add(mine.question.question)
        DONE["histograms"] += 1
        moved, grain = moves(mine, others), DITHER * dithered(mine)
        DONE["that moved"] += moved > 0
        stated = sum(
            (move for name, move in one.sensitivities[mine.question.question] if name in together), Fraction(0)
        )
        if moved > stated + grain:
            yield f"a histogram moves by {float(moved):.6g}, and {float(stated):.6g} is stated, of {differ}"
        total, slack = total + moved / mine.question.scale, slack + grain / mine.question.scale
    ledgers = {table.ledger: one.spent[table.name][0] for table in tables if table.name in differ}
    if total > sum(ledgers.values()) + slack:
        yield f"{float(total):.6g} is lost in all, and {float(sum(ledgers.values())):.6g} was charged"


# ---- old bugs


def groups_once() -> list[Any]:
    """A group moves as far as its records: half of what it does."""
    once = property(lambda self: (Fraction(1),))
    return [patch.object(GroupColumns, "stability", once), patch.object(GroupSizes, "stability", once)]


def sums_once() -> list[Any]:
    """A table that is read twice is paid for once."""

    def stability(self: Sum) -> tuple[Fraction, ...]:
        again = sources(self.left) == sources(self.right)
        return Fraction(1), Fraction(0 if again else 1)

    return [patch.object(Sum, "stability", property(stability))]


def looks() -> list[Any]:
    """A subquery without a row is told apart when it is read."""
    real = Scope.derived

    def derived(self: Scope, node: Any) -> Any:
        for table in node.find_all(import_module("sqlglot").exp.Table):
            found = self.given.get(table.name)
            reader = sources(found._node)[0].reader if isinstance(found, wpinq.Collection) else None
            if reader is not None and sum(frame.height for frame in reader.batches(["t"])) < 3:
                raise PlanError("sql: a subquery has too few rows.")
        return real(self, node)

    return [patch.object(Scope, "derived", derived)]


PLANTS = {
    "groups_once": Plant("a group moves as far as its records", groups_once, 177),
    "sums_once": Plant("a table that is read twice is paid for once", sums_once, 145),
    "looks": Plant("a subquery without a row is told apart", looks, 13),
}
FUZZER = Fuzzer("queries", grow, judge, PLANTS, seen=DONE)
