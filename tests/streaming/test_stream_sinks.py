"""Where the answers of a stream go: JSON lines and sinks, each answer once, whatever is killed or fails."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import processes
import pytest
from posting import service_at
from servers import postgres

import wpinq
from wpinq.streaming.sinks.sink import COLUMNS

HOME = Path(wpinq.__file__).parents[1]
FLOW = """
def dataflow(views):
    users = views.map(lambda user: user)
    return {"total": users.measure(500, continual=True), "first": users.measure(500)}
"""


@pytest.fixture
def start(tmp_path):
    """Start a stream of a CSV file that grows, with --recover; all that were started end with the test."""
    started = []
    (tmp_path / "flow.py").write_text(FLOW)
    (tmp_path / "log.csv").write_text("user\n")

    def start(*more, epsilon="1000"):
        usual = {"--every": "0.1", "--lateness": "0", "--recover": "keep"}
        timing = [word for option, value in usual.items() if option not in more for word in (option, value)]
        words = ["run", "flow.py", "log.csv", "--follow", "--budget", epsilon, *timing,
                 "--observe", "total=ann,bob", "--observe", "first=ann"]  # fmt: skip
        words = [sys.executable, "-m", "wpinq", *words, *map(str, more)]
        errors = (tmp_path / "errors").open("a")
        run = processes.Popen(words, cwd=tmp_path, env={"PYTHONPATH": str(HOME)},
                               stdout=subprocess.PIPE, stderr=errors, text=True)  # fmt: skip
        errors.close()
        started.append(run)
        return run

    yield start
    for run in started:
        run.kill()
        run.wait()
        run.stdout.close()


def feed(tmp_path, *users):
    with (tmp_path / "log.csv").open("a") as file:
        file.write("".join(f"{user}\n" for user in users))


def until(found, seconds=40):
    """Wait until something is there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := found():
            return result
        time.sleep(0.05)
    raise AssertionError("it did not come")


def counted(rows, wanted):
    """Whether the last running total of Ann is there, with the rows so far."""
    values = [row["value"] for row in rows if row["measurement"] == "total" and row["bin"] in ("ann", '"ann"')]
    return rows if wanted in values else None


def checked(rows, wanted):
    """No key is there twice, no epoch lacks, and the numbers are those of the stream."""
    keys = [row["key"] for row in rows]
    assert len(set(keys)) == len(keys), "an answer is there twice"
    epochs = sorted({row["epoch"] for row in rows})
    assert epochs == list(range(1, epochs[-1] + 1)), "an epoch is lost"
    totals = [
        r["value"] for r in sorted(rows, key=lambda r: r["epoch"]) if "ann" in r["bin"] and r["measurement"] == "total"
    ]
    assert totals == sorted(totals)
    assert totals[-1] == wanted
    assert [row["epoch"] for row in rows if row["measurement"] == "first"] == [1]
    return rows


def lines(path):
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]] if path.exists() else []


def killed_and_again(start, tmp_path, rows, *more):
    """Ann views as a stream is killed and started again; each time all is answered, and none of it twice."""
    for number in range(1, 4):
        run = start(*more)
        feed(tmp_path, "ann", "ann")
        until(lambda wanted=2 * number: counted(rows(), wanted))
        run.kill()
        run.wait()
        assert run.returncode == -signal.SIGKILL
    assert wpinq.core.ledger.Ledger.existing(tmp_path / "log.csv.ledger").spent()[0] == 1000
    return checked(rows(), 6)


def test_a_file_has_a_line_for_each_answer_and_none_twice(start, tmp_path):
    out = tmp_path / "out.jsonl"
    found = killed_and_again(start, tmp_path, lambda: lines(out), "--json", out, "--unit", "user", "--at-most", "9")
    row = next(row for row in found if row["measurement"] == "total")
    assert set(row) == set(COLUMNS)
    assert (row["bin"], row["epsilon"], row["level"]) == ("ann", 500, 0.9)
    assert row["protects"] == "one user, at most 9 records each"
    assert 0 <= row["half_width"] < 5
    assert row["window_start"] is None


