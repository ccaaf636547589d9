"""Weights never wrap: one record more, where sums pass 64 bits, moves an answer by its own weight and no more.

Noise strays from the truth by 40 scales with probability exp(-40), so no test here fails by chance.
"""

import polars as pl
import pytest
from depth import thin
from strategies import leaves

import wpinq
from wpinq.core.engines import reading
from wpinq.core.records import log as epochs
from wpinq.errors import SourceError

SURE = 40
HEAVY = 2**53 - 1


def weighed(records, most):
    frame = pl.DataFrame({"page": ["a"] * records, "w": [most] * records}, schema={"page": pl.String, "w": pl.Int64})
    return wpinq.protect(frame, budget=10**6, weight="w", max_weight=most)


def near(measurement, bin, truth):  # noqa: A002
    assert abs(measurement.observe(bin) - truth) <= SURE * measurement.scale


def nothing(collection):
    return collection.filter("page = 'nobody'")


@thin(2)
@pytest.mark.parametrize("records", [1023, 1024, 1025, 2048])
@pytest.mark.parametrize("epsilon", [1, 10])
def test_the_larger_of_heavy_weights_and_nothing(records, epsilon):
    views = weighed(records, HEAVY)
    near(views.union(nothing(views)).measure(epsilon), "a", records * HEAVY)
    near(views.intersect(views).measure(epsilon), "a", records * HEAVY)
    near(views.limit("page", 2**60).measure(epsilon), "a", min(records * HEAVY, 2**60))
    near(views.semijoin(views, on="page").measure(epsilon), "a", records * HEAVY)
    near(views.antijoin(nothing(views), on="page").measure(epsilon), "a", records * HEAVY)
    near(views.group_by("page", len).measure(epsilon), ("a", 1), records * HEAVY / 2)
    near(views.measure(epsilon), "a", records * HEAVY)
    near(views.subtract(views).measure(epsilon), "a", 0)
    near(views.shave(2**63).map("index").measure(epsilon), 1, min(records * HEAVY, 2**63))


@pytest.mark.parametrize("records", [12_797, 12_799, 20_000])
def test_shared_weights_of_one_billion(records):
    views = weighed(records, 10**9)
    words = views.flat_map(lambda page: [page], columns={"page": str})
    near(words.measure(1), "a", records * 10**9)
    near(words.union(nothing(words)).measure(1), "a", records * 10**9)
    near(words.distinct().measure(10), "a", 1)


@pytest.mark.parametrize("records", [8191, 8192])
def test_sums_of_a_collection_with_itself(records):
    """They multiply weights, so a few records are 2^63; the engine takes them one batch at a time, not 2^50."""
    factor = -(-(2**63) // 8192)
    values = wpinq.protect([(i,) for i in range(records)], budget=10**6, columns={"v": int}).map(lambda v: 0)
    whole, power, left = None, values, factor
    while left:
        if left & 1:
            whole = power if whole is None else whole.concat(power)
        left, power = left >> 1, power.concat(power)
    slices = whole.shave(2**60, name="k").map("k").measure(epsilon="0.05")
    total = records * factor
    for number in (1, 2, 8, 9):
        near(slices, number, max(0, min(2**60, total - (number - 1) * 2**60)))


def test_heavy_weights_over_the_epochs_of_a_live_source():
    live = wpinq.live({"page": "text"}, budget=10**6)
    many = live
    for _ in range(52):
        many = many.concat(many)
    largest = many.union(many.filter("page = 'nobody'"))
    for epoch in range(1, 5):
        found = largest.measure(10**3, name=str(epoch))
        live.send([("a",)] * 1000)
        live.advance()
        near(found, "a", epoch * 1000 * 2**52)
    live.close()


def test_one_dtype_whatever_the_records():
    """How weights are held is said by the plan: an empty answer does not differ in type from a full one."""
    for most, kind in ((1, "int64"), (2**20, "int64"), (2**22, "float64"), (HEAVY, "float64")):
        for records in (0, 3):
            views = weighed(records, most)
            assert views.measure(1).observe_many(["a", "b"]).dtype == kind
            assert views.union(nothing(views)).measure(1).observe_many([]).dtype == kind


def test_a_source_beyond_the_capacity_is_refused(monkeypatch):
    monkeypatch.setattr(reading, "CAPACITY", 5)
    monkeypatch.setattr(epochs, "CAPACITY", 5)
    for records in (5, 6):
        views = wpinq.protect([("a",)] * records, budget=10, columns={"page": str})
        if records == 5:
            near(views.measure(1), "a", 5)
            continue
        with pytest.raises(SourceError, match=r"more records than can be counted, 2\^40"):
            views.measure(1).observe("a")
    live = wpinq.live({"page": "text"}, budget=10)
    for _ in range(2):
        live.send([("a",)] * 2)
        live.advance()
    live.send([("a",)] * 2)
    with pytest.raises(SourceError, match=r"more records than can be counted, 2\^40"):
        live.advance()
    live.close()


def test_what_nothing_holds_is_refused_before_it_is_charged():
    views = weighed(1, 2**52)
    for _ in range(33):
        views = views.concat(views)
    (leaf,) = leaves(views)
    for refused in (
        lambda: views.concat(views),
        lambda: views.flat_map(lambda page: [page]),
        lambda: views.map(lambda page: 3).sum("value", bounds=(0, 2**20), epsilon=1),
        lambda: views.join(views, on="page"),
    ):
        with pytest.raises(wpinq.PlanError, match="128 bits do not hold"):
            refused()
    with pytest.raises(wpinq.PlanError, match="scale is above"):
        views.measure(1)
    assert leaf.data.ledger.spent()[0] == 0
