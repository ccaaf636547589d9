"""Controlled rounding: sums that are exact, each number next to what it was where that can be, public ones kept."""

import numpy as np
import pytest
from depth import thin
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from wpinq.postprocess.axes import Axis, exactly, in_order, rounded
from wpinq.postprocess.margins import added_up
from wpinq.postprocess.rounding import controlled
from wpinq.postprocess.rounding_search import too_far


def with_totals(cells):
    return added_up(added_up(cells, 0, measured=False), 1, measured=False)


def check(values, rounded):
    assert (rounded[:-1].sum(axis=0) == rounded[-1]).all()
    assert (rounded[:, :-1].sum(axis=1) == rounded[:, -1]).all()
    assert (np.abs(rounded - values) < 1 + 1e-6).all()
    assert abs(rounded[-1, -1] - values[-1, -1]) <= 0.5 + 1e-6
    near = np.abs(values - np.round(values)) < 1e-7
    assert (rounded[near] == np.round(values[near])).all()


SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 5))


@given(SHAPES.flatmap(lambda shape: arrays(float, shape, elements=st.integers(-12, 12).map(lambda k: k / 4))))
def test_every_table_has_a_rounding_of_quarters(cells):
    check(with_totals(cells), controlled(with_totals(cells)))


@thin(2)
@pytest.mark.parametrize("shape", [(1, 9), (30, 40), (200, 3), (120, 150)])
@pytest.mark.parametrize("spread", [0.01, 3, 1e6])
def test_every_table_has_a_rounding_of_any_numbers(shape, spread):
    for seed in range(3):
        values = with_totals(np.random.default_rng(seed).normal(0, spread, shape))
        check(values, rounded(values, [flat(size) for size in shape]))


def test_whole_rows_and_columns_stay_where_they_are():
    """Rounded one row after another, columns of halves would be off by two."""
    values = with_totals(np.tile([[0.5, 0.25, 0.25]], (4, 1)))
    rounded = controlled(values)
    assert rounded[-1].tolist() == [2, 1, 1, 4]
    assert rounded[:, -1].tolist() == [1, 1, 1, 1, 4]


def test_what_does_not_add_up_is_no_table():
    with pytest.raises(RuntimeError, match="none was there"):
        controlled(np.array([[0.0, 1.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]]))


def tree(rng, nodes):
    """A hierarchy: the node above each, of which each is later, and the last is the total."""
    parents = tuple(int(rng.integers(node + 1, nodes)) for node in range(nodes - 1))
    return Axis(len(set(range(nodes)) - set(parents)), False, parents)


def flat(size):
    return Axis(size, False)


def summed(cells, axes):
    for place, axis in enumerate(axes):
        cells = axis.summed(cells, place)
    return cells


def add_up(table, axes):
    cells = table[np.ix_(*(axis.leaves for axis in axes))]
    return (summed(cells.astype(float), axes) == table).all()


@pytest.mark.parametrize("spread", [1 / 4, None])
@given(st.integers(0, 2**32), st.integers(2, 14), st.integers(1, 6), st.booleans())
def test_a_hierarchy_beside_a_column_has_a_rounding_in_all_directions(spread, seed, nodes, width, turned):
    rng = np.random.default_rng(seed)
    axes = [tree(rng, nodes), flat(width)]
    axes = axes[::-1] if turned else axes
    shape = [axis.size for axis in axes]
    values = summed(rng.normal(0, 3, shape) if spread is None else rng.integers(-12, 13, shape) * spread, axes)
    found = rounded(values, axes)
    assert exactly(axes) and add_up(found, axes)
    assert (np.abs(found - values) < 1 + 1e-6).all() and abs(found[-1, -1] - values[-1, -1]) <= 0.5 + 1e-6
    near = np.abs(values - np.round(values)) < 1e-7
    assert (found[near] == np.round(values[near])).all()


def test_rounding_a_hierarchy_row_by_row_is_not_enough():
    """Two rows of whole totals: were columns rounded first, up, up, down, down, both rows would be off by one."""
    axes = [Axis(2, False, (2, 2)), flat(4)]
    values = summed(np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]]), axes)
    assert too_far(rounded(values, axes), values).max() == 0
    wrong = summed(np.array([[1.0, 1, 0, 0], [0, 0, 0, 0]]), axes)
    assert too_far(wrong, values).any()


LATTICES = {
    "three columns": lambda rng: [flat(4), flat(6), flat(3)], "pairs": lambda rng: [flat(2)] * 4,
    "two hierarchies": lambda rng: [tree(rng, 14), tree(rng, 9)],
    "a hierarchy and two columns": lambda rng: [flat(3), tree(rng, 12), flat(2)],
}  # fmt: skip


@pytest.mark.parametrize("name", LATTICES)
def test_more_directions_are_whole_in_all_of_them_where_a_search_finds_it(name):
    """Of fifteen tables each; along columns in their order alone some totals of nearly all are too far."""
    before = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        axes = LATTICES[name](rng)
        values = summed(rng.normal(0, 9, [axis.size for axis in axes]), axes)
        found = rounded(values, axes)
        assert not exactly(axes) and add_up(found, axes) and not too_far(found, values).any()
        assert (found == rounded(values, axes)).all()
        before += too_far(in_order(values, axes), values).any()
    assert before > 5


NONE = ["000", "001", "010", "011", "100", "102", "111", "112", "120", "121", "201", "202", "210", "212", "220", "221"]
"""Cells of halves, two in each line or none, so that one of each pair goes up: around an odd cycle none can."""


def test_where_there_is_no_rounding_cells_are_next_to_what_they_were_and_few_totals_are_not():
    halves = np.zeros((3, 3, 3))
    for cell in NONE:
        halves[tuple(map(int, cell))] = 1 / 2
    axes = [flat(3)] * 3
    values = summed(halves, axes)
    found = rounded(values, axes)
    far = too_far(found, values)
    assert add_up(found, axes) and not far[:-1, :-1, :-1].any()
    assert 0 < np.count_nonzero(far) <= 4 and far.max() == 1


@thin(3)
@pytest.mark.parametrize("seed", [34, 6, 8])
def test_public_numbers_that_are_reached_in_order_stay_however_long_is_sought(seed):
    """All whole numbers of a table of halves that are reached so. Where none is public, the search gives some up."""
    axes = [flat(2)] * 4
    values = summed(np.random.default_rng(seed).integers(0, 9, (2, 2, 2, 2)) / 2, axes)
    kept = [
        place for place in np.ndindex(values.shape)
        if values[place] == np.round(values[place]) and (2 not in place or set(place[place.index(2) :]) == {2})
    ]  # fmt: skip
    found, free = rounded(values, axes, kept), rounded(values, axes)
    assert all(found[place] == values[place] for place in kept) and add_up(found, axes)
    assert any(free[place] != values[place] for place in kept)
