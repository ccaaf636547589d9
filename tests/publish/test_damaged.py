"""A byte that is changed in what a release keeps or wrote is one line, whatever it makes SQLite say."""

from fractions import Fraction

import polars as pl

from wpinq.apps.publish.file.periods import Period
from wpinq.apps.publish.sinks.place import Edition
from wpinq.apps.publish.sinks.sqlite import SqliteTables
from wpinq.apps.publish.state import Record, Register
from wpinq.core.ledger import Ledger
from wpinq.errors import LedgerError, SourceError


def flipped(path, often):
    """The file with one byte changed, again and again, by stride over all of it that says something."""
    whole = path.read_bytes()
    said = [offset for offset, byte in enumerate(whole) if byte]
    for offset in said[:: max(len(said) // often, 1)]:
        for change in (0x80, 0x04):
            path.write_bytes(whole[:offset] + bytes([whole[offset] ^ change]) + whole[offset + 1 :])
            yield
    path.write_bytes(whole)


def test_the_register(tmp_path):
    Ledger.open(tmp_path / "ledger", name="site", unit="record", budget=Fraction(1))  # whose secret makes the codes
    register = Register(tmp_path / "ledger", "site")
    register.enter(Record("2026", "year", "begun", "v", "d", {"cost": 1}, ("a note",)))
    register.refuse("2025", "now", "why")
    refused = 0
    for _ in flipped(tmp_path / "ledger", 150):
        for call in (register.records, register.refusals, lambda: register.alerted("low")):
            try:
                call()
            except LedgerError as error:
                assert str(error).startswith(f"ledger {tmp_path / 'ledger'}")
                refused += 1
    assert refused > 100
    assert list(register.records()) == ["2026"]


EDITION = Edition("site", Period.parse("2026-11-21", "day"), {"views": pl.DataFrame({"page": ["a"], "views": [1]})}, {})


def test_a_sink(tmp_path):
    place = SqliteTables(tmp_path / "out.sqlite")
    place.deliver(EDITION)
    refused = 0
    for _ in flipped(tmp_path / "out.sqlite", 100):
        for call in (lambda: place.check(EDITION.period, fresh=False), lambda: place.deliver(EDITION)):
            try:
                call()
            except SourceError as error:
                assert "out.sqlite" in str(error) or "other answers" in str(error)
                refused += 1
        place.differs(EDITION)
    assert refused > 50
    assert place.differs(EDITION) is None
