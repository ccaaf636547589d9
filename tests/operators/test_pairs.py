"""Pairs of a heavy key: in pieces, few at a time, summed as they come, and refused where too many differ."""

import subprocess
import sys
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import distance, expected, protected, run_flow, same

import wpinq
from wpinq.errors import EngineError
from wpinq.operators import pairs
from wpinq.stability import paths

records = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5)), max_size=25)


def tables(left, right):
    return protected(left, name="l", k="integer", x="integer"), protected(right, name="r", k="integer", y="integer")


def counted(*given):
    return [{record: Fraction(one.count(record)) for record in one} for one in given]


def product(k, x, y):
    return (k, x * y % 3)


def few(x, y):
    return y // (x - 2)  # drops the pairs of x = 2


@pytest.mark.parametrize("fine", [False, True], ids=["exact", "dithered"])
@pytest.mark.parametrize("result", [None, product, few, lambda x, y: (y, x)])
@settings(deadline=None, max_examples=15)
@given(left=records, right=records, piece=st.sampled_from([1, 2, 7, 10**6]), shards=st.integers(1, 3))
def test_pieces_of_any_size_give_what_is_defined(fine, result, left, right, piece, shards):
    one, two = tables(left, right)
    if fine:
        one = one.flat_map(lambda k, x: [(k, x), (k, x + 1)], columns={"k": int, "x": int})
    plan = one.join(two, on="k", result=result)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "PIECE", piece)
        assert same(run_flow(plan, shards), plan._node, expected(plan, *counted(left, right)))


@given(st.lists(st.integers(1, 20), max_size=30), st.integers(1, 25))
def test_pieces_cover_all_and_are_small(counts, most):
    left = pl.DataFrame({pairs.COUNT: pl.Series(counts, dtype=pl.Int64)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "PIECE", most)
        cut = [piece[pairs.COUNT].to_list() for piece in pairs.pieces(left)]
    assert [count for piece in cut for count in piece] == counts
    assert cut
    assert all(sum(piece) <= most or len(piece) == 1 for piece in cut)


def test_a_function_of_the_pair_is_as_stable_as_the_pair():
    one, two = tables([], [])
    plan = one.join(two, on="k", result=product)
    before, after = counted([(1, x) for x in range(5)], [(1, y) for y in range(4)]), counted([(1, 9)], [(1, 7)])
    for side in (0, 1):
        moved = [dict(given) for given in before]
        moved[side] |= after[side]
        assert distance(expected(plan, *before), expected(plan, *moved)) <= 1
    assert set(paths(plan._node).values()) == {1}


def test_too_many_different_pairs_are_refused_without_a_count(monkeypatch):
    monkeypatch.setattr(pairs, "PIECE", 1000)
    monkeypatch.setattr(pairs, "MOST", 3000)
    rows = [(1, n) for n in range(100)]
    one, two = tables(rows, rows)
    with pytest.raises(EngineError, match="over 3,000 different pairs") as told:
        run_flow(one.join(two, on="k"))
    assert "10,000" not in str(told.value)
    assert "10000" not in str(told.value)
    few_left = one.join(two, on="k", result=product)  # as many pairs, of which few differ
    assert same(run_flow(few_left), few_left._node, expected(few_left, *counted(rows, rows)))


def test_as_many_pairs_as_records_are_never_refused(monkeypatch):
    """Keys that are not heavy: the limit is on what is large for the records that there are."""
    monkeypatch.setattr(pairs, "PIECE", 100)
    monkeypatch.setattr(pairs, "MOST", 10)
    rows = [(n, n) for n in range(1000)]
    one, two = tables(rows, rows)
    assert len(run_flow(one.join(two, on="k")).content()[0]) == 1000


HEAVY = """
import sys
import numpy as np, polars as pl, wpinq
from strategies import run_flow
count, what = int(sys.argv[1]), sys.argv[2]
one, two = (
    wpinq.protect(pl.DataFrame({"k": np.ones(count, np.int64), name: np.arange(count)}), budget=1, name=name)
    for name in "xy"
)
results = {"all": lambda k, x, y: (k, x * y % 10), "key": lambda k: k}
found = run_flow(one.join(two, on="k", result=results[what]))
with open("/proc/self/status") as status:  # what getrusage tells of a child includes its parent before it
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(peak >> 10, len(found.content()[0]), found.content()[1][:, 0].sum())
"""


def heavy(count, what, tmp_path):
    script = tmp_path / "heavy.py"
    script.write_text(HEAVY)
    code = [sys.executable, str(script), str(count), what]
    path = ":".join(str(place) for place in (wpinq.__path__[0] + "/..", __file__.rsplit("/", 2)[0]))
    done = subprocess.run(code, capture_output=True, text=True, check=True, env={"PYTHONPATH": path})
    return [int(number) for number in done.stdout.split()]


@pytest.mark.parametrize(
    ("count", "what", "bins"),
    [
        pytest.param(20_000, "all", 10, marks=pytest.mark.slow),
        (3_000, "all", 10),
        (20_000, "key", 1),
    ],
)
def test_memory_of_one_key(count, what, bins, tmp_path):
    """20,000 x 20,000 pairs in rows of 40 bytes are 16 GB; in pieces they take no more than 3,000 x 3,000 do."""
    megabytes, found, total = heavy(count, what, tmp_path)
    assert megabytes < 900
    assert found == bins
    ideal = count * count / (2 * count)
    assert abs(total / 2**40 / ideal - 1) < 1e-6
