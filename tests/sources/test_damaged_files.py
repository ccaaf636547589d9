"""Damage to what holds records, which is found before anything is charged; damaged records are nobody's business."""

import gzip
import sqlite3
import struct
from collections import Counter
from contextlib import closing

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from depth import deep

import wpinq
from wpinq.errors import SourceError
from wpinq.sources import open_source
from wpinq.sources.databases.duckdb import duckdb
from wpinq.sources.tables import parquet

KEY = bytes(range(16))
ROWS = [(f"u{number % 7}", f"p{number % 5}" * 9) for number in range(4000)]
CSV = ("user,page\n" + "".join(f"{user},{page}\n" for user, page in ROWS)).encode()
TABLE = pl.DataFrame(ROWS, schema=["user", "page"], orient="row")


def flipped(content, place):
    return content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :]


def packed(*parts):
    return b"".join(gzip.compress(part, mtime=0) for part in parts)


def uncharged(path, column="user", **words):
    """Whether a question about one column is refused, and nothing was charged for it."""
    with pytest.raises(SourceError, match=r"damaged|is not a") as refused:
        views = wpinq.protect(path, budget=2, **words)
        views.map(column).measure(1).observe("u1")
    assert "u1" not in str(refused.value)
    assert "\n" not in str(refused.value)
    ledger = path.with_name(path.name + ".ledger")
    assert not ledger.exists() or wpinq.budget(ledger).spent == 0
    return True


def answered(path, column="user", **words):
    views = wpinq.protect(path, budget=2, **words)
    views.map(column).measure(1).observe("u1")
    return wpinq.budget(views).spent


