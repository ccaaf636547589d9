"""Odd numbers and names, as arguments of every operator: refused where they are written, or they run."""

import datetime as dt
from fractions import Fraction

import pytest
from depth import thin

import wpinq

HUGE = [2**31, 2**40, 2**62, 2**63 - 1, 2**63, 2**127, 10**40, 10**400, -(2**63), -(2**63) - 1, 1e300]
SMALL = [0, -1, 1.5, Fraction(1, 3), Fraction(1, 10**30), 1e-9, 1e-320, float("nan"), float("inf"), None, True]
NAMES = ["", "*", "^a$", "a\0b", "\ud800", "\0weight", "index", "user", "n", b"x", ("a", "b"), 3.5]
DECLARED = {"user": str, "n": int, "t": dt.datetime}
ROWS = [("u", 1, dt.datetime(2020, 1, 1)), ("u", 2**63 - 1, dt.datetime.max), ("v", -(2**63), None)]
NUMBERS = {
    "limit": lambda c, odd: c.limit("user", odd),
    "shave": lambda c, odd: c.shave(odd),
    "shave: first": lambda c, odd: c.shave([odd, 1]),
    "flat_map": lambda c, odd: c.flat_map(lambda user: [user], at_most=odd),
    "join": lambda c, odd: c.join(c, on="user", at_most=odd),
    "join: of sums": lambda c, odd: c.concat(c).join(c, on="user", at_most=odd),
    "partition: integer": lambda c, odd: c.partition("n", [odd])[odd],
    "partition: text": lambda c, odd: c.partition("user", [odd])[odd],
    "partition: time": lambda c, odd: c.partition("t", [odd])[odd],
    "partition: parts": lambda c, odd: c.partition("user", odd)["u"],
    "window: integer": lambda c, odd: c.window(odd, at="n"),
    "window: time": lambda c, odd: c.window(odd, at="t"),
    "weight": lambda _, odd: wpinq.protect(ROWS, budget=9, columns=DECLARED, weight="n", max_weight=odd),
    "users": lambda _, odd: wpinq.protect(ROWS, budget=9, columns=DECLARED, unit=wpinq.users("user", odd)),
    "users: per": lambda _, odd: wpinq.protect(
        ROWS, budget=9, columns=DECLARED, unit=wpinq.users("user", 3, per=("n", odd))
    ),
}
TEXTS = {
    "limit: key": lambda c, odd: c.limit(odd),
    "shave: name": lambda c, odd: c.shave(name=odd),
    "map: columns": lambda c, odd: c.map(lambda user: user, columns=[odd]),
    "map: types": lambda c, odd: c.map(lambda user: user + "!", columns={odd: str}),
    "map: no list": lambda c, odd: c.map(lambda user: user, columns=odd),
    "flat_map: columns": lambda c, odd: c.flat_map(lambda user: [user], columns={odd: str}),
    "group_by: key": lambda c, odd: c.group_by(odd),
    "group_by: columns": lambda c, odd: c.group_by("user", len, columns=[odd]),
    "group_by: no list": lambda c, odd: c.group_by("user", len, columns=odd),
    "group_by: types": lambda c, odd: c.group_by("user", lambda group: 1, columns={odd: int}),
    "join: on": lambda c, odd: c.join(c, on=odd),
    "join: columns": lambda c, odd: c.join(c, on="user", result=lambda user: user, columns=[odd]),
    "semijoin: on": lambda c, odd: c.semijoin(c, on=odd),
    "partition: key": lambda c, odd: c.partition(odd, ["u"])["u"],
    "window: at": lambda c, odd: c.window(5, at=odd),
}
WINDOWS = {"window: integer": [0, 2**63 - 1, -(2**63)], "window: time": [dt.datetime.min, dt.datetime.max]}
WINDOWS["window: at"] = [0]
CALLS = [(name, call, [*HUGE, *SMALL]) for name, call in NUMBERS.items()]
CALLS += [(name, call, [*NAMES, *SMALL]) for name, call in TEXTS.items()]


@thin(3)
@pytest.mark.parametrize(("name", "call", "values"), CALLS, ids=[name for name, *_ in CALLS])
def test_odd_arguments_are_refused_with_the_plan_or_run(name, call, values):
    for odd in values:
        records = wpinq.protect(ROWS, budget=10**6, columns=DECLARED)
        try:
            made = call(records, odd).measure(1)
        except wpinq.WpinqError as error:
            assert "please report" not in str(error) and records._node.data.ledger.spent()[0] == 0
            continue
        for window in WINDOWS.get(name, [None]):
            made.observe_many([], **({} if window is None else {"window": window}))


def test_windows_at_both_ends_of_integers():
    records = wpinq.protect(ROWS, budget=10**6, columns=DECLARED).map("n")
    for length in (1, 7, 2**61, 2**62 - 1):
        found = records.window(length, at="n").measure(1000)
        for number in (2**63 - 1, -(2**63), 1, 0):
            held = int(number != 0)
            assert abs(found.observe(number, window=number) - held) < 1 / 2  # the noise strays so far by exp(-500)


@pytest.mark.parametrize("within", [10**400, 10**35, 10**25, 5, 1e-25, 1e-35, 1e-320])
@pytest.mark.parametrize("rest", [Fraction(1, 10**35), Fraction(1, 10**25), Fraction(1, 2), 10**400])
def test_distances_and_levels_beyond_reason(within, rest):
    for confidence in (rest, 1 - rest):
        records = wpinq.protect(ROWS, budget=10**99, columns=DECLARED)
        try:
            assert records.measure(within=within, confidence=confidence).interval(confidence) <= within
        except (wpinq.PlanError, wpinq.ExactnessError) as error:
            assert "within=" in str(error) or "confidence=" in str(error) or "scale is above" in str(error)
            assert records._node.data.ledger.spent()[0] == 0


def test_bounds_that_bound_nothing():
    records = wpinq.protect(ROWS, budget=10, columns=DECLARED)
    with pytest.raises(wpinq.PlanError, match=r"limit\(at_most=...\): no key weighs more than 1099511627776"):
        records.limit("user", 2**40)
    records.limit("user", 2**40 - 1)
    records.concat(records).limit("user", 2**41 - 1)


def test_one_record_makes_a_million_slices_or_copies_at_the_most():
    def weighed(most):
        return wpinq.protect(ROWS, budget=10, columns=DECLARED, weight="n", max_weight=most)

    assert weighed(2**20).shave() and weighed(2**20).group_by("user", len, whole=True)
    with pytest.raises(wpinq.PlanError, match="can weigh 1048577 here and would make too many slices"):
        weighed(2**20 + 1).shave()
    assert weighed(2**30).shave(2**10)
    with pytest.raises(wpinq.PlanError, match=r"one record can weigh more than 1,048,576 here"):
        weighed(2**20 + 1).group_by("user", len, whole=True)
