"""Whatever is changed of a published period is told: a byte of a file, a row, an entry of the register, a cost."""

import json
import shutil
import sqlite3

import pytest

from tests.publish.test_release import PAGES, release, wrote
from wpinq.apps.publish.files import digest, found
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
    register = tmp_path / "ledger.periods"
    whole = register.read_bytes()
    columns = ("release", "period", "every", "stage", "version", "definition", "facts", "notes", "code")
    for column in columns:
        with sqlite3.connect(register) as made:
            (text,) = made.execute(f"SELECT CAST({column} AS BLOB) FROM periods").fetchone()
            for changed in flips(text, max(len(text) // 4, 1)):
                made.execute(f"UPDATE periods SET {column} = CAST(? AS TEXT)", (changed,))
                made.commit()
                assert told(site), column
        made.close()
        register.write_bytes(whole)
    for change in ("DELETE FROM periods", "DELETE FROM lists", "UPDATE lists SET code = x'00'",
                   "UPDATE periods SET facts = NULL", "ALTER TABLE periods DROP COLUMN code"):  # fmt: skip
        with sqlite3.connect(register) as made:
            made.execute(change)
        made.close()
        assert told(site), change
        with pytest.raises(LedgerError):
            site.status()
        register.write_bytes(whole)
    assert told(site) == []


def test_a_flipped_byte_of_the_register_is_told_or_changes_no_entry(site, tmp_path):
    register = tmp_path / "ledger.periods"
    whole = register.read_bytes()
    entries = site._publisher.register.everybody()
    for changed in flips(whole, 997):
        register.write_bytes(changed)
        try:
            assert site._publisher.register.everybody() == entries
        except LedgerError as error:
            assert "\n" not in str(error)
            assert "not foreseen" not in str(error)
    register.write_bytes(whole)


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
    with sqlite3.connect(tmp_path / "ledger.periods") as made:
        facts = json.loads(made.execute("SELECT facts FROM periods").fetchone()[0])
        facts["digest"] = digest(found(kept))
        made.execute("UPDATE periods SET facts = ?", (json.dumps(facts),))
    made.close()
    with pytest.raises(LedgerError, match="does not fit the ledger's secret"):
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
    with sqlite3.connect(tmp_path / "out.db") as made:
        made.execute("UPDATE site_views SET views = views + 1 WHERE page = '/p1'")
    made.close()
    assert told(site) == ["sqlite out.db: other rows in site_views"]


def test_verify_charges_nothing_and_no_code_is_published(site, tmp_path):
    def charged():  # that the state of a file was seen is a row, which comes sooner or later
        ledger = site._publisher.opening.protect(site.period(DAY), None)._node.data.ledger
        return [row for row in ledger.entries() if row.kind == "charge"]

    before = charged()
    assert told(site) == []
    assert charged() == before
    with sqlite3.connect(tmp_path / "ledger.periods") as made:
        codes = [code.hex() for (code,) in made.execute("SELECT code FROM periods UNION SELECT code FROM lists")]
    made.close()
    assert len(codes) == 2
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
