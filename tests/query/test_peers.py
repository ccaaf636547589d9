"""Queries that peers of wpinq publish: how many of them are answered, and that each other one is told what to write.

`peers/NAME.sql` has a query a line, as its source has it but for line breaks and deltas near 1; the comment before them
names the source. What a source has in Python, LINQ or Scala is marked "as SQL". Left out are queries that show records,
which their authors only parse, and what a source repeats. `peers/tables.toml` has made-up tables, and
`peers/refused.toml` what is refused, by kind, with the nearest query. Nothing is charged: `quoted` reads, plans and
prices a query, and refuses what cannot be answered.
"""

import datetime as dt
import re
import tomllib
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from depth import deep

import wpinq
from wpinq.errors import PlanError
from wpinq.query import quoted

PEERS = Path(__file__).parent / "peers"
SPEC = tomllib.loads((PEERS / "tables.toml").read_text("utf-8"))
KINDS = tomllib.loads((PEERS / "refused.toml").read_text("utf-8"))["kind"]
SOURCES = sorted(PEERS.glob("*.sql"))
FOLDED = dict.fromkeys(("employees", "products"), re.IGNORECASE)
BORN, SEEN = dt.date(1994, 1, 1), dt.datetime(2026, 1, 1)


def queries(path):
    """The queries of a file."""
    return [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("--")]


QUERIES = [(path.stem, query) for path in SOURCES for query in queries(path)]


def column(spec, many):
    """Values of a column of a made-up table."""
    kind, *rest = spec.split(" ")
    if kind == "text":
        return [rest[i % len(rest)] for i in range(many)]
    if kind in ("int", "float", "id"):
        low, high = map(int, rest)
        step = (high - low) // (many - 1) or 1
        values = pl.Series([low + i * step % (high - low + 1) for i in range(many)])
        return values.cast(pl.Float64 if kind == "float" else pl.Int64)
    make = {"bool": lambda i: i % 2 == 0, "date": lambda i: BORN + dt.timedelta(days=i)}
    return [make.get(kind, lambda i: SEEN + dt.timedelta(hours=i))(i) for i in range(many)]


@cache
def table(name):
    """A table of the corpus, protected or public."""
    spec = SPEC["tables"][name]
    many = spec.get("rows", 40)
    frame = pl.DataFrame({key: column(value, many) for key, value in spec["columns"].items()})
    if spec.get("public"):
        return frame
    unit = {"unit": wpinq.users(spec["unit"], at_most=spec.get("most", 1))} if "unit" in spec else {}
    return wpinq.protect(frame, budget=10**24, delta="0.5", name=name, **unit)


def read_by(query):
    """The names of the tables that a query reads."""
    return [
        name
        for name in SPEC["tables"]
        if re.search(
            rf"(?i:FROM|JOIN|,)[ (]+(?:\w+\.)*\"?{re.escape(name)}\"?(?!\w)", query, FOLDED.get(name, re.NOFLAG)
        )
        and not re.search(rf"\b{re.escape(name)} AS \( *(?:SELECT|FROM)", query, FOLDED.get(name, re.NOFLAG))
    ]


def bounds_of(names, query):
    """The declared bounds of columns of tables, and of what the query computes and sums."""
    specs = {key: spec.split(" ") for name in names for key, spec in SPEC["tables"][name]["columns"].items()
             if not SPEC["tables"][name].get("public")}  # fmt: skip
    result = {key: tuple(map(int, rest)) for key, (kind, *rest) in specs.items()
              if kind in ("int", "float") and key.lower() in query.lower()}  # fmt: skip
    query = query.replace("CAST (", "CAST(").replace("`", '"')
    summed = {
        name: tuple(ends)
        for name, ends in SPEC["bounds"].items()
        if re.search(rf"(?:SUM|AVG|VAR_POP)\({re.escape(name)}\)", query)
    }
    return result | summed


def asked(query):
    """A query, quoted."""
    names = read_by(query)
    delta = "1e-3" if re.search("GROUP BY|DISTINCT", query, re.IGNORECASE) else None
    tables = {name: table(name) for name in names}
    terms = {} if re.search("epsilon ?=", query) else {"epsilon": 10**6, "delta": delta}
    return quoted(query, tables, **terms, bounds=bounds_of(names, query))


@cache
def refusals():
    """What is refused, and the message."""
    result = {}
    for source, query in QUERIES:
        try:
            asked(query)
        except PlanError as error:
            result[source, query] = str(error)
    return result


def test_the_corpus_is_of_many_sources_and_repeats_nothing():
    assert len(QUERIES) == len({query for _, query in QUERIES}) == 478
    assert all(path.read_text("utf-8").startswith("-- ") for path in SOURCES)


@deep("five hundred queries; the plain run asks those next to what is refused")
def test_so_many_are_answered():
    answered = len(QUERIES) - len(refusals())
    assert answered == 450
    assert answered / len(QUERIES) > 0.94


@deep("the same queries")
def test_each_refusal_is_of_a_kind_and_says_why():
    begin = {start: kind for kind in KINDS for start in kind["begin"]}
    refused = dict(refusals())
    for start, kind in begin.items():
        (query,) = [entry for entry in refused if entry[1].startswith(start)]
        text = refused.pop(query)
        assert text.startswith("sql: ")
        assert kind["says"] in text
    assert not refused


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["why"])
def test_the_nearest_query_is_answered(kind):
    assert asked(kind["nearest"]).quotes
