"""More identities than a cache holds: the sums are those of a counter, and memory follows what is different."""

import tempfile
from collections import Counter

import numpy as np
import pytest
from depth import thin
from hypothesis import given
from hypothesis import strategies as st

from wpinq.core.kernels import partitions, sums
from wpinq.core.state import memory
from wpinq.core.state.table import combine


def shrink(monkeypatch):
    """Tables that overflow after a few identities, and few small partitions."""
    monkeypatch.setattr(sums, "SMALL", 2)
    monkeypatch.setattr(sums, "LARGE", 4)
    monkeypatch.setattr(sums, "LARGEST", 5)
    monkeypatch.setattr(partitions, "BITS", 3)
    monkeypatch.setattr(partitions, "SAMPLE", 2)
    monkeypatch.setattr(partitions, "ARENA", 16)
    monkeypatch.setattr(partitions, "BLOCK", 300)


def ids_of(numbers):
    """Identities that crowd: in few partitions, in one corner of a table, and zero is among them."""
    corners = np.array([0, 1, 2**40, 2**61, 2**63, 2**64 - 1, 2**64 - 2, 2**64 - 3], np.uint64)
    numbers = np.asarray(numbers, np.int64).reshape(-1)
    return np.stack([corners[numbers % 8], (numbers // 8).astype(np.uint64)], axis=1)


class Counting(memory.Scratch):
    """A place on disk that counts what comes."""

    def __init__(self, little):
        super().__init__(tempfile.gettempdir())
        self.little = little

    def write(self, pages, place):
        self.little.written += len(pages)
        super().write(pages, place)

    def mapped(self, size):
        self.little.mapped += size
        return super().mapped(size)


class Little:
    """Memory for so many arenas, and what went to disk."""

    def __init__(self, arenas):
        self.left, self.written, self.mapped = arenas * partitions.ARENA * 8 * partitions.PAGE, 0, 0

    def take(self, size):
        fits = size <= self.left
        self.left -= size if fits else 0
        return fits

    def give(self, size):
        self.left += size

    def scratch(self):
        return Counting(self)


some = st.lists(st.tuples(st.integers(0, 70), st.integers(-3, 3)), max_size=80)


def filled(library, batches, room=None):
    table, expected = sums.Sums(library, room), Counter()
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


@pytest.mark.parametrize("arenas", [None, 0, 3])
@given(batches=st.lists(st.tuples(some, st.booleans()), max_size=6), apart=st.booleans())
def test_sums_are_those_of_a_counter(library, arenas, batches, apart):
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        table, expected = filled(library, batches, None if arenas is None else Little(arenas))
        assert table.size >= len(expected) - 1  # zero, which no hash is, is not counted
        blocks = list(table.blocks()) if apart else [table.take()]
        ids = [tuple(row) for block, _ in blocks for row in block.tolist()]
        weights = [weight for _, block in blocks for weight in block.tolist()]
        assert ids == sorted(set(ids))
        assert {row: weight for row, weight in zip(ids, weights, strict=True) if weight} == expected
        assert len(table.take()[0]) == 0


@pytest.mark.parametrize("arenas", [None, 0, 3])
@given(batches=st.lists(st.lists(st.tuples(some, st.booleans()), max_size=5), max_size=4), apart=st.booleans())
def test_sums_that_are_joined_are_those_of_a_counter(library, arenas, batches, apart):
    """Also where some wait in pages, or on disk, and some do not; what was joined is empty and takes in more."""
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        room = None if arenas is None else Little(arenas)
        whole, counted = filled(library, [], room)
        for given_batches in batches:
            other, more = filled(library, given_batches, room)
            whole.join(other)
            assert len(other.take()[0]) == 0
            for row, weight in more.items():
                counted[row] = counted.get(row, 0) + weight
                whole.add(np.array([row], np.uint64), np.array([0]))
        blocks = list(whole.blocks()) if apart else [whole.take()]
        ids = [tuple(row) for block, _ in blocks for row in block.tolist()]
        weights = [weight for _, block in blocks for weight in block.tolist()]
        assert ids == sorted(set(ids))
        assert {row: weight for row, weight in zip(ids, weights, strict=True) if weight} == {
            row: weight for row, weight in counted.items() if weight
        }


@thin(6)
@pytest.mark.parametrize("arenas", [None, 4])
@pytest.mark.parametrize("different", [300_000, 9_000])
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("joined", [True, False])
def test_many_identities(library, different, arenas, apart, joined, monkeypatch):
    monkeypatch.setattr(sums, "LARGE", 11)
    monkeypatch.setattr(sums, "LARGEST", 11)
    monkeypatch.setattr(partitions, "BITS", 6)
    monkeypatch.setattr(partitions, "ARENA", 100)
    room = Little(arenas) if arenas else None
    rng = np.random.default_rng(4)
    ids = rng.integers(0, 2**64, (different, 2), np.uint64)[rng.integers(0, different, 400_000)]
    weights = rng.integers(-5, 6, len(ids))
    expected, (table, second) = combine(ids, weights)[1:], (sums.Sums(library, room), sums.Sums(library, room))
    for start in range(0, len(ids), 7_000):
        (second if joined and start % 14_000 else table).add(ids[start : start + 7_000], weights[start : start + 7_000])
    table.join(second)
    blocks = list(table.blocks()) if apart else [table.take()]
    assert (np.concatenate([one for one, _ in blocks]) == expected[0]).all()
    assert (np.concatenate([one for _, one in blocks]) == expected[1]).all()
    if room is not None:
        large = different == 300_000
        assert (room.written > 1_000) == large or joined, "two hold what both have twice"
        assert (room.mapped > 0) == (not apart), "and what is held anyway leaves no room for the result"
        del table, second, blocks
        assert room.left == 4 * 100 * 8 * partitions.PAGE, "all memory was given back"


def test_memory_follows_what_is_different_and_not_how_often(library, monkeypatch):
    monkeypatch.setattr(sums, "LARGE", 9)
    monkeypatch.setattr(sums, "LARGEST", 9)
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
