"""The exponential mechanism over many places: its law by a sum over all of them, and that nothing is rounded."""

from fractions import Fraction
from functools import cache, cached_property
from itertools import accumulate, pairwise

import numpy as np
import pytest
from depth import thin
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from wpinq.core.noise import Words
from wpinq.core.noise.valleys import BITS, Draws, ValleyChoice, _bounds, _edges

IDENTITY = np.array([[1, 2]], np.uint64)


class Listed:
    """Losses that are written down, and rise to both sides of a least one."""

    def __init__(self, losses, first=0):
        self.losses, self.first, self.last = losses, first, first + len(losses) - 1

    @cached_property
    def least(self):
        return min(self.losses)

    def loss(self, place):
        return self.losses[place - self.first]

    @cache  # noqa: B019  of a test
    def within(self, loss):
        held = [place for place in range(self.first, self.last + 1) if self.loss(place) <= loss]
        return held[0], held[-1]


class Fixed:
    """Words that are given, and then none."""

    def __init__(self, words):
        self._words = dict(enumerate(words))

    def pair(self, identities, number):
        low, high = self._words[number & (2**64 - 1)]
        return np.array([[low, high]], np.uint64)


def draws(number):
    return Draws(Words(number.to_bytes(32, "big")), IDENTITY, 0)


SHAPES = {
    "even": [0] * 40,
    "steep": [*range(12, 0, -1), *range(1, 20)],
    "wide": [400] * 300 + [5, 4, 4, 2, 3, 9] + [60] * 900,
    "one": [7],
    "edge": [0, 0, 1, 5, 80, 3000],
}


@thin(3)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 3), Fraction(3)])
def test_places_are_as_frequent_as_they_should_be(shape, rate):
    """2,000 keys. Binomial tails at 1e-9 on both sides for ten groups of places, of 15 laws: false alarm 3e-7."""
    valley, size = Listed(SHAPES[shape], first=-5), 2000
    likely = np.exp(-float(rate) * (np.array(valley.losses) - valley.least))
    likely /= likely.sum()
    counts = np.zeros(len(likely), int)
    for number in range(size):
        counts[ValleyChoice(rate).choose(draws(number), valley) - valley.first] += 1
    order = np.argsort(-likely, kind="stable")
    for places in np.array_split(order, min(10, len(order))):
        hits, chance = counts[places].sum(), min(likely[places].sum(), 1)
        assert binom.cdf(hits, size, chance) > 1e-9
        assert binom.sf(hits - 1, size, chance) > 1e-9


@given(st.fractions(Fraction(1, 1000), 5, max_denominator=1000), st.integers(1, 200))
def test_edges_rise_and_blocks_are_narrow(rate, size):
    edges = _edges(rate, size)
    assert edges[0] == 0
    for low, high in pairwise(edges):
        assert low < high
        assert high - low == 1 or (high - low) * rate <= max(Fraction(1, 4), low * rate / 4)


def test_a_block_is_found_by_more_bits_where_few_do_not_tell():
    """Two blocks; words that agree with the bound between them for 128 bits, and then are above or below it."""
    choice, sizes = ValleyChoice(Fraction(1)), [1, 1]
    bits = 8 * BITS
    low = list(accumulate(bound for bound, _ in _bounds(choice.rate, bits, 64)[:2]))
    share = (low[0] << 4 * BITS) // low[1]  # floor of 2^(4 BITS) times the probability of the first block
    words = [share >> (3 - place) * BITS & (2**BITS - 1) for place in range(4)]
    for more, block in ((-1, 0), (1, 1)):
        changed = [*words[:1], (words[1] + more * 2**64) % 2**BITS, *words[2:]]
        given_ = Fixed([(word & (2**64 - 1), word >> 64) for word in changed])
        assert choice._block(Draws(given_, IDENTITY, 0), sizes) == block


def test_bits_are_taken_in_order_and_each_once():
    taken, whole = draws(3), draws(3)
    parts = [taken.bits(size) for size in (1, 63, 64, 5, 123, 0)]
    number, joined = whole.bits(256), 0
    for size, part in zip((1, 63, 64, 5, 123), parts, strict=False):
        joined = joined << size | part
    assert joined == number and parts[-1] == 0
    assert draws(3).bits(128) != Draws(Words((3).to_bytes(32, "big")), IDENTITY, 1).bits(128), "each choice its own"


@pytest.mark.parametrize("limit", [1, 2, 5, 8, 1000])
def test_numbers_below_a_limit_are_even(limit):
    """2,000 draws; binomial tails at 1e-9 on both sides of at most 8 groups, of 5 limits: false alarm 8e-8."""
    found = np.array([draws(number).below(limit) for number in range(2000)])
    assert found.min() >= 0 and found.max() < limit
    for part in np.array_split(np.arange(limit), min(limit, 8)):
        hits = int(np.isin(found, part).sum())
        assert binom.cdf(hits, 2000, len(part) / limit) > 1e-9
        assert binom.sf(hits - 1, 2000, len(part) / limit) > 1e-9


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 7), Fraction(2)])
def test_a_chance_is_what_it_says(x):
    """2,000 draws; binomial tails at 1e-9 on both sides, of 3: false alarm 6e-9."""
    hits, chance = sum(draws(number).chance(x) for number in range(2000)), float(np.exp(-float(x)))
    assert binom.cdf(hits, 2000, chance) > 1e-9
    assert binom.sf(hits - 1, 2000, chance) > 1e-9
