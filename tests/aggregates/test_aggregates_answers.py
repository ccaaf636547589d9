"""Aggregates, end to end: right through little noise, covered by their intervals, sensible on next to nothing."""

import datetime as dt
import inspect
import math
from fractions import Fraction
from functools import partial

import numpy as np
import polars as pl
import pytest
from aggregate_cases import ELSEWHERE, NOISY, RANKS, TRUTH, ask
from default_engine import flow
from depth import deep, deeper, often, thin
from scipy.stats import binom

import wpinq
from wpinq import aggregates
from wpinq.core.ledger.rows.secret import Secret

ONE = Secret(bytes(range(32)))
RANDOM = np.random.default_rng(11)
INCOME = np.round(np.exp(RANDOM.normal(11, 0.5, 3000)), 2).clip(0, 400_000)
AGE = RANDOM.integers(18, 66, 3000)
ZIP = np.array(["80127", "80128", "80129"])[RANDOM.integers(0, 3, 3000)]
FRAME = pl.DataFrame({"zip": ZIP, "age": AGE, "income": INCOME})
ALL = ["sum", "mean", "variance", "stdev", "min", "max", "median"]


def people(frame=FRAME, budget=10**9, **settings):
    return wpinq.protect(frame, budget=budget, secret=ONE, version="1", name="people", **settings)


def test_every_aggregate_is_tried():
    missing = set(aggregates.__all__) - ELSEWHERE - set(TRUTH)
    assert not missing, f"{sorted(missing)}: lines in tests/aggregate_cases.py"
    assert set(NOISY) | set(RANKS) == set(TRUTH), "each interval is tried"


@pytest.mark.parametrize("which", TRUTH)
def test_little_noise_shows_the_truth(which):
    """Compared with NumPy. Grids of a thousandth of the bounds for ranks, of a millionth for sums."""
    answer = ask(which, people(), epsilon=1000 if which == "count" else 5000)
    truth = TRUTH[which](INCOME)
    slack = 400 if which in RANKS else max(1e-4 * abs(truth), 0.1)
    assert abs(answer.value - truth) <= slack
    low, high = answer.interval()
    assert low - slack <= truth <= high + slack
    ages = ask(which, people(), "age", (0, 120), epsilon=1000 if which == "count" else 5000)
    assert ages.value == pytest.approx(
        TRUTH[which](AGE), rel=1e-4, abs=1 if which in set(RANKS) - {"min", "max"} else 0.05
    )


@pytest.mark.parametrize("which", TRUTH)
def test_groups_are_answered_in_the_order_of_their_keys_present_or_not(which):
    keys = ["80129", "nowhere", "80127"]
    table = ask(which, people(), epsilon=1000 if which == "count" else 5000, by="zip", keys=keys).table()
    assert table.columns == ["zip", "value", "low", "high"]
    assert table["zip"].to_list() == keys
    for zip_, value, low, high in table.iter_rows():
        assert low <= value <= high
        if zip_ != "nowhere":
            truth = TRUTH[which](INCOME[zip_ == ZIP])
            assert abs(value - truth) <= max(400 if which in RANKS else 0.1, 1e-3 * truth)


def test_groups_of_several_columns_of_any_kind():
    rows = [(None, dt.date(2020, 1, 1), 3)] * 4 + [("a", dt.date(2020, 1, 2), 5)] * 6
    plain = wpinq.protect(rows, budget=10**6, columns=("k", "day", "x"))
    typed = plain.map(lambda k, day, x: (k, day, x), columns={"k": object, "day": dt.date, "x": int})
    keys = [("a", dt.date(2020, 1, 2)), (None, dt.date(2020, 1, 1)), (7, dt.date(2020, 1, 1))]
    table = aggregates.sum(typed, "x", (0, 10), 1000, by=("k", "day"), keys=keys).table()
    assert table["value"].round().to_list() == [30, 12, 0]
    assert list(table.select("k", "day").iter_rows()) == keys
    middle = aggregates.median(typed, "x", (0, 10), 1000, by=("k", "day"), keys=keys[:2]).table()
    assert middle["value"].to_list() == [5, 3]


