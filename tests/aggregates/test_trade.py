"""A bound that is chosen: near the best one, charged before it is computed, once for each version, and told."""

import warnings
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import wpinq
from wpinq.aggregates import bound_choice
from wpinq.aggregates.bound_choice import GRID, best_bound
from wpinq.aggregates.lengths import Lengths
from wpinq.core.engines import reference
from wpinq.core.noise.geometric import DiscreteLaplace
from wpinq.core.plan.stability import sensitivities
from wpinq.testing import distance

RNG = np.random.default_rng(6)
LENGTHS = np.ceil(RNG.pareto(3, 6000) * 20).astype(np.int64)
PEOPLE = pl.DataFrame({"user": np.repeat(np.arange(6000), LENGTHS), "page": RNG.integers(0, 200, LENGTHS.sum())})
AUTO = wpinq.users("user", at_most="auto", epsilon="0.1", bins=200)


def protect(frame=PEOPLE, budget=3, unit=AUTO, **how):
    return wpinq.protect(frame, budget=budget, unit=unit, name="people", **{"version": "1"} | how)


def unit_of(collection):
    return wpinq.Collection(collection._node)._node.source.data.unit


def expected_error(lengths, bound, price):
    """What is left out and noise, of bins that are alike, from the records themselves."""
    cut, noise = np.maximum(lengths - bound, 0).sum(), price * bound
    return cut + noise * np.exp(-cut / noise)


def cells_of(lengths):
    return np.bincount(np.searchsorted(GRID, np.minimum(lengths, GRID[-1])), minlength=len(GRID)).astype(float)


@pytest.mark.parametrize("price", [20, 200, 3000])
@pytest.mark.parametrize("shape", [0.8, 1.3, 3.0])
def test_without_noise_it_is_nearly_the_best(shape, price):
    lengths = np.minimum(np.ceil(np.random.default_rng(1).pareto(shape, 20_000) * 5), 90_000).astype(np.int64) + 1
    chosen = best_bound(cells_of(lengths), 1e-9, price)
    best = min(expected_error(lengths, bound, price) for bound in range(1, 3000))
    assert expected_error(lengths, chosen, price) <= 1.03 * best


def test_noise_alone_looks_like_nobody():
    """2,000 grids of noise: were they drawn, 1e-3 of them would show somebody, and more than 10 with 1e-5."""
    noise, rng = DiscreteLaplace(Fraction(10)), np.random.default_rng(2)
    ratio = float(np.exp(-1 / 10))
    drawn = rng.geometric(1 - ratio, (2000, len(GRID))) - rng.geometric(1 - ratio, (2000, len(GRID)))
    assert abs(drawn.std() - noise.variance() ** 0.5) < 0.2
    assert sum(best_bound(cells.astype(float), 10.0, 1.0) > 1 for cells in drawn) <= 10


def test_what_is_chosen_errs_little_more_than_the_best_bound():
    """In the median of nine draws; a step of the grid of bounds, which is 1.2, is a tenth to a fifth of the error."""
    best = min(expected_error(LENGTHS, bound, 200) for bound in range(1, 300))
    chosen = [unit_of(protect(version=str(number))).at_most for number in range(9)]
    assert np.median([expected_error(LENGTHS, bound, 200) for bound in chosen]) < 1.35 * best


def test_what_was_chosen_is_charged_told_and_the_same_again(tmp_path):
    first = protect(ledger=tmp_path / "ledger")
    unit = unit_of(first)
    assert first.budget.spent == wpinq.budget(tmp_path / "ledger").spent == pytest.approx(0.1)
    answer = first.count(1)
    assert answer.measurements[0].scale == unit.at_most
    assert f"at most {unit.at_most} records each" in repr(answer)
    assert f"{unit.at_most} was chosen with epsilon 0.1 for 200 bins at epsilon 1" in repr(answer)
    again = protect(ledger=tmp_path / "ledger")
    assert unit_of(again) == unit
    assert (again.count(1).value, again.budget.spent) == (answer.value, first.budget.spent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the question is asked of another version
        other = protect(PEOPLE.head(9000), ledger=tmp_path / "ledger", version="2")
    assert other.budget.spent == pytest.approx(1.2), "another version is another choice"
    given = protect(ledger=tmp_path / "ledger", unit=wpinq.users("user", at_most=unit.at_most))
    given.count(1)
    assert given.budget.spent == pytest.approx(2.2), "a bound that was given is another question"


def test_nothing_is_computed_before_it_is_charged(monkeypatch):
    """Where the budget is too small no record is read; where it is not, the choice has been charged by then."""
    spent = []
    monkeypatch.setattr(bound_choice, "best_bound", lambda *_: spent.append(wpinq.budget(book).spent) or 7)
    with pytest.raises(wpinq.BudgetError, match=r"bound on contributions: costs epsilon 0\.1, 0\.05 is left"):
        protect(budget="0.05")
    book = wpinq.protect(PEOPLE.head(1), budget=1)
    assert not spent
    assert unit_of(protect(budget="0.1")).at_most == 7
    assert len(spent) == 1


def test_one_person_moves_the_cells_by_one_whatever_they_have():
    heavy = pl.DataFrame({"user": [-1] * 5000, "page": [1] * 5000})
    cells = []
    for frame in (PEOPLE, pl.concat([PEOPLE, heavy])):
        records = protect(frame)._node.source
        node = Lengths(records, tuple(GRID.tolist()))
        assert sensitivities(node) == {records.data: 1 / records.data.unit.bound * records.data.unit.bound}
        counted = {(user, page): Fraction(n) for user, page, n in frame.group_by("user", "page").len().rows()}
        cells.append(reference.run(node, {records: counted}))
    assert distance(*cells) == 1


def test_where_it_can_not_be_chosen_it_is_refused():
    for how, words in (
        ({}, "give epsilon="), ({"epsilon": 1, "per": ("page", 1)}, "goes with a number"),
        ({"epsilon": 1, "shared": True}, "give either at_most="), ({"epsilon": 0}, "above zero"),
        ({"epsilon": 1, "bins": 0}, "not a whole number"), ({"epsilon": 1, "asking": -1}, "above zero"),
    ):  # fmt: skip
        with pytest.raises(wpinq.WpinqError, match=words):
            wpinq.users("user", at_most="auto", **how)
    with pytest.raises(wpinq.PlanError, match="or 'auto'"):
        wpinq.users("user", at_most="many")
    with pytest.raises(wpinq.PlanError, match="goes with at_most='auto'"):
        wpinq.users("user", at_most=3, epsilon=1)
    with pytest.raises(wpinq.PlanError, match="give a number of them"):
        wpinq.live(["user"], budget=1, unit=AUTO)


def test_tables_of_the_same_people_share_a_ledger(tmp_path):
    protect(ledger=tmp_path / "ledger")
    other = wpinq.protect(
        PEOPLE.head(50), budget=3, unit=wpinq.users("user", at_most=2), name="more", ledger=tmp_path / "ledger"
    )
    assert other.budget.spent == pytest.approx(0.1)
    nobody = wpinq.users("user", at_most="auto", epsilon=1, period=10, at="page")
    assert unit_of(protect(unit=nobody)).at_most >= 1
