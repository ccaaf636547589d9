"""Gaussian measurements: what is charged covers how far a unit moves; which noise is best follows from the plan."""

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from depth import deep
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from strategies import evaluate

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.sums.renyi import epsilon_of
from wpinq.core.noise.gaussian_curve import square_of
from wpinq.core.plan.node import sources
from wpinq.core.pricing.privacy_cost import rho_of
from wpinq.errors import BudgetError, ExactnessError, PlanError

ONE = Secret(bytes(range(32)))
COLUMNS = {"user": str, "page": str, "age": int}
PERSON = wpinq.users("user", at_most=6)
TINY = "1e-6"


def views(records=(), unit=PERSON, **promise):
    promise = promise or {"rho": 10**6, "delta": "0.5"}
    return wpinq.protect(list(records), secret=ONE, version="1", unit=unit, columns=COLUMNS, name="views", **promise)


def ledger(collection):
    return sources(collection._node)[0].ledger


PLANS = {
    "pages": lambda v: v.map("page"),
    "people of pages": lambda v: v.map("user, page").distinct().map("page"),
    "twice": lambda v: v.map("page").concat(v.map("page")),
    "both": lambda v: v.map("page").concat(v.map("user", columns=["page"])),
    "shave": lambda v: v.map("page").shave(),
    "thin": lambda v: v.map("page").shave("1/3"),
    "degrees": lambda v: v.map("page").shave().map("index"),
    "groups": lambda v: v.map("page, age").group_by("page", len),
    "whole groups": lambda v: v.map("page, age").group_by("page", len, whole=True),
    "shared out": lambda v: v.flat_map(lambda page: [page, "all"]),
    "join": lambda v: v.map("page, age").join(v.map("page, user"), "page").map("page"),
    "some": lambda v: v.limit("page", 2).map("page"),
}


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 2)), max_size=10),
    st.lists(st.tuples(st.sampled_from("uv"), st.sampled_from("abcd"), st.integers(0, 2)), max_size=8),
    st.sampled_from(sorted(PLANS)),
    st.sampled_from([PERSON, wpinq.users("user", at_most=6, per=("page", 2)), wpinq.users("user", shared=True), None]),
)
def test_what_is_charged_covers_the_squares_of_all_moves(own, others, which, unit):
    """By the definitions: rho of a multivariate Gaussian is the sum of the squares of the moves over 2 sigma^2."""
    if unit is not None and unit.at_most is None and which == "whole groups":
        return  # weights are not whole there
    own = own if unit is not None else own[:1]
    collection = PLANS[which](views(unit=unit))
    quote = collection.quote(rho="1/7", mechanism="gaussian")
    node = quote.node
    with_, without = (
        evaluate(wpinq.Collection(node), [*others, *(("ann", *one) for one in some)]) for some in (own, [])
    )
    moved = [(with_.get(key, 0) - without.get(key, 0)) * node.resolution for key in {*with_, *without}]
    charged = sum(cost.rho for _, charge in quote.charges for cost in charge.costs)
    assert sum(move**2 for move in moved) / (2 * quote.mechanism.square) <= charged == quote.rho == Fraction(1, 7)


@pytest.mark.parametrize("weight", [5, -5, 100, -100, 1.7])
@pytest.mark.parametrize("which", ["pages", "twice", "shave", "distinct"])
def test_records_with_weights_pay_for_the_largest(weight, which):
    """What is read off nearly noiseless answers; a weight beyond the bound is cut to it, either way."""
    plan = {**PLANS, "distinct": lambda v: v.distinct()}[which]
    bins = [(page, i) for page in "ab" for i in range(1, 30)] if which == "shave" else ["a", "b"]

    def table(more=(), rho=10**30):
        rows = pl.DataFrame([("a", 1.25), ("b", 4.0), *more], schema={"page": pl.String, "w": pl.Float64}, orient="row")
        return wpinq.protect(rows, weight="w", max_weight=5, rho=rho, version="1")

    quote = plan(table()).quote(rho="1/7", mechanism="gaussian")
    one, other = (plan(table(more)).measure(rho=10**25, mechanism="gaussian").observe_many(bins)
                  for more in ((), [("a", float(weight))]))  # fmt: skip
    loss = float(np.sum((one - other) ** 2)) / (2 * float(quote.scale) ** 2)
    assert loss <= 1 / 7 * (1 + 1e-6)
    assert loss > 0.05 or which != "pages" or weight == 1.7


