"""Pairs of a heavy key: in pieces, few at a time, summed as they come behind all linear steps that follow."""

import subprocess
import sys
from fractions import Fraction

import polars as pl
import pytest
from depth import deep, often, thin
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import distance, expected, leaves, protected, run_flow, same

import wpinq
from wpinq.core.engines import linear, select
from wpinq.core.operators import pairs
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.stability import paths
from wpinq.core.records.batch import Batch
from wpinq.core.state import write_buffer
from wpinq.core.state.histogram import Histogram

records = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5)), max_size=25)


def tables(left, right):
    return protected(left, name="l", k="integer", x="integer"), protected(right, name="r", k="integer", y="integer")


def counted(*given):
    return [{record: Fraction(one.count(record)) for record in one} for one in given]


def product(k, x, y):
    return (k, x * y % 3)


def few(x, y):
    return y // (x - 2)  # drops the pairs of x = 2


@thin(3)
@pytest.mark.parametrize("fine", [False, True], ids=["exact", "dithered"])
@pytest.mark.parametrize("result", [None, product, few, lambda x, y: (y, x)])
@settings(deadline=None, max_examples=often(15))
@given(
    left=records,
    right=records,
    piece=st.sampled_from([1, 2, 7, 10**6]),
    shards=st.integers(1, 3),
    most=st.sampled_from([None, 12]),
)
def test_pieces_of_any_size_give_what_is_defined(fine, result, left, right, piece, shards, most):
    one, two = tables(left, right)
    if fine:
        one = one.flat_map(lambda k, x: [(k, x), (k, x + 1)], columns={"k": int, "x": int})
    plan = one.join(two, on="k", result=result, at_most=most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "PAIRS_PER_PIECE", piece)
        assert same(run_flow(plan, shards), plan._node, expected(plan, *counted(left, right)))


FOLLOWING = {
    "map": lambda pairs, left: pairs.map(product),
    "filter, map": lambda pairs, left: pairs.filter(lambda x, y: x < y).map(lambda x, y: y - x),
    "flat_map": lambda pairs, left: pairs.flat_map(lambda x, y: list(range(x, y)), columns={"n": int}),
    "subtract": lambda pairs, left: pairs.map(lambda k, x: (k, x)).subtract(left).map(lambda x: x % 2),
    "two branches": lambda pairs, left: pairs.map(lambda k, x: (k, x)).subtract(pairs.map(lambda k, y: (k, y))),
    "two uses": lambda pairs, left: pairs.map(lambda x: x).union(pairs.map(lambda y: y)),
    "itself": lambda pairs, left: pairs.concat(pairs.filter(lambda x: x > 1)).subtract(pairs).map(lambda x: x),
    "nothing": lambda pairs, left: pairs,
}


@thin(3)
@pytest.mark.parametrize("following", FOLLOWING)
@settings(deadline=None, max_examples=often(15))
@given(left=records, right=records, piece=st.sampled_from([1, 5, 10**6]), rows=st.sampled_from([1, 4, 10**6]))
def test_pieces_go_through_all_linear_steps(following, left, right, piece, rows):
    one, two = tables(left, right)
    plan = FOLLOWING[following](one.join(two, on="k"), one)
    met = {"l": left, "r": right}
    given = counted(*(met[source.data.name] for source in leaves(plan)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "PAIRS_PER_PIECE", piece)
        patch.setattr(write_buffer, "MAX_WAITING_ROWS", rows)
        assert same(run_flow(plan), plan._node, expected(plan, *given))


@pytest.mark.parametrize("live", [False, True])
def test_what_waits_behind_the_steps_is_what_differs(live):
    """100 x 100 pairs, 300 at a time, of 3 different results: a last answer goes on as it comes.

    Of one that is not the last, never more than two pieces are held.
    """
    rows = [(1, n) for n in range(100)]
    one, two = tables([], []) if live else tables(rows, rows)
    held = []

    class Watched(write_buffer.Waiting):
        def absorb(self, batch):
            super().absorb(batch)
            held.append(self._rows)

    push = linear.Linear.push

    def noted(self, batch):
        given = push(self, batch)
        held.extend(len(one) for some in given.values() for one in some)
        return given

    plan = one.join(two, on="k").filter(lambda x, y: x + y > 3).map(product)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "PAIRS_PER_PIECE", 300)
        patch.setattr(write_buffer, "MAX_WAITING_ROWS", 300)
        if live:
            patch.setattr(linear, "Waiting", Watched)
            left, right = (node.data for node in leaves(plan))
            flow = select.live([fit_noise(plan._node)], left.identity_key)
            frame = pl.DataFrame(rows, {"k": pl.Int64, "y": pl.Int64}, orient="row")
            (found,) = flow.push([(data, Batch.of(frame.rename({"y": data.reader.schema.names[1]}), data.reader.schema))
                                  for data in (left, right)])  # fmt: skip
            flow.close()
        else:
            patch.setattr(linear.Linear, "push", noted)
            found = run_flow(plan)
    assert same(found, plan._node, expected(plan, *counted(rows, rows)))
    assert len(held) >= 30
    assert max(held) <= (600 if live else 300)