def test_count_distinct():
    zips = aggregates.count_distinct(people(), "zip", 1000)
    assert round(zips.value) == 3
    ages = aggregates.count_distinct(people(), "age", 1000, by="zip", keys=["80127", "nowhere"]).table()
    assert ages["value"].round().to_list() == [len(set(AGE[ZIP == "80127"].tolist())), 0]
    pairs = aggregates.count_distinct(people(), ["zip", "age"], 1000)
    assert round(pairs.value) == len(set(zip(ZIP.tolist(), AGE.tolist(), strict=True)))


def test_nulls_and_nans_are_left_out_and_infinities_clamped():
    rows = [(None,), (math.nan,), (math.inf,), (-math.inf,), (7.0,), (10.0**300,)]
    odd = wpinq.protect(rows, budget=10**9, columns={"x": float}, secret=ONE, version="1")
    kept = [10, -10, 7, 10]
    for which in ("sum", "mean", "variance", "stdev"):
        assert abs(ask(which, odd, "x", (-10, 10), 9000, step=1).value - TRUTH[which](kept)) < 0.6
    assert 7 <= ask("median", odd, "x", (-10, 10), 9000, step=1).value <= 10
    assert round(aggregates.count(odd, 1000).value) == 6, "count counts records"


@thin(4)
@pytest.mark.parametrize("which", [*TRUTH])
@pytest.mark.parametrize("size", [0, 1, 2])
def test_attack_39_next_to_no_records_give_a_noisy_answer(which, size):
    """Never null, NaN or an exception: a number within what the aggregate can be, and an interval around it."""
    for number in range(10):
        few = people(FRAME.head(size), budget=10**6)
        answer = ask(which, few, epsilon="0.3", name=str(number))
        low, high = answer.interval()
        assert math.isfinite(answer.value)
        assert low <= answer.value <= high
        if which in {"mean", *RANKS}:
            assert 0 <= low <= high <= 400_000
        if which in {"variance", "stdev"}:
            assert 0 <= low <= high <= 200_000**2


def test_attack_39_empty_and_one_row_cannot_be_told_by_the_kind_of_answer():
    kinds = []
    for size in (0, 1):
        answers = [ask(which, people(FRAME.head(size)), epsilon="0.1") for which in TRUTH]
        kinds.append([(type(answer.value), len(answer.interval()), repr(answer).splitlines()[0]) for answer in answers])
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("which", TRUTH)
def test_one_charge_before_anything_is_computed(which, monkeypatch):
    collection = people(budget=1)
    monkeypatch.setattr(flow, "run", lambda *_: pytest.fail("something was computed"))
    with pytest.raises(wpinq.BudgetError):
        ask(which, collection, epsilon="1.01")
    answer = ask(which, collection, epsilon="0.3")
    ledger = answer.measurements[0].key_owner.ledger
    assert ledger.spent()[0] == Fraction(3, 10)
    ask(which, collection, epsilon="0.3")
    assert ledger.spent()[0] == Fraction(3, 10), "the same question is free"
    ask(which, collection, epsilon="0.3", name="again")
    assert ledger.spent()[0] == Fraction(6, 10)
    monkeypatch.undo()
    assert ask(which, collection, epsilon="0.3").value == answer.value
    assert ledger.spent()[0] == Fraction(6, 10)


@pytest.mark.parametrize("which", TRUTH)
def test_another_unit_pays_what_it_moves(which):
    unit = wpinq.users("zip", at_most=5)
    answer = ask(which, people(unit=unit), epsilon=2)
    question = answer.measurements[0]
    assert question.key_owner.ledger.spent()[0] == 2
    parts = {"mean": 2, "variance": 3, "stdev": 3}.get(which, 1)
    assert question.scale == Fraction(5 * parts, 2)


