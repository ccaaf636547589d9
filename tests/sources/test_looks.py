"""`wpinq check` says what each column looks like, how many of its fields become null, and what would read them."""

import polars as pl
import pytest

from wpinq.sources import open_source
from wpinq.sources.check import check
from wpinq.sources.form import parse_columns

FIELDS = {
    "whole": ("7", "whole numbers", "int"),
    "number": ("7.5", "numbers", "float"),
    "flag": ("true", "true and false", "bool"),
    "day": ("2026-10-01", "dates", "date"),
    "offset": ("2026-10-01 11:58:20+00:00", "times with an offset", "instant"),
    "server": ("10/Oct/2026:13:55:36 +0200", "times with an offset", "instant"),
    "clock": ("2026-10-01 11:58", "times", "timestamp"),
    "span": ("1:30:00", "durations", "timedelta"),
}


def written(tmp_path, fields, rows=20):
    path = tmp_path / "v.csv"
    path.write_text("\n".join([",".join(fields), *[",".join(f'"{one}"' for one in fields.values())] * rows]) + "\n")
    return str(path)


def test_texts_are_known_by_their_looks_and_what_is_proposed_reads_them(tmp_path):
    path = written(tmp_path, {name: text for name, (text, _, _) in FIELDS.items()})
    report = check(path)
    assert report.clean
    assert {name: (one.looks, one.mend) for name, one in report.looks.items()} == {
        name: (looks, f"--columns {name}:{kind}") for name, (_, looks, kind) in FIELDS.items()
    }
    columns = parse_columns(",".join(one.mend.removeprefix("--columns ") for one in report.looks.values()))
    (frame,) = open_source(path, columns=columns).batches(list(FIELDS))
    assert frame.null_count().row(0) == (0,) * len(FIELDS)
    assert check(path, columns).clean


@pytest.mark.parametrize(
    ("text", "declared", "looks", "mend"),
    [
        ("2026-10-01 11:58:20+00:00", "date", "times with an offset", "--columns x:instant"),
        ("2026-10-01 11:58:20", "instant", "times", "--columns x:timestamp"),
        ("1759000000", "timestamp", "seconds since 1970", "write times as 2026-12-31T23:59:59Z"),
        ("7.0", "int", "numbers", "--columns x:float"),
        ("1.234,50", "float", "numbers with a decimal comma", "--decimal , --columns x:float"),
        ("7,5", "float", "numbers with a decimal comma", "--decimal , --columns x:float"),
        ("1.10.2026", "date", "dates that are not written as 2026-12-31", "write dates as 2026-12-31"),
        ("10/31/26", "date", "dates that are not written as 2026-12-31", "write dates as 2026-12-31"),
        ("maybe", "bool", "text", "--columns x:text"),
    ],
)
def test_a_wrong_type_is_told_with_what_mends_it(tmp_path, text, declared, looks, mend):
    report = check(written(tmp_path, {"user": "ann", "x": text}), {"x": declared})
    look = report.looks["x"]
    assert (look.filled, look.lost, look.looks, look.mend) == (20, 20, looks, mend)
    assert look.empty
    assert not report.clean


def test_fields_that_fit_are_not_looked_at_where_others_do_not(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("x\n" + "7\n" * 50 + "8.5\n" * 3)
    look = check(str(path), {"x": "int"}).looks["x"]
    assert (look.filled, look.lost, look.looks, look.mend) == (53, 3, "numbers", "--columns x:float")
    assert not look.empty


def test_a_key_that_no_record_has_is_told(tmp_path):
    path = tmp_path / "v.jsonl"
    path.write_text('{"user": "ann", "n": null}\n' * 9)
    report = check(str(path), {"user": "text", "n": "int", "usr": "text"})
    assert report.missing == ["n", "usr"]
    assert not report.clean
    assert check(str(path), {"user": "text"}).clean
    path.write_text("")
    assert check(str(path), {"usr": "text"}).clean  # of no records nothing is missing


def test_what_a_log_never_fills_is_nothing_wrong_unless_it_was_declared(tmp_path):
    path = tmp_path / "access.log"
    path.write_text('h - - [10/Oct/2026:13:55:36 +0200] "GET / HTTP/1.1" 200 5 "-" "-"\n')
    assert check(str(path)).clean
    assert check(str(path), ("host", "user")).missing == ["user"]


def test_tables_that_are_typed_are_checked_as_before(tmp_path):
    pl.DataFrame({"x": [None, None]}, schema={"x": pl.Int64}).write_parquet(tmp_path / "v.parquet")
    assert check(str(tmp_path / "v.parquet")).clean
