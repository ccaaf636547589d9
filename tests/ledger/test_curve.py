"""Renyi curves: never below the divergence, summed here outcome by outcome in 50 digits, and hardly above it."""

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from depth import thin

from wpinq.core.ledger.sums.renyi import GRID, best_order, epsilon_of, limit, orders, pure_within, rate

ORDER = Fraction(22)
CASES = [
    (Fraction(steps) * step, step, order)
    for steps, step in [(1, "1"), (1, "1/50"), (3, "1/10"), (7, "1/3"), (12, "1/20"), (2, "5/2"), (25, "1/60")]
    for step in [Fraction(step)]
    for order in [Fraction(3, 2), Fraction(22), Fraction(181, 2)]
]


def number(fraction):
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def summed(steps, step, order):
    """The divergence of discrete Laplace noise from itself after a shift: the sum over all outcomes that matter."""
    with localcontext() as context:
        context.prec = 50
        t, a = number(step), number(order)
        r = (-t).exp()
        reach = math.ceil(90 / step) + steps
        log = [-t * abs(x) for x in range(-reach - steps, reach + 1)]
        total = sum((a * p + (1 - a) * q).exp() for p, q in zip(log[steps:], log, strict=False))
        return ((1 - r) / (1 + r) * total).ln() / (a - 1)


@thin(2)
@pytest.mark.parametrize(("loss", "step", "order"), CASES)
def test_the_curve_of_discrete_laplace_is_the_sum_over_outcomes_rounded_up(loss, step, order):
    true = summed(int(loss / step), step, order)
    found = number(loss * rate(loss, step, order))
    assert -(Decimal(10) ** -30) < found - true < Decimal(2) ** (2 - GRID) * max(1, math.ceil(loss))


@pytest.mark.parametrize("loss", ["1/100", "1/3", "1", "4", "60"])
@pytest.mark.parametrize("order", [Fraction(33, 32), Fraction(2), ORDER, Fraction(5000)])
def test_no_mechanism_of_that_epsilon_loses_more_than_the_curve_of_an_unknown_one(loss, order):
    """Random pairs of distributions whose ratios are within exp(epsilon); randomised response attains the bound."""
    epsilon, draw, a = float(Fraction(loss)), random.Random(3), float(order)
    bound = float(Fraction(loss) * rate(Fraction(loss), Fraction(loss), order))
    for _ in range(50):
        ratios = [draw.choice([-epsilon, epsilon, draw.uniform(-epsilon, epsilon)]) for _ in range(3)] + [-epsilon]
        ratios.append(epsilon)
        weights = [draw.random() for _ in ratios]  # of Q; then two are changed so that P sums to 1 as well
        excess = sum(w * math.expm1(x) for w, x in zip(weights[:3], ratios[:3], strict=True))
        weights[3 if excess > 0 else 4] = abs(excess / math.expm1(-epsilon if excess > 0 else epsilon))
        weights[4 if excess > 0 else 3] = 0.0
        whole = math.log(sum(weights))
        terms = [math.log(w) - whole + a * x for w, x in zip(weights, ratios, strict=True) if w]
        most = max(terms)
        assert (most + math.log(sum(math.exp(term - most) for term in terms))) / (a - 1) <= bound * (1 + 1e-9) + 1e-12


def test_a_curve_is_superadditive_and_coarser_steps_lose_more():
    for order in (None, Fraction(5, 4), ORDER, Fraction(400)):
        losses = [Fraction(n, 37) for n in (1, 2, 5, 20, 90, 400)]
        for step in (Fraction(1, 37), Fraction(1, 37 * 2**20), None):
            rates = [rate(loss, step or loss, order) for loss in losses]
            assert rates == sorted(rates)
        fine, coarse = (rate(losses[3], losses[3] / steps, order) for steps in (2**20, 1))
        assert fine <= coarse <= 1


def test_what_is_tiny_is_not_lost_in_rounding():
    tiny = Fraction(1, 10**18)
    assert 0 < rate(tiny, tiny / 2**40, ORDER) <= ORDER * tiny / 2 + Fraction(1, 2**GRID)


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.2", "1e-9"), ("8", "1/3"), ("1e-3", "1e-12")])
def test_a_limit_converts_back_to_the_epsilon_and_is_rounded_down(epsilon, delta):
    with localcontext() as context:
        context.prec = 60
        for order in (Fraction(3, 2), ORDER, best_order(Fraction(epsilon), Fraction(delta))):
            a, found = number(order), number(limit(Fraction(epsilon), Fraction(delta), order))
            back = found - (a / (a - 1)).ln() - (number(Fraction(delta)) * a).ln() / (a - 1)
            assert 0 <= number(Fraction(epsilon)) - back < Decimal(2) ** (1 - GRID)


def test_one_question_that_fits_fits_and_a_little_more_does_not():
    for left in (Fraction(1, 10**9), Fraction(1, 30), Fraction(7)):
        for order in (None, ORDER):
            found = pure_within(left, order)
            more = found * (1 + Fraction(1, 10**6))
            assert found * rate(found, found, order) <= left < more * rate(more, more, order)
    assert pure_within(Fraction(0), ORDER) == pure_within(Fraction(-1), None) == 0


def test_dp_accounting_says_the_same():
    accounting = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    for epsilon in ("1/50", "1/2", "3"):
        for order in (Fraction(3, 2), ORDER, Fraction(200)):
            account = rdp.RdpAccountant([float(order)])
            account.compose(accounting.LaplaceDpEvent(1 / float(Fraction(epsilon))))
            loss = Fraction(epsilon)
            assert float(loss * rate(loss, loss / 2**30, order)) == pytest.approx(account._rdp[0], rel=1e-9)
    account = rdp.RdpAccountant(list(map(float, orders())))
    account.compose(accounting.GaussianDpEvent(5.0))
    assert float(epsilon_of(lambda order: order / 50, Fraction(1, 10**6))) == pytest.approx(account.get_epsilon(1e-6))
    account = rdp.RdpAccountant([float(ORDER)])
    account.compose(accounting.LaplaceDpEvent(50.0), 100)
    spent, own = 2 * rate(Fraction(1, 50), Fraction(1, 50 * 2**30), ORDER), Fraction(1, 10**6)
    assert float(spent - limit(Fraction(0), own, ORDER)) == pytest.approx(account.get_epsilon(1e-6), rel=1e-9)
