"""Costs add up as privacy rule 25 says."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wpinq.core.ledger import Cost
from wpinq.core.ledger.sums.cost import Composition, read_amount, write_amount
from wpinq.errors import ExactnessError, InternalError
from wpinq.exact import decimal

amounts = st.fractions(min_value=0, max_value=2, max_denominator=10**6)
paths = st.lists(st.tuples(st.sampled_from("FGH"), st.sampled_from("abc")), max_size=3).map(tuple)
costs = st.builds(
    lambda epsilon, delta, under, times: Cost(epsilon + Fraction(1, 7), delta, under, times=times if under else 1),
    amounts, amounts, paths, st.integers(1, 4).map(Fraction),
)  # fmt: skip


def total(found: list[Cost]) -> tuple[Fraction, Fraction]:
    composed = Composition().including(found)
    return composed.epsilon, composed.delta


def rule(found: list[Cost]) -> Fraction:
    """The rule as it is written: of an outermost group so many parts count, the costliest; 1 with parts in parts."""
    several: dict[tuple[str, Fraction], dict[str, Fraction]] = {}
    for cost in found:
        if cost.times > 1:
            group, part = cost.under[0]
            losses = several.setdefault((group, cost.times), {})
            losses[part] = losses.get(part, Fraction(0)) + cost.epsilon
    counted = (sum(sorted(losses.values())[-int(times) :]) for (_, times), losses in several.items())
    return by_hand([cost for cost in found if cost.times == 1], "epsilon", largest=True) + sum(counted)


def by_hand(found: list[Cost], amount: str, *, largest: bool) -> Fraction:
    """What is alone is summed; of the parts of one group the largest counts, or all of them."""
    result = sum((getattr(cost, amount) for cost in found if not cost.under), Fraction(0))
    inside = sorted((cost for cost in found if cost.under), key=lambda cost: cost.under[0])
    for _, group in groupby(inside, key=lambda cost: cost.under[0][0]):
        parts = [
            by_hand([Cost(cost.epsilon, cost.delta, cost.under[1:]) for cost in part], amount, largest=largest)
            for _, part in groupby(group, key=lambda cost: cost.under[0])
        ]
        result += max(parts) if largest else sum(parts)
    return result


@given(st.lists(costs, max_size=12))
def test_total_is_the_recursion(found: list[Cost]) -> None:
    assert total(found) == (rule(found), by_hand(found, "delta", largest=False))


@given(st.lists(costs, max_size=8), st.lists(costs, max_size=4), st.randoms())
def test_order_does_not_matter_and_more_never_costs_less(first: list[Cost], more: list[Cost], chance) -> None:
    before, after = total(first), total(first + more)
    assert before[0] <= after[0] <= before[0] + sum(cost.epsilon for cost in more)
    mixed = first + more
    chance.shuffle(mixed)
    assert total(mixed) == after


def test_of_many_parts_those_that_count_are_looked_at_alone() -> None:
    """Of ten thousand parts one more cost is added up by the twenty that count, not by all."""
    parts = [
        Cost(Fraction(1 + part % 7, 100), under=(("pages", str(part)),), times=Fraction(39, 2)) for part in range(90)
    ]
    composed = Composition()
    for start in range(0, 90, 7):
        composed = composed.including(parts[start : start + 7])
        assert all(len(counted) <= 20 for counted in composed.pure.largest.values())
    assert composed.epsilon == Fraction(12 * 7 + 7 * 6, 100) + Fraction(6, 200)


@given(st.lists(costs, max_size=6), st.lists(costs, max_size=3), st.integers(0, 5))
def test_so_many_times_is_one_after_the_other(found: list[Cost], more: list[Cost], number: int) -> None:
    before = Composition(order=Fraction(8), curves=True).including(found)
    at_once, one_by_one = before.including(more, number), before.including(more * number)
    for name in ("epsilon", "divergence", "delta"):
        assert getattr(at_once, name) == getattr(one_by_one, name)
    after = [*found, *more]
    assert at_once.including(after).epsilon == one_by_one.including(after).epsilon


@given(st.lists(costs, max_size=8), costs)
def test_extending_leaves_the_old_total_as_it_is(found: list[Cost], one: Cost) -> None:
    old = Composition().including(found)
    held = old.epsilon, old.delta
    assert (old.including([one]).epsilon, old.including([one]).delta) == total([*found, one])
    assert (old.epsilon, old.delta) == held == total(found)


def test_examples() -> None:
    monday, tuesday = ("by day", "Monday"), ("by day", "Tuesday")
    tenth = Fraction(1, 10)
    assert total([]) == (0, 0)
    assert total([Cost("0.1"), Cost("0.2")]) == (Fraction(3, 10), 0)
    assert total([Cost("0.1", under=(monday,)), Cost("0.2", under=(tuesday,))]) == (2 * tenth, 0)
    assert total([Cost("0.1", under=(monday,)), Cost("0.2", under=(("by hour", "1"),))]) == (3 * tenth, 0)
    assert total([Cost("0.1", under=(monday,))] * 3) == (3 * tenth, 0)
    people = [Cost("0.1", under=((("by day", str(day)),)), times=Fraction(20)) for day in range(30)]
    assert [total(people[:days])[0] for days in (1, 7, 20, 30)] == [tenth, 7 * tenth, 2, 2]
    nested = [Cost("0.1", under=(monday, ("pages", p))) for p in "ab"] + [Cost("0.1", under=(monday,))]
    assert total([*nested, Cost("0.15", under=(tuesday,))]) == (2 * tenth, 0)


def test_deltas_of_parts_are_summed() -> None:
    parts = [Cost(1, "0.001", (("p", str(i)),)) for i in range(3)]
    assert total(parts) == (1, Fraction(3, 1000))


def test_attack_07_amounts_are_exact() -> None:
    assert total([Cost(0.1), Cost(0.2)])[0] == Fraction(3, 10)
    assert total([Cost(1)] + [Cost(1e-290)] * 10)[0] - 1 == Fraction(1, 10**289)
    assert Cost(np.float64(0.1)) == Cost(Decimal("0.1")) == Cost("1/10")


@pytest.mark.parametrize("bad", [0, -1, math.inf, math.nan, -math.inf, True, None, "ten", [1], 1j])
def test_attack_07_what_is_no_amount_is_refused(bad: object) -> None:
    with pytest.raises(ExactnessError):
        Cost(bad)


def test_a_negative_delta_and_a_group_that_is_no_text_are_refused() -> None:
    with pytest.raises(ExactnessError):
        Cost("0.1", -1)
    with pytest.raises(InternalError):
        Cost("0.1", under=((1, "a"),))
    assert total([Cost(0, "1e-9")]) == (0, Fraction(1, 10**9))


@given(st.fractions())
def test_an_amount_is_written_exactly(number: Fraction) -> None:
    assert read_amount(write_amount(number)) == number


def test_numbers_too_long_for_python_to_print_are_written_exactly() -> None:
    number = Fraction(2**20_000 + 1, 3**20_000)
    assert read_amount(write_amount(number)) == number
    assert decimal(number) == "1.49561e-3522"