def test_the_curve_belongs_to_the_sum_of_the_paths():
    """Twice the shift is four times the rho: at one sigma, the plan that reads twice pays four times as much."""
    v = views(unit=None)
    one, two = (
        plan.quote(rho="1/8", mechanism="gaussian") for plan in (v.map("page"), v.map("page").concat(v.map("page")))
    )
    assert two.mechanism.square == 4 * one.mechanism.square
    assert [cost.rho for _, charge in two.charges for cost in charge.costs] == [Fraction(1, 8)]


def test_parts_cost_the_largest_and_versions_add_up():
    v = views([("ann", "a", 1)])
    for page, rho in (("a", "0.2"), ("b", "0.3"), ("c", "0.1")):
        v.partition("page", ["a", "b", "c"])[page].measure(rho=rho, mechanism="gaussian")
    assert ledger(v).divergence == Fraction(3, 10)
    both = v.partition("page", ["a", "b"])
    quote = both["a"].concat(both["b"]).quote(rho=1, mechanism="gaussian")
    assert [price.epsilon for price in quote.prices] == [1]


def test_several_data_sets_of_a_ledger_pay_for_the_sum_of_their_moves(tmp_path):
    """A unit in both moves a bin by 2: rho is of (1 + 1)^2, and each data set pays half of it."""
    first = wpinq.protect([("a",)], rho=9, ledger=tmp_path / "l", version="1", columns={"p": str}, name="t")
    second = wpinq.protect([("a",)], ledger=tmp_path / "l", version="2", columns={"p": str}, name="t")
    quote = first.concat(second).quote(rho="1/2", mechanism="gaussian")
    assert quote.mechanism.square == 4
    assert [cost.rho for _, charge in quote.charges for cost in charge.costs] == [Fraction(1, 4)] * 2


@pytest.mark.parametrize(("epsilon", "delta"), [(1, TINY), ("0.2", TINY), (1, "1e-9"), (4, "1e-3"), ("0.01", "1e-8")])
def test_epsilon_and_delta_become_a_rho_that_holds_them(epsilon, delta):
    """Against the exact curve of continuous Gaussian noise (Balle and Wang, ICML 2018), and dp-accounting's RDP."""
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    rho = rho_of(epsilon, delta)

    def exact(rho):
        mu, e = math.sqrt(2 * rho), float(epsilon)
        return norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu)

    assert exact(float(rho)) <= float(delta)
    assert exact(float(rho) * 1.25) > float(delta), "and not much smaller than need be"
    whole = epsilon_of(lambda order: order * rho, delta)
    assert whole <= epsilon <= whole * Fraction(103, 100)
    accounting = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp").RdpAccountant(
        orders=[1 + 2**k * 1.0 for k in np.arange(-4, 14, 0.05)]
    )
    rdp.compose(accounting.GaussianDpEvent(1 / math.sqrt(2 * rho)))
    assert float(epsilon) * 0.97 <= rdp.get_epsilon(float(delta)) <= float(epsilon)


def test_the_whole_budget_buys_one_measurement_of_its_epsilon_and_delta():
    pages = views(budget=1, delta=TINY, accounting="renyi").map("page")
    quote = pages.quote(1, mechanism="gaussian", delta=TINY)
    assert all(price.fits for price in quote.prices)
    pages.measure(quote=quote)
    with pytest.raises(BudgetError):
        pages.measure(rho="1e-5", mechanism="gaussian", name="more")


@deep
def test_a_hundred_counts_and_a_thousand_at_epsilon_1_and_delta_a_millionth():
    """The filter's figures: 45.4 and 143.4, where a sum of epsilons has 141 and 1,414, and Laplace noise 63 and 202."""
    for many, wide in ((100, 45.4), (1000, 143.4)):
        v = views(unit=None, budget=1, delta=TINY, accounting="renyi")
        each = rho_of(Fraction(1), Fraction(TINY)) / many
        made = [v.map("page").quote(rho=each, mechanism="gaussian", name=str(i)) for i in range(many)]
        assert math.sqrt(made[0].mechanism.variance()) < wide
        v._commit(made)
        with pytest.raises(BudgetError):
            v.map("page").measure(rho=each, mechanism="gaussian", name="more")


