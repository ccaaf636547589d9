"""Random SQL at a huge epsilon, where there is as good as no noise: its answer is that of PostgreSQL, or of DuckDB.

A case is one SELECT over tables of people, public tables and subqueries. Tables hold canonical values: no NaN and no -0.0,
which wpinq reads as NULL and 0. A query on which a database raises (an overflow, a division by zero) is no case: here such
a value is NULL. 0.5 is cast, for both databases have decimals. Right is an answer that one of the two databases gives:
DuckDB has its own words for some functions.
PostgreSQL is asked where a server can be started, see `.ci/postgres`.
"""

# ruff: noqa: E501

from __future__ import annotations

import atexit
import datetime as dt
import math
import random
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any
from unittest.mock import patch

import duckdb
import polars as pl
from attacks.fuzz.fuzzer import Fuzzer
from attacks.fuzz.plant import Plant
from attacks.fuzz.shapes import Texts

import wpinq
from wpinq.core.functions.sql.bind import RULES
from wpinq.core.functions.sql.terms import Term
from wpinq.errors import WpinqError
from wpinq.query.select import frames as framed
from wpinq.query.select.derived import Derived

EPSILON = 10**12
DONE = {"answered": 0, "refused": 0, "raised there": 0}
BOUNDS = {"n": (-9, 9), "x": (-9, 9)}
OF_POSTGRESQL = ("concat(", "round(")
"""Functions that wpinq reads as PostgreSQL does and DuckDB does not: of a boolean, and of a half."""
BOTH = 2
DATA = 40
"""Cases that ask the same tables."""
LEAVES = {
    "t": ["t", "t", "t", "'a'", "'b c'", "NULL"], "n": ["n", "n", "n", "3", "-2", "NULL"], "x": ["x", "x", "CAST(0.5 AS DOUBLE PRECISION)", "CAST(-1.5 AS DOUBLE PRECISION)"],
    "b": ["b", "n > 1", "t = 'a'", "x IS NULL"], "c": ["c", "TIMESTAMP '2020-01-31 10:00:00'"], "d": ["d", "DATE '2020-02-29'"],
}  # fmt: skip
SHAPES: dict[str, list[str]] = {
    "t": ["{t} || {t}", "lower({t})", "upper({t})", "trim({t})", "ltrim({t}, 'a')", "left({t}, 2)", "right({t}, -1)",
          "substring({t} from 2 for 2)", "split_part({t}, ' ', 1)", "replace({t}, 'a', 'bb')", "concat({t}, {n}, {b})",
          "coalesce({t}, {t})", "nullif({t}, {t})", "greatest({t}, {t})", "least({t}, 'b')", "CASE WHEN {b} THEN {t} ELSE {t} END",
          "CASE {n} WHEN 1 THEN {t} WHEN 2 THEN 'two' END", "CAST({n} AS TEXT)", "CAST({d} AS TEXT)", "reverse({t})"],
    "n": ["{n} + {n}", "{n} - {n}", "{n} * {n}", "{n} / 2", "{n} % 3", "- {n}", "abs({n})", "length({t})", "strpos({t}, 'b')",
          "coalesce({n}, {n}, 0)", "nullif({n}, {n})", "greatest({n}, {n})", "least({n}, 2)", "CASE WHEN {b} THEN {n} ELSE {n} END",
          "CAST({x} AS BIGINT)", "CAST({b} AS INTEGER)", "CAST(extract(year from {c}) AS BIGINT)", "CAST(extract(dow from {d}) AS BIGINT)"],
    "x": ["{x} + {n}", "{x} - {x}", "{x} * {x}", "{x} / 2.0", "- {x}", "abs({x})", "floor({x})", "ceil({x})", "round({x})", "trunc({x})",
          "sign({x})", "sqrt(abs({x}))", "coalesce({x}, {x})", "nullif({x}, {x})", "greatest({x}, {x})", "CAST({n} AS DOUBLE PRECISION)",
          "CASE WHEN {b} THEN {x} END"],
    "b": ["{n} = {n}", "{t} <> {t}", "{x} < {x}", "{n} <= {n}", "{t} > {t}", "{c} >= {c}", "{d} < {d}", "{t} IS DISTINCT FROM {t}",
          "{n} IS NOT DISTINCT FROM {n}", "{b} AND {b}", "{b} OR {b}", "NOT {b}", "{t} IS NULL", "{b} IS NOT TRUE", "{b} IS FALSE",
          "{n} BETWEEN {n} AND {n}", "{t} NOT BETWEEN 'a' AND {t}", "{t} IN ('a', 'b', NULL)", "{n} NOT IN ({n}, 3)", "{t} LIKE 'a%'",
          "{t} NOT LIKE '%!_%' ESCAPE '!'", "{t} ILIKE '%B%'", "{n} BETWEEN SYMMETRIC 2 AND {n}", "coalesce({b}, {b})",
          "CASE WHEN {b} THEN {b} ELSE {b} END", "starts_with({t}, {t})"],
    "c": ["{c} + INTERVAL '1 month'", "{c} - INTERVAL '3 days'", "date_trunc('month', {c})", "coalesce({c}, {c})", "CASE WHEN {b} THEN {c} END"],
    "d": ["CAST({c} AS DATE)", "coalesce({d}, {d})", "nullif({d}, {d})", "least({d}, {d})"],
}  # fmt: skip
COLUMNS = {
    "u": pl.Int64, "t": pl.String, "n": pl.Int64, "x": pl.Float64, "b": pl.Boolean, "c": pl.Datetime("us"),
    "d": pl.Date,
}  # fmt: skip
STARTS = ["UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW"]
STOPS = ["CURRENT ROW", "1 FOLLOWING", "3 FOLLOWING", "UNBOUNDED FOLLOWING"]
ALL = "u, t, n, x, b, c, d"
PUBLIC = pl.DataFrame({"page": ["a", "b", "b c", "Z"], "size": [1, 2, None, 4]})


