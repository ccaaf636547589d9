"""Controlled rounding: sums that are exact, each number next to what it was, the total of all the nearest."""

import numpy as np
import pytest
from depth import thin
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from wpinq.postprocess.margins import added_up, whole
from wpinq.postprocess.rounding import controlled


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
        check(values, whole(values))


def test_whole_rows_and_columns_stay_where_they_are():
    """Rounded one row after another, columns of halves would be off by two."""
    values = with_totals(np.tile([[0.5, 0.25, 0.25]], (4, 1)))
    rounded = controlled(values)
    assert rounded[-1].tolist() == [2, 1, 1, 4]
    assert rounded[:, -1].tolist() == [1, 1, 1, 1, 4]


def test_what_does_not_add_up_is_no_table():
    with pytest.raises(RuntimeError, match="none was there"):
        controlled(np.array([[0.0, 1.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]]))
