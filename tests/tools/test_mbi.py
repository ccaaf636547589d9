"""Marginals for mbi: every declared cell, in mbi's order, with the deviation of its noise; run by .ci/tools."""

import warnings

import numpy as np
import polars as pl
import pytest

import wpinq

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    mbi = pytest.importorskip("mbi", reason="mbi is not installed; .ci/tools tries it")

from examples import planned_tables as survey
from wpinq.tools.mbi import domain, marginal, marginals, table

VALUES = {"sex": ["f", "m"], "age": range(3), "town": ["north", "south"]}
TRUTH = np.array([[[40, 10], [30, 0], [20, 0]], [[0, 5], [0, 15], [0, 80]]])


@pytest.fixture
def people():
    rows = [
        (sex, age, town) for i, sex in enumerate(VALUES["sex"]) for age in VALUES["age"]
        for j, town in enumerate(VALUES["town"]) for _ in range(TRUTH[i, age, j])
    ]  # fmt: skip
    return wpinq.protect([*rows, ("x", 1, "north")], budget=10**6, columns={"sex": str, "age": int, "town": str})


def test_all_cells_are_there_in_the_order_of_mbi(people):
    found = marginal(people.map(pl.col("age", "sex")).measure(epsilon=50), VALUES)
    assert found.clique == ("age", "sex") and found.noisy_measurement.tolist() == TRUTH.sum(axis=2).T.ravel().tolist()
    seen = mbi.Dataset({"sex": np.array([1]), "age": np.array([2]), "town": np.array([0])}, domain(VALUES))
    assert found.query(seen.project(found.clique)).tolist() == [0, 0, 0, 0, 0, 1]
    assert table(seen).rows() == [("m", 2, "north")]


def test_what_was_bought_for_planned_tables_is_all_that_mbi_takes(people):
    kinds = {"sex": ["f", "m"], "age": [0, 1, 2], "town": ["north", "south"]}
    plan = wpinq.plan_tables(people, ["age", ("sex", "town"), ()], categories=kinds, epsilon=100, other=None)
    tables = plan.measure()
    found = marginals(tables)
    assert [one.clique for one in found] == list(plan.shares)
    for one in found:
        axes = tuple(axis for axis, name in enumerate(kinds) if name not in one.clique)
        assert one.noisy_measurement.tolist() == pytest.approx(TRUTH.sum(axis=axes).ravel().tolist(), abs=2)
        assert one.stddev == tables.measurements[one.clique].stddev()


def test_residuals_are_what_mbi_makes_of_a_marginal():
    """Of the true marginal its query has the residual that was measured, but for noise of five deviations."""
    kinds = {"sex": ["f", "m"], "age": ["0", "1", "2"]}
    columns = np.repeat(np.indices((2, 3)).reshape(2, -1), TRUTH.sum(axis=2).ravel(), axis=1)
    rows = [(kinds["sex"][i], kinds["age"][j]) for i, j in columns.T]
    records = wpinq.protect(rows, rho=10**6, columns={"sex": str, "age": str})
    plan = wpinq.plan_tables(records, ["age", ("sex", "age")], categories=kinds, rho=100, other=None,
                             mechanism="gaussian")  # fmt: skip
    seen = mbi.Dataset(dict(zip(kinds, columns, strict=True)), domain(kinds))
    found = marginals(plan.measure())
    assert plan.residual and {one.clique for one in found} == {(), ("sex",), ("age",), ("age", "sex")}
    for one in found:
        told = np.asarray(one.query(seen.project(one.clique)))
        assert np.abs(told - one.noisy_measurement).max() < 5 * one.stddev
    model = mbi.estimation.MirrorDescent().estimate(domain(kinds), found)
    assert model.project(["sex", "age"]).datavector().tolist() == pytest.approx(TRUTH.sum(axis=2).ravel(), abs=2)


def test_a_file_drawn_from_planned_tables_is_near_to_the_truth():
    records = survey.made_up(1000)
    drawn = survey.synthetic(survey.planned(records).measure())
    assert drawn.columns == list(survey.KINDS) and survey.distance(records, drawn) < 0.2


