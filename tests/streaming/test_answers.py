"""A loop over the answers of a live source, its sinks, and what came too late. Rule 42."""

import datetime as dt
import http.server
import json
import threading

import polars as pl
import pytest

import wpinq
from wpinq.apps.cli.streamed import write_status
from wpinq.streaming import collection
from wpinq.streaming.sinks import Release

TIMED = {"user": "text", "page": "text", "time": "timestamp with time zone"}
NOON = dt.datetime(2026, 7, 31, 12, tzinfo=dt.UTC)
EXACT = 10**4


def minute(number, seconds=0):
    return NOON + dt.timedelta(minutes=number, seconds=seconds)


def start(tmp_path, **more):
    options = {"budget": 10**6, "ledger": tmp_path / "ledger", "recover": tmp_path / "keep", "keep": 9}
    views = wpinq.live(TIMED, **{**options, **more})
    pages = views.map(lambda page: page)
    return views, {
        "total": pages.measure(EXACT, continual=True),
        "first": pages.measure(EXACT),
        "minutes": views.window("1m", at="time").map(lambda page: page).measure(EXACT),
    }


def told(answers):
    return [(one["measurement"], one["epoch"], one["window_start"], one["value"]) for one in answers]


def test_a_loop_gives_each_answer_once_and_sinks_have_the_same(tmp_path):
    views, made = start(tmp_path)
    places = [f"parquet:{tmp_path / 'out'}", f"json:{tmp_path / 'out.jsonl'}"]
    with views.answers(made, bins=["home"], to=places) as answers:
        assert list(answers) == []
        views.send([("ann", "home", minute(0, 30))])
        views.advance(until=minute(0))
        found = list(answers)
        assert told(found) == [("total", 1, None, 1), ("first", 1, None, 1)]
        assert list(answers) == []
        views.send([("ann", "home", minute(0, 40)), ("ann", "home", minute(1))])
        views.advance(until=minute(1))
        views.advance()
        more = list(answers)
        start_of_it = minute(0).isoformat()
        assert told(more) == [("total", 2, None, 3), ("minutes", 2, start_of_it, 2), ("total", 3, None, 3)]
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert rows == found + more
    table = pl.read_parquet(tmp_path / "out" / "*.parquet")
    assert sorted(table["key"]) == sorted(row["key"] for row in rows)
    views.close()
    views, made = start(tmp_path)
    with views.answers(made, bins={"total": ["home"], "minutes": ["home"]}, to=places) as answers:
        assert views.epoch == 3
        assert list(answers) == [], "sinks have all of it, and the loop had"
        views.advance()
        assert told(answers) == [("total", 4, None, 3)]
    views.close()


def test_what_bounds_leave_out_is_beside_each_answer(tmp_path):
    views, made = start(tmp_path, unit=wpinq.users("user", at_most=2))
    views.send([("ann", "home", minute(0))] * 5)
    views.advance(until=minute(0))
    views.advance(until=minute(1))
    found = views.answers(made, bins=["home"])
    assert list(found) == [], "it began when these epochs had closed"
    views.send([("ann", "home", minute(1))] * 5)
    views.advance(until=minute(2))
    rows = {row["measurement"]: row for row in found}
    assert set(rows) == {"total", "minutes"}
    for row in rows.values():
        assert row["protects"].startswith("one user")
        assert "2" in row["beside_noise"]
    views.close()


def test_no_epsilon_is_told_of_gaussian_noise_but_rho(tmp_path):
    views = wpinq.live(TIMED, rho=1)
    made = {"bell": views.map("page").measure(rho="0.1", mechanism="gaussian")}
    found = views.answers(made, bins=["home"])
    views.send([("ann", "home", minute(0))])
    views.advance()
    rows = list(found)
    assert [(row["epsilon"], row["rho"]) for row in rows] == [(None, 0.1)]
    assert Release("s", 1, rows).frame()["rho"].to_list() == [0.1]
    write_status(tmp_path / "status", views, found)
    status = json.loads((tmp_path / "status").read_text())
    assert (status["epsilon"]["spent"], status["rho"]) == (None, {"spent": 0.1, "left": 0.9})
    views.close()


