"""Kernels of records that lie by person say what plain loops say."""

from collections import Counter

import numpy as np
import pytest
from depth import deeper, often

from wpinq.core import kernels
from wpinq.core.kernels import people as loops

pytestmark = pytest.mark.skipif(kernels.LIB is None, reason="there are no compiled kernels")


def samples():
    for seed in range(often(300, 60)):
        rng = np.random.default_rng(seed)
        size, many = int(rng.integers(0, 400)), int(rng.integers(1, 40))
        people = np.sort(rng.integers(0, many, size)).astype(np.int32)
        yield rng, people, rng.integers(0, 2, size).astype(np.bool_), rng.integers(0, 5, size).astype(np.int32)


@deeper
def test_the_first_of_each_person_stay():
    for rng, people, stays, values in samples():
        most, per = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        for given in (None, values):
            found, kept, alike = [], Counter(), Counter()
            for person, stay, value in zip(people, stays, values, strict=True):
                one = stay and kept[person] < most and (given is None or alike[person, value] < per)
                kept[person] += one
                alike[person, value] += one
                found.append(bool(one))
            own = stays.copy()
            loops.first(kernels.LIB, people, most, own, values=given, per=per)
            assert own.tolist() == found


@deeper
def test_numbers_are_marked_and_counted():
    for rng, _, stays, values in samples():
        marks = rng.integers(0, 2, 5).astype(np.bool_)
        own = stays.copy()
        loops.marked(kernels.LIB, values, marks, own)
        assert own.tolist() == (stays & marks[values]).tolist()
        assert loops.each(kernels.LIB, values, stays, 7).tolist() == np.bincount(values[stays], minlength=7).tolist()


@deeper
def test_rows_are_ordered_by_person_and_rank_and_equal_ranks_are_told():
    """First words tie, whole ranks do, and some people are given other ranks and sorted once more."""
    for rng, given, _, _ in samples():
        if not len(given):
            continue
        people = np.unique(rng.permutation(given), return_inverse=True)[1].astype(np.int32)
        ranks = rng.integers(0, 1 << int(rng.integers(1, 6)), (len(people), 2)).astype(np.uint64)
        order = loops.Order(kernels.LIB, people, ranks)
        same = order.sort()
        insist_on_order(people, ranks, order)
        rows = order.rows
        equal = (people[rows[1:]] == people[rows[:-1]]) & (ranks[rows[1:]] == ranks[rows[:-1]]).all(axis=1)
        assert same.tolist() == (1 + np.flatnonzero(equal)).tolist()
        order.change(same, rng.integers(0, 1 << 40, (len(same), 2)).astype(np.uint64))
        insist_on_order(people, ranks, order)


def insist_on_order(people, ranks, order):
    rows = order.rows
    assert sorted(rows.tolist()) == list(range(len(people)))
    assert order.people.tolist() == people[rows].tolist()
    found = [(int(people[row]), *map(int, ranks[row])) for row in rows]
    assert found == sorted(found)
