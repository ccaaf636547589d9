"""Files as people have them: rotated logs, logs of any format, spreadsheets, tables, directories."""

import datetime as dt
import gzip
import json
import re

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wpinq
from wpinq.apps.cli import main
from wpinq.core.plan.node import sources
from wpinq.sources import open_source
from wpinq.sources.check import check
from wpinq.sources.text.logformat import compiled
from wpinq.sources.text.weblog import parse

LINE = '2001:db8::1 - ann [30/Jun/2026:23:30:00 -0200] "GET /a?b=1 HTTP/1.1" 200 512 "-" "curl \\"x\\""'
NGINX = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" '
    '"$http_x_forwarded_for" rt=$request_time ua=$upstream_response_time'
)
FRAME = pl.DataFrame({"user": ["ann", "bob", "ann"], "n": [1, 2, 3]})


def rows(source, columns=None, **words):
    reader = open_source(source, columns=columns, **words)
    parts = [
        [row for frame in reader.batches(reader.schema.names, share=(i, 2)) for row in frame.rows()] for i in (0, 1)
    ]
    whole = [row for frame in reader.batches(reader.schema.names) for row in frame.rows()]
    assert sorted(map(repr, whole)) == sorted(map(repr, parts[0] + parts[1])), "shares are disjoint and make it whole"
    return whole


def refusal(source, columns=None, **words):
    with pytest.raises(wpinq.SourceError) as caught:
        wpinq.protect(source, budget=1, columns=columns, **words)
    return str(caught.value)


@pytest.mark.parametrize("name", ["access.log", "access.log.1", "access.log.12", "access.log-20260601", "access_log",
                                  "ssl_access_log-20260601", "access.log-2026060112"])  # fmt: skip
@pytest.mark.parametrize("zipped", [False, True])
def test_logs_are_known_by_the_names_that_logrotate_gives_them(tmp_path, name, zipped):
    text = f"{LINE}\n".encode()
    (tmp_path / (name + ".gz" * zipped)).write_bytes(gzip.compress(text) if zipped else text)
    assert rows(tmp_path / (name + ".gz" * zipped), ("host", "page")) == [("2001:db8::1", "/a?b=1")]


def test_a_pattern_reads_a_log_with_all_that_was_rotated_and_not_the_ledger_beside_it(tmp_path):
    text = f"{LINE}\n".encode()
    (tmp_path / "access.log").write_bytes(text)
    assert wpinq.protect(tmp_path / "access.log", budget=100).count(epsilon=50).value == 1
    (tmp_path / "access.log.1").write_bytes(text * 2)
    (tmp_path / "access.log.2.gz").write_bytes(gzip.compress(text * 3))
    assert len(list(tmp_path.glob("access.log.ledger*"))) > 1
    assert len(rows(str(tmp_path / "access.log*"), ("host",))) == 6
    assert "not of a known format" in refusal(tmp_path / "access.log.ledger")


def test_formats_of_nginx_and_apache_are_compiled(tmp_path):
    assert rows_of("common", LINE[: LINE.index(' "-"')])[0][:3] == ("2001:db8::1", None, "ann")
    assert rows_of("combined", LINE)[0][-2:] == (None, r"curl \"x\"")
    (tmp_path / "v.log").write_text(f"shop.org:443 {LINE}\n")
    assert rows(tmp_path / "v.log", ("server", "port", "host", "status"), format="vhost_combined") == [
        ("shop.org", 443, "2001:db8::1", 200)
    ]
    (tmp_path / "n.log").write_text(f'{LINE} "1.2.3.4, 5.6.7.8" rt=0.25 ua=0.1, 0.2 : 0.3\n{LINE}\n')
    found = rows(
        tmp_path / "n.log", ("host", "x_forwarded_for", "request_time", "upstream_response_time"), format=NGINX
    )
    assert found == [("2001:db8::1", "1.2.3.4, 5.6.7.8", 0.25, "0.1, 0.2 : 0.3")]
    assert dict(check(tmp_path / "n.log", format=NGINX).counts) == {"not of the format of the log": 1}
    assert rows(tmp_path / "v.log", ("host",)) == [], "a line of another format is none"
    apache = r'LogFormat "%{X-Forwarded-For}i %l %u %{msec}t \"%r\" %>s %O %D %%" mine'
    assert rows_of(apache, '9.9.9.9 - - 1782869400123 "POST / HTTP/2.0" 404 - 1500 %') == [
        ("9.9.9.9", None, None, dt.datetime(2026, 7, 1, 1, 30, 0, 123000, dt.UTC), "POST", "/", "HTTP/2.0", 404, None,
         1500)
    ]  # fmt: skip
    whole = "log_format main escape=default '$msec|$request_uri|' '$status|$time_iso8601';"
    assert list(compiled(whole).kinds) == ["time", "page", "status", "time_iso8601"]
    assert rows_of(whole, "1782869400.25|/a b|200|2026-07-01T01:30:00+00:00") == [
        (dt.datetime(2026, 7, 1, 1, 30, 0, 250000, dt.UTC), "/a b", 200, dt.datetime(2026, 7, 1, 1, 30, tzinfo=dt.UTC))
    ]


