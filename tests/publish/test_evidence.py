"""Whatever is changed of a published period is told: a byte of a file, a row, an entry of the register, a cost."""

import json
import shutil
import sqlite3
from contextlib import closing, contextmanager
from fractions import Fraction

import pytest

from tests.publish.test_release import PAGES, release, wrote
from wpinq.apps.publish.files import digest, found
from wpinq.core.ledger import Cost, Ledger
from wpinq.core.ledger.stores.file import FilePages, FileStore
from wpinq.errors import LedgerError, SourceError, WpinqError

DAY = "2026-11-21"
QUESTION = {"name": "views", "sql": "SELECT page, COUNT(*) AS views FROM data GROUP BY page", "keys": PAGES,
            "epsilon": 3, "plot": False}  # fmt: skip


@pytest.fixture
def site(tmp_path):
    """A published period, in a directory and in a database."""
    wrote(tmp_path, 21)
    made = release(tmp_path, question=[QUESTION, {**QUESTION, "name": "more", "epsilon": "1/2"}],
                   sink=[{"directory": "out/{date}"}, {"sqlite": "out.db"}])  # fmt: skip
    assert made.run(DAY).done == "published"
    return made


def told(site):
    """Whether `verify` says that something was changed, in one line each."""
    try:
        found = site.verify(DAY)
    except WpinqError as error:
        found = [str(error)]
    assert all("\n" not in one for one in found)
    return found


def flips(content, stride):
    for place in {*range(0, len(content), stride), len(content) - 1}:
        yield content[:place] + bytes([content[place] ^ 0x01]) + content[place + 1 :]


