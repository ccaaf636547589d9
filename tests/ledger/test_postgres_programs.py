"""Whatever names a ledger takes the URL of one in PostgreSQL: calls, commands, release files, servers, streams."""

from __future__ import annotations

import datetime as dt
import shutil
from fractions import Fraction
from pathlib import Path

import pytest
from serving import serving, written

import wpinq
from wpinq.apps.cli import main
from wpinq.apps.publish import Release
from wpinq.apps.publish.files import found
from wpinq.apps.publish.sinks.directory import Directory
from wpinq.apps.publish.sinks.place import Edition
from wpinq.core import Ledger
from wpinq.errors import BudgetError, LedgerError, SourceError

NOW = dt.datetime(2026, 11, 22, 6, tzinfo=dt.UTC)


@pytest.fixture
def views(tmp_path: Path) -> Path:
    rows = "".join(f"u{one},/p{(one + step) % 6}\n" for one in range(60) for step in range(3))
    (tmp_path / "views").mkdir()
    for day in (20, 21):
        (tmp_path / "views" / f"2026-11-{day}.csv").write_text(f"user,page\n{rows}")
    return tmp_path / "views" / "2026-11-21.csv"


def test_calls_share_a_ledger_and_its_answers(views: Path, url: str) -> None:
    person = wpinq.users("user", at_most=3)
    first = wpinq.protect(views, budget=1, unit=person, ledger=url)
    pages = first.map("page").measure("1/2", name="pages")
    again = wpinq.protect(views, unit=person, ledger=url).map("page").measure("1/2", name="pages")
    assert pages.observe("/p1") == again.observe("/p1")
    assert wpinq.budget(url).left == first.left == Fraction(1, 2)
    with pytest.raises(BudgetError):
        wpinq.protect(views, unit=person, ledger=url).map("user").measure("0.6")


def test_an_index_by_person_lies_beside_the_anchor(views: Path, url: str, tmp_path: Path) -> None:
    data = wpinq.protect(views, budget=1, unit=wpinq.users("user", at_most=3), ledger=url, index=True)
    data.map("page").measure("1/2").observe("/p1")
    assert list((tmp_path / "client").glob("*.people-*"))
    assert Ledger.existing(Ledger.path(url)).forget_people() == 1
    assert not list((tmp_path / "client").glob("*.people-*"))


