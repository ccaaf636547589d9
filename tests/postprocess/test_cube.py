"""Measured margins: variances, least squares and noise are those of dense matrices, and shares the best there are."""

from itertools import product

import numpy as np
import pytest
from depth import deep, deeper, often
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from wpinq.postprocess.cube import Cube, half_width
from wpinq.postprocess.shares import AIMS, Workload, best, planned


def queries(cube, margin):
    """The matrix of a margin over the cells of the whole table."""
    columns, whole = cube.columns(margin), list(product(*map(range, cube.sizes)))
    rows = product(*map(range, cube.shape(margin)))
    return np.array([[all(cell[column] == value for column, value in zip(columns, row, strict=True)) for cell in whole]
                     for row in rows], float)  # fmt: skip


@st.composite
def measured(draw):
    """A cube and weights of some margins, of which at least one is not zero."""
    cube = Cube(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    some = st.sampled_from([0.0, 0.0, 0.3, 1.0, 7.0])
    many = 2 ** len(cube.sizes)
    weights = draw(st.lists(some, min_size=many, max_size=many).filter(any))
    return cube, np.array(weights)


@given(measured(), st.integers(0, 2**32))
def test_variances_and_least_squares_are_those_of_dense_matrices(case, seed):
    cube, weights = case
    margins = [int(number) for number in np.flatnonzero(weights)]
    design = {margin: queries(cube, margin) for margin in range(len(weights))}
    gram = sum(weights[margin] * design[margin].T @ design[margin] for margin in margins)
    inverse, rng = np.linalg.pinv(gram, hermitian=True), np.random.default_rng(seed)
    cells = {margin: rng.normal(size=cube.shape(margin)) for margin in margins}
    projected = sum(weights[margin] * design[margin].T @ cells[margin].ravel() for margin in margins)
    known = [int(margin) for margin in cube.below(margins)]
    result = cube.least_squares(cells, weights, known)
    variances = cube.variances(cube.information(weights))
    for margin in range(len(weights)):
        if margin in known:
            dense = design[margin] @ inverse
            np.testing.assert_allclose(variances[margin], np.diag(dense @ design[margin].T), atol=1e-8)
            np.testing.assert_allclose(result[margin].ravel(), dense @ projected, atol=1e-8)
        elif np.linalg.matrix_rank(np.vstack([gram, design[margin]])) > np.linalg.matrix_rank(gram):
            assert np.isinf(variances[margin])


@given(measured(), st.data())
def test_a_cell_takes_of_each_noise_what_least_squares_give_it(case, data):
    cube, weights = case
    margins = [int(number) for number in np.flatnonzero(weights)]
    margin = data.draw(st.sampled_from(cube.below(margins)))
    total = 0.0
    for number, factors, many in cube.noise(weights, margin):
        taken = []
        for cell in np.ndindex(cube.shape(number)):
            cells = {other: np.zeros(cube.shape(other)) for other in margins}
            cells[number][cell] = 1
            taken.append(cube.least_squares(cells, weights, [margin])[margin].flat[0])
        expected = np.repeat(factors, many.astype(int))
        np.testing.assert_allclose(np.sort(taken), np.sort(expected), atol=1e-9)
        total += float(many @ factors**2) / weights[number]
    np.testing.assert_allclose(total, cube.variances(cube.information(weights))[margin], rtol=1e-9)


def test_half_widths_of_sums_of_laplace_noise_are_those_that_are_drawn():
    rng = np.random.default_rng(8)
    for scales, many in (([3.0], [1]), ([1.0, 20.0], [400, 1]), ([5.0, 1.0, 0.2], [2, 3, 4]), ([2.0], [30])):
        drawn = sum(scale * rng.laplace(size=(200_000, count)).sum(axis=1)
                    for scale, count in zip(scales, many, strict=True) if count < 100)  # fmt: skip
        drawn = drawn + (rng.normal(size=200_000) * np.sqrt(800) * scales[0] if many[0] > 100 else 0)
        for level in (0.5, 0.95, 0.99):
            found = half_width(np.array(scales), np.array(many, float), level)
            assert found == pytest.approx(np.quantile(np.abs(drawn), level), rel=0.02)


@given(st.data())
def test_gaussian_shares_are_the_best_that_a_general_optimizer_finds(data):
    """SciPy's, over all margins, with the dense inverse; 0.02% of the sum of variances is left to either."""
    sizes = data.draw(st.lists(st.integers(2, 5), min_size=1, max_size=3))
    cube = Cube(sizes)
    many = 2 ** len(sizes)
    wanted = data.draw(st.lists(st.sampled_from([0, 0, 1, 3]), min_size=many, max_size=many).filter(any))
    workload = Workload(cube, np.array(wanted, float), np.ones(many, bool), gaussian=True)
    shares = best(workload)
    assert shares.sum() == pytest.approx(1) and (shares >= 0).all()

    def error(point):
        return workload.error(np.exp(point) / np.exp(point).sum())

    starts = np.zeros(many), np.log(shares + 1e-5)
    other = min(minimize(error, start, method="L-BFGS-B", bounds=[(-12, 12)] * many).fun for start in starts)
    assert workload.error(shares) <= other * (1 + 2e-3)
    assert workload.error(shares) >= workload.of_residuals(alone(cube))[0] * (1 - 1e-9)
    variances = cube.variances(cube.information(shares))
    cells = sum(weight * cube.cells[margin] * variances[margin] for margin, weight in enumerate(wanted) if weight)
    assert workload.error(shares) == pytest.approx(cells)


@pytest.mark.parametrize("sizes", [[2, 2, 2], [3, 10, 2], [2] * 6, [12, 5]])
@deeper
def test_laplace_shares_are_no_worse_than_splits_that_people_think_of(sizes):
    cube = Cube(sizes)
    rng, many = np.random.default_rng(len(sizes)), 2 ** len(sizes)
    for _ in range(often(20, 3)):
        wanted = (rng.random(many) < 0.4) * 1.0
        wanted[rng.integers(many)] = 1
        workload = Workload(cube, wanted, np.ones(many, bool), gaussian=False)
        error = workload.error(best(workload))
        equal = wanted / wanted.sum()
        whole = np.eye(many)[-1]
        assert error <= min(workload.error(equal), workload.error(whole)) * (1 + 2e-3)
        for _ in range(30):
            random = rng.exponential(size=many) ** rng.integers(1, 8)
            assert error <= workload.error(random / random.sum()) * (1 + 2e-3)


def alone(cube):
    """The variance of a residual's noise in parts of that of its margin, where a unit is a record."""
    return cube.dimensions / cube.cells


def bought(cube, shares, prices):
    """The variance of each margin's cells by these shares of residuals."""
    shares = np.where(prices > 0, shares, 0)
    return cube.variances(cube.repeats * np.divide(shares, prices, out=np.zeros_like(shares), where=prices > 0))


def test_residuals_err_as_by_hand():
    """Of six columns of n = 10 values each: (6 (n - 1) / sqrt n + sqrt(6 / n))^2, and margins 1.76% more."""
    cube = Cube([10] * 6)
    ways = np.array([margin.bit_count() for margin in range(64)])
    workload = Workload(cube, (ways == 1) * 1.0, np.ones(64, bool), gaussian=True)
    by_hand = (6 * 9 / 10**0.5 + (6 / 10) ** 0.5) ** 2
    total, shares = workload.of_residuals(alone(cube))
    assert total == pytest.approx(by_hand) == pytest.approx(60 * bought(cube, shares, alone(cube))[1])
    assert (workload.error(best(workload)) / by_hand) ** 0.5 == pytest.approx(1.0176, abs=1e-3)


@pytest.mark.parametrize("sizes", [[50, 100, 7, 4, 2], [10] * 6, [2] * 9])
@pytest.mark.parametrize("ways", [[1], [2], [3], [0, 1, 2, 3]])
def test_the_largest_variance_is_the_least_that_there_is(sizes, ways):
    """No split has a mean of variances below the best one for it, and no largest variance is below the mean."""
    cube = Cube(sizes)
    wanted = np.array([margin for margin in range(len(cube.cells)) if margin.bit_count() in ways])
    prices, allowed = alone(cube), np.ones(len(cube.cells), bool)
    shares, residuals = planned(cube, wanted, allowed, (prices, allowed * 1.0), aim="max")
    variances = bought(cube, shares, prices)[wanted]
    importance = np.zeros(len(cube.cells))
    assert residuals

    def mean(logs):
        importance[wanted] = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum() / cube.cells[wanted]
        return -Workload(cube, importance, allowed, gaussian=True).of_residuals(prices)[0]

    bound = -minimize(mean, np.zeros(len(wanted)), method="L-BFGS-B", bounds=[(-20, 20)] * len(wanted)).fun
    assert bound * (1 - 1e-6) <= variances.max() <= bound * (1 + 1e-3)


def rng_of(data):
    return np.random.default_rng(data.draw(st.integers(0, 2**32)))


def errors_of(cube, wanted, prices, shares, residuals):
    """The error by each aim of shares."""
    if residuals:
        variances = bought(cube, shares, prices[0])
    else:
        variances = cube.variances(cube.information(shares**2 if prices is None else shares / prices[1]))
    cells = cube.cells[wanted] * variances[wanted]
    return {"cells": cells.sum(), "tables": variances[wanted].sum(), "max": variances[wanted].max()}


def best_and_drawn(cube, wanted, prices, rng):
    """By each aim its best error, and the least of other aims and of what is drawn."""
    many = len(cube.cells)
    best_of = {aim: errors_of(cube, wanted, prices, *planned(cube, wanted, np.ones(many, bool), prices, aim=aim))
               for aim in AIMS}  # fmt: skip
    drawn = [errors_of(cube, wanted, prices, shares / shares.sum(), prices is not None and number % 2 == 0)
             for number, shares in enumerate(rng.exponential(size=(40, many)) ** 3)]  # fmt: skip
    return [(best_of[aim][aim], min(other[aim] for other in [*best_of.values(), *drawn])) for aim in AIMS]


@given(st.data())
def test_each_aim_is_best_by_itself(data):
    """Also where a person is known to be in many cells of some margins, whose noise is narrower then."""
    cube = Cube(data.draw(st.lists(st.integers(2, 5), min_size=1, max_size=3)))
    many = len(cube.cells)
    wanted = np.array(data.draw(st.lists(st.integers(0, many - 1), min_size=1, unique=True)))
    widths = rng_of(data).choice([1, 1, 1 / 2, 1 / 9], many) if data.draw(st.booleans()) else np.ones(many)
    for found, other in best_and_drawn(cube, wanted, (np.minimum(widths, alone(cube)), widths), rng_of(data)):
        assert found <= other * (1 + 2e-3)


@deeper
def test_with_laplace_noise_each_aim_is_near_to_the_best_by_itself():
    """Nothing is proved of them, so these are always the same."""
    rng = np.random.default_rng(77)
    for _ in range(often(100, 8)):
        cube = Cube(rng.integers(2, 6, rng.integers(1, 4)).tolist())
        wanted = np.unique(rng.integers(0, len(cube.cells), rng.integers(1, len(cube.cells) + 1)))
        for found, other in best_and_drawn(cube, wanted, None, rng):
            assert found <= other * 1.01


def test_margins_that_may_not_be_measured_are_not():
    cube = Cube([3, 4, 5])
    for gaussian in (True, False):
        workload = Workload(cube, np.eye(8)[3], cube.cells <= 20, gaussian=gaussian)
        assert set(np.flatnonzero(best(workload))) <= {0, 1, 2, 3, 4, 5, 6}


@deep
def test_fifteen_columns_and_thousands_of_tables_take_seconds():
    import time

    cube = Cube([2, 3, 4] * 4 + [6, 7, 9])
    ways = np.array([margin.bit_count() for margin in range(2**15)])
    start = time.process_time()
    shares = best(Workload(cube, (ways <= 4) * 1.0, cube.cells < 1e6, gaussian=True))
    assert time.process_time() - start < 20 and (shares > 0).sum() > 1
