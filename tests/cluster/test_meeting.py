"""What processes must have in common, who may come, and when: each fault is one line, in time, and costs nothing."""

import json
import socket
import threading
import time

import pytest

from wpinq.apps.cli import main
from wpinq.apps.cli.processes import ClusterOptions
from wpinq.apps.cluster import launch as cluster
from wpinq.apps.cluster import membership as meeting
from wpinq.apps.cluster.connection import listen, listening
from wpinq.core.ledger import Ledger
from wpinq.errors import WpinqError

SCRIPT = """
def dataflow(views):
    return {"cdf": views.map(lambda page: page).shave().map(lambda index: index).measure("0.1")}
"""
LINES = "user,page\n" + "".join(f"u{i % 7},p{i % 5}\n" for i in range(100))


@pytest.fixture
def both(tmp_path):
    """Two directories, as of two hosts, with the same script and the same input."""
    found = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "views.csv").write_text(LINES)
        (tmp_path / name / "flow.py").write_text(SCRIPT)
        found.append(tmp_path / name)
    return found


def places(number=2):
    return [f"127.0.0.1:{port}" for port in cluster._free_ports(number)]


STARTED = []


@pytest.fixture(autouse=True)
def nobody_is_left(tmp_path):
    """What still runs would read files of a test that is over."""
    yield
    while STARTED:
        STARTED.pop().join(30)


class Second(threading.Thread):
    """Another process, as a thread: everything before the engine runs."""

    def __init__(self, first, place, addresses, process=1, recover=None):
        super().__init__(daemon=True)
        self.keys, self.place, self.why, self.recover = first / "keys", place, "", recover
        self.others = (process, ",".join(addresses))
        STARTED.append(self)
        self.start()

    def run(self):
        while not self.keys.exists():
            time.sleep(0.01)
        time.sleep(0.05)  # it is written in one go, but not at once
        try:
            others = ClusterOptions.read(1, *self.others, self.keys)
            others.join(self.place / "flow.py", str(self.place / "views.csv"), self.recover)
        except WpinqError as error:
            self.why = str(error)


def first(place, addresses, *more):
    words = ["run", str(place / "flow.py"), str(place / "views.csv"), "--budget", "1", "--observe", "cdf=1..3"]
    more = ["--addresses", ",".join(addresses), "--keys", str(place / "keys"), "--data-version", "1", *more]
    return main([*words, *more])


def charged(place):
    entries = Ledger.existing(place / "views.csv.ledger").entries()
    return [entry for entry in entries if entry.kind == "charge"]


def another_script(place, monkeypatch):
    (place / "flow.py").write_text(SCRIPT.replace("page: page", "page: page.upper()"))


def a_function_that_cannot_be_told(place, monkeypatch):
    """Of such a function all that can be compared is the script."""
    for one in (place, place.parent / "first"):
        (one / "flow.py").write_text(
            "import time\n" + SCRIPT.replace("lambda page: page", "lambda page: str(time) * 0")
        )
    (place / "flow.py").write_text((place / "flow.py").read_text().replace("* 0", "* 1"))


def another_name(place, monkeypatch):
    (place / "flow.py").write_text(SCRIPT.replace("cdf", "CDF"))


def other_files(place, monkeypatch):
    (place / "views.csv").write_text(LINES + "u1,p1\n")


def other_columns(place, monkeypatch):
    (place / "views.csv").write_text(LINES.replace("user", "name"))
    (place / "flow.py").write_text(SCRIPT)


def other_libraries(place, monkeypatch):
    plain = cluster.describe

    def describe(*about):
        own = {} if threading.current_thread() is threading.main_thread() else {"libraries": "older"}
        return plain(*about) | own

    monkeypatch.setattr(cluster, "describe", describe)


def no_file(place, monkeypatch):
    (place / "views.csv").unlink()


def a_script_that_fails(place, monkeypatch):
    (place / "flow.py").write_text("1 / 0")


