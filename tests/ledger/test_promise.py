"""Two sums over one noise: what a ledger with Renyi accounting, or with rho, admits, keeps, tells and refuses."""

import json
import random
import sqlite3
from contextlib import closing
from fractions import Fraction
from itertools import product

import pytest

from wpinq.core.ledger import Asked, Charge, Cost, Ledger, charge_all
from wpinq.core.ledger.budget import Allowance, Budget
from wpinq.core.ledger.sums.cost import Composition, Total
from wpinq.core.ledger.sums.privacy_filter import SHARE, Promise
from wpinq.core.ledger.sums.renyi import limit, rate
from wpinq.errors import BudgetError, ExactnessError, LedgerError
from wpinq.exact import decimal

DELTA = Fraction(1, 10**6)
ORDER = Fraction(22)


def opened(path=None, secret=None, *, budget=1, delta=DELTA, rho=None, accounting="renyi", unit="record", name="v"):
    asked = Asked.of("protect", budget, delta, rho, accounting)
    return Ledger.open(path, name=name, unit=unit, terms=asked, secret=secret)


def of_rho(path=None, rho="1/100"):
    return opened(path, budget=None, rho=rho, accounting=None)


def pure(epsilon, under=(), bins=1):
    """A charge of counts: noise in whole steps, and a unit that moves so many bins by a step each."""
    epsilon = Fraction(epsilon)
    return Cost(epsilon, under=under, curve=(epsilon / bins, epsilon / bins))


def ask(ledger, number, *costs, **options):
    return ledger.charge(f"{number:08x}", costs, version="1", label=f"question {number}", **options)


def asked_until_refused(ledger, costs, most=3000):
    for number in range(most):
        try:
            ask(ledger, number, *costs(number))
        except BudgetError:
            return number
    return most


def test_a_hundred_and_a_thousand_counts_fit_that_pure_epsilon_refuses():
    for count, std in ((100, 63), (1000, Fraction(2024, 10))):
        epsilon = Promise.of(Fraction(1), DELTA, "renyi").shares([Fraction(1)] * count)[0]
        assert 2 / epsilon**2 <= std**2, "the variance of Laplace noise"
        assert asked_until_refused(opened(), lambda _, epsilon=epsilon: [pure(epsilon)]) == count
        assert asked_until_refused(opened(accounting=None), lambda _, epsilon=epsilon: [pure(epsilon)]) < count / 2


def test_few_large_questions_fit_as_in_a_pure_ledger():
    for parts in range(1, 16):
        ledger = opened()
        epsilon = Budget.of(ledger).split(parts)[0]
        assert epsilon >= Fraction(1, parts)
        assert asked_until_refused(ledger, lambda _, epsilon=epsilon: [pure(epsilon)], 20) >= parts


def test_no_ledger_forgets_a_charge_or_admits_beyond_both_sums():
    """Random charges, in parts and not; both sums are computed anew from the rows, by another way, after each."""
    draw = random.Random(17)
    for accounting in ("renyi", None):
        ledger = opened() if accounting else of_rho()
        promise = ledger.promise
        taken = []
        for number in range(400):
            group = draw.choice([(), ((f"g{draw.randrange(3)}", f"p{draw.randrange(4)}"),)])
            cost = pure(Fraction(draw.randrange(1, 60), 500), under=group, bins=draw.choice([1, 5]))
            before = ledger.spent()
            try:
                ask(ledger, number, cost)
                taken.append(cost)
            except BudgetError:
                assert ledger.spent() == before
                assert not kept(promise, [*taken, cost]), "what fits is not refused"
            assert kept(promise, taken)
        assert len(taken) > 20
        epsilon, divergence = sums(promise, taken)
        assert (ledger.spent()[0], ledger.divergence) == (epsilon, divergence)


def sums(promise, costs):
    """Both sums by the definition: over what has no part, and the largest part of each group."""
    found = []
    for amount in (lambda cost: cost.epsilon, lambda cost: cost.at(promise.order)):
        total, groups = Fraction(0), {}
        for cost in costs:
            if not cost.under:
                total += amount(cost)
                continue
            ((group, part),) = cost.under
            parts = groups.setdefault(group, {})
            parts[part] = parts.get(part, 0) + amount(cost)
        found.append(total + sum(max(parts.values()) for parts in groups.values()))
    return found


