"""What pricing a question takes grows at most like its text: in calls, in nodes that are made, and in copies of them.

A case is a text over all functions and operators (`shapes`): nested deeply in one place or in all, put into each clause,
chained through subqueries, summed with itself, traced, or sent as a plan. Calls of Python are counted, and nodes as Polars
has them, so nothing here depends on how fast a machine is.
"""

# ruff: noqa: E501

from __future__ import annotations

import datetime as dt
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_args
from unittest.mock import patch

import msgspec
import polars as pl
from attacks.fuzz.fuzzer import Fuzzer
from attacks.fuzz.plant import Plant
from attacks.fuzz.shapes import LAMBDAS, LEAVES, NAMES, QUERIES, SHAPES, Texts

import wpinq
from wpinq.apps.remote import grammar
from wpinq.apps.remote.pricing import priced, priced_sql
from wpinq.apps.serve import plans
from wpinq.apps.serve.config import Limits
from wpinq.core.functions import expressions
from wpinq.core.functions import tree as trees
from wpinq.core.functions.sql.translator import Translator
from wpinq.core.plan.node import Node
from wpinq.core.pricing import question_limits
from wpinq.errors import WpinqError
from wpinq.query import quoted
from wpinq.query.select import grouping

COLUMNS = {"t": str, "n": int, "x": float, "b": bool, "c": dt.datetime, "i": "instant", "d": dt.date}
DONE = {"questions": 0, "that were answered": 0, "letters": 0, "calls": 0, "nodes": 0, "most calls a letter": 0}
FIRST, EACH = 1_500_000, 4_000
"""Calls of Python that a question may take at once, and for each of its letters."""
LONGEST = 1_500
"""Letters of one expression."""


class ExceededError(BaseException):
    """A question takes too much; nothing that is wrong may go on, and no code of wpinq may catch it."""


