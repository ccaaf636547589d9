"""Parquet decoded by Polars: the same values as Arrow's, whatever wrote the file."""

import datetime as dt
import decimal
from collections import Counter

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from depth import thin

from wpinq.errors import SourceError
from wpinq.sources import open_source
from wpinq.sources.tables import decode, parquet

ZONES = [None, "UTC", "Europe/Zurich"]
AWKWARD = {
    "text": pa.array(["a", None, "", "naïve", "a text that is longer than twelve bytes"]),
    "large": pa.array(["a", None, "", "\x00", "ß" * 99], pa.large_string()),
    "view": pa.array(["a", None, "", "\x00", "ß" * 99], pa.string_view()),
    "category": pa.array(["a", None, "b", "a", "a"]).dictionary_encode(),
    "numbers": pa.array([1, None, 1, 2, 2]).dictionary_encode(),
    "bool": pa.array([True, None, False, True, True]),
    "null": pa.nulls(5),
    "binary": pa.array([b"\xff", None, b"", b"a", b"a"]),
    "fixed": pa.array([b"ab", None, b"cd", b"ab", b"ab"], pa.binary(2)),
    "half": pa.array([1.5, None, 0, 1, 2], pa.float16()),
    "float": pa.array([1.1, None, float("nan"), -0.0, float("inf")], pa.float32()),
    "double": pa.array([1.1, None, float("nan"), -0.0, 2.0**70]),
    "decimal": pa.array([decimal.Decimal("0.10"), None, *map(decimal.Decimal, ("1.00", "2.50", "-1.00"))]),
    "date": pa.array([dt.date(2024, 2, 29), None, dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 1, 1)]),
    "time": pa.array([61, None, 0, 1, 2], pa.time32("s")),
    "span": pa.array([1500, None, 0, -1, 2], pa.duration("ms")),
    "list": pa.array([[1], None, [], [1, 2], [None]]),
    "struct": pa.array([{"a": 1}, None, {"a": None}, {"a": 1}, {"a": 2}]),
    **{f"int{bits}": pa.array([-(2 ** (bits - 1)), None, 0, 1, 1], f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": pa.array([2**bits - 1, None, 0, 1, 1], f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{
        f"at {unit} {zone}": pa.array([-1, None, 0, 1_999, 2**40], pa.timestamp(unit, zone))
        for unit in ("s", "ms", "us", "ns")
        for zone in ZONES
    },
}
PLAIN = {"text", "large", "bool", "float", "double", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"}
WRITINGS = {
    "dictionary": {},
    "plain": {"use_dictionary": False, "compression": "none", "write_statistics": False},
    "overflow": {"dictionary_pagesize_limit": 8, "data_page_size": 8, "write_batch_size": 1},
    "delta": {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY", "int64": "DELTA_BINARY_PACKED"}},
    "second pages": {"data_page_version": "2.0", "compression": "zstd"},
    "bare": {"store_schema": False, "compression": "gzip", "use_deprecated_int96_timestamps": True},
    "small groups": {"row_group_size": 2},
    "no rows": {},
}


@pytest.fixture(scope="module", params=WRITINGS)
def written(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("awkward") / "rows.parquet"
    table = pa.table(AWKWARD)
    pq.write_table(table.slice(0, 0) if request.param == "no rows" else table, path, **WRITINGS[request.param])
    return path


def frames(reader, columns, share=(0, 1), progress=None):
    found = list(reader.batches(columns, share=share, progress=progress))
    return pl.concat(found) if found else pl.DataFrame()


def by_arrow(reader, *args, **kwargs):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_decoded", lambda *_: iter(()))
        return frames(reader, *args, **kwargs)


def expect_polars(monkeypatch):
    """Nothing is left to Arrow."""
    monkeypatch.setattr(parquet._Part, "batches", lambda *_args, **_kwargs: iter(()))


@thin(5)
@pytest.mark.parametrize("name", AWKWARD)
def test_every_type_is_read_as_arrow_reads_it(written, name):
    reader = open_source(written)
    for columns in ([name], [name, "uint8"], ["uint16", name]):
        wanted = list(dict.fromkeys(columns))
        assert frames(reader, wanted).equals(by_arrow(reader, wanted))


def test_plain_types_are_decoded_by_polars_alone(written, monkeypatch):
    reader = open_source(written)
    (footer,) = reader.footers
    assert set(footer.plain) >= PLAIN
    assert not any(name.startswith("at ") for name in footer.plain)
    expected = by_arrow(reader, sorted(PLAIN))
    expect_polars(monkeypatch)
    assert str(frames(reader, sorted(PLAIN)).rows()) == str(expected.rows())


@pytest.mark.parametrize("writing", WRITINGS)
def test_without_arrow_the_columns_are_those_that_arrow_tells(tmp_path, writing, monkeypatch):
    """A file of plain columns alone is opened by Polars, to the same schema; of any other Arrow is asked."""
    kept = {"json": pa.array(["{}"] * 5, pa.json_()), "eight": pa.array([1] * 5, pa.bool8()), **AWKWARD}
    alone = set()
    for number, (name, column) in enumerate(kept.items()):
        path = tmp_path / f"{number}.parquet"
        options = {one: value for one, value in WRITINGS[writing].items() if one != "column_encoding"}
        pq.write_table(pa.table({name: column, "n": pa.array([0] * 5, pa.int16())}), path, **options)
        reader = open_source(path)
        if reader.footers[0].alone is not None:
            alone.add(name)
        with monkeypatch.context() as patch:
            patch.setattr(decode, "all_plain", lambda _: None)
            assert open_source(path).schema == reader.schema, name
    assert alone >= PLAIN or (writing == "bare" and not alone)
    assert not any(name.startswith("at ") for name in alone)


@pytest.mark.parametrize("kinds", [{"text": int}, {"int8": str}, {"double": int}, {"uint32": float}, {"bool": int}])
def test_declared_types_are_those_of_arrow(written, kinds, monkeypatch):
    (name,) = kinds
    reader = open_source(written, columns=kinds)
    expected = by_arrow(reader, [name])
    expect_polars(monkeypatch)
    assert frames(reader, [name]).equals(expected)


@pytest.mark.parametrize("whole", [0, parquet.WHOLE])
def test_files_of_other_writers(tmp_path, monkeypatch, whole):
    monkeypatch.setattr(parquet, "WHOLE", whole)
    rows = pl.DataFrame({"user": [f"u{i % 900}" for i in range(20_000)], "page": [i * i % 977 for i in range(20_000)]})
    rows.write_parquet(tmp_path / "polars.parquet", row_group_size=3_000)
    rows.to_pandas().to_parquet(tmp_path / "pandas.parquet")
    query = f"copy (from '{tmp_path / 'polars.parquet'}') to '{tmp_path / 'duckdb.parquet'}'"
    duckdb.sql(query + " (format parquet, row_group_size 4000)")
    expect_polars(monkeypatch)
    for writer in ("polars", "pandas", "duckdb"):
        reader = open_source(tmp_path / f"{writer}.parquet")
        told = []
        for parts in (1, 3):
            shares = [frames(reader, ["page", "user"], (part, parts), told.append) for part in range(parts)]
            found = pl.concat(share for share in shares if len(share))
            assert found.equals(rows.select("page", "user")), writer
            assert sum(told) == reader.total_bytes
            told.clear()


@pytest.mark.parametrize("group", [10, 100, 1000])
@pytest.mark.parametrize("unit", [1, 250, 10**6])
@pytest.mark.parametrize("bad", [0, 555, 999])
def test_a_text_that_is_no_utf_8_is_null_and_no_other_row_moves(tmp_path, monkeypatch, group, unit, bad):
    """Polars refuses such a file, after some of its rows; Arrow goes on where they end."""
    monkeypatch.setattr(parquet, "WHOLE", 1 << 20 if unit == 250 else 0)
    monkeypatch.setattr(decode, "ROWS_PER_FRAME", 7)
    monkeypatch.setattr(decode, "ROWS_PER_SCAN", unit)
    texts = [str(i).encode() if i != bad else b"\xff" for i in range(1000)]
    path = tmp_path / "rows.parquet"
    table = pa.table({"x": pa.array(texts).view(pa.string()), "n": range(1000)})
    pq.write_table(table, path, row_group_size=group, use_dictionary=False)
    reader, told = open_source(path), []
    expected = [(None if i == bad else str(i), i) for i in range(1000)]
    assert frames(reader, ["x", "n"], progress=told.append).rows() == expected
    assert sum(told) == reader.total_bytes
    halves = [frames(reader, ["x"], (part, 2)) for part in range(2)]
    assert Counter(pl.concat(one for one in halves if len(one))["x"]) == Counter(x for x, _ in expected)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    frame = pl.DataFrame({"x": [f"{i}" for i in range(5_000)]})
    monkeypatch.setattr(parquet, "WHOLE", 0)
    for change in ("rewritten", "cut"):
        frame.write_parquet(path, row_group_size=500)
        monkeypatch.setattr(decode, "ROWS_PER_SCAN", 500)
        batches = open_source(path).batches(["x"])
        next(batches)
        if change == "rewritten":
            frame.reverse().write_parquet(path, row_group_size=500)
        else:
            path.write_bytes(path.read_bytes()[:900])
        with pytest.raises(SourceError, match="changed after it was opened") as caught:
            list(batches)
        assert "\n" not in str(caught.value)


def test_names_are_taken_as_they_are(tmp_path, monkeypatch):
    """A path that Polars would take for a pattern, in a folder that is named as a partition is."""
    folder = tmp_path / "year=2024"
    folder.mkdir()
    path = folder / "a[1]*.parquet"
    pq.write_table(pa.table({"a.b": ["x"], "a": [1], "year": ["y"]}), path)
    expect_polars(monkeypatch)
    assert frames(open_source(path), ["year", "a.b", "a"]).rows() == [("y", "x", 1)]
