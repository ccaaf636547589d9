"""Network namespaces as hosts of their own: the answers, who listens where, and hosts that die or fall silent."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

import wpinq
from wpinq.apps.cli import main
from wpinq.core.ledger import Ledger

ROOT = Path(wpinq.__file__).parents[1]
NET = "10.213.57"
SCRIPT = """
import time

def slow(page):
    time.sleep({pause})
    return page.upper()

def dataflow(views):
    pages = views.map(slow)
    return {{
        "cdf": pages.shave().map(lambda index: index).measure("0.1"),
        "pairs": views.join(views, on="user").map(lambda page: page).measure("0.1"),
    }}
"""
ASKED = ["--observe", "cdf=1..40", "--observe", "pairs=p1,p4"]
IMPATIENT = (
    "import sys; from wpinq.apps.cli import main; from wpinq.apps.cluster import connection; "
    "connection.ALIVE.update(TCP_KEEPIDLE=1, TCP_KEEPINTVL=1, TCP_KEEPCNT=2,"
    " TCP_USER_TIMEOUT=2000); sys.exit(main(sys.argv[1:]))"
)


def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


@pytest.fixture
def hosts():
    """Three namespaces on one bridge, which lies in a fourth; the machine's own network is not touched."""
    run = f"wq{os.getpid() % 100000}"
    names = [f"{run}{letter}" for letter in "abc"]
    try:
        for name in (run, *names):
            ip("netns", "add", name)
        ip("-n", run, "link", "add", "bridge", "type", "bridge")
        ip("-n", run, "link", "set", "bridge", "up")
        for number, name in enumerate(names):
            ip("-n", run, "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", run, "link", "set", f"port{number}", "master", "bridge", "up")
            ip("-n", name, "address", "add", f"{NET}.{number + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"network namespaces cannot be made here: {type(error).__name__}")
    finally:
        for name in (*names, run):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


@pytest.fixture
def places(tmp_path):
    """A directory for each host, with the script and a copy of the input."""
    lines = "".join(f"u{i % 97},p{i * i % 1009 % (i % 50 + 1)}\n" for i in range(3000))
    found = []
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "views.csv").write_text("user,page\n" + lines)
        (tmp_path / name / "flow.py").write_text(SCRIPT.format(pause=0.001))
        found.append(tmp_path / name)
    return found


class Run:
    """The commands of all hosts, each in its own namespace and directory; process 0 first, as one must."""

    def __init__(self, hosts, places, number, *more):
        self.addresses = [f"{NET}.{i + 1}:2101" for i in range(number)]
        self.keys = places[0] / "keys"
        self.started = []
        self.out = places[0] / "out.json"
        for i in range(number):
            words = ["run", str(places[i] / "flow.py"), str(places[i] / "views.csv"), "--data-version", "1"]
            words += ["--addresses", ",".join(self.addresses), "--keys", str(self.keys), "--process-id", str(i)]
            words += ["--budget", "1", "--json", str(self.out), *ASKED, *more] if i == 0 else []
            command = ["ip", "netns", "exec", hosts[i], sys.executable, "-c", IMPATIENT, *words]
            environment = os.environ | {"BYTEWAX_DATAFLOW_API_ENABLED": "1"}
            pipe = subprocess.PIPE
            self.started.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe))
            if i == 0:
                wait(lambda: self.keys.exists() or self.started[0].poll() is not None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.started:
            one.kill()
            one.communicate()

    def ends(self, seconds):
        """Codes and last words of all, each in time."""
        end = time.monotonic() + seconds
        found = []
        for one in self.started:
            _, error = one.communicate(timeout=max(end - time.monotonic(), 1))
            found.append((one.returncode, error.decode()))
        return found


def wait(condition):
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it never happened")


def listeners(process):
    """Addresses at which somebody listens in the namespace of a process, and bound datagram sockets."""
    found = set()
    for name in ("tcp", "tcp6", "udp", "udp6"):
        try:
            rows = Path(f"/proc/{process}/net/{name}").read_text().splitlines()[1:]
        except OSError:  # no such protocol, or the process has ended
            continue
        for row in rows:
            local, state = row.split()[1], row.split()[3]
            if state == "0A" or name.startswith("udp"):
                host, port = local.split(":")
                shown = socket.inet_ntoa(struct.pack("=I", int(host, 16))) if len(host) == 8 else host
                found.add(f"{shown}:{int(port, 16)}")
    return found


def charged(place):
    book = place / "views.csv.ledger"
    return book.exists() and any(entry.kind == "charge" for entry in Ledger.existing(book).entries())


def sealed(place):
    """Questions that have been answered."""
    entries = Ledger.existing(place / "views.csv.ledger").entries()
    return [entry for entry in entries if entry.kind == "seal" and entry.question != "content"]


def test_three_hosts_answer_as_one_process_and_listen_where_they_were_told(hosts, places):
    """Each host has its own copy of the files, and no other. The seals refuse any other histogram later."""
    for place in places:  # a function that sleeps cannot be told from another, and is asked anew each time
        (place / "flow.py").write_text(SCRIPT.format(pause=0).replace("    time.sleep(0)\n", ""))
    seen = [set(), set(), set()]
    with Run(hosts, places, 3) as run:
        while any(one.poll() is None for one in run.started):
            for mine, one in zip(seen, run.started, strict=True):
                if one.poll() is None:
                    mine.update(listeners(one.pid))
            time.sleep(0.01)
        assert [code for code, _ in run.ends(60)] == [0, 0, 0]
        together = json.loads(run.out.read_text())
    assert seen[0] == {f"{NET}.1:2101"}
    assert seen[1] <= {f"{NET}.2:2101"}
    assert seen[2] == set(), "the last one listens nowhere"
    assert len(sealed(places[0])) == 2
    assert not any((place / "views.csv.ledger").exists() for place in places[1:])
    words = ["run", str(places[0] / "flow.py"), str(places[0] / "views.csv"), "--data-version", "1", *ASKED]
    assert main([*words, "--json", str(places[0] / "alone.json")]) == 0
    assert json.loads((places[0] / "alone.json").read_text()) == together


@pytest.mark.parametrize("silently", [False, True])
def test_a_host_that_is_gone_ends_the_others_and_nothing_is_answered(hosts, places, silently):
    for place in places:
        (place / "flow.py").write_text(SCRIPT.format(pause=0.5))
    with Run(hosts, places, 2) as run:
        wait(lambda: charged(places[0]))
        time.sleep(0.3)
        if silently:
            ip("-n", hosts[1], "link", "set", "eth0", "down")
        else:
            run.started[1].send_signal(signal.SIGKILL)
        (first, why), (second, other) = run.ends(40)
    assert first == 2
    assert re.fullmatch(rf"wpinq: process 1 \({NET}.2:2101\) went away. Nothing was answered.\n", why)
    if silently:
        assert (second, other) == (2, "wpinq: process 0 went away; nothing was answered.\n")
    assert not run.out.exists()
    assert not sealed(places[0])


def test_the_first_host_gone_ends_the_others(hosts, places):
    with Run(hosts, places, 2) as run:
        wait(lambda: charged(places[0]))
        run.started[0].send_signal(signal.SIGKILL)
        _, (code, why) = run.ends(40)
    assert (code, why) == (2, "wpinq: process 0 went away; nothing was answered.\n")