def test_answers_are_whole_numbers_with_the_noise_of_the_bin():
    records = [("ann", f"p{i % 7}", 1) for i in range(5)] + [(f"u{i}", f"p{i % 7}", 1) for i in range(700)]
    m = views(records).map("page").measure(rho="1e-3", mechanism="gaussian")
    pages = [f"p{i}" for i in range(2000)]
    answers = m.observe_many(pages)
    assert answers.dtype == np.int64
    assert [m.observe(page) for page in pages[:20]] == answers[:20].tolist()
    again = views(records[::-1]).map(pl.col("page")).measure(rho="1e-3", mechanism="gaussian", name=None)
    assert (again.epsilon, again.rho, again.scale) == (0, Fraction(1, 1000), m.scale)
    table = m.release(keys=pages[:3])
    assert [dict(table)[page] for page in pages[:3]] == answers[:3].tolist()
    assert table.cost == {"delta": 0.0, "rho": 0.001}, "no epsilon bounds it"
    assert "rho 0.001" in repr(m)
    empty = answers[7:]
    assert abs((np.abs(empty) <= m.interval()).mean() - 0.95) < 5 * math.sqrt(0.95 * 0.05 / len(empty))
    assert abs(empty.std() / float(m.scale) - 1) < 5 / math.sqrt(2 * len(empty))
    assert float(m.scale) == pytest.approx(6 / math.sqrt(0.002))


def test_weighted_bins_have_noise_on_their_own_grid():
    m = views().map("page").shave("1/3").measure(rho=5, mechanism="gaussian")
    values = m.observe_many([("a", i) for i in range(1, 50)])
    assert np.allclose(values * 3, np.round(values * 3))
    assert len(set(values.tolist())) > 3


def test_thresholds_and_accuracy_follow_its_own_law():
    records = [(f"u{i}", "often", 1) for i in range(5000)] + [("ann", f"rare{i}", 1) for i in range(6)]
    m = views(records).map("user, page").distinct().map("page").measure(rho="0.01", mechanism="gaussian")
    table = m.release(delta=TINY)
    assert dict(table).keys() == {"often"}
    assert 4.5 < table.threshold / float(m.scale) < 5.5
    near = views().map("page").quote(within=20, mechanism="gaussian", confidence="0.99")
    assert near.mechanism.half_width(Fraction(99, 100)) <= 20
    assert norm.isf(0.005) * math.sqrt(near.mechanism.variance()) == pytest.approx(20, rel=0.04)


def test_windows_pay_rho_once():
    rows = [("ann", "a", hour) for hour in range(5)]
    m = views(rows).window(2, at="age").map("page").measure(rho="0.1", mechanism="gaussian")
    assert isinstance(m.observe("a", window=1), int)
    assert isinstance(m.observe("a", window=3), int)
    assert m.key_owner.ledger.divergence == Fraction(1, 10)


# ------------------------------------------------------------------ epsilon and delta, asked at once


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 2)), max_size=10),
    st.sampled_from(sorted(PLANS)),
    st.sampled_from([PERSON, wpinq.users("user", at_most=6, per=("page", 2)), None]),
)
def test_what_is_asked_at_once_is_hidden_on_exact_neighbours(own, which, unit):
    """What one unit moves, by the definitions, is no longer as a vector than the noise was made for."""
    others, own = [("u", "a", 1), ("v", "b", 2)], own if unit is not None else own[:1]
    quote = PLANS[which](views(unit=unit, budget=1, delta=TINY)).quote(1, delta=TINY, mechanism="gaussian")
    node, noise = quote.node, quote.mechanism
    with_, without = (
        evaluate(wpinq.Collection(node), [*others, *(("ann", *one) for one in some)]) for some in (own, [])
    )
    moved = [(with_.get(key, 0) - without.get(key, 0)) * node.resolution for key in {*with_, *without}]
    squares, bins = sum(Fraction(move) ** 2 for move in moved), sum(map(bool, moved))
    assert not squares or noise.square >= square_of(squares, bins, Fraction(1), Fraction(TINY))
    (paid,) = [cost for _, charge in quote.charges for cost in charge.costs]
    assert (paid.epsilon, paid.delta, paid.rho, paid.under) == (1, Fraction(TINY), 0, ())