class Meter:
    """Counts what a question takes, and stops it where that is too much."""

    def __init__(self, letters: int) -> None:
        self.calls, self.nodes, self.whole, self.most = 0, 0, 0, FIRST + EACH * letters

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        if event == "call":
            self.calls += 1
            if self.calls > self.most:
                sys.setprofile(None)
                raise ExceededError(f"more than {self.most:,} calls")

    def made(self, found: int, told: int | None, what: str) -> None:
        """Note an expression, and the size that was counted before it was made."""
        if found > trees.MOST or (told is not None and found != told):
            raise ExceededError(f"{what}: {found:,} nodes are made, and {told} were counted")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at all expressions that are made, and at all calls."""
        translated, tree = Translator._translated, expressions.tree

        def term(translator: Translator, node: Any) -> Any:
            first = not translator._open
            result = translated(translator, node)
            self.made(nodes(result.value.expr), result.size, result.text)
            self.whole += result.size * first
            if self.whole > trees.TOGETHER + trees.MOST:
                raise ExceededError(f"{self.whole:,} nodes of one question are made")
            return result

        def bound(part: pl.Expr | trees.Node, call: str) -> Any:
            made = tree(part, call)
            self.nodes += nodes(made.expr)
            if self.nodes > 3 * trees.TOGETHER:  # a count binds what it counts twice: where it is NULL, and its groups
                raise ExceededError(f"{self.nodes:,} nodes are bound")
            return made

        with patch.object(Translator, "_translated", term), patch.object(expressions, "tree", bound):
            sys.setprofile(self)
            try:
                yield
            finally:
                sys.setprofile(None)


def nodes(part: pl.Expr) -> int:
    """The nodes of an expression, counted in what Polars tells of it: what a tree says before there is one."""
    text = part.meta.serialize(format="json")
    return sum(text.count(f'"{name}":') for name in
               ("Alias", "BinaryExpr", "Cast", "Column", "Function", "Literal", "Ternary"))  # fmt: skip


def tables() -> dict[str, Any]:
    """Two protected tables without records, and a public one."""
    public = pl.DataFrame({"page": ["a", "b", "q"], "size": [1, 2, 3]})
    return {"v": wpinq.protect([], budget=10**9, delta="0.5", columns=COLUMNS), "p": public,
            "w": wpinq.protect([], budget=10**9, columns={"u": str}, unit=wpinq.users("u", at_most=2))}  # fmt: skip


# ---- cases


def query(rng: random.Random) -> str:
    """Any clause over any expressions."""
    texts = Texts(rng, SHAPES, LEAVES, LONGEST)
    text = rng.choice(QUERIES)
    while "{" in text:
        place = text.index("{")
        text = text[:place] + texts.any(text[place + 1]) + text[place + 3 :]
    return text


def wide(rng: random.Random) -> str:
    """Lists that are long, or say the same again and again."""
    many, texts = rng.randrange(2, 120), Texts(rng, SHAPES, LEAVES, 60)
    one, kind = rng.choice([("t", "t"), ("n", "n"), ("x", "x")])
    listed = ", ".join(texts.tree(kind, 1) for _ in range(many))
    cubes = ", ".join(["CUBE (t, n)"] * (many // 4 + 1))
    part, shape = "t", rng.choice(["nullif({}, 'a')", "greatest({}, 'a')", "split_part({}, 'a', 1)"])
    for _ in range(rng.randrange(4, 9)):
        part = shape.format(part)
    counted = ", ".join(f"COUNT({part} || '{one}') AS c{one}" for one in range(min(many, 80)))
    whens = " ".join(f"WHEN {texts.tree(kind, 1)} THEN 1" for _ in range(many))
    return rng.choice([
        f"SELECT COUNT(*) AS c FROM v WHERE greatest({listed}) IS NULL", f"SELECT COUNT(*) AS c FROM v WHERE {one} IN ({listed})",
        f"SELECT COUNT(*) AS c FROM v WHERE CASE {texts.any(kind)} {whens} END = 1",
        f"SELECT COUNT(*) AS c FROM v GROUP BY {cubes}", f"SELECT {listed} FROM v", f"SELECT {counted} FROM v",
        f"SELECT COUNT(DISTINCT ({listed})) FILTER (WHERE {texts.any('b')}) AS c FROM v",
        f"SELECT {texts.any('n')} AS a, COUNT(*) AS c FROM v GROUP BY a ORDER BY {', '.join(['a + a'] * many)}",
        f"SELECT {texts.any('t')} AS a, COUNT(*) AS c FROM v GROUP BY 1 HAVING greatest({', '.join(['a'] * many)}) = 'q'",
    ])  # fmt: skip


def chained(rng: random.Random) -> str:
    """Steps of WITH that each use the one before, once or several times."""
    texts, parts = Texts(rng, SHAPES, LEAVES, rng.choice([1, 80])), ["q0 AS (SELECT t, n, x, b, c, i, d FROM v)"]
    rest, style = "n, x, b, c, i, d", rng.random()
    for level in range(1, rng.randrange(3, 45)):
        own = f"SELECT {texts.any('t')} AS t, {rest} FROM q{level - 1}"
        again = rng.choice(["", "", "", ""] if style < 0.5 else [ f" UNION ALL SELECT t, {rest} FROM q{level - 1}", f" UNION ALL {own}",
                            " WHERE t IN (SELECT page FROM p)"])  # fmt: skip
        parts.append(f"q{level} AS ({own}{again})")
    return f"WITH {', '.join(parts)} SELECT COUNT(*) AS c FROM q{len(parts) - 1}"


def asked(text: str) -> None:
    """Price a query as a server does."""
    quote = quoted(text, tables(), epsilon=1, delta="1e-6" if "GROUP BY" in text else None, bounds={"n": (0, 1), "x": (0, 1)},
                   insist=lambda found: plans.insist_on_limits(found, Limits(steps=10**6)))  # fmt: skip
    priced_sql(quote, None)


def mapped(rng: random.Random) -> tuple[str, Any]:
    """SQL text of operators, and of where= and derive=."""
    texts = Texts(rng, SHAPES, LEAVES, LONGEST)
    text, condition = texts.any("t"), texts.any("b")
    steps = {
        f"e{one}": "nullif(t || t, 'a')" if not one else f"nullif(e{one - 1} || e{one - 1}, t)"
        for one in range(rng.randrange(2, 20))
    }

    def ask() -> None:
        wpinq.protect([], budget=10, columns=COLUMNS, where=condition, derive=steps).quote(epsilon=1)
        tables()["v"].map(f"{text} AS t").filter(f"{condition.replace('t', 't')}" if "t" in condition else "t = 'a'")

    return text + condition + "".join(steps.values()), ask


def traced(rng: random.Random) -> tuple[str, Any]:
    """Functions that are traced, which may use a value twice by its name."""
    texts, kind = Texts(rng, LAMBDAS, NAMES, 400), rng.choice(["t", "n", "x", "b"])
    again = {"t": "t + t", "n": "n * n", "x": "x * x", "b": "b | b"}[kind]
    lines = [f"    {kind} = {again}"] * rng.choice([0, 0, 3, 14]) + [f"    return {texts.any(kind)}"]
    text = "def made(t, n, x, b, c, d):\n" + "\n".join(lines)
    scope: dict[str, Any] = {}
    exec(text, scope)

    def ask() -> None:
        made = tables()["v"].map(scope["made"])
        for node in getattr(made._node, "nodes", ()) or getattr(getattr(made._node, "function", None), "nodes", ()):
            if nodes(node.value_tree.expr) > trees.MOST:
                raise ExceededError(f"a traced function has {nodes(node.value_tree.expr):,} nodes")
        made.quote(epsilon=1)

    return text, ask


def sent(rng: random.Random) -> tuple[str, Any]:
    """Plans in JSON, of any steps that read any earlier ones."""
    steps: list[dict[str, Any]] = [{"do": "table", "name": "v"}]
    part: dict[str, Any] = {"is": "column", "name": "t"}
    for _ in range(rng.randrange(1, 14)):
        part = {"is": "do", "name": "slice", "of": [part], "options": [rng.choice([1, None]), None]}
    value = rng.choice([{"is": "sql", "text": "t AS t, n AS n"}, {"is": "chosen", "names": ["t", "n"]},
                        {"is": "traced", "reads": ["t"], "names": ["t"], "values": [part]}])  # fmt: skip
    key = {"is": "chosen", "names": ["t"]}
    for _ in range(rng.randrange(1, 39)):
        at = max(0, len(steps) - rng.choice([1, 1, 1, 2, 3]))
        two = {"left": at, "right": max(0, at - rng.choice([0, 0, 1]))}
        steps.append(rng.choice([
            {"do": "map", "of": at, "function": value}, {"do": "filter", "of": at, "function": {"is": "sql", "text": "t = 'a'"}},
            {"do": "shave", "of": at}, {"do": "distinct", "of": at}, {"do": "group_by", "of": at, "key": key},
            {"do": "limit", "of": at, "key": key}, {"do": "part", "of": at, "key": key, "parts": ["a", "b"], "part": 0},
            {"do": "concat", **two}, {"do": "concat", **two}, {"do": "subtract", **two}, {"do": "union", **two},
            {"do": "intersect", **two}, {"do": "join", **two, "left_key": key, "right_key": key, "at_most": 2},
            {"do": "join_rows", **two, "left_key": key, "right_key": key},
            {"do": "semijoin", **two, "left_key": key, "right_key": key},
            {"do": "antijoin", **two, "left_key": key, "right_key": key},
        ]))  # fmt: skip
    limits = rng.choice([Limits(), Limits(depth=60, gain=10**4, joins=8, operations=10**4)])

    def ask() -> None:
        plan = msgspec.convert(steps, list[grammar.AnyStep])
        priced([plans.collection(plan, {"v": tables()["v"]}, limits).quote(epsilon=1)], None, [])

    return msgspec.json.encode(steps).decode(), ask


STEPS = {kind.__struct_config__.tag for kind in get_args(grammar.AnyStep)}
"""What steps of plans are called; a test finds each of them in what `sent` makes."""
CASES = [query, query, query, wide, chained, mapped, traced, sent]


def grow(seed: int) -> tuple[str, Any]:
    """The text of a case, and what asks it."""
    rng = random.Random(seed)
    made = CASES[seed % len(CASES)](rng)
    return (made, lambda: asked(made)) if isinstance(made, str) else made


def judge(case: tuple[str, Any]) -> list[str]:
    """Price a case; give what is wrong with how much that took."""
    text, ask = case
    meter = Meter(len(text))
    DONE["questions"] += 1
    try:
        with meter.watching():
            ask()
        DONE["that were answered"] += 1
    except WpinqError:
        pass
    except ExceededError as error:
        return [f"{error}, of {len(text):,} letters: {text[:300]}"]
    finally:
        DONE["letters"], DONE["calls"] = DONE["letters"] + len(text), DONE["calls"] + meter.calls
        DONE["nodes"] = max(DONE["nodes"], meter.nodes)
        DONE["most calls a letter"] = max(DONE["most calls a letter"], meter.calls // (len(text) + 100))
    return []


# ---- old bugs


def unsized() -> list[Any]:
    """Nothing is refused for its size."""
    return [patch.object(trees, "insist", lambda *_: None)]


def alone() -> list[Any]:
    """An operation is counted with its parts as one node each."""
    real = trees.Node.__init__

    def counted(node: trees.Node, *given: Any, **named: Any) -> None:
        real(node, *given, **named)
        node.size = 1 + len(node.inputs)

    return [patch.object(trees.Node, "__init__", counted)]


def together() -> list[Any]:
    """Each expression is counted, and not all of them."""
    return [patch.object(trees.Total, "add", lambda *_: None)]


def product() -> list[Any]:
    """Sets of keys are made before they are counted."""
    return [patch.object(grouping, "prod", lambda found: 0 * len(list(found)))]


def passes() -> list[Any]:
    """A plan is followed along all of its ways, not step by step."""

    def ways(root: Node) -> int:
        return sum(map(ways, root.inputs)) or 1

    return [patch.object(question_limits, "check_gain", lambda root, *_: ways(root))]


PLANTS = {
    "unsized": Plant("nothing is refused for its size", unsized, 0),
    "alone": Plant("a rule is counted without its parts", alone, 0),
    "together": Plant("expressions are counted one by one", together, 195),
    "product": Plant("sets of keys are made before they are counted", product, 11),
    "passes": Plant("a plan is followed along all of its ways", passes, 28),
}
FUZZER = Fuzzer("lengths", grow, judge, PLANTS, lambda case: case[0], seen=DONE)
