"""Optimal partition selection: the published recurrence, the guarantee itself, and the sampler, digit by digit."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from wpinq.core.noise import Words
from wpinq.core.noise.selection import PartitionSelection, selection

pytestmark = pytest.mark.usefixtures("many_digits")
CASES = [
    (Fraction(1), Fraction(1, 10**5)),
    (Fraction(1, 10), Fraction(1, 10**9)),
    (Fraction(3), Fraction(1, 10)),
    (Fraction(1, 100), Fraction(1, 100)),
    (Fraction(5), Fraction(1, 10**12)),
    (Fraction(1, 2), Fraction(9, 10)),
    (Fraction(20), Fraction(1, 10**6)),
    (Fraction(7, 3), Fraction(1, 3)),
]
epsilons = st.fractions(Fraction(1, 50), 8, max_denominator=50)
costs = st.tuples(epsilons, st.fractions(Fraction(1, 10**6), Fraction(99, 100)))


def number(fraction):
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def recurrence(epsilon, delta, size):
    """Desfontaines et al., theorem 1, step by step in 120 digits."""
    e, d = number(epsilon).exp(), number(delta)
    found = [Decimal(0)]
    for _ in range(size):
        before = found[-1]
        found.append(min(e * before + d, 1 - (1 - before - d) / e, Decimal(1)))
    return found


@pytest.mark.parametrize("cost", CASES, ids=str)
def test_probabilities_are_those_of_the_recurrence(cost):
    selection = PartitionSelection(*cost)
    for n, true in enumerate(recurrence(*cost, 1200)):
        if n < 80 or n % 97 == 0:
            below = Decimal(selection.places(n, 160)) / 2**160
            assert 0 <= true - below + Decimal("1e-100") < Decimal(2) ** -160 + Decimal("1e-60")


@given(costs, st.integers(0, 400))
@settings(max_examples=often(150))
def test_one_step_more_or_less_is_within_epsilon_and_delta(cost, n):
    """The guarantee itself, without the recurrence: both events, both ways."""
    selection, e, d = PartitionSelection(*cost), number(cost[0]).exp(), number(cost[1])
    less, more = (Decimal(selection.places(k, 250)) / 2**250 for k in (n, n + 1))
    slack = 2 * e * Decimal(2) ** -250
    assert less <= more + slack
    assert more <= e * less + d + slack
    assert 1 - less <= e * (1 - more) + d + slack


def test_nothing_is_published_without_weight_and_everything_in_the_end():
    selection = PartitionSelection(Fraction(1), Fraction(1, 10**5))
    assert [selection.places(n, 64) for n in (-5, 0)] == [0, 0]
    assert selection.places(1, 64) == 2**64 // 10**5
    assert selection.places(60, 64) == selection.places(10**9, 64) == 2**64


@pytest.mark.parametrize("moves", [1, 2, 3, 20, 720_720, 2**45])
@pytest.mark.parametrize("cost", CASES, ids=str)
def test_a_unit_of_many_steps_costs_what_was_charged(cost, moves):
    """All steps in one bin is the worst: delta' (e^eps - 1) / (e^eps' - 1), computed apart, is delta and not more."""
    epsilon, delta = map(number, cost)
    own = selection(*cost, moves)
    assert own.epsilon * moves == cost[0]
    small = number(own.epsilon).exp() - 1
    worst = number(own.delta) * (epsilon.exp() - 1) / small
    assert worst <= delta * (1 + Decimal("1e-60"))
    assert worst > delta * (1 - Decimal("1e-20")), "nothing is given away"
    if moves <= 20:
        for one in range(1, moves + 1):  # what is left is spread one by one
            spread = number(own.delta) * (((number(own.epsilon) * one).exp() - 1) / small + moves - one)
            assert spread <= delta * (1 + Decimal("1e-60"))


@pytest.mark.parametrize("moves", [2, 5])
def test_a_unit_of_many_steps_in_one_bin_is_private_by_itself(moves):
    epsilon, delta = Fraction(1), Fraction(1, 100)
    own = selection(epsilon, delta, moves)
    e, d, slack = number(epsilon).exp(), number(delta), Decimal("1e-30")
    chance = [Decimal(own.places(n, 200)) / 2**200 for n in range(200)]
    for n in range(200 - moves):
        assert chance[n + moves] <= e * chance[n] + d + slack
        assert 1 - chance[n] <= e * (1 - chance[n + moves]) + d + slack


def test_bins_are_kept_as_often_as_they_should_be():
    """50,000 bins of each of 14 weights. Two-sided binomial tails; false alarm 14 x 2 x 1e-8, were the key drawn."""
    selection, size = PartitionSelection(Fraction(1, 2), Fraction(1, 100)), 50_000
    words = Words(bytes(range(32)))
    ids = np.random.default_rng(1).integers(0, 2**63, (14 * size, 2)).astype(np.uint64)
    weights = np.repeat(np.arange(-1, 13), size)
    kept = selection.keep(words, ids, weights)
    for n in range(-1, 13):
        hits, chance = int(kept[weights == n].sum()), selection.places(n, 64) / 2**64
        if chance in (0, 1):
            assert hits == size * chance
        else:
            assert binom.cdf(hits, size, chance) > 1e-8
            assert binom.sf(hits - 1, size, chance) > 1e-8
    some = np.flatnonzero(weights > 0)[::1000]
    assert (selection.keep(words, ids[some], weights[some]) == kept[some]).all(), "one bin, one answer"


class Chosen:
    """Words as the test says: a list for each depth."""

    def __init__(self, *depths):
        self.depths = depths

    def pair(self, identities, number):
        return np.repeat(np.array(self.depths[number], np.uint64)[: len(identities), None], 2, axis=1)


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_ties_are_decided_by_further_words(n):
    selection = PartitionSelection(Fraction(1, 3), Fraction(1, 10**4))
    places = [selection.places(n, 64 * (depth + 1)) % 2**64 for depth in range(3)]
    ids, weight = np.zeros((1, 2), np.uint64), np.array([n])
    for depth in range(3):
        for difference, kept in ((-1, True), (1, False)):
            if 0 <= places[depth] + difference < 2**64:
                words = [[word] for word in places[:depth]] + [[places[depth] + difference]]
                assert selection.keep(Chosen(*words), ids, weight).tolist() == [kept]
