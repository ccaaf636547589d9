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

import pytest

from wpinq.ledger.budget import SPENT_ALL


@pytest.fixture
def shell(wpinq, views, loud, tmp_path, monkeypatch):
    def say(*lines):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return wpinq("shell", loud, views, "--budget", "150", "--ledger", tmp_path / "ledger")

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
