"""`tail -f access.log | wpinq run DATAFLOW -`."""

import contextlib
import datetime as dt
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import processes
import pytest

import wpinq
from tests.streaming.test_stream_sinks import until
from wpinq.apps.cli import main

LINE = 'h - {} [10/Oct/2026:13:55:36 +0000] "GET /{} HTTP/1.0" 200 1\n'
SCRIPT = """
def dataflow(views):
    pages = views.map(lambda page: page)
    return {
        "so far": pages.measure(500, continual=True),
        "first": pages.shave().map(lambda page, index: index).measure(60),
        "hours": views.window("1h", at="time").map(lambda page: page).measure(1),
    }
"""


@pytest.fixture
def start(tmp_path):
    started = []
    (tmp_path / "flow.py").write_text(SCRIPT)

    def start(*more):
        words = [sys.executable, "-m", "wpinq", "run", str(tmp_path / "flow.py"), "-", *more]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        started.append(processes.Popen(words, cwd=Path(wpinq.__file__).parents[1], text=True, **pipes))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.wait()
        for pipe in (one.stdin, one.stdout, one.stderr):
            pipe.close()


WINDOWS = """
import sys

def dataflow(views):
    print("made", file=sys.stderr, flush=True)
    seconds = views.window("2s", at="time").map(lambda page: page)
    return {"seconds": seconds.measure(60), "noisy": seconds.shave().map(lambda page, index: index).measure(1)}
"""


def made(run):
    """Wait until the script was rehearsed and called."""
    assert [run.stderr.readline() for _ in range(2)] == ["made\n"] * 2


