"""Exact statistics of the noise, held against decimal's exp and scipy's dlaplace."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from wpinq.core.noise import DiscreteLaplace, GridLaplace, Words, mechanism
from wpinq.errors import PlanError

scales = st.fractions(min_value=Fraction(1, 1000), max_value=2**57)
levels = st.fractions(min_value=Fraction(1, 10**30), max_value=1 - Fraction(1, 10**30))


def beyond(t: int, scale: Fraction) -> Decimal:
    """P(|N| > t), in decimal, to 200 places or more."""
    rate = Decimal(scale.denominator) / Decimal(scale.numerator)
    return 2 * (-rate * (t + 1)).exp() / (1 + (-rate).exp())


@settings(deadline=None, max_examples=often(300))
@given(scales, levels)
def test_half_width_is_the_least(scale: Fraction, level: Fraction) -> None:
    t = DiscreteLaplace(scale).half_width(level)
    assert isinstance(t, int)
    with localcontext(Context(prec=200)):
        share = Decimal((1 - level).numerator) / Decimal((1 - level).denominator)
        assert beyond(t, scale) <= share
        assert t == 0 or beyond(t - 1, scale) > share


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(12345, 67)], ids=str)
def test_half_width_at_the_edge(scale: Fraction) -> None:
    """At a level a hair below P(|N| <= t) the answer is t, a hair above it is t + 1; a float would not see it."""
    with localcontext(Context(prec=200)):
        for t in (0, 1, 2, 17, 100):
            edge = Fraction(1 - beyond(t, scale))
            hair = Fraction(1, 10**150)
            assert DiscreteLaplace(scale).half_width(edge - hair) == t
            assert DiscreteLaplace(scale).half_width(edge + hair) == t + 1


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(10**4)], ids=str)
def test_half_width_covers_what_is_drawn(scale: Fraction) -> None:
    """10^6 draws: the share within is the exact chance, which is at least the level. |z| < 5, 6e-7."""
    identities = np.stack([np.arange(10**6, dtype=np.uint64)] * 2, axis=1)
    noise = np.abs(DiscreteLaplace(scale).draw(Words(b"coverage" * 4), identities))
    for level in (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)):
        t = DiscreteLaplace(scale).half_width(level)
        chance = 1 - 2 * stats.dlaplace(float(1 / scale)).sf(t)
        assert chance >= level
        assert abs((noise <= t).mean() - chance) < 5 * np.sqrt(chance * (1 - chance) / 10**6)


@pytest.mark.parametrize("level", [Fraction(0), Fraction(1), Fraction(-1, 2), Fraction(3, 2)])
@pytest.mark.parametrize("name", ["geometric", "laplace"])
def test_levels_that_mean_nothing_are_refused(name: str, level: Fraction) -> None:
    with pytest.raises(PlanError, match=r"between 0 and 1"):
        mechanism(name, Fraction(10)).half_width(level)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(10**4)], ids=str)
def test_variance(scale: Fraction) -> None:
    assert DiscreteLaplace(scale).variance() == pytest.approx(stats.dlaplace(float(1 / scale)).var(), rel=1e-9)
    grid = GridLaplace(scale).grid
    assert GridLaplace(scale).variance() / grid**2 == pytest.approx(2 * float(scale) ** 2, rel=1e-9)


def test_variance_at_the_ends() -> None:
    assert DiscreteLaplace(Fraction(1, 1000)).variance() == 0.0  # 2 exp(-1000) is below every float
    assert DiscreteLaplace(Fraction(2**57)).variance() == pytest.approx(2.0**115, rel=1e-12)


def test_grid_laplace_half_width_is_in_steps() -> None:
    """P(|N| <= t) = 1 - exp(-t / scale) in the limit: 0.95 at ln 20 scales."""
    law = GridLaplace(Fraction(10))
    assert law.half_width(Fraction(19, 20)) / law.grid == pytest.approx(10 * np.log(20), abs=2 / law.grid)
    assert law.half_width(Fraction(19, 20)) == DiscreteLaplace(Fraction(10 * 2**20)).half_width(Fraction(19, 20))