def kept(promise, costs):
    epsilon, divergence = sums(promise, costs)
    if promise.order is None:
        return divergence <= promise.budget
    return epsilon <= promise.budget or divergence <= limit(promise.budget, promise.delta * (1 - SHARE), promise.order)


PLANTS = {
    "forgets a charge": lambda cost, order: Fraction(0),
    "pays the square of a part": lambda cost, order: cost.epsilon * rate(cost.epsilon, cost.epsilon, order),
    "pays the whole curve on every path": lambda cost, order: cost.curve[0] * rate(*cost.curve, order),
    "takes another order": lambda cost, order: cost.epsilon * rate(*cost.curve, order / 2),
}
"""Ways to charge a path that are wrong."""


@pytest.mark.parametrize("plant", [None, *PLANTS])
def test_two_paths_to_one_bin_are_one_shift_of_twice_the_size(plant, monkeypatch):
    """concat(v, v) costs what one path of twice the epsilon does; each planted bug is seen here."""
    if plant is not None:
        monkeypatch.setattr(Cost, "at", PLANTS[plant])
    whole, half = Fraction(1, 10), Fraction(1, 20)
    found = Composition(order=ORDER, curves=True).including(
        [Cost(half, curve=(whole, whole)), Cost(half, curve=(whole, whole))]
    )
    right = found.divergence == whole * rate(whole, whole, ORDER)
    assert right == (plant is None)


@pytest.mark.parametrize("plant", [None, "adds parts up", "takes the smallest part", "takes one part twice"])
def test_parallel_parts_keep_the_largest_divergence(plant, monkeypatch):
    def added(total, under, growth, times):
        total.amount += growth

    def smallest(total, under, growth, times):
        total.amount = min(total.amount or growth, growth)

    def latest(total, under, growth, times):
        total.amount = max(total.amount, growth)

    if plant is not None:
        wrong = {"adds parts up": added, "takes the smallest part": smallest, "takes one part twice": latest}[plant]
        monkeypatch.setattr(Total, "add", wrong)
    parts = [(("day", name),) for name in ("Monday", "Tuesday", "Monday")]
    costs = [pure(Fraction(n, 10), under=part) for n, part in zip((1, 3, 3), parts, strict=True)]
    largest = costs[0].at(ORDER) + costs[2].at(ORDER)
    found = Composition(order=ORDER, curves=True).including(costs).divergence
    assert (found == largest) == (plant is None)


def test_delta_is_split_once_between_conversion_and_thresholds():
    ledger = opened()
    promise = ledger.promise
    assert promise.limit == limit(Fraction(1), DELTA * (1 - SHARE), promise.order), "not all of delta, and not less"
    assert promise.limit < limit(Fraction(1), DELTA, promise.order)
    assert ask(ledger, 0, Cost(0, DELTA * SHARE))
    with pytest.raises(BudgetError, match="costs delta"):
        ask(ledger, 1, Cost(0, Fraction(1, 10**30)))
    assert ledger.promise.limit == promise.limit, "a threshold takes nothing from the conversion"


@pytest.mark.parametrize("wrong", [{"limit": "6/10"}, {"failing": "1/1000000"}, {"failing": "0/1", "order": "2/1"}])
def test_a_first_row_that_promises_more_than_it_keeps_is_refused(wrong):
    body = Promise.of(Fraction(1), DELTA, "renyi").body() | wrong
    with pytest.raises(ValueError, match=r"^$"):
        Promise.opened(body)


