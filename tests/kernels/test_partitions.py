"""More identities than a cache holds: the sums are those of a counter, and memory follows what is different."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wpinq.kernels import partitions, sums
from wpinq.state.table import combine


def shrink(monkeypatch):
    """Tables that overflow after a few identities, and few small partitions."""
    monkeypatch.setattr(sums, "SMALL", 2)
    monkeypatch.setattr(sums, "LARGE", 4)
    monkeypatch.setattr(partitions, "BITS", 3)
    monkeypatch.setattr(partitions, "SAMPLE", 2)
    monkeypatch.setattr(partitions, "ARENA", 16)
    monkeypatch.setattr(partitions, "BLOCK", 300)


def ids_of(numbers):
    """Identities that crowd: in few partitions, in one corner of a table, and zero is among them."""
    corners = np.array([0, 1, 2**40, 2**61, 2**63, 2**64 - 1, 2**64 - 2, 2**64 - 3], np.uint64)
    numbers = np.asarray(numbers, np.int64).reshape(-1)
    return np.stack([corners[numbers % 8], (numbers // 8).astype(np.uint64)], axis=1)


some = st.lists(st.tuples(st.integers(0, 70), st.integers(-3, 3)), max_size=80)


def filled(library, batches):
    table, expected = sums.Sums(library), Counter()
    for numbers, ordered in batches:
        ids, weights = ids_of([n for n, _ in numbers]), np.array([w for _, w in numbers], np.int64)
        if ordered:
            _, ids, weights = combine(ids, weights)
            table.add_sorted(ids, weights)
        else:
            table.add(ids, weights)
        for row, weight in zip(ids.tolist(), weights.tolist(), strict=True):
            expected[tuple(row)] += weight
    return table, {row: weight for row, weight in expected.items() if weight}


@given(batches=st.lists(st.tuples(some, st.booleans()), max_size=6), apart=st.booleans())
def test_sums_are_those_of_a_counter(library, batches, apart):
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        table, expected = filled(library, batches)
        assert table.size >= len(expected) - 1  # zero, which no hash is, is not counted
        blocks = list(table.blocks()) if apart else [table.take()]
        ids = [tuple(row) for block, _ in blocks for row in block.tolist()]
        weights = [weight for _, block in blocks for weight in block.tolist()]
        assert ids == sorted(set(ids))
        assert {row: weight for row, weight in zip(ids, weights, strict=True) if weight} == expected
        assert len(table.take()[0]) == 0


@pytest.mark.parametrize("different", [300_000, 9_000])
def test_many_identities(library, different, monkeypatch):
    monkeypatch.setattr(sums, "LARGE", 11)
    monkeypatch.setattr(partitions, "BITS", 6)
    rng = np.random.default_rng(4)
    ids = rng.integers(0, 2**64, (different, 2), np.uint64)[rng.integers(0, different, 400_000)]
    weights = rng.integers(-5, 6, len(ids))
    expected, table = combine(ids, weights)[1:], sums.Sums(library)
    for start in range(0, len(ids), 7_000):
        table.add(ids[start : start + 7_000], weights[start : start + 7_000])
    blocks = list(table.blocks())
    assert (np.concatenate([one for one, _ in blocks]) == expected[0]).all()
    assert (np.concatenate([one for _, one in blocks]) == expected[1]).all()


def test_memory_follows_what_is_different_and_not_how_often(library, monkeypatch):
    monkeypatch.setattr(sums, "LARGE", 9)
    monkeypatch.setattr(partitions, "BITS", 4)
    monkeypatch.setattr(partitions, "ARENA", 64)
    rng, table = np.random.default_rng(5), sums.Sums(library)
    ids = rng.integers(0, 2**64, (20_000, 2), np.uint64)
    pages = []
    for _ in range(60):
        table.add(ids[rng.permutation(len(ids))], np.ones(len(ids), np.int64))
        pages.append(len(table._partitions._at))
    assert pages[-1] == pages[len(pages) // 2] < 6 * len(ids) / partitions.ROWS
    found, weights = table.take()
    assert len(found) == len(ids)
    assert (weights == 60).all()


def test_growing_copies_nothing(library):
    table = partitions.Partitions(library)
    rng = np.random.default_rng(6)
    table.append(rng.integers(0, 2**64, (1000, 2), np.uint64), np.ones(1000, np.int64))
    arenas = [arena.ctypes.data for arena in table._arenas]
    table.append(rng.integers(0, 2**64, (10**6, 2), np.uint64), np.ones(10**6, np.int64))
    assert [arena.ctypes.data for arena in table._arenas][: len(arenas)] == arenas
    assert table.rows == 1_001_000