def rows_of(format_, *lines):
    return parse(pl.Series("line", lines, dtype=pl.String), compiled(format_)).rows()


FIELDS = st.text("ab/?=&;|:.,'%$\\[](){}é\U0001f600\t", max_size=8)


@given(st.lists(st.tuples(st.sampled_from(["1.2.3.4", "::1", "-"]), FIELDS, FIELDS, st.booleans()), max_size=6))
def test_awkward_lines_are_read_as_an_independent_parser_reads_them_and_each_by_itself(items):
    """The oracle goes from character to character and knows no regular expression."""
    escaped = [(host, *(one.replace("\\", "\\\\") for one in both), torn) for host, *both, torn in items]
    lines = [f'{host} "{page}" "{agent}" 200'[: -9 if torn else None] for host, page, agent, torn in escaped]
    format_ = '$remote_addr "$request_uri" "$http_user_agent" $status'
    expected = [one for one in map(by_hand, lines) if one is not None]
    assert rows_of(format_, *lines) == expected
    assert [row for line in lines for row in rows_of(format_, line)] == expected


def by_hand(line):
    fields, rest = [], line
    for quoted in (False, True, True, False):
        if quoted:
            if not rest.startswith('"'):
                return None
            end = 1
            while end < len(rest) and rest[end] != '"':
                end += 2 if rest[end] == "\\" else 1
            if end >= len(rest):
                return None
            field, rest = rest[1:end], rest[end + 1 :]
        else:
            end = rest.find(" ") if " " in rest else len(rest)
            field, rest = rest[:end], rest[end:]
            if not field:
                return None
        fields.append(None if field == "-" else field)
        if len(fields) < 4:
            if not rest.startswith(" "):
                return None
            rest = rest[1:]
    if rest.strip():
        return None
    return (*fields[:3], int(fields[3]) if fields[3] and re.fullmatch("[0-9]+", fields[3]) else None)


@pytest.mark.parametrize(
    ("format_", "what"),
    [("nonsense", "is no format"), ("$a$b", "nothing separates $a"), ("%h %r", "needs quotes"), ("%h %Q", "%Q is not"),
     ("$status $status $status", "stands twice"), ('{"a":"$status"}', "'json' for lines of JSON"), ("%h %{%F}t", "%t"),
     ("", "is no format")],
)  # fmt: skip
def test_a_format_that_could_not_be_read_is_refused_before_a_record_is_read(tmp_path, format_, what):
    (tmp_path / "a.log").write_text("x\n")
    assert what in refusal(tmp_path / "a.log", format=format_)


def test_a_spreadsheet_is_read_as_it_was_saved(tmp_path):
    path = tmp_path / "persons.csv"
    path.write_bytes('name;income;note\nJosé;1234,5;a,b\nZoë;2.5;\x81\nMax;-1e3;"x;y"\n'.encode("latin-1"))
    said = {"separator": ";", "decimal": ",", "encoding": "cp1252"}
    assert set(rows(path, {"income": float}, **said)) == {
        ("José", 1234.5, "a,b"), ("Zoë", None, None), ("Max", -1000.0, "x;y")
    }  # fmt: skip
    assert dict(check(path, {"income": float}, **said).counts) == {"not of its declared type": 1, "invalid UTF-8": 1}
    message = refusal(path)
    assert "pass separator=';'" in message
    assert "Jos" not in message
    for mark in "|;~^.":
        other = tmp_path / "other.csv"
        other.write_text(f'a{mark}b\n"x{mark}y"{mark}2\n')
        assert rows(other, separator=mark) == [(f"x{mark}y", "2")]


