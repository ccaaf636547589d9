"""Margins that add up: exact sums, never a larger error, and nothing that nobody knows is changed."""

from itertools import combinations, product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wpinq.postprocess import margins
from wpinq.postprocess.axes import Axis, in_order
from wpinq.postprocess.margins import consistent, cube_noise, cube_sizes


def cube(counts, sets):
    """All groups of some margins of a table, and their true counts."""
    rows, true, keys = [], [], counts.ndim
    for chosen in sets:
        number = sum((place not in chosen) << (keys - 1 - place) for place in range(keys))
        for key in product(*(range(size) if place in chosen else [None] for place, size in enumerate(counts.shape))):
            rows.append((*key, number))
            true.append(counts[tuple(slice(None) if one is None else one for one in key)].sum())
    names = [f"key {place}" for place in range(keys)]
    schema = dict.fromkeys([*names, "grouping"], pl.Int64)
    return pl.DataFrame(rows, schema=schema, orient="row"), np.asarray(true, float)


@given(st.data())
def test_the_error_is_never_larger_and_what_is_consistent_stays(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    every = [frozenset(one) for size in range(len(sizes) + 1) for one in combinations(range(len(sizes)), size)]
    sets = data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    groups, true = cube(rng.integers(0, 1000, sizes), sets)
    noisy = true + rng.laplace(0, 5, len(true))
    found = consistent(groups, noisy)
    assert ((found - true) ** 2).sum() <= ((noisy - true) ** 2).sum() * (1 + 1e-6)
    np.testing.assert_allclose(consistent(groups, true), true, atol=1e-4)
    np.testing.assert_allclose(consistent(groups, found), found, atol=1e-4)
    frame = groups.with_columns(pl.Series("found", found))
    for chosen, other in product(sets, sets):
        if chosen < other:
            names = [f"key {place}" for place in sorted(chosen)]
            lacks = [sum((place not in one) << (len(sizes) - 1 - place) for place in range(len(sizes)))
                     for one in (chosen, other)]  # fmt: skip
            total, parts = (frame.filter(pl.col("grouping") == number).sort(names or "grouping") for number in lacks)
            added = parts.group_by(names or "grouping").agg(pl.col("found").sum()).sort(names or "grouping")
            np.testing.assert_allclose(added["found"], total["found"], atol=1e-4)


def test_the_nearest_numbers_are_those_of_dense_least_squares():
    rng = np.random.default_rng(3)
    sets = [frozenset(), frozenset([0]), frozenset([1]), frozenset([0, 1])]
    groups, true = cube(rng.integers(0, 90, (3, 4)), sets)
    noisy = true + rng.laplace(0, 5, len(true))
    cells = groups.filter(pl.col("grouping") == 0).rows()
    design = np.array([[all(a in (None, b) for a, b in zip(row[:2], cell[:2], strict=True)) for cell in cells]
                       for row in groups.rows()], float)  # fmt: skip
    best = design @ np.linalg.lstsq(design, noisy, rcond=None)[0]
    np.testing.assert_allclose(consistent(groups, noisy), best, atol=1e-6)


EVERY = [frozenset(some) for size in range(3) for some in combinations(range(2), size)]


@pytest.mark.parametrize("shape", [(3, 4), (1, 2), (5, 1)])
def test_the_noise_that_is_left_of_a_cube_is_that_of_least_squares(shape):
    groups, _ = cube(np.zeros(shape), EVERY)
    assert cube_sizes(groups) == list(shape)
    left = np.array([consistent(groups, unit) for unit in np.eye(groups.height)])  # a column for each count
    expected = sorted(part for part, many in cube_noise(shape) for _ in range(many))
    for column in left.T:
        np.testing.assert_allclose(sorted(abs(column)), expected, atol=1e-9)


@pytest.mark.parametrize("without", [0, 5, 19])
def test_a_cube_without_one_group_is_not_whole(without):
    groups, _ = cube(np.zeros((3, 4)), EVERY)
    assert cube_sizes(groups.filter(pl.int_range(pl.len()) != without)) is None
    assert cube_sizes(cube(np.zeros((3, 4)), EVERY[1:])[0]) is None


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 2**32))
def test_whole_numbers_add_up_and_are_near(sizes, seed):
    cells = np.random.default_rng(seed).normal(0, 9, sizes)
    for axis in range(len(sizes)):
        cells = np.concatenate([cells, cells.sum(axis=axis, keepdims=True)], axis=axis)
    found = in_order(cells, [Axis(size, False) for size in sizes])
    for axis in range(len(sizes)):
        parts, totals = np.split(found, [-1], axis=axis)
        np.testing.assert_array_equal(parts.sum(axis=axis, keepdims=True), totals)
    for first in range(len(sizes) + 1):
        ours = (slice(None, -1),) * first + (-1,) * (len(sizes) - first)
        assert np.abs(found[ours] - cells[ours]).max() < 1 + 1e-9


