"""Bounding people's records: what is kept of one person, whatever the others, the order and the batches."""

import resource
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from depth import often, thin
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from strategies import Driver, distance, expected, run_flow, same

import wpinq
from wpinq.core import kernels
from wpinq.core.engines import reference
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.operators.contribution import reservoirs
from wpinq.core.operators.contribution import sample as bounding

ONE = Secret(bytes(range(32)))
TYPES = {"user": str, "page": str}
UNITS = [
    wpinq.users("user", at_most=1),
    wpinq.users("user", at_most=3),
    wpinq.users("user", at_most=5, per=("page", 2)),
    wpinq.users("user", at_most=2, per=("page", 1)),
    wpinq.users("user", at_most=10**6),
]
views = st.lists(st.tuples(st.sampled_from(["ann", "bob", None]), st.sampled_from("abcd")), max_size=30)


def people(records=(), unit=UNITS[1], secret=ONE, **settings):
    settings = {"columns": TYPES, "budget": 10**6, "name": "views", "version": "1", **settings}
    return wpinq.protect(list(records), unit=unit, secret=secret, **settings)


def kept(records, unit, **settings):
    """What the definition keeps, in Python."""
    return expected(people((), unit, **settings), reference.weigh(records))


def per_user(collection):
    counts = Counter()
    for (user, _), weight in collection.items():
        counts[user] += weight
    return counts


@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(views, views)
def test_definition_keeps_a_bounded_part_of_each_person_and_nobody_else_moves(unit, others, own):
    others = [record for record in others if record[0] != "ann"]
    own = [("ann", page) for _, page in own]
    without, with_ann = kept(others, unit), kept(others + own, unit)
    assert distance(without, with_ann) <= unit.bound
    assert without == {record: weight for record, weight in with_ann.items() if record[0] != "ann"}
    pages = Counter(page for _, page in own)
    room = sum(min(count, unit.per[1]) if unit.per else count for count in pages.values())
    assert per_user(with_ann)["ann"] == min(room, unit.bound), "no record is left out without need"
    for (user, page), weight in with_ann.items():
        assert weight <= Counter(others + own)[user, page]
        assert unit.per is None or weight <= unit.per[1]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(views, st.integers(1, 4), st.randoms(use_true_random=False))
@settings(max_examples=often(25))
def test_engine_keeps_what_the_definition_keeps(unit, records, shards, random):
    """Whatever the order and the shards, and in each of several plans that need other columns."""
    wanted = kept(records, unit)
    random.shuffle(records)
    collection = people(records, unit)
    assert same(run_flow(collection, shards), collection._node, wanted)
    by_page = Counter()
    for (_, page), weight in wanted.items():
        by_page[page,] += weight
    pages = collection.map(lambda page: page)
    assert same(run_flow(pages, shards), pages._node, by_page)


@thin(3)
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("library", [kernels.LIB, None], ids=["compiled", "plain"])
@given(st.lists(views, min_size=1, max_size=4), st.integers(1, 3), st.sampled_from([1, 2, 5, 1 << 20]))
@settings(max_examples=often(20))
def test_sample_grows_with_the_records_and_retracts_what_is_pushed_out(library, unit, parts, shards, lot):
    collection = people((), unit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "LIB", library)
        patch.setattr(bounding, "RECORDS_PER_LOT", lot)
        driver = Driver(collection, shards)
        so_far = []
        for part in parts:
            driver.feed(reference.weigh(part))
            so_far += part
            assert same(driver.histogram, collection._node, kept(so_far, unit))


def test_sample_is_uniform_also_over_copies():
    """3,000 people have the same 30 records, one of them ten times, and keep 8.

    How often each copy is kept, summed over people, has a known covariance; the statistic is chi-squared. One look,
    false alarm 1e-6 had the secret been drawn; it is fixed, so the test is not random.
    """
    pages = [f"p{i}" for i in range(29)] + ["heavy"] * 10
    frame = pl.DataFrame({"user": np.repeat(np.arange(3000), len(pages)).astype(str), "page": pages * 3000})
    collection = wpinq.protect(frame, budget=10**6, unit=wpinq.users("user", at_most=8), secret=ONE).map(
        lambda page: page
    )
    found = collection.measure(epsilon=8 * 50, name="little noise").observe_many(sorted(set(pages)))
    share = dict(zip(sorted(set(pages)), found.tolist(), strict=True))
    size, keep, users = len(pages), 8, 3000
    assert sum(share.values()) == users * keep
    p = keep / size
    spread = users * p * (1 - p) * size / (size - 1)  # of one copy, orthogonal to the constant total
    light = np.array([share[f"p{i}"] for i in range(29)]) - users * p
    heavy = share["heavy"] - 10 * users * p
    statistic = (light**2).sum() / spread + heavy**2 / (10 * spread)
    assert chi2.ppf(5e-7, 29) < statistic < chi2.isf(5e-7, 29)


