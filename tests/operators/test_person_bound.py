"""How far one person moves a plan, in all tables of a ledger together: what is claimed, held against the definitions.

Kinds: figures that are said a second time; random plans over one table, two tables of one ledger and two ledgers, with
and without all records of one person (many, equal, without a value), bin by bin and all together; wrong rules, each of
which the search finds. Found, while it was built: a union with another ledger's table, whose records named the person.
"""

import random
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import polars as pl
import pytest
from algebra import BINARY, PAIR, SLACK, UNARY, WHOLE
from depth import deeper, often, thin
from strategies import evaluate

import wpinq
from wpinq.core.functions.traced import columnar
from wpinq.core.operators.concat import Sum
from wpinq.core.operators.group_by import GroupBy
from wpinq.core.operators.join import Join
from wpinq.core.operators.join_rows import JoinRows, LeftRows
from wpinq.core.operators.resolution import DITHER_STABILITY, fit_noise
from wpinq.core.operators.semijoin import Fill
from wpinq.core.plan import person_bound
from wpinq.core.plan.node import Node, steps
from wpinq.core.plan.person_bound import mover
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.sensitivity import ledger_sensitivities
from wpinq.errors import PlanError
from wpinq.testing.evaluation import leaves

WHOM = 7
"""The person who comes and goes."""
TWENTY = wpinq.users("a", at_most=20)
KEYED = {
    "key alone": lambda c: c.map(lambda a, b: (a, 0)),
    "value alone": lambda c: c.map(lambda a, b: (0, b)),
    "distinct key": lambda c: c.map("a").distinct().map(lambda a: (a, 1)),
    "having": lambda c: c.group_by("a", len, whole=True).filter(lambda a, value: value > 1),
    "people by size": lambda c: c.group_by("a", len, whole=True).map(lambda a, value: (0, value)),
    "smallest": lambda c: c.group_by("a", lambda group: min(b or 0 for _, b in group), {"b": int}, whole=True),
    "one of each": lambda c: c.limit("a"),
    "limit by value": lambda c: c.limit("b"),
    "limit by both": lambda c: c.limit(["b", "a"]),
    "two sets of keys": lambda c: c.map(lambda a, b: (1, b)).concat(c.map(lambda a, b: (2, b))),
    "one set twice": lambda c: c.map(lambda a, b: (1, b)).concat(c.map(lambda a, b: (1, b))),
    "whole by both": lambda c: c.group_by(["b", "a"], len, whole=True).map(lambda a, b, value: (a, b)),
}
MEETING = {
    "join_rows on the key": lambda c, d: c.join_rows(d, on="a", result=lambda a, b_2: (a, b_2)),
    "left join on the key": lambda c, d: c.join_rows(d, on="a", how="left").map(lambda a, b_2: (a, b_2 or 0)),
    "left join, their key": lambda c, d: c.join_rows(d, on="a", how="left").map(lambda a_2, b: (a_2 or 0, b)),
    "join on the key": lambda c, d: c.join(d, on="a", result=lambda a, b_2: (a, b_2)),
    "key meets value": lambda c, d: c.join_rows(d.limit("b"), left="a", right="b", result=lambda a, b: (a, b)),
    "whom another has": lambda c, d: c.semijoin(d.map("a").distinct(), on="a"),
    "whom another lacks": lambda c, d: c.antijoin(d.map("a").distinct(), on="a"),
}
LIKELY = tuple(sorted(KEYED))
STEPS = {name: (1, step) for name, step in {**UNARY, **WHOLE, **KEYED}.items()}
STEPS |= {name: (2, step) for name, step in {**BINARY, **MEETING}.items()}
UNITS = {
    "few": wpinq.users("a", at_most=2),
    "some": wpinq.users("a", at_most=3, per=("b", 2)),
    "shared": wpinq.users("a", shared=True),
    "in a period": wpinq.users("a", at_most=3, period=2, at="b"),
    "all": wpinq.users("a"),
    "all in a period": wpinq.users("a", period=2, at="b"),
}
TABLES = ("one table", "two tables", "other columns", "two ledgers")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """For each kind of unit and each way the two sources of a plan."""
    place = tmp_path_factory.mktemp("ledgers")

    def opened(name, unit, ledger):
        return wpinq.protect([], 10**9, columns=PAIR, unit=UNITS[unit], name=name, version="1", ledger=place / ledger)

    result = {}
    for unit, value in UNITS.items():
        left = opened("left", unit, f"{unit} one")
        result[unit, "one table"] = left, left
        result[unit, "two tables"] = left, opened("right", unit, f"{unit} one")
        own = replace(value, column="whom")
        other = wpinq.protect([], columns={"whom": int, "b": int}, unit=own, name="other", version="1",
                              ledger=place / f"{unit} one")  # fmt: skip
        result[unit, "other columns"] = left, other.map(lambda whom, b: (whom, b), columns=PAIR)
        result[unit, "two ledgers"] = left, opened("right", unit, f"{unit} other")
    return result


