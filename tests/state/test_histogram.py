"""Histograms that change: their digest follows, and copies do not."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wpinq
from wpinq.core.measurements.query import ChargedQuery, digest_after, digest_of
from wpinq.core.records.batch import END, WEIGHT, Batch
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.records.weights import WeightType
from wpinq.core.state import histogram as histograms
from wpinq.core.state import table
from wpinq.core.state.histogram import Histogram

KEY = bytes(range(16))
HOME = SimpleNamespace(digest_key=bytes(range(32)))
FINE = 2**70
rows = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(-2, 2)), max_size=5)


def histogram(change, kind):
    """A change of a table, of one with weights of 128 bits, or of steps."""
    schema = Schema((Column("k", Kind.INT, ranged=kind == "steps"),))
    frame = pl.DataFrame(change, schema={"k": pl.Int64, END + "k": pl.Int64, WEIGHT: pl.Int64}, orient="row")
    frame = frame.with_columns((pl.col("k") + pl.col(END + "k")).alias(END + "k"))
    if kind != "steps":
        frame = frame.drop(END + "k")
    if kind == "wide":
        frame = frame.with_columns(pl.col(WEIGHT).cast(pl.Int128) * pl.lit(FINE, pl.Int128))
    found = Histogram(schema, KEY, WeightType(FINE, wide=kind == "wide").array)
    found.absorb(Batch(frame, schema))
    return found


def content(of):
    ids, weights = of.content()
    return ids.tolist(), weights.tolist()


@pytest.mark.parametrize("kind", ["table", "wide", "steps"])
@given(changes=st.lists(rows, min_size=1, max_size=6))
def test_a_digest_follows_every_change_and_copies_none(changes, kind):
    first, *others = (histogram(change, kind) for change in changes)
    digest = digest_of(HOME, first)
    for change in others:
        copy, before = first.copy(), content(first.copy())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(histograms, "LARGE", 0)
            after = digest_after(HOME, digest, first, change)
        first.merge(change)
        digest = digest_of(HOME, first.copy())
        assert after == (None if kind == "steps" else digest)
        assert content(copy.copy()) == before
        after = content(first.copy())
        copy.merge(change)
        copy.merge(change)
        assert content(first.copy()) == after
    whole = histogram([row for change in changes for row in change], kind)
    assert content(first) == content(whole)
    assert digest == digest_of(HOME, whole)


def test_the_digest_of_a_large_change_is_made_when_it_is_needed():
    first, few = histogram([(k, 0, 1) for k in range(80)], "table"), histogram([(k, 0, 1) for k in range(10)], "table")
    digest = digest_of(HOME, first)
    assert digest_after(HOME, digest, first, few) is not None
    first = histogram([(k, 0, 1) for k in range(79)], "table")
    assert digest_after(HOME, digest, first, few) is None


def test_a_live_source_hands_over_the_digest_of_what_it_answers_from(monkeypatch):
    told, seals, answer_from = [], ChargedQuery.seals, ChargedQuery.answer_from

    def sealed(question, digest):
        told.append([digest])
        return seals(question, digest)

    def checked(question, histogram):
        told[-1].append(digest_of(question.key_owner, histogram))
        answer_from(question, histogram)

    monkeypatch.setattr(ChargedQuery, "seals", sealed)
    monkeypatch.setattr(ChargedQuery, "answer_from", checked)
    source = wpinq.live({"page": str}, budget=10**6)
    plans = [source.map(lambda page: page), source.shave().map(lambda page, index: index), source.distinct()]
    rng = np.random.default_rng(4)
    for epoch in range(12):
        for plan in plans[: epoch % 4]:
            plan.measure(1)
        source.send(pl.DataFrame({"page": [f"page/{number}" for number in rng.zipf(1.5, 40) % 60]}))
        source.advance()
    source.close()
    assert len(told) == 18
    assert all(digest == fresh for digest, fresh in told)
    assert len(set(map(tuple, told))) > 9, "histograms change from epoch to epoch"


@pytest.mark.parametrize("joined", [False, True])
def test_looking_into_nothing_takes_the_steps_of_looking_into_something(joined, monkeypatch):
    """Whether a person has any record would show in the time of an answer."""
    searched, true = [], table._find

    def find(run, wanted):
        found = true(run, wanted)
        searched.append((run.ids.shape, run.ids.flags.f_contiguous, run.tie, run.weights.dtype, found.dtype))
        return found

    monkeypatch.setattr(table, "_find", find)
    for more in ([], [("alice", "p7")]):
        views = wpinq.protect([("bob", "p1"), *more], budget=10, columns={"user": str, "page": str})
        hers = views.filter("user = 'alice'")
        pages = hers.join(hers, on="page").map("page") if joined else hers.map("page")
        assert len(pages.measure(1).observe_many([f"q{i}" for i in range(10)])) == 10
    assert len(searched) == 2
    assert searched[0] == searched[1]
