"""Residuals: what is charged covers how far any unit moves all contrasts; nothing is measured but the residual."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from depth import deeper, often
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.measurements import residual
from wpinq.core.measurements.query import commit
from wpinq.core.measurements.residual import Form, contrasts, lengths, longest, quote_residual, spread
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.privacy_cost import GAUSSIAN, Payment

ONE = Secret(bytes(range(32)))
KINDS = {"page": ("a", "b", "c"), "team": ("x", "y")}
RHO = Fraction(1, 7)
UNITS = {
    "record": None,
    "six records": wpinq.users("user", at_most=6),
    "two of a page": wpinq.users("user", at_most=6, per=("page", 2)),
    "one of a page": wpinq.users("user", at_most=3, per=("page", 1)),
}


def visits(rows=(), unit=None, **more):
    promise = {"rho": 10**9, "delta": "0.5", **more}
    return wpinq.protect(list(rows), secret=ONE, version="1", unit=unit, name="visits",
                         columns={"user": str, "page": str, "team": str}, **promise)  # fmt: skip


def quoted(names=("page", "team"), kinds=KINDS, rows=(), unit=None, rho=RHO, name=None, people=None):
    margin = (people or visits(rows, unit)).map([pl.col(each) for each in names] or [pl.lit("all").alias("total")])
    paid = Payment(GAUSSIAN, rho=rho)
    return quote_residual(margin, [kinds[each] for each in names], paid, call="plan_tables", name=name)


def measured(**more):
    return commit([quoted(**more)])[0].observe()


def centred(cells):
    for axis in range(cells.ndim):
        cells = cells - cells.mean(axis=axis, keepdims=True)
    return cells


def loss(query, moves):
    """The rho of what a unit moves, by the definition: squares of moves of what is drawn with noise, over 2 sigma^2."""
    form = query._form
    rows = residual.contrasts(np.array(moves, object).reshape(form.sizes)) * form.factors
    return Fraction(sum(int(move) ** 2 for move in np.ravel(rows))) / (2 * form.noise.square)


def every_unit(unit):
    """What a person can move the six cells by: up to the bound, in as many records, here of two pages or teams."""
    most = 1 if unit is None else unit.at_most
    per = most if unit is None or unit.per is None else int(unit.per[1])
    for moves in product(range(most + 1), repeat=6):
        pages = np.array(moves).reshape(3, 2).sum(axis=1)
        if 0 < sum(moves) <= most and pages.max() <= per:
            yield moves


def check(unit):
    """No unit loses more than what is charged, and one loses nearly all of it."""
    quote = quoted(unit=UNITS[unit])
    charged = sum(cost.rho for _, charge in quote.charges for cost in charge.costs)
    assert charged == quote.rho == RHO
    return max(loss(quote.query, moves) for moves in every_unit(UNITS[unit]))


@pytest.mark.parametrize("unit", UNITS)
def test_no_unit_loses_more_than_is_charged(unit):
    """By the definition, over all that a unit can move; of records that may be all in one cell nothing is left over."""
    found = check(unit)
    assert found <= RHO
    assert found > RHO * (1 - Fraction(1, 10**5)) or "of a page" in unit


def without_the_first(sizes):
    return math.prod((Fraction(size - 1, size) for size in sizes[1:]), start=Fraction(1, 2))


def of_the_others(sizes):
    return math.prod((Fraction(max(size - 2, 1), size) for size in sizes), start=Fraction(1))


@pytest.mark.parametrize("rho", [Fraction(1, 10**9), Fraction(10**7), Fraction(10**12)])
def test_however_much_is_paid_no_less_is_charged_than_is_lost(rho):
    """Where so much is paid that the least noise there is costs less, that is charged, and it is drawn."""
    quote = quoted(rho=rho)
    charged = sum(cost.rho for _, charge in quote.charges for cost in charge.costs)
    found = max(loss(quote.query, moves) for moves in every_unit(None))
    assert charged * (1 - Fraction(1, 10**5)) < found <= charged <= rho


WRONG = {
    "a column counts as one of two values": ("alone", without_the_first),
    "a value less than there are": ("alone", of_the_others),
    "a unit in several cells": ("longest", lambda survey: Fraction(1, 2)),
    "contrasts that are too long": ("contrasts", lambda cells: 2 * contrasts(cells)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_rules_are_found(wrong, monkeypatch):
    name, other = WRONG[wrong]
    monkeypatch.setattr(residual, name, other)
    assert max(check("record"), check("six records")) > RHO


def test_factors_that_are_rounded_up_are_found(monkeypatch):
    true = Form.factors.func
    monkeypatch.setattr(Form, "factors", property(lambda form: true(form) + 2))
    assert check("record") > RHO


@given(st.lists(st.integers(2, 7), max_size=3), st.fractions("1/9", 9))
def test_contrasts_are_whole_orthogonal_and_no_longer_than_they_may_be(sizes, square):
    form = Form(tuple(tuple(map(str, range(size))) for size in sizes), square)
    cells = math.prod(sizes)
    columns = [np.ravel(contrasts(row.reshape(sizes))) for row in np.eye(cells, dtype=int).astype(object)]
    matrix = np.array(columns, object).T.reshape(-1, cells)
    assert len(matrix) == math.prod(size - 1 for size in sizes)
    gram = matrix @ matrix.T
    assert (gram == np.diag(np.ravel(lengths(sizes)))).all()
    pairs = zip(form.factors.flat, lengths(sizes).flat, strict=True)
    scaled = [int(factor) ** 2 * int(length) for factor, length in pairs]
    assert max(scaled) <= 4**form.places and min(scaled) > 4**form.places * (1 - 2.0**-18)
    for axis, size in enumerate(sizes):  # cells that are alike along a column are told by fewer columns
        rest = np.random.default_rng(size).integers(-9, 9, [*sizes[:axis], 1, *sizes[axis + 1 :]])
        assert not np.ravel(contrasts(np.repeat(rest, size, axis).astype(object))).any()


@given(st.lists(st.integers(2, 5), max_size=3), st.integers(0, 2**32))
def test_cells_come_back_from_contrasts(sizes, seed):
    cells = np.random.default_rng(seed).integers(0, 99, sizes)
    shares = np.asarray(contrasts(cells.astype(object)) / lengths(sizes), np.float64)
    np.testing.assert_allclose(spread(shares), centred(cells.astype(float)), atol=1e-9)


def test_without_noise_a_residual_is_what_is_counted():
    rows = [("ann", "a", "x"), ("bob", "a", "x"), ("eve", "c", "y"), ("dan", "?", "y")]
    counts = np.array([[2.0, 0], [0, 0], [0, 1]])
    loud = {"rows": rows, "rho": Fraction(10**8)}
    np.testing.assert_allclose(measured(**loud), centred(counts), atol=0.01)
    np.testing.assert_allclose(measured(names=("page",), **loud), centred(np.array([2.0, 0, 1])), atol=0.01)
    np.testing.assert_allclose(measured(names=(), **loud), 4, atol=0.01)


def test_an_answer_tells_nothing_of_smaller_margins():
    """As many records more in each cell of a row: neither the true residual nor its noise depends on them."""
    found = quoted().query
    for moves in ([1, 1, 0, 0, 0, 0], [0, 2, 0, 2, 0, 2]):
        assert loss(found, moves) == 0


def test_noise_is_as_wide_as_is_said_in_all_directions():
    """Of so many cells' noise a standard normal law is left; a false alarm has a chance of 1e-6."""
    kinds = {"page": tuple(map(str, range(40))), "team": tuple(map(str, range(30)))}
    query = commit([quoted(kinds=kinds)])[0]
    cells = query.observe()
    assert np.allclose(cells.sum(axis=0), 0) and np.allclose(cells.sum(axis=1), 0)
    helmert = [np.array([[*[1.0] * k, -k, *[0.0] * (n - k - 1)] for k in range(1, n)]) for n in (40, 30)]
    helmert = [rows / np.sqrt((rows**2).sum(axis=1, keepdims=True)) for rows in helmert]
    directions = (helmert[0] @ cells @ helmert[1].T).ravel() / query.stddev()
    assert len(directions) == 39 * 29 and kstest(directions, "norm").pvalue > 1e-6
    rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(len(directions),) * 2))
    assert kstest(rotation @ directions, "norm").pvalue > 1e-6


