"""The quick way to bound people's records keeps, bit for bit, what the plain way and the definition keep."""

import datetime as dt
import math
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from depth import often, thin
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Driver, expected, same

import wpinq
from wpinq.core import kernels
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.operators.contribution import reservoirs
from wpinq.core.operators.contribution import sample as bounding
from wpinq.core.records.batch import WEIGHT, Batch

pytestmark = pytest.mark.skipif(kernels.LIB is None, reason="there are no compiled kernels")
TYPES = {"user": str, "page": str, "x": float, "at": dt.datetime}
DAY = dt.datetime(2026, 11, 1)
UNITS = [
    wpinq.users("user", at_most=2),
    wpinq.users("x", at_most=3),
    wpinq.users("user", at_most=4, per=("x", 1)),
    wpinq.users("page", at_most=5, per=("at", 2)),
    wpinq.users("user", at_most=1, period="1d", at="at"),
    wpinq.users("user", at_most=3, per=("page", 2), period="1d", at="at"),
]
records = st.tuples(
    st.sampled_from(["ann", "bob", "a person with a long name", None]),
    st.sampled_from(["", "a", "b", None]),
    st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf, None]),
    st.sampled_from([None, DAY, DAY + dt.timedelta(hours=23), DAY + dt.timedelta(days=1)]),
)
parts = st.lists(st.dictionaries(records, st.integers(1, 5).map(Fraction), max_size=8), min_size=1, max_size=5)


def people(unit):
    return wpinq.protect([], budget=10, unit=unit, columns=TYPES, secret=Secret(bytes(32)), name="v", version="1")


@thin(3)
@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(parts, st.sampled_from([1, 2, 7, 1 << 15]), st.integers(1, 2), st.booleans())
@settings(max_examples=often(25))
def test_each_epoch_is_that_of_the_plain_way_and_of_the_definition(unit, parts, size, shards, narrow):
    collection = people(unit).map("page") if narrow else people(unit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reservoirs, "PIECE", size)
        patch.setattr(reservoirs, "ROWS", size)
        quick = Driver(collection, shards)
        slow, total = Driver(collection, shards), {}
        for part in parts:
            quick.feed(part)
            patch.setattr(kernels, "LIB", None)
            slow.feed(part)
            patch.undo()
            patch.setattr(reservoirs, "PIECE", size)
            patch.setattr(reservoirs, "ROWS", size)
            for record, weight in part.items():
                total[record] = total.get(record, 0) + weight
            assert same(quick.histogram, collection._node, expected(collection, total))
            for one, two in zip(quick.histogram.content(), slow.histogram.content(), strict=True):
                assert np.array_equal(one, two)
    for driver, kind in ((quick, reservoirs.Reservoirs), (slow, bounding.Sample)):
        assert all(type(state) is kind for states in driver.states.values() for state in states.values())


def table(size, seed):
    """Records of many people, of whom a few have hundreds, in an order of their own."""
    rng = np.random.default_rng(seed)
    user = np.minimum(rng.zipf(1.3, size), 3000)
    return pl.DataFrame({"user": user, "page": rng.integers(0, 50, size), "at": np.arange(size) % 7})


def kept(frame, unit, sizes):
    """What is kept after each of several batches of the same state, as a change, and in the end."""
    schema = wpinq.protect(frame, budget=1)._node.schema
    state = reservoirs.Reservoirs(kernels.LIB, schema, unit, schema.names, bytes(16))
    so_far = Batch.empty(schema)
    for place, part in enumerate(sizes):
        state.absorb(0, Batch.of(frame[sum(sizes[:place]) :][:part], schema))
        so_far = Batch.concat([so_far, state.emit()], schema).consolidate()
    assert (so_far.frame[WEIGHT] > 0).all()
    return so_far.frame.sort(pl.all())


@pytest.mark.parametrize("per", [None, ("page", 2)])
def test_neighbours_differ_by_one_person_and_no_more_than_the_bound(per):
    """Whoever it is that is left out, and however the records come: in one batch or in many epochs."""
    unit, frame = wpinq.users("user", at_most=9, per=per), table(30_000, 3)
    whole = kept(frame, unit, [30_000])
    assert whole.equals(kept(frame.sample(fraction=1, shuffle=True, seed=1), unit, [17, 1, 12_000, 0, 17_982]))
    sums = whole.group_by("user").agg(pl.col(WEIGHT).sum())
    assert sums[WEIGHT].max() == 9
    for person in (1, 2, 30, 3000):
        without = kept(frame.filter(pl.col("user") != person), unit, [4000] * 9)
        assert without.equals(whole.filter(pl.col("user") != person))


def test_rows_that_were_pushed_out_are_forgotten(monkeypatch):
    monkeypatch.setattr(reservoirs, "ROWS", 1000)
    unit, frame = wpinq.users("user", at_most=2), table(40_000, 5)
    schema = wpinq.protect(frame, budget=1)._node.schema
    state = reservoirs.Reservoirs(kernels.LIB, schema, unit, ("page",), bytes(16))
    for start in range(0, 40_000, 500):
        state.absorb(0, Batch.of(frame[start : start + 500], schema))
        if start % 2000 == 0:
            state.emit()
        assert len(state._rows) <= 2 * state._pool.live + 1500
    many = sum(1 for _ in state._rows._frames)
    assert many < 30, "frames of a few rows are made one"


def test_without_kernels_it_says_once_that_it_is_slow(monkeypatch):
    monkeypatch.setattr(kernels, "LIB", None)
    with pytest.warns(RuntimeWarning, match="no compiled kernels.*ten times"):
        people(UNITS[0])


@pytest.mark.parametrize("epochs", [1, 2])
def test_the_last_change_is_that_of_any_epoch_and_nothing_of_users_is_held_while_it_goes_on(epochs, monkeypatch):
    monkeypatch.setattr(reservoirs, "ROWS", 500)
    frame, unit = table(4000, 5), wpinq.users("user", at_most=3)
    schema = wpinq.protect(frame, budget=1)._node.schema
    any_epoch, at_last = (reservoirs.Reservoirs(kernels.LIB, schema, unit, ("page",), bytes(16)) for _ in range(2))
    for epoch in range(epochs):
        for state, part in product((any_epoch, at_last), frame[2000 * epoch :][:2000].iter_slices(500)):
            state.absorb(0, Batch.of(part, schema))
        change = any_epoch.emit()
        if epoch + 1 < epochs:
            at_last.emit()
    pieces = at_last.last()
    assert not any(isinstance(held, (reservoirs.Numbers, reservoirs.Pool)) for held in vars(at_last).values())
    found = list(pieces)
    assert len(found) > 2  # frames, one by one
    rows = [Batch.concat(one, change.schema).consolidate().frame.sort(pl.all()) for one in (found, [change])]
    assert rows[0].equals(rows[1])
