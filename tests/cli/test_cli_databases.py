"""Databases as the input of commands: a file of SQLite and a real PostgreSQL server, as a table and as a query."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from depth import deep
from servers import PASSWORD, postgres

VIEWS = [(f"u{i % 50}", f"p{i % 6 if i % 2 else 0}") for i in range(600)]
LOUD = "200"


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE views (user TEXT, page TEXT)")
        connection.executemany("INSERT INTO views VALUES (?, ?)", VIEWS)
    return "sqlite:shop.db"


def degrees(wpinq, source, out, *more):
    done = wpinq("degrees", source, "--of", "page", "--budget", LOUD, "--json", out, *more)
    assert (done.code, done.err) == (0, "")
    found = json.loads(out.read_text())
    return found["fit"], found["distinct"], found["records"]


@deep
def test_degrees_of_a_database_are_those_of_a_file(wpinq, shop, tmp_path):
    (tmp_path / "views.csv").write_text("user,page\n" + "".join(f"{user},{page}\n" for user, page in VIEWS))
    known = degrees(wpinq, "views.csv", tmp_path / "0.json")
    assert known[1:] == (4, 600)
    assert degrees(wpinq, f"{shop}?table=views", tmp_path / "1.json", "--ledger", "lite") == known
    with postgres() as url:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute('CREATE TABLE views ("user" text, page text)')
            cursor.executemany("INSERT INTO views VALUES ($1, $2)", VIEWS)
        common = "--ledger", "server", "--data-version", "1"
        assert degrees(wpinq, f"{url}?table=views", tmp_path / "2.json", *common) == known
        query = "query=SELECT+page+FROM+views+WHERE+page+<>+'p0'"
        assert degrees(wpinq, f"{url}?{query}", tmp_path / "3.json", "--ledger", "other")[1:] == (3, 300)
        for refused in (
            wpinq("degrees", f"{url}?table=none", "--of", "page", "--budget", "1", "--ledger", "x"),
            wpinq("degrees", f"{url}?table=views", "--of", "page", "--budget", "1"),
            wpinq("degrees", url.replace(PASSWORD, "wrong"), "--of", "page", "--budget", "1", "--ledger", "x"),
        ):
            assert PASSWORD not in refused.refused() + refused.out
    assert not (tmp_path / "x").exists()
    assert all(PASSWORD.encode() not in path.read_bytes() for path in tmp_path.iterdir())


def test_dataflows_run_on_a_database(wpinq, shop, loud):
    done = wpinq("run", loud, f"{shop}?table=views", "--budget", LOUD, "--observe", "pages=p0,p1,none")
    assert (done.code, done.err) == (0, "")
    counts = {page: sum(one == page for _, one in VIEWS) for page in ("p0", "p1")}
    assert [line.split() for line in done.out.splitlines() if line.startswith("  p")] == [
        [page, str(count)] for page, count in counts.items()
    ]


@pytest.mark.parametrize("name", ["shop.db", "shop.db.ledger"])
def test_no_output_replaces_a_database_or_its_ledger(wpinq, shop, tmp_path, name):
    before = (tmp_path / "shop.db").read_bytes()
    options = ["--budget", LOUD, "--json", name]
    assert "would replace" in wpinq("degrees", f"{shop}?table=views", "--of", "page", *options).refused()
    query = "SELECT COUNT(*) FROM v"
    options = ["--epsilon", "1", "--json", name]
    assert "would replace" in wpinq("sql", query, "--from", f"v={shop}?table=views", *options).refused()
    assert (tmp_path / "shop.db").read_bytes() == before


def test_no_answer_of_sql_replaces_one_of_many_files(wpinq, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("user,page\nann,home\n")
    done = wpinq("sql", "SELECT COUNT(*) FROM v", "--from", "v=*.csv", "--epsilon", "1", "--json", "b.csv")
    assert "would replace" in done.refused()


def test_check_of_a_database_does_not_claim_that_all_is_well(wpinq, shop):
    done = wpinq("check", f"{shop}?table=views")
    assert (done.code, done.out) == (2, "")
    assert "ask the database itself" in done.err
