"""Tables and step functions against dictionaries."""

from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wpinq.core.state import table as tables
from wpinq.core.state.histogram import Steps
from wpinq.core.state.table import Table, combine

ids = st.tuples(st.integers(0, 3), st.integers(0, 3))  # few, so that identities tie in one word, or in both
changes = st.lists(st.lists(st.tuples(ids, st.integers(-3, 3)), max_size=6), max_size=8)


def arrays(change):
    keys = np.array([key for key, _ in change], np.uint64).reshape(-1, 2)
    return keys, np.array([weight for _, weight in change], np.int64)


@given(changes)
def test_a_table_is_a_dictionary(batches):
    table, plain = Table(), {}
    for batch in batches:
        rows, keys, weights = combine(*arrays(batch))
        assert [tuple(key) for key in keys.tolist()] == [batch[row][0] for row in rows]
        table.add(keys, weights)
        for key, weight in batch:
            plain[key] = plain.get(key, 0) + weight
    everything = [(a, b) for a in range(4) for b in range(4)]
    assert table.lookup(np.array(everything, np.uint64)).tolist() == [plain.get(key, 0) for key in everything]
    keys, weights = table.items()
    alive = {key: weight for key, weight in plain.items() if weight}
    assert dict(zip(map(tuple, keys.tolist()), weights.tolist(), strict=True)) == alive
    assert keys.tolist() == sorted(keys.tolist())


def test_an_empty_table_is_searched_too(monkeypatch):
    """How long a lookup takes would tell that nothing is there; and the plan says how weights are held, never they."""
    searched, find = [], tables._find
    monkeypatch.setattr(tables, "_find", lambda run, wanted: searched.append(len(wanted)) or find(run, wanted))
    wanted = np.array([[0, 0], [1, 2]], np.uint64)
    for dtype in (np.int64, object):
        table = Table(dtype)
        assert table.lookup(wanted).tolist() == [0, 0] and table.lookup(wanted).dtype == dtype
        table.add(wanted, np.array([1, 2]))
        assert table.lookup(wanted).tolist() == [1, 2] and table.lookup(wanted).dtype == dtype
    assert searched == [2] * 8


some = st.tuples(st.integers(0, 150), st.sampled_from([0, 0, 0, 1]))


@given(st.dictionaries(some, st.integers(-2, 2), max_size=11), st.sampled_from([np.int64, object]))
def test_a_few_among_many_are_a_dictionary(few, dtype):
    many = {(number, 0): number % 5 - 2 for number in range(20, 120)}
    table = Table(dtype)
    for part in (many, few):
        table.add(*combine(np.array(list(part), np.uint64).reshape(-1, 2), np.array(list(part.values()), dtype))[1:])
    keys, weights = table.items()
    plain = {key: many.get(key, 0) + few.get(key, 0) for key in many | few}
    found = list(zip(map(tuple, keys.tolist()), weights.tolist(), strict=True))
    assert found == sorted((key, weight) for key, weight in plain.items() if weight)
    assert table.lookup(keys).tolist() == weights.tolist()


def in_runs():
    """A table of several runs, and all that there is to look up."""
    whole, number = Table(), 0
    for size in (4000, 500, 60, 7, 1):
        keys = np.arange(number, number + size, dtype=np.uint64)
        whole.add(*combine(np.stack([keys, keys], axis=1), np.ones(size, np.int64))[1:])
        number += size
    keys = np.arange(number, dtype=np.uint64)
    return whole, np.stack([keys, keys], axis=1)


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("step", ["items", "add"])
def test_whoever_looks_while_runs_are_merged_finds_every_weight(monkeypatch, step, stopped):
    """Another thread may look at any moment, and an interrupt may leave a table at any moment, as it stands then."""
    whole, keys = in_runs()
    copy, merged, looks = whole.copy(), tables._merged, []

    def looking(run, few):
        looks.append(whole.lookup(keys).tolist() == copy.lookup(keys).tolist() == [1] * len(keys))
        if stopped and len(looks) == 3:
            raise KeyboardInterrupt
        return merged(run, few)

    monkeypatch.setattr(tables, "_merged", looking)
    new = np.arange(3000, dtype=np.uint64) + np.uint64(10**6)
    calls = {"items": whole.items, "add": lambda: whole.add(*combine(np.stack([new, new], axis=1), np.ones(3000))[1:])}
    with pytest.raises(KeyboardInterrupt) if stopped else nullcontext():
        calls[step]()
    assert len(looks) >= 3
    assert all(looks)
    assert whole.lookup(keys).tolist() == copy.lookup(keys).tolist() == [1] * len(keys)


ranges = st.lists(st.tuples(st.integers(-5, 8), st.integers(0, 6), st.integers(-3, 3)), max_size=6)


def pieces(change):
    start = np.array([a for a, _, _ in change], np.int64)
    return start, start + np.array([n for _, n, _ in change], np.int64), np.array([w for _, _, w in change], np.int64)


def written(change, plain):
    for start, size, weight in change:
        for k in range(start, start + size):
            plain[k] = plain.get(k, 0) + weight


@given(st.lists(ranges, max_size=5), ranges)
def test_steps_are_a_dictionary(changes, last):
    steps, plain = Steps(), {}
    for change in changes:
        steps.add(*pieces(change))
        written(change, plain)
    everything = np.arange(-8, 20)
    assert steps.lookup(everything).tolist() == [plain.get(k, 0) for k in everything.tolist()]
    start, end, weight = steps.pieces()
    assert (weight != 0).all()
    touching = (end[:-1] == start[1:]) & (weight[:-1] == weight[1:])
    assert not touching.any(), "pieces are the longest there are"
    moved = Steps()
    moved.add(*pieces(last))
    before, after = dict(plain), dict(plain)
    written(last, after)
    told = {}
    for a, b, old, new in zip(*(x.tolist() for x in steps.update(moved)), strict=True):
        told.update(dict.fromkeys(range(a, b), (old, new)))
    keys = before.keys() | after.keys()
    assert told == {k: (before.get(k, 0), after.get(k, 0)) for k in keys if before.get(k, 0) != after.get(k, 0)}
    assert steps.lookup(everything).tolist() == [after.get(k, 0) for k in everything.tolist()]
