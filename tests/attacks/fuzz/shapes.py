"""Shapes of SQL, of traced functions and of plans, for every rule that there is: tests hold them against the registries.

A shape is text with holes of types: {t}ext, {n} integers, {x} doubles, {b} conditions, {c} timestamps, {i} instants,
{d} dates.
"""

# ruff: noqa: E501

from __future__ import annotations

import random
import re

LEAVES = {
    "t": ["t", "'a'", "'x y'", "NULL"], "n": ["n", "3", "-7", "NULL"], "x": ["x", "0.5", "1e3"],
    "b": ["b", "TRUE", "n = 3", "NULL"], "c": ["c", "TIMESTAMP '2020-01-01 10:00'"],
    "i": ["i", "TIMESTAMPTZ '2020-01-01 10:00+00'"], "d": ["d", "DATE '2020-02-29'"],
}  # fmt: skip
SHAPES: dict[str, list[str]] = {
    "t": [
        "({t})", "{t} || {t}", "lower({t})", "upper({t})", "trim({t})", "btrim({t}, 'ab')", "ltrim({t})",
        "left({t}, 3)", "right({t}, -2)", "substring({t} from 2 for 3)", "substring({t} from 'a(.)')",
        "split_part({t}, '.', 2)", "replace({t}, 'a', 'b')", "concat({t}, {n}, {b}, {d})", "concat_ws('-', {t}, {t})",
        "regexp_replace({t}, 'a+', 'b', 'g')", "regexp_extract({t}, 'a(.)', 1)", "regexp_substr({t}, 'a+')",
        "(regexp_match({t}, '(a)(b)'))[2]", "greatest({t}, {t})", "least({t}, 'q', {t})", "coalesce({t}, {t})",
        "nullif({t}, {t})", "CASE WHEN {b} THEN {t} ELSE {t} END", "CASE {t} WHEN 'a' THEN {t} WHEN {t} THEN 'b' END",
        "CASE {n} WHEN 1 THEN {t} WHEN {n} THEN 'b' ELSE 'c' END", "to_char({c}, 'YYYY-MM-DD')",
        "strftime({c}, '%Y')", "CAST({n} AS TEXT)", "CAST({b} AS TEXT)", "CAST({c} AS TEXT)", "{d}::text",
    ],
    "n": [
        "({n})", "{n} + {n}", "{n} - {n}", "{n} * {n}", "{n} / {n}", "{n} % {n}", "mod({n}, {n})", "- {n}", "abs({n})",
        "length({t})", "strpos({t}, 'a')", "position('a' in {t})", "greatest({n}, {n}, 3)", "least({n}, {n})",
        "coalesce({n}, {n}, 0)", "nullif({n}, {n})", "CASE WHEN {b} THEN {n} WHEN {b} THEN 1 ELSE {n} END",
        "extract(year from {c})", "date_part('day', {d})", "extract(dow from {i})", "width_bucket({x}, 0, 10, 5)",
        "CAST({x} AS BIGINT)", "CAST({t} AS INTEGER)", "TRY_CAST({t} AS INTEGER)", "CAST({b} AS INTEGER)", "round({n})",
    ],
    "x": [
        "({x})", "{x} + {n}", "{x} - {x}", "{x} * {x}", "{x} / {x}", "{n} / 2.5", "- {x}", "abs({x})", "floor({x})",
        "ceil({x})", "trunc({x})", "round({x})", "round({x}, 2)", "sign({x})", "sqrt({x})", "exp({x})", "ln({x})",
        "log({x})", "log({x}, {x})", "power({x}, 2)", "greatest({x}, {n})", "coalesce({x}, {x})", "nullif({x}, {x})",
        "CAST({n} AS DOUBLE PRECISION)", "CAST({t} AS DOUBLE PRECISION)", "extract(second from {c})",
        "extract(epoch from {i})",
    ],
    "b": [
        "({b})", "{n} = {n}", "{t} <> {t}", "{x} < {x}", "{n} <= {n}", "{t} > {t}", "{c} >= {c}",
        "{t} IS DISTINCT FROM {t}", "{n} IS NOT DISTINCT FROM {n}", "{b} AND {b}", "{b} OR {b}", "NOT {b}",
        "{t} IS NULL", "{b} IS NOT TRUE", "{n} BETWEEN {n} AND {n}", "{t} NOT BETWEEN 'a' AND {t}",
        "{t} IN ('a', 'b', NULL)", "{n} IN ({n}, 3, {n})", "{t} LIKE 'a%'", "{t} ILIKE '_a%' ESCAPE '!'",
        "{t} NOT LIKE '%a!%' ESCAPE '!'", "{t} ~ 'a+'", "{t} ~* 'a'", "regexp_like({t}, 'a', 'i')",
        "{t} SIMILAR TO '(a|_)%b*'", "{n} NOT BETWEEN SYMMETRIC {n} AND 3",
        "starts_with({t}, {t})", "CAST({t} AS BOOLEAN)", "CAST({n} AS BOOLEAN)", "coalesce({b}, {b})",
        "CASE WHEN {b} THEN {b} ELSE {b} END",
    ],
    "c": [
        "({c})", "{c} + INTERVAL '1 month 2 hours'", "{c} - INTERVAL '3 days'", "INTERVAL '2 hours' + {c}",
        "date_trunc('month', {c})", "{i} AT TIME ZONE 'Europe/Berlin'", "CAST({t} AS TIMESTAMP)",
        "CAST({d} AS TIMESTAMP)", "coalesce({c}, {c})", "greatest({c}, {c})", "nullif({c}, {c})",
        "CASE WHEN {b} THEN {c} ELSE {c} END",
    ],
    "i": [
        "({i})", "{c} AT TIME ZONE 'Asia/Kolkata'", "date_trunc('day', {i}, 'Europe/Berlin')", "date_trunc('hour', {i})",
        "{i} + INTERVAL '90 minutes'", "CAST({c} AS TIMESTAMPTZ)", "least({i}, {i})",
    ],
    "d": ["({d})", "CAST({c} AS DATE)", "{i}::date", "date_trunc('month', {d})", "CAST({t} AS DATE)", "coalesce({d}, {d})"],
}  # fmt: skip
QUERIES = [
    "SELECT COUNT(*) AS c FROM v WHERE {b}",
    "SELECT {t} AS k, COUNT(*) AS c FROM v GROUP BY 1",
    "SELECT {t} AS k, COUNT(*) AS c FROM v GROUP BY k HAVING COUNT(*) > 3 ORDER BY k, k || k",
    "SELECT SUM({n}) AS s, AVG({x}) AS m, COUNT(DISTINCT {t}) AS d FROM v WHERE {b}",
    "SELECT COUNT({t}) FILTER (WHERE {b}) AS c, MEDIAN({x}) AS m FROM v",
    "SELECT COUNT(*) AS c FROM (SELECT {t} AS t, {n} AS n, x, b, c, i, d FROM v WHERE {b}) AS v WHERE {b}",
    "SELECT k, COUNT(*) AS c FROM (SELECT {t} AS k, COUNT(*) AS m, MAX({n}) AS o FROM v GROUP BY {t}) q GROUP BY k",
    "SELECT COUNT(*) AS c FROM v JOIN p ON {t} = p.page WHERE {b}",
    "SELECT COUNT(*) AS c FROM v WHERE {t} IN (SELECT page FROM p)",
    "SELECT COUNT(*) AS c FROM v JOIN w ON v.t = w.u WHERE {b}",
    "SELECT COUNT(*) AS c, {x} - {n} AS e FROM v WHERE n > 3",
    "SELECT {t} AS k, {n} AS l, COUNT(*) AS c FROM v GROUP BY CUBE (1, 2)",
]
LAMBDAS: dict[str, list[str]] = {
    "t": ["{t}.lower()", "{t}.upper()", "{t}.strip()", "{t}.lstrip('a')", "{t}.rstrip()", "{t}.removeprefix('a')",
          "{t}.removesuffix('b')", "{t}.replace('a', 'b')", "{t}.split('.')[1]", "{t}[-1]", "{t}[1:]", "{t}[-9:-1]",
          "{t} + {t}"],
    "n": ["{n} + {n}", "{n} - {n}", "{n} * {n}", "{n} // {n}", "{n} % {n}", "-{n}", "abs({n})", "len({t})", "{n} & {n}",
          "{n} | {n}", "{n} ^ {n}", "{c}.year", "{c}.month", "{c}.day", "{c}.weekday()", "{d}.isoweekday()", "{c}.hour",
          "{c}.minute", "{c}.second"],
    "x": ["{x} + {x}", "{x} - {x}", "{x} * {x}"],
    "b": ["({t} == {t})", "({n} != {n})", "({x} < {x})", "({n} <= {n})", "({t} > {t})", "({x} >= {x})",
          "{t}.startswith('a')", "{t}.endswith(('a', 'b'))", "({b} & {b})", "({b} | {b})", "({b} ^ {b})"],
    "d": ["{c}.date()"],
    "c": [],
}  # fmt: skip
NAMES = {"t": ["t", "'a'"], "n": ["n", "3"], "x": ["x", "0.5"], "b": ["b"], "c": ["c"], "d": ["d"]}
HOLE = re.compile(r"\{([a-z])\}")


