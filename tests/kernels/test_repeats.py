"""What repeats near by in a column: the same records with the same weights, in fewer rows."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wpinq.core import kernels
from wpinq.core.kernels import repeats as counted
from wpinq.core.records import batch as batch_module
from wpinq.core.records import identity
from wpinq.core.records.batch import END, WEIGHT, Batch
from wpinq.core.records.schema import Column, Kind, Schema, polars_type
from wpinq.core.state import counts

VALUES = {
    Kind.TEXT: st.sampled_from(["", "a", "b", "\0", "twelve bytes", "thirteen byte", "thirteen bytf", "x" * 40 + "y"])
    | st.text(max_size=30),
    Kind.BYTES: st.binary(max_size=3) | st.binary(min_size=12, max_size=14),
    Kind.INT: st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]),
    Kind.FLOAT: st.sampled_from([0.0, 1.5, -1.5, float("inf")]),
    Kind.BOOL: st.booleans(),
    Kind.TIME: st.datetimes(),
    Kind.DATE: st.dates(),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("bits", [1, 15])
@given(data=st.data())
def test_weights_are_those_of_a_counter(library, kind, bits, data):
    values = data.draw(st.lists(st.none() | VALUES[kind], max_size=40))
    start = data.draw(st.integers(0, len(values)))
    schema = Schema((Column("x", kind),))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "LIB", library)
        patch.setattr(counted, "BITS", bits)
        frame = pl.DataFrame([pl.Series("x", values, polars_type(kind))])[start:]
        frame = pl.concat([frame, frame, frame[:1]], rechunk=False)
        found = counts.Repeats(schema).count(frame)
    weights = found[WEIGHT] if WEIGHT in found.columns else np.ones(len(found), np.int64)
    sums = Counter()
    for value, weight in zip(found["x"], weights, strict=True):
        sums[value] += weight
    assert sums == Counter(frame["x"])
    assert found["x"].dtype == frame["x"].dtype


def test_what_repeats_is_found_and_what_does_not_is_left(library, monkeypatch):
    monkeypatch.setattr(kernels, "LIB", library)
    state = counts.Repeats(Schema((Column("x", Kind.TEXT),)))
    few = pl.DataFrame({"x": [f"a name of some length {i % 50}" for i in range(5_000)]})
    assert state.count(few).height < 200
    many = pl.DataFrame({"x": [str(i) for i in range(5_000)]})
    assert WEIGHT in state.count(many).columns
    assert [WEIGHT in state.count(few).columns for _ in range(counts.PAUSE + 1)] == [False] * counts.PAUSE + [True]


def test_several_columns_and_no_kernels_leave_a_frame_as_it_is(monkeypatch):
    frame = pl.DataFrame({"x": ["a", "a"], "y": [1, 1]})
    assert counts.Repeats(Schema((Column("x", Kind.TEXT), Column("y", Kind.INT)))).count(frame) is frame
    monkeypatch.setattr(kernels, "LIB", None)
    one = frame.select("x")
    assert counts.Repeats(Schema((Column("x", Kind.TEXT),))).count(one) is one


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_few_rows_are_added_up_as_polars_does(library, kind, data):
    """With nulls, with a range, and where weights cancel."""
    rows = data.draw(st.lists(st.tuples(st.none() | VALUES[kind], st.integers(0, 1), st.integers(-2, 2)), max_size=30))
    values, starts, weights = zip(*rows, strict=True) if rows else ((), (), ())
    ranged = {"y": starts, END + "y": [start + 2 for start in starts], WEIGHT: weights}
    frame = pl.DataFrame(
        [pl.Series("x", values, polars_type(kind)), *(pl.Series(*one, pl.Int64) for one in ranged.items())]
    )
    batch, found = Batch(frame, Schema((Column("x", kind), Column("y", Kind.INT, ranged=True)))), []
    for lib in (library, None):
        with pytest.MonkeyPatch.context() as patch:
            for module in (batch_module, identity):
                patch.setattr(module, "LIB", lib)
            found.append(sorted(map(repr, batch.consolidate().frame.iter_rows())))
    assert found[0] == found[1]