def test_a_flipped_byte_of_any_file_is_told(site, tmp_path):
    places = [tmp_path / "ledger.published" / "site" / DAY, tmp_path / "out" / DAY]
    assert told(site) == []
    for place in places:
        for path in sorted(place.iterdir()):
            whole = path.read_bytes()
            for changed in flips(whole, max(len(whole) // 4, 1)):
                path.write_bytes(changed)
                assert told(site), path
            path.write_bytes(whole[:-1])
            assert told(site), path
            path.unlink()
            assert told(site), path
            path.write_bytes(whole)
        (place / "more.txt").write_text("")
        assert told(site)
        (place / "more.txt").unlink()
    assert told(site) == []


def test_every_column_of_every_entry_of_the_register_is_told(site, tmp_path):
    ledger = tmp_path / "ledger"
    whole = ledger.read_bytes()
    for name in ("periods", ""):
        for column in ("name", "key", "text"):
            with closing(sqlite3.connect(ledger)) as made, made:
                query = f"SELECT CAST({column} AS BLOB) FROM side WHERE name = ?"
                (text,) = made.execute(query, (name,)).fetchone()
            for changed in flips(text, max(len(text) // 4, 1)) if text else [b"x"]:
                with closing(sqlite3.connect(ledger)) as made, made:
                    made.execute(f"UPDATE side SET {column} = CAST(? AS TEXT) WHERE name = ?", (changed, name))
                assert told(site), (name, column)
                ledger.write_bytes(whole)
    for change in ("DELETE FROM side WHERE name = 'periods'", "DELETE FROM side", "DELETE FROM side WHERE name = ''",
                   "UPDATE side SET text = x'00' WHERE name = 'periods'", "ALTER TABLE side ADD COLUMN more",
                   "INSERT INTO side VALUES ('periods', '[\"site\", \"2026-11-20\"]', '{}')",
                   "INSERT INTO side VALUES ('', 'more', '{}')"):  # fmt: skip
        with closing(sqlite3.connect(ledger)) as made, made:
            made.execute(change)
        assert told(site), change
        with pytest.raises(LedgerError):
            site.status()
        ledger.write_bytes(whole)
    assert told(site) == []


def test_entries_of_the_past_are_told_although_they_are_whole(site, tmp_path):
    """Without an entry a stretch of time would seem to have spent less: all tables of an older moment are refused."""
    ledger = tmp_path / "ledger"
    with closing(sqlite3.connect(ledger)) as made, made:
        made.execute("ATTACH ? AS past", (str(tmp_path / "past"),))
        made.execute("CREATE TABLE past.side AS SELECT * FROM side")
    wrote(tmp_path, 20)
    site.run("2026-11-20")
    with closing(sqlite3.connect(ledger)) as made, made:
        made.execute("ATTACH ? AS past", (str(tmp_path / "past"),))
        made.execute("DELETE FROM side")
        made.execute("INSERT INTO side SELECT * FROM past.side")
    for use in (site.status, lambda: site.run("2026-11-20"), site.funds):
        with pytest.raises(LedgerError, match="older than its head says"):
            use()


def test_a_flipped_byte_of_the_register_is_told_or_changes_no_entry(site, tmp_path):
    ledger = tmp_path / "ledger"
    whole = ledger.read_bytes()
    entries = site._publisher.register.everybody()
    for changed in flips(whole, 997):
        ledger.write_bytes(changed)
        try:
            assert site._publisher.register.everybody() == entries
        except LedgerError as error:
            assert "\n" not in str(error)
            assert "not foreseen" not in str(error)
    ledger.write_bytes(whole)


def test_evidence_that_says_other_costs_is_told_although_its_digest_fits(site, tmp_path):
    """What publish_verify_evidence did: costs in evidence and reports, with the digest in the register put right."""
    kept, out = tmp_path / "ledger.published" / "site" / DAY, tmp_path / "out" / DAY
    report = ("epsilon 3.5", "epsilon 0.01")
    changes = {"evidence.json": ('"epsilon": "7/2"', '"epsilon": "1/100"'), "report.md": report, "report.html": report}
    for name, (old, new) in changes.items():
        for place in (kept, out):
            text = (place / name).read_text()
            assert old in text
            (place / name).write_text(text.replace(old, new))
    with closing(sqlite3.connect(tmp_path / "ledger")) as made, made:
        entry = json.loads(made.execute("SELECT text FROM side WHERE name = 'periods'").fetchone()[0])
        entry["facts"]["digest"] = digest(found(kept))
        made.execute("UPDATE side SET text = ? WHERE name = 'periods'", (json.dumps(entry),))
    with pytest.raises(LedgerError, match="do not fit its secret"):
        site.verify(DAY)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda facts: facts["cost"].update(epsilon="1/100"), "another cost than the questions have"),
        (lambda facts: facts["questions"][0].update(epsilon="1/100"), "other costs of questions"),
        (lambda facts: facts["ledger"].update(head="00" * 32), "another code"),
        (lambda facts: facts["ledger"].update(rows=1), "not all of its questions were charged"),
    ],
)
def test_costs_are_compared_with_the_ledger_by_whoever_holds_the_secret_too(site, tmp_path, change, said):
    """Also where a curator, or a fault, has written an entry with a code of its own."""
    from dataclasses import replace

    kept, out, register = tmp_path / "ledger.published" / "site" / DAY, tmp_path / "out" / DAY, site._publisher.register
    facts = json.loads((kept / "evidence.json").read_text())
    change(facts)
    for place in (kept, out):
        (place / "evidence.json").write_text(json.dumps(facts, indent=1) + "\n")
    record = register.records()[DAY]
    register.enter(replace(record, facts={**record.facts, **facts, "digest": digest(found(kept))}))
    assert any(said in one for one in told(site))


def test_a_row_of_a_sink_that_was_changed_is_told(site, tmp_path):
    with closing(sqlite3.connect(tmp_path / "out.db")) as made, made:
        made.execute("UPDATE site_views SET views = views + 1 WHERE page = '/p1'")
    made.close()
    assert told(site) == ["sqlite out.db: other rows in site_views"]


def test_verify_charges_nothing_and_no_code_is_published(site, tmp_path):
    def charged():  # that the state of a file was seen is a row, which comes sooner or later
        ledger = site._publisher.opening.protect(site.period(DAY), "1")._node.data.ledger
        return [row for row in ledger.entries() if row.kind == "charge"]

    before = charged()
    assert told(site) == []
    assert charged() == before
    with closing(sqlite3.connect(tmp_path / "ledger")) as made, made:
        turn = json.loads(made.execute("SELECT text FROM side WHERE name = ''").fetchone()[0])
    codes = [turn["before"], turn["code"], *turn["digests"].values()]
    assert len(codes) > 2
    for path in (tmp_path / "out" / DAY).iterdir():
        assert not any(code.encode() in path.read_bytes() for code in codes)


def test_a_period_that_was_never_published_and_one_whose_questions_changed(site, tmp_path):
    with pytest.raises(SourceError, match="was never published"):
        site.verify("2026-11-20")
    other = release(tmp_path, question=[{**QUESTION, "epsilon": 2}])
    with pytest.raises(SourceError, match="questions or keys changed"):
        other.verify(DAY)
    shutil.rmtree(tmp_path / "ledger.published")
    assert "missing or were changed" in told(site)[0]


BUDGETS = [{"epsilon": 30}, {"epsilon": 8, "per": "day"}, {"epsilon": 30, "delta": "1e-6", "accounting": "renyi"}]


@pytest.fixture
def acts(monkeypatch):
    """The rows of each transaction of a ledger, and what to do after each."""
    rows, after, locked, commit = [], [], FileStore.locked, FilePages.commit

    @contextmanager
    def counted(self, secret):
        rows.append(0)
        with locked(self, secret) as pages:
            yield pages
        for work in after:
            work()

    def committed(self, more, changes, head):
        rows[-1] += len(more)
        commit(self, more, changes, head)

    monkeypatch.setattr(FileStore, "locked", counted)
    monkeypatch.setattr(FilePages, "commit", committed)
    return rows, after


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda one: one.get("accounting") or one.get("per") or "pure")
def test_of_nine_transactions_of_a_period_five_write(budget, acts, tmp_path):
    """It is opened, with table and budget; charged, with what its version holds and with its entry; sealed; entered as
    computed, and as published. The others read: the periods before each of these, and the state for the evidence."""
    rows, _ = acts
    made = release(tmp_path, budget=budget, question=[QUESTION, {**QUESTION, "name": "more", "epsilon": "1/2"}])
    for day, opening in ((20, 2), (21, 1 + ("per" in budget))):
        wrote(tmp_path, day)
        rows.clear()
        assert made.run(f"2026-11-{day}").done == "published"
        assert [many for many in rows if many] == [opening, 3, 2]
        assert len(rows) == 9
    rows.clear()
    assert made.run(DAY).done == "was published before"
    assert set(rows) == {0}


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda one: one.get("accounting") or one.get("per") or "pure")
def test_evidence_is_one_state_of_a_ledger_that_others_charge_meanwhile(budget, acts, tmp_path):
    """What is said to be spent was spent by the row that is named: another process charges after each transaction."""
    rows, after = acts
    made, ledger = release(tmp_path, budget=budget), tmp_path / "ledger"
    wrote(tmp_path, 21)

    def charged():
        after.clear()
        Ledger.existing(ledger).charge(f"{len(rows):08x}", [Cost("1/64")], version="1", label="of another process")
        after.append(charged)

    after.append(charged)
    made.run(DAY)
    after.clear()
    facts = json.loads((tmp_path / "ledger.published" / "site" / DAY / "evidence.json").read_text())
    number, entries = facts["ledger"]["rows"], Ledger.existing(ledger).entries()
    assert len([entry for entry in entries if entry.label == "of another process"]) >= 4
    assert len(entries) > number, "others have gone on"
    charges = [entry for entry in entries[:number] if entry.kind == "charge"]
    assert Fraction(facts["budget"]["spent after"]) == sum(entry.epsilon for entry in charges)
    assert Fraction(facts["budget"]["delta spent after"]) == sum(entry.delta for entry in charges)
    assert Ledger.existing(ledger).code_of_row(number) == facts["ledger"]["head"]
    assert told(made) == []
