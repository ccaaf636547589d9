"""Measurements under Renyi accounting and rho: the same noise, the curve of the plan, and quotes that agree."""

import math
import os
from fractions import Fraction

import pytest

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.sums.renyi import rate
from wpinq.core.plan.node import sources
from wpinq.errors import BudgetError

RENYI = {"budget": 1, "delta": "1e-6", "accounting": "renyi"}
COLUMNS = {"user": str, "page": str}
VIEWS = [(f"u{n % 7}", f"p{n % 5}") for n in range(60)]
EPSILON = Fraction(1, 10)


def views(records=VIEWS, unit=None, **promise):
    return wpinq.protect(records, columns=COLUMNS, unit=unit, name="views", **(promise or RENYI))


def ledger_of(collection):
    return sources(collection._node)[0].ledger


def curve(epsilon, loss, step, order):
    return epsilon * rate(loss, step, order)


def test_not_one_bit_of_noise_changes(monkeypatch):
    monkeypatch.setattr(os, "urandom", bytes)
    answers = []
    for promise in (RENYI, {"budget": 1}, {"rho": 1}):
        pages = views(secret=Secret(bytes(32)), **promise).map("page")
        whole, fine = pages.measure(EPSILON), pages.measure(EPSILON, mechanism="laplace")
        tops = [f"p{n}" for n in range(5)]
        answers.append([*whole.observe_many(tops), *fine.observe_many(tops)])
    assert answers[0] == answers[1] == answers[2]


PLANS = {
    "one path": (lambda v: v.map("page"), 1),
    "two paths to one bin": (lambda v: v.map("page").concat(v.map("page")), 2),
    "a part twice": (lambda v: v.partition("page", ["p0", "p1"])["p0"].concat(v), 2),
    "difference": (lambda v: v.subtract(v.filter("page = 'p1'")), 2),
}


@pytest.mark.parametrize("name", PLANS)
def test_the_curve_is_that_of_the_sum_of_all_paths_in_steps_of_the_noise(name):
    plan, bins = PLANS[name]
    for mechanism, grid in (("geometric", 1), ("laplace", 2**20)):
        records = views()
        measured = plan(records).measure(EPSILON, mechanism=mechanism)
        ledger = ledger_of(records)
        step = EPSILON / bins / grid / measured.node.resolution
        assert ledger.divergence == pytest.approx(curve(EPSILON, EPSILON, step, ledger.promise.order), rel=1e-12)
        assert ledger.spent()[0] == EPSILON


def test_a_person_moves_many_bins_by_a_little():
    """100 pages of a person, each once: one measurement may cost 2.2 where the budget is 1, and has a std of 63."""
    person = wpinq.users("user", at_most=100)
    for columns, most in ((["user", "page"], 63), (["page"], 142)):
        records = views(unit=person)
        pages = records.map(", ".join(columns)).distinct().map("page") if len(columns) > 1 else records.map("page")
        left = pages.left
        assert math.sqrt(2) * 100 / left <= most
        assert pages.quote(epsilon=left).prices[0].fits
        assert not pages.quote(epsilon=left * Fraction(101, 100)).prices[0].fits
        pages.measure(epsilon=left)
        with pytest.raises(BudgetError, match="Renyi divergences at order 22 to"):
            pages.measure(epsilon="1/100", name="more")


def test_all_other_mechanisms_pay_the_curve_of_their_epsilon():
    asks = {
        "median": lambda v: v.map("1 as n").median("n", epsilon=EPSILON, bounds=(0, 5)),
        "select": lambda v: v.map("page").select(epsilon=EPSILON, delta="1e-9"),
    }
    for ask in asks.values():
        records = views()
        ask(records)
        ledger = ledger_of(records)
        assert ledger.divergence == curve(EPSILON, EPSILON, EPSILON, ledger.promise.order)


