"""A version is what files hold: what was charged stays paid wherever they are and whenever they were touched."""

import gzip
import os
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from fractions import Fraction

import polars as pl
import pytest

import wpinq
from wpinq.errors import SourceError
from wpinq.ledger import Ledger
from wpinq.plan.dataset import DataSet
from wpinq.sources import files

ROWS = [("ann", "home"), ("bob", "home"), ("cid", "news")]
OTHER = [("ann", "home"), ("bob", "news"), ("cid", "news")]
LOG = '{user} - - [01/Jun/2026:10:00:00 +0000] "GET /{page} HTTP/1.1" 200 5 "-" "-"\n'
KINDS = ["csv", "csv.gz", "tsv", "txt", "log", "parquet", "db", "*.csv"]


def write(place, kind, rows):
    """Rows as a file (or two) of a kind, of the same size for rows of the same length; the path to protect."""
    place.mkdir(exist_ok=True)
    path = place / f"views.{kind}"
    if kind == "*.csv":
        write(place, "csv", rows[:2]).rename(place / "a.csv")
        write(place, "csv", rows[2:]).rename(place / "b.csv")
        return place / "?.csv"
    if kind == "parquet":
        pl.DataFrame(rows, schema=["user", "page"], orient="row").write_parquet(path, compression="uncompressed")
    elif kind == "db":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DROP TABLE IF EXISTS views")
            connection.execute("CREATE TABLE views (user TEXT, page TEXT)")
            connection.executemany("INSERT INTO views VALUES (?, ?)", rows)
    elif kind == "log":
        path.write_text("".join(LOG.format(user=user, page=page) for user, page in rows))
    else:
        between = {"csv": ",", "csv.gz": ",", "tsv": "\t", "txt": " "}[kind]
        lines = [between.join(row) for row in ([] if kind == "txt" else [("user", "page")]) + rows]
        text = ("\n".join(lines) + "\n").encode()
        path.write_bytes(gzip.compress(text, 0, mtime=0) if kind == "csv.gz" else text)
    return path


def found(path):
    return sorted(path.parent.glob(path.name))


def ask(path, ledger):
    source = wpinq.sqlite(path, table="views") if path.suffix == ".db" else str(path)
    views = wpinq.protect(source, budget=9, ledger=ledger, name="views")
    column = "host" if path.suffix == ".log" else "user"
    return views.map(column).measure(epsilon=1).observe("ann")


def spent(ledger):
    return Ledger.existing(ledger).spent()[0]


