"""Several quantiles at once: what they cost, by the exact law of all outcomes, and what is chosen after what."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wpinq.aggregates.splitting as splitting
from wpinq.aggregates.heap import Heap
from wpinq.aggregates.splitting import Cuts, Points, Split, quantiles, tree_of

POINTS, PARTS = 3, 2
DECILES = tuple(Fraction(tenth, 10) for tenth in range(1, 10))
SHARES = {
    "median": (Fraction(1, 2),),
    "quartiles": (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)),
    "ends": (Fraction(0), Fraction(1, 3), Fraction(1)),
}
MASSES = st.lists(st.integers(-1, 5), min_size=POINTS, max_size=POINTS)
MOVES = st.lists(st.integers(-2, 2), min_size=POINTS, max_size=POINTS)

pytestmark = pytest.mark.usefixtures("many_digits")


def heap(mass, parts=PARTS):
    return Heap(len(mass), np.arange(len(mass)), np.array(mass), parts)


def law(mass, tree, epsilon, l1):
    """The probability of each outcome of all choices together, cuts and points, from the losses that run."""
    found, paths = {}, [()]
    while paths:
        path = paths.pop()
        asked, taken = [], []

        def choose(turn, valley, rate, path=path, asked=asked, taken=taken):
            if len(taken) < len(path):
                taken.append(path[len(taken)])
                return taken[-1][1]
            if not asked:
                weights = {
                    place: (-Decimal(rate.numerator) / rate.denominator * valley.loss(place)).exp()
                    for place in range(valley.first, valley.last + 1)
                }
                total = sum(weights.values())
                asked.extend((turn, place, weight / total) for place, weight in weights.items())
            return valley.first

        quantiles(heap(mass), tree, epsilon, l1, choose)
        if asked:
            paths += [(*path, one) for one in asked]
        else:
            chance = Decimal(1)
            for _, _, part in path:
                chance *= part
            found[tuple((turn, place) for turn, place, _ in path)] = chance
    return found


def lost(before, after):
    """The largest logarithm of a ratio of probabilities, in both directions."""
    return max(abs((before[outcome] / after[outcome]).ln()) for outcome in before)


def moved(mass, change):
    """By how much the weights move that are told: none is below zero."""
    return sum(abs(max(one + more, 0) - max(one, 0)) for one, more in zip(mass, change, strict=True))


@pytest.mark.parametrize("shares", SHARES)
@given(MASSES, MOVES, st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(6)]), st.sampled_from([1, 3]))
@settings(max_examples=40)
def test_what_is_lost_is_in_proportion_to_the_movement(shares, mass, change, epsilon, l1):
    """By all outcomes, of units with a record at many places, more and less: epsilon * moved / l1, and no more."""
    tree = tree_of(SHARES[shares])
    before, after = (law(weights, tree, epsilon, l1) for weights in (mass, np.add(mass, change).tolist()))
    assert abs(sum(before.values()) - 1) < Decimal("1e-30")
    paid = epsilon * moved(mass, change) / l1
    assert lost(before, after) <= Decimal(paid.numerator) / paid.denominator + Decimal("1e-30")


def worst(tree, epsilon=Fraction(1)):
    """The largest loss by one record more, over small masses, in parts of epsilon."""
    result = Decimal(0)
    for mass in product((0, 1, 4), repeat=POINTS):
        before = law(mass, tree, epsilon, 1)
        for point in range(POINTS):
            more = [weight + (place == point) for place, weight in enumerate(mass)]
            result = max(result, lost(before, law(more, tree, epsilon, 1)))
    return float(result / (Decimal(epsilon.numerator) / epsilon.denominator))


@pytest.mark.parametrize("shares", SHARES)
def test_some_record_costs_a_good_part_of_epsilon(shares):
    """So that the tests above have teeth; the whole is reached on large data alone."""
    assert 0.35 < worst(tree_of(SHARES[shares])) <= 1


def larger_parts(tree):
    """As if each choice had epsilon to itself."""
    sides = [side and larger_parts(side) for side in (tree.below, tree.above)]
    return replace(tree, part=Fraction(1), below=sides[0], above=sides[1])


@pytest.mark.parametrize("plant", ["rate", "parts", "overlap"])
def test_a_split_that_costs_more_is_found(plant, monkeypatch):
    """Plants: a rate that forgets a factor of 2, parts that do not share epsilon, and sides that overlap."""
    tree, right = tree_of(SHARES["quartiles"]), Split.rate
    if plant == "rate":
        monkeypatch.setattr(Split, "rate", lambda *args: 2 * right(*args))
    elif plant == "parts":
        tree = larger_parts(tree)
    else:
        monkeypatch.setattr(splitting, "Points", lambda held, _start, _end, share: Points(held, 0, held.end, share))
    assert worst(tree) > 1.05


def paths(tree, before=Fraction(0)):
    if tree is None:
        return []
    here = before + tree.part
    return [here] if tree.last else [*paths(tree.below, here), *paths(tree.above, here)]


@given(st.lists(st.integers(0, 60), min_size=1, max_size=15, unique=True))
def test_parts_of_epsilon_sum_to_one_along_every_path_to_a_last_choice(sixtieths):
    shares = tuple(Fraction(one, 60) for one in sorted(sixtieths))
    tree = tree_of(shares)
    assert set(paths(tree)) == {1}

    def walk(one, low, high):
        if one is None:
            return []
        share = low + (high - low) * one.share
        assert one.part > 0 and 0 <= one.share <= 1
        return [*walk(one.below, low, share), (one.index, share), *walk(one.above, share, high)]

    assert walk(tree, Fraction(0), Fraction(1)) == list(enumerate(shares))


def test_many_shares_are_planned_too():
    shares = tuple(Fraction(one, 100) for one in range(1, 100))
    assert set(paths(tree_of(shares))) == {1}


WEIGHTS = st.lists(st.integers(-2, 9), min_size=1, max_size=7)


@given(st.data(), WEIGHTS, st.integers(1, 6), st.fractions(0, 1, max_denominator=12))
def test_losses_and_who_is_within_them_follow_the_definition(data, mass, parts, share):
    """Point by point, part by part: each part of a point holds as much of its weight."""
    made = heap(mass, parts)
    spread = [max(weight, 0) for weight in mass for _ in range(parts)]
    before = [sum(spread[:cut]) for cut in range(len(spread) + 1)]
    assert [made.before(cut) for cut in range(made.end + 1)] == before
    for weight in range(-1, before[-1] + 2):
        reached = [cut for cut, held in enumerate(before) if held >= weight]
        assert made.reach(weight) == (reached[0] if reached else made.end + 1)
    assert [made.under(point) * parts for point in range(len(mass))] == before[:-1:parts]
    assert [made.upto(point) * parts for point in range(len(mass))] == before[parts::parts]

    start = data.draw(st.integers(0, made.end))
    end = data.draw(st.integers(start, made.end))
    inside, scale = before[end] - before[start], share.denominator

    def below(cut):
        return before[min(max(cut, start), end)] - before[start]

    def far(cut):
        return abs(scale * below(cut) - share.numerator * inside)

    cuts, points = Cuts(made, start, end, share), Points(made, start, end, share)
    assert [cuts.loss(cut) for cut in range(cuts.first, cuts.last + 1)] == [far(cut) for cut in range(start, end + 1)]
    for point in range(points.first, points.last + 1):
        wanted, low, high = share.numerator * inside, scale * below(point * parts), scale * below((point + 1) * parts)
        assert points.loss(point) == max(low - wanted, wanted - high, 0)
    for valley in (cuts, points):
        losses = {place: valley.loss(place) for place in range(valley.first, valley.last + 1)}
        assert valley.least == min(losses.values())
        for loss in {*losses.values(), valley.least + 1, valley.least + 5}:
            held = [place for place, other in losses.items() if other <= loss]
            assert valley.within(loss) == (held[0], held[-1]) and len(held) == held[-1] - held[0] + 1


def test_heaps_of_equal_numbers_are_cut_through():
    """Nine tenths of all numbers are one, and so are the deciles among them; the last is there or beside it."""
    mass, rng = [0, 0, 900, 0, 50, 50], np.random.default_rng(3)

    def nearest(_turn, valley, _rate):
        low, high = valley.within(valley.least)
        return int(rng.integers(low, high + 1))

    found = quantiles(heap(mass, 1 << 32), tree_of(DECILES), Fraction(1), 1, nearest)
    assert [found[place] for place in range(8)] == [2] * 8
    assert 2 <= found[8] <= 4


def test_the_split_of_epsilon_is_the_same_everywhere():
    """It is part of what is asked, so it must not differ from machine to machine: no float takes part."""
    tree = tree_of(DECILES)
    assert (tree.index, tree.part, tree.below.index, tree.below.part) == (3, Fraction(1, 4), 1, Fraction(339, 1024))
    assert "float" not in Path(splitting.__file__).read_text()
