"""A server ends within its bound, whatever runs in it; what was charged then is free and answered after the restart."""

import contextlib
import datetime as dt
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from fractions import Fraction

import processes
import pytest
from depth import thin
from serving import CONFIG, SCRIPT, written

from wpinq.apps.serve.tokens import Tokens
from wpinq.core.ledger import Ledger

COUNT = {"query": "SELECT page, COUNT(*) AS c FROM views GROUP BY page", "keys": ["p1"], "epsilon": 1, "dry": False}
STUCK = (
    """
import pathlib, time
from wpinq.core.runs import run as settle
from wpinq.apps.serve import measured
from wpinq.apps.serve import run
run.GRACE, run.LAST = 0.4, 1.0
there, compute, observed = pathlib.Path(__file__).parent, settle.compute, measured.observed

def computes(roots):
    if (there / "thread").exists():
        (there / "runs").touch()
        time.sleep(60)
    return compute(roots)

async def observes(*given):
    if (there / "loop").exists():
        (there / "runs").touch()
        time.sleep(60)
    return await observed(*given)

settle.compute, measured.observed = computes, observes
"""
    + SCRIPT
)
"""Questions that take a minute in a thread that nothing interrupts, or in the event loop itself."""


class Process:
    """A server in a process of its own."""

    def __init__(self, place):
        run = [sys.executable, "-m", "wpinq", "serve", str(place / "site.toml")]
        more = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = processes.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=more)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def ask(self, token, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request("POST", path, json.dumps(body), {"Authorization": f"Bearer {token}"})
            found = connection.getresponse()
            return found.status, json.loads(found.read())

    def ended(self, seconds):
        """How it ended, and what it wrote to standard error."""
        try:
            self.process.wait(seconds)
            return self.process.returncode, self.process.stderr.read()
        finally:
            self.close()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def place(tmp_path):
    place = written(tmp_path, CONFIG)
    (place / "script.py").write_text(STUCK)
    return place


def begun(place, flag, path, body):
    """A server in which a question is stuck, the token that asked, and what will be answered."""
    server, answers = Process(place), []
    Ledger.existing(place / "ledger").cap("ann", Fraction(1))
    token, _ = Tokens(place / "tokens").make("ann", ["views"], dt.datetime.now(dt.UTC) + dt.timedelta(1))
    (place / flag).touch()

    def ask():
        with contextlib.suppress(OSError, http.client.HTTPException):
            answers.append(server.ask(token, path, body))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    end = time.monotonic() + 20
    while not (place / "runs").exists() and time.monotonic() < end:
        time.sleep(0.01)
    return server, token, asking, answers


@thin(2)
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.slow
def test_a_question_that_cannot_be_interrupted_is_left_and_free_after_the_restart(place, sent):
    server, token, asking, answers = begun(place, "thread", "/api/sql", COUNT)
    with (
        socket.create_connection(("127.0.0.1", server.port)),
        socket.create_connection(("127.0.0.1", server.port)) as half,
    ):
        half.sendall(b"GET /api/budget HTTP/1.1\r\nX: ")  # neither do clients that send nothing hold it up
        server.process.send_signal(sent)
        code, said = server.ended(20)
    asking.join(60)
    assert code == -sent and "Traceback" not in said and len(said) < 1_000
    assert [(status, body["error"]["code"]) for status, body in answers] == [(503, "unavailable")]
    (place / "thread").unlink()
    charged = Ledger.existing(place / "ledger").spent()
    assert charged[0] == 3 + 1
    again = Process(place)
    with contextlib.closing(again):
        status, found = again.ask(token, "/api/sql", COUNT)
    assert status == 200 and len(found["rows"]) == 1 and Ledger.existing(place / "ledger").spent() == charged


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_ends_it_at_once(place, sent):
    (place / "script.py").write_text(STUCK.replace("= 0.4, 1.0", "= 30.0, 40.0"))
    server, *_ = begun(place, "thread", "/api/sql", COUNT)
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    assert server.process.poll() is None
    server.process.send_signal(sent)
    code, said = server.ended(20)
    assert code == -sent and "Traceback" not in said


def test_an_event_loop_that_hangs_is_ended_by_the_system(place):
    server, *_ = begun(place, "loop", "/api/measurements/views.pages/observe", {"bins": ["p1"]})
    server.process.send_signal(signal.SIGTERM)
    assert server.ended(20)[0] == -signal.SIGALRM


def test_the_bound_is_ten_seconds():
    from wpinq.apps.serve import run

    assert run.GRACE < run.LAST < 10
