"""Hierarchies in cross tables: rows of each level that add up, the counts that are true, intervals that hold."""

import numpy as np
import polars as pl
import pytest
from depth import deeper, often

import wpinq
from wpinq.core.plan.node import sources
from wpinq.errors import PlanError

NUTS = {"DE1": "DE", "DE2": "DE", "FR1": "FR", "FR2": "FR", "FR3": "FR", "DE11": "DE1", "DE12": "DE1"}
CODES = ("DE", "DE1", "DE11", "DE12", "DE2", "FR", "FR1", "FR2", "FR3", "other", "all")
RNG = np.random.default_rng(3)
PEOPLE = pl.DataFrame({
    "region": RNG.choice(["DE11", "DE12", "DE2", "FR1", "FR3", "DE", "XX"], 700),
    "sex": RNG.choice(["f", "m"], 700), "pay": RNG.integers(0, 10, 700),
})  # fmt: skip


def asked(**more):
    people = wpinq.protect(PEOPLE, budget=10**12)
    return wpinq.table(people, "region", **{"categories": {}, "hierarchy": {"region": NUTS}, **more})


def truth(of, code):
    """Whose code or the finest below it is this one; what is no finest code is under other."""
    finest = ["DE11", "DE12", "DE2", "FR1", "FR2", "FR3"]
    listed = of["region"].is_in(finest)
    if code == "other":
        return of.filter(~listed)
    return of if code == "all" else of.filter(listed & of["region"].str.starts_with(code))


def test_without_noise_each_level_has_the_records_below_it():
    told = asked(across="sex", categories={"sex": ["f", "m"]}, other="other", sum="pay", bounds={"pay": (0, 9)},
                 epsilon=10**8)  # fmt: skip
    assert told.keys[0] == ("region", CODES)
    for place, code in enumerate(CODES):
        below = truth(PEOPLE, code)
        assert told.counts[place, -1] == below.height
        assert told.counts[place, 0] == below.filter(sex="f").height
        assert told.numbers[0].values[place, -1] == below["pay"].sum()


@pytest.mark.parametrize("across", [(), "sex"])
def test_all_levels_add_up_in_whole_numbers(across):
    told = asked(across=across, categories={"sex": ["f", "m"]} if across else {}, epsilon="0.1")
    rows = dict(zip(CODES, told.counts, strict=True))
    for parent in ("DE", "FR", "DE1"):
        assert (rows[parent] == sum(rows[code] for code, above in NUTS.items() if above == parent)).all()
    assert (rows["all"] == rows["DE"] + rows["FR"] + rows["other"]).all()
    assert (abs(told.counts - told.estimates) < 1).all() and "each within one" in " ".join(told.notes)


@pytest.mark.parametrize("across", [(), "sex"])
def test_without_noise_medians_of_each_level_are_those_of_its_records(across):
    """Also of codes that are at another depth than others, and beside sums; nobody has FR2."""
    told = asked(across=across, categories={"sex": ["f", "m"]} if across else {}, median="pay", sum="pay",
                 bounds={"pay": (0, 9)}, epsilon=10**9)  # fmt: skip
    total, median = told.numbers
    for place, code in enumerate(CODES):
        for at, sex in enumerate(("f", "m", "other", "all") if across else ("all",)):
            some = truth(PEOPLE, code) if sex == "all" else truth(PEOPLE, code).filter(sex=sex)
            spot = (place, at) if across else (place,)
            assert total.values[spot] == some["pay"].sum()
            if some.height:
                assert median.low[spot] <= some["pay"].median() <= median.high[spot]
                assert median.high[spot] - median.low[spot] <= 2
                assert abs(median.values[spot] - some["pay"].median()) <= 1


def test_levels_share_what_medians_cost_and_two_hierarchies_go_together():
    people = wpinq.protect(PEOPLE.with_columns(town=pl.col("region"), code=pl.col("pay")), budget=4)
    trees = {"region": NUTS, "town": {"DE11": "DE", "DE12": "DE", "FR1": "FR", "FR3": "FR"}}
    told = wpinq.table(people, "region", "town", hierarchy=trees, median="code", bounds={"code": (0, 9)}, epsilon=4)
    ranks = told.ranked.measurements[0]
    assert [float(one.epsilon) for one in told.answer.measurements] == [2, 2]
    assert float(next(iter(ranks.quote.sensitivities.values()))) == 4 * 3  # three levels and all, two and all
    assert sources(people._node)[0].ledger.remaining() == 0
    assert told.numbers[0].values.shape == told.counts.shape == (11, 8)


@deeper
def test_intervals_hold_at_each_level():
    people, held, times = wpinq.protect(PEOPLE, budget=10**12), np.zeros(len(CODES)), often(200, 6)
    true = np.array([truth(PEOPLE, code).height for code in CODES])
    for repeat in range(times):
        told = wpinq.table(people, "region", hierarchy={"region": NUTS}, epsilon=1, name=str(repeat))
        held += np.abs(told.estimates - true) <= told.halves
    assert (held >= 0.95 * times - 4 * (0.0475 * times) ** 0.5 - 1).all(), held


def test_finer_codes_stand_further_in_on_a_page():
    told, nbsp = asked(epsilon=1), "\u00a0"
    assert f">{6 * nbsp}DE11</th>" in told.html() and ">DE</th>" in told.html()
    assert told.frame["region"].to_list() == list(CODES)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"hierarchy": {"region": {"a": "b", "b": "a"}}}, "is above itself"),
        ({"hierarchy": {"region": {}}}, "map the codes of 'region'"),
        ({"hierarchy": {"region": 5}}, "map the codes of 'region'"),
        ({"hierarchy": {"sex": NUTS}}, "'sex' is no column of the table"),
        ({"categories": {"region": ["DE"]}}, "or is in categories"),
        ({"other": "FR"}, "is called as other= is"),
        ({"total": "FR"}, "is the name of totals"),
    ],
)
def test_what_is_no_hierarchy_is_refused_and_free(words, match):
    people = wpinq.protect(PEOPLE, budget=1)
    with pytest.raises(PlanError, match=match):
        wpinq.table(people, "region", epsilon=1, **{"hierarchy": {"region": NUTS}, **words})
    assert sources(people._node)[0].ledger.remaining() == 1