def test_what_cannot_be_answered_is_refused_before_a_sink_is_made(tmp_path):
    views, made = start(tmp_path)
    other = wpinq.live({"page": "text"}, budget=10**6)
    for asked, more, said in [
        ({"total": other.measure(1)}, {"bins": ["a"]}, "no measurement of this live source"),
        (made, {"bins": {"totals": ["a"]}}, "there are total, first, minutes"),
        (made, {"bins": ["a"], "to": ["parquet:a", "parquet:a"]}, "named twice"),
        (made, {"bins": ["a"], "to": "ftp://a"}, "json:FILE, parquet:DIR"),
        (made, {"bins": [("a", "b")]}, "bin"),
    ]:
        with pytest.raises(wpinq.WpinqError, match=said):
            views.answers(asked, **more)
    other.close()
    views.close()


class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.kept += [json.loads(line) for line in body.splitlines()]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def test_windows_of_a_long_outage_are_delivered_at_least_once_and_here_exactly_once(tmp_path):
    """The service is down while windows close and while the process ends, and has each of them once in the end."""
    port = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    port.server_close()
    views, made = start(tmp_path)
    to = f"http://127.0.0.1:{port.server_port}/"
    answers = views.answers({"minutes": made["minutes"]}, bins=["home"], to=to)
    views.advance(until=minute(0))
    with pytest.warns(UserWarning, match="is not reached"):
        for number in range(6):
            views.send([("ann", "home", minute(number))] * (number + 1))
            views.advance(until=minute(number + 1))
            list(answers)
    answers.delivery.close()
    views.close()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port.server_port), Service)
    server.kept = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        views, made = start(tmp_path)
        with views.answers({"minutes": made["minutes"]}, bins=["home"], to=to) as answers:
            views.advance(until=minute(7))
            list(answers)
        found = [(row["window_start"], row["value"]) for row in server.kept]
        assert found == [(minute(number).isoformat(), number + 1) for number in range(6)] + [(minute(6).isoformat(), 0)]
        assert len({row["key"] for row in server.kept}) == 7
        views.close()
    finally:
        server.shutdown()
        server.server_close()


def test_what_is_written_after_a_look_is_in_its_window(tmp_path, monkeypatch):
    """Windows were closed by the clock of `advance`, though what came after `follow` had not been read."""
    path = tmp_path / "log.csv"
    path.write_text("user,page,time\n" + f"ann,home,{minute(0, 10).isoformat()}\n")
    now = [minute(0, 50)]
    monkeypatch.setattr(collection.time, "time_ns", lambda: int(now[0].timestamp() * 10**9))
    views, made = start(tmp_path, lateness=dt.timedelta(0))
    views.follow(path)
    views.advance()
    views.follow(path)
    with path.open("a") as file:
        file.write(f"ann,home,{minute(0, 55).isoformat()}\n")
    now[0] = minute(1, 5)
    views.advance()
    assert list(made["minutes"].times.moments(2)) == [], "the last look was before the end of the window"
    views.follow(path)
    views.advance()
    assert [moment.window[0] for moment in made["minutes"].times.moments(3)] == [minute(0)]
    assert made["minutes"].observe("home", minute(0)) == 2
    views.close()


def test_late_records_are_counted_for_the_curator(tmp_path):
    views, made = start(tmp_path, where="page <> 'out'", derive={"later": "time + INTERVAL '1 minute'"})
    made["derived"] = views.window("1m", at="later").map(lambda page: page).measure(EXACT)
    with views.answers(made, bins=["home"]) as answers:
        for late in (0, 2, 3):
            views.send([("ann", "home", minute(0, 1))] * late + [("ann", "home", minute(5))])
            views.advance(until=minute(1))
            rows = list(answers)
        assert answers._late == {"minutes": 5, "derived": None}
    assert "5" not in {str(row["value"]) for row in rows}
    views.close()
