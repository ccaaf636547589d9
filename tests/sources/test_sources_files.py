"""Files that are not there or not right, and what the curator is shown."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from wpinq.apps.cli.check import check as check_command
from wpinq.errors import SourceError
from wpinq.sources import open_source
from wpinq.sources.check import check
from wpinq.sources.form import parse_columns
from wpinq.sources.report import NUL, QUOTING, RAGGED, RETURN, TYPE, UTF8
from wpinq.sources.text import grammar

SECRET = "marker-of-a-record"
MESSY = (
    b"user,page\n"  # 1
    b"a,1\r\n"
    b"\xff,2\n"  # 3
    b"ragged\n"
    b"r,a,g,\xff\n"  # 5
    b'"q,""q",3\n'
    b'"bad"x,4\n'  # 7
    b"n\0,5\n"
    b"\n"  # 9
    b"c\rr,6\n"
    b"d,six\n"  # 11
    b'"x,7\n'
    b"e,"
)


def refusal(*args, **options):
    with pytest.raises(SourceError) as caught:
        open_source(*args, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert SECRET not in message
    assert caught.value.__cause__ is None
    return message


def test_bad_input_is_one_clear_line(tmp_path):
    (tmp_path / "noise.parquet").write_bytes(random.Random(7).randbytes(5000))
    (tmp_path / "short.parquet").write_bytes(b"PAR1")
    (tmp_path / "noise.csv").write_bytes(random.Random(8).randbytes(5000))
    (tmp_path / "noise.csv.gz").write_bytes(random.Random(9).randbytes(5000))
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "blank.csv").write_bytes(b"\n\r\n")
    (tmp_path / "x.json").write_bytes(b"{}")
    (tmp_path / "good.csv").write_bytes(b"user,page\n")
    (tmp_path / "twice.csv").write_bytes(b"user,user\n")
    expected = {
        "none.csv": "no such file",
        "none*.csv": "no file matches",
        "noise.parquet": "not a Parquet file",
        "short.parquet": "not a Parquet file",
        "noise.csv": "header",
        "noise.csv.gz": "cannot be read",
        "empty.csv": "not even a header",
        "blank.csv": "not even a header",
        "x.json": "known format",
        "*.*": "not of one format",
        "twice.csv": "'user' stands twice",
    }
    for name, what in expected.items():
        given = str(tmp_path / name)
        message = refusal(given)
        assert given in message, name
        assert what in message, name
    assert "not of one format" in refusal(tmp_path), "a directory is what lies in it"
    (tmp_path / "empty").mkdir()
    assert "holds no file" in refusal(tmp_path / "empty")
    assert "no column 'pages'; there are 'user', 'page'" in refusal(tmp_path / "good.csv", columns=["pages"])
    assert "need names" in refusal(tmp_path / "good.csv", header=False)
    for source in (5, None, b"bytes", {"a": 1}):
        assert "is not a source of records" in refusal(source)


@pytest.mark.parametrize(
    ("columns", "what"),
    [("user", "not a list of names"), (5, "not a list of names"), ([1], "not a text"),
     ({"user": "whole"}, "no type 'whole'"), ({"user": list}, "no type"),
     (["user", "user"], "stands twice"), ([], "no column")],
)  # fmt: skip
def test_columns_that_are_not_declared_well(tmp_path, columns, what):
    path = tmp_path / "x.csv"
    path.write_bytes(b"user,page\n")
    assert what in refusal(path, columns=columns)
    assert what in refusal([], columns=columns)


def test_no_message_or_representation_holds_a_record(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(f"user,page\n{SECRET},1\n".encode())
    assert SECRET not in repr(open_source(path))
    pq.write_table(pa.table({"user": [SECRET]}), tmp_path / "x.parquet")
    assert SECRET not in repr(open_source(tmp_path / "x.parquet"))
    refusal(tmp_path / "x.parquet", columns={"user": "nothing"})


def test_a_file_that_may_not_be_read(mortal):
    path = mortal / "x.csv"
    path.write_bytes(b"a\n")
    path.chmod(0)
    assert "permissions" in refusal(path)


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet"])
def test_a_file_that_changes_is_refused(tmp_path, name):
    path = tmp_path / name

    def write(mark):
        if name.endswith(".parquet"):
            pq.write_table(pa.table({"user": [mark] * 9}), path)
        else:
            text = b"user\n" + mark.encode() * 9 + b"\n"
            path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        os.utime(path, ns=(1, len(mark)))

    write("one")
    reader = open_source(path)
    frames = reader.batches(["user"])
    assert next(frames).height
    write("three")
    with pytest.raises(SourceError, match=r"changed after it was opened|damaged or cut off"):
        list(frames)
    with pytest.raises(SourceError, match="changed after it was opened"):
        next(reader.batches(["user"]))
    path.unlink()
    with pytest.raises(SourceError, match="no such file"):
        next(reader.batches(["user"]))


def test_a_gzip_file_that_is_cut_off(tmp_path):
    path = tmp_path / "x.csv.gz"
    whole = gzip.compress(b"user\n" + random.Random(3).randbytes(100_000).hex().encode() + b"\nx\n")
    path.write_bytes(whole[:-500])
    with pytest.raises(SourceError, match="damaged or cut off"):
        list(open_source(path).batches(["user"]))


def test_version_and_content(tmp_path):
    path, link = tmp_path / "x.csv", tmp_path / "link.csv"
    path.write_bytes(b"user\na\n")
    os.utime(path, ns=(5, 5))
    link.symlink_to(path)
    reader = open_source(path)
    assert reader.version() == f"{path.resolve()}\t7\t5" == open_source(link).version()
    assert reader.path == path.resolve() == open_source(link).path
    expected = hashlib.blake2b((7).to_bytes(8, "little") + b"user\na\n", digest_size=32).digest()
    assert reader.content() == expected
    path.write_bytes(b"user\nb\n")
    os.utime(path, ns=(6, 6))
    assert open_source(path).content() != expected
    assert open_source(path).version() != reader.version()


def test_a_glob_of_csv_files(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"user,page\nx,1\n")
    (tmp_path / "b.csv").write_bytes(b"\xef\xbb\xbfuser,page\r\ny,2")
    (tmp_path / "c.csv").write_bytes(b"")
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"user,page\nz,3\n"))
    pattern = f"{tmp_path}/*.csv*"
    for parts in (1, 2, 3, 7):
        reader = open_source(pattern, columns={"page": int})
        seen = [
            row
            for part in range(parts)
            for f in reader.batches(["user", "page"], share=(part, parts))
            for row in f.rows()
        ]
        assert seen == [("x", 1), ("y", 2), ("z", 3)]
    assert reader.path == tmp_path.resolve()
    assert reader.name == "*.csv*"
    (tmp_path / "e.csv").write_bytes(b"page,user\n")
    assert "e.csv: the header 'page', 'user' is not that of the first file" in refusal(pattern)


def test_a_file_whose_name_looks_like_a_pattern(tmp_path):
    path = tmp_path / "views[1].csv"
    path.write_bytes(b"user\na\n")
    assert open_source(path).path == path.resolve()


@pytest.mark.parametrize("block", [1, 5, 1 << 20])
def test_check_shows_every_bad_row(tmp_path, monkeypatch, block):
    monkeypatch.setattr(grammar, "BLOCK", block)
    path = tmp_path / "x.csv"
    path.write_bytes(MESSY)
    report = check(path, {"page": int})
    found = {(problem.reason, problem.row, problem.column) for problem in report.problems}
    assert found == {
        (UTF8, 3, "user"), (RAGGED, 4, None), (RAGGED, 5, None), (QUOTING, 7, None), (NUL, 8, "user"),
        (RETURN, 10, None), (TYPE, 11, "page"), (QUOTING, 12, None),
    }  # fmt: skip
    frames = open_source(path, columns={"page": int}).batches(["user"])
    assert report.rows == sum(frame.height for frame in frames) == 6
    assert report.dropped == 5
    assert not report.clean


def test_check_lists_some_and_counts_all(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"user,page\n" + b"ragged\n" * 1000 + b"a,b\n")
    report = check(path, limit=7)
    assert report.counts == {RAGGED: 1000}
    assert [problem.row for problem in report.problems] == list(range(2, 9))


def test_check_of_pairs_several_files_and_tables(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"# c\n\n1 2\n 3\n")
    (tmp_path / "b.txt").write_bytes(b"4 5\n6 7 8\n")
    report = check(f"{tmp_path}/*.txt")
    assert [(problem.row, problem.file) for problem in report.problems] == [
        (4, f"{tmp_path}/a.txt"),
        (2, f"{tmp_path}/b.txt"),
    ]
    assert report.rows == 2
    pq.write_table(
        pa.table({"x": ["1", "x", None], "y": pa.array([b"a", b"\xff", b"b"]).view(pa.string())}),
        tmp_path / "x.parquet",
    )
    report = check(tmp_path / "x.parquet", {"x": int})
    assert {(p.reason, p.row, p.column) for p in report.problems} == {(TYPE, 2, "x"), (UTF8, 2, "y")}
    report = check([(1, 2), 3, ("x", {})], {"user": int, "page": None})
    assert {(p.row, p.column) for p in report.problems} == {(2, None), (3, "user"), (3, "page")}
    assert check([(1, 2)]).clean


def run(*arguments, catch=True):
    app = typer.Typer()
    app.command()(check_command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=catch)


def test_the_command(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(MESSY)
    result = run(path, "--columns", "user,page:int")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "For the curator only: this shows records' positions and counts."
    assert "ill-formed quoting" in result.stdout
    report = json.loads(run(path, "--json").stdout)
    assert report["rows"] == 6
    assert {"reason": RAGGED, "row": 4, "column": None, "file": None} in report["problems"]
    path.write_bytes(b"a,1\nb,2\n")
    assert run(path, "--no-header", "--columns", "user,page:int").exit_code == 0
    with pytest.raises(SourceError, match="no such file"):
        run(tmp_path / "none.csv", catch=False)


def test_columns_on_a_command_line():
    assert parse_columns(None) is None
    assert parse_columns(" user , page ") == ("user", "page")
    assert parse_columns("user,page:int") == {"user": None, "page": "int"}
    for text in ("", "user,,page", "user,user", ":int", "page:whole"):
        with pytest.raises(SourceError):
            parse_columns(text)


@pytest.mark.parametrize("place", ["-", "kafka://broker:9092/views"])
def test_a_stream_is_no_file_and_where_it_belongs_is_told(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match=r"no such file; streams are read by wpinq run"):
        open_source(place)
