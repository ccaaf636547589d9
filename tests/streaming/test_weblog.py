"""Web logs, and files that grow."""

import datetime as dt
import gzip

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wpinq
from wpinq.core.records.schema import polars_type
from wpinq.sources import open_source
from wpinq.sources.check import check
from wpinq.sources.report import FORM, TYPE
from wpinq.sources.text.weblog import SCHEMA, parse

GOOD = (
    '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 '
    '"http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"'
)
AT = dt.datetime(2000, 10, 10, 20, 55, 36, tzinfo=dt.UTC)
EXACT = 60


def rows(*lines):
    return parse(pl.Series("line", lines, dtype=pl.String)).rows()


def test_the_example_of_the_apache_manual():
    assert rows(GOOD) == [
        ("127.0.0.1", None, "frank", AT, "GET", "/apache_pb.gif", "HTTP/1.0", 200, 2326,
         "http://www.example.com/start.html", "Mozilla/4.08 [en] (Win98; I ;Nav)"),
    ]  # fmt: skip
    common = GOOD[: GOOD.index(' "http')]
    assert rows(common)[0][:9] == rows(GOOD)[0][:9]
    assert rows(common)[0][9:] == (None, None)


def test_what_is_not_there_is_null_and_what_is_no_line_is_dropped():
    odd = r'h - - [31/Feb/2026:99:00:00 +0000] "\x16\x03 \"" - 99999999999999999999 "-" "a \" b"'
    assert rows(odd) == [("h", None, None, None, r"\x16\x03", r"\"", None, None, None, None, r"a \" b")]
    assert rows("", "nonsense", GOOD[:-1], "x" + '"' * 9, None, GOOD + " more", 'h - - [] "" 2000 1') == []
    assert rows('h - - [] "" 200 1') == [("h", *[None] * 6, 200, 1, None, None)]


@given(st.lists(st.one_of(st.just(GOOD), st.text(max_size=80), st.none()), max_size=5))
def test_attack_35_no_line_changes_how_another_one_is_read(lines):
    together = rows(*lines)
    assert together == [row for line in lines for row in rows(line)]
    types = [polars_type(column.kind) for column in SCHEMA]
    assert parse(pl.Series("line", lines, dtype=pl.String)).dtypes == types


def test_check_shows_the_lines_and_fields_that_are_left_out(tmp_path):
    path = tmp_path / "access.log"
    odd = r'h - - [31/Feb/2026:99:00:00 +0000] "\x16\x03\x01" 400 99999999999999999999'
    path.write_text("\n".join([GOOD, "nonsense", "", odd, 'h - - [] "-" 200 -', GOOD]) + "\n")
    report = check(path)
    assert (report.rows, report.dropped, dict(report.counts)) == (4, 1, {FORM: 1, TYPE: 4})
    found = [(problem.row, problem.column) for problem in report.problems]
    assert found == [(2, None), (4, "time"), (5, "time"), (4, "page"), (4, "size")]
    assert dict(check(path, ("host", "size")).counts) == {FORM: 1, TYPE: 1}
    path.write_text(GOOD + "\n")
    assert check(path).clean


@pytest.mark.parametrize("zipped", [False, True])
def test_a_log_is_a_source_like_any_other(tmp_path, zipped):
    text = (GOOD + "\nnonsense \xff\n" + GOOD.replace("frank", "ann") + "\r\n").encode("latin-1")
    path = tmp_path / ("access.log.gz" if zipped else "access.log")
    path.write_bytes(gzip.compress(text) if zipped else text)
    source = wpinq.protect(path, budget=1000)
    assert source.columns == SCHEMA.names
    assert source.map(lambda user: user).measure(EXACT).observe_many(["frank", "ann", None]).tolist() == [1, 1, 0]
    hours = source.window("1h", at="time").map(lambda page: page).measure(EXACT)
    assert hours.observe("/apache_pb.gif", window=AT) == 2
    halves = [sum(f.height for f in open_source(path).batches(["page"], share=(i, 2))) for i in (0, 1)]
    assert sum(halves) == 2
    assert wpinq.protect(path, budget=1000, columns=("user", "page")).columns == ("user", "page")
    for wrong in (("who",), {"status": "text"}):
        with pytest.raises(wpinq.SourceError):
            open_source(path, columns=wrong)


def test_a_file_that_grows_is_counted_once_line_by_whole_line(tmp_path):
    path = tmp_path / "access.log"
    views = wpinq.live({"user": "text", "page": "text"}, budget=1000)
    m = views.map(lambda user: user).measure(EXACT, continual=True)
    line = GOOD + "\n"
    steps = [(line * 2, 2), ("", 2), (line[:50], 2), (line[50:] + line + line[:3], 4), (line[3:], 5)]
    with path.open("w") as file:
        for text, wanted in steps:
            file.write(text)
            file.flush()
            views.follow(path)
            views.advance()
            assert m.observe("frank") == wanted
    path.rename(tmp_path / "old.1")
    path.write_text(line)
    views.follow(path)
    views.advance()
    assert m.observe("frank") == 6, "a rotated log begins anew"
    path.write_text("")
    views.follow(path)
    path.write_text(line)
    views.follow(path)
    views.advance()
    assert m.observe("frank") == 7, "and so does one that was cut"
    views.close()


