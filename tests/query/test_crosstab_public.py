"""Public numbers of a table are kept exactly, all numbers add up, none is further from the truth, lies are refused."""

import numpy as np
import polars as pl
import pytest
from depth import deeper, often

import wpinq
from wpinq.core.plan.node import sources
from wpinq.errors import PlanError

RNG = np.random.default_rng(9)
PEOPLE = pl.DataFrame({
    "region": RNG.choice(["north", "south", "east"], 600), "age": RNG.choice([str(i) for i in range(7)], 600),
    "sex": RNG.choice(["f", "m"], 600), "pay": RNG.integers(0, 9, 600),
}).filter((pl.col("region") != "north") | (pl.col("age") < "5"))  # fmt: skip
LISTS = {"region": ["north", "south", "east"], "age": [str(i) for i in range(7)], "sex": ["f", "m"]}
TRUE = {"north": PEOPLE.filter(region="north").height, "all": PEOPLE.height}
KEEP = [
    ({"region": "north", "age": "5"}, 0), ({"region": "north", "age": "6"}, 0), ({"region": "north"}, TRUE["north"]),
    ({}, TRUE["all"]),
]  # fmt: skip


def asked(names=("region", "age"), keep=KEEP, **more):
    people = more.pop("people", None) or wpinq.protect(PEOPLE, budget=10**9)
    lists = {name: LISTS[name] for name in names}
    return wpinq.table(people, list(names), **{"categories": lists, "other": None, "epsilon": 1, "keep": keep, **more})


@pytest.mark.parametrize("names", [("region", "age"), ("region", "age", "sex")])
def test_public_numbers_are_kept_and_all_add_up(names):
    told = asked(names)
    north = [name == "north" for name in LISTS["region"]].index(True)
    rest = (-1,) * (len(names) - 2)
    assert told.counts[(north, 5, *rest)] == told.counts[(north, 6, *rest)] == 0
    assert told.counts[(north, -1, *rest)] == TRUE["north"]
    assert told.counts[(-1, -1, *rest)] == TRUE["all"]
    for axis in range(told.counts.ndim):
        parts, totals = np.split(told.counts, [-1], axis=axis)
        assert (parts.sum(axis=axis, keepdims=True) == totals).all()
    assert told.halves[(-1, -1, *rest)] == 0
    assert f"{TRUE['all']}*" in repr(told) and "* A public number" in told.html()


def test_what_is_known_of_all_cells_is_the_table():
    truth = {(row[0], row[1]): row[2] for row in PEOPLE.group_by("region", "age").len().rows()}
    every = [({"region": region, "age": age}, truth.get((region, age), 0))
             for region in LISTS["region"] for age in LISTS["age"]]  # fmt: skip
    told = asked(keep=every)
    assert told.counts[-1, -1] == PEOPLE.height
    assert np.abs(told.estimates - told.counts).max() < 1e-6


@deeper
def test_numbers_are_no_further_from_the_truth_and_intervals_hold():
    truth = asked(epsilon=10**8).counts
    people, times = wpinq.protect(PEOPLE, budget=10**9), often(150, 5)
    errors, held = np.zeros(2), 0.0
    for repeat in range(times):
        with_it, without = (asked(people=people, keep=keep, name=str(repeat)) for keep in (KEEP, []))
        errors += [((one.estimates - truth) ** 2).sum() for one in (with_it, without)]
        held += (np.abs(with_it.estimates - truth) <= with_it.halves + 1e-6).mean()
    assert errors[0] < errors[1]
    assert held > (0.95 - 0.4 / times**0.5) * times


NUMBERS = {"sum": "pay", "mean": "pay", "median": "pay", "bounds": {"pay": (0, 8)}}


@pytest.mark.parametrize("spent", [{"epsilon": "0.5"}, {"rho": "0.01", "mechanism": "gaussian"}])
def test_where_nobody_is_sums_are_zero_and_means_and_medians_are_unknown(spent):
    people = wpinq.protect(PEOPLE, **({"rho": 10**6} if "rho" in spent else {"budget": 10**6}))
    told = asked(people=people, **{"epsilon": None, **NUMBERS, **spent})
    north = LISTS["region"].index("north")
    total, mean, median = told.numbers
    for age in (5, 6):
        place = north, age
        assert (told.counts[place], total.values[place], total.low[place], total.high[place]) == (0, 0, 0, 0)
        for number in (mean, median):
            assert (number.low[place], number.high[place]) == (0, 8)
            assert number.texts[int(np.ravel_multi_index(place, told.counts.shape))] == "unknown"
    for axis in range(2):
        parts, totals = np.split(total.parts, [-1], axis=axis)
        assert (parts.sum(axis=axis, keepdims=True) == totals).all()
    assert told.counts[north, -1] == TRUE["north"] and total.low[north, -1] < total.high[north, -1]


@deeper
def test_sums_beside_cells_that_are_empty_are_no_further_from_the_truth():
    people, times = wpinq.protect(PEOPLE, budget=10**9), often(150, 5)
    true = asked(epsilon=10**8, sum="pay", bounds={"pay": (0, 8)}).numbers[0].values
    errors, held = np.zeros(2), 0.0
    for repeat in range(times):
        both = [asked(people=people, keep=keep, name=str(repeat), sum="pay", bounds={"pay": (0, 8)}).numbers[0]
                for keep in (KEEP, [])]  # fmt: skip
        errors += [(((number.low + number.high) / 2 - true) ** 2).sum() for number in both]
        held += ((both[0].low - 1e-6 <= true) & (true <= both[0].high + 1e-6)).mean()
    assert errors[0] < errors[1]
    assert held > (0.95 - 0.4 / times**0.5) * times


def test_totals_are_kept_beside_names_that_nobody_listed():
    people = wpinq.protect(PEOPLE, budget=10, delta="1e-5")
    keep = [({"region": "north"}, TRUE["north"]), ({}, TRUE["all"])]
    told = wpinq.table(people, ["age", "region"], categories={"region": LISTS["region"]}, epsilon=5, delta="1e-6",
                       keep=keep)  # fmt: skip
    assert {"0", "4", "other", "all"} <= set(told.keys[0][1])
    assert told.counts[-1, LISTS["region"].index("north")] == TRUE["north"] and told.counts[-1, -1] == TRUE["all"]


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"keep": [({"region": "west"}, 1)]}, "has no 'region' of that value"),
        ({"keep": [({"region": "north"}, -1)]}, "is a count"),
        ({"keep": [({"region": "north"}, 1.5)]}, "is a count"),
        ({"keep": 5}, "list pairs"),
        ({"keep": [5]}, "list pairs"),
        ({"keep": [({"region": name}, 1) for name in LISTS["region"]] + [({}, 5)]}, "no table has all"),
        ({"keep": [({}, 0), ({"region": "north"}, 3)]}, "no table has all"),
        ({"names": ("region", "age", "sex"), "keep": [({"age": "1"}, 3)]}, "Put the columns of this number first"),
        (
            {"categories": {"age": LISTS["age"]}, "other": "other", "delta": "1e-9", "keep": [({"region": "a"}, 1)]},
            "values of region are not known before",
        ),
        (
            {"categories": {"age": LISTS["age"]}, "other": "other", "delta": "1e-9", "keep": [({"age": "1"}, 0)]},
            "above zero",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_and_free(words, match):
    people = wpinq.protect(PEOPLE, budget=1, delta="1e-6")
    with pytest.raises(PlanError, match=match):
        asked(people=people, **words)
    assert sources(people._node)[0].ledger.remaining() == 1
