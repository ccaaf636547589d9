"""The systemd unit of `docs/live.md`: its command line, in the environment and with the limits that it states."""

import configparser
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import polars as pl
import processes
import pytest

import wpinq
from wpinq.core.ledger import Ledger

PAGE = Path(wpinq.__file__).parent / "docs" / "live.md"
FLOW = "def dataflow(views):\n    return {'total': views.map('page').measure('0.9', continual=True)}\n"


@pytest.fixture
def unit():
    text = re.search(r"```ini\n(.*?)```", PAGE.read_text(), re.DOTALL)[1].replace("\\\n", " ")
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read_string(text)
    return text, parser["Service"]


def on_several_hosts(text, service):
    """The unit with what `Several hosts` of the page says to put into it."""
    page = PAGE.read_text().partition("## Several hosts")[2]
    command = re.search(r"```sh\n(.*?)```", page, re.DOTALL)[1].replace("\\\n", " ").strip()
    assert command.startswith("wpinq run flow.py")
    assert "`Environment=WPINQ_SECRET_FILE=...`" in page
    assert "`StartLimitIntervalSec=0`" in page
    text = text.replace(f"ExecStart={service['ExecStart']}", f"ExecStart=/opt/wpinq/bin/{command}")
    text = re.sub("StartLimitIntervalSec=.*", "StartLimitIntervalSec=0", text)
    return text.replace("Restart=always", "Environment=WPINQ_SECRET_FILE=/etc/wpinq/secret\nRestart=always")


def verified(text, tmp_path):
    """What systemd says of a unit, of which every word counts."""
    path = tmp_path / "wpinq.service"
    path.write_text(text.replace("/opt/wpinq/bin/wpinq", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_takes_the_units(unit, tmp_path):
    hosts = on_several_hosts(*unit)
    assert hosts.count("--workers 4") == 1
    assert verified(unit[0], tmp_path) == (0, "")
    assert verified(hosts, tmp_path) == (0, "")
    wrong, said = verified(hosts.replace("wpinq@db", "wpinq:a%40b@db"), tmp_path)
    assert (wrong, "%40" in said) != (0, False), "a sign of a password that is not written twice"
    assert verified(hosts.replace("wpinq@db", "wpinq:a%%40b@db"), tmp_path) == (0, "")


@pytest.mark.slow
def test_the_command_of_the_unit_runs_ends_and_goes_on(unit, tmp_path):
    """An empty environment, a home that is not there, its umask, and SIGTERM, as a service manager does it."""
    confluent = pytest.importorskip("confluent_kafka", reason="wpinq[kafka] is not installed")
    broker = confluent.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (place,) = broker.list_topics(timeout=10).brokers.values()
    for number in range(20):
        broker.produce("views", f'{{"user": "u{number}", "page": "/about"}}', partition=0)
    broker.flush(10)
    _, service = unit
    words = [sys.executable, "-m", "wpinq", *shlex.split(service["ExecStart"])[1:], "--every", "0.5"]
    words = [word.replace("broker:9092", f"{place.host}:{place.port}") for word in words]
    tmp_path.chmod(int(service["StateDirectoryMode"], 8))
    (tmp_path / "flow.py").write_text(FLOW)
    said = {}
    for _ in range(2):
        run = processes.Popen(
            words,
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            umask=int(service["UMask"], 8),
            env={"PATH": os.defpath, "HOME": "/nonexistent", "PYTHONPATH": str(PAGE.parents[2])},
        )
        for _ in range(4):
            epoch, number, _, name, value = run.stdout.readline().split()
            assert epoch == "epoch"
            assert said.setdefault((number, name), value) == value
        run.send_signal(signal.SIGTERM)
        rest = run.stdout.read()
        run.stdout.close()
        assert run.wait(int(service["TimeoutStopSec"])) == 0, "it ends by itself, with its answers handed over"
        said |= {(line.split()[1], line.split()[3]): line.split()[4] for line in rest.splitlines()}
    handed = pl.read_parquet(tmp_path / "answers" / "*.parquet")
    assert {(str(row["epoch"]), row["bin"].strip('"')) for row in handed.to_dicts()} == set(said)
    others = [path for path in tmp_path.rglob("*") if path.stat().st_mode & 0o077 and path.name != "flow.py"]
    assert not others, "nobody else may read what it wrote"
    assert Ledger.existing(tmp_path / "views.ledger").spent()[0] == Fraction(9, 10)


@pytest.mark.slow
def test_processes_over_a_file_that_is_touched_meanwhile_answer_alike_or_say_so(tmp_path):
    """The same bytes under other times: each process has the one answer, or is told to open the file again."""
    path = tmp_path / "views.csv"
    path.write_text("user,page\n" + "".join(f"u{i % 97},p{i % 7}\n" for i in range(200_000)))
    (tmp_path / "flow.py").write_text("def dataflow(views):\n    return {'pages': views.map('page').measure('0.5')}\n")
    words = [sys.executable, "-m", "wpinq", "run", "flow.py", "views.csv", "--budget", "1", "--observe", "pages=p1,p2"]
    env = {"PATH": os.defpath, "PYTHONPATH": str(PAGE.parents[2])}

    def started():
        return processes.Popen(words, cwd=tmp_path, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    runs = [started() for _ in range(3)]
    while any(run.poll() is None for run in runs):
        os.utime(path)
        time.sleep(0.002)
    runs.append(started())
    answers = set()
    for run in runs:
        out, error = run.communicate(timeout=60)
        if run.returncode:
            assert run.returncode == 2
            assert "changed after it was opened; open it again" in error
        else:
            answers.add(tuple(line for line in out.splitlines() if line.strip().startswith("p")))
    assert runs[-1].returncode == 0
    assert len(answers) == 1
    assert Ledger.existing(tmp_path / "views.csv.ledger").spent()[0] == Fraction(1, 2)
