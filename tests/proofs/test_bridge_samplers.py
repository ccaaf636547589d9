"""The sampler that the proofs are about is the one that draws: fed the same words, both give the same noise."""

import random
from fractions import Fraction
from itertools import pairwise

import coq
import numpy as np
import pytest
from depth import deep

from wpinq.core.noise import geometric
from wpinq.core.noise.blocks import FIRST, Blocks
from wpinq.core.noise.exponential import FIRST_COIN, PermuteAndFlip
from wpinq.core.noise.selection import PartitionSelection
from wpinq.core.noise.words import WORD, Threshold, binary_places, thresholds

SCALES = [Fraction(1, 1000), Fraction(1, 45), Fraction(1, 3), Fraction(22, 7), Fraction(10**9), Fraction(2**57)]
TRIALS = 64
"""Of the tail, at most."""


class MoreWordsError(Exception):
    """A sampler needs a word beyond its string."""


class Absent:
    """Stands for a word beyond the string."""

    def __int__(self):
        raise MoreWordsError


class Chosen:
    """Words of one identity: of each side a row for each digit and each trial of the tail."""

    def __init__(self, sides):
        self.sides = sides

    def pair(self, identities, number):
        index, depth = number % 2**32, number >> 32
        words = [side[index][depth] if depth < len(side[index]) else Absent() for side in self.sides]
        return np.array([words], object if depth else np.uint64)

    def first(self, identity, count):
        return tuple(side[index][0] for index in range(count) for side in self.sides)


def row(draw, limit, ties, shortest):
    """Up to three words: so often that of the threshold or one next to it, else another."""

    def word(depth):
        near = limit.word(depth) + draw.choice([0, 0, 0, 1, -1])
        return (near if draw.random() < ties else draw.getrandbits(WORD)) % 2**WORD

    return [word(depth) for depth in range(draw.randint(shortest, 3))]


def cases(times, seed):
    """A scale and the rows of both sides, so many times; in some all words are 0, so that every trial hits."""
    draw = random.Random(seed)
    for _ in range(times):
        scale = draw.choice(SCALES)
        *digits, tail = thresholds(scale)
        near = draw.choice([0.02, 0.2, 0.9]), draw.choice([1, 3])
        sides = [[row(draw, limit, *near) for limit in [*digits, *[tail] * TRIALS]] for _ in range(2)]
        if not draw.randrange(5):
            sides[draw.randrange(2)][len(digits) :] = [[0, 0, 0]] * TRIALS
        yield scale, sides


def halves(words):
    """64-bit words as pairs of numbers that OCaml reads."""
    return " ".join(f"{word >> 32} {word & 2**32 - 1}" for word in words)


def proved(program, times, seed):
    """Cases, each with the noise that the program of the proof draws: None where it needs more words."""
    given = list(cases(times, seed))
    lines = []
    for scale, sides in given:
        tables = [[[limit.word(depth) for depth in range(3)] for limit in thresholds(scale)], *sides]
        lines.append(f"laplace;;{'/'.join(','.join(map(halves, table)) for table in tables)};;")
    for (scale, sides), answer in zip(given, coq.answers(program, lines), strict=True):
        yield scale, sides, int(answer[0][1], 2) if answer else None


def drawn(scale, sides, way="draw"):
    """The noise that we draw of the same words; None where it needs more."""
    try:
        law, words = geometric.DiscreteLaplace(scale), Chosen(sides)
        return law.draw_one(words, bytes(16)) if way == "draw_one" else int(law.draw(words, np.zeros((1, 2), "<u8"))[0])
    except MoreWordsError:
        return None


def differences(program, times, seed=39, way="draw"):
    """Of which kinds cases are, and how many differ; 64 bits wrap, as they may at the largest scale."""
    kinds, wrong = set(), 0
    for scale, sides, noise in proved(program, times, seed):
        wrapped = None if noise is None else (noise + 2**63) % 2**64 - 2**63
        kinds.add("more words" if noise is None else "wraps" if noise != wrapped else "noise" if noise else "zero")
        wrong += drawn(scale, sides, way) != wrapped
    return kinds, wrong


@deep
@pytest.mark.slow
@pytest.mark.parametrize("way", ["draw", "draw_one", "without kernels"])
def test_the_noise_is_that_of_the_proof(program, monkeypatch, way):
    if way == "without kernels":
        monkeypatch.setattr(geometric, "LIB", None)
    kinds, wrong = differences(program, 1_000, way=way)
    assert kinds == {"more words", "wraps", "noise", "zero"}
    assert wrong == 0


@deep
@pytest.mark.slow
@pytest.mark.parametrize("fault", ["one trial less", "a tie decides", "each depth the first", "the tail a digit lower"])
def test_a_wrong_sampler_is_found(program, monkeypatch, fault):
    hits, bernoulli = geometric._hits, geometric._bernoulli
    if fault == "one trial less":
        monkeypatch.setattr(geometric, "_MOST_HITS", TRIALS - 1)
    elif fault == "a tie decides":
        monkeypatch.setattr(geometric, "_bernoulli", lambda *_: True)
    elif fault == "each depth the first":

        def first(words, identity, side, limit, index):
            int(words.pair(identity, geometric.number(index, 1))[0, side])
            return bernoulli(words, identity, side, Threshold(limit.x, not limit.odds), index)

        monkeypatch.setattr(geometric, "_bernoulli", first)
    else:
        monkeypatch.setattr(geometric, "_hits", lambda *arguments: hits(*arguments[:-1], arguments[-1] - 1))
    assert differences(program, 200)[1] > 0


