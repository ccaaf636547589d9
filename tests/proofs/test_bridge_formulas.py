"""Formulas that the proofs are about are the ones that are computed: thresholds, counting trees, ledgers, roundings."""

import random
from fractions import Fraction
from itertools import pairwise

import coq
import numpy as np
import pytest
from depth import deep

from wpinq.core.ledger.sums.cost import Total
from wpinq.core.noise import counting_tree, threshold
from wpinq.core.operators.resolution import rounded


@deep
@pytest.mark.slow
def test_the_threshold_looks_at_the_ways_of_the_proof(program):
    given = [(l1, linf) for l1 in range(1, 30) for linf in range(1, l1 + 1)] + [(10**6, 10**6), (10**6, 999), (77, 76)]
    lines = [f"ways;{linf} {l1};;;" for l1, linf in given]
    for sensitivities, answer in zip(given, coq.answers(program, lines), strict=True):
        found = [[], [], []]
        for of, bins in answer:
            way, units = map(int, of.split("."))
            found[way].append((units, int(bins, 2)))
        assert found == threshold.ways(*sensitivities)


@deep
@pytest.mark.slow
def test_the_nodes_of_an_epoch_are_those_of_the_proof(program):
    trees = [counting_tree.segment(number) for number in (*range(6), 9, 12)]
    for tree in trees:  # what the theorems take for granted
        *below, last = tree.sizes
        assert below[0] == 1
        assert all(larger % size == 0 for size, larger in pairwise(below))
        assert last == tree.length >= max(below)
        assert sum(tree.shares) == 1
        assert min(tree.shares) > 0
    given = [(tree, epochs) for tree in trees for epochs in range(1, tree.length + 1, 1 + tree.length // 200)]
    lines = [f"parts;{tree.length} {epochs};{' '.join(map(str, tree.sizes))};;" for tree, epochs in given]
    for (tree, epochs), answer in zip(given, coq.answers(program, lines), strict=True):
        found = [(*map(int, of.split(".")), int(sign, 2)) for of, sign in answer]
        assert found == [(level, place, sign) for _, level, place, sign in tree.parts(epochs)]


@deep
@pytest.mark.slow
def test_the_book_of_a_ledger_is_that_of_the_proof(program):
    draw = random.Random(47)
    given = [
        [(draw.randint(0, 9), [draw.randint(0, 2) for _ in range(2 * draw.randint(0, 3))]) for _ in range(20)]
        for _ in range(100)
    ]
    lines = [f"book;;{','.join(' '.join(map(str, [growth, *path])) for growth, path in costs)};;" for costs in given]
    for costs, answer in zip(given, coq.answers(program, lines), strict=True):
        total, amounts = Total(), []
        for growth, path in costs:
            total.add(tuple(batched(map(str, path))), Fraction(growth))
            amounts.append(total.amount)
        assert [int(amount, 2) for _, amount in answer] == amounts


def batched(names):
    """Names, two by two."""
    names = iter(names)
    return zip(names, names, strict=True)


@deep
@pytest.mark.slow
def test_dithered_rounding_is_that_of_the_proof(program):
    draw = random.Random(40)
    size = [1, 7, 1000, 2**40, 2**60]
    given = [(draw.randint(-most, most), draw.randint(1, draw.choice(size))) for most in size for _ in range(100)]
    coins = [draw.choice([0, 2**64 - 1, 2**63, draw.getrandbits(64)]) for _ in given]
    lines = [f"rounded;{n} {of} {coin >> 32} {coin & 2**32 - 1};;;" for (n, of), coin in zip(given, coins, strict=True)]
    found = [int(weight, 2) for ((_, weight),) in coq.answers(program, lines)]
    numerators, denominators = (np.array(column, object) for column in zip(*given, strict=True))
    assert found == rounded(numerators, denominators, np.array(coins, object)).tolist()
