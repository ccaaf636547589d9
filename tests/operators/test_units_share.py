"""Sharing a weight: all records of a person weigh 1 at the most, and nobody else moves."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Driver, distance, expected, run_flow, same

import wpinq
from wpinq.core import kernels
from wpinq.core.engines import reference
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.operators.contribution import share
from wpinq.core.state import summed

ONE = Secret(bytes(range(32)))
UNIT = wpinq.users("user", shared=True)
views = st.lists(st.tuples(st.sampled_from(["ann", "bob", None]), st.sampled_from("abcd")), max_size=40)


def people(records=()):
    columns = {"user": str, "page": str}
    return wpinq.protect(list(records), budget=10**6, unit=UNIT, columns=columns, secret=ONE, name="views", version="1")


def shared(records):
    return expected(people(), reference.weigh(records))


@given(views, views)
def test_definition_gives_each_person_one_and_nobody_else_moves(others, own):
    others = [record for record in others if record[0] != "ann"]
    own = [("ann", page) for _, page in own]
    without, with_ann = shared(others), shared(others + own)
    moved = distance(without, with_ann)
    assert moved <= 1
    assert without == {record: weight for record, weight in with_ann.items() if record[0] != "ann"}
    if own and 720_720 % len(own) == 0:
        assert moved == 1, "up to 16 records no weight is lost"
    assert moved >= 1 - Fraction(len(own), 720_720) or not own


def test_beyond_the_resolution_a_person_weighs_nothing():
    records = {("ann", "a"): Fraction(720_720), ("bob", "a"): Fraction(720_721)}
    assert expected(people(), records) == {("ann", "a"): 1}
    driver = Driver(people())
    driver.feed(records)
    assert same(driver.histogram, people()._node, {("ann", "a"): 1})


@given(views, st.integers(1, 4), st.randoms(use_true_random=False))
@settings(max_examples=often(40))
def test_engine_shares_as_the_definition_does(records, shards, random):
    wanted = shared(records)
    random.shuffle(records)
    collection = people(records)
    assert same(run_flow(collection, shards), collection._node, wanted)
    by_page = {}
    for (_, page), weight in wanted.items():
        by_page[page,] = by_page.get((page,), 0) + weight
    pages = collection.map(lambda page: page)
    assert same(run_flow(pages, shards), pages._node, by_page)


@pytest.mark.parametrize("library", [kernels.LIB, None], ids=["compiled", "plain"])
@given(st.lists(views, min_size=1, max_size=4), st.integers(1, 3), st.sampled_from([1, 3, 1 << 20]), st.booleans())
@settings(max_examples=often(40))
def test_old_shares_shrink_when_records_come(library, parts, shards, lot, narrow):
    collection = people().map("page") if narrow else people()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "LIB", library)
        patch.setattr(share, "RECORDS_PER_LOT", lot)
        patch.setattr(share, "ROWS", lot)
        patch.setattr(summed, "PIECE", lot)
        driver = Driver(collection, shards)
        so_far = []
        for part in parts:
            driver.feed(reference.weigh(part))
            so_far += part
            assert same(driver.histogram, collection._node, expected(collection, reference.weigh(so_far)))


@pytest.mark.parametrize("pages", [1, 10**6], ids=["one page", "a page each"])
def test_attack_30_a_person_with_a_million_records(pages):
    size = 10**6
    names = pl.select(pl.int_range(size) % pages).to_series().cast(pl.String)
    frame = pl.DataFrame({"user": pl.select(pl.repeat("ann", size)).to_series(), "page": names})
    frame = pl.concat([frame, pl.DataFrame({"user": ["bob"], "page": ["0"]})])
    views = wpinq.protect(frame, budget=10**9, unit=UNIT, secret=ONE)
    found = views.map(lambda user: user).measure(10**8).observe_many(["ann", "bob"])
    assert np.abs(found - [0, 1]).max() < 1e-6


def test_noise_is_that_of_one_record():
    assert people().map(lambda page: page).measure("0.1").scale == 10
