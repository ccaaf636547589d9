"""What runs compiled against the same in plain Python: the same results, bit for bit, and the same random numbers."""

from __future__ import annotations

from fractions import Fraction

import edge_swaps
import numpy as np
import pair_swaps
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st

from wpinq.core import kernels
from wpinq.core.kernels import loops
from wpinq.errors import PlanError
from wpinq.postprocess.degrees import path, reconcile
from wpinq.postprocess.degrees.posterior import curves as posterior
from wpinq.postprocess.degrees.posterior import marginals as chain
from wpinq.postprocess.degrees.synthesis import gale_ryser, sampler

pytestmark = pytest.mark.skipif(kernels.LIB is None, reason="there are no compiled kernels")
SEEDS = st.integers(0, 2**32 - 1)
SCALES = st.sampled_from([(1, 1), (10, 10), (1, 3), (3, 1), (7, 10), (1, 50)])


def same(compute):
    """The answer of both ways, which must be one: arrays by their bytes, errors by their text."""
    answers = []
    for library in (kernels.LIB, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "LIB", library)
            try:
                found = compute()
            except PlanError as refused:
                found = (str(refused),)
        answers.append([(one.dtype, one.tobytes()) if isinstance(one, np.ndarray) else one for one in found])
    assert answers[0] == answers[1]
    return answers[0]


def noisy(seed, real, contradicting):
    """Two curves of a heavy tail with noise; `real` values are none whole, and contradicting ones are of two truths."""
    rng = np.random.default_rng(seed)
    columns, rows = (int(n) for n in rng.integers(1, 150, 2))
    truth = np.sort(rng.geometric(rng.uniform(0.02, 0.5), columns))[::-1].clip(0, rows)
    other = np.sort(rng.geometric(0.05, columns))[::-1].clip(0, rows) if contradicting else truth
    v, h = truth + rng.integers(-9, 10, columns), path.conjugate(other, rows) + rng.integers(-9, 10, rows)
    return (v + rng.normal(size=columns), h + rng.normal(size=rows)) if real else (v, h)


@settings(deadline=None, max_examples=often(60))
@given(SEEDS, st.booleans(), st.booleans(), SCALES, st.booleans())
def test_paths(seed, real, contradicting, scales, narrowed):
    v, h = noisy(seed, real, contradicting)
    pair = Fraction(scales[0]), Fraction(scales[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path, "MANY_CELLS", -1 if narrowed else 10**9)
        patch.setattr(path, "BLOCK", 4)
        same(lambda: (path.shortest_path(v, h, pair), reconcile.squares_path(v, h, pair)))
        weighing = 1 if v.dtype == np.int64 else 1 << 16, *path.weights((min(pair), max(pair)), 14)
        same(lambda: path.corridor(*path.as_units(v, h)[:2], weighing))


@settings(deadline=None, max_examples=often(30))
@given(SEEDS, st.booleans(), st.booleans(), SCALES, st.booleans())
def test_posteriors(seed, real, contradicting, scales, long):
    v, h = noisy(seed, real, contradicting)
    pair = Fraction(scales[0]), Fraction(scales[1])

    def look():
        found = posterior.Posterior(v, h, pair)
        columns = found.chain.marginals(found._ends)
        return *found._band, found.chain.tails, found.chain.masses, columns.gone, columns.chances

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(posterior, "SHORT", 0 if long else 10**9)
        assert len(same(look)) == 6


@settings(deadline=None, max_examples=often(60))
@given(SEEDS, st.sampled_from([1.0, 0.5, 1e-3]), st.sampled_from([1.0, 30.0, 3000.0]))
def test_chains_of_any_weights(seed, step, spread):
    """Bands and weights that no curves gave: also such as underflow, and endings that cannot be."""
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(1, 40))
    lo, hi = (np.sort(rng.integers(0, 60, columns))[::-1].astype(np.int64) for _ in range(2))
    band = np.minimum(lo, hi), np.maximum(lo, hi)
    own = spread * rng.normal(size=int(chain.begins(band)[-1]))
    ends = np.where(rng.random(columns + 1) < 0.3, chain.NEVER, spread * rng.normal(size=columns + 1))
    ends[-1] = 0.0

    def look():
        found = chain.Chain.of(own.copy(), band, step=step)
        return found.tails, found.masses, found.marginals(ends).chances

    assert len(same(look)) == 3


@settings(deadline=None, max_examples=often(60))
@given(SEEDS, st.floats(0.02, 1))
def test_graphs_and_the_generator_afterwards(seed, density):
    rng = np.random.default_rng(seed)
    matrix = rng.random((int(rng.integers(1, 40)), int(rng.integers(1, 40)))) < density * rng.random()
    matrix[0, 0] = True
    users, pages = (-np.sort(-sums[sums > 0]) for sums in (matrix.sum(axis=1), matrix.sum(axis=0)))

    def draw():
        draws = np.random.default_rng(seed)
        user, page = sampler.sample(users, pages, draws)
        return user, page, draws.random(), *gale_ryser.construct(users, pages)

    same(draw)


@pytest.mark.parametrize("source", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_every_generator_is_followed(source):
    degrees = np.array([30] + [3] * 40)

    def draw():
        draws = np.random.Generator(source(5))
        return *sampler.sample(degrees, degrees, draws), draws.random()

    same(draw)


@settings(deadline=None, max_examples=often(60))
@given(SEEDS, st.integers(0, 60), st.integers(1, 3))
def test_swapping_gives_up_at_the_same_place(seed, budget, moves):
    """Lists full of repeats, and too few looks at other edges to take them all apart."""
    rng = np.random.default_rng(seed)
    sizes = -np.sort(-rng.integers(1, 12, 20))
    starts, items = np.append(0, np.cumsum(sizes)), rng.integers(0, 15, sizes.sum()).astype(np.int32)
    sampler.arrange(starts, items)

    def swapped():
        mine, draws = items.copy(), np.random.default_rng(seed)
        return sampler.untangle(starts, mine, draws, budget, moves), mine, draws.random()

    same(swapped)


def test_sorting_and_counting_repeats():
    rng = np.random.default_rng(6)
    starts = np.append(0, np.cumsum([1, 5, 0, 1_000, 40, 2]))
    items = rng.integers(0, 50, starts[-1]).astype(np.int32)

    def arranged():
        mine = items.copy()
        return sampler.arrange(starts, mine), mine

    same(arranged)


@pytest.mark.parametrize("given", [np.zeros(3, np.int32), np.zeros(6, np.int64)[::2], np.zeros(3)], ids=str)
def test_arrays_of_another_kind_are_refused_rather_than_misread(given):
    with pytest.raises(TypeError, match="contiguous array of int64"):
        path.lower((given, np.zeros(3, np.int64)), 1, np.zeros(3, np.int64))


def test_each_loop_stands_twice():
    modules = [path, reconcile, chain, pair_swaps, posterior, gale_ryser, sampler, edge_swaps]
    for name in loops.LOOPS:
        assert any(hasattr(module, name) for module in modules), name
        assert hasattr(kernels.LIB, f"wpinq_{name}")