@settings(deadline=None, max_examples=often(20))
@given(changes=st.lists(st.tuples(records, records), min_size=1, max_size=4), piece=st.sampled_from([1, 7, 10**6]))
def test_pieces_of_a_live_flow(changes, piece):
    """Epoch by epoch: what comes later finds the pairs that the first change made by its key columns."""
    schema = {"k": pl.Int64, "y": pl.Int64}
    one, two = tables([], [])
    plan = one.join(two, on="k").filter(lambda x, y: x <= y).map(product)
    root = fit_noise(plan._node)
    left, right = (node.data for node in leaves(plan))
    total = Histogram(root.schema, left.identity_key)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "PAIRS_PER_PIECE", piece)
        flow = select.live([root], left.identity_key)
        for epoch in changes:
            frames = (pl.DataFrame(rows, schema, orient="row") for rows in epoch)
            items = [
                (data, Batch.of(frame.rename({"y": data.reader.schema.names[1]}), data.reader.schema))
                for data, frame in zip((left, right), frames, strict=True)
            ]
            (change,) = flow.push(items)
            total.add(change._settled().items())
        flow.close()
    whole = [[row for epoch in changes for row in epoch[side]] for side in (0, 1)]
    assert same(total, plan._node, expected(plan, *counted(*whole)))


@given(st.lists(st.integers(1, 20), max_size=30), st.integers(1, 25))
def test_pieces_cover_all_and_are_small(counts, most):
    left = pl.DataFrame({pairs.COUNT: pl.Series(counts, dtype=pl.Int64)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "PAIRS_PER_PIECE", most)
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


HEAVY = """
import sys
import numpy as np, polars as pl, wpinq
from strategies import run_flow
count, what = int(sys.argv[1]), sys.argv[2]
one, two = (
    wpinq.protect(pl.DataFrame({"k": np.ones(count, np.int64), name: np.arange(count)}), budget=1, name=name)
    for name in "xy"
)
pairs = one.join(two, on="k")
plans = {
    "result": lambda: one.join(two, on="k", result=lambda x, y: x * y % 10),
    "map": lambda: pairs.map(lambda x, y: x * y % 10),
    "filter": lambda: pairs.filter(lambda x, y: x * y >= 0).map(lambda x, y: x * y % 10),
    "key": lambda: pairs.map(lambda k, x, y: k),
    "constant": lambda: pairs.filter(lambda k: k == 1).map(lambda k, x, y: 7),
    "one side": lambda: pairs.map(lambda k, x: x % 10),
}
found = run_flow(plans[what]())
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


@deep
@pytest.mark.parametrize(
    ("count", "what", "bins"),
    [
        (7_000, "filter", 10),
        (3_000, "result", 10),
        (3_000, "map", 10),
        (150_000, "key", 1),
        (150_000, "constant", 1),
        (150_000, "one side", 10),
    ],
)
def test_memory_of_one_key(count, what, bins, tmp_path):
    """7,000 x 7,000 pairs in rows of 40 bytes are 2 GB, and 150,000 x 150,000 are a terabyte."""
    megabytes, found, total = heavy(count, what, tmp_path)
    assert megabytes < 900
    assert found == bins
    ideal = count * count / (2 * count)
    assert abs(total / 2**40 / ideal - 1) < 1e-6