def test_another_secret_or_another_column_is_another_sample():
    records = [("ann", f"p{i}") for i in range(50)]
    unit = wpinq.users("user", at_most=10)
    one = kept(records, unit)
    assert one == kept(records, unit, version="2"), "versions share one sample"
    assert one != kept(records, unit, secret=Secret(bytes(32)))
    other = kept([("bob", page) for _, page in records], unit)
    assert {page for _, page in one} != {page for _, page in other}, "people lose other pages than each other"


def test_one_sample_serves_all_questions():
    records = [("ann", f"p{i}") for i in range(200)]
    collection = people(records, wpinq.users("user", at_most=7))
    pages = [f"p{i}" for i in range(200)]
    one = collection.map(lambda page: page).measure(7 * 60).observe_many(pages)
    two = (
        collection.filter(lambda user: user == "ann")
        .map(lambda user, page: page)
        .measure(7 * 60, name="x")
        .observe_many(pages)
    )
    assert one.sum() == 7
    assert one.tolist() == two.tolist()


@thin(2)
@pytest.mark.parametrize("pages", [1, 10**6], ids=["one page", "a page each"])
@pytest.mark.parametrize("per", [None, ("page", 3)])
def test_attack_30_a_person_with_a_million_records(pages, per):
    """Heavy copies are ranked lot by lot: the person is held down to its bound, without much memory."""
    size = 10**6
    names = pl.select(pl.int_range(size) % pages).to_series().cast(pl.String)
    frame = pl.DataFrame({"user": pl.select(pl.repeat("ann", size)).to_series(), "page": names})
    frame = pl.concat([frame, pl.DataFrame({"user": ["bob"], "page": ["0"]})])
    unit = wpinq.users("user", at_most=20, per=per)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    views = wpinq.protect(frame, budget=10**9, unit=unit, secret=ONE)
    found = views.map(lambda user: user).measure(20 * 100).observe_many(["ann", "bob"])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert found.tolist() == [3 if per and pages == 1 else 20, 1]
    assert grown < 1_500_000, "kilobytes"


@pytest.mark.parametrize("compiled", [True, False])
def test_attack_30_one_row_of_a_heavy_weight_is_ranked_in_lots(monkeypatch, compiled):
    """The state itself is given one row that stands for 100,000 copies."""
    if compiled and kernels.LIB is None:
        pytest.skip("there are no compiled kernels")
    monkeypatch.setattr(bounding, "RECORDS_PER_LOT", 1000)
    monkeypatch.setattr(reservoirs, "PIECE", 1000)
    kind, name = (reservoirs.Pool, "put") if compiled else (bounding.Sample, "_ranked")
    if not compiled:
        monkeypatch.setattr(kernels, "LIB", None)
    collection = people((), wpinq.users("user", at_most=5))
    largest = []
    rank = getattr(kind, name)
    monkeypatch.setattr(kind, name, lambda self, lot, *more: largest.append(len(lot)) or rank(self, lot, *more))
    driver = Driver(collection)
    driver.feed({("ann", "a"): Fraction(100_000), ("ann", "b"): Fraction(1), ("bob", "b"): Fraction(2)})
    assert max(largest) <= 1000
    assert sum(largest) == 100_003
    assert same(driver.histogram, collection._node, {("ann", "a"): 5, ("bob", "b"): 2})


def test_copies_that_come_one_by_one_are_the_copies_that_come_at_once():
    collection = people((), wpinq.users("user", at_most=3))
    records = {("ann", "a"): Fraction(6), ("ann", "b"): Fraction(6)}
    one, many = Driver(collection), Driver(collection)
    one.feed(records)
    for _ in range(6):
        many.feed(dict.fromkeys(records, Fraction(1)))
    assert np.array_equal(one.histogram.content()[0], many.histogram.content()[0])
    assert np.array_equal(one.histogram.content()[1], many.histogram.content()[1])