def test_what_was_said_of_a_form_is_part_of_the_question(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n1,5\n")
    for spent, said in enumerate([{}, {"decimal": ","}, {"encoding": "latin-1"}], 1):
        for _ in range(2):
            column = wpinq.protect(path, budget=5, version="1", columns={"x": float}, separator=";", **said)
            column.map("x").measure(1)
            assert sources(column._node)[0].ledger.spent()[0] == spent


@pytest.mark.parametrize(
    ("said", "what"),
    [({"separator": ";;"}, "one character"), ({"separator": '"'}, "one character"), ({"decimal": "x"}, "decimal="),
     ({"encoding": "utf-16"}, "one byte a character"), ({"encoding": "shift_jis"}, "one byte"),
     ({"encoding": "cp037"}, "one byte"), ({"encoding": "none"}, "one byte"), ({"table": "t"}, "DuckDB"),
     ({"tz": "Mars"}, "no time zone"), ({"tz": "Europe/Rome"}, "no column is an instant")],
)  # fmt: skip
def test_a_form_that_is_none_is_refused(tmp_path, said, what):
    (tmp_path / "a.csv").write_text("x\n1\n")
    assert what in refusal(tmp_path / "a.csv", **said)


def test_a_form_that_means_nothing_for_a_source_is_refused(tmp_path):
    FRAME.write_parquet(tmp_path / "a.parquet")
    assert "separator= means nothing" in refusal(tmp_path / "a.parquet", separator=";")
    assert "format= means nothing" in refusal(FRAME, format="csv")


def test_lines_of_json_have_the_declared_keys(tmp_path):
    lines = [
        json.dumps({"user": "ann", "n": 3, "at": "2026-07-01T00:30:00+02:00", "more": [1]}),
        '{"n":"7","user":null}', "[1]", '"{"', "{", "", "\xff", ' {"user":"é","n":1.5}',
    ]  # fmt: skip
    (tmp_path / "a.jsonl").write_bytes("\n".join(lines).encode("latin-1").replace(b"\xe9", b"\xc3\xa9"))
    kinds = {"user": str, "n": int, "at": "instant"}
    at = dt.datetime(2026, 6, 30, 22, 30, tzinfo=dt.UTC)
    expected = [("ann", 3, at), (None, 7, None), ("é", None, None)]
    assert rows(tmp_path / "a.jsonl", kinds) == expected
    (tmp_path / "app.log.1.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    assert rows(tmp_path / "app.log.1.gz", kinds, format="json") == expected
    report = check(tmp_path / "a.jsonl", kinds)
    assert dict(report.counts) == {"not an object of JSON": 4, "not of its declared type": 1}
    assert "pass columns=" in refusal(tmp_path / "a.jsonl")


@pytest.mark.parametrize("name", ["a.arrow", "a.feather", "a.ipc"])
@pytest.mark.parametrize("stream", [False, True])
def test_arrow_files_are_read(tmp_path, name, stream):
    path = tmp_path / name
    FRAME.write_ipc_stream(path) if stream else FRAME.write_ipc(path, compression="zstd")
    assert rows(path) == FRAME.rows()
    assert rows(path, ("n",)) == [(1,), (2,), (3,)]
    assert check(path).rows == 3
    path.write_bytes(path.read_bytes()[:60])
    assert "Arrow file" in refusal(path)


def test_a_directory_is_all_that_lies_in_it_with_the_columns_of_its_paths(tmp_path):
    for year, part in (("2025", FRAME[:1]), ("2026", FRAME[1:]), ("__HIVE_DEFAULT_PARTITION__", FRAME[:1])):
        (tmp_path / "t" / f"year={year}" / "a%20b=x%2Fy").mkdir(parents=True)
        part.write_parquet(tmp_path / "t" / f"year={year}" / "a%20b=x%2Fy" / "p.parquet")
    (tmp_path / "t" / "_SUCCESS").write_text("")
    (tmp_path / "t" / ".hidden").write_text("")
    found = rows(tmp_path / "t", {"year": int, "n": float})
    assert found == [("ann", 1.0, 2025, "x/y"), ("bob", 2.0, 2026, "x/y"), ("ann", 3.0, 2026, "x/y"),
                     ("ann", 1.0, None, "x/y")]  # fmt: skip
    assert rows(tmp_path / "t", ("year",)) == [("2025",), ("2026",), ("2026",), (None,)]
    assert check(tmp_path / "t").rows == 4
    assert wpinq.protect(tmp_path / "t", budget=100).count(epsilon=50).value == 4
    contents = {open_source(tmp_path / "t").content()}
    (tmp_path / "t" / "year=2025").rename(tmp_path / "t" / "year=2024")
    assert open_source(tmp_path / "t").content() not in contents, "a value in a path is data as well"
    FRAME.write_parquet(tmp_path / "t" / "loose.parquet")
    assert "its path has the columns" in refusal(tmp_path / "t")
    (tmp_path / "flat").mkdir()
    FRAME.write_csv(tmp_path / "flat" / "1.csv")
    FRAME.write_csv(tmp_path / "flat" / "2.csv")
    assert len(rows(tmp_path / "flat", {"n": int})) == 6


def test_a_table_of_a_duckdb_file_is_read_and_one_that_changed_is_refused(tmp_path):
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE \"my views\" AS SELECT 'ann' AS user, 1 AS n UNION ALL SELECT 'bob', 2")
    assert sorted(rows(path, table="my views")) == [("ann", 1), ("bob", 2)]
    assert sorted(rows(f"duckdb:{path}?table=my%20views", ("n",))) == [(1,), (2,)]
    views = wpinq.protect(path, budget=100, table="my views")
    assert views.count(epsilon=50).value == 2
    assert check(path, table="my views").clean
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO \"my views\" VALUES ('eve', 3)")
    with pytest.raises(wpinq.SourceError, match="changed after it was opened"):
        views.map(lambda user: user).measure(1).observe("ann")
    assert "cannot be read" in refusal(path, table="none")
    assert "table=" in refusal(path)