@pytest.mark.parametrize("plant", [None, "a limit half as large again", "small charges are forgotten"])
def test_no_strategy_of_an_adaptive_analyst_loses_more_than_delta(plant):
    """All of an analyst's courses over randomised response, exactly: charges that follow from answers, until refused.

    The filter decides from amounts alone; the probability that the loss exceeds epsilon, weighted as (epsilon, delta)
    weighs it, is summed over every course of answers, for the best next charge in each: never more than delta.
    """
    budget, delta, grid = 2.0, 0.05, (Fraction(9, 10), Fraction(3, 5), Fraction(3, 10))
    promise = Promise.of(Fraction(2), Fraction(5, 100), "renyi")
    most = promise.limit * (Fraction(3, 2) if plant == "a limit half as large again" else 1)
    least = Fraction(1, 2) if plant == "small charges are forgotten" else 0
    known = {}

    def worst(spent, loss, left):
        """The largest sum of P - exp(epsilon) Q, over courses from here, for P = 1 here and Q = exp(-loss)."""
        key = (spent, round(loss, 9), left)
        if key not in known:
            best = max(0.0, 1 - 2.718281828459045 ** (budget - loss))
            for step in grid if left else ():
                counted = step if step > least else Fraction(0)
                after = (spent[0] + counted, spent[1] + counted * rate(step, step, promise.order))
                if after[0] <= promise.budget or after[1] <= most:
                    e = float(step)
                    up = 1 / (1 + 2.718281828459045**-e)
                    best = max(
                        best, up * worst(after, loss + e, left - 1) + (1 - up) * worst(after, loss - e, left - 1)
                    )
            known[key] = best
        return known[key]

    found = worst((Fraction(0), Fraction(0)), 0.0, 12)
    assert found > 0
    assert (found <= delta * (1 - float(SHARE))) == (plant is None)


def test_pure_ledgers_keep_their_bytes_and_never_become_approximate(tmp_path):
    path = tmp_path / "L"
    ledger = Ledger.open(path, name="v", unit="record", budget=Fraction(1))
    ask(ledger, 1, Cost(Fraction(1, 10), curve=(Fraction(1, 10), Fraction(1, 10))))
    with closing(sqlite3.connect(path)) as connection:
        first, second = (json.loads(row[0]) for row in connection.execute("SELECT body FROM entries"))
    assert set(first) == {"kind", "id", "name", "unit", "accounting", "budget", "delta", "at"}
    assert second["costs"] == [["1/10", "0/1", [], "1/1"]]
    for other in ({"accounting": "renyi"}, {"rho": 1, "budget": None, "accounting": None}):
        with pytest.raises(LedgerError, match="was asked for as one of"):
            opened(path, **other)


def test_another_accounting_than_the_ledgers_is_refused(tmp_path):
    renyi, concentrated = opened(tmp_path / "R"), of_rho(tmp_path / "C")
    for path, amount in ((tmp_path / "R", 1), (tmp_path / "C", "1/100")):
        with pytest.raises(LedgerError, match="pure epsilon"):
            opened(path, budget=amount, accounting=None)
    with pytest.raises(LedgerError, match="rho"):
        opened(tmp_path / "C", budget=None)
    assert opened(tmp_path / "R").promise == opened(tmp_path / "R", budget=None).promise == renyi.promise
    assert of_rho(tmp_path / "C").promise == concentrated.promise
    with pytest.raises(LedgerError, match=r"not epsilon 2, delta 0.000001 by accounting='renyi'"):
        opened(tmp_path / "R", budget=2)


@pytest.mark.parametrize(
    "given",
    [{"accounting": "zcdp"}, {"accounting": 3}, {"rho": 1}, {"rho": 1, "budget": None}, {"delta": 0}, {"delta": 1},
     {"budget": None, "rho": 0, "accounting": None}],
)  # fmt: skip
def test_budgets_that_contradict_are_refused_before_a_ledger_is_made(given, tmp_path):
    with pytest.raises(ExactnessError):
        opened(tmp_path / "L", **given)
    assert not (tmp_path / "L").exists()


def test_an_edited_row_of_two_sums_is_refused(tmp_path):
    path = tmp_path / "L"
    ask(opened(path), 1, pure(Fraction(1, 10), bins=5))
    connection = sqlite3.connect(path)
    for number, before, after in ((2, "1/50", "1/90"), (1, '"limit": "', '"limit": "1'), (1, "renyi", "pure ")):
        (body,) = connection.execute("SELECT body FROM entries WHERE number = ?", (number,)).fetchone()
        assert before in body
        for text in (body.replace(before, after), body):
            connection.execute("UPDATE entries SET body = ? WHERE number = ?", (text, number))
            connection.commit()
            if text != body:
                with pytest.raises(LedgerError, match="do not fit its secret"):
                    Ledger.existing(path)
    connection.close()
    assert len(Ledger.existing(path).entries()) == 2


