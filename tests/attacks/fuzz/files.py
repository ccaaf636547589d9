"""Files grown at random, odd in every way that files are; `readers` reads them with and without a record.

A file is pieces of bytes, one for each record, or rows of a table. What it is called, its header, its schema and its
layout are public; a piece is private.
"""

from __future__ import annotations

import decimal
import gzip
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

TEXT = [b"ann", b"bob", b"", b" ", b"home", b"7", b"-1", b"3.5", b"1,5", b"1e400", b"nan", b"true", b"2026-11-21",
        b"2026-11-21 10:00:00", b"2026-11-21T10:00:00+25:00", b"9999999999999999999999", b"\xff", b"\xed\xa0\x80",
        b"\xef\xbb\xbf", b"\xef\xbb\xbfann", b"\0", b"a\0b", "Zürich".encode(), "Zürich".encode("latin-1"), b'"', b'""',
        b'"a"', b'"a,b"', b'"a""b"', b'"a', b'a"', b'a"b', b"\r", b"a\r", b"\x1f\x8b", b"PAR1", b"#", b"# no", b"a;b",
        b"a\tb", b"a|b", b"\x85", b"\xe2\x80\xa8", b"\x1a", b"x" * 70, b"NULL", b"\\N", b"'", b"\\"]  # fmt: skip
LINES = [b"", b" ", b"\r", b"#", b"# a comment", b'"', b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b",,,,", b"\t\t",
         b"x" * 200, b'"' + b"y" * 90, b"{", b"[]", b"null"]  # fmt: skip
LOG = [b'1.2.3.4 - ann [10/Oct/2026:13:55:36 -0700] "GET /a HTTP/1.0" 200 12',
       b'1.2.3.4 - - [31/Feb/2026:13:55:36 +9900] "GET /a" 200 -', b'h - "a b" [10/Oct/2026:13:55:36 +0000] "-" 400 0',
       b'h - b [10/Oct/9999:23:59:60 +0000] "\\x16\\x03" 400 99999999999999999999',
       b'h - b [10/Oct/2026:13:55:36 +0000] "GET /\xff HTTP/1.1" 200 1 "-" "a\\"b"',
       b'h - b [10/Oct/2026:13:55:36 +0000] "GET /a?b=\xc3\xbc HTTP/1.1" 200 1 "-" "agent"']  # fmt: skip
JSON = [b'{"user": "ann", "n": 1}', b'{"user": "ann", "n": 1.5, "t": "2026-11-21T10:00:00Z"}', b'{"user": null}',
        b'{"user": "\\ud800"}', b'{"user": "ann", "user": "bob"}', b'{"n": 1e400}', b'{"n": NaN, "user": "x"}',
        b'{"user": ["ann"], "n": true}', b'{"user": "a" "n": 1}', b"[" * 60, b'{"a":' * 60,
        b'{"n": 99999999999999999999}',
        b'{"user": "\xff"}', b'{"t": "0001-01-01T00:00:00+23:59"}', b'{"n": "7"}', b' {"user": "ann"} ',
        b'{"user": "a"}x',
        b'{"t": 1e300, "user": "z"}', b'\xef\xbb\xbf{"user": "ann"}']  # fmt: skip