def test_two_tables_of_one_ledger_are_one_shift(tmp_path):
    """A person in both moves the same bin twice: the curve is of the sum, though each table is charged its own."""
    unit = wpinq.users("user", at_most=1)
    left, right = (
        wpinq.protect(VIEWS, columns=COLUMNS, unit=unit, name=name, ledger=tmp_path / "L", version="1", **RENYI)
        for name in ("left", "right")
    )
    left.map("page").concat(right.map("page")).measure(EPSILON)
    ledger = ledger_of(left)
    order = ledger.promise.order
    assert ledger.spent()[0] == 2 * EPSILON
    assert ledger.divergence == curve(2 * EPSILON, 2 * EPSILON, EPSILON, order)


def test_quotes_agree_with_what_is_charged_and_with_what_is_left():
    for promise in (RENYI, {"rho": "1/200"}):
        records = views(**promise)
        pages = records.map("page")
        for number in range(60):
            quote = pages.quote(epsilon="1/25", name=f"n{number}")
            (price,) = quote.prices
            assert price.left == records.left
            if not price.fits:
                assert "which is too little" in str(quote)
                with pytest.raises(BudgetError):
                    pages.measure(quote=quote)
                break
            pages.measure(quote=quote)
            assert price.after == records.left
        assert number > 5
        assert records.budget.left < Fraction(1, 25)


def test_parts_of_a_partition_pay_once():
    records = views()
    for part in records.partition("page", [f"p{n}" for n in range(5)]).values():
        part.measure(EPSILON)
    ledger = ledger_of(records)
    assert ledger.divergence == curve(EPSILON, EPSILON, EPSILON, ledger.promise.order)


def test_what_a_budget_says():
    records = views()
    records.map("page").measure(EPSILON, name="pages")
    said = repr(records.budget)
    assert said.startswith(
        "Of epsilon 1, delta 0.000001 by accounting='renyi', one more question of epsilon 0.9 is left"
    )
    assert "Epsilons add up to 0.1 of 1, Renyi divergences at order 22 to " in said
    assert said.splitlines()[0].endswith("Delta 0.00000001 of 0.00000001 is left for thresholds and selections.")
    assert len(records.budget.split(100)) == 100
    with pytest.raises(wpinq.errors.ExactnessError, match="split the whole budget"):
        records.budget.split(2, of=1)


def test_a_threshold_of_more_delta_than_there_is_is_refused_before_it_is_charged():
    pages = views().map("page").measure(EPSILON)
    with pytest.raises(BudgetError, match=r"costs delta .* may spend 0.00000001 of its delta 0.000001\)"):
        pages.release(delta="1e-6")
    assert pages.key_owner.ledger.spent() == (EPSILON, 0)
    pages.release(delta="1e-8")
    assert pages.key_owner.ledger.spent()[1] == Fraction(1, 10**8)


def test_a_release_takes_by_default_what_the_ledger_keeps_for_it():
    """Of delta 10^-6 a hundredth is for thresholds; the default of 10^-6 was refused. Ten of them fit, and say so."""
    v = wpinq.protect([("ann", "a")] * 300, columns=COLUMNS, name="views", budget=9, delta="1e-6", accounting="renyi")
    for turn in range(10):
        found = v.map("page").measure("1/2", name=str(turn)).release()
        assert found.cost["delta"] == 1e-9
        assert dict(found).keys() == {"a"}
    with pytest.raises(BudgetError, match=r"costs delta 0.000000001, 0 is left.*thresholds and selections may spend"):
        v.map("page").measure("1/2").release()
    wide = wpinq.protect([("ann", "a")] * 300, columns=COLUMNS, budget=9, delta="1/100", accounting="renyi")
    assert float(wide.map("page").select(1).delta) == wide.map("page").measure(1).release().cost["delta"] == 1e-6
    pure = wpinq.protect([("ann", "a")] * 300, columns=COLUMNS, budget=9, delta="1e-7")
    with pytest.raises(BudgetError, match=r"costs delta 0.000001, 0.0000001 is left"):
        pure.map("page").measure(1).release()