def test_data_sets_of_pyarrow_and_the_index_of_pandas_are_read(tmp_path):
    FRAME.write_parquet(tmp_path / "a.parquet")
    assert rows(pyarrow.dataset.dataset(tmp_path / "a.parquet")) == FRAME.rows()
    assert rows(FRAME.lazy()) == FRAME.rows()
    at = pd.DatetimeIndex(["2026-01-01", "2026-01-02"])
    first, second = dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2)
    assert rows(pd.DataFrame({"n": [1, 2]}, index=at)) == [(first, 1), (second, 2)]
    assert rows(pd.DataFrame({"n": [1, 2]}, index=at.rename("at")), ("at",)) == [(first,), (second,)]
    assert rows(pd.DataFrame({"n": [1, 2]}, index=[7, 9])) == [(1,), (2,)], "numbers of rows are no data"
    both = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", None])
    assert rows(pd.DataFrame({"n": [1, 2]}, index=both)) == [("a", 1), ("b", 2)]
    assert "rename one" in refusal(pd.DataFrame({"n": [1]}, index=pd.Index([1], name="n")))


def test_a_zone_gives_days_and_hours_as_people_of_it_mean_them(tmp_path):
    (tmp_path / "a.log").write_text(f"{LINE}\n")
    assert rows(tmp_path / "a.log", ("time",), tz="Europe/Amsterdam") == [(dt.datetime(2026, 7, 1, 3, 30),)]
    assert rows(tmp_path / "a.log", ("time",), tz="America/New_York") == [(dt.datetime(2026, 6, 30, 21, 30),)]
    (tmp_path / "a.csv").write_text("at\n2026-03-29T01:30:00Z\nx\n")
    assert rows(tmp_path / "a.csv", {"at": "instant"}, tz="Europe/Amsterdam") == [
        (dt.datetime(2026, 3, 29, 3, 30),), (None,)
    ]  # fmt: skip
    views = wpinq.protect(tmp_path / "a.log", budget=1000, tz="Europe/Amsterdam")
    days = views.map(lambda time: time.date()).measure(60)
    assert days.observe(dt.date(2026, 7, 1)) == 1
    assert check(tmp_path / "a.log", tz="Europe/Amsterdam").clean


def test_the_command_line_reads_them_alike(tmp_path, capsys):
    (tmp_path / "access.log.1").write_text(f'{LINE} "-" rt=1 ua=-\n' * 7)
    query = "SELECT EXTRACT(day FROM time) AS day, COUNT(*) AS n FROM v GROUP BY day"
    spend = ["--epsilon", "60", "--delta", "1e-6", "--budget", "60", "--ledger", str(tmp_path / "l")]
    form = ["--format", NGINX, "--tz", "Europe/Amsterdam"]
    assert main(["sql", query, "--from", f"v={tmp_path}/access.log*", *form, *spend]) == 0
    assert re.search(r"^1 +7 ± 0$", capsys.readouterr().out, re.MULTILINE)
    (tmp_path / "p.csv").write_text("who;x\nann;1,5\n")
    look = ["check", str(tmp_path / "p.csv"), "--columns", "who,x:float", "--separator", ";"]
    assert main(look) == 1
    assert main([*look, "--decimal", ","]) == 0
    assert main(["explain", "page_views", str(tmp_path / "access.log.1"), *form]) == 0
