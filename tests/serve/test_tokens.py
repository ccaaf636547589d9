"""Files that a running server uses are replaced, removed, or laid open: what lies there now counts, at once."""

import contextlib
import datetime as dt
import shutil

import pytest
from serving import CONFIG, Visitor, serving, written

from wpinq.apps.serve import refusals
from wpinq.apps.serve.tokens import Tokens

DAY = dt.timedelta(days=1)
SITE = (
    CONFIG.replace('dataflow = "script.py"\n', "")
    .split("[fit")[0]
    .replace('meanings = { pages = "Views of each page" }\n', "")
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with serving(written(tmp_path_factory.mktemp("tokens"), SITE, rows=20)) as asker:
        yield asker


@pytest.fixture
def site(shared):
    """The server; afterwards its file of tokens is the one that it was."""
    file, kept = shared.place / "tokens", shared.place / "kept"
    shutil.copy2(file, kept)
    yield shared
    if file.is_dir():
        file.rmdir()
    kept.rename(file)
    file.chmod(0o600)


def status(site, token):
    return site.ask(token, "GET", "/api/budget").status


def test_a_token_that_is_revoked_in_a_file_put_back_from_a_copy_is_refused(site):
    token, browser = site.token(), Visitor(site, site.token())
    assert status(site, token) == 200 and browser.get("/").status == 200
    copy = site.place / "copy"
    shutil.copy2(site.place / "tokens", copy)
    copy.replace(site.place / "tokens")
    assert status(site, token) == 200
    elsewhere = Tokens(site.place / "tokens")
    for one in elsewhere.all():
        elsewhere.revoke(one.id)
    assert status(site, token) == 401 and browser.get("/").status == 303
    new, _ = elsewhere.make("new", ["views"], dt.datetime.now(dt.UTC) + DAY)
    assert status(site, new) == 200
    assert [one.analyst for one in site.tokens.all() if one.revoked is None] == ["new"]


def test_a_file_written_over_in_its_place_counts_too(site):
    old = (site.place / "tokens").read_bytes()
    token = site.token()
    assert status(site, token) == 200
    (site.place / "tokens").write_bytes(old)
    assert status(site, token) == 401


def removed(file):
    file.unlink()


def laid_open(file):
    file.chmod(0o640)


def other(file):
    file.write_bytes(b"no database" * 999)


def empty(file):
    file.write_bytes(b"")


def folder(file):
    file.unlink()
    file.mkdir()


def link(file):
    file.rename(file.with_name("behind"))
    file.symlink_to(file.with_name("behind"))


@pytest.mark.parametrize("spoil", [removed, laid_open, other, empty, folder, link])
def test_nobody_is_let_in_where_the_file_is_no_more_what_it_must_be(site, spoil, capfd, caplog, monkeypatch):
    monkeypatch.setattr(refusals, "_logged", {})
    token, curator = site.token(), site.token("boss", curator=True)
    browser = Visitor(site, token)
    assert status(site, token) == 200
    spoil(site.place / "tokens")
    for _ in range(20):
        found = site.ask(token, "GET", "/api/budget")
        assert found.status == 503 and b"tokens" not in found.raw
    assert status(site, curator) == found.status == site.ask(None, "GET", "/api/budget").status
    assert browser.get("/").status == 503
    assert Visitor(site, token).entered.status == found.status
    with contextlib.suppress(Exception):
        site.tokens.all()
    assert spoil is not removed or not (site.place / "tokens").exists()  # a server makes no new one
    assert "Traceback" not in capfd.readouterr().err and len(caplog.records) == 1  # a stranger cannot fill the log


@pytest.mark.parametrize("how", ["removed", "an old copy"])
def test_a_ledger_that_is_gone_or_an_old_copy_answers_and_charges_nothing(site, how):
    token, ledger, moved = site.token("ledgers", 9), site.place / "ledger", site.place / "moved"
    old = ledger.read_bytes()
    question = {"query": "SELECT COUNT(*) AS c FROM views", "epsilon": "0.1", "name": how, "dry": False}
    assert site.ask(token, "POST", "/api/sql", question).status == 200
    ledger.rename(moved)
    if how == "an old copy":
        ledger.write_bytes(old)
        ledger.chmod(0o600)
    try:
        for body in (question | {"name": "new"}, question | {"name": "new", "dry": True}):
            found = site.ask(token, "POST", "/api/sql", body)
            assert found.status == 503 and b"ledger" not in found.raw
        assert site.ask(token, "GET", "/api/budget").status == 503
        assert ledger.exists() == (how == "an old copy")
    finally:
        moved.replace(ledger)
    assert site.ask(token, "POST", "/api/sql", question).status == 200
