"""The dither back to 2^-40: right on average, fixed for each record, and stable."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import batch_of, distance, expected, protected, run_flow, same

import wpinq
from wpinq.core.functions.probes import VALUES
from wpinq.core.operators.resolution import (
    DITHER_STABILITY,
    GRID,
    Align,
    Coarse,
    common_resolution,
    dither_key,
    draws,
    fit_noise,
    rounded,
)
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.records.values import decode, encode

big = st.integers(-(2**120), 2**120)


@given(big, st.integers(1, 2**80), st.integers(0, 2**64 - 1))
def test_rounding_is_down_or_up(numerator, denominator, draw):
    (found,) = rounded(np.array([numerator], object), denominator, np.array([draw], object)).tolist()
    assert abs(found - Fraction(numerator, denominator)) < 1
    assert (found == 0 or numerator != 0) and found * numerator >= 0
    (other,) = rounded(np.array([-numerator], object), denominator, np.array([draw], object)).tolist()
    assert other == -found


@pytest.mark.parametrize(("numerator", "denominator"), [(1, 3), (7, 4), (-5, 8), (10**6 + 1, 10**6)])
def test_rounding_is_right_on_average(numerator, denominator):
    """Over equally spaced draws the mean is the fraction itself: no statistics, an exact sum up to the spacing."""
    count = 2**12
    spaced = np.array([(2**64 // count) * i for i in range(count)], object)
    found = rounded(np.full(count, numerator, object), denominator, spaced)
    assert abs(Fraction(int(sum(found)), count) - Fraction(numerator, denominator)) <= Fraction(2, count)


def test_draws_are_uniform_enough_and_fixed():
    """4,096 draws: the mean of 64 uniform bits is within 5.5 standard deviations (false alarm below 1e-7)."""
    ids = np.stack([np.arange(4096), np.arange(4096) * 7], axis=1).astype(np.uint64)
    one, again, other = draws(b"k" * 16, ids), draws(b"k" * 16, ids), draws(b"j" * 16, ids)
    assert one.tolist() == again.tolist() != other.tolist()
    mean = sum(one.tolist()) / 4096 / 2**64
    assert abs(mean - 0.5) < 5.5 * (1 / 12 / 4096) ** 0.5
    both = draws(b"k" * 16, ids, ids)
    assert both.tolist() != one.tolist()


def fine(records=()):
    pairs = protected(records, a="integer", b="integer")
    return pairs.join(pairs, on="a", result=lambda b, b_2: (b, b_2))


def test_measured_on_the_grid():
    plan = fine([(i % 3, i) for i in range(9)])
    root = fit_noise(plan._node)
    assert isinstance(root, Coarse) and root.resolution == GRID and root.stability == (DITHER_STABILITY,)
    assert fit_noise(root) is root
    whole = protected(a="integer")._node
    assert fit_noise(whole) is whole
    counted = {(i % 3, i): Fraction(1) for i in range(9)}
    assert same(run_flow(plan, 2), plan._node, expected(plan, counted))


def test_dithered_neighbours_move_by_their_bound():
    """All pairs of a key move: the sum of their dithers stays within 2^-16 of the ideal (false alarm below 2^-180)."""
    plan = fine()
    before = {(i % 20, i): Fraction(1) for i in range(160)}
    after = before | {(1, 1000): Fraction(1)}
    moved = distance(expected(plan, before), expected(plan, after))
    assert 0 < moved <= 2 * DITHER_STABILITY


def test_dithers_on_one_path_have_keys_of_their_own():
    plan = fine()._node
    first = Coarse(plan)
    second = Coarse(first)
    assert len({dither_key(first), dither_key(second)}) == 2
    assert dither_key(first) == dither_key(Coarse(plan))


def test_common_resolutions():
    one, two = protected(a="integer").shave("1/6")._node, protected(a="integer").shave("1/4")._node
    assert common_resolution([one, two]) == ([one, two], 12)
    joined = fine()._node
    nodes, resolution = common_resolution([joined, protected(a="integer").shave("1/3")._node])
    assert resolution == GRID and all(node.resolution == GRID for node in nodes)


@pytest.mark.parametrize(
    "other", [3, None, [("ann", "a")], pl.DataFrame({"user": ["ann"]})], ids=["number", "none", "list", "table"]
)
@pytest.mark.parametrize("call", ["concat", "subtract", "union", "intersect"])
def test_what_is_no_collection_is_refused_by_name(call, other):
    views = wpinq.protect([("ann", "a")], budget=1, columns=("user", "page"))
    with pytest.raises(wpinq.PlanError, match=f"{call}: takes another protected collection"):
        getattr(views, call)(other)


@pytest.mark.parametrize("other", [3, None], ids=["number", "none"])
@pytest.mark.parametrize("call", ["join", "semijoin", "antijoin"])
def test_what_is_neither_a_collection_nor_a_public_table_is_refused_by_name(call, other):
    views = wpinq.protect([("ann", "a")], budget=1, columns=("user", "page"))
    with pytest.raises(wpinq.SourceError, match=f"{call}: takes another protected collection, or a public table"):
        getattr(views, call)(other, on="user")


def test_alignment_is_injective_on_records():
    """Else union and intersect of one pair could each move, while they are priced as one."""
    for kind, values in VALUES.items():
        source = protected(x=kind.value)
        aligned = Align(source._node, Schema((Column("y", Kind.ANY),)), 1)
        given = {(value,): Fraction(1) for value in map(decode, {encode(value) for value in values})}
        batch = batch_of(given, source._node.schema, source._node.held)
        moved = aligned.lower(frozenset("y")).kernel(batch)
        assert moved.frame["y"].n_unique() == batch.frame["x"].n_unique() == len(given), kind
        assert len(aligned.define(given)) == len(given)


def test_parts_below_a_function_that_cannot_be_told_have_dithers_of_their_own():
    """Of unknown functions nothing entered the key, so the dithers of all parts were one, and their sum was no sum of
    independent ones."""

    def told(b, b_2):
        return (random() and b, b_2)

    from random import random

    pairs = protected(a="integer", b="integer")
    halves = pairs.partition("a", [0, 1]).values()
    keys = {dither_key(Coarse(half.join(half, on="a", result=told)._node)) for half in halves}
    assert len(keys) == 2
    again = pairs.partition("a", [0, 1])[0]
    assert dither_key(Coarse(again.join(again, on="a", result=told)._node)) in keys, "in every process the same"
