"""A version has a public name: the same content under it is free wherever it lies, other content under it is refused.

Content may refuse, and it never grants.
"""

import datetime as dt
import gzip
import os
import shutil
import sqlite3
import threading
import time
import warnings
from contextlib import closing
from fractions import Fraction

import polars as pl
import pytest

import wpinq
from wpinq.core.ledger import Ledger
from wpinq.core.ledger.versions import key, rendered, version_label
from wpinq.core.pricing import recharge
from wpinq.errors import BudgetError, ChangedError, PlanError, SourceError
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


def ask(path, ledger, **more):
    source = wpinq.sqlite(path, table="views") if path.suffix == ".db" else str(path)
    views = wpinq.protect(source, budget=9, ledger=ledger, name="views", **more)
    column = "host" if path.suffix == ".log" else "user"
    return views.map(column).measure(epsilon=1).observe("ann")


def spent(ledger):
    return Ledger.existing(ledger).spent()[0]


@pytest.fixture
def settled(monkeypatch):
    """States are remembered at once, as of files that were changed a while ago."""
    monkeypatch.setattr(files, "TICK", 0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_content_under_the_same_name_is_the_same_version(tmp_path, kind, settled):
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
def test_other_content_under_the_same_name_is_refused_before_any_charge(tmp_path, kind, settled):
    path, ledger = write(tmp_path / "one", kind, ROWS), tmp_path / "L"
    before = {one: one.stat() for one in found(path)}
    first = ask(path, ledger)
    write(path.parent, kind, OTHER)
    for one, was in before.items():
        os.utime(one, ns=(was.st_atime_ns, was.st_mtime_ns))
        assert one.stat().st_size == was.st_size
    rows = len(Ledger.existing(ledger).entries())
    with pytest.raises(ChangedError, match="holds other records than those first read as"):
        ask(path, ledger)
    write(path.parent, kind, [*OTHER, ("dan", "home")])
    with pytest.raises(ChangedError, match=r"nothing was charged\. If this is the next version, name it: version='20"):
        ask(path, ledger)
    assert len(Ledger.existing(ledger).entries()) == rows, "and nothing was written"
    second = ask(path, ledger, version="july")
    assert spent(ledger) == 2
    assert ask(path, ledger, version="july") == second
    write(path.parent, kind, ROWS)
    assert ask(path, ledger) == first, "put back"
    assert spent(ledger) == 2


@pytest.mark.parametrize("kind", ["csv", "db", "parquet"])
def test_another_name_is_another_version_whatever_it_holds(tmp_path, kind, settled):
    """Were equal content free under another name, whoever reads both answers would know that nothing came."""
    path, ledger = write(tmp_path / "one", kind, [(f"user {n}", "home") for n in range(40)]), tmp_path / "L"

    def table(version):
        source = wpinq.sqlite(path, table="views") if kind == "db" else str(path)
        views = wpinq.protect(source, budget=9, ledger=ledger, name="views", version=version)
        return views.map("user").measure(epsilon="0.1").observe_many([f"user {n}" for n in range(40)]).tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len({str(table(version)) for version in ("june", "july", None)}) == 3, "noise of its own for each"
    assert spent(ledger) == Fraction(3, 10)


def test_what_is_not_charged_is_not_pinned(tmp_path, settled):
    path, ledger = write(tmp_path / "one", "csv", ROWS), tmp_path / "L"
    views = wpinq.protect(str(path), budget=9, ledger=ledger, name="views")
    with pytest.raises(BudgetError):
        views.map("user").measure(epsilon=10)
    write(path.parent, "csv", OTHER)
    ask(path, ledger)
    assert spent(ledger) == 1


@pytest.mark.parametrize("change", ["VACUUM", "PRAGMA journal_mode=WAL", "CREATE INDEX pages ON views (page)",
                                    "CREATE TABLE sorted AS SELECT * FROM views ORDER BY page DESC"])  # fmt: skip
def test_of_a_database_rows_are_compared_and_not_bytes(tmp_path, change):
    path, ledger = write(tmp_path / "one", "db", ROWS), tmp_path / "L"
    first = ask(path, ledger)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
        if "sorted" in change:
            connection.execute("DROP TABLE views")
            connection.execute("ALTER TABLE sorted RENAME TO views")
        connection.commit()
    assert ask(path, ledger) == first
    assert spent(ledger) == 1


@pytest.mark.parametrize("form", ["tuples", "polars", "lazy", "arrow"])
def test_records_in_memory_have_a_version_too(tmp_path, form):
    """They were another version in each run, and charged in each."""

    def asked(rows, **more):
        frame = pl.DataFrame(rows, schema=["user", "page"], orient="row")
        given = {"tuples": rows, "polars": frame, "lazy": frame.lazy(), "arrow": frame.to_arrow()}[form]
        named = {"columns": {"user": str, "page": str}} if form == "tuples" else {}
        views = wpinq.protect(given, budget=9, ledger=tmp_path / "L", **named, **more)
        return views.map("page").measure(epsilon=1).observe("home")

    first = asked(ROWS)
    assert asked(ROWS[::-1]) == first, "an order has no meaning there"
    with pytest.raises(ChangedError, match="records: holds other records than those first read as 'records' on 20"):
        asked(OTHER)
    assert spent(tmp_path / "L") == 1
    with pytest.warns(RuntimeWarning, match="was answered for another version, 'records', of the data"):
        asked(OTHER, version="july")
    assert spent(tmp_path / "L") == 2


def test_content_is_read_once_for_each_state_of_the_files(tmp_path, settled, monkeypatch):
    path, ledger, read = write(tmp_path / "one", "csv", ROWS), tmp_path / "L", []
    true = files.Files.content
    monkeypatch.setattr(files.Files, "content", lambda self, key=b"": read.append(1) or true(self, key))
    for _ in range(3):
        ask(path, ledger)
    assert len(read) == 1
    path.touch()
    rows = len(Ledger.existing(ledger).entries())
    for _ in range(3):
        ask(path, ledger)
    assert len(read) == 2
    assert len(Ledger.existing(ledger).entries()) == rows, "a state is no row of the ledger"
    (tmp_path / "L.states").write_bytes(b"\xff\n" * 3)
    ask(path, ledger)
    assert len(read) == 3, "a note that is damaged is as good as none"


def test_a_state_is_noted_once_however_much_is_asked(tmp_path, settled):
    """Each charge added a line to the note, which every opening reads."""
    path, ledger = write(tmp_path / "one", "csv", ROWS), tmp_path / "L"
    views = wpinq.protect(str(path), budget=9, ledger=ledger, name="views")
    for number in range(4):
        views.map("user").measure(epsilon="0.1", name=str(number))
    assert len((tmp_path / "L.states").read_bytes().splitlines()) == 1


def test_a_note_of_states_is_of_one_ledger_version_and_secret(tmp_path, settled):
    path = write(tmp_path / "one", "csv", ROWS)
    ask(path, tmp_path / "L")
    ask(path, tmp_path / "M", version="views.csv")
    write(path.parent, "csv", OTHER)
    ask(path, tmp_path / "M", version="other")
    (tmp_path / "L.states").write_bytes((tmp_path / "L.states").read_bytes() + (tmp_path / "M.states").read_bytes())
    with pytest.raises(ChangedError):
        ask(path, tmp_path / "L")
    with pytest.raises(ChangedError):
        ask(path, tmp_path / "M", version="views.csv")


def test_a_state_just_after_a_change_is_not_trusted(tmp_path):
    """Two changes within one tick of the clock leave the same times."""
    path = write(tmp_path / "one", "csv", ROWS)
    assert files.state([path]) is None
    assert ask(path, tmp_path / "L") == ask(path, tmp_path / "L")
    time.sleep(files.TICK / 1e9 + 0.02)
    assert files.state([path]) is not None


@pytest.mark.parametrize("kind", ["csv", "parquet", "db", "*.csv"])
def test_a_source_that_changed_after_it_was_opened_is_refused_and_charges_nothing(tmp_path, kind, settled):
    """A file that was replaced each night drained the caps of all who asked."""
    path, ledger = write(tmp_path / "one", kind, ROWS), tmp_path / "L"
    first = ask(path, ledger)
    source = wpinq.sqlite(path, table="views") if kind == "db" else str(path)
    views = wpinq.protect(source, budget=9, ledger=ledger, name="views")
    cid = views.filter("user = 'cid'")
    quote = cid.quote(epsilon=1)
    write(path.parent, kind, [*OTHER, ("dan", "home")])
    for which in ("user = 'ann'", "user = 'bob'"):
        with pytest.raises(ChangedError, match="changed after it was opened"):
            views.filter(which).measure(epsilon=1)
    with pytest.raises(ChangedError, match="changed after it was opened"):
        cid.measure(quote=quote)
    assert spent(ledger) == 1
    write(path.parent, kind, ROWS)
    assert ask(path, ledger) == first


def test_a_source_that_is_gone_charges_nothing(tmp_path):
    path, ledger = write(tmp_path / "one", "csv", ROWS), tmp_path / "L"
    views = wpinq.protect(str(path), budget=9, ledger=ledger)
    path.unlink()
    with pytest.raises(SourceError, match="no such file"):
        views.measure(epsilon=1)
    assert spent(ledger) == 0


@pytest.mark.parametrize(
    ("typed", "spends"), [(["july"], 2), ([""], 1), (["views.csv", "july"], 2), (["views.csv", ""], 1)]
)
def test_at_a_terminal_the_name_of_the_next_version_is_asked_for(tmp_path, monkeypatch, capsys, typed, spends):
    path, ledger, typing = write(tmp_path / "one", "csv", ROWS), tmp_path / "L", iter(typed)
    ask(path, ledger)
    write(path.parent, "csv", OTHER)
    monkeypatch.setattr(recharge, "notebook", lambda: True)
    monkeypatch.setattr("builtins.input", lambda: next(typing))
    if spends == 1:
        with pytest.raises(ChangedError):
            ask(path, ledger)
    else:
        with pytest.warns(RuntimeWarning, match="another version"):
            ask(path, ledger)
    assert spent(ledger) == spends
    assert next(typing, None) is None
    assert capsys.readouterr().err.count("Name of this version (none to stop): ") == len(typed)


def test_a_script_that_names_its_version_is_not_asked(tmp_path, monkeypatch):
    path, ledger = write(tmp_path / "one", "csv", ROWS), tmp_path / "L"
    ask(path, ledger, version="july")
    write(path.parent, "csv", OTHER)
    monkeypatch.setattr(recharge, "notebook", lambda: True)
    with pytest.raises(ChangedError, match="first read as 'july' on 20"):
        ask(path, ledger, version="july")


NOON = dt.datetime(2026, 12, 31, 23, 30, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("template", "zone", "name"),
    [
        ("{date}", None, "2026-12-31"), ("{date}", "Europe/Amsterdam", "2027-01-01"), ("log {hour}", None,
        "log 2026-12-31T23"), ("{week}", None, "2026-W53"), ("{month}/{year}", None, "2026-12/2026"), ("7", None, "7"),
        (7, None, "7"), (None, None, None),
    ],
)  # fmt: skip
def test_the_clock_may_name_a_version(template, zone, name):
    assert rendered(template, "protect(version=...)", zone, NOON) == name


@pytest.mark.parametrize("wrong", ["{day}", "{", "a}", "{date:%d}", "{}", "a\tb", "a\nb", "\x1b[2J", "\ud800", 1.5])
def test_a_name_that_cannot_be_is_refused(tmp_path, wrong):
    path = write(tmp_path / "one", "csv", ROWS)
    with pytest.raises(PlanError, match=r"protect\(version=...\)"):
        wpinq.protect(str(path), budget=1, version=wrong)
    assert not (tmp_path / "one" / "views.csv.ledger").exists()


def test_a_clock_that_was_set_back_meets_the_pin(tmp_path, settled):
    """The second day is named as the first one, and holds other records."""
    path, ledger = write(tmp_path / "one", "csv", ROWS), tmp_path / "L"
    ask(path, ledger, version="{date}")
    write(path.parent, "csv", OTHER)
    with pytest.raises(ChangedError, match=f"first read as '{dt.datetime.now(dt.UTC).date()}'"):
        ask(path, ledger, version="{date}")
    assert spent(ledger) == 1


def test_versions_of_two_tables_do_not_meet(tmp_path, settled):
    path, ledger = write(tmp_path / "one", "csv", ROWS), tmp_path / "L"
    other = write(tmp_path / "two", "csv", OTHER)
    ask(path, ledger)
    tables = wpinq.protect(str(other), ledger=ledger, name="others")
    tables.map("user").measure(epsilon=1).observe("ann")
    assert spent(ledger) == 2
    assert key("a", "b of c") != key("a of b", "c")
    assert version_label(key("views", "july"), "views") == "july"
    assert version_label(key("others", "july"), "views") == "july of others"
    shows = {entry.version for entry in Ledger.existing(ledger).entries()}
    assert shows == {"", "views.csv", "views.csv of others"}


def test_files_of_one_name_in_two_directories_are_one_version(tmp_path, settled):
    path, ledger = write(tmp_path / "one", "csv", ROWS), tmp_path / "L"
    ask(path, ledger)
    with pytest.raises(ChangedError, match="name it"):
        ask(write(tmp_path / "two", "csv", OTHER), ledger)


def test_a_pattern_is_named_by_its_text_and_not_by_what_it_matches(tmp_path, settled):
    path, ledger = write(tmp_path / "one", "*.csv", ROWS), tmp_path / "L"
    ask(path, ledger)
    write(path.parent, "csv", OTHER).rename(path.parent / "c.csv")  # a third file
    with pytest.raises(ChangedError, match=r"first read as '\?.csv' on 20"):
        ask(path, ledger)


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
    assert len(macs[0]) == 2, "of the content, and of the histogram"
    assert not macs[0] & macs[1], "equal files in two ledgers do not show as equal"
