"""Answers asked by their accuracy, and budgets split by errors: what is charged does what was wanted."""

import json
from fractions import Fraction

import numpy as np
import pytest
from depth import deep

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


def test_a_question_of_two_tables_of_a_ledger_costs_no_more_than_is_planned(tmp_path):
    """A person in both loses the sum: a join of 1/5 cost 6/25, and all together more than the whole."""
    words = {"columns": ["user", "page"], "ledger": tmp_path / "ledger"}
    one = wpinq.protect([("u", "a")], 10, unit=wpinq.users("user", at_most=5), name="one", **words)
    two = wpinq.protect([("u", "b")], unit=wpinq.users("user", at_most=1), name="two", **words)
    questions = {"pages": one.map("page"), "pairs": one.join(two, on="user").map("page")}
    plan = wpinq.plan_budget(questions, epsilon=1, wanted={"pages": 2, "pairs": 1})
    halves = [one.measure(epsilon=plan[name]).interval() for name, one in questions.items()]
    assert wpinq.budget(tmp_path / "ledger").spent == 1
    assert halves == list(plan.errors.values()) and abs(halves[0] / halves[1] - 2) < 0.2


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
    with pytest.raises(PlanError, match="speaks of counts and ranks"):
        wpinq.sql("SELECT AVG(size) FROM views", {"views": people}, within=1, bounds={"size": (0, 10)})


def test_a_degree_distribution_by_its_accuracy():
    people = views()
    fit = wpinq.degrees.release(people.map("page"), within=30)
    assert 29 <= people.map("page").measure(epsilon=8 / fit.scales[0]).interval() <= 30
    with pytest.raises(PlanError, match="give either epsilon="):
        wpinq.degrees.release(people.map("page"), epsilon=1, within=30)
    with pytest.raises(ExactnessError, match="give either epsilon="):
        wpinq.degrees.release(people.map("page"))


@deep
def test_a_mean_by_its_accuracy_is_as_near_as_it_was_asked():
    """Each of 200 answers is off by too much with probability 5% at most: more than 25 are, with 10^-4."""
    people = views()
    truth = np.mean([one % 11 for one in range(400)])
    off, many = 0, 200
    for number in range(many):
        answer = people.mean("size", (0, 10), within="0.5", records=400, name=f"run {number}")
        off += abs(answer.value - truth) > 0.5
    assert off <= 25
    assert 0.1 < answer.cost["epsilon"] < 4
    with pytest.raises(PlanError, match="records="):
        people.mean("size", (0, 10), within="0.5")
    with pytest.raises(ExactnessError, match="either epsilon="):
        people.mean("size", (0, 10))


RANKS = {
    "median": lambda people, **cost: people.median("size", (0, 1000), **cost),
    "quantile": lambda people, **cost: people.quantile("size", "0.9", (0, 1000), **cost),
    "min": lambda people, **cost: people.min("size", (0, 1000), **cost),
    "max": lambda people, **cost: people.max("size", (0, 1000), **cost),
}
SHARE = {"median": 0.5, "quantile": 0.9, "min": 0, "max": 1}


@pytest.mark.parametrize("which", RANKS)
def test_a_rank_by_its_accuracy_is_off_by_no_more_records(which):
    """40 answers, of which each is off by more with probability 5% at most: 13 are, with 10^-7."""
    sizes = np.random.default_rng(4).permutation(np.arange(1, 901))
    people = wpinq.protect([(int(size),) for size in sizes], budget=10**6, columns={"size": int})
    answers = [RANKS[which](people, within=40, name=str(run)) for run in range(40)]
    off = [abs(answer.value - 900 * SHARE[which]) for answer in answers]
    if which in ("min", "max"):  # beyond the last record there is none, however far it is
        off = [max(0, (900 - answer.value) if which == "max" else answer.value - 1) for answer in answers]
    assert sum(one > 40 for one in off) < 13
    epsilon = answers[0].measurements[0].epsilon
    assert 10**6 - people.left == 40 * epsilon
    assert RANKS[which](people, epsilon=epsilon, name="0").value == answers[0].value
    assert RANKS[which](people, within=80).measurements[0].epsilon <= epsilon / Fraction("1.9")


def test_ranks_in_sql_by_their_accuracy_and_what_is_refused():
    people = wpinq.protect([(size, "a") for size in range(900)], budget=10**6, columns={"size": int, "page": str})
    query = "SELECT page, MEDIAN(size) AS middle, MAX(size) AS most, COUNT(*) AS c FROM t GROUP BY page"
    answer = wpinq.sql(query, {"t": people}, within=40, keys=["a"], bounds={"size": (0, 1000)})
    alone = [RANKS[which](people, within=40, name="alone").measurements[0].epsilon for which in ("median", "max")]
    assert [one.epsilon for one in answer.measurements[1:]] == [max(alone)] * 2, "one epsilon for all ranks"
    assert max(alone) > answer.measurements[0].epsilon, "which for a count is less"
    before = people.left
    for within in (0, -1, "0.5", 10**60):
        with pytest.raises((PlanError, ExactnessError), match=r"median\(within"):
            RANKS["median"](people, within=within)
    with pytest.raises(ExactnessError, match=r"median\(\): give either epsilon=.*or within="):
        RANKS["median"](people)
    with pytest.raises(PlanError, match=r"median\(epsilon=, within=\)"):
        RANKS["median"](people, within=40, epsilon=1)
    assert people.left == before


def test_what_ledger_and_answers_say_is_what_there_is():
    """A `top` without counts has no intervals, no step is told in the words of a library, nor how buckets are held."""
    columns = {"page": str, "n": int, "c": str}
    people = wpinq.protect([("a", 1, "x"), ("b", 2, "y")], budget=10**6, columns=columns)
    names = people.top("page", 1, epsilon=5, keys=["a", "b"])
    assert "Intervals" not in repr(names)
    assert names.about["intervals are of"] is None
    assert "Intervals" in repr(people.top("page", 1, epsilon=5, keys=["a", "b"], counts=1))
    wpinq.degrees.release(people.map(lambda page, c: (page, c)), by=("c",), nodes=["x", "y"], epsilon=5)
    wpinq.degrees.release(people.map("page"), epsilon=5)
    cells = people.histogram("n", [0, 1, 5], epsilon=5)
    people.histogram("n", [0, 1, 5], epsilon=5, by="c", keys=["x"])
    assert cells.about["query"] == "histogram(n)"
    with people._node.data.ledger.transaction() as session:
        rows = [json.loads(row.body) for row in session._pages.rows(None)]
    said = {row["label"] for row in rows if row["kind"] == "charge"}
    assert said >= {
        "map(page).map(corner of degrees)",
        "map(page, c).map(corner of degrees by c)",
        "top(page, 1)",
        "histogram(n)",
        "histogram(n) by c",
    }
    assert not [label for label in said if "polars" in label or "cell" in label]