def grown(draw, sources, depth, likely=LIKELY):
    """A random plan over two sources, half of it of likely steps, and the names of its steps."""
    if depth == 0 or draw.random() < 0.1:
        side = draw.randrange(2)
        return sources[side], (f"source {side}",)
    name = draw.choice(likely if draw.random() < 0.5 else sorted(STEPS))
    arity, step = STEPS[name]
    given = [grown(draw, sources, depth - 1, likely) for _ in range(arity)]
    made = step(*(collection for collection, _ in given))
    if len(made._node.schema) == 1:
        made = made.map(lambda x: (x, 0))
    return made.map(lambda x, y: (x, y), columns=["a", "b"]), (name, *(names for _, names in given))


def of_others(draw, unit):
    """Records of others; of the person too, in other periods, where the unit is a person in one."""
    rows = [(draw.choice([0, 1, 2, None]), draw.choice([0, 1, 2, 3, 7, None])) for _ in range(draw.randrange(7))]
    if UNITS[unit].period:
        rows += [(WHOM, draw.choice([2, 3, 5, None])) for _ in range(draw.randrange(4))]
    return rows


def of_whom(draw, unit):
    """All records of the person, equal ones among them."""
    values = [0, 1] if UNITS[unit].period else [0, 1, 2, 3, 7, None]
    return [(WHOM, draw.choice(values)) for _ in range(draw.randrange(5))]


def violation(draw, tables, *likely):
    """What a random plan and a person are an example of, where it moves further than is claimed; else None.

    The plan is as it is measured. Over two ledgers the second table stays, though it may name the person.
    """
    unit, way = draw.choice(sorted(UNITS)), draw.choice(TABLES)
    if draw.random() < 0.5:  # what is refused of these teaches nothing
        unit, way = draw.choice(["few", "some"]), draw.choice(["two tables", "two ledgers"])
    try:
        plan, names = grown(draw, tables[unit, way], draw.randint(1, 3), *likely)
        root = fit_noise(plan._node)
        claims, survey, used = ledger_sensitivities(root), Survey.of(root), leaves(plan)
    except PlanError:  # also where nothing bounds what is measured
        return None
    first = tables[unit, way][0]._node
    before = [of_others(draw, unit) for _ in used]
    whom = [of_whom(draw, unit) for _ in used]
    if way == "two ledgers":
        ours = [mover(source.data) == mover(survey_source(first)) for source in used]
        before = [rows if own else rows + more for own, rows, more in zip(ours, before, whom, strict=True)]
        whom = [more if own else [] for own, more in zip(ours, whom, strict=True)]
    after = [rows + more for rows, more in zip(before, whom, strict=True)]
    book = survey_source(first).book
    if book not in claims:
        return None
    found = evaluate(plan._then(root), *after), evaluate(plan._then(root), *before)
    moved = difference(*found)
    change = survey.changes[mover(survey_source(first))]
    if change.l0 is not None and sum(move > 0 for move in moved) > change.l0:
        return names, unit, way, before, whom, "more bins than", change.l0
    if change.rises and any(found[0].get(key, 0) < weight for key, weight in found[1].items()):
        return names, unit, way, before, whom, "a weight falls"
    slack = SLACK ** sum(node.stability[0] == DITHER_STABILITY for node in steps(root) if node.inputs)
    whole = sum(move for data, move in survey.sensitivities.items() if data.book == book)
    one = Fraction(claims[book].linf, root.resolution)
    if sum(moved) <= whole * slack and max(moved, default=0) <= one * slack:
        return None
    return names, unit, way, before, whom, float(sum(moved)), float(whole), float(max(moved)), float(one)