def test_a_hundred_counts_asked_at_once_have_deviation_43_at_most():
    v = views(unit=wpinq.users("user", at_most=100), budget=1, delta=TINY)
    people = PLANS["people of pages"](v)
    made = people.measure(1, delta=TINY, mechanism="gaussian")
    assert made.stddev() < 42.3
    assert ledger(v).spent() == (1, Fraction(TINY))
    assert people.measure(1, delta=TINY, mechanism="gaussian").question == made.question, "free, and the same"
    assert made.release(keys=["a"]).cost == {"epsilon": 1.0, "delta": 1e-6}
    assert repr(made).endswith("epsilon 1, delta 0.000001, scale 42.2705>")
    assert "measure(epsilon=1, delta=0.000001)  gaussian noise of standard deviation 42.27" in made.explain()
    with pytest.raises(BudgetError):
        people.measure("1/100", delta=TINY, mechanism="gaussian")
    bins = [f"p{i}" for i in range(4000)]
    inside = np.abs(made.observe_many(bins)) <= made.interval("0.9")
    assert abs(inside.mean() - 0.9) < 5 * math.sqrt(0.09 / len(bins)), "fails for one key in two million"


def test_sql_asks_at_once_too():
    v = views(unit=wpinq.users("user", at_most=100, per=("page", 1)), budget=1, delta=TINY)
    asked = {"epsilon": 1, "delta": TINY, "mechanism": "gaussian", "keys": ["a", "b"]}
    told = wpinq.sql("EXPLAIN SELECT page, COUNT(*) FROM v GROUP BY page", {"v": v}, **asked).frame
    assert told["scale of noise"].to_list() == [pytest.approx(42.27, abs=0.01)]
    found = wpinq.sql("SELECT page, COUNT(*), SUM(age) FROM v GROUP BY page", {"v": v}, bounds={"age": (0, 1)}, **asked)
    assert ledger(v).spent() == (1, Fraction(TINY)) and found.cost["delta"] == pytest.approx(1e-6)


def test_parts_of_it_add_up():
    """Half of what a unit moves in all loses more than half of epsilon at this delta, so no part is free."""
    v = views([("ann", "a", 1)], budget=3, delta="1e-5")
    for page in ("a", "b"):
        v.partition("page", ["a", "b"])[page].map("age").measure(1, delta=TINY, mechanism="gaussian")
    assert ledger(v).spent() == (2, 2 * Fraction(TINY))


def test_data_sets_of_a_ledger_pay_it_together(tmp_path):
    first = wpinq.protect(
        [("a",)], budget=1, delta=TINY, ledger=tmp_path / "l", version="1", columns={"p": str}, name="t"
    )
    second = wpinq.protect([("a",)], ledger=tmp_path / "l", version="2", columns={"p": str}, name="t")
    made = first.concat(second).measure(1, delta=TINY, mechanism="gaussian")
    assert made.quote.mechanism.square == square_of(Fraction(4), 2, Fraction(1), Fraction(TINY))
    assert ledger(first).spent() == (1, Fraction(TINY))


def test_windows_refuse_it():
    v = views([("ann", "a", 1)], budget=3, delta="1e-5").window(2, at="age").map("page")
    with pytest.raises(PlanError, match="windows are charged as parts"):
        v.measure(1, delta=TINY, mechanism="gaussian")
    assert v.quote(1, delta=TINY, mechanism="best").mechanism.name == "geometric"
    assert ledger(v).spent() == (0, 0)


# ------------------------------------------------------------------ the chooser


def test_best_takes_the_noise_that_keeps_a_bin_nearer():
    renyi = {"budget": 1, "delta": TINY, "accounting": "renyi"}
    few, many = (wpinq.users("user", at_most=k) for k in (3, 100))
    people = PLANS["people of pages"]
    picked = {
        "few": people(views(unit=few, **renyi)), "many": people(views(unit=many, **renyi)),
        "only L1": PLANS["pages"](views(unit=many, **renyi)), "pure": people(views(unit=many, budget=1, delta=TINY)),
    }  # fmt: skip
    names = {what: plan.quote(1, mechanism="best", delta=TINY).mechanism.name for what, plan in picked.items()}
    assert names == {"few": "geometric", "many": "gaussian", "only L1": "geometric", "pure": "gaussian"}
    for plan in picked.values():
        best = plan.quote(1, mechanism="best", delta=TINY)
        named = {
            name: plan.quote(1, mechanism=name, **({"delta": TINY} if name == "gaussian" else {}))
            for name in ("geometric", "gaussian")
        }
        half = {name: one.mechanism.half_width(Fraction(95, 100)) for name, one in named.items()}
        assert best.mechanism.half_width(Fraction(95, 100)) == min(half.values())
        assert best.question == named[best.mechanism.name].question, "it is the same question as by its name"


