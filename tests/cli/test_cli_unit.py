"""`--unit` and what goes with it, on every command: whom it protects is said, and the records are bounded so."""

import json
import subprocess
import sys
import threading
import time

import processes
import pytest

from wpinq.core.ledger import Ledger

PEOPLE = ["--unit", "user", "--at-most", "2"]
SAID = "Protects one user, at most 2 records each."


@pytest.fixture
def log(tmp_path):
    """Ann views five static files and three pages, and Bob one page; epsilon is large, so noise is nothing."""
    path = tmp_path / "log.csv"
    rows = [f"ann,/static/{n},2026-01-01 0{n}:00:00" for n in range(5)]
    rows += [f"ann,/home?u={n},2026-01-0{n + 1} 05:00:00" for n in range(3)] + ["bob,/home,2026-01-01 07:00:00"]
    path.write_text("user,page,time\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def flow(tmp_path):
    path = tmp_path / "flow.py"
    path.write_text("def dataflow(views):\n    return {'users': views.map('user').measure(epsilon=200)}\n")
    return path


def spent(ledger):
    return Ledger.existing(ledger).spent()[0]


def run(wpinq, flow, log, *more):
    return wpinq("run", flow, log, "--budget", "200", "--observe", "users=ann,bob", *more)


def test_run_bounds_the_records_of_a_person_and_says_so(wpinq, flow, log, tmp_path):
    out = tmp_path / "out.json"
    done = run(wpinq, flow, log, *PEOPLE, "--json", out)
    assert done.code == 0, done.err
    assert SAID in done.out
    assert json.loads(out.read_text())["users"]["values"] == [2, 1]
    assert json.loads(out.read_text())["users"]["protects"] == [SAID[9:-1]]
    assert Ledger.existing(tmp_path / "log.csv.ledger").unit == "user (user)", "each question has a bound of its own"


@pytest.mark.parametrize(
    ("more", "values", "said"),
    [
        ([], [8, 1], "Protects one record"),
        (["--unit", "user", "--shared"], [1, 1], "Protects one user, whose records share a weight of 1."),
        ([*PEOPLE, "--per", "page=1", "--where", "page like '/h%'", "--derive", "page=substr(page,1,5)"], [1, 1], SAID),
        (
            ["--unit", "user", "--at-most", "5", "--where", "page not like '/static/%'"],
            [3, 1],
            "at most 5 records each",
        ),
        (["--where", "page = '/home'"], [0, 1], "Protects one record"),
    ],
)
def test_every_unit_of_run_and_of_its_processes(wpinq, flow, log, tmp_path, more, values, said):
    out = tmp_path / "out.json"
    done = run(wpinq, flow, log, *more, "--json", out, "--processes", "2" if "--per" in more else "1")
    assert done.code == 0, done.err
    assert said in done.out
    assert json.loads(out.read_text())["users"]["values"] == pytest.approx(values, abs=0.1)


def test_a_person_in_one_period(wpinq, flow, log, tmp_path):
    out = tmp_path / "out.json"
    done = run(
        wpinq, flow, log, "--columns", "user,page,time:timestamp", "--unit", "user", "--at-most", "1", "--period", "1d",
        "--at", "time", "--json", out,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert json.loads(out.read_text())["users"]["values"] == [3, 1], "one on each of three days"


def test_degrees(wpinq, log, tmp_path):
    out = tmp_path / "out.json"
    done = wpinq("degrees", log, "--of", "path", "--budget", "400", "--json", out, "--unit", "user", "--at-most", "2",
                 "--derive", "path=substr(page, 1, 5)", "--where", "path <> '/stat'")  # fmt: skip
    assert done.code == 0, done.err
    assert SAID in done.out
    found = json.loads(out.read_text())
    assert (found["distinct"], found["records"], found["protects"]) == (1, 3, SAID[9:-1])


def test_sql(wpinq, log, tmp_path):
    out = tmp_path / "out.json"
    done = wpinq("sql", "SELECT COUNT(*) AS n FROM v", "--from", f"v={log}", "--epsilon", "200", "--json", out, *PEOPLE,
                 "--where", "page not like '/static/%'")  # fmt: skip
    assert done.code == 0, done.err
    assert SAID in done.out
    assert json.loads(out.read_text())["protects"] == [SAID[9:-1]]
    assert "\n3 ± 0\n" in done.out


def test_shell(wpinq, flow, log, monkeypatch):
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO("users ann\n"))
    done = wpinq("shell", flow, log, "--budget", "200", *PEOPLE)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "ann  2"
    assert SAID in done.out


def test_explain_with_and_without_input_and_of_a_stream(wpinq, flow, log, tmp_path, listing):
    for source in ([], [log]):
        done = wpinq("explain", flow, *source, *PEOPLE, "--where", "page <> 'x'", "--derive", "more=upper(page)")
        assert done.code == 0, done.err
        assert SAID in done.out
        assert "derive(more" in done.out
        assert "noise of scale 0.01" in done.out
    stream = tmp_path / "stream.py"
    stream.write_text(
        "def dataflow(views):\n    return {'all': views.measure(epsilon=1, continual=True),\n"
        "            'hours': views.window('1h', at='time').map('user').measure(epsilon=2)}\n"
    )
    before = listing(tmp_path)
    for source, unit, cost in (
        ([log, "--follow"], PEOPLE, "epsilon 1 in all, and 2 for each window"),
        (["--follow"], ["--unit", "user", "--at-most", "2", "--period", "1h", "--at", "time"], "epsilon 3 in all."),
    ):
        done = wpinq("explain", stream, *source, "--columns", "user,time:timestamp", *unit)
        assert done.code == 0, done.err
        assert cost in done.out
    assert "leave it out" not in wpinq("explain", stream, log).refused()
    assert listing(tmp_path) == before


def test_explain_tells_the_delta_of_a_stream_whose_bins_nobody_named(wpinq, tmp_path):
    stream = tmp_path / "keys.py"
    stream.write_text(
        "def dataflow(views):\n    return {'keys': views.map('page').select(1, delta='1e-7', continual=True)}\n"
    )
    done = wpinq("explain", stream, "--follow", "--columns", "user,page:str", "--unit", "user", "--at-most", "2")
    assert done.code == 0, done.err
    assert "It costs epsilon 1 and delta 0.0000001 in all." in done.out
    assert "each data set pays delta 0.0000001 as well" in done.out


@pytest.mark.parametrize("period", [[], ["--period", "1s", "--at", "time"]], ids=["person", "person in a second"])
def test_windows_of_a_stream_cost_each_or_as_one(tmp_path, period):
    """A person is in every window; a person in one second is in one."""
    (tmp_path / "flow.py").write_text(
        "def dataflow(views):\n    return {'seconds': views.window('1s', at='time').map('page').measure(epsilon=1)}\n"
    )
    words = ["run", "flow.py", "-", "--budget", "500", "--ledger", "ledger", "--every", "0.2", "--lateness", "0",
             "--unit", "host", "--at-most", "1", "--observe", "seconds=/a", *period]  # fmt: skip
    ended, seen, whom = threading.Event(), set(), " in one second by time (UTC where it has a zone)" if period else ""

    def feed(lines):
        while not ended.wait(0.1):
            now = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
            lines.write(f'1.2.3.4 - - [{now}] "GET /a HTTP/1.1" 200 5\n')
            lines.flush()
        lines.close()

    with processes.Popen([sys.executable, "-m", "wpinq", *words], cwd=tmp_path, text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:  # fmt: skip
        feeder = threading.Thread(target=feed, args=[run.stdin])
        feeder.start()
        for line in run.stdout:
            seen.add(line.split()[1])
            if len(seen) == 2:
                ended.set()
        feeder.join()
        assert run.wait(60) == 0
        assert f"wpinq: Protects one host{whom}, at most 1 record each." in run.stderr.read()
    assert spent(tmp_path / "ledger") == (1 if period else len(seen))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--at-most", "3"], "--at-most: goes with --unit COLUMN"),
        (["--shared"], "--shared: goes with --unit COLUMN"),
        (["--period", "1d", "--at", "time"], "--period: goes with --unit COLUMN"),
        (["--unit", "user"], "nothing bounds how far one user of"),
        (["--unit", "user", "--at-most", "3", "--shared"], "give either --at-most N"),
        ([*PEOPLE, "--per", "page"], "--per: write COLUMN=N"),
        ([*PEOPLE, "--per", "page=0"], "--per: 0 is not"),
        (["--unit", "user", "--shared", "--per", "page=1"], "--per: goes with --at-most"),
        ([*PEOPLE, "--period", "1d"], "--period and --at go together"),
        ([*PEOPLE, "--period", "1x", "--at", "time"], "--period"),
        ([*PEOPLE, "--zone", "Asia/Tokyo"], "--zone: goes with"),
        (["--unit", "person", "--shared"], "--unit: no column 'person'"),
        (["--unit", "user", "--at-most", "0"], "--at-most: 0 is not"),
        (["--where", "page"], "--where: page is of type text and not a condition"),
        (["--derive", "x"], "--derive: write NAME=EXPRESSION"),
        (["--derive", "x=page", "--derive", "x=user"], "--derive: write NAME=EXPRESSION"),
        ([*PEOPLE, "--derive", "user=page"], "--derive user: the column tells apart"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line_that_names_the_option(wpinq, flow, log, listing, tmp_path, more, why):
    before = listing(tmp_path)
    assert why in run(wpinq, flow, log, *more).refused()
    assert listing(tmp_path) == before


def test_a_ledger_of_records_does_not_lock_a_file_out(wpinq, flow, log, tmp_path):
    assert run(wpinq, flow, log).code == 0
    said = run(wpinq, flow, log, *PEOPLE).refused()
    assert "its privacy unit is 'record', not 'user (user)'" in said
    assert "--ledger PATH" in said
    assert "epsilon 200 is spent in this one" in said
    assert run(wpinq, flow, log, *PEOPLE, "--ledger", tmp_path / "people").code == 0
    assert spent(tmp_path / "people") == 200


@pytest.mark.parametrize("option", ["--data-version=1", "--no-header", "--processes=2"])
def test_a_stream_refuses_the_option_that_was_given(wpinq, flow, log, option):
    said = run(wpinq, flow, log, "--follow", *option.split("=")).refused()
    assert said.startswith(f"wpinq: {option.partition('=')[0]}: leave it out")


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        (PEOPLE, {"counted": 9, "units": 2, "over": 1, "kept": 3}),
        ([*PEOPLE, "--where", "page like '/h%'"], {"counted": 4, "units": 2, "over": 1, "kept": 3}),
        ([*PEOPLE, "--per", "page=1", "--derive", "page=substr(page, 1, 5)"],
         {"counted": 9, "units": 2, "over": 1, "kept": 3}),
        (["--unit", "user", "--at-most", "9", "--per", "page=1", "--derive", "page=substr(page, 1, 5)"],
         {"counted": 9, "units": 2, "over": 1, "kept": 3}),
        (["--unit", "user", "--shared"], {"counted": 9, "units": 2, "over": 0, "kept": 9}),
        (["--unit", "user", "--at-most", "2", "--period", "1d", "--at", "time"],
         {"counted": 9, "units": 4, "over": 1, "kept": 5}),
        (["--where", "page = '/home'"], {"counted": 1, "units": 1, "over": 0, "kept": 1}),
    ],
)  # fmt: skip
def test_check_tells_its_curator_what_a_bound_keeps(wpinq, log, more, counts):
    more = [*more, "--columns", "user,page,time:timestamp"]
    done = wpinq("check", log, *more, "--json")
    assert done.code == 0, done.err
    assert {name: json.loads(done.out)["unit"][name] for name in counts} == counts
    text = wpinq("check", log, *more).out
    assert f"{counts['kept']} of {counts['counted']} records" in " ".join(text.split())
    assert wpinq("check", log, "--unit", "person", "--shared").refused().startswith("wpinq: --unit: no column")


AUTO = ["--unit", "user", "--at-most", "auto", "--bound-epsilon", "60"]


def test_a_bound_is_chosen_told_and_charged_once(wpinq, flow, log, tmp_path):
    """Of a person with eight records and one with one: where answers have next to no noise it is 8."""
    for _ in range(2):
        done = wpinq("run", flow, log, "--budget", "260", "--observe", "users=ann,bob", *AUTO, "--bound-bins", "1@50")
        assert done.code == 0, done.err
        assert "Protects one user, at most 8 records each." in done.out
        assert spent(tmp_path / "log.csv.ledger") == 260
    asked = ["sql", "SELECT COUNT(*) AS n FROM log", "--from", f"log={log}", "--epsilon", "50", *AUTO]
    done = wpinq(*asked, "--ledger", tmp_path / "sql", "--bound-bins", "2@50")
    assert done.code == 0, done.err
    assert "8 was chosen with epsilon 60 for 2 bins at epsilon 50" in done.out
    assert spent(tmp_path / "sql") == 110
    auto = ["sql", "SELECT COUNT(*) AS n FROM log", "--from", f"log={log}", "--unit", "user", "--at-most", "auto"]
    done = wpinq(*auto, "--epsilon", "100", "--ledger", tmp_path / "auto")
    assert "8 was chosen with epsilon 50 for 1 bin at epsilon 50" in done.out, done.err
    assert "Cost: epsilon 100. Epsilon 0 of 100 is left" in " ".join(done.out.split())
    assert wpinq(*auto[:-3], "auto", "--at-most", "auto", "--epsilon", "1").code == 2


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--at-most", "auto"], "--at-most auto: give --bound-epsilon too"),
        (["--at-most", "x"], "--at-most x: write a number of records, or auto."),
        (["--at-most", "3", "--bound-epsilon", "1"], "--bound-epsilon, --bound-bins: go with --at-most auto."),
        (["--at-most", "auto", "--bound-epsilon", "0"], "--bound-epsilon: 0 is not above zero"),
        (["--at-most", "auto", "--bound-epsilon", "1", "--bound-bins", "x"], "--bound-bins: write BINS"),
        (["--at-most", "auto", "--bound-epsilon", "1", "--follow"], "give a number of them"),
    ],
)
def test_what_no_bound_is_chosen_by_is_refused(wpinq, flow, log, tmp_path, more, why):
    done = run(wpinq, flow, log, "--unit", "user", *more)
    assert done.code == 2
    assert why in done.err
    assert not (tmp_path / "log.csv.ledger").exists()


def test_where_nothing_is_read_no_bound_is_chosen(wpinq, flow, log):
    for command in (["explain", flow, log], ["check", log], ["try", flow, log]):
        done = wpinq(*command, *AUTO)
        assert done.code == 2
        assert "--at-most auto: is chosen when records are read for an answer" in done.err