@deeper
def test_repetitions_are_independent_and_cells_err_alike():
    times = often(400, 60)
    cells = np.array([measured(name=f"repeat {number}") for number in range(times)]).reshape(times, -1)
    wide = quoted().query.stddev() * math.sqrt(2 / 3 * 1 / 2)
    assert np.sqrt((cells**2).mean()) == pytest.approx(wide, rel=4 / math.sqrt(2 * times))
    assert abs(np.corrcoef(cells[:-1, 0], cells[1:, 0])[0, 1]) < 5 / math.sqrt(times)


def test_one_record_more_has_other_noise():
    rows = [("ann", "a", "x"), ("bob", "b", "y")]
    near = measured(rows=rows) - measured(rows=[*rows, ("eve", "c", "x")])
    moved = centred(np.array([[0.0, 0], [0, 0], [1, 0]]))
    assert np.abs(near + moved).max() > 1e-3


def test_a_question_is_known_by_its_cells_in_their_order():
    """Else two questions would have the same noise for different cells, which their difference would tell."""
    other = {"page": ("b", "a", "c"), "team": ("x", "y")}
    fewer = {"page": ("a", "b"), "team": ("x", "y")}
    people = visits()
    questions = [quoted(kinds=kinds, people=people).question for kinds in (KINDS, other, fewer)]
    questions += [quoted(rho=RHO / 2, people=people).question, quoted(name="again", people=people).question]
    margin = people.map([pl.col("page"), pl.col("team")]).quote(rho=RHO, mechanism="gaussian")
    assert len({*questions, margin.question}) == 6
    assert quoted(people=people).question == questions[0]


def test_a_wider_unit_needs_no_less_noise_than_the_margin_and_no_more():
    """Where a person is known to be in many cells the squares of their moves are what counts."""
    squares = {}
    for name, unit in UNITS.items():
        survey = Survey.of(fit_noise(visits(unit=unit).map([pl.col("page"), pl.col("team")])._node))
        form = quoted(unit=unit).query._form
        squares[name] = form.square * 2 * RHO, longest(survey)
    assert squares == {"record": (Fraction(1, 3), 1), "six records": (12, 1), "two of a page": (12, 3),
                       "one of a page": (3, 3)}  # fmt: skip


def test_an_answer_is_charged_once_and_the_same_for_ever():
    people = visits([("ann", "a", "x")], rho=1)
    plan = wpinq.plan_tables(people, ["page", ("page", "team")], categories=KINDS, other=None, rho="1/2",
                             mechanism="gaussian")  # fmt: skip
    first = plan.measure()
    left = repr(people.budget)
    assert plan.measure().frame.equals(first.frame) and repr(people.budget) == left
    with pytest.raises(TypeError, match="never pickled"):
        first.measurements[("page",)].__reduce_ex__(2)