def test_a_line_that_was_cut_is_written_again(start, tmp_path):
    out = tmp_path / "out.jsonl"
    run = start("--json", out)
    until(lambda: len(lines(out)) > 6)
    run.kill()
    run.wait()
    whole = lines(out)
    out.write_bytes(out.read_bytes()[:-30])  # as if the machine had gone down in the middle of it
    (tmp_path / "keep" / "delivered").unlink()
    start("--json", out, "--keep", "99")
    feed(tmp_path, "ann")
    until(lambda: counted(lines(out), 1))
    assert checked(lines(out), 1)[: len(whole)] == whole, "the same answers, bit for bit"


@pytest.mark.slow
def test_a_directory_has_a_parquet_file_for_each_epoch(start, tmp_path):
    def rows():
        return [row for path in sorted(tmp_path.glob("out/*.parquet")) for row in pl.read_parquet(path).to_dicts()]

    found = killed_and_again(start, tmp_path, rows, "--to", "parquet:out")
    assert not list(tmp_path.glob("out/.*")), "no draft is left"
    assert set(found[0]) == set(COLUMNS)


@pytest.fixture
def service():
    with service_at() as server:
        yield server


def test_a_service_that_fails_gets_all_answers_later(start, tmp_path, service):
    service.statuses = [502, 500, 307, 502]
    url = f"http://me:pass-word-marker@127.0.0.1:{service.server_port}/answers"
    run = start("--to", url, "--keep", "3")
    feed(tmp_path, "ann")
    until(lambda: counted(list(service.kept.values()), 1) and len(service.calls) > 8)
    run.kill()
    checked(list(service.kept.values()), 1)
    assert len({call.key for call in service.calls[:5]}) == 1, "the same epoch, until it has arrived"
    assert {call.word for call in service.calls} == {"Basic bWU6cGFzcy13b3JkLW1hcmtlcg=="}
    said = (tmp_path / "errors").read_text()
    assert "says 502" in said
    assert "works again" in said
    assert "marker" not in said + (tmp_path / "keep" / "delivered").read_text()


def test_a_stream_waits_for_a_sink_and_a_restart_hands_over_the_rest(start, tmp_path):
    """The port is closed: a stream goes ahead by the epochs that can be answered again, and no further."""
    with service_at() as server:
        port = server.server_port
    more = ["--to", f"http://127.0.0.1:{port}/", "--json", "-", "--keep", "4"]
    run = start(*more)
    feed(tmp_path, "ann")
    until(lambda: "is not reached" in (tmp_path / "errors").read_text())
    time.sleep(3)
    run.kill()
    ahead = [json.loads(line)["epoch"] for line in run.stdout.read().splitlines()]
    assert max(ahead) == 4, "keep - 1 epochs wait, and the one that is offered"
    with service_at(port) as server:
        start(*more)
        feed(tmp_path, "ann")
        until(lambda: counted(list(server.kept.values()), 2))
        checked(list(server.kept.values()), 2)


@pytest.mark.slow
def test_a_table_of_postgres_holds_each_answer_once(start, tmp_path):
    pytest.importorskip("adbc_driver_postgresql", reason="wpinq[postgres] is not installed")
    with postgres() as url:

        def rows():
            try:
                return pl.read_database_uri('SELECT * FROM "Answers"', url, engine="adbc").to_dicts()
            except Exception:  # before the first answer
                return []

        killed_and_again(start, tmp_path, rows, "--to", f"{url}?table=Answers")


@pytest.mark.slow
def test_messages_of_kafka_have_the_keys_of_answers(start, tmp_path):
    confluent = pytest.importorskip("confluent_kafka", reason="wpinq[kafka] is not installed")
    broker = confluent.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (place,) = broker.list_topics(timeout=10).brokers.values()
    at = f"{place.host}:{place.port}"
    broker.produce("other", "x")
    reader = confluent.Consumer({"bootstrap.servers": at, "group.id": "t", "auto.offset.reset": "earliest"})
    reader.subscribe(["answers"])
    kept = {}

    def rows():
        for message in reader.consume(100, 0.2):
            if message.error() is None:
                row = json.loads(message.value())
                assert message.key().decode() == row["key"]
                assert kept.setdefault(row["key"], row) == row, "given again it is the same answer"
        return list(kept.values())

    try:
        killed_and_again(start, tmp_path, rows, "--to", f"kafka://{at}/answers?topic.metadata.refresh.interval.ms=1000")
    finally:
        reader.close()