FAULTS = {
    another_script: "dataflow not as in process 0; give all the same script",
    a_function_that_cannot_be_told: "dataflow not as in process 0; give all the same script",
    another_name: "dataflow not as in process 0; give all the same script",
    other_files: "files not as in process 0; give all the same files",
    other_columns: "columns not as in process 0; give all the same files and --columns",
    other_libraries: "libraries not as in process 0; install the same versions",
    no_file: "could not begin: ",
    a_script_that_fails: "could not begin: ",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_what_differs_is_refused_before_any_charge(both, fault, monkeypatch, capfd):
    fault(both[1], monkeypatch)
    addresses = places()
    second = Second(both[0], both[1], addresses)
    assert first(both[0], addresses) == 2
    second.join(20)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert f"process 1 ({addresses[1]})" in lines[0]
    assert FAULTS[fault] in lines[0]
    assert second.why
    assert not second.is_alive()
    assert not charged(both[0])


def test_other_lists_of_addresses_are_refused(both, capfd):
    addresses = places(3)
    second = Second(both[0], both[1], [addresses[0], addresses[2]])
    assert first(both[0], addresses[:2]) == 2
    second.join(20)
    assert "addresses not as in process 0" in capfd.readouterr().err
    assert not charged(both[0])


def test_kept_parts_of_all_or_of_none(both, capfd):
    addresses = places()
    second = Second(both[0], both[1], addresses)
    assert first(both[0], addresses, "--recover", str(both[0] / "kept")) == 2
    second.join(20)
    assert "give --recover to all or to none" in capfd.readouterr().err
    assert not charged(both[0])


def test_other_keys_are_sent_away_and_nobody_else_is_waited_for_in_vain(both, monkeypatch, capfd):
    monkeypatch.setattr(meeting, "JOIN", 3.0)
    addresses = places()
    told = {"script": "", "source": "", "columns": None, "words": {}, "name": "views.csv", "version": "1"}
    told |= {"declared": True, "reading": "", "place": None, "ledger": "", "recover": None}
    told |= {"keys": ["00" * 16, "11" * 16, ""]}
    told |= {"unit": {}, "where": None, "derive": {}}
    (both[1] / "keys").write_text(json.dumps(told))
    second = Second(both[1], both[1], addresses)
    start = time.monotonic()
    assert first(both[0], addresses) == 2
    assert time.monotonic() - start < 60
    second.join(20)
    assert "has other keys" in second.why
    assert f"process 1 ({addresses[1]}) did not come within 3 seconds" in capfd.readouterr().err
    assert not charged(both[0])


def test_whoever_says_something_else_does_not_disturb(both, capfd):
    """Somebody who knows no key is sent away; the process that comes late is let in, and compared."""
    another_script(both[1], None)
    addresses = places()
    host, port = addresses[0].split(":")

    def stranger():
        while not listening(addresses[0]):
            time.sleep(0.01)
        deep = b'{"process": 1, "proof": "x", "nonce": ' + b"[" * 900 + b"]" * 900 + b"}\n"
        for text in (b"GET / HTTP/1.0\r\n\r\n", b'{"process": 1, "nonce": 1, "proof": 1}\n', b"[]\n",
                     b"[" * 60_000 + b"\n", b'{"process": 1, "nonce": "x", "proof": "\\u00e9"}\n', deep,
                     b'{"process": 1, "nonce": "\\ud800", "proof": "\\ud800"}\n'):  # fmt: skip
            with socket.create_connection((host, int(port))) as one:
                one.sendall(text)
                one.recv(100)
        Second(both[0], both[1], addresses)

    threading.Thread(target=stranger, daemon=True).start()
    assert first(both[0], addresses) == 2
    assert "dataflow not as" in capfd.readouterr().err


def test_a_number_is_given_once(both, capfd):
    addresses = places(3)
    seconds = [Second(both[0], both[1], addresses) for _ in range(2)]
    time.sleep(0.1)
    another_script(both[1], None)
    third = threading.Timer(2.0, lambda: Second(both[0], both[1], addresses, process=2))
    third.start()
    assert first(both[0], addresses) == 2
    for one in [third, *seconds]:
        one.join(20)
    assert any("there is such a process already" in one.why for one in seconds)


def test_ports_in_use(both, capfd):
    addresses = places(3)
    with listen(addresses[0]):
        assert first(both[0], addresses) == 2
    assert f"cannot listen at {addresses[0]}: Address already in use" in capfd.readouterr().err
    with listen(addresses[1]):
        others = [Second(both[0], both[1], addresses, process) for process in (1, 2)]
        assert first(both[0], addresses) == 2
        for one in others:
            one.join(20)
    assert f"cannot listen at {addresses[1]}: Address already in use" in capfd.readouterr().err
    assert not charged(both[0])


def test_hosts_that_do_not_exist(both, monkeypatch, capfd):
    assert first(both[0], ["999.0.0.1:1", "b:2"]) == 2
    assert "cannot listen at 999.0.0.1:1: no such host" in capfd.readouterr().err
    monkeypatch.setattr(meeting, "JOIN", 0.5)
    lost = Second(both[0], both[1], ["999.0.0.1:1", "b:2"])
    lost.join(20)
    assert "process 0 was not found at 999.0.0.1:1" in lost.why
    assert not charged(both[0])


IN_A_CLUSTER = {
    "window by window": 'return {"m": views.window("1h", at="time").map(lambda user: user).measure("0.1")}',
    "while it is made": 'm = views.measure("0.1"); m.observe(("u", None)); return {"m": m}',
    "other sources": "import wpinq; topics = wpinq.protect([('u', 'a')], budget=9, columns=('user', 'topic'));"
    ' return {"m": views.join(topics, on="user").measure("0.1")}',
}


@pytest.mark.parametrize("why", IN_A_CLUSTER)
def test_what_no_cluster_computes_is_refused_before_any_charge(tmp_path, why, capfd):
    (tmp_path / "views.csv").write_text("user,time\nu,2026-01-01T00:00:00\n")
    (tmp_path / "flow.py").write_text(f"def dataflow(views):\n    {IN_A_CLUSTER[why]}\n")
    words = ["run", str(tmp_path / "flow.py"), str(tmp_path / "views.csv"), "--budget", "1", "--processes", "2"]
    assert main([*words, "--columns", "user,time:timestamp"]) == 2
    assert why in capfd.readouterr().err
    assert not charged(tmp_path)


def test_a_script_that_is_another_each_time_is_refused_before_any_charge(tmp_path, capfd):
    (tmp_path / "views.csv").write_text(LINES)
    change = "from pathlib import Path\nplace = Path(__file__).with_name('runs')\n"
    change += "runs = len(place.read_text()) if place.exists() else 0\nplace.write_text('x' * (runs + 1))\n"
    (tmp_path / "flow.py").write_text(change + SCRIPT.replace("page: page", "page: page + str(runs)"))
    words = ["run", str(tmp_path / "flow.py"), str(tmp_path / "views.csv"), "--budget", "1", "--processes", "2"]
    assert main(words) == 2
    assert "not as in process 0" in capfd.readouterr().err
    assert not charged(tmp_path)
