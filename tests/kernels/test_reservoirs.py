"""The compiled reservoirs against plain Python: numbers of identities, and who stays, in any order."""

import os
import shutil
from collections import Counter, defaultdict

import numpy as np
import pytest
from depth import often, thin
from hypothesis import given, settings
from hypothesis import strategies as st

from wpinq.core import kernels
from wpinq.core.kernels import build
from wpinq.core.kernels.reservoirs import Numbers, Pool

words = st.tuples(st.sampled_from([0, 1, 2**63, 2**64 - 1]), st.integers(0, 3))
arrivals = st.lists(st.lists(st.tuples(st.integers(0, 3), words, words), max_size=30), min_size=1, max_size=6)
BUGS = {
    "one more of a value": ("alike > pool->per", "alike > pool->per + 1"),
    "one more of a person": ("i = pool->most; i < count", "i = pool->most + 1; i < count"),
    "ties at the limit are turned away": ("ranks[2 * i] > person->limit)", "ranks[2 * i] >= person->limit)"),
    "the second word does not count": ("if (a[1] != b[1]) return a[1] < b[1];", ""),
    "what left is not told": ("if (item[2] & GIVEN) pool->left", "if (0) pool->left"),
    "a block is used twice": ("pool->spare[kind] = (int64_t)pool->items[at * words];", ";"),
}  # fmt: skip


def compiled(folder, change=("", "")):
    """The kernels, with one change to their source."""
    if shutil.which(os.environ.get("CC", "cc")) is None:
        pytest.skip("there is no C compiler")
    for source in build.SOURCES:
        if source.name in ("reservoirs.c", "common.h"):
            text = source.read_text()
            assert change[0] in text or source.name == "common.h"
            (folder / source.name).write_text(text.replace(*change) if change[0] else text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "SOURCES", [folder / "common.h", folder / "reservoirs.c"])
        patch.setattr(build, "LIBRARY", folder / "kernels.so")
        made = build.compile_kernels()
    library = kernels.ctypes.CDLL(str(made))
    for name in ("number", "code", "add", "spread", "put", "give", "rows"):
        function = getattr(library, f"wpinq_{name}")
        function.restype, function.argtypes = kernels._signatures[f"wpinq_{name}"]
    return library


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("reservoirs"))


def staying(records, most, per):
    """Rows that stay, by definition: through all records once, in the order of their ranks."""
    out, places, people = set(), Counter(), Counter()
    for row, (person, _, value) in sorted(records.items(), key=lambda item: (item[1][1], item[0])):
        if per is None or places[person, value] < per:
            places[person, value] += 1
            people[person] += 1
            if people[person] <= most:
                out.add(row)
    return out


def array(pairs):
    return np.array(pairs, np.uint64).reshape(-1, 2)


def agrees(library, parts, most, per, forget):
    """Whether the pool holds what it should after each part, and tells what came and what left."""
    pool, numbers, seen, held, names = Pool(library, most, per), Numbers(library), {}, set(), {}
    for part in parts:
        if part:
            codes = numbers.codes(array([(person << 61, person) for person, _, _ in part]))
            pool.reserve(len(numbers))
            values = None if per is None else array([value for _, _, value in part])
            entered = pool.put(codes, array([rank for _, rank, _ in part]), values)
            for record, into in zip(part, entered.tolist(), strict=True):
                seen[len(seen)] = record
                if into:
                    names[len(names)] = len(seen) - 1
        if forget:  # rows are numbered anew between parts
            marks = pool.held()
            places = np.cumsum(marks, dtype=np.uint32) - np.uint32(1)
            pool.renumber(places, int(marks.sum()))
            names = {int(places[row]): names[row] for row in np.flatnonzero(marks).tolist()}
        came, left = ([names[row] for row in rows.tolist()] for rows in pool.give())
        if len({*came}) < len(came) or {*came} & held or not {*left} <= held or len({*left}) < len(left):
            return False
        held = held - {*left} | {*came}
        if held != staying(seen, most, per) or pool.live != len(held):
            return False
    return True


@given(arrivals, st.integers(1, 5), st.none() | st.integers(1, 3), st.booleans())
@settings(max_examples=often(300))
def test_those_of_the_least_ranks_stay(library, parts, most, per, forget):
    assert agrees(library, parts, most, per, forget)


def heavy():
    """A person with very many records beside some with few, many ties of a rank's first word."""
    rng = np.random.default_rng(4)
    person = np.minimum(rng.geometric(0.02, 3000) - 1, 7)
    return [
        (int(who), (int(one), int(two)), (int(value), 1))
        for who, one, two, value in zip(person, *rng.integers(0, [[40], [10**6], [9]], (3, 3000)), strict=True)
    ]


@thin(6)
@pytest.mark.parametrize("most", [1, 2, 7, 100, 2**31 - 1])
@pytest.mark.parametrize("per", [None, 1, 20])
@pytest.mark.parametrize("size", [1, 250, 3000])
def test_heavy_people_and_batches_of_every_size(library, most, per, size):
    records = heavy()[: 400 if size == 1 else None]
    parts = [records[start : start + size] for start in range(0, len(records), size)]
    assert agrees(library, parts, most, per, forget=False)


@thin(3)
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug, tmp_path):
    broken, records = compiled(tmp_path, BUGS[bug]), heavy()
    ties = [[(0, (5, number), (number % 2, 0)) for number in order] for order in ([3, 2, 1, 0], [7, 6, 5, 4])] * 2
    parts = [records[start : start + 250] for start in range(0, 3000, 250)]
    kinds = [(parts, 7, None), (parts, 7, 2), (ties, 2, None), (ties[::-1], 3, 1)]
    assert not all(agrees(broken, some, most, per, forget=False) for some, most, per in kinds)


@given(st.lists(st.tuples(words, st.integers(1, 5)), max_size=60), st.integers(1, 60))
def test_identities_are_counted_and_numbered(library, rows, size):
    counts, codes, times, first = Numbers(library), Numbers(library), defaultdict(int), {}
    sums = np.zeros(len(rows), np.int64)
    for start in range(0, len(rows), size):
        ids, weights = zip(*rows[start : start + size], strict=True)
        before, known = counts.count(array(ids), np.array(weights)), len(codes)
        found = codes.codes(array(ids))
        fresh = codes.add(found, -np.array(weights), known, sums)
        for one, *rest, weight in zip(ids, before.tolist(), fresh.tolist(), found.tolist(), weights, strict=True):
            assert rest == [times[one], one not in first, first.setdefault(one, len(first))]
            times[one] += weight
    assert sums[: len(codes)].tolist() == [-times[one] for one in first]
    assert len(counts) == len(codes) == len(first)


def test_many_identities_and_numbers_beyond_four_thousand_million(library):
    ids = np.random.default_rng(2).integers(0, 2**64, (300_000, 2), np.uint64)
    table = Numbers(library)
    assert (table.codes(ids) == np.arange(len(ids))).all()
    assert (table.codes(ids[::-1]) == np.arange(len(ids))[::-1]).all()
    counts = Numbers(library)
    for before in (0, 2**31, 2**32 - 1, 2**32 - 1):
        assert counts.count(ids[:2], np.full(2, 2**31)).tolist() == [before, before]