def test_the_block_of_the_page_draws_a_table(people, block):
    names = {"people": people, "pl": pl, "values": VALUES, "wpinq": wpinq}
    exec(block("mbi"), names)
    assert names["drawn"].columns == list(VALUES)


def test_a_fit_is_a_linear_measurement_of_a_column_of_degrees():
    """At epsilon 50 the noise is zero but for a chance of exp(-50); of 7 items 4 have more than the corner's side."""
    rows = [(user, f"page {page}") for page, many in enumerate([9, 7, 5, 5, 4, 2, 1]) for user in range(many)]
    pages = wpinq.protect(rows, budget=50, columns={"user": int, "page": str}).map("page")
    fit = wpinq.degrees.release(pages, epsilon=50)
    found = fit.to_mbi("views")
    assert (found.clique, found.noisy_measurement.tolist()) == (("views",), [7, 6, 5, 5])
    assert found.stddev == pytest.approx(2**0.5 / 50)
    degrees = mbi.Domain(["views"], [4])
    seen = mbi.Dataset({"views": np.array([0, 1, 3, 3, 3, 3, 3])}, degrees)
    assert found.query(seen.project(["views"])).tolist() == [7, 6, 5, 5]
    model = mbi.estimation.MirrorDescent().estimate(degrees, [found], known_total=fit.distinct, iters=500)
    assert model.project(["views"]).datavector().tolist() == pytest.approx([1, 1, 0, 5], abs=0.1)


def test_two_whole_curves_give_their_cdf_with_its_own_noise():
    fit = wpinq.degrees.reconcile([3.5, 1.25], [2.0, 1.0, 1.0], scales=(3, 1))
    found = fit.to_mbi()
    assert found.noisy_measurement.tolist() == [3.5, 1.25] and found.stddev == pytest.approx(3 * 2**0.5)


@pytest.mark.parametrize("mechanism", ["geometric", "laplace", "gaussian"])
def test_the_deviation_is_that_of_the_noise(mechanism):
    """Over 4,000 absent bins; a right one is refused with a probability below 1e-6 (six standard errors)."""
    budget = {"rho": 10} if mechanism == "gaussian" else {"budget": 10}
    cost = {"rho": "1/8"} if mechanism == "gaussian" else {"epsilon": "1/2"}
    made = wpinq.protect([(1,)], columns={"n": int}, **budget).measure(**cost, mechanism=mechanism)
    found = marginal(made, {"n": range(10, 4010)})
    spread = np.sqrt(np.mean(np.square(found.noisy_measurement)))
    assert found.stddev == made.stddev() and abs(spread / found.stddev - 1) < 6 * np.sqrt(5 / 4 / 4000)


def test_what_mbi_draws_agrees_with_the_marginals(people):
    pairs = [("sex", "age"), ("age", "town"), ("sex", "town")]
    measured = [marginal(people.map(pl.col(*pair)).measure(epsilon=50), VALUES) for pair in pairs]
    model = mbi.estimation.MirrorDescent().estimate(domain(VALUES), measured, iters=500)
    drawn = table(model.synthetic_data())
    assert drawn.columns == list(VALUES) and abs(drawn.height - TRUTH.sum()) <= 2
    counted = drawn.group_by("sex", "town").len().rows()
    truth = {
        (sex, town): TRUTH[i, :, j].sum()
        for i, sex in enumerate(VALUES["sex"])
        for j, town in enumerate(VALUES["town"])
    }
    assert all(abs(many - truth[sex, town]) <= 5 for sex, town, many in counted)


def test_what_is_not_declared_is_refused(people):
    made = people.map("sex").measure(epsilon=1)
    with pytest.raises(wpinq.PlanError, match="no values for sex"):
        marginal(made, {"age": [1]})
    with pytest.raises(wpinq.PlanError, match="more than"):
        marginal(made, {"sex": range((1 << 24) + 1)})
    with pytest.raises(wpinq.BinError):
        marginal(made, {"sex": [1]})