def worlds(size, values):
    """Many groups with the same numbers, so that one question has many independent answers."""
    return pl.DataFrame({"w": np.repeat(np.arange(size), len(values)), "x": np.tile(values, size).astype(float)})


@thin(3)
@pytest.mark.parametrize("which", NOISY)
def test_attack_48_intervals_hold_the_truth(which):
    """2,000 groups of 40 numbers on the grid; at least 95% of intervals hold it. Binomial tail, false alarm 1e-6."""
    values = np.random.default_rng(12).integers(0, 101, 40)
    size = 2000
    answer = ask(which, people(worlds(size, values)), "x", (0, 100), 1, step=1, by="w", keys=range(size))
    truth = TRUTH[which](values)
    for simultaneous in (False, True):
        table = answer.table(simultaneous=simultaneous)
        held = (table["low"] <= truth + 1e-6) & (table["high"] >= truth - 1e-6)
        hits = int((held | (abs(table["value"] - truth) < 1e-3)).sum())
        assert binom.cdf(hits, size, 0.95) > 1e-6
        if simultaneous:
            assert hits >= size - 3, "0.05 misses are expected in all; more than 3 come about 3 times in 10 million"
    assert table["value"].n_unique() > 10
    singles = answer.table()
    if which in {"count", "sum"}:
        assert binom.sf(((singles["low"] <= truth) & (singles["high"] >= truth)).sum(), size, 0.975) > 1e-6


@thin(3)
@pytest.mark.parametrize("which", RANKS)
def test_intervals_of_ranks_hold_the_truth(which):
    """1,000 groups of 200 numbers, some far from the others. Binomial tail, false alarm 1e-6."""
    values = np.append(np.random.default_rng(13).integers(20, 60, 190), np.arange(0, 100, 10))
    size = 1000
    answer = ask(which, people(worlds(size, values)), "x", (0, 100), 2, step=1, by="w", keys=range(size))
    truth, table = TRUTH[which](values), answer.table()
    held = int(((table["low"] <= truth) & (table["high"] >= truth)).sum())
    assert binom.cdf(held, size, 0.95) > 1e-6
    assert np.median(np.abs(table["value"].to_numpy() - truth)) < 35
    assert table["value"].n_unique() > 1


def test_intervals_hold_numbers_between_the_points_of_the_grid():
    """All numbers are alike and lie between two points; an interval of one point would miss them."""
    collection = people(pl.DataFrame({"x": [0.26] * 500}))
    for which in ("median", "min", "max", "quantile"):
        low, high = ask(which, collection, "x", (0, 1), 100, step="0.1").interval()
        assert low <= 0.26 <= high
    low, high = ask("median", collection, "x", (0, 1), 100, step="0.1").interval()
    assert (low, high) == pytest.approx((0.25, 0.35))


def test_min_and_max_do_not_wander_off_where_there_are_records():
    """Bounds far beyond the data. 94% of answers lie so near; of 300, by the binomial tail, false alarm 1e-6."""
    size = 300
    frame = worlds(size, np.arange(500, 600))
    low = aggregates.min(people(frame), "x", (100, 1000), 2, by="w", keys=range(size)).table()["value"]
    high = aggregates.max(people(frame), "x", (100, 1000), 2, by="w", keys=range(size)).table()["value"]
    for good in ((low > 300) & (low < 560), (high < 800) & (high > 540)):
        assert binom.cdf(int(good.sum()), size, 0.936) > 1e-6
    assert low.median() >= 470 and high.median() <= 635