def test_gaussian_noise_needs_a_ledger_of_divergences():
    cost = Cost(0, rho=Fraction(1, 1000))
    ledger = opened(accounting=None)
    with pytest.raises(BudgetError, match="adds Gaussian noise, which no epsilon bounds"):
        ask(ledger, 1, cost)
    assert ledger.spent() == (0, 0)
    assert asked_until_refused(of_rho(), lambda _: [cost]) == 10, "exactly"
    ledger = opened()
    assert asked_until_refused(ledger, lambda _: [cost]) == ledger.promise.limit // (cost.rho * ledger.promise.order)
    with pytest.raises(BudgetError, match=r"costs rho 0\.001, 0\.000") as refused:
        ask(ledger, 9999, cost)
    assert refused.value.requested == cost.rho > refused.value.remaining
    ledger = opened()
    ask(ledger, 1, cost)
    assert ledger.remaining() < 1
    with pytest.raises(BudgetError):
        ask(ledger, 2, pure(Fraction(99, 100)))


def test_what_is_left_fits_and_no_more_of_the_worst_noise():
    draw = random.Random(3)
    for ledger in (opened(), opened(budget="0.2"), of_rho()):
        for number in range(40):
            ask(ledger, 2 * number, pure(ledger.remaining() * Fraction(draw.randrange(1, 30), 100)))
        left = ledger.remaining()
        with pytest.raises(BudgetError) as refused:
            ask(ledger, 1000, pure(left * Fraction(1001, 1000)))
        assert refused.value.remaining == left
        assert ask(ledger, 1001, pure(left))


