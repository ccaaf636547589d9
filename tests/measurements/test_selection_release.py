"""Release and select, end to end: what is published, what it costs, and what nobody learns (attacks 32, 33, 34)."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from default_engine import flow
from depth import deep
from scipy.stats import binom

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.measurements.select import select
from wpinq.core.noise.threshold import seen_bounds
from wpinq.core.operators.contribution.unit_key import ByUnit
from wpinq.core.operators.distinct import Distinct
from wpinq.core.operators.shave import Shave
from wpinq.core.plan.node import steps
from wpinq.core.runs import key_recovery, run

ONE = Secret(bytes(range(32)))
VIEWS = [(f"u{i}", page) for page, many in (("home", 400), ("news", 200), ("rare", 1)) for i in range(many)]
VIEWS += [(f"u{i}", f"p{i % 40}") for i in range(1000)]


def views(records=VIEWS, secret=ONE, budget=10**6, delta="0.9", **settings):
    settings = {"columns": {"user": str, "page": str}, "version": "1", "name": "views", **settings}
    return wpinq.protect(list(records), budget=budget, delta=delta, secret=secret, **settings)


def pages(*args, **settings):
    return views(*args, **settings).map(lambda page: page)


def spent(measurement):
    return measurement.key_owner.ledger.spent()


@pytest.fixture
def no_run(monkeypatch):
    def refuse(job):
        raise AssertionError("something was computed")

    monkeypatch.setattr(flow, "run", refuse)


@pytest.mark.parametrize("mechanism", ["geometric", "laplace"])
def test_what_is_published_is_what_is_observed(mechanism):
    m = pages().measure("0.3", mechanism=mechanism)
    table = m.release(delta="1e-3")
    found = dict(table)
    everything = ["home", "news", "rare", *(f"p{i}" for i in range(40))]
    observed = dict(zip(everything, m.observe_many(everything).tolist(), strict=True))
    assert found == {page: count for page, count in observed.items() if count >= table.threshold}
    assert 10 < len(found) < len(observed)
    assert len(table) == len(found)
    assert {(high - low) / 2 for _, (low, high) in table.intervals} == {m.interval()}
    order = [(-count, page) for page, count in table]
    assert order == sorted(order)


def test_threshold_is_the_least_whole_number_that_keeps_delta():
    table = pages().measure("0.3").release(delta="1e-3")
    tau, scale = int(table.threshold), Fraction(10, 3)
    assert seen_bounds(scale, 1, 1, tau, 128)[1] <= 2**128 // 1000 < seen_bounds(scale, 1, 1, tau - 1, 128)[0]


def test_a_higher_threshold_is_a_part_and_costs_no_more():
    m = pages().measure("0.3")
    all_bins, before = list(m.release(delta="1e-3")), spent(m)
    some = m.release(threshold="100.5", delta="1e-3")
    assert list(some) == [pair for pair in all_bins if pair[1] >= 101]
    assert some.threshold == 101
    lower = m.release(threshold=-5, delta="1e-3")
    assert list(lower) == all_bins, "the private threshold is the larger of both"
    assert spent(m) == before == (Fraction(3, 10), Fraction(1, 1000))


def test_delta_is_charged_before_anything_is_computed(no_run):
    m = pages(delta="1e-4").measure(1)
    with pytest.raises(wpinq.BudgetError, match="delta"):
        m.release(delta="1e-3")
    assert spent(m) == (1, 0)
    with pytest.raises(wpinq.EngineError):
        m.release(delta="1e-4")
    assert spent(m) == (1, Fraction(1, 10_000))


def test_without_a_delta_in_the_budget_nothing_unknown_is_published(no_run):
    m = wpinq.protect(VIEWS, budget=10, delta=0, columns=("user", "page")).map(lambda page: page).measure(1)
    with pytest.raises(wpinq.BudgetError, match="delta"):
        m.release()
    with pytest.raises(wpinq.BudgetError, match="delta"):
        select(views(delta=0), 1)


def test_a_new_ledger_allows_ten_usual_releases_and_an_old_one_what_it_holds(tmp_path):
    def protected(**more):
        more = {"budget": 20, "columns": ("user", "page"), "ledger": tmp_path / "ledger", "version": "1"} | more
        return wpinq.protect(VIEWS, **more).map(lambda page: page)

    for number in range(10):
        protected().measure(1, name=str(number)).release()
    with pytest.raises(wpinq.BudgetError, match="delta"):
        protected().measure(1, name="last").release()
    with pytest.raises(wpinq.LedgerError, match="delta"):
        protected(delta="1e-4")
    own = {"ledger": tmp_path / "own", "budget": 3}
    protected(delta=0, **own)
    with pytest.raises(wpinq.BudgetError, match="delta"):
        protected(**own).measure(1).release()


@pytest.mark.parametrize("delta", [0, 1, -1, 2, float("nan"), "x"])
def test_a_delta_is_a_small_probability(delta):
    with pytest.raises(wpinq.ExactnessError, match="release"):
        pages().measure(1).release(delta=delta)
    with pytest.raises(wpinq.ExactnessError, match="select"):
        select(pages(), 1, delta)
    with pytest.raises(wpinq.ExactnessError, match="delta"):
        views(delta=-1 if delta in (0, None) else delta)


def test_every_other_delta_is_another_charge():
    m = pages().measure("0.3")
    m.release(delta="1e-3"), m.release(delta="1e-4"), m.release(delta="1e-3")
    assert spent(m)[1] == Fraction(11, 10_000)


def test_given_keys_are_published_present_or_not_and_cost_nothing():
    m = pages().measure("0.3")
    keys = ["rare", "home", "nowhere", "elsewhere"]
    table = m.release(keys=keys)
    assert dict(table) == dict(zip(keys, m.observe_many(keys).tolist(), strict=True))
    assert [count for _, count in table] == sorted((count for _, count in table), reverse=True)
    assert spent(m) == (Fraction(3, 10), 0)
    assert [page for page, _ in m.release(keys=keys, threshold=100)] == ["home"]
    assert list(m.release(keys=[])) == []
    with pytest.raises(wpinq.BinError):
        m.release(keys=[3])


@deep
def test_the_same_answers_and_no_charge_in_another_process(tmp_path):
    path = tmp_path / "views.csv"
    path.write_text("user,page\n" + "".join(f"{user},{page}\n" for user, page in VIEWS))
    script = """if True:
        import sys, wpinq
        from wpinq.core.measurements.select import select
        views = wpinq.protect(sys.argv[1], budget="0.7", delta="2e-3")
        m = views.map(lambda user, page: page).measure("0.3")
        print(list(m.release(delta="1e-3")), select(views.map(lambda user, page: page), "0.4", "1e-3").bins.rows())
        print(m.key_owner.ledger.spent())
    """
    command = [sys.executable, "-c", script, str(path)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in "ab"]
    assert runs[0].stdout == runs[1].stdout
    assert "Fraction(7, 10), Fraction(1, 500)" in runs[0].stdout


def test_attack_34_order_and_text_do_not_follow_the_data(tmp_path):
    """The same records in another order: the same table, in the same order, and nothing told of what is left out."""
    shuffled = [VIEWS[i] for i in np.random.default_rng(3).permutation(len(VIEWS))]
    tables = [pages(some, ledger=tmp_path / "ledger").measure(1).release(delta="1e-3") for some in (VIEWS, shuffled)]
    assert tables[0].frame.equals(tables[1].frame)
    assert repr(tables[0]) == repr(tables[1])
    assert not {"suppressed", "total", "size"} & set(dir(tables[0]))


def test_ties_are_ordered_by_name():
    records = [(f"u{i}", page) for page in ("b", "c", "a") for i in range(50)]
    assert list(pages(records).measure(1000).release()) == [("a", 50), ("b", 50), ("c", 50)]
    pairs = views(records * 3).measure(1000).release()
    assert [row[:2] for row in pairs] == sorted({(user, page) for user, page in records})


def test_attack_32_a_bin_of_one_user_is_published_with_delta_only():
    """20,000 bins of one record each, delta = 1/100; binomial tails, false alarm 1e-6 had the secret been drawn."""
    size, delta = 20_000, Fraction(1, 100)
    table = pages([(f"u{i}", f"p{i}") for i in range(size)]).measure(1).release(delta=delta)
    low, high = (bound / 2**128 for bound in seen_bounds(Fraction(1), 1, 1, int(table.threshold), 128))
    assert high <= delta < 5 * high
    assert binom.sf(len(table) - 1, size, high) > 5e-7
    assert binom.cdf(len(table), size, low) > 5e-7


@pytest.mark.parametrize("own", [9, 1], ids=["nine bins", "one bin"])
def test_attack_33_all_bins_of_a_user_together_are_published_with_delta_only(own):
    """4,000 users of 9 records, of which 5 are kept, in bins of their own; binomial tails, false alarm 1e-6.

    In nine bins the bound is met exactly, so the share of users of whom anything is published is known from both sides.
    """
    size, delta = 4000, Fraction(1, 50)
    records = [(f"u{i}", f"{i} {k % own}") for i in range(size) for k in range(9)]
    table = pages(records, unit=wpinq.users("user", at_most=5)).measure(2).release(delta=delta)
    hits = len({page.split()[0] for page, _ in table})
    low, high = (bound / 2**128 for bound in seen_bounds(Fraction(5, 2), 1, 5, int(table.threshold), 128))
    assert high <= delta
    assert binom.sf(hits - 1, size, float(delta)) > 1e-6
    if own == 9:
        assert binom.sf(hits - 1, size, high) > 5e-7
        assert binom.cdf(hits, size, low) > 5e-7


def test_absent_bins_are_never_published_however_much_noise():
    table = pages([("ann", "a")]).measure("0.001").release(delta="0.9")
    assert {page for page, _ in table} <= {"a"}
    assert list(pages([]).measure(1).release(delta="0.9")) == []


def test_bins_whose_weights_cancel_do_not_exist():
    some = pages()
    assert list(some.subtract(some).measure(1000).release(delta="0.9")) == []


def test_numbers_pairs_and_fractions():
    collection = pages()
    steps = collection.shave().map(lambda index: index).measure(1000)
    truth = {index: sum(many >= index for many in (400, 200, 1, *[25] * 40)) for index in range(1, 201)}
    assert dict(steps.release()) == truth, "beyond, one page alone has a weight of 1, which is below any threshold"
    assert steps.release().threshold == 2
    pairs = collection.shave().map(lambda page, index: (page[:1], index)).measure(1000).release()
    assert {row[:2]: row[2] for row in pairs} == {("p", index): 40 for index in range(1, 26)}
    thirds = collection.shave("1/3").map(lambda page: page).measure(1000).release()
    assert dict(thirds)["home"] == pytest.approx(400, abs=0.1)
    assert thirds.frame["weighted_sum"].dtype == pl.Float64


def test_shared_weights_are_published():
    table = pages(unit=wpinq.users("user", shared=True)).measure(20).release(delta="1e-6")
    assert {"home", "news"} <= {page for page, _ in table}
    assert "rare" not in {page for page, _ in table}


def test_values_of_any_type_are_read_back():
    values = ["text", 7, 2.5, None, (1, "a"), 2**70]
    records = [(f"u{i}", value) for value in values for i in range(30)]
    any_kind = wpinq.protect(records, budget=10**6, delta="0.1", columns=("user", "what")).map(lambda what: what)
    table = any_kind.measure(1000).release()
    assert {value for value, _ in table} == set(values)
    text = wpinq.protect(VIEWS, budget=10**6, delta="0.1", columns=("user", "page")).map(lambda page: page)
    assert text.measure(1000).release().frame["page"].dtype == pl.String
    count = wpinq.protect([("u", 1)] * 50, budget=10**6, delta="0.1", columns={"u": str, "count": int})
    assert count.map(lambda count: count).measure(100).release().columns == ("count", "count_2")


def test_select_finds_what_is_common_and_hides_what_is_rare():
    chosen = select(pages(), 1, "1e-6")
    found = chosen.bins["page"].to_list()
    assert {"home", "news"} <= set(found)
    assert "rare" not in found
    assert found == sorted(found)
    assert spent(chosen) == (1, Fraction(1, 10**6))
    assert select(pages(), 1, "1e-6").bins.equals(chosen.bins)
    assert spent(chosen) == (1, Fraction(1, 10**6))
    assert "400" not in repr(chosen)


def test_select_names_smaller_bins_than_release_does():
    """At the same cost; 3,000 bins of 12 records each, where the one keeps nearly none and the other a known share."""
    records = [(f"u{i}", f"p{i // 12}") for i in range(36_000)]
    collection = pages(records, delta="0.1")
    chosen = len(select(collection, 1, "1e-5").bins)
    released = len(collection.measure(1).release(delta="1e-5"))
    assert chosen > 1.2 * released > 0


def test_selections_by_another_name_are_independent_and_cost_again():
    collection = pages([(f"u{i}", f"p{i // 9}") for i in range(9000)])
    one, two = (select(collection, 1, "1e-3", name=name) for name in "ab")
    assert spent(one) == (2, Fraction(2, 1000))
    assert not one.bins.equals(two.bins)
    assert 0 < len(one.bins) < 1000


def test_questions_inside_functions_are_refused():
    m = pages().measure(1)

    def sneaky(page):
        m.release(keys=["home"])
        return page

    asked = pages().map(sneaky).measure(1000)
    assert asked.observe("home") == 0


@pytest.mark.parametrize("unit", [wpinq.users("user", at_most=2), wpinq.users("user", shared=True)], ids=str)
def test_bins_are_named_without_the_steps_that_only_take_away(unit):
    """A name needs no bound on people and no distinct records; what those of other steps are called does."""
    rows = [(f"u{i}", page) for i in range(40) for page in ("home", "news", f"own {i}")]
    views = wpinq.protect(
        rows, budget=100, delta="1/2", unit=unit, columns={"user": str, "page": str}, secret=Secret(bytes(32))
    )
    plans = []
    for plan in (views.map("user, page").distinct(), views.map("user, page").distinct().shave().map("page")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                key_recovery, "compute", lambda roots, **how: plans.append(steps(*roots)) or run.compute(roots, **how)
            )
            quick = plan.map("page").measure(20).release(delta="1/10")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(key_recovery, "wider", lambda node: node)
            assert quick.frame.equals(plan.map("page").measure(20).release(delta="1/10").frame)
        assert len(quick)
    assert not any(isinstance(step, (ByUnit, Distinct)) for plan in plans for step in plan)
    assert any(isinstance(step, Shave) for step in plans[1])


@pytest.mark.parametrize(
    "change",
    [
        lambda views: views.group_by("user", len).map("value"),
        lambda views: views.union(views.limit("page", 3)).map("page"),
    ],
    ids=["group_by", "union"],
)
def test_bins_that_exist_only_under_the_bound_are_named(change):
    """Groups of all records are other bins than groups of those that a bound keeps."""
    rows = [(f"u{i}", page) for i in range(40) for page in ("home", "news", "help", "jobs")]
    unit = wpinq.users("user", at_most=2)
    columns = {"user": str, "page": str}
    views = wpinq.protect(rows, budget=1000, delta="1/2", unit=unit, columns=columns, secret=Secret(bytes(32)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_recovery, "wider", lambda node: node)
        expected = change(views).measure(30).release(delta="1/10").frame
    assert len(expected)
    assert change(views).measure(30).release(delta="1/10").frame.equals(expected)