@deeper
def test_max_of_skewed_numbers_is_near_the_largest():
    """A thousand incomes; the largest is 420,500 and the fortieth 125,000, which was the answer. 300 answers.

    The medians of simulated ones are 434,500 at epsilon 1 and 272,500 at 0.1, with standard errors of 2,300 and 8,200.
    """
    low = np.exp(np.random.default_rng(3).normal(9.8, 1.2, 960)).clip(0, 124_000)
    values = np.append(low, np.interp(np.arange(1, 41), [1, 10, 40], [420_500, 325_000, 125_000]))
    size = often(300, 100)
    for epsilon, least in ((1, 380_000), ("0.1", 220_000)):
        answer = aggregates.max(people(worlds(size, values)), "x", (0, 500_000), epsilon, by="w", keys=range(size))
        table = answer.table()
        assert least < table["value"].median() < 460_000
        held = int(((table["low"] <= 420_500) & (table["high"] >= 420_500)).sum())
        assert binom.cdf(held, size, 0.95) > 1e-6


@deep
def test_audit_of_one_record_and_a_median():
    """The likelihood ratio of every point, with and without one record, is at most e^epsilon; 6 sigma bounds.

    8,000 groups of 3 records: the median is one of five points. That the audit has teeth: half of epsilon fails.
    """
    size, epsilon = 8000, 2.0
    counts = []
    for values in ([1, 1, 3], [1, 1, 3, 3]):
        frame = worlds(size, values)
        answer = aggregates.median(people(frame), "x", (0, 4), epsilon, step=1, by="w", keys=range(size))
        counts.append(np.bincount(answer.table()["value"].to_numpy().astype(int), minlength=5) / size)

    def violates(bound):
        for i in (0, 1):
            one, two = counts[i], counts[1 - i]
            sigma = np.sqrt((one + np.exp(2 * bound) * two + 1 / size) / size)
            if (one > np.exp(bound) * two + 6 * sigma).any():
                return True
        return False

    assert not violates(epsilon / 2), "the answer itself has half of epsilon"
    assert violates(epsilon / 16)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda c: aggregates.sum(c, "zip", (0, 1), 1),
        lambda c: aggregates.sum(c, "nothing", (0, 1), 1),
        lambda c: aggregates.mean(c, "age", (5, 5), 1),
        lambda c: aggregates.mean(c, "age", (9, 5), 1),
        lambda c: aggregates.mean(c, "age", 100, 1),
        lambda c: aggregates.mean(c, "age", (0, 100), 1, step=3),
        lambda c: aggregates.mean(c, "age", (0, 100), 1, step="1e-9"),
        lambda c: aggregates.median(c, "age", (0, 10**7), 1, step=1),
        lambda c: aggregates.median(c, "age", (0, 100), 1, confidence=1),
        lambda c: aggregates.quantile(c, "age", 2, (0, 100), 1),
        lambda c: aggregates.count(c, 1, by="zip"),
        lambda c: aggregates.count(c, 1, keys=["80127"]),
        lambda c: aggregates.count(c, 1, by="nothing", keys=["80127"]),
        lambda c: aggregates.count(c, 1, by="zip", keys=["80127"]).value,
        lambda c: aggregates.median(c, "age", (0, 9), 1, by="zip", keys=["80127"]).interval(),
        lambda c: aggregates.suggest_bound(c, 1),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    collection = people()
    with pytest.raises(wpinq.PlanError):
        wrong(collection)


NOT_ITS_OWN = {"count": ["step"], "count_distinct": ["step"], "variance": ["within"], "stdev": ["confidence"]}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("count", ()), ("count_distinct", ("age",)),
        *((name, ("age", (0, 99))) for name in ("sum", "mean", "variance", "stdev", "min", "max", "median")),
        ("quantile", ("age", 0.5, (0, 99))),
    ],
)  # fmt: skip
def test_a_misspelled_option_is_told_and_costs_nothing(name, given):
    collection = people()
    ask = getattr(collection, name)
    for wrong in ("nme", "kyes", "stp", *NOT_ITS_OWN.get(name, [])):
        with pytest.raises(TypeError, match=rf"^{name}\(\): got an unexpected keyword argument '{wrong}'"):
            ask(*given, 1, **{wrong: "ages"})
    assert collection._node.data.ledger.spent() == (0, 0)