def test_windows_are_answered_when_the_clock_closes_them(start, tmp_path):
    """Seven records in a window, and as many that are late by an hour; five seconds to spare for a slow machine."""
    (tmp_path / "flow.py").write_text(WINDOWS)
    run = start("--budget", "61", "--columns", "page,time", "--every", "0.2", "--lateness", "5",
                "--observe", "seconds=/a,/b", "--observe", "noisy=1")  # fmt: skip
    made(run)
    now = dt.datetime.now(dt.UTC)
    for when in (now, now - dt.timedelta(hours=1)):
        text = LINE.format("ann", "a").replace("10/Oct/2026:13:55:36", when.strftime("%d/%b/%Y:%H:%M:%S"))
        run.stdin.write(text * 6 + text.replace("/a", "/b"))
    run.stdin.flush()
    wanted = dt.datetime.fromtimestamp(now.timestamp() // 2 * 2, dt.UTC).isoformat()
    deadline, seen = time.monotonic() + 40, {}
    while time.monotonic() < deadline and (wanted, "noisy", "1") not in seen:
        _, window, name, one, value = run.stdout.readline().split()
        assert (window, name, one) not in seen, "each window is answered once"
        seen[window, name, one] = int(value)
    assert seen.pop((wanted, "seconds", "/a")) == 6
    assert seen.pop((wanted, "seconds", "/b")) == 1
    assert {value for (_, name, _), value in seen.items() if name == "seconds"} <= {0}, "none lies elsewhere"
    windows = [window for window, name, _ in seen if name == "noisy"]
    assert windows == sorted(windows)


def test_an_interrupt_ends_the_wait_for_more(start, tmp_path):
    """Also after Polars put its own handler in front, and long before the epoch ends."""
    (tmp_path / "flow.py").write_text(WINDOWS)
    run = start("--budget", "61", "--columns", "page,time", "--every", "600", "--lateness", "5")
    made(run)
    run.stdin.write(LINE.format("ann", "a"))
    run.stdin.flush()
    time.sleep(1)
    run.send_signal(signal.SIGINT)
    assert run.wait(60) == 130
    assert run.stderr.read().splitlines()[-1].startswith("wpinq: interrupted")


def test_answers_come_while_the_stream_goes_on(start):
    run = start("--budget", "600", "--columns", "user,page,time", "--every", "0.2", "--observe", "so far=/a,/b",
                "--observe", "first=1..2")  # fmt: skip
    for wanted in (1, 2, 3):
        run.stdin.write(LINE.format("ann", "a") + "nonsense\n" + LINE.format("bob", "b")[:20])
        run.stdin.flush()
        run.stdin.write(LINE.format("bob", "b")[20:])
        run.stdin.flush()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            words = run.stdout.readline().split()
            if words[-2:] == ["/b", str(wanted)]:
                break
        assert words[-2:] == ["/b", str(wanted)]
    run.stdin.write(LINE.format("eve", "a").rstrip())
    run.stdin.close()
    rest = run.stdout.read().split("\n")
    assert run.wait(30) == 0
    assert rest[-3].split()[-2:] == ["/a", "4"], "the last line counts without its line feed"


FORMS = {
    "csv": (
        ["--format", "csv", "--separator", ";", "--encoding", "cp1252", "--decimal", ","],
        "ann;/\xe9\r\n".encode("cp1252"),
    ),
    "tsv": (["--format", "tsv"], "ann\t/é\n".encode()),
    "pairs": (["--format", "pairs"], "# a graph\n ann   /é\n".encode()),
    "json": (["--format", "json"], '{"user": "ann", "page": "/é"}\n[]\n'.encode()),
    "log": (["--format", "$remote_user $request_time $uri"], "ann 0.25 /é\nann /é\n".encode()),
}


@pytest.mark.parametrize("form", FORMS)
def test_standard_input_is_read_in_the_declared_format(monkeypatch, tmp_path, capsys, form):
    """It was read as a log of a web server whatever was declared, and all lines were dropped."""
    words, line = FORMS[form]
    script, status = tmp_path / "flow.py", tmp_path / "status"
    script.write_text("def dataflow(views):\n    return {'total': views.map('page').measure(500, continual=True)}\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line * 7)))
    common = ["--budget", "500", "--columns", "user,page", "--every", "1", "--observe", "total=/é", "--status", status]
    assert main(["run", str(script), "-", *words, *map(str, common)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["epoch", "1", "total", "/é", "7"]
    found = json.loads(status.read_text())
    assert (found["records"], found["offered"]) == (7, 7 * line.count(b"\n"))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ([], "--budget"),
        (["--format", "parquet", "--budget", "1"], "no format of lines"),
        (["--format", "csv", "--budget", "1"], "need names"),
        (["--table", "t", "--budget", "1"], "no database"),
        (["--processes", "2", "--budget", "1"], "--workers lets several"),
        (["--budget", "600", "--columns", "who"], "no column"),
        (["--budget", "600", "--recover", "keep"], "--ledger"),
        (["--budget", "600", "--data-version", "1"], "no version"),
        (["--budget", "600", "--observe", "none=/a"], "no measurement"),
        (["--budget", "1"], "costs epsilon"),
        (["--budget", "600", "--json", "/nowhere/out"], "cannot be written"),
        (["--budget", "600", "--to", "ftp://host"], "there are json:FILE"),
    ],
)
def test_what_is_wrong_is_said_before_a_line_is_read(tmp_path, monkeypatch, capsys, more, why):
    (tmp_path / "flow.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    lines = io.BytesIO(LINE.format("u", "a").encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(lines))
    assert main(["run", "flow.py", "-", *more]) == 2
    assert why in capsys.readouterr().err
    assert lines.tell() == 0


def test_bins_that_cannot_be_are_found_before_a_ledger_is_made(start, tmp_path):
    run = start("--budget", "600", "--ledger", str(tmp_path / "ledger"), "--observe", "so far=[1]")
    _, error = run.communicate("", timeout=60)
    assert run.returncode == 2
    assert "does not fit" in error
    assert not (tmp_path / "ledger").exists()


def test_a_scraper_is_told_of_budget_and_epochs_and_of_no_record(start, tmp_path):
    import socket
    import urllib.error
    import urllib.request

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = start("--budget", "2000", "--every", "0.2", "--observe", "so far=a", "--metrics", str(port))
    try:
        run.stdin.write(LINE.format("u", "a") * 7)
        run.stdin.flush()
        assert run.stdout.readline()

        def asked(path):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as found:
                return found.read().decode()

        def ready():  # a stream is ready once its first answers are delivered, which is after they are printed
            with contextlib.suppress(urllib.error.HTTPError):
                return asked("/ready") == "ok\n"
            return False

        until(ready)
        assert asked("/health") == "ok\n"
        names = {line.partition("{")[0].split()[0] for line in asked("/metrics").splitlines() if line[0] != "#"}
        assert names == {"wpinq_stream_epoch", "wpinq_ledger_budget", "wpinq_ledger_left", "wpinq_ledger_delta",
                         "wpinq_ledger_delta_left"}  # fmt: skip
    finally:
        run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 0


def test_figures_of_what_is_no_stream_are_refused(tmp_path, capsys):
    (tmp_path / "flow.py").write_text(SCRIPT)
    (tmp_path / "views.csv").write_text("user,page\nann,a\n")
    assert main(["run", str(tmp_path / "flow.py"), str(tmp_path / "views.csv"), "--budget", "1", "--metrics", "0"]) == 2
    assert "--metrics: leave it out; it goes with a stream" in capsys.readouterr().err


SENT = """
def dataflow(views):
    return {"so far": views.map("page").measure(500, continual=True)}
"""


@pytest.fixture
def listening(tmp_path):
    import socket

    (tmp_path / "flow.py").write_text(SENT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []

    def start():
        words = [sys.executable, "-m", "wpinq", "run", "flow.py", "sent.jsonl", "--listen", f"127.0.0.1:{port}",
                 "--columns", "user,page", "--budget", "1000", "--every", "0.2", "--recover", "epochs", "--ledger",
                 "ledger", "--observe", "so far=a", "--json", "out.jsonl"]  # fmt: skip
        run = processes.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        started.append(run)
        said = next(line for line in iter(run.stderr.readline, "") if "Records are taken" in line)
        assert "appended to sent.jsonl, in the clear, and nothing of them is destroyed" in said
        return run

    yield port, start
    for run in started:
        run.kill()
        run.wait()
        run.stderr.close()


def sent(port, key, *records):
    import urllib.request

    body = "\n".join(json.dumps(one) for one in records).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", body, {"Idempotency-Key": key})
    with urllib.request.urlopen(request, timeout=20) as found:
        return found.status


def test_what_is_sent_is_counted_once_across_a_kill(listening, tmp_path):
    port, start = listening
    run = start()
    for number in range(3):
        assert sent(port, "k", {"user": f"u{number}", "page": "a"}, {"user": f"u{number}", "page": "b"}) == 204
    run.kill()
    run.wait()
    with (tmp_path / "sent.jsonl").open("ab") as file:
        file.write(b'{"user": "torn')  # what a killed process left half written
    run = start()
    for number in (1, 2, 3):
        assert sent(port, "k", {"user": f"u{number}", "page": "a"}, {"user": f"u{number}", "page": "b"}) == 204
    out = tmp_path / "out.jsonl"
    until = time.monotonic() + 30
    while time.monotonic() < until and (not out.exists() or not out.read_text().strip().endswith("}") or
                                        round(json.loads(out.read_text().splitlines()[-1])["value"]) != 4):  # fmt: skip
        time.sleep(0.2)
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 0
    values = [round(json.loads(line)["value"]) for line in out.read_text().splitlines()]
    assert values[-1] == 4 and max(values) == 4
    lines = (tmp_path / "sent.jsonl").read_text().splitlines()
    assert len(lines) == 8 and (tmp_path / "sent.jsonl").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("asked", ["--help", "--help-all"])
def test_the_help_says_that_nothing_that_is_sent_is_destroyed(capsys, asked):
    assert main(["run", asked]) == 0
    assert "where nothing is destroyed" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("source", "columns", "match"),
    [("sent.csv", "user,page", "such as sent.jsonl"), ("sent.jsonl", None, "with --columns"),
     ("sent.jsonl", "user,page:bytes", "JSON cannot say page")],
)  # fmt: skip
def test_a_door_needs_a_file_of_json_lines_and_columns(tmp_path, capsys, source, columns, match):
    (tmp_path / "flow.py").write_text(SENT)
    named = [] if columns is None else ["--columns", columns]
    words = [
        "run", str(tmp_path / "flow.py"), str(tmp_path / source), "--listen", "127.0.0.1:0", "--budget", "1", *named,
    ]  # fmt: skip
    assert main(words) == 2
    assert match in capsys.readouterr().err and not (tmp_path / "ledger").exists()