def test_the_choice_does_not_look_at_records():
    renyi = {"budget": 1, "delta": TINY, "accounting": "renyi"}
    chosen = [PLANS["pages"](views(some, **renyi)).quote(1, mechanism="best", delta=TINY).mechanism
              for some in ([], [("ann", "a", 1)] * 1000)]  # fmt: skip
    assert chosen[0] == chosen[1]


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize("mechanism", ["gaussian", "best"])
def test_a_pure_ledger_refuses_gaussian_noise_without_epsilon_and_delta(mechanism):
    v = views(budget=5, delta=TINY)
    for asked in ({"rho": 1}, {"within": 5}, {"epsilon": 1}):
        with pytest.raises(PlanError):
            v.map("page").measure(mechanism=mechanism, **asked)
    assert ledger(v).spent() == (0, 0)


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({}, ExactnessError, "give either epsilon="),
        ({"rho": 1}, PlanError, "Gaussian noise; add mechanism='gaussian'"),
        ({"epsilon": 1, "delta": TINY}, PlanError, "Gaussian noise; add mechanism='gaussian'"),
        ({"epsilon": 1, "mechanism": "gaussian"}, PlanError, "add delta="),
        ({"epsilon": 1, "rho": 1, "mechanism": "gaussian"}, PlanError, "either epsilon= or rho="),
        ({"rho": 1, "delta": TINY, "mechanism": "gaussian"}, PlanError, "goes with epsilon="),
        ({"epsilon": 1, "mechanism": "best"}, PlanError, "give both"),
        ({"within": 1, "mechanism": "best"}, PlanError, "give both"),
        ({"rho": 0, "mechanism": "gaussian"}, ExactnessError, "above zero"),
        ({"rho": 1e-90, "mechanism": "gaussian"}, PlanError, "standard deviation is above"),
        ({"epsilon": "1e-9", "delta": "1e-12", "mechanism": "gaussian"}, PlanError, "take more of either"),
        ({"epsilon": 1, "delta": 1, "mechanism": "gaussian"}, ExactnessError, "below 1"),
        ({"epsilon": 1, "mechanism": "normal"}, PlanError, "'gaussian' or 'best'"),
    ],
)
def test_what_does_not_say_one_amount_is_refused(asked, error, says):
    v = views()
    with pytest.raises(error, match=says):
        v.map("page").measure(**asked)
    assert ledger(v).divergence == 0


def test_what_is_proved_for_laplace_noise_refuses_it():
    v = views()
    cdf, sequence = (plan(v.map("page")) for plan in (wpinq.degrees.cdf, wpinq.degrees.sequence))
    with pytest.raises(PlanError, match="Gaussian noise"):
        wpinq.degrees.reconcile(cdf.measure(rho=1, mechanism="gaussian"), sequence.measure(1))
    live = wpinq.live({"k": str}, rho=9)
    with pytest.raises(PlanError, match=r"continual=True.*divergences"):
        live.measure(rho=1, mechanism="gaussian", continual=True)
    assert ledger(live).divergence == 0
    live.close()


def test_quotes_and_plans_say_what_it_costs_and_what_is_known_of_one_bin(capsys):
    renyi = {"budget": 1, "delta": TINY, "accounting": "renyi"}
    text = str(PLANS["people of pages"](views(unit=wpinq.users("user", at_most=100), **renyi)).quote(
        1, mechanism="gaussian", delta=TINY))  # fmt: skip
    assert "gaussian noise of standard deviation 45.33" in text
    assert "all bins by at most 100 together, and one bin by at most 1" in text
    m = PLANS["pages"](views()).measure(rho=1, mechanism="gaussian")
    assert "nothing says that one bin moves by less" in m.explain()
    assert "data set 'views': rho 1" in capsys.readouterr().out


def test_an_observed_gaussian_is_the_same_in_another_process(tmp_path):
    """The key follows from secret and question alone; `tests/noise/test_gaussian.py` tries bins, orders and kernels."""
    found = defaultdict(set)
    for turn in range(2):
        data = wpinq.protect([("a",)] * 9, rho=9, ledger=tmp_path / "l", version="1", columns={"p": str}, name="t")
        for bin_ in ("a", "b"):
            found[bin_].add(data.measure(rho="1e-4", mechanism="gaussian").observe(bin_))
        assert ledger(data).divergence == Fraction(1, 10**4), turn
    assert all(len(values) == 1 for values in found.values())
