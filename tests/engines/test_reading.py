"""How a source is read ahead of the flow: threads, lots and counting change the speed and never what arrives."""

import os
import threading
from collections import Counter
from types import SimpleNamespace

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st

from wpinq.core.engines import reading
from wpinq.core.plan.shapes import Read
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.state import counts as value_counts
from wpinq.errors import SourceError
from wpinq.sources import open_source


def data_of(reader):
    return SimpleNamespace(
        reader=reader,
        batches=reader.batches,
        counted=lambda names, _, **words: reader.batches(names, **words),
        name="records",
    )


def arrived(reader, columns, share=(0, 1), progress=None):
    """How often each record arrives."""
    read = Read(data_of(reader), columns)
    found = Counter()
    for batches in reading.batches(read, share, progress):
        for batch in batches:
            assert batch.frame.columns == [*columns, WEIGHT]
            for *record, weight in batch.frame.rows():
                assert weight > 0
                found[tuple(record)] += weight
    return found


def readers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("wpinq reads")]


@pytest.fixture
def threads(monkeypatch):
    monkeypatch.setattr(reading, "THREADED", 0)
    monkeypatch.setattr(reading, "BYTES_PER_LOT", 100)
    monkeypatch.setattr(reading, "cores", lambda: 3)


TEXTS = st.sampled_from(["", "a", "bb", "naïve", "a long page name", None])
CELLS = st.lists(st.tuples(TEXTS, st.integers(-3, 3)), max_size=60)


@settings(max_examples=often(40), deadline=None)
@given(rows=CELLS, size=st.integers(1, 30), dictionary=st.booleans(), plain=st.booleans())
def test_a_lone_column_is_counted(tmp_path_factory, rows, size, dictionary, plain):
    path = tmp_path_factory.mktemp("lone") / "rows.parquet"
    page = pa.array([page for page, _ in rows], pa.string())
    page = page.dictionary_encode() if plain else page
    table = pa.table({"page": page, "n": pa.array([n for _, n in rows], pa.int64())})
    pq.write_table(table, path, row_group_size=size, use_dictionary=dictionary)
    reader = open_source(path)
    assert arrived(reader, ("page", "n")) == Counter(rows)
    assert arrived(reader, ("page",)) == Counter((page,) for page, _ in rows)
    assert arrived(reader, ("n",)) == Counter((n,) for _, n in rows)


def test_a_lone_text_is_read_as_the_declared_type(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"n": ["1", "01", "x", None, "1"]}), path)
    assert arrived(open_source(path, columns={"n": int}), ("n",)) == {(1,): 3, (None,): 2}


@pytest.mark.parametrize(
    "numbers", [[-(2**63), -(2**63), -(2**63) + 3], [2**63 - 1, 2**63 - 1], [0, 2**62, -(2**63)], [5, None, 5], [], [7]]
)
def test_integers_are_counted_wherever_they_lie(tmp_path, numbers):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), path)
    assert arrived(open_source(path), ("n",)) == Counter((n,) for n in numbers)


@settings(max_examples=often(60), deadline=None)
@given(
    lots=st.lists(
        st.lists(st.integers(-3, 9) | st.integers(2**63 - 9, 2**63 - 1) | st.none(), max_size=40), max_size=6
    ),
    rows=st.integers(1, 60),
)
def test_what_is_counted_and_what_is_not_is_everything(lots, rows):
    schema = Schema((Column("n", Kind.INT),))
    frames = [pl.DataFrame({"n": lot}, {"n": pl.Int64}) for lot in lots]
    reader = SimpleNamespace(schema=schema, batches=lambda *_, **__: iter(frames), total_bytes=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "BYTES_PER_LOT", 200)
        patch.setattr(reading, "ROWS_PER_ROUND", rows)
        patch.setattr(value_counts, "PLACES_PER_BATCH", 4)
        found = arrived(reader, ("n",))
    assert found == Counter((n,) for lot in lots for n in lot)


def test_dense_integers_leave_once_and_in_pieces():
    schema = Schema((Column("n", Kind.INT),))
    counter = value_counts.Dense(schema)
    some = [pl.DataFrame({"n": range(low, low + 1000)}) for low in (0, 500, -700)]
    assert all(counter.add([frame]) for frame in some)
    assert not counter.add([pl.DataFrame({"n": [value_counts.MAX_PLACES]})])
    assert sum(map(len, counter.take())) == 2200
    assert counter.rows == 0
    assert list(counter.take()) == []


@settings(max_examples=often(60), deadline=None)
@given(
    shares=st.lists(
        st.sampled_from([0, 1000, -(2**63), 2**63 - 40]).flatmap(
            lambda low: st.lists(st.integers(low, low + 39), max_size=40)
        ),
        min_size=1,
        max_size=4,
    )
)
def test_what_threads_counted_leaves_once_wherever_it_lies(shares):
    schema = Schema((Column("n", Kind.INT),))
    gathered = value_counts.Gathered(len(shares))
    found, rows = Counter(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(value_counts, "PLACES_PER_BATCH", 16)
        patch.setattr(value_counts, "SPARSE", value_counts.MAX_PLACES)
        for share in shares:
            counts = value_counts.Dense(schema)
            assert counts.add([pl.DataFrame({"n": share}, {"n": pl.Int64})])
            for batch in gathered.take(counts):
                frame = batch.frame.select("n", WEIGHT)
                rows += frame["n"].to_list()
                found.update(dict(frame.iter_rows()))
    assert found == Counter(n for share in shares for n in share)
    if all(abs(n) < value_counts.MAX_PLACES for share in shares for n in share):
        assert len(rows) == len(set(rows)), "what several threads met is one record"


def test_threads_bring_what_one_brings(tmp_path, threads):
    rows = [(f"u{i % 17}", f"p{i % 5}") for i in range(5_000)]
    path, text = tmp_path / "rows.parquet", tmp_path / "rows.csv"
    frame = pl.DataFrame(rows, ["user", "page"], orient="row")
    frame.write_parquet(path, row_group_size=300)
    frame.write_csv(text)
    for file in (path, text):
        redact = []
        reader = open_source(file)
        assert arrived(reader, ("user", "page"), progress=redact.append) == Counter(rows)
        assert sum(redact) == reader.total_bytes
        parts = [arrived(reader, ("page",), share=(part, 2)) for part in range(2)]
        assert parts[0] + parts[1] == Counter((page,) for _, page in rows)
    assert not readers()


def test_a_file_that_is_damaged_midway_fails_here_and_ends_the_threads(tmp_path, threads):
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"n": range(50_000)}).write_parquet(path, row_group_size=500, compression="zstd")
    reader = open_source(path, columns={"n": int})
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 2_000] = b"\xff" * 2_000
    changed = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(changed.st_atime_ns, changed.st_mtime_ns))
    with pytest.raises(SourceError):
        arrived(reader, ("n",))
    assert not readers()


def test_whoever_stops_asking_ends_the_threads(tmp_path, threads):
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"n": range(50_000)}).write_parquet(path, row_group_size=500)
    batches = reading.batches(Read(data_of(open_source(path)), ("n",)), (0, 1), None)
    assert next(batches)
    assert readers()
    batches.close()
    assert not readers()
