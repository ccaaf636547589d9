"""Aims of ranks: what a unit moves their losses by, and that their intervals hold the truth, on odd data."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from depth import thin
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from wpinq.aggregates.heap import Heap
from wpinq.aggregates.rank_aim import INTERVALS, RankAim, widths
from wpinq.aggregates.utility import ExtremeAim, Terms

SIZE = 9
MASSES = st.lists(st.integers(0, 40), min_size=SIZE, max_size=SIZE)
SHARES = st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(1)])
TERMS = st.builds(
    Terms, st.sampled_from([Fraction(1, 10), Fraction(2), Fraction(50)]), st.sampled_from([1, 4]),
    st.just(Fraction(1, 20)), st.just(SIZE),
)  # fmt: skip


class Made:
    """A view whose choices are told: each takes the next of some places, or the last one."""

    def __init__(self, mass, places):
        self.mass, self.heap = mass, Heap(len(mass), np.arange(len(mass)), mass)
        self.asked, self._places = [], places

    def flip(self, _turn, places, losses, rate):
        self.asked.append((losses, rate))
        return int(places[min(self._next(), len(places) - 1)])

    def cut(self, _turn, valley, rate):
        self.asked.append((np.array([valley.loss(at) for at in range(valley.first, valley.last + 1)], object), rate))
        return min(valley.first + self._next(), valley.last)

    def _next(self):
        return self._places[min(len(self.asked), len(self._places)) - 1]


def all_losses(aim, mass, place):
    """Each choice that the aim makes, given the first one's outcome: its losses and rate."""
    made = Made(mass, [place])
    aim.choices(made)
    return made.asked


@st.composite
def movements(draw, moves):
    """What one unit can do: some weight comes at some places, and goes at others, so much in all."""
    cuts = sorted([0, *draw(st.lists(st.integers(0, moves), min_size=2, max_size=2)), moves])
    change = np.zeros(SIZE, np.int64)
    for first, last in pairwise(cuts):
        change[draw(st.integers(0, SIZE - 1))] += draw(st.sampled_from([-1, 1])) * (last - first)
    return change


@given(st.data(), MASSES, SHARES, TERMS, st.integers(0, SIZE - 1))
def test_no_unit_moves_losses_apart_by_more_than_is_paid(data, mass, share, terms, place):
    """A choice costs its rate times the spread of the movements: for both kinds of choice its part of epsilon."""
    change = data.draw(movements(terms.l1))
    aims = (
        RankAim((share,), terms),
        RankAim((share,), terms, False),
        ExtremeAim(True, terms),
        ExtremeAim(False, terms),
    )
    for aim in aims:
        before, after = (all_losses(aim, weights, place) for weights in (np.array(mass), np.array(mass) + change))
        for (one, rate), (two, _), part in zip(before, after, parts(aim), strict=True):
            moved = two - one
            assert (int(moved.max()) - int(moved.min())) * rate <= terms.epsilon * part


def parts(aim):
    """Of epsilon, for each choice."""
    if isinstance(aim, ExtremeAim):
        return [Fraction(1, 2), Fraction(1, 2)]
    return [1 - INTERVALS, INTERVALS] if aim.intervals else [Fraction(1)]


@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("kind", ["middle", "extreme"])
def test_its_part_of_epsilon_is_used_up(kind, turn):
    """So that the test above has teeth: some unit does move losses apart by all that is paid."""
    terms = Terms(Fraction(8), 1, Fraction(1, 20), SIZE)
    aim = RankAim((Fraction(1, 2),), terms) if kind == "middle" else ExtremeAim(True, terms)
    rng, worst = np.random.default_rng(7), Fraction(0)
    for _ in range(2000):
        mass = rng.integers(0, 4, SIZE)
        place = int(rng.integers(SIZE))
        more = mass.copy()
        more[rng.integers(SIZE)] += 1
        (one, rate), (two, _) = (all_losses(aim, weights, place)[turn] for weights in (mass, more))
        worst = max(worst, (int((two - one).max()) - int((two - one).min())) * rate)
    assert worst == terms.epsilon * parts(aim)[turn]


