"""Random straight functions: whatever the tracer accepts must be Python, on edge cases of every kind."""

from __future__ import annotations

import datetime as dt
import random
import warnings

import polars as pl
import pytest
from depth import thin

from wpinq.core.functions.bind import bind
from wpinq.core.functions.traced.columnar import Columnar
from wpinq.core.records.kinds import read, series, write
from wpinq.core.records.schema import Kind, Schema
from wpinq.core.records.values import encode

W = "\0w"
SCHEMA = Schema.of(
    p=Kind.TEXT, q=Kind.TEXT, n=Kind.INT, m=Kind.INT, f=Kind.FLOAT, b=Kind.BOOL, t=Kind.TIME, d=Kind.DATE
)
TEXTS = [
    "", "a", "A", "/a/b", "aa/", "É", "İß", "ǅ", "a\x1c ", " x ", "\x85a", "bbb", "σς", "😀a", "e\u0301", "a$1", None,
]  # fmt: skip
WHOLES = [0, 1, -1, 3, -7, 2**31, 2**62, -(2**63), 2**63 - 1, -(2**62), None, 10]
FLOATS = [0.0, -0.0, 1.5, float("inf"), -float("inf"), 1e308, 5e-324, None]
TIMES = [dt.datetime.min, dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2020, 2, 29, 12), dt.datetime.max]
DAYS = [None, dt.date(2020, 2, 29), dt.date.min, dt.date.max]
POOLS = [TEXTS, TEXTS, WHOLES, WHOLES, FLOATS, [True, False, None], [*TIMES, None], DAYS]


class Grammar:
    """Source text of random expressions of a kind, nested to a depth."""

    def __init__(self, seed):
        self.pick = random.Random(seed).choice

    def text(self, depth):
        if not depth:
            return self.pick(["p", "q", "'a'", "'/'", "''"])
        inner, bound = self.text(depth - 1), [None, -4, -2, -1, 0, 1, 3]
        start, stop = self.pick(bound), self.pick(bound)
        cut = f"[{'' if start is None else start}:{'' if stop is None else stop}]"
        return inner + self.pick([
            ".lower()", ".upper()", ".strip()", ".lstrip('a/')", ".rstrip()", cut, cut, "[0]", "[-1]", ".split('/')[1]",
            ".split('a')[-1]", ".removeprefix('/')", ".removesuffix('a')", ".replace('a', '$1')",
            f" + {self.text(depth - 1)}",
        ])  # fmt: skip

    def whole(self, depth):
        if not depth:
            return self.pick(["n", "m", "n", "m", "1", "0", "-3", "7", str(2**62)])
        one, other = self.whole(depth - 1), self.whole(depth - 1)
        operator = self.pick(["+", "-", "*", "//", "%", "&", "|", "^"])
        calls = [f"(-{one})", f"abs({one})", f"len({self.text(depth - 1)})", "t.year", "t.hour", "d.weekday()"]
        return self.pick([*[f"({one} {operator} {other})"] * 6, *calls])

    def real(self, depth):
        if not depth:
            return self.pick(["f", "f", "0.5", "-0.0", "1"])
        return f"({self.real(depth - 1)} {self.pick('+-*')} {self.real(depth - 1)})"

    def truth(self, depth):
        if not depth:
            return self.pick(["b", "(b == True)"])
        kind = self.pick([self.text, self.whole, self.real])
        compared = f"(({kind(depth - 1)}) {self.pick(['==', '!=', '<', '<=', '>', '>='])} ({kind(depth - 1)}))"
        joined = f"({self.truth(depth - 1)} {self.pick('&|^')} {self.truth(depth - 1)})"
        tested = f"({self.text(depth - 1)}).{self.pick(['startswith', 'endswith'])}({self.text(0)})"
        return self.pick([compared, compared, joined, tested, "(t.date() == d)"])

    def function(self):
        depth = self.pick([1, 2, 3])
        body = self.pick([self.text, self.whole, self.real, self.truth])(depth)
        return "lambda p, q, n, m, f, b, t, d: " + self.pick([body, f"({body}, {self.truth(1)}, p)"])

    def record(self):
        return tuple(self.pick(pool) for pool in POOLS)


def outcome(function, record):
    try:
        return function(*record)
    except Exception:
        return type(None)


@thin(4)
@pytest.mark.parametrize("seed", range(8))
def test_random_functions_are_python(seed):
    grammar, traced = Grammar(seed), 0
    for _ in range(25):
        source = grammar.function()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function = eval(source)
        bound = bind(function, SCHEMA, "map")
        traced += isinstance(bound, Columnar)
        records = [grammar.record() for _ in range(40)]
        columns = [
            series(c.name, [write(record[place], c.kind) for record in records], c.kind)
            for place, c in enumerate(SCHEMA)
        ]
        frame = pl.DataFrame([*columns, pl.Series(W, range(len(records)))])
        rows = {row[-1]: row for row in bound.apply(frame, [W]).select(pl.all().to_physical()).rows()}
        mask = bound.predicate(frame)
        for place, record in enumerate(records):
            wanted = outcome(function, record)
            assert mask[place] is (wanted is not type(None) and bool(wanted)), source
            values = wanted if isinstance(wanted, tuple) else (wanted,)
            lost = wanted is type(None) or any(
                column.kind is Kind.INT and value is not None and not -(2**63) <= value < 2**63
                for value, column in zip(values, bound.output, strict=True)
            )
            assert (place not in rows) is lost, source
            if not lost:
                found = [read(value, column.kind) for value, column in zip(rows[place], bound.output, strict=False)]
                assert list(map(encode, found)) == list(map(encode, values)), source
    assert traced > 15
