"""Exact divergences of what ledgers answered: few cases here, `python -m attacks.fuzz --of divergences` goes on."""

from fractions import Fraction

import mpmath as mp
import pytest
from attacks.fuzz import divergences, laws
from depth import deeper, often

from wpinq.core.noise import DiscreteLaplace
from wpinq.core.noise.gaussian import DiscreteGaussian


@deeper
@pytest.mark.parametrize("first", [0, 6])
def test_nothing_loses_more_than_a_ledger_says(first):
    for seed in range(first, first + often(6)):
        assert not divergences.FUZZER.wrong(seed)


def test_divergences_are_those_of_sums_that_are_written_out():
    order, scale = Fraction(5, 2), Fraction(3)
    r, found = mp.exp(-mp.mpf(1) / 3), {}
    for k in range(-400, 401):
        found[k] = r ** abs(k)
    whole = mp.fsum(found.values())
    sums = mp.fsum(p ** mp.mpf(2.5) * found[k - 2] ** mp.mpf(-1.5) for k, p in found.items() if k - 2 in found) / whole
    assert abs(laws.laplace(2, scale, order) - mp.log(sums) / mp.mpf(1.5)) < 1e-30
    assert laws.gaussian(3, Fraction(4), Fraction(2)) <= 2 * mp.mpf(9) / 8 + mp.mpf(10) ** -40
    for noise in (DiscreteLaplace(scale), DiscreteGaussian(Fraction(4))):
        assert abs(sum(laws.losses(2, noise).values()) - 1) < 1e-9
    exact = 1 - mp.exp(mp.mpf("0.1") - mp.mpf(1) / 3)
    assert abs(laws.beyond([(1, DiscreteLaplace(scale))], 0.1) - exact / (1 + r)) < 1e-3
