"""Looking up by identity, compiled and plain: the same weights, for what is there or not, and where first words tie."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wpinq.core.state import table

EDGES = st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1])
WORDS = st.integers(0, 2**64 - 1) | st.integers(0, 40) | EDGES


def looked_up(known, wanted, library):
    """The weights of what is wanted, by the compiled and by the plain path."""
    found = []
    for lib in (library, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table, "LIB", lib)
            made = table.Table()
            made.add(*table.combine(known, np.arange(1, len(known) + 1))[1:])
            found.append(made.lookup(wanted))
    return found


@given(
    st.lists(st.tuples(WORDS, st.integers(0, 2)), min_size=1, max_size=60, unique=True),
    st.lists(st.tuples(WORDS, st.integers(0, 2))),
)
def test_weights_are_the_same(library, known, wanted):
    """Also of identities that are no pseudorandom words, of which guesses are far off."""
    known, wanted = (np.array(one, np.uint64).reshape(-1, 2) for one in (known, known + wanted))
    compiled, plain = looked_up(known, wanted, library)
    assert (compiled == plain).all()
    assert sorted(compiled[: len(known)]) == list(range(1, len(known) + 1))


@pytest.mark.parametrize("spread", [2**64 - 1, 2**40, 2**20])
def test_many_are_found_wherever_they_crowd(library, spread):
    rng = np.random.default_rng(5)
    known = rng.integers(0, spread, (200_000, 2), np.uint64, endpoint=True)
    absent = rng.integers(0, spread, (200_000, 2), np.uint64, endpoint=True)
    compiled, plain = looked_up(known, np.concatenate([known, absent]), library)
    assert (compiled == plain).all()
    assert (compiled[:200_000] > 0).all()


def test_an_empty_table_answers_as_any_other(library):
    compiled, plain = looked_up(np.empty((0, 2), np.uint64), np.zeros((3, 2), np.uint64), library)
    assert compiled.tolist() == plain.tolist() == [0, 0, 0]


@given(st.lists(st.dictionaries(st.tuples(WORDS, st.integers(0, 2)), st.integers(-2, 2)), min_size=2, max_size=6))
def test_tables_that_are_joined_are_the_same(library, changes):
    """Where first words tie, weights cancel, or one list ends before the other begins."""
    found = []
    for lib in (library, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table, "LIB", lib)
            made = table.Table()
            for change in changes:
                made.add(
                    *table.combine(np.array([*change], np.uint64).reshape(-1, 2), np.array([*change.values()], int))[1:]
                )
            ids, weights = made.items()
            found.append((list(zip(map(tuple, ids.tolist()), weights.tolist(), strict=True)), made._runs[0].tie))
    sums = Counter()
    for change in changes:
        sums.update(change)
    assert found[0] == found[1]
    assert found[0][0] == sorted((one, weight) for one, weight in sums.items() if weight)