def test_a_group_that_no_other_set_tells_of_stays():
    groups = pl.DataFrame({"a": ["x", "x", "x", "y"], "b": [None, 1, 2, 1], "grouping": [1, 0, 0, 0]})
    np.testing.assert_allclose(consistent(groups, np.array([12.0, 5.0, 4.0, 7.0])), [11, 6, 5, 7])


def test_a_key_that_is_null_is_a_group_like_others():
    groups = pl.DataFrame({"a": [None, "x", None], "grouping": [0, 0, 1]})
    np.testing.assert_allclose(consistent(groups, np.array([5.0, 4.0, 12.0])), [6, 5, 11])


@pytest.mark.parametrize("height", [0, 1])
def test_one_group_or_none_stays(height):
    groups = pl.DataFrame({"a": ["x"], "grouping": [0]})[:height]
    assert consistent(groups, np.full(height, 3.0)).tolist() == [3.0] * height


def tree(sizes, rng):
    """All groups of ROLLUP over nested keys, in any order, and for each level the places of the nodes above."""
    above = [np.concatenate([np.arange(before), rng.integers(0, before, size - before)])
             for before, size in zip((1, *sizes), sizes, strict=False)]  # fmt: skip
    rows = [(None,) * len(sizes)]
    last = rows
    for level, parents in enumerate(above):
        last = [(*last[parent][:level], code, *(None,) * (len(sizes) - 1 - level))
                for code, parent in enumerate(parents.tolist())]  # fmt: skip
        rows = rows + last
    numbers = [sum((code is None) << (len(sizes) - 1 - place) for place, code in enumerate(row)) for row in rows]
    schema = dict.fromkeys([*(f"key {place}" for place in range(len(sizes))), "grouping"], pl.Int64)
    return pl.DataFrame(
        [(*row, number) for row, number in zip(rows, numbers, strict=True)], schema, orient="row"
    ), above


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 2**32), st.booleans())
def test_of_a_tree_the_nearest_numbers_are_those_of_dense_least_squares(sizes, seed, alike):
    """In any order of the groups, for noise of any widths."""
    rng = np.random.default_rng(seed)
    groups, _ = tree(sorted(sizes), rng)
    groups = groups[rng.permutation(groups.height)]
    noisy = rng.normal(0, 50, groups.height).round()
    wide = np.ones(groups.height) if alike else rng.choice([0.5, 1, 7], groups.height)
    assert margins._levels(groups) is not None
    leaves = groups.filter(pl.col("grouping") == 0).rows()
    design = np.array([[all(a in (None, b) for a, b in zip(row[:-1], leaf[:-1], strict=True)) for leaf in leaves]
                       for row in groups.rows()], float)  # fmt: skip
    best = design @ np.linalg.lstsq(design / wide[:, None], noisy / wide, rcond=None)[0]
    np.testing.assert_allclose(consistent(groups, noisy, None if alike else wide), best, atol=1e-6)


def test_steps_that_lead_nowhere_any_more_are_not_made(monkeypatch):
    """Of 2,236 nodes rounding leaves more than is guessed: once, steps went on from there, and counts became 10^8."""
    rng = np.random.default_rng(2020)
    groups, above = tree((5, 30, 200, 2000), rng)
    counts = [rng.poisson(3, 2000).astype(float)]
    for level in (3, 2, 1, 0):
        counts.insert(0, np.bincount(above[level], counts[0], (1, 5, 30, 200)[level]))
    noisy = np.concatenate(counts) + rng.normal(0, 1, groups.height).round()
    exact = consistent(groups, noisy)
    monkeypatch.setattr(margins, "_levels", lambda groups: None)
    np.testing.assert_allclose(consistent(groups, noisy), exact, atol=1e-6)
    assert np.abs(exact - noisy).max() < 10


def test_groups_without_those_above_or_below_are_no_tree():
    groups, _ = tree((3, 9), np.random.default_rng(5))
    first = (pl.col("key 0") == 1) & (pl.col("grouping") == 1)
    twice = groups.filter(pl.col("grouping") == 3).with_columns(grouping=pl.lit(7, pl.Int64))
    beside, _ = cube(np.ones((2, 3)), [frozenset([0]), frozenset([1])])
    assert margins._levels(groups) is not None
    for others in (
        groups.filter(~first), groups.filter((pl.col("key 0") != 1) | first | pl.col("key 0").is_null()),
        pl.concat([groups, twice]), beside, groups.filter(pl.col("grouping") == 0),
    ):  # fmt: skip
        assert margins._levels(others) is None
