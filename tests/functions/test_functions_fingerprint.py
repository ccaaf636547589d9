"""Fingerprints change with the meaning of a function, and with nothing else, in any process."""

from __future__ import annotations

import datetime as dt
import functools
import os
import random
import re
import subprocess
import sys
import textwrap
import time
from collections import namedtuple

import pytest

from wpinq.core.functions.bind import bind
from wpinq.core.records.schema import Kind, Schema

ONE = Schema.of(page=Kind.TEXT)


def define(source, name="f", **names):
    """A function from source text, in a module of its own; made plain by a branch in the text."""
    space = {"__name__": "__main__", **names}
    exec(compile(textwrap.dedent(source), f"file{random.random()}.py", "exec"), space)
    return space[name]


def printed(source, **names):
    return bind(define(source, **names), ONE, "map").fingerprint


BASE = """
import re
LIMIT = 3
TABLE = {"a": 1, "b": [2, {3}]}
def helper(page, k=2):
    return page * k
def f(page, d=1, *, e="x"):
    local = helper(page)
    inner = lambda q: q + e
    if page in {"a", "b", "c"}:
        return inner(local) * LIMIT
    return TABLE.get(page, 0) or re.sub("a", "b", page)
"""


def test_a_function_has_a_stable_fingerprint():
    assert printed(BASE) == printed(BASE)
    assert isinstance(printed(BASE), bytes)
    function = define(BASE)
    before = bind(function, ONE, "map").fingerprint
    for _ in range(2000):
        function("ab")  # the interpreter rewrites warm bytecode
    assert bind(function, ONE, "map").fingerprint == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("local", "renamed"),
        ("lambda q: q + e", "lambda q: (q + e)  # a comment"),
        ("def f(", "\n\n\n\n# moved\ndef f("),
        ('{"a", "b", "c"}', '{"c", "a", "b"}'),
        ("    local", '    "A docstring."\n    local'),
        ("LIMIT = 3", "LIMIT = 3\nUNUSED = 4"),
    ],
)
def test_what_does_not_matter_does_not_change_it(old, new):
    assert old in BASE
    assert printed(BASE.replace(old, new)) == printed(BASE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ("LIMIT = 3", "LIMIT = True"),
        ('"a": 1', '"a": 2'),
        ('"a": 1', '"z": 1'),
        ("{3}", "{4}"),
        ("page * k", "page + k"),
        ("k=2", "k=3"),
        ('e="x"', 'e="y"'),
        ("q + e", "e + q"),
        ('{"a", "b", "c"}', '{"a", "b", "d"}'),
        ('re.sub("a"', 're.sub("c"'),
        ("re.sub", "re.split"),
        ("or re", "and re"),
        ("inner(local)", "helper(local)"),
    ],
)
def test_what_matters_changes_it(old, new):
    assert old in BASE
    assert printed(BASE.replace(old, new)) != printed(BASE)


def test_closures_count():
    def make(wanted):
        return lambda page: page == wanted if page else wanted

    prints = [
        bind(make(value), ONE, "map").fingerprint for value in ("a", "b", 1, 1.0, True, None, ("a",), ["a"], 0.0, -0.0)
    ]
    assert None not in prints
    assert len(set(prints)) == len(prints)
    assert bind(make("a"), ONE, "map").fingerprint == prints[0]


def test_helpers_of_helpers_and_recursion_count():
    deep = "g = lambda p: h(p)\nh = lambda p: p{} if p else g(p)\nf = lambda page: g(page) if page else 0"
    assert printed(deep.format("+p")) == printed(deep.format("+p")) != printed(deep.format("*2"))


def test_columns_and_declarations_count():
    def function(page):
        return page or "x"

    wide = Schema.of(page=Kind.TEXT, user=Kind.TEXT)
    prints = [
        bind(function, ONE, "map").fingerprint,
        bind(function, Schema.of(page=Kind.ANY), "map").fingerprint,
        bind(function, ONE, "map", columns=["name"]).fingerprint,
        bind(function, ONE, "map", columns={"name": str}).fingerprint,
        bind(lambda user: user or "x", wide, "map").fingerprint,
    ]
    assert len(set(prints)) == 5
    assert bind(function, wide, "map").fingerprint == prints[0]


class Thing:
    def __call__(self, page):
        return page

    def method(self, page):
        return page


PAIR = namedtuple("PAIR", "a b")
state = {"count": 0}


def attributed(page):
    return attributed.seen if page else page


attributed.seen = 1


@pytest.mark.parametrize(
    "function",
    [
        lambda page: random.random() if page else 0,
        lambda page: time.time() if page else 0,
        lambda page: dt.datetime.now() if page else 0,
        lambda page: os.environ.get(page) if page else 0,
        lambda page: hash(page) if page else 0,
        lambda page: id(page) if page else 0,
        lambda page: open(page) if page else 0,  # noqa: SIM115, PTH123
        lambda page: eval(page) if page else 0,
        lambda page: Thing()(page) if page else 0,
        lambda page: PAIR(page, 1) if page else 0,
        lambda page: state["x"] if isinstance(page, Thing) else 0,
        Thing(),
        Thing().method,
        attributed,
        functools.partial(random.choice),
    ],
)
def test_what_cannot_be_covered_has_none(function):
    assert bind(function, ONE, "map").fingerprint is None


def test_functions_that_assign_outer_names_have_none():
    count = 0

    def counts(page):
        nonlocal count
        count += 1
        return page

    def imports(page):
        import math

        return math.pi if page else 0

    assert bind(counts, ONE, "map").fingerprint is None
    assert bind(imports, ONE, "map").fingerprint is None


@pytest.mark.parametrize(
    "function",
    [
        str.upper,
        len,
        int,
        functools.partial(str.replace, "abc", "a"),
        lambda page: PATTERN.sub("", page) if page else "",
        lambda page: dt.date.fromisoformat(page) if page else None,
        lambda page: sorted(set(page)) if page else [],
        functools.lru_cache(lambda page: page or ""),
        lambda page: textwrap.shorten(page, 5) if page else "",
    ],
)
def test_what_can_be_covered_has_one(function):
    assert isinstance(bind(function, ONE, "map").fingerprint, bytes)


PATTERN = re.compile("a+", re.IGNORECASE)


def test_a_users_module_is_covered_through_what_is_used_of_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    prints = []
    for number, body in enumerate(["page.lower()", "page.upper()", "page.lower()"]):
        name = f"own_module_{number}"
        (tmp_path / f"{name}.py").write_text(f"def clean(page):\n    return {body}\n")
        __import__(name)
        function = define("def f(page):\n    return own.clean(page) if page else 0", own=sys.modules[name])
        prints.append(bind(function, ONE, "map").fingerprint)
    assert prints[0] == prints[2] != prints[1]
    whole = define("def f(page):\n    return [own] if page else 0", own=sys.modules["own_module_0"])
    assert bind(whole, ONE, "map").fingerprint is None


SCRIPT = """
import polars as pl
from wpinq.core.functions.bind import bind
from wpinq.core.records.schema import Kind, Schema
WORDS = {"x", "y", "z", "w"}
def helper(page):
    return page in {"a", "b", "c", "d"} or page in WORDS
schema = Schema.of(page=Kind.TEXT)
for function in (lambda page: helper(page) if page else None, lambda page: page.lower(), lambda page: page,
                 pl.col("page").str.to_lowercase(), pl.col("page").is_in(["a", "b"])):
    print(bind(function, schema, "map").fingerprint.hex())
"""


def test_processes_with_other_hash_seeds_agree():
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert len(set(runs[0].stdout.split())) == 5
