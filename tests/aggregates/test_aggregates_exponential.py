"""Permute-and-flip: its probabilities, by summing over all orders, and the guarantee that follows from them."""

from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from wpinq.core.noise import Words
from wpinq.core.noise.exponential import PermuteAndFlip, _number

pytestmark = pytest.mark.usefixtures("many_digits")
losses = st.lists(st.integers(0, 6), min_size=2, max_size=6)


def chances(values, rate):
    """Of each candidate: the sum over the sets that come before it in a random order, none of which is taken."""
    least = min(values)
    take = [(-Decimal(rate.numerator) / rate.denominator * (loss - least)).exp() for loss in values]
    size, found = len(values), []
    for i in range(size):
        others = [take[j] for j in range(size) if j != i]
        total = Decimal(0)
        for before in range(size):
            for group in combinations(others, before):
                missed = Decimal(1)
                for one in group:
                    missed *= 1 - one
                # the candidate stands right after these, in any order
                total += missed / (size * _choose(size - 1, before))
        found.append(total * take[i])
    return found


def _choose(n, k):
    found = Decimal(1)
    for i in range(k):
        found = found * (n - i) / (i + 1)
    return found


@given(losses, st.fractions(Fraction(1, 10), 3, max_denominator=20))
def test_probabilities_sum_to_one(values, rate):
    assert abs(sum(chances(values, rate)) - 1) < Decimal("1e-40")


@given(st.data(), losses, st.fractions(Fraction(1, 10), 2, max_denominator=20))
def test_losses_that_move_by_one_cost_twice_the_rate(data, values, rate):
    moved = [loss + data.draw(st.integers(-1, 1)) for loss in values]
    bound = (2 * Decimal(rate.numerator) / rate.denominator).exp()
    for one, two in zip(chances(values, rate), chances(moved, rate), strict=True):
        assert one <= bound * two * (1 + Decimal("1e-30"))
        assert two <= bound * one * (1 + Decimal("1e-30"))


@given(losses, st.fractions(Fraction(1, 10), 3, max_denominator=20), st.integers(0, 8))
def test_a_loss_is_never_likelier_than_under_the_exponential_mechanism(values, rate, least):
    """What the intervals of ranks rest on."""
    weights = [(-Decimal(rate.numerator) / rate.denominator * loss).exp() for loss in values]
    far = [loss - min(values) >= least for loss in values]
    exponential = sum(w for w, f in zip(weights, far, strict=True) if f) / sum(weights)
    ours = sum(p for p, f in zip(chances(values, rate), far, strict=True) if f)
    assert ours <= exponential + Decimal("1e-30")


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(2)])
def test_choices_are_as_frequent_as_they_should_be(rate):
    """40,000 keys. Two-sided binomial tails at 1e-8 for 5 candidates and 2 rates: false alarm 2e-7, were they drawn."""
    values = np.array([3, 0, 1, 0, 7], object)
    ids = np.arange(10, dtype=np.uint64).reshape(5, 2)
    chooser, words = PermuteAndFlip(rate), Words(bytes(range(32)))
    size = 4000
    counts = np.zeros(5, np.int64)
    for turn in range(size):
        counts[chooser.choose(words, ids, values, turn)] += 1
    for count, chance in zip(counts.tolist(), chances(values.tolist(), rate), strict=True):
        assert binom.cdf(count, size, float(chance)) > 1e-8
        assert binom.sf(count - 1, size, float(chance)) > 1e-8


def test_many_candidates_in_one_order_are_one_choice():
    """The choice depends on identities and losses, not on the place in the list."""
    random = np.random.default_rng(5)
    ids = random.integers(0, 2**63, (500, 2)).astype(np.uint64)
    values = random.integers(0, 40, 500)
    values[7] = 0
    chooser, words = PermuteAndFlip(Fraction(1, 4)), Words(bytes(range(32)))
    order = random.permutation(500)
    assert order[chooser.choose(words, ids[order], values[order])] == chooser.choose(words, ids, values)


class Chosen:
    """Coins as the test says; the order is that of the places."""

    def __init__(self, coins):
        self.coins = coins

    def pair(self, identities, number):
        if number == _number(0, 0):
            return np.stack([np.arange(len(identities), dtype=np.uint64)] * 2, axis=1)
        coin = np.array([self.coins[number - 1]] * len(identities), np.uint64)
        return np.stack([coin, coin], axis=1)


@pytest.mark.parametrize("loss", [1, 5, 60, 100])
def test_ties_are_decided_by_further_words(loss):
    """exp(-rate * loss) in 192 binary places, computed apart; losses of 60 and 100 begin with a word of zeros."""
    rate = Fraction(1)
    places = int((-Decimal(loss)).exp() * 2**192)
    words = [places >> 128, places >> 64 & (2**64 - 1), places & (2**64 - 1)]
    for depth in range(3):
        for difference, place in ((-1, 0), (1, 1)):
            if 0 <= words[depth] + difference < 2**64:
                coins = [*words[:depth], words[depth] + difference]
                found = PermuteAndFlip(rate).choose(Chosen(coins), np.zeros((2, 2), np.uint64), np.array([loss, 0]))
                assert found == place
