"""Queries as users of such systems write them: each is answered, or refused with the reason that stands beside it.

`corpus.sql` has a query a line, in words and over tables of our own. Their shapes are those of public test suites and
papers. Read for it were those of SmartNoise SQL (`sql/tests/query/queries`), Qrlew (pyqrlew `base_queries.sql`) and
Diffix (pg_diffix `noisy.sql`); from memory are Google's PostgreSQL and ZetaSQL extensions, TPC-H, Tumult, McSherry and
NIST. Some were made up to try a clause. So the share that is answered is that of this list, and of no other. Behind
`-- refused` a line has the reason after an arrow.
"""

import datetime as dt
import re
from pathlib import Path

import polars as pl
import pytest
from depth import thin

import wpinq
from wpinq.errors import PlanError

ANSWERED, REFUSED = (part.strip().splitlines() for part in (
    Path(__file__).parent / "corpus.sql").read_text("utf-8").split("-- refused"))  # fmt: skip
MANY = range(40)
BORN, SEEN = dt.date(1970, 1, 1), dt.datetime(2026, 1, 1)
FRAMES = {
    "people": pl.DataFrame({
        "id": [f"u{i}" for i in MANY], "age": [20 + i % 5 * 10 for i in MANY], "sex": ["mf"[i % 2] for i in MANY],
        "educ": [i % 16 for i in MANY], "married": [i % 3 == 0 for i in MANY], "income": [i * 1000 for i in MANY],
        "town": [["Rome", "Oslo", None][i % 3] for i in MANY], "born": [BORN + dt.timedelta(days=i) for i in MANY],
        "größe": [150 + i for i in MANY],
    }),
    "visits": pl.DataFrame({
        "id": [f"u{i % 20}" for i in MANY], "page": ["HN"[i % 2] for i in MANY], "spent": [float(i) for i in MANY],
        "town": [["Rome", "Oslo"][i % 2] for i in MANY], "seen": [SEEN + dt.timedelta(hours=i) for i in MANY],
    }),
    "members": pl.DataFrame({"id": [f"u{i}" for i in MANY], "plan": ["a" if i % 2 else "b" for i in MANY]}),
}  # fmt: skip
PUBLIC = {
    "towns": pl.DataFrame({"name": ["Rome", "Oslo"], "region": ["south", "north"]}),
    "plans": pl.DataFrame({"plan": ["a", "b"], "kind": ["free", "paid"]}),
}
BOUNDS = {"age": (0, 120), "educ": (0, 16), "income": (1, 10**6), "spent": (0, 100), "s": (0, 10**7),
          "a": (0, 10**7), "b": (0, 10**6), "größe": (100, 220), "born": ("1900-01-01", "2030-01-01"),
          "seen": ("2020-01-01", "2030-01-01"), "n": (0, 10), "c": (0, 10)}  # fmt: skip


MOST = {"people": 1, "visits": 3, "members": 1}


def asked(query):
    """What asks a query of tables of the same people, and what it has cost them."""
    tables = {
        name: wpinq.protect(frame, budget=1, delta="1e-5", name=name, unit=wpinq.users("id", at_most=MOST[name]))
        for name, frame in FRAMES.items()
        if re.search(rf"\b{name}\b", query, re.IGNORECASE)
    }
    words = [word for word in BOUNDS if re.search(rf"\b{word}\b", query) and (len(word) > 1 or f"({word})" in query)]
    bounds = {word: BOUNDS[word] for word in words}
    delta = "1e-6" if re.search("GROUP BY|DISTINCT", query, re.IGNORECASE) else None
    spent = lambda: max((one._node.data.ledger.spent()[0] for one in tables.values()), default=0)  # noqa: E731
    return spent, lambda: wpinq.sql(query, {**tables, **PUBLIC}, epsilon=1, delta=delta, bounds=bounds)


def test_the_size_of_the_corpus_is_known():
    assert (len(ANSWERED), len(REFUSED)) == (349, 45)
    assert len({*ANSWERED, *(line.split(" -> ")[0] for line in REFUSED)}) == 394


@thin(4)
@pytest.mark.parametrize("part", range(8))
def test_the_corpus_is_answered(part):
    for query in ANSWERED[part::8]:
        spent, ask = asked(query)
        try:
            assert ask().columns
        except wpinq.WpinqError as error:
            pytest.fail(f"{query}: {error}")
        assert spent() == (0 if query.startswith("EXPLAIN") else 1), query


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_refused_says_why_and_costs_nothing(line):
    query, reason = line.split(" -> ")
    spent, ask = asked(query)
    with pytest.raises(PlanError) as caught:
        ask()
    assert reason in str(caught.value)
    assert spent() == 0
