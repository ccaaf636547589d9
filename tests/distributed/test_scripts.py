"""`--processes`: the answers of one process, bit for bit; scripts travel as plans or as scripts, or are refused."""

import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import processes
import pytest
from depth import deep, thin

import wpinq
from wpinq.apps.cli import main
from wpinq.apps.scripts import distributed
from wpinq.core.engines.shuffle.crew import Worker
from wpinq.core.ledger import Ledger

SCRIPT = """
def dataflow(views):
    pages = views.map(lambda page: page)
    print("marker")
    return {
        "pages": pages.measure("0.1"),
        "cdf": pages.shave().map(lambda page, index: index).measure("0.1"),
        "pairs": views.join(views, on="user").map(lambda page: page).measure("0.1"),
        "groups": views.group_by("user", len).measure("0.1"),
        "people": views.map(lambda user: user).distinct().measure("0.1", mechanism="laplace"),
    }
"""
PLAIN = SCRIPT.replace("views.map(lambda page: page)", "views.map(lambda page: page if page else None)")
"""What is plain Python travels with the script alone."""
ASKED = ["pages=p1,p4,none", "cdf=1..40", "pairs=p1,p4", "people=u1,u2,nobody"]


@pytest.fixture
def place(tmp_path):
    lines = "".join(f"u{i % 97},p{i * i % 1009 % (i % 50 + 1)}\n" for i in range(5000))
    (tmp_path / "views.csv").write_text("user,page\n" + lines)
    (tmp_path / "flow.py").write_text(SCRIPT)
    return tmp_path


def command(place, *more, asked=ASKED):
    observed = [word for one in asked for word in ("--observe", one)]
    return ["run", str(place / "flow.py"), str(place / "views.csv"), "--budget", "1", *observed, *more]


def answers(place, *more):
    out = place / "out.json"
    assert main(command(place, "--json", str(out), *more)) == 0
    found = {name: one["values"] for name, one in json.loads(out.read_text()).items()}
    out.unlink()
    return found


@pytest.fixture
def told(monkeypatch):
    """What processes were told first."""
    written, write = [], Worker._write
    monkeypatch.setattr(Worker, "_write", lambda self, text: (written.append(json.loads(text)), write(self, text))[1])
    return written


@thin(2)
@pytest.mark.parametrize("script", [SCRIPT, PLAIN], ids=["plans", "script"])
def test_attack_25_the_answers_are_bit_for_bit_those_of_one_process(place, script, told, capfd):
    """The seals compare the digests of all five histograms: another histogram would be refused, not answered."""
    (place / "flow.py").write_text(script)
    together = answers(place, "--processes", "3")
    out, err = capfd.readouterr()
    assert out.count("marker") == 1, "the script's words are said once"
    assert err == ""
    assert ("script" in next(text["job"]["told"] for text in told if "job" in text)) == (script == PLAIN)
    assert together == answers(place)
    assert Ledger.existing(place / "views.csv.ledger").spent()[0] == Fraction(1, 2)


@deep
def test_people_in_several_processes(place):
    (place / "flow.py").write_text(PLAIN)
    people = ["--unit", "user", "--at-most", "7", "--where", "page <> 'p3'", "--derive", "page=upper(page)"]
    asked = ["--observe", "pages=P1,P4"]
    out = place / "out.json"
    found = []
    for more in (["--processes", "2"], []):
        words = command(place, *people, *asked, "--json", str(out), *more, asked=[])
        assert main(words) == 0
        found.append(json.loads(out.read_text())["pages"]["values"])
    assert found[0] == found[1]


@deep
def test_a_bound_that_is_chosen_is_the_same_in_several_processes(place, capfd):
    chosen = [
        "--unit", "user", "--at-most", "auto", "--bound-epsilon", "1", "--budget", "3", "--observe", "pages=p1,p4",
    ]  # fmt: skip
    found = []
    for more in (["--processes", "2"], []):
        words = ["run", str(place / "flow.py"), str(place / "views.csv"), *chosen, *more]
        assert main(words) == 0
        found.append(capfd.readouterr().out.partition("Its ledger is new")[0].strip())
    assert found[0] == found[1]


@deep
def test_degrees_and_sql_in_several_processes(place):
    views, ledger = str(place / "views.csv"), str(place / "ledger")
    found = []
    for more in ([], ["--processes", "2"]):
        words = ["degrees", views, "--of", "page", "--unit", "user", "--at-most", "5", "--budget", "1"]
        assert main([*words, "--ledger", ledger, "--json", str(place / "out.json"), *more]) == 0
        query = "SELECT page, COUNT(DISTINCT user) AS c FROM views GROUP BY page ORDER BY c DESC"
        asked = ["--epsilon", "1", "--delta", "1e-6", "--budget", "3", "--unit", "user", "--at-most", "5"]
        words = ["sql", query, "--from", f"views={views}", *asked, "--ledger", f"{ledger}.sql"]
        assert main([*words, "--json", str(place / "sql.json"), *more]) == 0
        found.append([json.loads((place / name).read_text()) for name in ("out.json", "sql.json")])
    assert found[0] == found[1]
    assert Ledger.existing(Path(ledger)).spent()[0] == 1


