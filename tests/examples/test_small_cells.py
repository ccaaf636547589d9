"""What is hidden by hand is found by each attack, exactly where it says so; the same table with noise holds."""

from __future__ import annotations

import numpy as np
import polars as pl
import processes
import pytest
from depth import deep

import wpinq
from examples import small_cells as cells

PUPILS = cells.made_up()
TRUE = cells.counted(PUPILS)
WEST = PUPILS.filter(school="West")


def answered(epsilon):
    table = wpinq.protect(PUPILS, budget=2 * epsilon, unit=wpinq.users("pupil", at_most=1), name="pupils")
    return wpinq.sql(cells.QUERY, {"pupils": table}, epsilon=epsilon, keys=cells.keys()), table


def test_the_made_up_pupils_are_those_of_the_table():
    np.testing.assert_array_equal(TRUE[:-1, :-1], cells.COUNTS)
    assert PUPILS["pupil"].n_unique() == TRUE[-1, -1] == 835


def test_subtraction_finds_half_of_the_suppressed_cells():
    hidden = cells.suppressed(TRUE)
    found = cells.subtract(hidden)
    assert (np.isnan(hidden).sum(), np.isnan(found).sum()) == (8, 4)
    np.testing.assert_array_equal(found, np.where(np.isnan(found), np.nan, TRUE))


def test_one_cell_more_withstands_subtraction_and_not_bounds():
    hidden = cells.suppressed(TRUE, also=[(1, 2)])
    np.testing.assert_array_equal(cells.subtract(hidden), hidden)
    low, high = cells.bounds(*cells.between(hidden))
    assert ((low <= TRUE) & (high >= TRUE)).all()
    known = np.argwhere(np.isnan(hidden) & (low == high)).tolist()
    assert known == [[1, 3]] and low[1, 3] == TRUE[1, 3] == 3, "two rows less two columns leave one cell"


def test_bounds_are_reached():
    """Some table has each of them: 2 by 2, of which one number is free."""
    hidden = np.array([[np.nan, np.nan, 5], [np.nan, np.nan, 7], [4, 8, 12.0]])
    low, high = cells.bounds(*cells.between(hidden))
    assert low[:2, :2].tolist() == [[0, 1], [0, 3]]
    assert high[:2, :2].tolist() == [[4, 5], [4, 7]]


def test_rounding_to_a_base_tells_a_column_by_its_total():
    low, high = cells.bounds(*cells.between(cells.rounded(TRUE), off=2))
    assert ((low <= TRUE) & (high >= TRUE)).all()
    assert (low == high)[:, 4].all() and low[:, 4].tolist() == [22, 17, 7, 2, 48]


@pytest.mark.parametrize("control", [cells.suppressed, lambda table: table])
def test_two_versions_tell_who_came(control):
    came = pl.DataFrame({"school": ["West"], "support": ["care"]})
    later = control(cells.counted(pl.concat([PUPILS.select("school", "support"), came])))
    assert cells.newcomer(control(TRUE), later) == ("West", "care")


def test_random_rounding_is_averaged_away():
    one = cells.randomly_rounded(TRUE, np.random.default_rng(2))
    assert (one % 5 == 0).all() and (abs(one - TRUE) < 5).all() and (one != TRUE).any()
    rng = np.random.default_rng(5)
    mean = cells.averaged(lambda: cells.randomly_rounded(TRUE, rng), 400)
    np.testing.assert_array_equal(mean, TRUE)  # other seeds fail by 2e-3: 30 times four deviations


def test_cell_keys_are_the_same_for_the_same_pupils_and_averaged_over_splits():
    count, care = cells.cell_keys(), pl.col("support") == "care"
    assert count(WEST) == count(WEST.reverse()) != WEST.height
    assert count(WEST.clear()) == 0
    told = [cells.split(count, part, "day") for part in (WEST, WEST.filter(~care))]
    assert told == [138, 136] and WEST.filter(care).height == 2


def test_two_bands_tell_of_one_pupil():
    helped = WEST.filter(pl.col("support") != "none")
    assert cells.differenced(cells.at_least_ten, helped, "age", 10, 11) == helped.filter(age=10).height == 1
    with pytest.raises(ValueError, match="fewer than ten"):
        cells.at_least_ten(helped.filter(age=10))
    assert cells.differenced(cells.cell_keys(), helped, "age", 10, 11) != 0, "so somebody is there"
    assert cells.differenced(cells.cell_keys(), helped, "age", 18, 19) == 0, (
        "nobody is: the same pupils, the same noise"
    )


def test_a_group_of_twelve_is_alike():
    assert cells.alike(PUPILS, 10).rows() == [("East", "H", 12, "hearing")]


def test_swapping_keeps_totals_and_most_of_the_small_cells():
    rng = np.random.default_rng(3)
    published = cells.swapped(PUPILS, 0.1, rng)
    assert (published["school"] != PUPILS["school"]).any()
    table = cells.counted(published)
    np.testing.assert_array_equal(table[-1], TRUE[-1])
    np.testing.assert_array_equal(table[:, -1], TRUE[:, -1])
    assert np.mean([cells.real(PUPILS, cells.swapped(PUPILS, 0.1, rng)) for _ in range(50)]) > 0.8


def test_with_noise_the_same_question_is_the_same_and_free_and_adds_up():
    answer, table = answered(1)
    again = wpinq.sql(cells.QUERY, {"pupils": table}, epsilon=1, keys=cells.keys())
    assert answer.frame.equals(again.frame), "nothing to average"
    wpinq.sql("SELECT COUNT(*) FROM pupils", {"pupils": table}, epsilon=1)  # what is left: one question was charged
    with pytest.raises(wpinq.BudgetError):
        wpinq.sql("SELECT COUNT(*) FROM pupils WHERE age < 10", {"pupils": table}, epsilon="0.01")
    noisy = answer.frame["pupils"].to_numpy().reshape(TRUE.shape)
    assert abs(noisy - TRUE).max() < 100, "scale 4: exp(-25) each"
    added = answer.consistent().frame["pupils"].to_numpy().reshape(TRUE.shape)
    np.testing.assert_allclose(added[:-1].sum(axis=0), added[-1])
    np.testing.assert_allclose(added[:, :-1].sum(axis=1), added[:, -1])
    assert ((added - TRUE) ** 2).sum() <= ((noisy - TRUE) ** 2).sum() * (1 + 1e-9)


def test_with_noise_subtraction_finds_noise():
    found = []
    for _ in range(12):
        noisy = answered(2)[0].frame["pupils"].to_numpy().reshape(TRUE.shape)
        found.append(noisy[3, 5] - noisy[3, :4].sum())
    assert found.count(TRUE[3, 4]) < 8, "each is the truth with a chance of 0.07, eight of twelve with 2e-7"


def test_keys_are_all_cells_and_totals_in_the_order_of_the_table():
    exact, _ = answered(1000)
    np.testing.assert_array_equal(exact.frame["pupils"].to_numpy().reshape(TRUE.shape), TRUE)


@deep
def test_the_story_is_told():
    story = processes.printed("-W", "error", "-m", "examples.small_cells", fresh=True)
    for said in ("4 of 8 cells by subtraction", "East sight: 3 to 3", "400 times: 0 of 30 numbers are not known"):
        assert said in story
    assert story.count("; truth ") == 30
