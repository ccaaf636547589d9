"""`wpinq shell`, line by line and in a real terminal."""

from __future__ import annotations

import io
import os
import pty
import select
import stat
import subprocess
import sys
import time
from functools import partial

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from wpinq import protect
from wpinq.apps.cli.commands import Commands
from wpinq.apps.cli.shell import _completer
from wpinq.apps.cli.show import SPENT_ALL
from wpinq.errors import WpinqError


@pytest.fixture
def shell(wpinq, views, loud, tmp_path, monkeypatch):
    def say(*lines, budget="150"):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return wpinq("shell", loud, views, "--budget", budget, "--ledger", tmp_path / "ledger")

    return say


def test_answers(shell, tmp_path, remaining):
    done = shell("pages home 'a b' nope", "", "# a comment", "cdf 1..3", "both ann:home")
    assert (done.code, done.err) == (0, "")
    lines = [line for line in done.out.splitlines() if not line.startswith(("noise moves each", "Protects one record"))]
    assert lines == ["home  3", "a b  1", "nope  0", "1  3", "2  2", "3  1", "ann:home  1"]
    assert remaining(tmp_path / "ledger") == 0


def test_commands(shell):
    done = shell("help", "measurements", "explain cdf", "budget", "quit", "cdf 1")
    assert done.code == 0
    assert "NAME BIN [BIN...]" in done.out
    assert "(user: text, page: text)" in done.out
    assert "noise of scale 0.02" in done.out
    assert f"Epsilon 0 of 150 is left for views.csv. {SPENT_ALL}.\nIts ledger is new: " in done.out
    assert done.out.endswith("wpinq check tells their curator.\n")  # nothing after quit


def test_a_bad_line_is_told_and_the_next_is_answered(shell):
    done = shell("cdf home", "cdf", "nope 1", "explain nope", 'pages "open', "plot cdf 1 x.png", "cdf 1")
    assert done.code == 2
    errors = done.err.splitlines()
    assert len(errors) == 6
    assert all(line.startswith("wpinq: ") for line in errors)
    assert "1  3" in done.out


def test_plot(shell, tmp_path, views):
    out = tmp_path / "out.svg"
    assert shell(f"plot cdf 1..5 {out}").code == 0
    assert b"<svg" in out.read_bytes()
    done = shell(f"plot cdf 1..5 {tmp_path / 'no' / 'out.svg'}", f"plot cdf 1..5 {views}")
    assert (done.code, done.err.count("\n")) == (2, 2)
    assert views.read_text().startswith("user,page")


def test_nothing_is_charged_for_a_bad_start(wpinq, views, tmp_path, listing):
    before = listing(tmp_path)
    wpinq("shell", "nope", views, "--budget", "1").refused()
    wpinq("shell", "degrees", views, "--budget", "0.1").refused()
    wpinq("shell", "degrees", tmp_path / "no.csv", "--budget", "1").refused()
    assert listing(tmp_path) == before


def test_a_real_terminal(views, loud, tmp_path):
    """Completion by tab, history by arrow, quit; and the history is for its owner's eyes only."""
    primary, secondary = pty.openpty()
    command = [sys.executable, "-m", "wpinq", "shell", loud, views, "--budget", "150", "--ledger", tmp_path / "ledger"]
    settings = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    ends = {"stdin": secondary, "stdout": secondary, "stderr": secondary}
    with subprocess.Popen(list(map(str, command)), env=settings, **ends) as process:
        os.close(secondary)
        try:
            _until(primary, "wpinq>")
            os.write(primary, b"pag\t")
            _until(primary, "pages")
            os.write(primary, b" home\r")
            _until(primary, "home  3")
            os.write(primary, b"cdf x\r")
            _until(primary, "type integer")
            os.write(primary, b"\x1b[A\x1b[A\r")  # two lines up: pages home
            _until(primary, "home  3")
            os.write(primary, b"quit\r")
            assert process.wait(20) == 0
        finally:
            process.kill()
            os.close(primary)
    history = tmp_path / "state" / "wpinq" / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert history.read_text().count("+pages home") >= 1


def _until(terminal: int, text: str, seconds: float = 20) -> None:
    seen, end = "", time.monotonic() + seconds
    while text not in seen:
        ready, _, _ = select.select([terminal], [], [], max(end - time.monotonic(), 0))
        assert ready, f"{text!r} did not come; what came: {seen!r}"
        seen += os.read(terminal, 4096).decode(errors="replace")