def test_losses_are_the_same_in_wide_integers():
    mass = np.random.default_rng(1).integers(0, 50, 60)
    terms = Terms(Fraction(1), 1, Fraction(1, 20), 60)
    for aim in (RankAim((Fraction(1, 3),), terms), ExtremeAim(True, terms), ExtremeAim(False, terms)):
        wide = Terms(Fraction(1), 10**20, Fraction(1, 20), 60)
        large = type(aim)(aim.shares if isinstance(aim, RankAim) else aim.largest, wide)
        for (one, rate), (two, slow) in zip(
            all_losses(aim, mass, 7), all_losses(large, mass.astype(object) * 10**20, 7), strict=True
        ):
            assert two.dtype == object
            far = [abs(float(rate) * int(a) - float(slow * b)) for a, b in zip(one, two, strict=True)]
            assert max(far) < 2, "apart from what is spared, which is rounded to whole units"


def answers(aim, mass, runs, rng):
    """Draws of an aim, many at once: the least of rate * loss less a Gumbel variable, or for a flip an exponential."""
    found = np.empty((runs, 3), np.int64)
    first = all_losses(aim, mass, 0)[0]
    drawn = drawn_from(first, runs, rng, rng.gumbel if isinstance(aim, RankAim) else rng.exponential)
    for place in np.unique(drawn):
        rows = np.flatnonzero(drawn == place)
        second = drawn_from(all_losses(aim, mass, int(place))[1], len(rows), rng, rng.exponential)
        for other in np.unique(second):
            found[rows[second == other]] = aim.choices(Made(mass, [int(place), int(other)]))[0]
    return found


def drawn_from(asked, runs, rng, noise):
    losses, rate = asked[0].astype(np.float64), float(asked[1])
    return np.argmax(noise(size=(runs, len(losses))) - rate * losses, axis=1)


def heaps():
    """Half of the weight at one point, the median just above it, and single records far up."""
    mass = np.zeros(1001, np.int64)
    mass[100], mass[101:] = 500, 1
    return mass[: 101 + 499]


def skewed():
    numbers = np.exp(np.random.default_rng(3).normal(5, 1.2, 1000)).clip(0, 1000)
    return np.bincount(numbers.astype(np.int64), minlength=1001)


SHAPES = {
    "heaps": heaps(), "skewed": skewed(), "even": np.full(1001, 3), "two": np.bincount([7, 90], minlength=101),
    "none": np.zeros(50, np.int64), "one far": np.bincount([*[3] * 900, 999], minlength=1001),
}  # fmt: skip


@thin(8)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(2)])
def test_intervals_hold_the_truth(shape, epsilon):
    """1,000 answers each; at least 95% hold it. Binomial tail, false alarm 1e-7 for each of some 50."""
    mass, rng = SHAPES[shape], np.random.default_rng(17)
    terms, runs = Terms(epsilon, 1, Fraction(1, 20), len(mass)), 1000
    above = np.cumsum(mass)
    aims = {share: RankAim((share,), terms) for share in (Fraction(1, 2), Fraction(9, 10))}
    for name, aim in {**aims, "max": ExtremeAim(True, terms), "min": ExtremeAim(False, terms)}.items():
        value, low, high = answers(aim, mass, runs, rng).T
        assert ((low <= value) & (value <= high)).all()
        if not mass.any():
            continue
        present = np.flatnonzero(mass)
        if name == "max":
            first = last = present[-1]
        elif name == "min":
            first = last = present[0]
        else:
            first = np.searchsorted(above, math.ceil(name * above[-1]), "left")
            last = np.searchsorted(above, math.floor(name * above[-1]), "right")
        held = int(((low <= first) & (high >= last)).sum())
        assert binom.cdf(held, runs, 0.95) > 1e-7


def test_intervals_of_a_median_are_not_far_wider_than_its_error():
    """Where numbers are even: half the width was 15 times the root mean square error, and 2 would do.

    Of the error of an answer at half of epsilon, which was its part when this was set; it has three quarters now.
    """
    mass, rng, miss = np.full(1001, 3), np.random.default_rng(18), Fraction(1, 20)
    _, low, high = answers(RankAim((Fraction(1, 2),), Terms(Fraction(1), 1, miss, 1001)), mass, 2000, rng).T
    value, *_ = answers(RankAim((Fraction(1, 2),), Terms(Fraction(2, 3), 1, miss, 1001)), mass, 2000, rng).T
    error = np.sqrt(np.mean((value - 500) ** 2))
    assert np.mean(high - low) / 2 < 6 * error