def test_standard_output_has_json_lines_and_a_service_manager_ends_it_whole(start, tmp_path):
    feed(tmp_path, "ann")
    run = start("--json", "-", "--every", "1")
    first = json.loads(run.stdout.readline())
    assert (first["measurement"], first["epoch"], first["value"]) == ("total", 1, 1)
    feed(tmp_path, "ann")
    run.send_signal(signal.SIGTERM)
    rest = [json.loads(line) for line in run.stdout.read().splitlines()]
    assert run.wait(30) == 0
    assert counted(rest, 2), "the epoch that was open is closed and answered"


def test_a_recovered_stream_can_measure_more_and_nothing_else(start, tmp_path):
    """What is added answers from then on, and counts what was kept; what was there is free and goes on."""
    out, flow = tmp_path / "out.jsonl", tmp_path / "flow.py"
    run = start("--json", out, epsilon="1500")
    feed(tmp_path, "ann", "ann")
    until(lambda: counted(lines(out), 2))
    run.kill()
    run.wait()
    before = lines(out)
    flow.write_text(FLOW.replace("lambda user: user", "lambda user: user + 'x'"))
    assert start("--json", out, epsilon="1500").wait(60) == 2
    assert "'total' measures something else now" in (tmp_path / "errors").read_text()
    ledger = wpinq.core.ledger.Ledger.existing(tmp_path / "log.csv.ledger")
    assert ledger.spent()[0] == 1000
    added = "users.measure(500, continual=True, name='more')"
    flow.write_text(FLOW.replace("return {", f"return {{'more': {added}, "))
    for wanted in (3, 4):
        run = start("--json", out, "--observe", "more=ann", epsilon="1500")
        feed(tmp_path, "ann")
        until(lambda wanted=wanted: counted(lines(out), wanted))
        run.kill()
        run.wait()
    rows = checked(lines(out), 4)
    assert rows[: len(before)] == before
    more = {row["epoch"]: row["value"] for row in rows if row["measurement"] == "more"}
    assert min(more) > before[-1]["epoch"], "it answers from the epoch at which it was added"
    totals = {row["epoch"]: row["value"] for row in rows if (row["measurement"], row["bin"]) == ("total", "ann")}
    assert all(totals[epoch] == value for epoch, value in more.items())
    flow.write_text(FLOW)
    assert start("--json", out, epsilon="1500").wait(60) == 2
    assert "'more' is missing now" in (tmp_path / "errors").read_text()
    assert ledger.spent()[0] == 1500


def test_the_curator_alone_sees_what_was_dropped(start, tmp_path):
    """Answers are the same with it and without, and nothing of it is printed."""
    status, out = tmp_path / "status", tmp_path / "out.jsonl"
    status.write_text("old")
    status.chmod(0o644)
    with (tmp_path / "log.csv").open("w") as file:
        file.write("user,page\nann,1\nbroken\nann,b,c,d\nann,x\n")
    run = start("--status", status, "--json", out, "--columns", "user,page:int")
    until(lambda: status.read_text() != "old" and json.loads(status.read_text())["offered"])
    found = json.loads(status.read_text())
    assert (found["offered"], found["records"], found["dropped"]) == (4, 2, 2)
    assert found["nulls"] == {"user": 0, "page": 1}
    assert found["late"] == {}, "there are no windows"
    assert found["for"].startswith("the curator alone")
    assert found["epsilon"] == {"spent": 1000, "left": 0}
    assert found["sinks"][str(out)]["delivered"] == found["epoch"]
    assert status.stat().st_mode & 0o777 == 0o600
    run.kill()
    assert "dropped" not in out.read_text() + run.stdout.read() + (tmp_path / "errors").read_text()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--json", "log.csv"], "would replace what is read"),
        (["--json", "nowhere/out"], "cannot be written"),
        (["--status", "log.csv.ledger"], "would replace what is read"),
        (["--keep", "1", "--lateness", "60"], "need 601 epochs"),
    ],
)
def test_what_cannot_be_is_refused_before_a_ledger_is_made(start, tmp_path, more, said):
    assert start(*more).wait(60) == 2
    assert said in (tmp_path / "errors").read_text()
    assert not (tmp_path / "log.csv.ledger").exists()
