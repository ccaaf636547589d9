"""Histograms between declared edges: the numbers of NumPy, exactly where records are whole numbers, on every engine."""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import distance, evaluate, protected, run_flow, same

import wpinq
from wpinq.aggregates.buckets import Edges
from wpinq.aggregates.scale import Cells

RNG = np.random.default_rng(8)
X = np.round(RNG.normal(50, 30, 3000), 1)
PLACE = RNG.choice(["a", "b"], 3000)
FRAME = pl.DataFrame({"x": X, "place": PLACE})
LOUD = 10**4


def people(**how):
    return wpinq.protect(FRAME, budget=10**8, name="people", **how)


def test_it_is_the_histogram_of_numpy():
    edges = [-10, 0, 12.5, "49.9", 50, 100]
    cells = people().histogram("x", edges, LOUD).frame
    numbers = [float(edge) for edge in edges]
    assert cells.columns == ["from", "to", "count", "low", "high"]
    assert (cells["from"].to_list(), cells["to"].to_list()) == (numbers[:-1], numbers[1:])
    assert cells["count"].to_list() == np.histogram(X, numbers)[0].tolist()
    ends = people().histogram("x", [-math.inf, 0, 100, math.inf], LOUD).rows
    assert ends == (
        (-math.inf, 0, (X < 0).sum()),
        (0, 100, ((X >= 0) & (X < 100)).sum()),
        (100, math.inf, (X >= 100).sum()),
    )


def test_groups_windows_of_accuracy_and_price():
    collection = people()
    cells = collection.histogram("x", [0, 50, 100], LOUD, by="place", keys=["b", "nowhere"])
    assert cells.columns == ("place", "from", "to", "count")
    assert [row[-1] for row in cells] == [*np.histogram(X[PLACE == "b"], [0, 50, 100])[0], 0, 0]
    clash = collection.map("x, place AS count").histogram("x", [0, 9], 1, by="count", keys=["a"])
    assert clash.columns == ("count", "from", "to", "count_2")
    before = collection.budget.spent
    answer = collection.histogram("x", range(0, 100, 5), 1)
    assert collection.budget.spent - before == 1, "a record is in one bucket"
    assert answer.measurements[0].scale == 1
    low, high = answer.frame["low"][3], answer.frame["high"][3]
    assert high - low == 2 * answer.measurements[0].interval()
    near = collection.histogram("x", [0, 9], within=10).frame
    assert (near["high"] - near["low"]).max() <= 20
    assert "x below 0 or above 95 is not in it" in answer.bias
    assert collection.histogram("x", [-math.inf, 5], 1).bias == ("x above 5 is not in it",)


values = st.one_of(st.integers(-3, 12), st.sampled_from([-(2**63), 2**63 - 1, 2**53, 2**53 + 1]), st.none())
edge_lists = st.lists(
    st.one_of(st.fractions(-4, 13, max_denominator=4), st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, 2**70])),
    min_size=2, max_size=6, unique=True,
).map(sorted)  # fmt: skip


@settings(max_examples=often(60), deadline=None)
@given(st.lists(st.tuples(values), max_size=8), edge_lists)
def test_whole_numbers_are_compared_exactly(records, edges):
    """Also beyond 2^53, where floats are not all integers; the engine gives what one record by itself is defined as."""
    try:
        cuts = Edges.of("n", edges, whole=True)
    except wpinq.PlanError:  # two edges are one float, which tells them apart to nobody
        return
    source = protected(records, n="integer")
    plan = source._then(Cells(source._node, (), cuts, "histogram"))
    wanted = {}
    for (n,) in records:
        for cell in range(len(edges) - 1):
            last = cell == len(edges) - 2
            if n is not None and edges[cell] <= n and (n < edges[cell + 1] or (last and n == edges[-1])):
                wanted[cell,] = wanted.get((cell,), 0) + Fraction(1)
    assert same(run_flow(plan, 2), plan._node, wanted)
    assert evaluate(plan, records) == wanted
    assert distance(wanted, evaluate(plan, [*records, (1,)])) <= 1


def test_what_is_no_number_is_in_no_bucket():
    found = [(None,), (float("nan"),), (float("inf"),), (float("-inf"),), (0.0,), (-0.0,), (1.0,), (0.1,)]
    source = protected(found, x="number")
    for edges, wanted in (([0, "0.1", 1], {(0,): 2, (1,): 2}), ([-math.inf, 0, math.inf], {(0,): 1, (1,): 5})):
        plan = source._then(Cells(source._node, (), Edges.of("x", edges, whole=False), "histogram"))
        assert same(run_flow(plan), plan._node, {cell: Fraction(n) for cell, n in wanted.items()})
        assert evaluate(plan, found) == wanted


@pytest.mark.parametrize("edges", [[], [1], [1, 1], [2, 1], "12", [1, math.inf, 2], [math.inf, 1], {1, 2}])
def test_edges_rise(edges):
    collection = people()
    if isinstance(edges, set):
        edges = iter([1, 2])
    with pytest.raises((wpinq.PlanError, wpinq.ExactnessError)):
        collection.histogram("x", edges, 1)
    with pytest.raises(wpinq.PlanError, match="histogram: column 'place' is of the type text"):
        collection.histogram("place", [0, 1], 1)
    assert collection.budget.spent == 0