@pytest.fixture
def settled(monkeypatch):
    """States are remembered at once, as of files that were changed a while ago."""
    monkeypatch.setattr(files, "TICK", 0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bytes_are_the_same_version(tmp_path, kind, settled):
    path, ledger = write(tmp_path / "one", kind, ROWS), tmp_path / "L"
    first = ask(path, ledger)
    for one in found(path):
        os.utime(one, (5, 5))
    assert ask(path, ledger) == first, "touched"
    shutil.copytree(path.parent, tmp_path / "two")
    for one in found(tmp_path / "two" / path.name):
        one.touch()
    assert ask(tmp_path / "two" / path.name, ledger) == first, "copied"
    (tmp_path / "two").rename(tmp_path / "three")
    assert ask(tmp_path / "three" / path.name, ledger) == first, "moved"
    assert ask(path, ledger) == first
    assert spent(ledger) == 1, "and nothing was charged for it"


@pytest.mark.parametrize("kind", KINDS)
def test_other_bytes_are_another_version_whatever_size_and_time_say(tmp_path, kind, settled):
    path, ledger = write(tmp_path / "one", kind, ROWS), tmp_path / "L"
    before = {one: one.stat() for one in found(path)}
    first = ask(path, ledger)
    write(path.parent, kind, OTHER)
    for one, was in before.items():
        os.utime(one, ns=(was.st_atime_ns, was.st_mtime_ns))
        assert one.stat().st_size == was.st_size
    second = ask(path, ledger)
    assert spent(ledger) == 2, "the same size and time"
    write(path.parent, kind, [*OTHER, ("dan", "home")])
    ask(path, ledger)
    assert spent(ledger) == 3, "appended to"
    write(path.parent, kind, ROWS)
    assert kind == "db" or ask(path, ledger) == first, "put back"
    write(path.parent, kind, OTHER)
    assert kind == "db" or ask(path, ledger) == second
    assert spent(ledger) == 3


def test_bytes_are_read_once_for_each_state_of_the_files(tmp_path, settled, monkeypatch):
    path, ledger, read = write(tmp_path / "one", "csv", ROWS), tmp_path / "L", []
    true = files.Files.content
    monkeypatch.setattr(files.Files, "content", lambda self, key=b"": read.append(1) or true(self, key))
    for _ in range(3):
        ask(path, ledger)
    assert len(read) == 1
    path.touch()
    for _ in range(3):
        ask(path, ledger)
    assert len(read) == 2


def test_a_state_just_after_a_change_is_not_trusted(tmp_path):
    """Two changes within one tick of the clock leave the same times."""
    path = write(tmp_path / "one", "csv", ROWS)
    assert files.state([path]) is None
    assert ask(path, tmp_path / "L") == ask(path, tmp_path / "L")
    time.sleep(files.TICK / 1e9 + 0.02)
    assert files.state([path]) is not None


def test_a_file_that_is_replaced_after_it_was_opened_is_refused_and_closes_nothing(tmp_path, settled):
    path, ledger = write(tmp_path / "one", "csv", ROWS), tmp_path / "L"
    first, was = ask(path, ledger), path.stat()
    views = wpinq.protect(str(path), budget=9, ledger=ledger, name="views")
    write(path.parent, "csv", OTHER)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    for which in ("user = 'ann'", "user = 'bob'"):
        with pytest.raises(SourceError, match="changed after it was opened"):
            views.filter(which).measure(epsilon=1).observe(("ann", "home"))
    write(path.parent, "csv", ROWS)
    assert ask(path, ledger) == first


@pytest.mark.parametrize("kind", ["csv", "db"])
def test_a_ledger_of_before_opens_and_what_was_paid_stays_paid(tmp_path, kind, settled, monkeypatch):
    """It holds no digest of bytes: the same path, size and time are known, and from then on the bytes."""
    path, ledger = write(tmp_path / "one", kind, ROWS), tmp_path / "L"
    with monkeypatch.context() as patch:
        patch.setattr(DataSet, "check", lambda self: self.ledger.check_version(self.version))
        first = ask(path, ledger)
    assert ask(path, ledger) == first
    path.touch()
    assert ask(path, ledger) == first
    assert spent(ledger) == 1


def test_processes_and_threads_that_open_a_touched_file_at_once_agree(tmp_path, settled):
    path, ledger, answers = write(tmp_path / "one", "csv", ROWS), tmp_path / "L", []
    first = ask(path, ledger)
    path.touch()
    threads = [threading.Thread(target=lambda: answers.append(ask(path, ledger))) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert answers == [first] * 4
    assert spent(ledger) == Fraction(1)


def test_the_ledger_shows_no_digest_that_could_be_guessed(tmp_path, settled):
    """An unkeyed digest would tell who reads the ledger whether a guessed file is the protected one."""
    path = write(tmp_path / "one", "csv", ROWS)
    ask(path, tmp_path / "L")
    ask(path, tmp_path / "M")
    macs = []
    for name in "LM":
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            bodies = [body for (body,) in connection.execute("SELECT body FROM entries")]
        macs.append({body.split('"mac": "')[1][:64] for body in bodies if '"mac"' in body})
    assert len(macs[0]) == 3
    assert not macs[0] & macs[1], "equal files in two ledgers do not show as equal"
