"""Old bugs of this project, put back one by one: those that an audit of a script finds, and what finds the others."""

from contextlib import suppress
from fractions import Fraction

import polars as pl
import pytest
from attacks.fuzz.plants import PLANTS
from attacks.fuzz.run import double
from depth import thin

from wpinq.errors import PlanError
from wpinq.testing import audit, recheck


def heavy(views):
    pages = double(views.map("page"), 62)
    return pages.union(pages.filter(lambda page: False)).measure(2**10)


def numbers(views):
    return views.filter(lambda x: bool(x != 1.0) or False).measure(1)


def nulls(views):
    own = views.map(lambda k, v: v, columns={"v": object})
    made = views.map(lambda k, v: None if k == "b" else v, columns={"v": object})
    return own.union(made).measure(1)


def sides(views):
    both = views.concat(views.filter(lambda user: user == "a").map("user, page, n"))
    return views.semijoin(both, on="page").measure(1)


def close_parts(views):
    close = [Fraction(1, 10) + Fraction(number, 10**40) for number in (1, 2)]
    parts = views.partition("x", close)
    return [parts[value].map("page").measure(1) for value in close]


def named(views):
    """The same steps with two names exchanged."""
    orders = [("a", "b"), ("b", "a")]
    shaved = [views.shave(name=one).shave("1/2", name=two).map(lambda a: a + 0) for one, two in orders]
    return [one.measure(1) for one in shaved]


def infinite(views):
    rows = (views.filter(pl.col("x") == value).map("x, page") for value in (float("inf"), float("-inf")))
    return [one.measure(1) for one in rows]


def numbered(views):
    return views.map("page").shave().window(1, at="index").measure(1)


FINDS = {
    "overflow": (heavy, {"page": "text"}, {}),
    "weights": (heavy, {"page": "text", "w": "integer"}, {"weight": "w"}),
    "nan": (numbers, {"x": "number", "page": "text"}, {"values": [float("nan")]}),
    "null_any": (nulls, {"k": "text", "v": None}, {}),
    "columns_differ": (sides, {"user": "text", "page": "text", "n": "integer"}, {}),
    "float_parts": (close_parts, {"x": "number", "page": "text"}, {"values": [0.1]}),
    "shave_names": (named, {"page": "text"}, {}),
    "json_literals": (infinite, {"x": "number", "page": "text"}, {"values": [float("inf")]}),
    "windows_epochs": (numbered, {"page": "text"}, {}),
}
"""For a plant of the fuzzer a script in which an audit finds it, its columns, and what `protect` is told."""
BEYOND = {
    "parts_epochs": "one plan that is measured at several epochs",
    "sql_atomic": "a budget that ends",
    "dates": "times that Python cannot hold",
    "shared_delta": "two data sets of one ledger",
    "same_version": "two data sets of one name",
    "equal_content": "two versions of one data set",
    "names": "two versions of one data set",
    "empty_column": "names of columns, which the audit takes as they are",
}
"""What an audit of a script does not meet; `tests/attacks/test_fuzzer.py` finds these."""


def test_every_old_bug_is_told_of():
    assert {*FINDS, *BEYOND} == set(PLANTS)


@thin(5)
@pytest.mark.parametrize("name", FINDS)
def test_an_old_bug_is_found_when_it_is_back(name, monkeypatch):
    monkeypatch.setattr("wpinq.testing.auditing.SHRINKING", 1.0)
    dataflow, columns, words = FINDS[name]
    with PLANTS[name].planted():
        done = audit(dataflow, columns, cases=120, **words)
    assert not done, str(done)
    found = done.counterexample
    with suppress(PlanError):  # the parts that were charged as one are refused today
        assert not recheck(dataflow, found.case, found.way)