@deep
def test_a_release_in_several_processes(place, told):
    for month in ("2026-06", "2026-07"):
        (place / f"{month}.csv").write_text((place / "views.csv").read_text())
    (place / "release.toml").write_text(
        '[data]\nsource = "{date}.csv"\nledger = "ledger"\nprocesses = 2\n'
        '[budget]\nepsilon = 3\n[period]\nevery = "month"\n'
        '[[question]]\nname = "pages"\ncounts = ["page"]\nkeys = ["p1", "p2"]\nepsilon = 1\nplot = false\n'
        '[[sink]]\ndirectory = "out/{date}"\n'
    )
    assert main(["publish", "run", str(place / "release.toml"), "--period", "2026-06"]) == 0
    assert told
    told.clear()
    assert main(["publish", "verify", str(place / "release.toml"), "--period", "2026-06"]) == 0
    assert main(["publish", "run", str(place / "release.toml"), "--period", "2026-07", "--processes", "1"]) == 0
    assert len([one for one in told if "job" in one]) == 2, "verify computes as the file says, and --processes 1 here"


@deep
def test_a_file_that_was_touched_is_the_same_for_all_processes(place):
    alone = answers(place)
    (place / "views.csv").touch()
    assert answers(place, "--processes", "2") == alone


HEAVY = SCRIPT.replace("lambda page: page)", "heavy)", 1).replace(
    "def dataflow", "def heavy(page):\n    return page if sum(range(200_000)) else None\n\ndef dataflow"
)


@deep
def test_attack_42_several_processes_that_are_killed_go_on_where_they_were(place):
    """Processes keep what each has read in one directory; a run of another number of processes goes on from it."""
    (place / "flow.py").write_text(HEAVY)
    kept = place / "kept"
    words = [sys.executable, "-m", "wpinq", *command(place, "--processes", "2", "--recover", str(kept))]
    root = Path(wpinq.__file__).parents[1]
    run = processes.Popen(words, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(lambda: len(list(kept.glob("*.part"))) >= 4 or run.poll() is not None)
    finally:
        run.kill()
        run.wait()
    parts = list(kept.glob("*.part"))
    assert run.returncode == -signal.SIGKILL
    assert parts
    assert all(one.stat().st_mode & 0o077 == 0 and b"user" not in one.read_bytes() for one in parts)
    together = answers(place, "--processes", "3", "--recover", str(kept))
    assert not list(kept.iterdir())
    assert together == answers(place), "the seals compare the digests"


def test_a_process_that_dies_is_replaced_and_the_answers_are_the_same(place, monkeypatch):
    (place / "flow.py").write_text(PLAIN)
    write, killed = Worker._write, []

    def written(self, text):
        write(self, text)
        if '"step"' in text and not killed:
            killed.append(self.process.pid)
            os.kill(self.process.pid, signal.SIGKILL)

    with monkeypatch.context() as patched:
        patched.setattr(Worker, "_write", written)
        together = answers(place, "--processes", "2")
    assert killed
    assert together == answers(place)


def _wait(condition):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it never happened")


OTHER = (
    "import wpinq\n"
    "def dataflow(views):\n"
    "    topics = wpinq.protect([('p1', 'a')], budget=9, columns={'page': str, 'topic': str})\n"
    "    return {'m': views.join(topics, on='page').map(FUNCTION).measure('0.1')}\n"
)
REFUSED = {
    "other sources": (OTHER.replace("FUNCTION", "lambda page, topic: page or topic"), "reads other sources than INPUT"),
    "observes": (
        "def dataflow(views):\n"
        "    m = views.map(lambda page: page or None).measure('0.1')\n"
        "    m.observe('p1')\n"
        "    return {'m': m}\n",
        "observes m while it is made",
    ),
    "windows": (
        "def dataflow(views):\n"
        "    numbers = views.map(lambda page: len(page) if page else 0, columns={'n': int})\n"
        "    return {'m': numbers.window(2, at='n').measure('0.1')}\n",
        "m is measured window by window",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_travel_in_no_way_is_refused_before_any_charge(place, name, capfd):
    script, why = REFUSED[name]
    (place / "flow.py").write_text(script)
    assert main(command(place, "--processes", "2", asked=[])) == 2
    said = capfd.readouterr().err
    assert why in said
    assert "cannot be told to another process" in said
    book = place / "views.csv.ledger"
    assert not book.exists() or Ledger.existing(book).spent()[0] == 0
    assert main(command(place, asked=[])) == 0, "one process runs it"


def test_a_dataflow_that_travels_may_read_several_sources(place):
    (place / "flow.py").write_text(OTHER.replace("FUNCTION", "lambda topic: topic"))
    assert answers_of(place, "m=a", "--processes", "2") != []


def answers_of(place, asked, *more):
    out = place / "out.json"
    assert main(command(place, "--json", str(out), "--observe", asked, *more, asked=[])) == 0
    return json.loads(out.read_text())


@deep
def test_a_script_that_makes_other_plans_elsewhere_answers_nothing(place, monkeypatch, capfd):
    (place / "flow.py").write_text(PLAIN)
    plain = distributed.ScriptProcesses.message

    def told(self, job):
        return {**plain(self, job), "text": "0" * 64}

    monkeypatch.setattr(distributed.ScriptProcesses, "message", told)
    assert main(command(place, "--processes", "2")) == 2
    assert "makes other measurements each time it is run" in capfd.readouterr().err
    assert [one.kind for one in Ledger.existing(place / "views.csv.ledger").entries()].count("charge") == 5


def test_a_stream_is_read_by_one_process(place, capfd):
    assert main(command(place, "--processes", "2", "--follow", asked=[])) == 2
    assert "--workers lets several" in capfd.readouterr().err
