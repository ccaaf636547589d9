"""A choice by a score of one's own: the definition, how far one unit moves it, its rate, what is refused."""

import random
from fractions import Fraction

import polars as pl
import pytest
from depth import deeper, often
from strategies import evaluate, run_flow, same

import wpinq
from wpinq.aggregates import scoring
from wpinq.aggregates.heavy_hitters import Peeled
from wpinq.aggregates.scoring import Scores
from wpinq.core.pricing.sensitivity import ledger_sensitivities
from wpinq.errors import PlanError

COLUMNS = {"user": str, "n": int}
UNITS = {"record": wpinq.Unit(), "person": wpinq.users("user", at_most=3), "shared": wpinq.users("user", shared=True)}
SCORES = {
    "python": lambda n, candidate: None if n == 2 else -abs((n or 0) - candidate),
    "sql": "CASE WHEN n > candidate THEN 5 ELSE n - candidate END",
    "polars": (pl.col("n") - pl.col("candidate")).abs() * 0.5,
    "odd": lambda n, candidate: float("nan") if n == 1 else float("inf") if n == 3 else 10**9 * (candidate - 1),
}
CANDIDATES = [0, 1, 4]


def plan(rows, unit, score, sensitivity=2):
    """The plan of a choice."""
    views = wpinq.protect(rows, 10**9, columns=COLUMNS, unit=UNITS[unit], version="1")
    asked = views.select_by(SCORES[score], CANDIDATES, 1, sensitivity=sensitivity).measurements[0]
    assert isinstance(asked, Peeled)
    return views, asked


def drawn(draw):
    return [(draw.choice(["p", "q", "r", None]), draw.choice([0, 1, 2, 3, 9, None])) for _ in range(draw.randrange(9))]


@pytest.mark.parametrize("score", SCORES)
def test_engine_and_definition_agree(score):
    rows = [(one, n) for one in ("p", "q", None) for n in (0, 1, 2, 3, 9, -4, None)] * 2
    views, asked = plan(rows, "record", score)
    assert same(run_flow(views._then(asked.node), 2), asked.node, evaluate(views._then(asked.node), rows))


def violation(draw, unit, score):
    """Two neighbours that differ by more than is claimed; None where they do not."""
    views, asked = plan([], unit, score)
    ((l1, linf, _),) = ledger_sensitivities(asked.node).values()
    rows = drawn(draw)
    own = [rows[-1]] if unit == "record" and rows else [row for row in rows if row[0] == "p"]
    less = list(rows)
    for row in own:
        less.remove(row)
    made = views._then(asked.node)
    found = evaluate(made, rows), evaluate(made, less)
    moved = [abs(Fraction(found[0].get(key, 0)) - found[1].get(key, 0)) for key in {**found[0], **found[1]}]
    fine = asked.node.resolution
    return rows if sum(moved) * fine > l1 or max(moved, default=0) * fine > linf else None


@deeper
@pytest.mark.parametrize("unit", UNITS)
def test_one_unit_moves_no_further_than_is_claimed(unit):
    draw = random.Random(1)
    for _ in range(often(20)):
        assert violation(draw, unit, draw.choice(sorted(SCORES))) is None


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_steps", lambda self, value: (value.cast(pl.Float64) / float(self.reach) * 1000).floor().cast(pl.Int64)),
        ("slices", {scoring.PLACE: Fraction(1, 2)}),
        ("stability", (Fraction(1),)),
    ],
)
def test_wrong_rules_are_found(monkeypatch, name, wrong):
    """No clamp; a candidate that is taken to move by half; all candidates together by one."""
    monkeypatch.setattr(Scores, name, wrong)
    draw = random.Random(2)
    assert any(violation(draw, "record", "sql") for _ in range(200))


def test_the_rate_is_that_of_twice_the_bound_whatever_candidates_there_are():
    for unit, most in (("record", 1), ("person", 3), ("shared", 1)):
        _, asked = plan([], unit, "sql")
        fine = asked.node.resolution
        assert asked._chooser.rate == Fraction(1, 2 * most * fine)
    views = wpinq.protect([], 9, columns=COLUMNS)
    many = views.select_by("n - candidate", list(range(500)), 1).measurements[0]
    assert many._chooser.rate == Fraction(1, 2 * many.node.resolution)


def test_a_median_and_a_favourite():
    ages = wpinq.protect([("u", n) for n in range(101)], 10**9, columns=COLUMNS)
    assert ages.select_by(lambda n, candidate: -abs(n - candidate), [10, 50, 90], 10**4, sensitivity=100).value == 50
    assert ages.select_by(
        "CASE WHEN n > 90 AND candidate = 'late' THEN 1 ELSE 0 END", ["late", "early"], 10**4
    ).value == ("late")
    assert ages.select_by("n * candidate", [0.5, 2], 10**4, sensitivity=1000).value == 2
    spent = ages.budget.spent
    ages.select_by("n * candidate", [0.5, 2], 10**4, sensitivity=1000)
    assert ages.budget.spent == spent, "the same question"
    ages.select_by("n * candidate", [0.5, 2], 10**4, sensitivity=999)
    assert ages.budget.spent == spent + 10**4


@pytest.mark.parametrize(
    ("candidates", "score", "why"),
    [
        ([], "n", "a list of 1 to 1,000"),
        ("ab", "n", "a list of 1 to 1,000"),
        ([1, "a"], "n", "all of one kind"),
        ([None], "n", "all of one kind"),
        (list(range(1001)), "n", "a list of 1 to 1,000"),
        ([1], "user", "gives a number"),
        ([1], lambda other: 1, "takes 1 argument"),
    ],
)
def test_what_does_not_fit_is_refused(candidates, score, why):
    views = wpinq.protect([], 1, columns=COLUMNS)
    with pytest.raises(PlanError, match=why):
        views.select_by(score, candidates, 1)
    with pytest.raises(PlanError, match="there is a column 'candidate'"):
        views.map("user", columns=["candidate"]).select_by("1", [1], 1)
    assert views.budget.spent == 0
