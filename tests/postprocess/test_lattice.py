"""Margins that add up: exact sums, never a larger error, and nothing that nobody knows is changed."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wpinq.errors import PlanError
from wpinq.postprocess.lattice import Cell, consistent


def cube(sizes: list[int], sets: list[frozenset[int]], counts: np.ndarray) -> tuple[list[Cell], np.ndarray]:
    """All cells of some margins of a table, and their true counts."""
    cells, true = [], []
    for chosen in sets:
        for key in product(*(range(size) if place in chosen else [None] for place, size in enumerate(sizes))):
            cells.append((chosen, key))
            true.append(counts[tuple(slice(None) if one is None else one for one in key)].sum())
    return cells, np.asarray(true, float)


@given(st.data())
def test_the_error_is_never_larger_and_what_is_consistent_stays(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    every = [frozenset(one) for size in range(len(sizes) + 1) for one in combinations(range(len(sizes)), size)]
    sets = data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    cells, true = cube(sizes, sets, rng.integers(0, 1000, sizes))
    variances = rng.uniform(0.5, 20, len(cells))
    noisy = true + rng.laplace(0, 1, len(cells)) * np.sqrt(variances / 2)
    found = consistent(cells, noisy, variances)
    assert ((found - true) ** 2 / variances).sum() <= ((noisy - true) ** 2 / variances).sum() * (1 + 1e-6)
    np.testing.assert_allclose(consistent(cells, true, variances), true, atol=1e-4)
    for chosen in sets:
        for other in sets:
            if chosen < other:
                for (_, key), total in ((c, f) for c, f in zip(cells, found, strict=True) if c[0] == chosen):
                    parts = [
                        value
                        for (one, below), value in zip(cells, found, strict=True)
                        if one == other and all(below[place] == key[place] for place in chosen)
                    ]
                    assert sum(parts) == pytest.approx(total, abs=1e-4)


def test_a_cell_that_no_other_set_tells_of_stays() -> None:
    ab, a = frozenset([0, 1]), frozenset([0])
    cells: list[Cell] = [(a, ("x", None)), (ab, ("x", 1)), (ab, ("x", 2)), (ab, ("y", 1))]
    found = consistent(cells, np.array([12.0, 5.0, 4.0, 7.0]), np.ones(4))
    np.testing.assert_allclose(found, [11, 6, 5, 7])


def test_odd_arguments_are_refused() -> None:
    cell: Cell = (frozenset(), (None,))
    for cells, variance in (([cell, cell], [1.0, 1.0]), ([cell], [0.0]), ([cell], [1.0, 1.0])):
        with pytest.raises(PlanError):
            consistent(cells, np.zeros(len(cells)), np.array(variance))