def test_each_command_of_ledgers_takes_it_and_shows_no_user(
    views: Path, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wpinq.protect(views, budget=1, unit=wpinq.users("user", at_most=3), ledger=url, name="views").count(epsilon="1/4")
    shown = ""
    for words in (["show"], ["show", "--json"], ["verify"], ["verify", "--json"], ["metrics"], ["forget"], ["export"]):
        main(["ledger", words[0], url, *words[1:]])
        shown += capsys.readouterr().out
    main(["ledger", "export", url, "--csv", str(tmp_path / "rows.csv")])
    main(["ledger", "raise", url, "2"])
    main(["ledger", "cap", url, "ada", "1"])
    shown += capsys.readouterr().out
    assert "0.25 of 2; 1.75 is left" in shown
    assert (tmp_path / "rows.csv").read_text().count("\n") >= 3
    assert "intact" in shown
    assert not any(word in shown for word in ("pass-word", "postgres@", "may_lose", str(tmp_path)))


def test_a_table_of_a_database_may_have_its_ledger_in_it(url: str, database: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    plain, name = database.partition("?")[0], f"views_{url[-8:]}"
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} AS SELECT 'u' || n AS u FROM generate_series(1, 50) AS n")
    data = wpinq.protect(wpinq.postgres(plain, table=name), budget=1, ledger=url)
    assert abs(data.count(epsilon="1/2").value - 50) < 200
    assert wpinq.budget(url).left == Fraction(1, 2)


def test_a_release_publishes_each_period_once_and_no_file_holds_its_password(views: Path, url: str) -> None:
    file = {
        "data": {"source": "views/{date}.csv", "unit": {"column": "user", "at_most": 3}, "ledger": url},
        "budget": {"epsilon": 30},
        "question": [{"name": "views", "sql": "SELECT page, COUNT(*) AS views FROM data GROUP BY page",
                      "keys": [f"/p{n}" for n in range(6)], "epsilon": 3, "plot": False}],
        "sink": [{"directory": "out/{date}"}],
    }  # fmt: skip
    home = views.parents[1]

    def release() -> Release:
        return Release(file, "site", home, clock=lambda: NOW)

    assert "no ledger yet" in release().budget_line()
    release().run("2026-11-21")
    assert (home / "out" / "2026-11-21").is_dir()
    assert wpinq.budget(url).left == 27
    release().run("2026-11-21")
    assert wpinq.budget(url).left == 27
    release().run("2026-11-20")
    assert wpinq.budget(url).left == 24
    assert "24" in release().budget_line()
    written = [path for path in home.rglob("*") if path.is_file()]
    assert len(written) > 10
    assert not [path for path in written if b"pass-word" in path.read_bytes()], "no file holds what a URL holds"
    assert "pass-word" not in repr(release().plan("2026-11-21"))


def test_a_release_goes_on_at_another_client_where_one_was_lost(
    views: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The register is the ledger's: each client knows what the others have published, and what may be spent still."""
    sql = "SELECT page, COUNT(*) AS views FROM data GROUP BY page"
    file = {
        "data": {"source": "views/{date}.csv", "unit": {"column": "user", "at_most": 3}, "ledger": url},
        "budget": {"epsilon": 4, "per": "day"},
        "question": [{"name": "views", "sql": sql, "keys": [f"/p{n}" for n in range(6)], "epsilon": 3, "plot": False}],
    }

    def client(name: str, release: str = "site") -> Release:
        home = tmp_path / name
        if not home.exists():
            shutil.copytree(views.parent, home / "views")
        monkeypatch.setenv("WPINQ_STATE", str(home / "state"))
        return Release({**file, "sink": [{"directory": f"{release}/{{date}}"}]}, release, home, clock=lambda: NOW)

    with monkeypatch.context() as patch:
        patch.setattr(Directory, "deliver", refused)
        with pytest.raises(SourceError, match="lost on its way"):
            client("first").run("2026-11-21")
    files = next((tmp_path / "first" / "state").glob("*.published/site/2026-11-21"))
    with pytest.warns(RuntimeWarning, match="from now on it notices"):
        second = client("second")
        assert [each.stage for each in second.status()] == ["computed"]
    assert second.run("2026-11-21").done == "published"
    delivered = found(tmp_path / "second" / "site" / "2026-11-21")
    assert len(delivered) > 4
    assert delivered.items() <= found(files).items()
    assert client("first").run("2026-11-21").done == "was published before"
    assert second.verify("2026-11-21") == []
    assert wpinq.budget(url).left == 1, "charged once"
    for name in ("first", "second"):
        with pytest.raises(BudgetError, match="costs epsilon 3, and 1 is left in 2026-11-21"):
            client(name, "more").run("2026-11-21")


def refused(place: Directory, edition: Edition) -> None:
    raise SourceError(f"{edition.period.name}: lost on its way")


def test_a_server_has_its_ledger_there(url: str, tmp_path: Path) -> None:
    home = written(tmp_path)
    config = (home / "site.toml").read_text().replace('ledger = "ledger"\n', f'ledger = "{url}"\n')
    (home / "site.toml").write_text(config)
    with serving(home) as asker:
        before = wpinq.budget(url).left
        Ledger.existing(Ledger.path(url)).cap("ann", 5)
        token = asker.tokens.make("ann", ["views"], NOW + dt.timedelta(days=99_999))[0]
        body = {"query": "SELECT COUNT(*) AS n FROM views", "epsilon": "1", "dry": False}
        assert asker.ask(token, "POST", "/api/sql", body).status == 200
    assert wpinq.budget(url).left == before - 1


def test_a_stream_goes_on_where_it_ended(url: str, tmp_path: Path) -> None:
    def stream() -> wpinq.Live:
        return wpinq.live({"page": str}, budget=2, ledger=url, recover=tmp_path / "journal", name="stream")

    live = stream()
    pages = live.map("page").measure("1/2", name="pages")
    live.send([("a",), ("b",)])
    live.advance()
    pages.observe("a")
    live.close()
    live = stream()
    again = live.map("page").measure("1/2", name="pages")
    live.advance()
    again.observe("a")
    live.close()
    assert wpinq.budget(url).left == Fraction(3, 2)


def test_what_is_wrong_with_it_is_one_line_of_a_command(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (["ledger", "show", url], ["ledger", "show", f"{url}&colour=blue"], ["ledger", "show", f"{url}&="]):
        assert main(words) == 2
        text = capsys.readouterr().err.strip()
        assert text.startswith("wpinq: ledger postgresql://")
        assert text.count("\n") == 0
        assert "pass-word" not in text
    monkeypatch.delenv("WPINQ_SECRET")
    with pytest.raises(LedgerError, match="is given its secret"):
        wpinq.protect([("a",)], budget=1, columns=("page",), ledger=url)