@dataclass(frozen=True)
class Case:
    """A query, in the parts that other queries are made of.

    Attributes:
        data: Which tables.
        head: WITH, or nothing.
        source: FROM and WHERE.
        keys: The group keys.
        grouped: GROUP BY, as it is written; nothing without keys.
        selected: The aggregates.
        after: HAVING, and ORDER BY of all keys.
    """

    data: int
    head: str
    source: str
    keys: tuple[str, ...]
    grouped: str
    selected: tuple[str, ...]
    after: str

    @property
    def text(self) -> str:
        """The query."""
        return self._over([f"{key} AS k{index}" for index, key in enumerate(self.keys)], self.after)

    @property
    def groups(self) -> str:
        """The query of its groups."""
        sets = [f"GROUPING({', '.join(self.keys)}) AS g"] if "CUBE" in self.grouped or "ROLLUP" in self.grouped else []
        return self._over([*(f"{key} AS k{index}" for index, key in enumerate(self.keys)), *sets], "", ())

    def _over(self, keys: list[str], after: str, selected: tuple[str, ...] | None = None) -> str:
        chosen = self.selected if selected is None else selected
        items = [*keys, *(f"{item} AS a{index}" for index, item in enumerate(chosen))]
        return f"{self.head}SELECT {', '.join(items)} FROM {self.source}{self.grouped}{after}"


# ---- cases