def survey_source(node):
    """The data set at the bottom of a chain of steps."""
    while node.inputs:
        (node,) = node.inputs
    return node.data


def difference(one, other):
    return [abs(Fraction(one.get(key, 0)) - other.get(key, 0)) for key in {**one, **other}]


def search(tables, seed, tries, *likely):
    """The first violation of so many tries."""
    draw = random.Random(seed)
    found = (violation(draw, tables, *likely) for _ in range(tries))
    return next((example for example in found if example), None)


@deeper
@pytest.mark.parametrize("seed", range(2))
def test_nobody_moves_a_plan_further_than_is_claimed(tables, seed):
    assert search(tables, seed, often(600)) is None


# ---- what is claimed, said a second time


def views(unit=TWENTY):
    return wpinq.protect([], 10**9, columns=PAIR, unit=unit, version="1")


def groups(unit=TWENTY):
    return views(unit).group_by("a", len, whole=True)


FIGURES = {
    "people": (lambda v: v.map("a").distinct(), 1, 1),
    "how many people": (lambda v: v.map("a").distinct().map(lambda a: 0), 1, 1),
    "people by number of records": (lambda v: v.group_by("a", len, whole=True).map(lambda value: value), 1, 1),
    "HAVING": (lambda v: v.group_by("a", len, whole=True).filter(lambda value: value > 3).map(lambda a: 0), 1, 1),
    "a value of each person": (
        lambda v: v.group_by("a", lambda g: min(b for _, b in g), {"b": int}, whole=True).map("b"), 1, 1,
    ),
    "three of each person": (lambda v: v.limit("a", 3).map("b"), 3, 3),
    "prefixes of each person": (lambda v: v.group_by("a", len).map(lambda value: value), 10, 10),
    "people by page": (lambda v: v.map("a, b").distinct().map("b"), 20, 1),
    "records by page": (lambda v: v.map("b"), 20, 20),
    "of people with many": (
        lambda v: v.semijoin(v.group_by("a", len, whole=True).filter(lambda value: value > 3), on="a").map("b"), 20, 20,
    ),
    "pairs with a value of each person": (
        lambda v: v.join_rows(v.group_by("a", len, whole=True), on="a").map("b, value"), 20, 20,
    ),
    "distinct after records met by page": (lambda v: v.limit("b").map("a").distinct(), 40, 1),
    "one part": (lambda v: v.partition("b", [1])[1].map("a").distinct(), 1, 1),
    "under another name": (
        lambda v: v.map(lambda a, b: (b, a), columns=["what", "who"]).group_by("who", len, whole=True).map("value"),
        1, 1,
    ),
    "a key that was computed": (
        lambda v: v.map(lambda a, b: (a + 0, b), columns=PAIR).group_by("a", len, whole=True).map("value"), 40, 40,
    ),
    "two sets of keys": (lambda v: numbered(v, 1).concat(numbered(v, 2)), 40, 20),
    "three sets of keys, one of them twice": (
        lambda v: numbered(v, 1).concat(numbered(v, 2)).concat(numbered(v, 1)), 60, 40,
    ),
    "six sets of keys": (lambda v: reduce(lambda c, n: c.concat(numbered(v, n)), range(1, 6), numbered(v, 0)), 120, 20),
    "sets of keys without their number": (lambda v: numbered(v, 1).concat(numbered(v, 2)).map("b"), 40, 40),
    "sets of keys of some of the records": (lambda v: numbered(v.limit("a", 3), 1).concat(numbered(v, 2)), 23, 20),
    "numbers that are written otherwise": (
        lambda v: v.map([pl.lit("a"), pl.col("b")]).concat(v.map([pl.lit("b"), pl.col("b")])), 40, 20,
    ),
    "numbers that may be equal": (
        lambda v: v.map([pl.lit(0.0), pl.col("b")]).concat(v.map([pl.lit(-0.0), pl.col("b")])), 40, 40,
    ),
    "by another column": (lambda v: v.group_by("b", len, whole=True).map("value"), 40, 40),
}  # fmt: skip


