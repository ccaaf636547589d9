"""Bins as people write them."""

from __future__ import annotations

import datetime as dt

import pytest
from depth import thin
from hypothesis import given
from hypothesis import strategies as st

from wpinq.apps.cli import bins
from wpinq.apps.cli.bins import parse_bins
from wpinq.apps.cli.show import written
from wpinq.core.records.bins import bin_frame
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import BinError

TEXT, WHOLE = Schema.of(page=Kind.TEXT), Schema.of(index=Kind.INT)
PAIR = Schema.of(user=Kind.TEXT, page=Kind.INT)


@pytest.mark.parametrize(
    ("text", "schema", "expected"),
    [
        ("1..1000", WHOLE, range(1, 1001)),
        ("-3..-1", WHOLE, range(-3, 0)),
        ("7", WHOLE, [7]),
        ("1..3,9,5..6", WHOLE, [1, 2, 3, 9, 5, 6]),
        ("[1, 2]", WHOLE, [1, 2]),
        ("home,news", TEXT, ["home", "news"]),
        ("8..11,x", TEXT, ["8", "9", "10", "11", "x"]),
        ('["1..3"]', TEXT, ["1..3"]),
        ("08..10", TEXT, ["08", "09", "10"]),
        ("-1..1", TEXT, ["-1", "0", "1"]),
        ("0..1", TEXT, ["0", "1"]),
        ("v1..3", TEXT, ["v1..3"]),
        ("a:b", TEXT, ["a:b"]),
        ('["a,b", "c"]', TEXT, ["a,b", "c"]),
        ("", TEXT, [""]),
        ("ann:1..2,bob:7", PAIR, [("ann", 1), ("ann", 2), ("bob", 7)]),
        ('[["a:b", 1]]', PAIR, [("a:b", 1)]),
        ("1.5", Schema.of(x=Kind.FLOAT), [1.5]),
        ("true,False", Schema.of(x=Kind.BOOL), [True, False]),
        ("00ff", Schema.of(x=Kind.BYTES), [b"\0\xff"]),
        ("2026-07-31", Schema.of(x=Kind.DATE), [dt.date(2026, 7, 31)]),
        ('["2026-07-31"]', Schema.of(x=Kind.DATE), [dt.date(2026, 7, 31)]),
        ("2026-07-31T12:00", Schema.of(x=Kind.TIME), [dt.datetime(2026, 7, 31, 12)]),
        ("2026-07-31T12:00+00:00", Schema.of(x=Kind.INSTANT), [dt.datetime(2026, 7, 31, 12, tzinfo=dt.UTC)]),
        ("1.5", Schema.of(x=Kind.SPAN), [dt.timedelta(seconds=1.5)]),
        ("1,home,null", Schema.of(x=Kind.ANY), [1, "home", None]),
        ('["1", 1, [1, "a"]]', Schema.of(x=Kind.ANY), ["1", 1, [1, "a"]]),
    ],
)
def test_bins_are_read_by_the_type_of_their_column(text, schema, expected):
    found = parse_bins(text, schema)
    assert found == expected
    assert type(found) is type(expected)
    assert [type(one) for one in found] == [type(one) for one in expected]
    assert len(bin_frame(found, schema)) == len(expected)  # what is read is what a measurement takes


@thin(4)
@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("home", WHOLE),
        ("1.5", WHOLE),
        ("3..1", WHOLE),
        ("", WHOLE),
        ("1_000", WHOLE),
        ("1..99999999", WHOLE),
        ("1..9999999,1..9999999", WHOLE),
        ("a:1..9999,b:1..9999999", PAIR),
        ("ann", PAIR),
        ("ann:1:2", PAIR),
        ("ann:home", PAIR),
        ('["ann", 1]', PAIR),
        ("[1, 2", WHOLE),
        ("yes", Schema.of(x=Kind.BOOL)),
        ("2026-13-01", Schema.of(x=Kind.DATE)),
        ("xyz", Schema.of(x=Kind.BYTES)),
        ("inf", Schema.of(x=Kind.SPAN)),
    ],
)
def test_bins_that_do_not_fit_are_refused(text, schema):
    with pytest.raises(BinError):
        parse_bins(text, schema)


def test_many_bins_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(bins, "MAX_BINS", 10)
    assert len(parse_bins("1..10", WHOLE)) == 10
    for text in ("1..11", "1..6,1..6"):
        with pytest.raises(BinError, match="more than 10 bins"):
            parse_bins(text, WHOLE)
    with pytest.raises(BinError, match="more than 10 bins"):
        parse_bins("1..4:1..4", Schema.of(a=Kind.INT, b=Kind.INT))


SIMPLE = st.text(st.characters(categories=["L", "N"]), min_size=1)


@given(st.lists(st.tuples(SIMPLE, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=5))
def test_written_bins_read_back(pairs):
    assert parse_bins(",".join(map(written, pairs)), PAIR) == pairs


def test_bins_of_any_type_say_how_they_were_read(wpinq, tmp_path):
    (tmp_path / "flow.py").write_text(
        "def dataflow(views):\n"
        "    return {'digit': views.map(lambda page: page[1:], columns={'digit': object}).measure(epsilon=1)}\n"
    )
    (tmp_path / "v.csv").write_text("page\n" + "/1\n" * 99)
    words = ("run", tmp_path / "flow.py", tmp_path / "v.csv", "--budget", "9")
    done = wpinq(*words, "--observe", "digit=1")
    assert "Bins of digit may be of any type; some are read as whole numbers" in done.err
    assert """as text they are written '["1"]'""" in done.err.lower()
    done = wpinq(*words, "--observe", 'digit=["1"]')
    assert done.code == 0
    assert "may be of any type" not in done.err