@pytest.mark.parametrize(
    "name", ["count", "count_distinct", "sum", "mean", "variance", "stdev", "min", "max", "median"]
)
def test_every_option_has_a_name_and_a_default_where_help_shows_it(name):
    shown = inspect.signature(getattr(wpinq.Collection, name)).parameters
    options = {one for one, its in shown.items() if its.kind is its.KEYWORD_ONLY and its.default is not its.empty}
    numbers = {"step"} if name not in ("count", "count_distinct") else set()
    numbers |= {"mechanism", "rho", "delta"} if name not in ("min", "max", "median") else set()
    ranks = set()
    if name in ("count", "count_distinct", "sum", "min", "max", "median"):
        ranks = {"within", "confidence"}
    if name == "mean":
        ranks = {"within", "confidence", "records"}
    if name == "median":
        ranks |= {"interval"}
    assert options == {"by", "keys", "name", "analyst"} | numbers | ranks
    assert all(its.kind is not its.VAR_KEYWORD for its in shown.values())


def test_suggested_bound_is_a_private_quantile_of_records_per_person():
    lengths = np.concatenate([np.full(900, 3), np.full(80, 20), np.full(20, 5000)])
    frame = pl.DataFrame({"user": np.repeat(np.arange(1000), lengths), "page": np.zeros(lengths.sum(), np.int64)})
    for unit in (wpinq.users("user", shared=True), wpinq.users("user", at_most=4)):
        collection = people(frame, budget=20, unit=unit)
        assert aggregates.suggest_bound(collection, 10) == 20
        assert aggregates.suggest_bound(collection.map(lambda page: page), 10) == 20, (
            "free, and the plan does not matter"
        )
        home = collection._node.source.data
        assert home.ledger.spent()[0] == 10
        assert aggregates.suggest_bound(collection, 9, share="0.5", grid=(1, 3, 4)) == 3
        with pytest.raises(wpinq.BudgetError):
            aggregates.suggest_bound(collection, "1.5", share="0.5")
    for grid in ((), (3, 2), (0, 1), (1.5, 2), (1, 1)):
        with pytest.raises(wpinq.PlanError, match="grid"):
            aggregates.suggest_bound(collection, 1, grid=grid)


def test_suggested_bound_of_nobody_is_a_number_of_the_grid():
    empty = people(FRAME.head(0), unit=wpinq.users("zip", shared=True))
    assert aggregates.suggest_bound(empty, 1, grid=(2, 9)) in (2, 9)


@pytest.mark.parametrize("level", ["0.9", "0.999"])
def test_an_accuracy_is_bought_at_the_least_epsilon(level):
    collection = people(budget=10**6)
    for question, near in (
        (partial(aggregates.count), 50),
        (partial(aggregates.count_distinct, columns="zip"), 7),
        (partial(aggregates.sum, column="age", bounds=(0, 120)), 900),
        (partial(aggregates.sum, column="age", bounds=(0, 120), by="zip", keys=["80127", "x"]), "900.5"),
    ):
        answer = question(collection, within=near, confidence=level)
        cells = answer.table(level)
        half = float((cells["high"] - cells["low"]).max()) / 2
        assert half <= float(near)
        cheaper = question(collection, epsilon=answer.measurements[0].epsilon * Fraction(98, 100)).table(level)
        assert float((cheaper["high"] - cheaper["low"]).max()) / 2 > half
    with pytest.raises(wpinq.ExactnessError, match=r"count\(\): give either epsilon=.*or within="):
        aggregates.count(collection)
    with pytest.raises(wpinq.PlanError, match="give either"):
        aggregates.sum(collection, "age", (0, 9), 1, within=3)