@pytest.fixture
def rich(shell):
    return partial(shell, budget="1000")


def test_new_questions_are_priced_first_and_charged_once_after_a_yes(rich, views, tmp_path, remaining):
    query = "SELECT page, COUNT(*) AS c FROM views GROUP BY page keys home,nope epsilon 100"
    plan = 'measure own = views.filter("user <> \'ann\'").map(page).shave([1, 2], "part") epsilon 50'
    done = rich(plan, query, "own home:0")
    assert (done.code, remaining(tmp_path / "ledger")) == (2, 850)  # priced, and dropped by what came next
    assert "costs epsilon 50" in done.out and "c: geometric noise of scale 0.01, within 0" in done.out
    assert "'own' is neither a command" in done.err
    done = rich(plan, "yes", "own home:0..2", "explain own", query, "yes", "yes", plan)
    assert (done.code, remaining(tmp_path / "ledger")) == (2, 700)
    assert done.err.splitlines() == ["wpinq: yes: to what? A question is priced first, by the line before.",
                                     "wpinq: measure: there is a 'own' already; take another name."]  # fmt: skip
    lines = done.out.splitlines()
    assert [line for line in lines if line.startswith("home:")] == ["home:0  0", "home:1  1", "home:2  1"]
    assert [line for line in lines if line.startswith(("home  ", "nope"))] == ["home  3 ± 0", "nope  0 ± 0"]
    done = rich(plan.replace("own", "other"), "yes", "other home:1", query, "yes")
    assert (done.code, remaining(tmp_path / "ledger")) == (0, 700)  # the same questions by any name
    assert done.out.count("free: it was charged before") == 2 and "nothing was charged now" in done.out
    records = protect(views, ledger=tmp_path / "ledger")
    same = records.filter("user <> 'ann'").map("page").shave([1, 2], "part").measure(50)
    assert same.observe(("home", 1)) == 1 and remaining(tmp_path / "ledger") == 700


@pytest.mark.parametrize(
    ("plan", "match"),
    [
        ("views.map(page)", "what may it cost"),
        ("views.map(page) epsilon 1e9", ""),  # it is priced, and then there is nothing to say yes to
        ("views.map(page) epsilon -1", "epsilon"),
        ("views.map(page) epsilon 1 epsilon 2", "twice"),
        ("views.map(page) epsilon 1 keys home", "SELECT"),
        ("views.map(nope) epsilon 1", "no column 'nope'"),
        ("views.map() epsilon 1", "missing"),
        ("views.map(lambda page: page) epsilon 1", "in quotes"),
        ("views.filter(page > 3) epsilon 1", "in quotes"),
        ("views.map(open('MARK', 'w')) epsilon 1", "no operator"),
        ("views.measure(1) epsilon 1", "no operator"),
        ("views._then(1) epsilon 1", "no operator"),
        ("views._node epsilon 1", "in quotes"),
        ("views.map(*page) epsilon 1", "in quotes"),
        ("views.map(page, **{'columns': 1}) epsilon 1", "in quotes"),
        ("page.map(user) epsilon 1", "begins with views"),
        ("'views' epsilon 1", "begins with views"),
        ("views.concat(" * 400 + "views" + ")" * 400 + " epsilon 1", "cannot be read|too deep"),
        ("views; import os epsilon 1", "cannot be read"),
    ],
)
def test_what_is_no_plan_is_told_in_one_line_and_runs_nothing(views, tmp_path, monkeypatch, plan, match):
    monkeypatch.chdir(tmp_path)
    records = protect(views, 10, ledger=tmp_path / "ledger")
    commands = Commands({}, records)
    if match:
        with pytest.raises(WpinqError, match=match):
            commands.do(f"measure own = {plan}")
    else:
        assert "would be refused" in commands.do(f"measure own = {plan}")
    with pytest.raises(WpinqError, match="to what"):
        commands.do("yes")
    assert records.left == 10 and not (tmp_path / "MARK").exists() and not commands.measurements


def test_columns_and_operators_are_completed(views):
    completer = _completer(Commands({}, protect(views, 1, ledger=views.with_suffix(".ledger"))))

    def completed(text):
        return {one.text for one in completer.get_completions(Document(text), CompleteEvent())}

    assert {"measure", "SELECT", "yes"} <= completed("")
    assert completed("measure own = views.ma") == {"map"} and "page" in completed("measure own = views.map(p")
    assert "user" in completed("SELECT u")