def numbered(views, number):
    """One of the sets of keys of a query, as `GROUP BY GROUPING SETS` makes it."""
    return views.map([pl.lit(number, pl.Int64).alias("a"), pl.col("b")])


def claimed(plan):
    """L1 and L-infinity, in weight, of a plan over one ledger."""
    (unit,) = ledger_sensitivities(plan._node).values()
    return Fraction(unit.l1, plan._node.resolution), Fraction(unit.linf, plan._node.resolution)


@pytest.mark.parametrize("name", FIGURES)
def test_one_person_of_twenty_records_moves(name):
    plan, whole, one = FIGURES[name]
    assert claimed(plan(views())) == (whole, one)


def paid(measured):
    """Epsilon of all tables together."""
    return sum(cost.epsilon for _, charge in measured.quote.charges for cost in charge.costs)


def test_what_is_charged_is_what_one_person_moves():
    """COUNT(DISTINCT user) has the noise of one record, and costs its epsilon; a view has that of twenty."""
    people, pages = (plan.measure(1) for plan in (views().map("a").distinct().map(lambda a: 0), views().map("b")))
    assert (people.scale, pages.scale) == (1, 20)
    assert [paid(measured) for measured in (people, pages)] == [1, 1]


def test_a_person_in_one_period_is_not_alone():
    """A day that leaves changes what is made of the person's other days; a bound of records still holds."""
    unit = wpinq.users("a", at_most=20, period=1, at="b")
    assert claimed(groups(unit).map(lambda value: value)) == (2, 1), "another group takes its place"
    assert claimed(views(unit).limit("a", 3).map("b")) == (6, 6)
    assert claimed(views(unit).map("a").distinct()) == (1, 1)
    assert claimed(views(unit).group_by("a", len).map(lambda value: value)) == (20, 20)


def test_tables_of_one_ledger_move_together(tmp_path):
    """Rows of both tables are one group of their person, which comes and goes once."""
    one, other = (
        wpinq.protect([], 10**9, columns=PAIR, unit=wpinq.users("a", at_most=3), name=name, version="1",
                      ledger=tmp_path / "ledger")
        for name in ("one", "other")
    )  # fmt: skip
    assert claimed(one.concat(other).group_by("a", len, whole=True).map(lambda value: value)) == (1, 1)
    assert claimed(one.join_rows(other, on="a", how="left").map("a").distinct()) == (1, 1)
    assert claimed(one.join_rows(other, on="a").map("b")) == (9, 9)
    people = one.concat(other).map("a").distinct().measure(1)
    assert (paid(people), people.scale) == (2, Fraction(1, 2))


def test_no_movement_below_one_is_claimed_of_a_dither(tmp_path):
    """Groups of shared weights move by 1/2, and so do their pairs; a dither is proved for a movement of 1."""
    one, other = (
        wpinq.protect([], 10**9, columns=PAIR, unit=wpinq.users("a", shared=True), version="1", ledger=tmp_path / name)
        .group_by("a", len)
        for name in ("one", "other")
    )  # fmt: skip
    pairs = one.join_rows(other, on="a")
    assert pairs._node.stability == (Fraction(1, 2), Fraction(1, 2))
    rounded = fit_noise(pairs._node)
    assert rounded.dithers
    assert set(Survey.of(rounded).sensitivities.values()) == {DITHER_STABILITY}
    part = fit_noise(pairs.partition("a", [1])[1]._node)
    assert part.dithers
    assert set(Survey.of(part).sensitivities.values()) == {DITHER_STABILITY}


