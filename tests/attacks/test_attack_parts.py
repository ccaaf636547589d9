"""Attacks on what parallel parts cost: parts, windows and pairs that are disjoint only where nothing moves between.

Every test computes the true loss from the histograms of two neighbouring runs and compares it with the ledger.
"""

from decimal import Decimal
from fractions import Fraction

import pytest

import wpinq
from wpinq.core.plan.node import sources

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
