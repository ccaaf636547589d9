"""`wpinq run --recover` of streams: killed at any moment, whatever was said stays said. Attacks 13 and 42; rule 5."""

import json
import os
import sys
import threading
import time
from pathlib import Path

import processes
import pytest

import wpinq

SCRIPT = """
def dataflow(views):
    users = views.map(lambda user: user)
    return {
        "exact": users.measure(500, continual=True),
        "noisy": users.measure(1, continual=True),
        "degrees": views.map(lambda page: page).shave().map(lambda page, index: index).measure(1),
        "windows": views.window("1s", at="time").map(lambda user: user).measure(1),
    }
"""
LINE = 'h - {} [{}] "GET /{} HTTP/1.0" 200 1'
KILLER = """
import json, os, random, signal, sys, time
import polars, pyarrow, cryptography
import wpinq.core.measurements.windows, wpinq.core.measurements.continual, wpinq.streaming.source
from wpinq.apps.cli import main
try:
    import confluent_kafka
    import wpinq.core.engines.bytewax.flow, wpinq.core.engines.bytewax.live
except ImportError:  # of this Python there is none
    pass
from wpinq import protection; from wpinq.core.measurements import measurement
command, home, wanted, last = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]), "exact  last  5\\n"
draw = random.Random(int(sys.argv[4]))
for number in range(wanted + 1):
    path = f"{home}/out.{number}"
    child = os.fork()
    if not child:
        for place in (1, 2):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), place)
        os._exit(main(command))
    open(path, "a").close()
    if number == wanted:
        open(f"{home}/all-killed", "w").close()
    if number < wanted and number % 2:
        time.sleep(draw.random())
    else:
        end = time.monotonic() + 60
        while time.monotonic() < end and (last if number == wanted else "exact") not in open(path).read():
            time.sleep(0.05)
        time.sleep(0.3 * draw.random())
    gone = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert gone is None, open(path).read()
"""
KILLS = 6
TOTAL = 300


def line(number):
    return LINE.format(f"user{number % 3}", time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime()), number % 7)


def killed(tmp_path, source, write, stdin=None, more=()):
    """All that was said, by what it was said of; `write` runs beside."""
    script = tmp_path / "flow.py"
    script.write_text(SCRIPT)
    ledger = tmp_path / "ledger"
    command = ["run", str(script), source, "--budget", "503", "--ledger", str(ledger), "--every", "0.05", "--recover",
               str(tmp_path / "keep"), "--columns", "user,page,time", "--lateness", "0.5", *more]  # fmt: skip
    for name in ("exact", "noisy", "windows"):
        command += ["--observe", f"{name}=user0,user1,user2,last"]
    command += ["--observe", "degrees=1..3"]
    writer = threading.Thread(target=write)
    writer.start()
    words = [sys.executable, "-W", "ignore", "-c", KILLER, json.dumps(command), str(tmp_path), str(KILLS), "1"]
    done = processes.run(words, capture_output=stdin is None, text=True, check=False, timeout=250, stdin=stdin,
                          cwd=Path(wpinq.__file__).parents[1])  # fmt: skip
    writer.join()
    assert done.returncode == 0, str(done.stderr)[-3000:]
    said, runs = {}, 0
    for number in range(KILLS + 1):
        lines = (tmp_path / f"out.{number}").read_text().split("\n")[:-1]
        found = [one for one in lines if not one.startswith("wpinq: Protects one record")]
        runs += bool(found)
        for text in found:
            *what, value = text.split()
            said.setdefault(tuple(what), set()).add(value)
    assert runs > KILLS // 2, "every other one was only killed after it had said something"
    assert float(wpinq.core.ledger.Ledger.existing(tmp_path / "ledger").spent()[0]) == 503, "charged once"
    assert {len(values) for values in said.values()} == {1}, "one and the same answer, whoever gave it"
    assert {name for _, _, name, _ in said} >= {"exact", "noisy", "degrees"}
    return {what: int(value.replace(",", "")) for what, (value,) in said.items()}


def exact(said):
    """The last count of each user, and that no count ever went down."""
    counts = [
        [v for (_, _, n, one), v in sorted(said.items(), key=when) if (n, one) == ("exact", f"user{u}")]
        for u in range(3)
    ]
    assert all(one == sorted(one) for one in counts)
    return [one[-1] for one in counts]


def when(item):
    return int(item[0][1]) if item[0][0] == "epoch" else 0


def slowly(tmp_path, write):
    """Write all the lines while runs are killed, the last of them when none is killed any more."""

    def run():
        for number in range(TOTAL - 10):
            write(line(number))
            time.sleep(0.03 if number < TOTAL - 50 else 0)
        end = time.monotonic() + 120
        while not (tmp_path / "all-killed").exists() and time.monotonic() < end:
            time.sleep(0.05)
        for number in range(TOTAL - 10, TOTAL):
            write(line(number))
        for _ in range(5):
            write(LINE.format("last", "-", "last"))

    return run


@pytest.mark.slow
def test_a_growing_file_is_counted_exactly(tmp_path):
    path = tmp_path / "access.log"
    path.touch()

    def write(text):
        with path.open("a") as file:
            for part in (text[:20], text[20:] + "\n"):
                file.write(part)
                file.flush()

    said = killed(tmp_path, str(path), slowly(tmp_path, write), more=["--follow"])
    assert exact(said) == [100, 100, 100]


@pytest.mark.slow
def test_a_topic_is_counted_exactly(tmp_path):
    confluent = pytest.importorskip("confluent_kafka", reason="wpinq[kafka] is not installed")
    producer = confluent.Producer({"test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 0})
    (broker,) = producer.list_topics(timeout=10).brokers.values()

    def write(text):
        producer.produce("views", text, partition=0)
        producer.flush(10)

    write("nonsense")
    source = f"kafka://{broker.host}:{broker.port}/views?form=log"
    said = killed(tmp_path, source, slowly(tmp_path, write))
    assert exact(said) == [100, 100, 100]


@pytest.mark.slow
def test_of_standard_input_what_was_not_closed_is_lost_and_nothing_is_counted_twice(tmp_path):
    read, end = os.pipe()

    def write(text):
        os.write(end, text.encode() + b"\n")

    try:
        said = killed(tmp_path, "-", slowly(tmp_path, write), stdin=read)
    finally:
        os.close(read)
        os.close(end)
    assert all(3 <= one <= 100 for one in exact(said)), "the last ten lines came when nothing was killed any more"