KINDS = ["text", "integer", "float", "boolean", "timestamp", "date", "instant", "bytes", "duration"]
ARROW: list[tuple[Any, list[Any]]] = [
    (pa.string(), ["a", "", None, "Zürich", "x" * 300]),
    (pa.large_string(), ["a", None, "\0", "é"]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None]),
    (pa.int64(), [0, -1, None, 2**63 - 1, -(2**63)]),
    (pa.int8(), [0, -128, None, 127]),
    (pa.uint64(), [0, 2**64 - 1, None, 2**63]),
    (pa.float64(), [0.0, -0.0, float("nan"), float("inf"), None, 1e308, 5e-324]),
    (pa.float16(), [1.5, None]),
    (pa.bool_(), [True, False, None]),
    (pa.binary(), [b"\xff", b"", None]),
    (pa.binary(2), [b"\xff\0", None]),
    (pa.date32(), [0, None, 3_000_000, -3_000_000, 2**31 - 1]),
    (pa.date64(), [0, None, 86_400_000, 2**60 // 86_400_000 * 86_400_000]),
    (pa.timestamp("s"), [0, None, 2**53, -(2**53), 253_402_300_800]),
    (pa.timestamp("ns"), [0, None, 2**63 - 1, 1, -(2**63)]),
    (pa.timestamp("us", "Europe/Amsterdam"), [0, None, 2**62, -(2**62)]),
    (pa.time64("us"), [0, 86_399_999_999, None]),
    (pa.duration("s"), [0, None, 2**62, -5]),
    (pa.duration("us"), [0, None, 2**62]),
    (pa.decimal128(38, 2), [None, "1.50", "99999999999999999999999999999999.99"]),
    (pa.list_(pa.int64()), [None, [1], []]),
    (pa.null(), [None]),
]  # fmt: skip


@dataclass(frozen=True)
class Grown:
    """A file.

    Attributes:
        name: Of it; tells its form.
        pieces: Records: lines, of which the last may have no end, or rows.
        head: What stands before the first line.
        words: What is declared of its form.
        columns: What is declared of its columns.
        fields: Of a table, the columns' types.
        layout: Of a table, how it is written.
        block: How many bytes are read at a time; and the longest line.
        removed: Which record the neighbour lacks.
    """

    name: str
    pieces: tuple[Any, ...]
    removed: int
    head: bytes = b""
    words: dict[str, Any] = field(default_factory=dict)
    columns: Any = None
    fields: tuple[tuple[str, Any], ...] = ()
    layout: dict[str, Any] = field(default_factory=dict)
    block: int = 1 << 22

    def kept(self, places: list[int]) -> Grown:
        """The same with some of its records."""
        return replace(self, pieces=tuple(self.pieces[place] for place in places))

    @property
    def without(self) -> Grown:
        """The neighbour."""
        return self.kept([place for place in range(len(self.pieces)) if place != self.removed])

    @property
    def alone(self) -> Grown:
        """The one record, in a file of its own."""
        return self.kept([self.removed])

    def write(self, home: Path) -> Path:
        """Write it."""
        home.mkdir()
        path = home / self.name
        if self.fields:
            self._table(path)
            return path
        body = self.head + b"".join(self.pieces)
        path.write_bytes(gzip.compress(body, 1) if path.suffix == ".gz" else body)
        return path

    def _table(self, path: Path) -> None:
        schema = pa.schema([pa.field(name, type_) for name, type_ in self.fields])
        columns = [[row[place] for row in self.pieces] for place in range(len(self.fields))]
        table = pa.table([_array(values, one.type) for values, one in zip(columns, schema, strict=True)], schema)
        if path.suffix == ".parquet":
            pa.parquet.write_table(table, path, **self.layout)
        else:
            pa.feather.write_feather(table, path, **self.layout)


def _array(values: list[Any], type_: Any) -> Any:
    if pa.types.is_integer(type_) or pa.types.is_dictionary(type_):
        return pa.array(values, type_)
    if pa.types.is_decimal(type_):
        return pa.array([None if one is None else decimal.Decimal(one) for one in values], type_)
    if pa.types.is_temporal(type_):
        bits = pa.int32() if type_.bit_width == 32 else pa.int64()
        return pa.array(values, bits).view(type_)
    return pa.array(values, type_)


def grow(seed: int) -> Grown:
    """A file of a seed."""
    rng = random.Random(f"files {seed}")
    form = rng.choice(["csv", "csv", "csv", "tsv", "txt", "log", "jsonl", "parquet", "parquet", "arrow"])
    return _rows(rng, form) if form in ("parquet", "arrow") else _lines(rng, form)


def _lines(rng: random.Random, form: str) -> Grown:
    size = rng.choice([1, 2, 3, 5, 12, 40])
    words: dict[str, Any] = {}
    mark = {"csv": b",", "tsv": b"\t"}.get(form, b" ")
    names = ["user", "page", "n"][: rng.choice([1, 2, 3, 3])]
    columns: Any = {name: rng.choice([None, *KINDS]) for name in names} if rng.random() < 0.7 else None
    head = b""
    if form == "csv" and rng.random() < 0.3:
        mark = rng.choice([b";", b"|", b"\t"])
        words["separator"] = mark.decode()
    if form == "csv" and rng.random() < 0.3:
        words["encoding"] = rng.choice(["latin-1", "cp1252", "utf-8", "ascii"])
    if form == "csv" and rng.random() < 0.2:
        words["decimal"] = rng.choice([",", "."])
    ends = rng.choice([b"\n", b"\n", b"\r\n"])
    if form in ("csv", "tsv"):
        words["header"] = rng.random() < 0.6
        if words["header"]:
            head = rng.choice([b"", b"", b"\xef\xbb\xbf"]) + mark.join(name.encode() for name in names) + ends
        else:
            columns = columns or tuple(names)
    elif form == "jsonl":
        columns = {"user": "text", "n": rng.choice(KINDS), "t": rng.choice(KINDS)}
    elif form == "log":
        columns = None if rng.random() < 0.5 else ("host", "user", "time", "page", "status")
        if rng.random() < 0.3:
            words["format"] = rng.choice(["common", "combined", "vhost_combined", '$remote_addr $status "$request"'])
    pieces = [_line(rng, form, mark, len(names)) + ends for _ in range(size)]
    if rng.random() < 0.3:
        pieces[-1] = pieces[-1].removesuffix(ends)
    zipped = rng.random() < 0.2
    return Grown(
        f"views.{form}" + (".gz" if zipped else ""), tuple(pieces), rng.randrange(size), head, words, columns,
        block=rng.choice([1 << 22, 64, 17]),
    )  # fmt: skip


def _line(rng: random.Random, form: str, mark: bytes, width: int) -> bytes:
    if rng.random() < 0.1:
        line = rng.choice(LINES)
    elif form in ("log", "jsonl"):
        line = rng.choice(LOG if form == "log" else JSON)
        if rng.random() < 0.2:  # one byte of it is another
            place = rng.randrange(len(line))
            line = line[:place] + bytes([rng.randrange(256)]) + line[place + 1 :]
    else:
        line = mark.join(rng.choice(TEXT) for _ in range(width + rng.choice([0, 0, 0, 0, 1, -1])))
    return line.replace(b"\n", b"?")


def _rows(rng: random.Random, form: str) -> Grown:
    size = rng.choice([1, 2, 3, 7, 30])
    chosen = [rng.choice(ARROW) for _ in range(rng.choice([1, 2, 3]))]
    fields = tuple((f"c{place}", type_) for place, (type_, _) in enumerate(chosen))
    pieces = tuple(tuple(rng.choice(values) for _, values in chosen) for _ in range(size))
    if form == "parquet":
        layout = {"row_group_size": rng.choice([1, 2, 1000]), "use_dictionary": rng.random() < 0.5,
                  "write_statistics": rng.random() < 0.5, "compression": rng.choice(["none", "snappy", "zstd"]),
                  "data_page_version": rng.choice(["1.0", "2.0"]), "store_schema": rng.random() < 0.7}  # fmt: skip
    else:
        layout = {"compression": rng.choice(["uncompressed", "lz4", "zstd"]), "chunksize": rng.choice([1, 2, 1000])}
    columns = {name: rng.choice([None, None, *KINDS]) for name, _ in fields} if rng.random() < 0.4 else None
    return Grown(f"views.{form}", pieces, rng.randrange(size), columns=columns, fields=fields, layout=layout)
