"""Attacks on what parallel parts cost: parts, windows and pairs that are disjoint only where nothing moves between.

Every test computes the true loss from the histograms of two neighbouring runs and compares it with the ledger.
"""

import random
from decimal import Decimal
from fractions import Fraction

import pytest
from depth import deep, deeper, often

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.sums import cost
from wpinq.core.plan.node import sources
from wpinq.core.plan.stability import Survey
from wpinq.core.runs.key_recovery import present

TINY = Fraction(1, 10**40)


def ledger_of(collection):
    return sources(collection._node)[0].ledger


@pytest.mark.parametrize(
    ("column", "record", "alike"),
    [
        (float, 0.1, [Fraction(1, 10) + TINY, Decimal("0.1"), 0.1]),
        (float, 2.0**53, [2**53 + 1, 2**53]),
        (float, 0.0, [-0.0, TINY**20, 0]),
        (int, 1, [True, 1.0, Decimal("1.0")]),
        (None, 1, [True, 1.0, Decimal("1.0")]),
    ],
)
def test_parts_that_a_column_holds_as_one_value_are_one_part(column, record, alike):
    """400 numbers that are one double were 400 parts: 400 answers about one record for the price of one."""
    source = wpinq.protect([(record,)], budget=1000, columns={"x": column} if column else ("x",))
    with pytest.raises(wpinq.PlanError, match="stands twice"):
        source.partition("x", alike)
    for one in alike:
        found = source.partition("x", [one])[one].measure(60)
        assert found.observe(record) == 1
    assert ledger_of(source).spent()[0] == 60, "asked for one by one they are one part too, and one question"


def test_numbers_that_differ_as_stored_stay_parts_of_their_own():
    source = wpinq.protect([(0.1,), (0.2,)], budget=60, columns={"x": float})
    parts = source.partition("x", [Decimal("0.1"), 0.2])
    assert [part.measure(60).observe(float(x)) for x, part in parts.items()] == [1, 1]
    assert ledger_of(source).spent()[0] == 60


PEOPLE = {
    "people": lambda part: part.map("user").distinct(),
    "people by records": lambda part: part.group_by("user", len, whole=True, columns={"n": int}).map("n"),
    "records": lambda part: part.map("page"),
    "two each": lambda part: part.limit("user", 2).map("page"),
    "halves": lambda part: part.group_by("user", len, columns={"n": int}).map("n"),
    "people of a day": lambda part: part.partition("day", range(3))[1].map("user").distinct(),
    "without a key": lambda part: part.map("page").distinct(),
}


def drawn_measurements(records, seed, unit):
    """Questions on the parts of two partitions, drawn alike for all records: what each was, and what all cost."""
    draw = random.Random(seed)
    columns = {"user": str, "page": int, "day": int}
    views = wpinq.protect(records, budget=10**6, unit=unit, columns=columns, secret=Secret(bytes(range(32))))
    measured = []
    for _ in range(draw.randint(1, 12)):
        early = draw.choice([False, False, True])  # only then made, and each time anew: equal parts are the same ones
        parts = (views.filter(lambda day: day < 2) if early else views).partition("page", range(4))
        part, question = parts[draw.randrange(4)], PEOPLE[draw.choice([*PEOPLE])]
        if draw.random() < 0.2:
            part = part.concat(parts[draw.randrange(4)])
        measured.append(question(part).measure(draw.choice([1, 2]), name=str(len(measured))))
    return measured, ledger_of(views).spent()[0]


def lost(without, having):
    """The exact loss of all answers together: of each how far its bins moved, over the scale of its noise."""
    total = Fraction(0)
    for ours, theirs in zip(without, having, strict=True):
        one, other = exact(ours), exact(theirs)
        total += sum((abs(one.get(x, 0) - other.get(x, 0)) for x in one | other), Fraction(0)) / ours.scale
    return total


def exact(measurement):
    histogram, _ = measurement._settled()
    return {
        tuple(name): Fraction(int(weight), measurement.node.resolution)
        for _, ids, weights in present(histogram, measurement.node)
        for name, weight in zip(ids.tolist(), weights.tolist(), strict=True)
    }


def losses(cases, unit):
    """What a person loses in parts of what was charged, case by case."""
    for seed in range(cases):
        draw = random.Random(seed)
        others = [(f"u{draw.randrange(3)}", draw.randrange(4), draw.randrange(3)) for _ in range(draw.randrange(8))]
        pages = draw.choice([range(4), range(1)])
        ann = [("ann", draw.choice(pages), draw.randrange(3)) for _ in range(4)]
        if draw.random() < 0.5:
            ann = [("ann", page, draw.randrange(3)) for page in range(4)]
        (without, paid), (having, again) = (
            drawn_measurements(records, seed, unit) for records in (others, others + ann)
        )
        assert paid == again, "a price does not depend on records"
        yield lost(without, having) / paid


@deeper
def test_a_person_in_many_parts_loses_no_more_than_is_charged():
    """Noise follows from what a person moves of one part; parts add up until the whole bound is paid."""
    assert Fraction(1, 4) < max(losses(often(120, 10), wpinq.users("user", at_most=4))) <= 1
    assert Fraction(1, 4) < max(losses(often(60, 6), wpinq.users("user", at_most=4, per=("page", 1)))) <= 1


@deep
@pytest.mark.parametrize("plant", ["the largest alone", "no more than once", "the smallest"])
def test_wrong_prices_of_parts_are_found(plant, monkeypatch):
    right = cost.so_many_largest
    if plant == "the largest alone":  # as if a person were in one part only
        monkeypatch.setattr(cost, "so_many_largest", lambda losses, times: right(losses, Fraction(1)))
    if plant == "no more than once":
        monkeypatch.setattr(Survey, "times", lambda survey, data: Fraction(1))
    if plant == "the smallest":
        monkeypatch.setattr(cost, "so_many_largest", lambda losses, times: right(losses, times) / 2)
    assert any(loss > 1 for loss in losses(80, wpinq.users("user", at_most=4)))


def test_of_parts_of_people_so_many_are_charged_as_a_person_can_be_in():
    views = wpinq.protect(
        [("a", 1)], budget=100, unit=wpinq.users("user", at_most=3), columns={"user": str, "page": int}
    )
    parts = views.partition("page", range(8))
    spent = []
    for part in parts.values():
        counted = part.map("user").distinct().measure(epsilon=1)
        assert counted.scale == 1
        spent.append(ledger_of(views).spent()[0])
    assert spent == [1, 2, 3, 3, 3, 3, 3, 3]
    parts[2].map("user").distinct().measure(epsilon=1, name="again")
    assert ledger_of(views).spent()[0] == 4, "one question costs its epsilon at the most"
    assert "of the parts of the group 3 are charged, the costliest" in parts[0].map("user").distinct().explain(
        epsilon=1
    )


def test_people_without_a_bound_are_counted_part_by_part():
    views = wpinq.protect([("a", 1)], budget=100, unit=wpinq.users("user"), columns={"user": str, "page": int})
    for part in views.partition("page", range(8)).values():
        assert part.map("user").distinct().measure(epsilon=1).scale == 1
    assert ledger_of(views).spent()[0] == 8
    with pytest.raises(wpinq.PlanError, match="nothing bounds"):
        views.partition("page", [1])[1].measure(epsilon=1)
    with pytest.raises(wpinq.PlanError, match="nothing bounds"):
        parts = views.partition("page", [1, 2])
        parts[1].concat(parts[2]).map("user").distinct().measure(epsilon=1)
