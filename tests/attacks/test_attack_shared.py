"""Attacks by a person, or a record, in several data sets of one ledger: deltas add up, and so must movements.

The chances are computed exactly, from the law of the noise and of the selection.
"""

from fractions import Fraction

import pytest

import wpinq
from wpinq.core.noise.threshold import seen_bounds, tail_bounds
from wpinq.core.noise.weighted_rounds import weighted_rounds
from wpinq.core.plan.node import sources

DELTA = Fraction(1, 10**6)
BITS = 200
ONE = 1 << BITS
ALICE = [("alice", "secret page")] * 20
TWENTY = wpinq.users("user", at_most=20)


@pytest.fixture
def version(tmp_path):
    """A version of one data set, on one ledger, or each on a ledger of its own."""

    def call(number, unit=None, *, apart=False, records=ALICE):
        ledger = tmp_path / f"ledger {number if apart else ''}"
        return wpinq.protect(
            list(records), budget=1000, delta="1/1000", ledger=ledger, unit=unit, name="views", version=str(number),
            columns={"user": str, "page": str},
        )  # fmt: skip

    return call


def paid(node):
    """Delta that was charged to the ledger of a plan's data sets."""
    return sources(node)[0].ledger.spent()[1]


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), 1, 3, 5, 10])
@pytest.mark.parametrize(
    ("unit", "moves"),
    [(None, 2), (TWENTY, 40), (wpinq.users("user", at_most=20, per=("page", 3)), 40)],
    ids=["records", "people", "per page"],
)
def test_a_unit_of_two_data_sets_shows_with_what_both_paid(version, unit, moves, epsilon):
    """At epsilon 10 a page that only Alice viewed was published with chance 1.9e-2, where 2e-6 was charged."""
    m = version(1, unit).concat(version(2, unit)).map("page").measure(epsilon)
    tau = int(m.release(delta=DELTA).threshold)
    assert paid(m.node) == 2 * DELTA
    most = 6 if unit and unit.per else moves
    worst = seen_bounds(m._mechanism.scale, 1, moves, tau, BITS, linf=most)[1]
    assert Fraction(worst, ONE) <= 2 * DELTA
    assert Fraction(tail_bounds(m._mechanism.scale, tau - most, BITS)[1], ONE) <= 2 * DELTA
    assert Fraction(seen_bounds(m._mechanism.scale, 1, moves, tau - 1, BITS, linf=most)[0], ONE) > 2 * DELTA, (
        "no higher"
    )


@pytest.mark.parametrize("epsilon", [1, 5])
@pytest.mark.parametrize(("unit", "moves"), [(None, 2), (TWENTY, 40)], ids=["records", "people"])
def test_a_unit_of_two_data_sets_is_selected_with_what_both_paid(version, unit, moves, epsilon):
    """At epsilon 5 it was named with chance 1.5e-4. All odds of neighbours keep to what was charged, too."""
    s = version(1, unit).concat(version(2, unit)).map("page").select(epsilon, DELTA)
    assert paid(s.node) == 2 * DELTA
    assert sources(s.node)[0].ledger.spent()[0] == 2 * epsilon
    if unit is None:
        assert Fraction(s._mechanism.places(moves, BITS), ONE) <= 2 * DELTA
        assert s._mechanism.epsilon * moves == 2 * epsilon
    else:  # rounds that hold for all the names that somebody has in both together (`weighted_rounds.py`)
        assert s._mechanism.names == moves
        assert s._mechanism == weighted_rounds(Fraction(epsilon), DELTA, moves)


def test_data_sets_of_unequal_weight_in_a_plan(version):
    """Alice moves the plan by 20 through one and by 40 through the other."""
    one, two = (version(number, TWENTY).map("page") for number in (1, 2))
    m = one.concat(two).concat(two).measure(1)
    tau = int(m.release(delta=DELTA).threshold)
    assert Fraction(seen_bounds(m._mechanism.scale, 1, 60, tau, BITS)[1], ONE) <= paid(m.node) == 2 * DELTA
    s = one.concat(two).concat(two).select(1, DELTA)
    assert s._mechanism.epsilon == Fraction(1, 40)
    assert Fraction(s._mechanism.places(60, BITS), ONE) <= 2 * DELTA


def test_other_ledgers_are_other_people(version):
    m = version(1, TWENTY, apart=True).concat(version(2, TWENTY, apart=True)).map("page").measure(1)
    alone = version(3, TWENTY, apart=True).map("page").measure(1)
    assert m.release(delta=DELTA).threshold == alone.release(delta=DELTA).threshold
    assert paid(m.node) == DELTA


def test_a_query_over_two_data_sets_of_one_ledger(version):
    """SQL publishes its groups by the same threshold; its delta is what a person loses in all."""
    both = version(1, TWENTY).concat(version(2, TWENTY))
    answer = wpinq.sql("SELECT page, COUNT(*) AS n FROM both GROUP BY page", {"both": both}, epsilon=5, delta=DELTA)
    (m,) = answer.measurements
    tau = int(m.release(delta=DELTA / 2).threshold)  # that of the answer, at no cost
    assert paid(m.node) == DELTA
    assert Fraction(seen_bounds(m._mechanism.scale, 1, 40, tau, BITS)[1], ONE) <= DELTA