def test_a_cap_is_a_part_of_both_sums():
    ledger = opened()
    ledger.cap("ann", Fraction(1, 2))
    epsilon = Fraction(1, 50)
    allowed = asked_until_refused(ledger, lambda _: [pure(epsilon)])
    ledger = opened()
    ledger.cap("ann", Fraction(1, 2))
    for number in range(allowed):
        try:
            ask(ledger, number, pure(epsilon), analyst="ann")
        except BudgetError as refused:
            assert "cap of analyst 'ann'" in str(refused)
            break
    assert number in (allowed // 2, allowed // 2 + 1)
    assert ask(ledger, 5000, pure(epsilon), analyst="bob")


def test_a_cap_in_a_ledger_of_rho_is_a_rho():
    ledger = Ledger.open(None, name="views", unit="record", terms=Asked.of("test", None, None, "1/10", None))
    ledger.cap("ann", Fraction(1, 50))
    assert ask(ledger, 1, Cost(0, rho=Fraction(1, 60)), analyst="ann")
    with pytest.raises(BudgetError, match=r"costs rho 0\.01, .* left of the cap of analyst 'ann'"):
        ask(ledger, 2, Cost(0, rho=Fraction(1, 100)), analyst="ann")
    assert ask(ledger, 3, Cost(0, rho=Fraction(1, 300)), analyst="ann")
    assert Allowance.capped(ledger)["ann"].spent == Fraction(1, 50) and ledger.divergence == Fraction(1, 50)
    now, after = Allowance.of(ledger, "ann", [Charge("00000009", (Cost(0, rho=Fraction(1, 300)),), "1", "m", "ann")])
    assert (now.kind, now.own, after.fits) == ("rho", 0, False) and now.left == Fraction(8, 100)


def test_raising_the_budget_raises_both_sums(tmp_path):
    ledger = opened(tmp_path / "L")
    before = ledger.promise
    count = asked_until_refused(ledger, lambda _: [pure(Fraction(1, 10))])
    ledger.raise_budget(Fraction(2))
    assert ledger.promise.limit - before.limit == 1
    assert ask(ledger, count, pure(Fraction(1, 10)))
    assert opened(tmp_path / "L", budget=2).promise == ledger.promise
    assert Ledger.existing(tmp_path / "L").entries()[-2].epsilon == 2


def test_all_or_none_over_ledgers_of_each_kind():
    ledgers = [opened(), of_rho(), opened(accounting=None)]
    epsilon = Fraction(1, 20)

    def asked(number, cost):
        return [(ledger, Charge(f"{number:08x}", (cost,), "1", "pages")) for ledger in ledgers]

    with pytest.raises(BudgetError, match="Gaussian"):
        charge_all(asked(10, Cost(0, rho=Fraction(1, 10**6))))
    for number in range(8):
        charge_all(asked(number, pure(epsilon)))
    with pytest.raises(BudgetError):
        charge_all(asked(9, pure(epsilon)))
    assert [ledger.spent()[0] for ledger in ledgers] == [8 * epsilon] * 3


@pytest.mark.parametrize(("accounting", "gaussian"), [*product(["renyi", "rho"], [False, True])])
def test_another_process_knows_both_sums_from_a_checkpoint(accounting, gaussian, tmp_path, monkeypatch):
    for room in ("sums.accountant", "replay", "transaction"):
        monkeypatch.setattr(f"wpinq.core.ledger.{room}.EVERY", 8)
    path = tmp_path / "L"
    ledger = opened(path) if accounting == "renyi" else of_rho(path)
    for number in range(30):
        more = [Cost(0, rho=Fraction(1, 10**7))] if gaussian else []
        ask(ledger, number, pure(Fraction(1, 1000), under=(("day", str(number % 7)),)), *more)
    told = ledger.told
    known = Ledger.existing(path)
    assert known._accountant == ledger._accountant
    assert (known.told, known.divergence, known.promise) == (told, ledger.divergence, ledger.promise)
    assert len(known.entries()) == 31 + 4
    assert not ask(known, 5, pure(Fraction(1, 1000), under=(("day", "5"),)), *more), "charged before"


@pytest.mark.parametrize(("accounting", "asked", "told"), [
    ("renyi", [0, "1/50", "1/50"], "costs rho 0.04 with what is charged beside it"),
    ("rho", [0, "1/150", "1/200"], "costs rho 7/600 with what is charged beside it, 0.01 is left"),
    ("rho", ["1/10", "1/150"], "costs rho 7/600 with what is charged beside it, 0.01 is left"),
    ("renyi", ["1/2", "1/50"], "costs divergence"),
])  # fmt: skip
def test_what_is_refused_together_is_told_as_if_nothing_were_charged(accounting, asked, told):
    ledger = of_rho() if accounting == "rho" else opened()
    laplace, *rest = asked
    costs = [*([pure(laplace)] if laplace else []), *(Cost(Fraction(0), rho=Fraction(rho)) for rho in rest)]
    charges = [Charge(f"{n:08x}", (cost,), "1", f"question {n}") for n, cost in enumerate(costs)]
    with pytest.raises(BudgetError) as caught:
        charge_all([(ledger, charge) for charge in charges])
    message, kind = str(caught.value), {"rho": "rho", "renyi": "divergence"}[accounting]
    assert told in message
    assert message.endswith(f"Spent so far, as {kind}: nothing")
    assert "add up to 0 of" in message
    assert caught.value.requested > caught.value.remaining
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("accounting", ["renyi", "rho"])
def test_delta_that_is_refused_together_is_told_as_if_nothing_were_charged(accounting):
    ledger = of_rho() if accounting == "rho" else opened()
    before, part = ledger.promise.failing, ledger.promise.failing * 2 / 5
    costs = [Cost(Fraction(0), delta=part) for _ in range(3)]
    charges = [Charge(f"{n:08x}", (cost,), "1", f"question {n}") for n, cost in enumerate(costs)]
    with pytest.raises(BudgetError) as caught:
        charge_all([(ledger, charge) for charge in charges])
    message = str(caught.value)
    assert f"costs delta {decimal(3 * part)} with what is charged beside it, {decimal(before)} is left" in message
    assert message.endswith(": nothing")
    assert len(ledger.entries()) == 1