def grow(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    texts = Texts(rng, SHAPES, LEAVES, 160)
    parts, source = [], "v"
    for level in range(rng.choice([0, 0, 1, 1, 2])):
        made = made_of(rng, texts, source)
        if rng.random() < 0.4:
            parts.append(f"q{level} AS ({made})")
            source = f"q{level}"
        else:
            source = f"({made}) AS s{level}"
    joined = rng.choice(
        ["", "", "", "", " JOIN p ON t = page", " LEFT JOIN p ON t = page AND size > 1", " JOIN w2 USING (u)"]
    )
    where = f" WHERE {condition(rng, texts, source)}" if rng.random() < 0.6 else ""
    kinds = [rng.choice(["t", "n", "t", "n", "b", "d", "c", "x"]) for _ in range(rng.choice([0, 1, 1, 1, 2, 2]))]
    keys = tuple(dict.fromkeys(texts.tree(kind, rng.choice([0, 1, 2])) for kind in kinds))
    keys = tuple(
        key
        for key in keys
        if any(f"{name}" in key for name in "tnxbcd")
        and not key.strip("()").startswith(("'", "NULL", "-2", "3", "CAST(0.5", "CAST(-1.5", "DATE", "TIMESTAMP '"))
    )
    several = len(keys) == 2 and rng.random() < 0.3
    grouped = (
        f" GROUP BY {rng.choice(['CUBE', 'ROLLUP'])} ({', '.join(keys)})"
        if several
        else f" GROUP BY {', '.join(keys)}"
        if keys
        else ""
    )
    selected = tuple(rng.choice([
        "COUNT(*)", f"COUNT({texts.tree('t', 1)})", "COUNT(DISTINCT t)", "COUNT(DISTINCT (t, n))", "COUNT(DISTINCT u)",
        f"COUNT(*) FILTER (WHERE {texts.tree('b', 1)})", f"COALESCE(SUM(CASE WHEN {texts.tree('b', 1)} THEN 1 ELSE 0 END), 0)", "COUNT(*) + COUNT(n)",
    ]) for _ in range(rng.choice([1, 1, 2])))  # fmt: skip
    after = ""
    if keys and rng.random() < 0.3:
        after = rng.choice(
            [
                " HAVING COUNT(*) > 2",
                " HAVING COUNT(*) BETWEEN 2 AND 5",
                f" HAVING COUNT(*) > 1 AND {keys[0]} IS NOT NULL",
            ]
        )
    return Case(
        seed // DATA,
        f"WITH {', '.join(parts)} " if parts else "",
        f"{source}{joined}{where}",
        keys,
        grouped,
        selected,
        after,
    )


def made_of(rng: random.Random, texts: Texts, source: str) -> str:
    """A SELECT that makes the same columns of a table."""
    t, n, x, b = (texts.tree(kind, rng.choice([1, 2])) for kind in "tnxb")
    where = f" WHERE {condition(rng, texts, source)}" if rng.random() < 0.5 else ""
    having = rng.choice(["", "", " HAVING COUNT(*) > 1", " HAVING MAX(n) > 1 OR COUNT(DISTINCT t) > 1"])
    order = rng.choice(["n, t, x, b, c, d", "x DESC, n, t, b, c, d", "d, c, b, x, t, n DESC"])
    frame = f"{rng.choice(['ROWS', 'ROWS', 'GROUPS'])} BETWEEN {rng.choice(STARTS)} AND {rng.choice(STOPS)}"
    peers = rng.choice(
        [
            "RANGE CURRENT ROW",
            "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            "GROUPS 1 PRECEDING",
            "GROUPS BETWEEN 2 PRECEDING AND 1 PRECEDING",
        ]
    )
    return rng.choice([
        f"SELECT u, {t} AS t, {n} AS n, {x} AS x, {b} AS b, c, d FROM {source}{where}",
        f"SELECT DISTINCT u, {t} AS t, n, x, {b} AS b, c, d FROM {source}{where}",
        f"SELECT {ALL} FROM {source} UNION ALL SELECT {ALL} FROM w",
        f"SELECT {ALL} FROM {source} UNION SELECT u, t, {n} AS n, x, b, c, d FROM w",
        f"SELECT {ALL} FROM {source} {rng.choice(['INTERSECT', 'EXCEPT', 'INTERSECT ALL', 'EXCEPT ALL'])} SELECT {ALL} FROM v WHERE {b}",
        f"SELECT u, t, COUNT(*) AS n, MAX(x) AS x, MIN(n) > 1 AS b, MAX(c) AS c, MIN(d) AS d FROM {source}{where} GROUP BY u, t{having}",
        f"SELECT u, MIN(t) AS t, COUNT(DISTINCT n) AS n, MIN(x) AS x, COUNT(*) > 2 AS b, MIN(c) AS c, MAX(d) AS d FROM {source} GROUP BY u{having}",
        f"SELECT u, t, ROW_NUMBER() OVER (PARTITION BY u ORDER BY {order}) AS n, x, b, c, d FROM (SELECT DISTINCT {ALL} FROM {source}) AS o",
        f"SELECT u, LAG(t) OVER (PARTITION BY u ORDER BY {order}) AS t, RANK() OVER (PARTITION BY u ORDER BY n) AS n, x, b, c, d FROM (SELECT DISTINCT {ALL} FROM {source}) AS o",
        f"SELECT u, FIRST_VALUE(t) OVER (PARTITION BY u ORDER BY {order} {frame}) AS t, SUM(n) OVER (PARTITION BY u ORDER BY {order} {frame}) AS n, x, b, c, d FROM (SELECT DISTINCT {ALL} FROM {source}) AS o",
        f"SELECT u, t, COUNT(*) OVER (PARTITION BY u ORDER BY n {peers}) AS n, MIN(x) OVER (PARTITION BY u ORDER BY t DESC {peers}) AS x, b, c, d FROM {source}{where}",
        f"SELECT u, t, COUNT(x) OVER (PARTITION BY t, u ORDER BY n) AS n, MAX(x) OVER (PARTITION BY u) AS x, b, c, d FROM {source}{where}",
    ])  # fmt: skip


def condition(rng: random.Random, texts: Texts, source: str) -> str:
    word, outer = rng.choice(["", "NOT "]), source.rsplit(maxsplit=1)[-1]
    return rng.choice([
        texts.tree("b", 1), texts.tree("b", 2), texts.tree("b", 3), texts.tree("b", 2), "t IN (SELECT page FROM p)",
        f"({texts.tree('b', 1)}) AND u IN (SELECT u FROM w WHERE n > 1)", f"{word}EXISTS (SELECT 1 FROM w2 AS e WHERE e.u = {outer}.u AND e.k > 1)",
        "n NOT IN (SELECT size FROM p WHERE size IS NOT NULL)",
    ])  # fmt: skip


# ---- the two sides


@lru_cache(4)
def frames(number: int) -> dict[str, pl.DataFrame]:
    """The tables of some cases."""
    rng = random.Random(f"tables {number}")
    day = dt.date(2020, 1, 31)

    pool = [
        (rng.choice([1, 2, 3, 4, 4, None]), rng.choice(["a", "b", "b c", "", "Ab", " a_", "Z", "é", "\U0001f600", None]),
         rng.choice([0, 1, 2, 3, -3, 7, None]), rng.choice([0.0, 0.5, -1.5, 2.5, 3.0, None]), rng.choice([True, False, None]),
         rng.choice([dt.datetime(2020, 2, 29, 23, 59, 59, 999999), dt.datetime(1969, 12, 31, 12), dt.datetime(2021, 1, 1), None]),
         rng.choice([day, day + dt.timedelta(days=29), dt.date(1900, 3, 1), None]))
        for _ in range(16)
    ]  # fmt: skip

    def rows(many: int) -> pl.DataFrame:  # of few different ones, so that some are there twice, and in both tables
        return pl.DataFrame([rng.choice(pool) for _ in range(many)], schema=COLUMNS, orient="row")

    people = pl.DataFrame(
        {"u": [1, 2, 3, 4, None], "k": [rng.choice([0, 1, 2, None]) for _ in range(5)]},
        schema={"u": pl.Int64, "k": pl.Int64},
    )
    return {"v": rows(24), "w": rows(10), "w2": people, "p": PUBLIC}


@lru_cache(4)
def tables(number: int) -> dict[str, Any]:
    """The protected tables of some cases, and the public one."""
    ledger = None
    made = {name: wpinq.protect(frame, budget=10**18, delta="0.5", name=name, ledger=ledger, unit=wpinq.users("u", at_most=40))
            for name, frame in frames(number).items() if name != "p"}  # fmt: skip
    return {**made, "p": PUBLIC}


@lru_cache(2)  # a search goes on for many thousand tables
def duck(number: int) -> Any:
    """A connection to DuckDB with the tables of some cases."""
    connection = duckdb.connect()
    connection.execute("SET default_null_order='postgres'; SET integer_division=true; SET threads=1")
    for name, frame in frames(number).items():
        connection.register(name, frame.to_arrow())
    return connection


@cache
def server() -> Any:
    """A cursor of a PostgreSQL server of our own; None where there is none."""
    from servers import binaries, postgres

    if binaries() is None:
        return None
    from adbc_driver_postgresql import dbapi

    stack = ExitStack()
    atexit.register(stack.close)
    connection = stack.enter_context(dbapi.connect(stack.enter_context(postgres()), autocommit=True))
    return stack.enter_context(connection.cursor())


LOADED: list[int] = []


def elephant(number: int) -> Any:
    """A cursor of PostgreSQL with the tables of some cases; None without a server."""
    cursor = server()
    if cursor is None:
        return None
    if LOADED[-1:] != [number]:
        LOADED.append(number)
        for name, frame in frames(number).items():
            cursor.execute(f"DROP TABLE IF EXISTS {name}")
            kinds = {
                pl.Int64: "bigint",
                pl.String: "text",
                pl.Float64: "double precision",
                pl.Boolean: "boolean",
                pl.Date: "date",
            }
            columns = ", ".join(
                f"{key} {kinds.get(type(kind) if not isinstance(kind, type) else kind, 'timestamp')}"
                for key, kind in frame.schema.items()
            )
            cursor.execute(f"CREATE TABLE {name} ({columns})")
            cursor.adbc_ingest(name, frame.to_arrow(), mode="append")
    return cursor


def plain(rows: Any) -> list[tuple[Any, ...]]:
    """Rows to be compared, in one order."""
    return sorted((tuple(map(value, row)) for row in rows), key=repr)


def value(cell: Any) -> Any:
    """A value to be compared: what wpinq has no NaN for is NULL, and numbers are near."""
    if isinstance(cell, bool) or cell is None:
        return cell
    if isinstance(cell, (int, float, Decimal)):
        number = float(cell)
        return None if math.isnan(number) else round(number, 6) + 0.0
    return cell.replace(tzinfo=None) if isinstance(cell, dt.datetime) else cell


def expected(case: Case) -> list[tuple[list[Any] | None, list[tuple[Any, ...]]]]:
    """The groups that each database finds, and its answer, which counts as right; none where all raise."""
    answers = []
    for engine in (elephant, duck):
        try:
            cursor = engine(case.data)
            if cursor is None:
                continue
            cursor.execute(case.groups if case.keys else "SELECT 1")
            rows = cursor.fetchall()
            named = [tuple(row) if len(row) > 1 else row[0] for row in rows] if case.keys else None
            cursor.execute(case.text)
            answers.append((named, plain(cursor.fetchall())))
        except Exception:
            continue
    return answers if not case.keys or any(named for named, _ in answers) else []


def judge(case: Case) -> list[str]:
    """Compare the answer with those of databases."""
    answers = expected(case)
    both = len([named for named, _ in answers if named != []]) == BOTH
    if not answers or (not both and any(word in case.text for word in OF_POSTGRESQL)):
        DONE["raised there"] += 1
        return []
    for named, theirs in answers:  # whose keys may differ in the last digit of a number
        if named == []:
            continue
        try:
            answer = wpinq.sql(case.text, tables(case.data), epsilon=EPSILON, keys=named)
        except WpinqError as error:
            DONE["refused"] += 1
            text = str(error)
            return (
                [f"charged, and no answer: {text}: {case.text}"] if "charged" in text and "nothing" not in text else []
            )
        except Exception as error:
            return [f"no error of wpinq: {type(error).__name__} {str(error)[:200]}: {case.text}"]
        mine = plain(answer.rows)
        if any(mine == right for _, right in answers):
            break
        less = [row for row in mine if row not in theirs][:3], [row for row in theirs if row not in mine][:3]
        wrong = f"{less[0]} here and {less[1]} there: {case.text}"
    else:
        return [wrong]
    DONE["answered"] += 1
    return []


# ---- old bugs


def nulls_equal() -> list[Any]:
    """NULL = NULL is true."""
    known, real = RULES["EQ"]

    def equal(translator: Any, node: Any) -> Term:
        term: Term = real(translator, node)
        return Term(term.value.fill_null(value=True), term.kind, "")

    return [patch.dict(RULES, {"EQ": (known, equal)})]


def no_peers() -> list[Any]:
    """RANK takes equal rows one after the other."""
    return [patch.object(framed, "_same", lambda one, two, order: one is two)]


def one_too_many() -> list[Any]:
    """A frame has one row more than it says."""
    real = framed._ends

    def ends(frame: Any, index: int, run: int, peers: Any) -> tuple[int, int]:
        begins, stops = real(frame, index, run, peers)
        return max(begins - 1, 0), stops

    return [patch.object(framed, "_ends", ends)]


def once_more() -> list[Any]:
    """EXCEPT takes a record away once, however often it is there."""
    real = Derived.combined

    def combined(self: Derived, other: Derived, node: Any) -> Derived:
        node.set("distinct", False)
        return real(self, other, node)

    return [patch.object(Derived, "combined", combined)]


PLANTS = {
    "nulls_equal": Plant("NULL = NULL is true", nulls_equal, 22),
    "no_peers": Plant("RANK takes equal rows one after the other", no_peers, 96),
    "one_too_many": Plant("a frame has one row more than it says", one_too_many, 6),
    "once_more": Plant("EXCEPT and UNION are those with ALL", once_more, 40),
}
FUZZER = Fuzzer("databases", grow, judge, PLANTS, show=lambda case: case.text, seen=DONE)
