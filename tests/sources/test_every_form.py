"""What holds for files of every form: each row by itself, shares, files without rows, and what `check` counts.

A new ending in `FORMATS` needs a sample here, and is then tried by all of it.
"""

import gzip
from collections import Counter

import polars as pl
import pytest

from wpinq.apps.cli import options
from wpinq.sources import open_source
from wpinq.sources.check import check
from wpinq.sources.files import FORMATS, LINES

BOTH = {"user": str, "page": str}
WEB = b'h - %s [10/Oct/2000:13:55:36 -0700] "GET %s HTTP/1.0" 200 5'
SAMPLES = {
    "csv": (b"user,page\n", [b"ann,a", b"ragged", b"bob,\xff", b'"bob', b"ann,b", b"ann,a"]),
    "tsv": (b"user\tpage\n", [b"ann\ta", b"ragged", b"bob\t\xff", b'"bob', b"ann\tb", b"ann\ta"]),
    "pairs": (b"", [b"ann a", b"ragged", b"bob \xff", b"ann  b", b"ann a"]),
    "log": (b"", [WEB % (b"ann", b"/a"), b"ragged", b"\xff", WEB % (b"ann", b"/b"), WEB % (b"ann", b"/a")]),
    "json": (b"", [b'{"user": "ann", "page": "a"}', b"ragged", b'{"page": "\xff"}', b"[1]", b'{"page": "b"}']),
}
"""Of each form of lines: what begins a file, and lines, among them such as are none, and none that is blank."""
COLUMNS = {"log": ("user", "page")}
TABLES = {"parquet": pl.DataFrame.write_parquet, "arrow": pl.DataFrame.write_ipc}
FORMS = [(ending, form) for ending, form in FORMATS.items() if form in SAMPLES]


def rows(path, form, share=(0, 1)):
    reader = open_source(path, columns=COLUMNS.get(form, BOTH))
    return Counter(row for frame in reader.batches(["page", "user"], share=share) for row in frame.rows())


def written(path, form, lines):
    text = SAMPLES[form][0] + b"".join(line + b"\n" for line in lines)
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def test_every_form_has_a_sample_and_every_ending_is_told():
    missing = set(FORMATS.values()) - {*SAMPLES, *TABLES}
    assert not missing, f"{sorted(missing)}: a sample of lines in SAMPLES, or how a table is written in TABLES"
    assert set(SAMPLES) == set(LINES), "LINES in sources/files.py are the forms that are made of lines"
    untold = [ending for ending in FORMATS if f"`{ending}`" not in open_source.__doc__]
    assert not untold, f"{untold}: name each in the docstring of `open_source`"
    told = options.InputPath.__metadata__[0].help
    for form in set(FORMATS.values()):
        endings = [ending for ending, its in FORMATS.items() if its == form]
        assert any(ending in told for ending in endings), f"{endings}: name one under INPUT in apps/cli/options.py"


@pytest.mark.parametrize(("ending", "form"), FORMS)
@pytest.mark.parametrize("zipped", ["", ".gz"])
def test_a_line_moves_its_own_row_alone(tmp_path, ending, form, zipped):
    lines = SAMPLES[form][1]
    path = tmp_path / f"x{ending}{zipped}"
    whole = rows(written(path, form, lines), form)
    for place, line in enumerate(lines):
        without = rows(written(path, form, lines[:place] + lines[place + 1 :]), form)
        alone = rows(written(path, form, [line]), form)
        assert without + alone == whole
        assert alone.total() <= 1
    assert 0 < whole.total() < len(lines), "some lines are rows and some are none"


@pytest.mark.parametrize(("ending", "form"), FORMS)
@pytest.mark.parametrize("zipped", ["", ".gz"])
def test_shares_are_disjoint_and_whole(tmp_path, ending, form, zipped):
    path = written(tmp_path / f"x{ending}{zipped}", form, SAMPLES[form][1])
    whole = rows(path, form)
    for parts in (2, 3, 7):
        assert sum((rows(path, form, (part, parts)) for part in range(parts)), Counter()) == whole


@pytest.mark.parametrize(("ending", "form"), FORMS)
def test_check_counts_the_rows_that_are_read_and_tells_of_the_others(tmp_path, ending, form):
    lines = SAMPLES[form][1]
    path = written(tmp_path / f"x{ending}", form, lines)
    report = check(str(path), COLUMNS.get(form, BOTH))
    assert report.rows == rows(path, form).total()
    assert report.rows + report.dropped == len(lines)


@pytest.mark.parametrize(("ending", "form"), FORMS)
def test_a_file_without_rows_has_none(tmp_path, ending, form):
    path = written(tmp_path / f"x{ending}", form, [])
    assert rows(path, form) == Counter()
    assert check(str(path), COLUMNS.get(form, BOTH)).clean


@pytest.mark.parametrize("form", TABLES)
def test_tables_have_shares_and_may_be_empty(tmp_path, form):
    frame = pl.DataFrame({"user": ["ann", "bob", "ann"], "page": ["a", None, "a"]})
    for ending in (one for one, its in FORMATS.items() if its == form):
        for table in (frame, frame.clear()):
            path = tmp_path / f"x{ending}"
            TABLES[form](table, path)
            whole = rows(path, form)
            assert whole == Counter(table.select("page", "user").rows())
            assert sum((rows(path, form, (part, 3)) for part in range(3)), Counter()) == whole
            assert check(str(path)).rows == table.height