COINS = [Fraction(1, 2**70), Fraction(1, 9), Fraction(22, 7), Fraction(44)]


def coins(times, seed):
    """Thresholds of choices and of selections, each with the words that are compared with it."""
    draw = random.Random(seed)
    for _ in range(times):
        if draw.randrange(2):
            limit = Threshold(draw.choice(COINS), odds=False)
        else:
            limit = Selected(PartitionSelection(draw.choice(COINS[1:3]), Fraction(1, 10**6)), draw.randint(1, 9))
        yield limit, row(draw, limit, 0.9, 1)


class Selected:
    """The words of the probability with which a bin of a weight is kept."""

    def __init__(self, selection, weight):
        self.selection, self.weight = selection, weight

    def word(self, depth):
        return self.selection.places(self.weight, WORD * (depth + 1)) % 2**WORD


class Row:
    """Words of one identity under the numbers 0, 1, 2 from a first one on."""

    def __init__(self, words, first):
        self.words, self.begin = words, first

    def pair(self, identities, number):
        depth = number - self.begin
        return np.array([[self.words[depth] if depth < len(self.words) else Absent(), 0]], object if depth else "<u8")


def flipped(limit, words):
    """Whether our own coin is taken, or the bin kept; None where it needs more words."""
    bins = np.zeros((1, 2), "<u8")
    try:
        if isinstance(limit, Selected):
            return bool(limit.selection.keep(Row(words, 0), bins, np.array([limit.weight]))[0])
        return bool(PermuteAndFlip(limit.x)._flip(Row(words, FIRST_COIN), bins, np.array([1]), 0)[0])
    except MoreWordsError:
        return None


@deep
@pytest.mark.slow
def test_coins_of_choices_and_selections_are_the_comparison_of_the_proof(program):
    given = list(coins(1_000, 39))
    lines = [f"below;;{halves(limit.word(depth) for depth in range(3))}/{halves(words)};;" for limit, words in given]
    answers = [None if not answer else answer[0][1] == "1" for answer in coq.answers(program, lines)]
    assert set(answers) == {None, False, True}
    assert [flipped(*coin) for coin in given] == answers


SQUARES = [Fraction(1, 10), Fraction(1), Fraction(30), Fraction(10**4, 3), Fraction(10**9)]


def of_32_bits(places, depth):
    """The first 32 binary places, then 64 more for each word, as numbers of 32 bits."""
    return [places >> 32 * (2 * depth - at) & 2**32 - 1 for at in range(2 * depth + 1)]


def near_blocks(times, seed):
    """Blocks, and strings of the first 32 bits and up to two words, most of them near a cumulated chance."""
    draw = random.Random(seed)
    for _ in range(times):
        blocks, depth = Blocks(draw.choice(SQUARES)), draw.randrange(3)
        at = draw.randrange(len(blocks.limits) + 1)
        near = blocks._places(at, FIRST + WORD * depth) + draw.choice([0, 0, 0, 1, -1])
        places = near if draw.randrange(5) else draw.getrandbits(FIRST + WORD * depth)
        yield blocks, places % 2 ** (FIRST + WORD * depth), depth


def found_block(blocks, places, depth):
    """The block that we find by this string; None where it needs more words."""

    def further(number):
        if number > depth:
            raise MoreWordsError
        return places >> WORD * (depth - number) & 2**WORD - 1

    try:
        return blocks.find(places >> WORD * depth, further)
    except MoreWordsError:
        return None


@deep
@pytest.mark.slow
def test_a_block_of_gaussian_noise_is_found_as_in_the_proof(program):
    given = list(near_blocks(400, 40))
    lines = []
    for blocks, places, depth in given:
        table = [blocks._places(block, FIRST + WORD * depth) for block in range(len(blocks.limits) + 2)]
        limits = ",".join(" ".join(map(str, of_32_bits(limit, depth))) for limit in table)
        lines.append(f"find;;{limits}/{' '.join(map(str, of_32_bits(places, depth)))};;")
    answers = [None if not answer else int(answer[0][1], 2) for answer in coq.answers(program, lines)]
    assert None in answers and len(set(answers)) > 20
    assert [found_block(*string) for string in given] == answers


@deep
@pytest.mark.parametrize("square", SQUARES)
def test_cumulated_chances_rise(square):
    """`rising`, which the theorem takes of them: no two agree in so many places."""
    blocks = Blocks(square)
    places = [blocks._places(block, FIRST + 2 * WORD) for block in range(len(blocks.limits))]
    assert all(low < high for low, high in pairwise(places)) and places[-1] < 2 ** (FIRST + 2 * WORD)


@deep
@pytest.mark.slow
def test_the_words_of_a_threshold_are_its_binary_places(program):
    """`words_of`, which the theorems take of a threshold: its first n words are floor(2^(64 n) p)."""
    given = [(limit, depth) for scale in SCALES for limit in thresholds(scale) for depth in (1, 2, 3)]
    lines = [f"places;;{halves(limit.word(at) for at in range(depth))};;" for limit, depth in given]
    for (limit, depth), ((_, places),) in zip(given, coq.answers(program, lines), strict=True):
        assert int(places, 2) == binary_places(limit.x, limit.odds, WORD * depth)


@deep
def test_digits_of_a_scale_are_those_of_the_law():
    """`expands`, which the theorems take of thresholds: exponents double, and the tail has no odds."""
    for scale in SCALES:
        *digits, tail = thresholds(scale)
        assert [(limit.x * scale, limit.odds) for limit in digits] == [(2**j, True) for j in range(len(digits))]
        assert (tail.x * scale, tail.odds) == (2 ** len(digits), False)