def ranks(mass):
    """The last and the first rank of each point, and that of the median, in halves."""
    above = np.cumsum(mass) * 2
    return above, above - mass * 2, int(mass.sum())


def chance(losses, rate, failing):
    """The probability that permute-and-flip chooses one of some candidates: the largest exponential less its loss.

    The largest is not below 0, since one has no loss.
    """
    least = float(rate) * (losses - losses.min()).astype(np.float64)
    at = np.linspace(0, 45, 4001)[:, None]
    below = 1 - np.exp(-(at + least))
    ours, others = below[:, failing].prod(axis=1), below[:, ~failing].prod(axis=1)
    return float(np.sum(np.diff(ours) * (others[1:] + others[:-1]) / 2))


@pytest.mark.parametrize(
    ("epsilon", "miss", "fine"),
    [("1/20", "1/20", True), ("1", "1/1000", True), ("1/20", "2/3", True), ("40", "1/20", False)],
)
def test_an_interval_fails_as_often_as_it_may_on_the_worst_data_and_never_more(epsilon, miss, fine):
    """By the law itself, for every answer that may come first: two heaps, few or many records, gaps of all sizes.

    The tilt and that a failing width must be above one that holds are both used up: to three tenths of what is allowed
    of intervals, and to four tenths of what is allowed of extremes. Where a record is many nats, margins are
    whole records.
    """
    rng, worst, size, miss = np.random.default_rng(5), {}, 129, Fraction(miss)
    heaps = [np.bincount([2] * n + [2 + gap] * (n + 1), minlength=size) for n in (1, 40, 4000) for gap in (1, 120)]
    masses = [*heaps, *(rng.integers(0, 3, size) * (rng.random(size) < 0.1) * 10 for _ in range(2))]
    for mass in masses:
        terms = Terms(Fraction(epsilon), 1, miss, size)
        rank = RankAim((Fraction(1, 2),), terms)
        above, below, wanted = ranks(mass)
        for place in {0, 3, 64, size - 1, int(np.searchsorted(above, wanted))} if mass.any() else ():
            _, (losses, rate) = all_losses(rank, mass, place)
            far = widths(max(place, size - 1 - place))
            low, high = np.maximum(place - far, 0), np.minimum(place + far, size - 1)
            failing = ((wanted <= below[low]) & (low > 0)) | ((wanted >= above[high]) & (high < size - 1))
            if failing.any():
                worst["middle"] = max(worst.get("middle", 0), chance(losses, rate, failing))
        extreme = ExtremeAim(True, terms)
        ((losses, rate), _), last = all_losses(extreme, mass, 0), np.flatnonzero(mass)[-1]
        worst["extreme"] = max(worst.get("extreme", 0), chance(losses, rate, np.arange(size) > last))
    assert max(worst.values()) <= miss * (1 + 1e-2)
    if fine:
        assert worst["middle"] > 0.3 * miss
        assert worst["extreme"] > 0.4 * miss


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1)])
def test_an_answer_is_off_by_no_more_records_than_it_may_be_whatever_the_data(epsilon):
    """By the law itself; on the worst data, where all points but one are equally far off, it is used up."""
    miss, size, rng, worst = Fraction(1, 20), 129, np.random.default_rng(6), {}
    terms = Terms(epsilon, 1, miss, size)
    rank, largest = RankAim((Fraction(1, 2),), terms), ExtremeAim(True, terms)
    far = math.ceil(rank.misses)
    for mass in (np.bincount([64] * 2 * far, minlength=size), rng.integers(0, 3, size),
                 np.bincount([3] * 5000, minlength=size), np.bincount([3] * 5000 + [99], minlength=size)):  # fmt: skip
        above, below, wanted = ranks(mass)
        off = np.maximum(below - wanted, wanted - above) / 2
        (losses, rate), _ = all_losses(rank, mass, 0)
        likely = np.exp(-float(rate) * losses.astype(np.float64))
        worst["middle"] = max(worst.get("middle", 0), likely[off >= rank.misses].sum() / likely.sum())
        (losses, rate), _ = all_losses(largest, mass, 0)
        beyond = mass.sum() - np.cumsum(mass)
        worst["extreme"] = max(worst.get("extreme", 0), chance(losses, rate, beyond >= largest.misses))
    assert max(worst.values()) <= miss
    assert worst["middle"] > 0.3 * miss
