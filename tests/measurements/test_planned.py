"""Answers asked by their accuracy, and budgets split by errors: what is charged does what was wanted."""

from fractions import Fraction

import numpy as np
import pytest

import wpinq
from wpinq.errors import ExactnessError, PlanError

COLUMNS = {"user": str, "page": str, "size": float}


def views(budget=10_000, number=400):
    rows = [(f"u{one % 50}", f"p{one % 7}", float(one % 11)) for one in range(number)]
    person = wpinq.users("user", at_most=8)
    secret = wpinq.Secret(bytes(32))
    return wpinq.protect(rows, budget=budget, delta="1e-4", columns=COLUMNS, unit=person, version="1", secret=secret)


def test_a_budget_is_split_by_errors_and_sums_to_the_whole():
    people = views()
    questions = {"pages": people.map("page"), "pairs": people.join(people, on="user")}
    plan = wpinq.plan_budget(questions, epsilon=1)
    assert sum(plan.epsilons.values()) == 1
    assert np.ptp(list(plan.errors.values())) <= 2  # equal, but for whole numbers
    for name, one in questions.items():
        assert one.measure(epsilon=plan[name]).interval() == plan.errors[name]
    assert people.left == 9_999


def test_what_is_wanted_is_a_proportion():
    people = views()
    questions = {"fine": people.map("page"), "coarse": people.map("user")}
    plan = wpinq.plan_budget(questions, epsilon=2, wanted={"fine": 10, "coarse": 30})
    assert plan["fine"] == 3 * plan["coarse"]
    assert "coarse" in repr(plan)


@pytest.mark.parametrize("given", [{}, {"a": 1}])
def test_what_is_no_plan_is_refused(given):
    with pytest.raises(PlanError, match="names to collections"):
        wpinq.plan_budget(given, epsilon=1)
    people = views()
    with pytest.raises(PlanError, match="is needed for each"):
        wpinq.plan_budget({"a": people}, epsilon=1, wanted={"b": 1})
    with pytest.raises(ExactnessError):
        wpinq.plan_budget({"a": people}, epsilon=0)


def test_sql_by_its_accuracy_charges_the_least_that_does_it():
    people = views()
    query = "SELECT page, COUNT(*) AS c, COUNT(DISTINCT user) AS people FROM views GROUP BY page"
    answer = wpinq.sql(query, {"views": people}, within=40, keys=["p1", "p2"])
    halves = [(high - low) / 2 for row in answer.intervals for low, high in row[1:]]
    assert 39 <= max(halves) <= 40
    assert 10_000 - people.left == Fraction(str(answer.cost["epsilon"]))
    with pytest.raises(PlanError, match="either epsilon="):
        wpinq.sql(query, {"views": people}, within=40, epsilon=1, keys=["p1"])
    with pytest.raises(PlanError, match="speaks of counts"):
        wpinq.sql("SELECT AVG(size) FROM views", {"views": people}, within=1, bounds={"size": (0, 10)})


def test_a_degree_distribution_by_its_accuracy():
    people = views()
    fit = wpinq.degrees.release(people.map("page"), within=30)
    assert 29 <= people.map("page").measure(epsilon=8 / fit.scales[0]).interval() <= 30
    with pytest.raises(PlanError, match="takes the place of epsilon"):
        wpinq.degrees.release(people.map("page"), epsilon=1, within=30)
    with pytest.raises(PlanError, match="give epsilon="):
        wpinq.degrees.release(people.map("page"))


def test_a_mean_by_its_accuracy_is_as_near_as_it_was_asked():
    """200 answers, of which each is off by more than wanted with probability 5% at most: 25 are, with 10^-4."""
    people = views()
    truth = np.mean([one % 11 for one in range(400)])
    off = 0
    for number in range(200):
        answer = people.mean("size", (0, 10), within="0.5", records=400, name=f"run {number}")
        off += abs(answer.value - truth) > 0.5
    assert off <= 25
    assert 0.1 < answer.cost["epsilon"] < 4
    with pytest.raises(PlanError, match="records="):
        people.mean("size", (0, 10), within="0.5")
    with pytest.raises(PlanError, match="either epsilon="):
        people.mean("size", (0, 10))