def test_a_cut_or_damaged_gzip_file_is_not_charged_and_the_mended_one_is_charged_once(tmp_path):
    whole = packed(CSV)
    path = tmp_path / "views.csv.gz"
    cut = [whole[: len(whole) // 2], whole[:-8], whole[:-1], packed(CSV[:9000], CSV[9000:])[:-3]]
    for damaged in [*cut, flipped(whole, len(whole) - 6), flipped(whole, len(whole) - 2), whole + b"garbage"]:
        path.write_bytes(damaged)
        assert uncharged(path)
    path.write_bytes(whole)
    assert answered(path) == 1
    assert answered(path) == 1


@pytest.mark.parametrize(
    "content",
    [packed(CSV[:5000], CSV[5000:]), packed(CSV) + bytes(512), packed(CSV, b""), b"", packed(b"")],
    ids=["members", "zeros behind", "empty member", "no byte", "nothing in it"],
)
def test_gzip_files_that_can_be_read_are_read_as_before(tmp_path, content):
    path = tmp_path / "views.csv.gz"
    path.write_bytes(content)
    reader = open_source(path, columns=("user", "page"))
    assert reader.content(KEY) == open_source(path, columns=("user", "page")).content(KEY)
    found = Counter(row for frame in reader.batches(("user", "page")) for row in frame.rows())
    assert found == (Counter(ROWS) if len(content) > 100 else Counter())


def test_the_digest_of_a_gzip_file_is_that_of_its_bytes(tmp_path):
    path = tmp_path / "views.csv.gz"
    path.write_bytes(packed(CSV))
    before = open_source(path).content(KEY), open_source(path).content()
    path.write_bytes(gzip.compress(CSV, 1, mtime=0))
    after = open_source(path).content(KEY), open_source(path).content()
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_one_damaged_file_of_a_rotated_set_is_enough(tmp_path):
    line = b'1.2.3.4 - - [01/Jun/2026:00:00:00 +0000] "GET /a HTTP/1.1" 200 5\n'
    (tmp_path / "access.log").write_bytes(line)
    (tmp_path / "access.log.1.gz").write_bytes(packed(line * 50))
    (tmp_path / "access.log.2.gz").write_bytes(packed(line * 50)[:-4])
    reader = open_source(str(tmp_path / "access.log*"))
    with pytest.raises(SourceError, match=r"access\.log\.2\.gz: cannot be read; it may be damaged or cut off"):
        reader.content(KEY)


def test_a_name_that_ends_like_gzip_files_means_nothing_for_tables(tmp_path):
    path = tmp_path / "views.parquet.gz"
    TABLE.write_parquet(path)
    assert open_source(path, format="parquet").content(KEY)


def test_a_damaged_line_is_no_damage_of_its_file(tmp_path):
    path = tmp_path / "views.csv.gz"
    path.write_bytes(packed(CSV + b'\xff\xfe,"a"b\n"\nu1\n' + b"u1,p1\0\n"))
    assert answered(path) == 1


@pytest.mark.parametrize(("compression", "threads"), [("zstd", 1), ("snappy", 1), ("gzip", 1), ("zstd", 3)])
def test_a_parquet_file_with_a_damaged_page_of_any_column_is_charged_for_no_question(
    tmp_path, compression, threads, monkeypatch
):
    if threads > 1:  # as of a file of many megabytes, whose row groups threads decode
        monkeypatch.setattr(parquet, "THREADED", 0)
        monkeypatch.setattr(parquet, "WHOLE", 0)
        monkeypatch.setattr(parquet, "cores", lambda: threads)
    path = tmp_path / "views.parquet"
    pq.write_table(TABLE.to_arrow(), path, compression=compression, row_group_size=1000)
    group = pq.ParquetFile(path).metadata.row_group(2)
    place = next(c for c in map(group.column, range(2)) if c.path_in_schema == "page").dictionary_page_offset
    whole = path.read_bytes()
    path.write_bytes(whole[:place] + b"\xff" * 40 + whole[place + 40 :])
    assert uncharged(path, "user")
    assert uncharged(path, "page")
    path.write_bytes(whole)
    assert answered(path) == 1


def test_a_directory_of_tables_is_checked_file_by_file(tmp_path):
    for month in ("06", "07"):
        (tmp_path / "views" / f"month={month}").mkdir(parents=True)
        TABLE.write_parquet(tmp_path / "views" / f"month={month}" / "part.parquet", compression="zstd")
    damaged = tmp_path / "views" / "month=07" / "part.parquet"
    damaged.write_bytes(damaged.read_bytes()[:4] + bytes(60) + damaged.read_bytes()[64:])
    assert uncharged(tmp_path / "views")
    assert uncharged(tmp_path / "views", "month")


@pytest.mark.parametrize("form", ["file", "stream"])
def test_an_arrow_file_with_damaged_buffers_is_not_charged(tmp_path, form):
    path = tmp_path / "views.arrow"
    batch, options = TABLE.to_arrow().combine_chunks().to_batches()[0], pa.ipc.IpcWriteOptions(compression="zstd")
    make = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
    with path.open("wb") as sink, make(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    whole = path.read_bytes()
    assert answered(path) == 1
    for ledger in tmp_path.glob("views.arrow.*"):
        ledger.unlink()
    last = whole.rindex(b"\x28\xb5\x2f\xfd")  # the last compressed buffer, of the second column
    path.write_bytes(whole[:last] + bytes(16) + whole[last + 16 :])
    assert uncharged(path, "user")


def test_an_arrow_file_whose_texts_end_before_they_begin_is_damaged_and_texts_that_are_no_utf8_are_null(tmp_path):
    path = tmp_path / "views.arrow"

    def write(offsets, text):
        places = pa.array(offsets, pa.int32()).buffers()[1]
        users = pa.StringArray.from_buffers(len(offsets) - 1, places, pa.py_buffer(text))
        with pa.ipc.new_file(path, pa.schema({"user": pa.string()})) as writer:
            writer.write_batch(pa.record_batch({"user": users}))

    write([0, 2, 4, 6], b"u1\xff\xfeu1")
    assert answered(path) == 1
    for ledger in tmp_path.glob("views.arrow.*"):
        ledger.unlink()
    write([0, 1 << 20, 4, 6], b"u1u2u1")
    assert uncharged(path)


def backwards():
    """Texts of which the second ends before it begins."""
    places = pa.array([0, 5, 2, 6, 6], pa.int32()).buffers()[1]
    return pa.StringArray.from_buffers(4, places, pa.py_buffer(b"abcdef"))


def views():
    """Texts of which the last lies in a buffer that is not there."""
    lie = [struct.pack("<i4sii", 20, b"aaaa", place, 10**8 * place) for place in (0, 0, 0, 7)]
    return pa.Array.from_buffers(pa.string_view(), 4, [None, pa.py_buffer(b"".join(lie)), pa.py_buffer(b"a" * 100)])


def lists(type_, number):
    """Lists of which the last begins far behind what they hold."""
    places, sizes = (pa.array(one, number).buffers()[1] for one in ([0, 0, 0, 10**9], [1, 1, 1, 1]))
    return pa.Array.from_buffers(type_(pa.int64()), 4, [None, places, sizes], children=[pa.array([1, 2])])


DAMAGED = {
    "views of texts": views,
    "views of lists": lambda: lists(pa.list_view, pa.int32()),
    "large views of lists": lambda: lists(pa.large_list_view, pa.int64()),
    "texts of another type": lambda: pa.ExtensionArray.from_storage(pa.json_(), backwards()),
    "texts in lists of one size": lambda: pa.FixedSizeListArray.from_arrays(backwards(), 1),
    "texts in maps": lambda: pa.MapArray.from_arrays([0, 1, 2, 3, 4], backwards(), pa.array([1, 2, 3, 4])),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_places_of_newer_types_outside_of_their_buffers_are_refused_before_they_end_the_process(tmp_path, name):
    batch = pa.record_batch({"user": ["a", "b", "c", "d"], "x": DAMAGED[name]()})
    with pa.ipc.new_file(str(tmp_path / "x.arrow"), batch.schema) as file:
        file.write_batch(batch)
    rows = wpinq.protect(tmp_path / "x.arrow", budget=1, ledger=tmp_path / "ledger")
    with pytest.raises(SourceError, match="or is damaged"):
        rows.map("user").measure(1)
    assert rows.budget.spent == 0


WHOLE = {
    "views": pa.array(["ann", None, "a text that is longer than twelve"], pa.string_view()),
    "lists": pa.array([[1], None, [2, 3]], pa.list_view(pa.int64())),
    "large lists": pa.array([["a"], None, ["b", "c"]], pa.large_list_view(pa.string_view())),
    "maps": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    "sized": pa.array([["a"], None, ["b"]], pa.list_(pa.string(), 1)),
    "runs": pa.array(["a", "a", None], pa.run_end_encoded(pa.int32(), pa.string())),
    "uuids": pa.array([bytes(16), None, bytes(16)], pa.uuid()),
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("cut", [slice(0, 3), slice(1, 3), slice(3, 3)], ids=str)
def test_whole_columns_of_newer_types_are_no_damage(tmp_path, name, cut):
    batch = pa.record_batch({"x": WHOLE[name][cut]})
    with pa.ipc.new_file(str(tmp_path / "x.arrow"), batch.schema) as file:
        file.write_batch(batch)
    rows = wpinq.protect(tmp_path / "x.arrow", budget=10**7, ledger=tmp_path / "ledger")
    assert round(rows.map(lambda x: 1).measure(10**6).observe(1)) == batch.num_rows


def test_a_sqlite_file_with_a_damaged_page_is_charged_for_no_question(tmp_path):
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE views (user TEXT, page TEXT, note TEXT)")
        made.executemany("INSERT INTO views VALUES (?, ?, ?)", [(*row, "x" * 9000) for row in ROWS[:50]])
    made.close()
    whole = bytearray(path.read_bytes())
    for page in range(2, len(whole) // 4096):  # the chains of pages that hold the rest of long texts
        if whole[page * 4096 + 4 : page * 4096 + 24] == b"x" * 20:
            whole[page * 4096 : page * 4096 + 4] = (1 << 20).to_bytes(4, "big")
    path.write_bytes(whole)
    with pytest.raises(SourceError, match="cannot be read"):
        views = wpinq.protect(wpinq.sqlite(path, table="views"), budget=2, ledger=tmp_path / "l")
        views.map("user").measure(1).observe("u1")
    assert not (tmp_path / "l").exists() or wpinq.budget(tmp_path / "l").spent == 0


@deep
def test_a_duckdb_file_with_a_damaged_block_is_charged_for_no_question(tmp_path):
    library = pytest.importorskip("duckdb")
    path = tmp_path / "shop.duckdb"
    with library.connect(str(path)) as made:
        made.execute("CREATE TABLE views AS SELECT 'u' || i % 7 AS user, md5(i::text) AS page FROM range(200000) r(i)")
    whole = path.read_bytes()
    size = 1 << 18
    refused = 0
    for block in range((len(whole) - 3 * 4096) // size):
        place = 3 * 4096 + block * size + size // 3
        path.write_bytes(flipped(whole, place))
        try:
            reader = duckdb(path, table="views").open_reader(None)
        except SourceError:
            continue  # it lies where the table is described
        try:
            list(reader.batches(["user"]))
            list(reader.batches(["page"]))
        except SourceError:
            refused += 1
            with pytest.raises(SourceError, match="cannot be read"):
                wpinq.protect(duckdb(path, table="views"), budget=2, ledger=tmp_path / "l").map("user").measure(1)
            assert wpinq.budget(tmp_path / "l").spent == 0
    assert refused


def test_what_is_damaged_is_found_in_the_pass_that_reads_the_bytes(tmp_path, monkeypatch):
    path = tmp_path / "views.csv.gz"
    path.write_bytes(packed(CSV * 20))
    reader, opened, real = open_source(path), [], type(path).open
    monkeypatch.setattr(type(path), "open", lambda self, *a, **w: opened.append(self.name) or real(self, *a, **w))
    reader.content(KEY)
    assert opened == ["views.csv.gz"]