class Texts:
    """Random texts.

    Args:
        shapes: For each type the texts that give it.
        leaves: And those without holes.
        most: Characters of one.
    """

    def __init__(
        self, rng: random.Random, shapes: dict[str, list[str]], leaves: dict[str, list[str]], most: int
    ) -> None:
        self.rng, self.shapes, self.leaves, self.most = rng, shapes, leaves, most

    def tower(self, kind: str) -> str:
        """One shape, or two in turn, in their own first or last hole again and again."""
        own = [shape for shape in self.shapes[kind] if kind in HOLE.findall(shape)]
        text, chosen = (
            self.leaf(kind),
            self.rng.sample(own, min(len(own), self.rng.choice([1, 1, 2]))) or ["{" + kind + "}"],
        )
        for level in range(self.rng.randrange(2, 26)):
            shape = chosen[level % len(chosen)]
            places = [found for found in HOLE.finditer(shape) if found[1] == kind]
            at = self.rng.choice(places)
            made = self.filled(shape[: at.start()]) + text + self.filled(shape[at.end() :])
            if len(made) > self.most:
                return text
            text = f"({made})" if self.rng.random() < 0.5 else made
        return text

    def tree(self, kind: str, depth: int) -> str:
        """Shapes in each hole."""
        if depth <= 0 or not self.shapes[kind] or self.rng.random() < 0.15:
            return self.leaf(kind)
        text = HOLE.sub(lambda hole: self.tree(hole[1], depth - 1), self.rng.choice(self.shapes[kind]))
        return f"({text})" if len(text) < self.most else self.leaf(kind)

    def any(self, kind: str) -> str:
        """One of these."""
        return self.tower(kind) if self.rng.random() < 0.6 else self.tree(kind, self.rng.randrange(1, 6))

    def filled(self, shape: str) -> str:
        """A shape with leaves."""
        return HOLE.sub(lambda hole: self.leaf(hole[1]), shape)

    def leaf(self, kind: str) -> str:
        """A column or a constant."""
        return self.rng.choice(self.leaves[kind])
