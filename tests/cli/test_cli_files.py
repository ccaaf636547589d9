"""What a command writes replaces nothing that is read or kept, and what it shows is harmless."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

import wpinq as package
from wpinq.apps.cli import main
from wpinq.errors import PlanError, SourceError

SCRIPT = "def dataflow(views):\n    return {'m': views.map('page').measure(1)}\n"
NAMES = ("v.csv", "s.py", "pub.csv", "groups.txt", "v.csv.ledger", "v.csv.ledger.secret", "v.csv.ledger.head",
         "v.csv.ledger.lock", "v.csv.ledger.live", "v.csv.ledger.live.lock")  # fmt: skip


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("user,page\na,b\nc,d\n")
    (tmp_path / "pub.csv").write_text("page,town\nb,Rome\n")
    (tmp_path / "groups.txt").write_text("Rome\n")
    (tmp_path / "s.py").write_text(SCRIPT)
    package.protect("v.csv", budget=5).map("page").measure(1).observe("b")
    (tmp_path / "v.csv.ledger.live").write_text("kept")
    return tmp_path


@pytest.mark.parametrize(("call", "name"), [
    (call, name) for call in ("run --json", "sql --json") for name in NAMES
    if name not in (("s.py",) if call == "sql --json" else ("pub.csv", "groups.txt"))
])  # fmt: skip
def test_no_output_replaces_what_is_read_or_kept(wpinq, files, call, name):
    before = {path.name: path.read_bytes() for path in files.iterdir() if path.is_file()}
    words = {
        "run --json": ("run", "s.py", "v.csv", "--budget", "5", "--observe", "m=b", "--json", name),
        "sql --json": ("sql", "SELECT t.town, COUNT(*) FROM v JOIN t ON v.page = t.page GROUP BY t.town", "--from",
                       "v=v.csv", "--public", "t=pub.csv", "--columns", "t:page:text,town:text", "--keys",
                       "groups.txt", "--epsilon", "1", "--json", name),
    }  # fmt: skip
    assert "would replace" in wpinq(*words[call]).refused()
    assert before == {path.name: path.read_bytes() for path in files.iterdir() if path.is_file()}


def test_the_ledger_shows_no_size_and_moves_no_cursor(wpinq, files):
    views = package.protect("v.csv", budget=5, ledger="L", name="x")
    evil = "evil\x1b[2J\x1b]0;title\x07\x9b31m\u202e\x00"
    views.measure(1, name=evil, analyst="=cmd|'/c calc'!A1").observe(("a", "b"))
    shown = wpinq("ledger", "show", "L")
    assert shown.code == 0
    size = Path("v.csv").stat().st_size
    exported = wpinq("ledger", "export", "L", "--csv", "out.csv"), wpinq("ledger", "export", "L")
    assert [one.code for one in exported] == [0, 0]
    text = (files / "out.csv").read_text()
    for told in (shown.out, text, exported[1].out):
        assert not {"\x1b", "\x07", "\x9b", "\x00", "\u202e"} & {*told}
        assert f"\t{size}\t" not in told.encode().decode("unicode_escape")
        assert str(files) not in told
    rows = list(csv.DictReader(text.splitlines()))
    assert all(not value.startswith(("=", "+", "-", "@")) for row in rows for value in row.values())
    assert json.loads(exported[1].out)["entries"][1]["version"] == "v.csv"
    package.protect("v.csv", budget=5, ledger="L2", name="x", version="july").measure(1)
    assert "july" in wpinq("ledger", "show", "L2").out, "what the curator declared is shown"


@pytest.mark.parametrize("what", ["name", "analyst"])
def test_names_that_cannot_be_written_are_refused_before_a_charge(what):
    views = package.protect([("a", "b")], budget=1)
    with pytest.raises(PlanError, match="no valid text"):
        views.measure(1, **{what: "sur\ud800"})
    with pytest.raises(PlanError, match="no valid text"):
        package.protect([("a", "b")], budget=1, name="sur\ud800")
    with pytest.raises(PlanError, match="no valid text"):
        package.protect([("a", "b")], budget=1, version="sur\ud800")
    assert views._node.data.ledger.spent()[0] == 0


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are UTF-8 there")
@pytest.mark.parametrize("form", ["csv", "db"])
def test_a_file_whose_name_is_not_utf8_is_a_source(wpinq, tmp_path, form):
    place = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9." + form.encode())
    if form == "csv":
        Path(place).write_text("user,page\na,b\n")
        source = place
    else:
        plain = tmp_path / "plain.db"
        with closing(sqlite3.connect(plain)) as connection, connection:
            connection.execute("CREATE TABLE views (user TEXT, page TEXT)")
            connection.execute("INSERT INTO views VALUES ('a', 'b')")
        connection.close()
        plain.rename(place)
        source = package.sqlite(place, table="views")
    for _ in range(2):
        views = package.protect(source, budget=1000, ledger=tmp_path / "L")
        assert views.map("page").measure(900).observe("b") == 1
    assert views._node.data.ledger.spent()[0] == 900
    assert wpinq("ledger", "show", tmp_path / "L").code == 0


def test_readers_show_no_number_of_records(tmp_path):
    pl.DataFrame({"user": [f"u{i}" for i in range(98_765)]}).write_parquet(tmp_path / "v.parquet")
    size = (tmp_path / "v.parquet").stat().st_size
    reader = package.protect(tmp_path / "v.parquet", budget=1).measure(1).key_owner.reader
    assert "98765" not in repr(reader)
    assert str(size) not in repr(reader)


def test_nothing_foreign_comes_with_an_error_of_send():
    def records():
        yield ("ann", "home")
        raise ValueError("ann viewed page 7")

    views = package.live(("user", "page"), budget=1)
    with pytest.raises(SourceError) as caught:
        views.send(records())
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    views.close()


@pytest.mark.parametrize("option", ["--json", "--plot", "--ledger", "script", "input"])
def test_a_name_that_no_file_can_have_is_one_clear_line(option, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("user,page\nann,a\n")
    name = "x" * 300
    arguments = {
        "script": ["run", name, "v.csv", "--budget", "1"],
        "input": ["degrees", f"{name}.csv", "--of", "page", "--budget", "1"],
    }.get(
        option,
        [
            "degrees",
            "v.csv",
            "--of",
            "page",
            "--budget",
            "1",
            option,
            f"{name}.{'png' if option == '--plot' else 'json'}",
        ],
    )
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("wpinq: ")
    assert "not foreseen" not in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v.csv"]


@pytest.mark.parametrize("body", ["sys.exit(3)", "def dataflow(views):\n    sys.exit(3)"])
def test_a_script_that_ends_itself_is_one_clear_line(body, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("user,page\nann,a\n")
    (tmp_path / "ends.py").write_text(f"import sys\n{body}\n")
    for command in ("run", "shell"):
        assert main([command, "ends.py", "v.csv", "--budget", "1"]) == 2
        assert "SystemExit" in capsys.readouterr().err
    assert not (tmp_path / "v.csv.ledger").exists()


def test_memory_is_bounded_for_every_command(wpinq, tmp_path, monkeypatch):
    for name in ("WPINQ_MEMORY", "WPINQ_SPILL"):
        monkeypatch.setenv(name, "")
    path = tmp_path / "views.csv"
    path.write_text("user,page\nann,a\n")
    asked = ("degrees", path, "--of", "page", "--budget", "1")
    assert "no such directory" in wpinq("--spill", tmp_path / "none", *asked).refused()
    assert "that is no size" in wpinq("--memory", "much", *asked).refused()
    assert not (tmp_path / "views.csv.ledger").exists()
    assert wpinq("--memory", "1GB", "--spill", tmp_path, *asked).code == 0
    assert (os.environ["WPINQ_MEMORY"], os.environ["WPINQ_SPILL"]) == ("1000000000", str(tmp_path))


def test_the_format_that_is_taken_for_granted_is_said_whatever_the_lines_are(wpinq, tmp_path):
    """A log of another format counted as no record, without a word; what is said depends on none."""
    said = []
    for number, line in enumerate(['h - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 1', "12:00 INFO GET /a"]):
        path = tmp_path / str(number) / "app.log"
        path.parent.mkdir()
        path.write_text(f"{line}\n" * 9)
        words = ["degrees", str(path), "--of", "page", "--budget", "1"]
        said += [wpinq(*words).err.replace(str(path), "PATH")]
        assert "read as" not in wpinq(*words).err, "it is said once"
        assert "read as" not in wpinq(*words, "--format", "combined", "--ledger", str(path) + ".other").err
    assert said[0] == said[1]
    assert "common or combined format" in said[0]
    assert "--format" in said[0]


def test_check_says_what_would_read_the_lines_that_are_dropped(wpinq, tmp_path):
    line = 'h - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 1 "-" "-"'
    (tmp_path / "a.log").write_text(f"{line}\n" + f"host:80 {line}\n" * 3 + '{"a": 1}\n')
    out = wpinq("check", str(tmp_path / "a.log")).out
    assert "3 of these lines fit --format vhost_combined" in out
    assert "1 of these lines fit --format json" in out
    (tmp_path / "b.log").write_text(line, encoding="utf-16")
    (tmp_path / "b.csv").write_text("user,page\nann,a\n", encoding="utf-16")
    assert "begins as UTF-16 does" in wpinq("check", str(tmp_path / "b.log")).out
    refused = wpinq("degrees", str(tmp_path / "b.csv"), "--of", "page", "--budget", "1")
    assert refused.code == 2
    assert "its header is in UTF-16; write such files anew" in refused.err


def test_a_directory_without_permission(wpinq, mortal):
    views, closed = mortal / "views.csv", mortal / "closed"
    views.write_text("user,page\nann,home\n")
    closed.mkdir(mode=0o500)
    wpinq("degrees", views, "--of", "page", "--budget", 1, "--json", closed / "out.json").refused()
    assert not (mortal / "views.csv.ledger").exists()


def test_check_says_what_a_column_looks_like_and_what_reads_it(wpinq, tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("user,at\n" + "ann,2026-10-01 11:58:20+00:00\n" * 20)
    told = wpinq("check", str(path), "--columns", "at:date", "--json")
    assert told.code == 1
    assert json.loads(told.out)["looks"][1] == {
        "column": "at", "read as": "date", "filled": 20, "null": 20, "looks like": "times with an offset",
        "to mend": "--columns at:instant",
    }  # fmt: skip
    assert "at:instant" in wpinq("check", str(path), "--columns", "at:date").out
    assert wpinq("check", str(path), "--columns", "at:instant").code == 0