def test_what_a_rotated_log_got_after_the_last_look_is_read_once(tmp_path, monkeypatch):
    """A service that follows access.log lost what was written between its last look and the rotation."""
    path, now = tmp_path / "access.log", [0.0]
    monkeypatch.setattr("wpinq.streaming.file_tail.monotonic", lambda: now[0])
    views = wpinq.live({"user": "text", "page": "text"}, budget=1000)
    m = views.map(lambda user: user).measure(EXACT, continual=True)
    line = GOOD + "\n"
    path.write_text(line)

    def counted():
        views.follow(path)
        views.advance()
        return m.observe("frank")

    assert counted() == 1
    with path.open("a") as old:
        old.write(line * 2)
        path.rename(tmp_path / "access.log.1")
        path.write_text(line)
        assert (old.flush(), counted())[1] == 4
        old.write(line + line[:9])
        assert (old.flush(), counted())[1] == 5, "a server goes on with the old file until it is told"
        path.rename(tmp_path / "other")
        (tmp_path / "access.log.1").rename(path)
        old.write(line[9:])
        assert (old.flush(), counted())[1] == 6, "and it is known when it has its name again"
        path.unlink()
        (tmp_path / "other").rename(path)
        old.write(line)
        assert (old.flush(), counted())[1] == 7, "also one that was removed"
        now[0] = 61.0
        old.write(line)
        assert (old.flush(), counted())[1] == 7, "for a minute"
        assert [len(one._open) for one in views._followed.values()] == [1]
    views.close()
    assert [len(one._open) for one in views._followed.values()] == [0]


def test_of_very_many_files_some_are_held(tmp_path, monkeypatch):
    monkeypatch.setattr("wpinq.streaming.file_tail.HELD", 3)
    for number in range(9):
        (tmp_path / f"{number}.csv").write_text("user\nann\n")
    views = wpinq.live({"user": "text"}, budget=1000)
    m = views.measure(EXACT, continual=True)
    for _ in range(2):
        views.follow(str(tmp_path / "*.csv"))
        views.advance()
        assert m.observe("ann") == 9
    assert [len(one._open) for one in views._followed.values()] == [3]
    views.close()


def test_a_directory_that_grows(tmp_path):
    views = wpinq.live({"user": "text"}, budget=1000)
    m = views.measure(EXACT, continual=True)
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text(f"page,user\nhome,ann\nnews,user {number}\n")
        views.follow(str(tmp_path / "*.csv"))
        views.advance()
        assert m.observe_many(["ann", f"user {number}"]).tolist() == [number + 1, 1]
    views.close()


def test_what_cannot_grow_is_refused(tmp_path):
    views = wpinq.live({"user": "text"}, budget=1)
    pl.DataFrame({"user": ["ann"]}).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"user\nann\n"))
    (tmp_path / "c.csv").write_text("page\nhome\n")
    for name in ("a.parquet", "b.csv.gz", "c.csv", "none.csv"):
        with pytest.raises(wpinq.SourceError):
            views.follow(tmp_path / name)
    views.close()
    anything = wpinq.live(("user",), budget=1)
    with pytest.raises(wpinq.SourceError, match="need types"):
        anything.follow(tmp_path / "c.csv")
    anything.close()


def test_files_of_any_declared_form_are_followed(tmp_path):
    log, sheet = tmp_path / "access.log", tmp_path / "a.csv"
    log.write_text(f"shop.org:443 {GOOD}\n{GOOD}\n")
    sheet.write_bytes("server;host\nshop.org;Zoë\n".encode("latin-1"))
    views = wpinq.live({"server": "text", "host": "text"}, budget=1000)
    hosts = views.map(lambda host: host).measure(EXACT, continual=True)
    views.follow(log, format="vhost_combined")
    views.follow(sheet, separator=";", encoding="latin-1")
    views.advance()
    assert hosts.observe_many(["127.0.0.1", "Zoë"]).tolist() == [1, 1]
    views.close()
    times = wpinq.live({"time": "instant"}, budget=1)
    with pytest.raises(TypeError, match="tz"):  # a stream has no zone of its own: its instants are in UTC
        times.follow(log, format="vhost_combined", tz="Europe/Rome")
    times.close()


@pytest.mark.parametrize("kept", [False, True])
def test_each_line_of_a_followed_file_counts_once_by_whatever_names_it_is_found(tmp_path, monkeypatch, kept):
    monkeypatch.chdir(tmp_path)
    path, old = tmp_path / "f.csv", tmp_path / "f.1.csv"
    path.write_text("page\na\nb\n")
    more = {"recover": "kept", "ledger": tmp_path / "ledger"} if kept else {}
    live = wpinq.live({"page": "text"}, budget=10**6, **more)
    names = ["f.csv", "./f.csv", str(path), "f.*.csv"]
    old.write_text("page\n")
    for name in names:
        live.follow(name)
    live.advance()
    with path.open("a") as file:
        file.write("c\n")
    path.rename(old)  # rotated under a name that is followed too, with a line that was not read before
    path.write_text("page\nd\n")
    for name in names:
        live.follow(name)
    live.advance()
    if kept:  # a service that is started again, from another directory
        live.close()
        live = wpinq.live({"page": "text"}, budget=10**6, **more)
        for name in reversed(names):
            live.follow(str(tmp_path / name))
    total = live.map(lambda page: "all").measure(epsilon=10**5)
    live.advance()
    assert total.observe("all") == 4
    live.close()