# ---- wrong rules are found


def always(node):
    return (True,) * len(node.inputs)


def by_name(self, place):
    return {name: name for name in self.schema.names if name in self.inputs[place].schema}


def a_quarter(self, columns, of):
    return Fraction(1, 4) if columns.issuperset(self.keys) else None


def half_of_pairs(self, columns, of):
    whole = BOUND_OF_PAIRS(self, columns, of)
    return whole and whole / 2


def half_of_theirs(self, columns, of):
    whole = BOUND_OF_THEIRS(self, columns, of)
    return whole and whole / 2


ENTERED = person_bound._entered


def one_record(node):
    change = ENTERED(node)
    return change and change._replace(l0=1)


def always_apart(inputs, values):
    shares = [(person_bound._renamed(change, names), factor) for change, names, factor in inputs]
    if len(inputs) > 1 and all(masses for masses, _ in shares):
        most = max(min(masses.values()) * factor for masses, factor in shares)
        yield from ((frozenset([name]), most) for name in values)


BOUND_OF_PAIRS, BOUND_OF_THEIRS = Join.bounds, JoinRows._theirs
WRONG = {
    "an input that does not move cannot hold the person": ((Node, "needs", property(always)), ["concat", "union"]),
    "nothing stands alone in a left join": ((LeftRows, "needs", property(always)), ["left join on the key", "having"]),
    "a limit keeps every column apart": ((Fill, "kept_apart", by_name), ["limit by value", "distinct key"]),
    "prefixes of a key weigh a quarter": ((GroupBy, "bounds", a_quarter), ["group_by: len"]),
    "pairs of a key weigh half of what they do": ((Join, "bounds", half_of_pairs), ["join on the key", "key alone"]),
    "pairs weigh half of what the right side has": ((JoinRows, "_theirs", half_of_theirs), ["join_rows on the key"]),
    "whose column is fixed is alone": ((person_bound, "_stays_alone", lambda *_: True), ["having"]),
    "a semijoin is of one record": ((Fill, "images", 1), ["limit by value", "limit by both"]),
    "pairs are monotone": ((JoinRows, "monotone", True), ["left join, their key", "having"]),
    "a limit is monotone": ((Fill, "monotone", True), ["limit by value", "limit by both"]),
    "a difference is monotone": ((Sum, "monotone", True), ["key alone", "value alone"]),
    "a person has one record": ((person_bound, "_entered", one_record), ["key alone", "value alone"]),
    "equal constants are two values": ((columnar, "told_apart", lambda _, kind: (kind, object())), ["one set twice"]),
    "inputs that share a value are told apart": ((person_bound, "_apart", always_apart), ["one set twice"]),
    "all records of a person move by 1": ((person_bound, "_whole", lambda _: {person_bound.NONE: 1}), ["key alone"]),
}


SOON = {"an input that does not move cannot hold the person": 24, "nothing stands alone in a left join": 16,
        "pairs are monotone": 2, "a difference is monotone": 3}  # fmt: skip
"""Seeds by which rare examples are drawn early."""


@thin(8)
@pytest.mark.parametrize("rule", WRONG)
def test_a_wrong_rule_is_found(tables, monkeypatch, rule):
    wrong, likely = WRONG[rule]
    monkeypatch.setattr(*wrong)
    assert search(tables, SOON.get(rule, 0), 6_000, likely) is not None


def test_a_person_in_a_period_taken_for_alone_is_found(tables, monkeypatch):
    entered = person_bound._entered
    wrong = lambda node: (change := entered(node)) and change._replace(alone=True)  # noqa: E731
    monkeypatch.setattr(person_bound, "_entered", wrong)
    assert search(tables, 0, 6_000, ["having"]) is not None
