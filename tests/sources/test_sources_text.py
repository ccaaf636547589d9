"""Text files: the grammar, and that no line changes how another one is read."""

from __future__ import annotations

import csv as python_csv
import gzip
import io
import itertools
from collections import Counter

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from depth import deeper, often
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wpinq.core.records.schema import Kind, polars_type
from wpinq.core.records.text import UTF8, valid_text
from wpinq.errors import SourceError
from wpinq.sources import open_source
from wpinq.sources.text import grammar

LOOSE = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=often(100))
BYTES = {"a": bytes, "b": bytes}


def rows(source, columns=None, **options):
    reader = open_source(source, columns=columns, **options)
    found = Counter()
    for frame in reader.batches(reader.schema.names):
        assert frame.columns == list(reader.schema.names)
        assert frame.dtypes == [polars_type(column.kind) for column in reader.schema]
        found.update(frame.rows())
    return found


def write(tmp_path, data, name="x.csv"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def one_line(line, width, delimiter=","):
    """The fields of one line by the strict grammar, written plainly; None if it is no row. Independent of pyarrow."""
    line = line.removesuffix(b"\r").removeprefix(b"\xef\xbb\xbf")
    if b"\r" in line or not line:
        return None
    fields, rest = [], line
    while True:
        if rest.startswith(b'"'):
            field, at = b"", 1
            while True:
                end = rest.find(b'"', at)
                if end < 0:
                    return None
                field += rest[at:end]
                if rest[end + 1 : end + 2] != b'"':
                    break
                field, at = field + b'"', end + 2
            rest = rest[end + 1 :]
            fields.append(field)
            if rest and not rest.startswith(delimiter.encode()):
                return None
            if not rest:
                break
            rest = rest[1:]
        else:
            field, comma, rest = rest.partition(delimiter.encode())
            if b'"' in field:
                return None
            fields.append(field)
            if not comma:
                break
    return tuple(fields) if len(fields) == width else None


atoms = st.sampled_from([b"a", b"7", b"x y", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xef", b"\xc3\xa9", b""])
quoted = st.sampled_from([b'""', b'"a"', b'"a,b"', b'"a""b"', b'""""', b'"\xff"', b'"\xef\xbb\xbf"', b'",,"'])
broken = st.sampled_from([b'"', b'a"', b'"a', b'"a"b', b"\r", b"a\rb", b'"""', b'"a\r"'])
field = st.integers(0, 9).flatmap(lambda pick: atoms if pick < 6 else quoted if pick < 9 else broken)
one_row = st.sampled_from([2, 2, 2, 2, 1, 3]).flatmap(lambda n: st.lists(field, min_size=n, max_size=n)).map(b",".join)
a_line = st.tuples(one_row, st.sampled_from([b"", b"", b"\r"])).map(b"".join)
noise = st.binary(max_size=12).map(lambda line: line.replace(b"\n", b""))
soup = st.lists(st.one_of(a_line, a_line, a_line, noise), max_size=12)


@deeper
def test_the_soup_is_nourishing():
    """Guard the tests below: in 200 examples there are many rows, of every sort."""
    sorts = Counter()

    @settings(max_examples=often(200, 120), deadline=None, database=None, derandomize=True)
    @given(soup)
    def count(soup_lines):
        for line in soup_lines:
            row = one_line(line, 2) is not None
            sorts["row" if row else "no row"] += 1
            sorts["quoted row"] += row and b'"' in line
            sorts["mark in front"] += row and line.startswith(b"\xef")

    count()
    assert min(sorts[sort] for sort in ("row", "no row", "quoted row", "mark in front")) > 20


@LOOSE
@given(soup, st.integers(1, 40), st.booleans())
def test_every_line_is_read_by_itself(tmp_path, soup_lines, block, ended):
    """Byte soup against a plain parser of one line at a time, for any block size."""
    data = b"a,b\n" + b"\n".join(soup_lines) + b"\n" * ended
    expected = Counter(filter(None, (one_line(line, 2) for line in soup_lines)))
    path = write(tmp_path, data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grammar, "BLOCK", block)
        assert rows(path, BYTES) == expected


@LOOSE
@given(soup.filter(bool), st.data())
def test_removing_a_line_removes_its_row_only(tmp_path, soup_lines, data):
    index = data.draw(st.integers(0, len(soup_lines) - 1))
    whole = rows(write(tmp_path, b"a,b\n" + b"\n".join(soup_lines) + b"\n"), {"a": str, "b": int})
    less = soup_lines[:index] + soup_lines[index + 1 :]
    without = rows(write(tmp_path, b"a,b\n" + b"\n".join(less) + b"\n"), {"a": str, "b": int})
    alone = rows(write(tmp_path, b"a,b\n" + soup_lines[index] + b"\n"), {"a": str, "b": int})
    assert without + alone == whole
    assert alone.total() <= 1


@LOOSE
@given(soup, st.integers(1, 5), st.integers(1, 30), st.sampled_from(["x.csv", "x.csv.gz"]))
def test_shares_are_disjoint_and_whole(tmp_path, soup_lines, parts, block, name):
    path = write(tmp_path, b"\xef\xbb\xbfa,b\r\n" + b"\n".join(soup_lines), name)
    reader = open_source(path, columns=BYTES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grammar, "BLOCK", block)
        seen, done = Counter(), []
        for part in range(parts):
            for frame in reader.batches(["b", "a"], share=(part, parts), progress=done.append):
                seen.update(frame.rows())
    expected = Counter(filter(None, (one_line(line, 2) for line in soup_lines)))
    assert seen == Counter({(b, a): number for (a, b), number in expected.items()})
    assert min(done, default=0) >= 0
    assert sum(done) <= reader.total_bytes
    if parts == 1 and any(soup_lines):
        assert sum(done) == reader.total_bytes


@LOOSE
@given(
    st.lists(
        st.tuples(st.text(st.characters(exclude_characters="\r\n", codec="utf-8")), st.text("a\",' \t")), max_size=20
    ),
    st.sampled_from([python_csv.QUOTE_ALL, python_csv.QUOTE_MINIMAL]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([("x.csv", ","), ("x.tsv", "\t"), ("x.tsv.gz", "\t")]),
)
def test_agrees_with_the_csv_module(tmp_path, records, quoting, end, form):
    name, delimiter = form
    text = io.StringIO(newline="")
    writer = python_csv.writer(text, quoting=quoting, lineterminator=end, delimiter=delimiter)
    writer.writerows([("a", "b"), *records])
    read = list(python_csv.reader(io.StringIO(text.getvalue(), newline=""), delimiter=delimiter))[1:]
    assert rows(write(tmp_path, text.getvalue().encode(), name)) == Counter(map(tuple, read)) == Counter(records)


def utf8_like(number):
    """A number as UTF-8 would write it, also where it is none: surrogates, and beyond the last character."""
    if number < 0x80:
        return bytes([number])
    if number < 0x800:
        return bytes([0xC0 | number >> 6, 0x80 | number & 63])
    if number < 0x10000:
        return bytes([0xE0 | number >> 12, 0x80 | number >> 6 & 63, 0x80 | number & 63])
    return bytes([0xF0 | number >> 18, 0x80 | number >> 12 & 63, 0x80 | number >> 6 & 63, 0x80 | number & 63])


def test_the_expression_for_utf8_is_what_python_decodes():
    """Every character and every surrogate, and all pairs of bytes with an ending."""
    cells = [utf8_like(number) for number in range(0x110000 + 999)]
    cells += [
        bytes(pair) + end for pair in itertools.product(range(256), repeat=2) for end in (b"", b"\x80", b"\x80\x80")
    ]
    found = pc.match_substring_regex(pa.array(cells, pa.binary()), UTF8).to_pylist()
    for cell, valid in zip(cells, found, strict=True):
        assert valid == (cell.decode(errors="ignore").encode() == cell), cell


@LOOSE
@given(
    st.lists(
        st.binary(max_size=6)
        | st.integers(0, 0x11FFFF).map(utf8_like)
        | st.sampled_from(
            [b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xe0\x9f\xbf", b"\xf4\x90\x80\x80", b"\xc1\xbf", b"\xf0\x8f\xbf\xbf"]
        ),
        max_size=6,
    ),
    st.integers(1, 9),
)
def test_text_is_null_where_python_cannot_decode_it(tmp_path, cells, block):
    clean = [cell.translate(None, b'\n\r",') for cell in cells]

    def decoded(cell):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            return None

    path = write(tmp_path, b"".join(b"%s,x\n" % cell for cell in clean))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grammar, "BLOCK", block)
        skip = 3 if clean and clean[0].startswith(b"\xef\xbb\xbf") else 0
        expected = [cell[skip:] if index == 0 else cell for index, cell in enumerate(clean)]
        assert rows(path, ("a", "b"), header=False) == Counter((decoded(cell), "x") for cell in expected)


ascii_or_not = (
    st.none() | st.text("ab7", max_size=13).map(str.encode) | st.sampled_from([b"\xc3\xa9", b"\x80", b"\xff" * 9])
)


@given(st.lists(ascii_or_not, max_size=9), st.integers(0, 9), st.integers(0, 9), st.booleans())
def test_a_slice_of_bytes_is_text_where_python_decodes_it(cells, start, size, chunked):
    """A slice that is ASCII is not looked at item by item, whatever lies beside it."""
    array = pa.array(cells, pa.binary()).slice(start, size)
    found = valid_text(pa.chunked_array([array]) if chunked else array, "x").to_list()
    decoded = [None if cell is None else cell.decode(errors="replace") for cell in cells[start : start + size]]
    assert found == [None if text is None or "\ufffd" in text else text for text in decoded]


def test_a_ragged_line_that_is_no_utf8_drops_itself_only(tmp_path):
    """pyarrow's own handler of invalid rows fails on this: the whole file would be lost."""
    assert rows(write(tmp_path, b"a,b\n1,2\n\xff,\xfe,\xfd\n3,4\n")) == Counter([("1", "2"), ("3", "4")])


@pytest.mark.parametrize("header", [True, False])
def test_a_byte_order_mark_is_dropped_wherever_a_line_begins(tmp_path, monkeypatch, header):
    """Dropped from the first line alone, it told of the second one whether a line stood before it."""
    monkeypatch.setattr(grammar, "BLOCK", 4)
    head = b"\xef\xbb\xbfa,b\n" if header else b""
    path = write(tmp_path, head + b"\xef\xbb\xbfx,1\n\xef\xbb\xbfy,2\n\xef\xbb\xbf\xef\xbb\xbfz,\xef\xbb\xbf3\n")
    found = rows(path) if header else rows(path, columns=("a", "b"), header=False)
    assert found == Counter([("x", "1"), ("y", "2"), ("\ufeffz", "\ufeff3")])


@pytest.mark.parametrize("block", [1, 2, 7, 64])
@pytest.mark.parametrize("parts", [1, 3])
def test_a_longer_line_than_the_longest_is_dropped(tmp_path, monkeypatch, block, parts):
    monkeypatch.setattr(grammar, "BLOCK", block)
    monkeypatch.setattr(grammar, "LONGEST", 64)
    data = b"1,2\n" + b"a" * 62 + b",x\n" + b"b" * 63 + b",x\n3,4\n" + b"c" * 200 + b",x"
    reader = open_source(write(tmp_path, data), columns=("a", "b"), header=False)
    seen = Counter()
    for part in range(parts):
        for frame in reader.batches(["a", "b"], share=(part, parts)):
            seen.update(frame.rows())
    assert seen == Counter([("1", "2"), ("a" * 62, "x"), ("3", "4")])


def test_a_line_longer_than_a_block_is_read(tmp_path):
    long = b"x" * (grammar.BLOCK + 1000)
    found = rows(write(tmp_path, b"a,b\n1,2\n" + long + b",3\n4,5\n"))
    assert found == Counter([("1", "2"), (long.decode(), "3"), ("4", "5")])


def test_files_are_read_as_a_stream(tmp_path, monkeypatch):
    """After the first frame no more than a block or two has been read: a reader that takes the whole file fails."""
    monkeypatch.setattr(grammar, "BLOCK", 1 << 10)
    path = write(tmp_path, b"a,b\n" + b"user,page\n" * 20_000)
    done = []
    frames = open_source(path).batches(["a"], progress=done.append)
    assert next(frames).height <= 1 << 10
    assert sum(done) <= 2 << 10
    assert sum(frame.height for frame in frames) > 19_000


def test_more_columns_than_a_regular_expression_may_repeat(tmp_path):
    names = ",".join(f"c{number}" for number in range(3000))
    good, bad = ",".join("1" * 3000), ",".join("1" * 2999)
    reader = open_source(write(tmp_path, f'{names}\n{good}\n{bad}\n"{good[0]}"{good[1:]}\n"{bad}\n'.encode()))
    assert sum(frame.height for frame in reader.batches(["c2999", "c7"])) == 2


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (int, {"7": 7, "+5": 5, "007": 7, "-0": 0, " 1": None, "1 ": None, "1e3": None, "0x1": None, "1_0": None,
               "": None, "1.0": None, f"{2**63 - 1}": 2**63 - 1, f"{2**63}": None, "१": None, "1\0": None}),
        (float, {"1.5": 1.5, "1e3": 1000.0, ".5": 0.5, "inf": float("inf"), "x": None, "": None, " 1": None}),
        (bool, {"true": True, "FALSE": False, "1": True, "0": False, "yes": None, "": None}),
        ("date", {"2024-02-29": pl.date(2024, 2, 29), "2023-02-29": None, "2024-2-9": None, "": None}),
        ("timedelta", {"1:00:00": 3600_000_000, "-0:00:01.5": -1_500_000, "1:60:00": None, "90": None, "": None}),
        ("datetime", {"2024-02-29 10:00": 1709200800_000_000, "2024-02-29T10:00:00.25": 1709200800_250_000,
                      "2024-02-29 10:00:00.1234567": 1709200800_123_456, "2024-02-30 10:00": None,
                      "2024-02-29 10:00Z": 1709200800_000_000, "2024-02-29 11:00+01": 1709200800_000_000,
                      "2024-02-29": None, "": None}),
        ("instant", {"2024-02-29 11:00+01:00": 1709200800_000_000, "2024-02-29T10:00:00Z": 1709200800_000_000,
                     "2024-02-29 10:00": None, "": None}),
    ],
)  # fmt: skip
def test_grammar_of_typed_fields(tmp_path, kind, fields):
    """All spellings in one file, then each alone: the same, so no spelling changes how another one is read."""
    data = b"x,y\n" + "".join(f"{field},1\n" for field in fields).encode()
    reader = open_source(write(tmp_path, data), columns={"x": kind})
    (frame,) = reader.batches(["x"])
    expected = [pl.select(value).item() if isinstance(value, pl.Expr) else value for value in fields.values()]
    column = frame["x"].to_physical() if kind in ("timedelta", "datetime", "instant") else frame["x"]
    assert column.to_list() == expected
    for field, value in zip(fields, frame["x"], strict=True):
        (alone,) = open_source(write(tmp_path, f"x,y\n{field},1\n".encode()), columns={"x": kind}).batches(["x"])
        assert alone["x"].to_list() == [value]


def test_an_empty_field_is_the_empty_text(tmp_path):
    assert rows(write(tmp_path, b'a,b\n,""\n'), {"a": str, "b": str}) == Counter([("", "")])


def test_a_mapping_gives_types_and_a_sequence_picks(tmp_path):
    path = write(tmp_path, b"user,page,time\na,1,x\n")
    assert str(open_source(path).schema) == "(user: text, page: text, time: text)"
    assert str(open_source(path, columns={"page": int}).schema) == "(user: text, page: integer, time: text)"
    assert rows(path, ("page", "user")) == Counter([("1", "a")])
    with pytest.raises(SourceError, match=r"no column 'pages'; there are 'user', 'page', 'time'"):
        open_source(path, columns=["pages"])


def test_pairs_of_a_graph_file(tmp_path, monkeypatch):
    data = b"# nodes 7\n\xff# x y\n1\t2\n  3   4  \r\n5 6 7\n\n   # comment\n8\t\x0b 9\r\r\n10 11"
    for block in (1, 3, 1 << 20):
        monkeypatch.setattr(grammar, "BLOCK", block)
        path = write(tmp_path, data, "edges.txt")
        assert rows(path) == Counter([("1", "2"), ("3", "4"), ("10", "11")])
    assert rows(path, {"from": int, "to": int}) == Counter([(1, 2), (3, 4), (10, 11)])
    assert open_source(path).schema["user"].kind is Kind.TEXT


@LOOSE
@given(
    st.lists(
        st.lists(st.sampled_from([b"1", b"22", b" ", b"\t", b"#", b'"', b"\x0c"]), max_size=7).map(b"".join), max_size=8
    )
)
def test_pairs_agree_with_split(tmp_path, soup_lines):
    expected = Counter()
    for line in soup_lines:
        fields = line.replace(b"\x0c", b" ").split()
        if len(fields) == 2 and not fields[0].startswith(b"#"):
            expected[tuple(field.decode() for field in fields)] += 1
    assert rows(write(tmp_path, b"\n".join(soup_lines), "x.txt")) == expected


def test_an_empty_file_with_declared_columns_has_no_records(tmp_path):
    path = write(tmp_path, b"")
    assert rows(path, ("user", "page")) == Counter()
    assert rows(path, ("user", "page"), header=False) == Counter()
    assert rows(write(tmp_path, b"user,page\n"), {"page": int}) == Counter()
    assert rows(write(tmp_path, b"", "e.txt")) == Counter()
