"""Processes of tests that are copies of one (`processes.py`) say and end as those that `subprocess` begins."""

from __future__ import annotations

import signal
import subprocess
import sys

import processes
import pytest

SHOW = """
import os, sys
print(__name__, sys.argv, os.getcwd(), os.environ.get("WHO"), sys.stdin.read(), "wpinq" in sys.modules or "wpinq")
print("to the other", file=sys.stderr)
"""
ENDS = ["pass", "raise SystemExit(3)", "raise SystemExit('a line')", "import atexit; atexit.register(print, 'last')",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "import sys; sys.exit(input() == 'x')",
        "raise SystemExit(-1)", "import sys; print('x'); sys.stdout.close()", "import os; print('x'); os.close(1)",
        "from threading import Timer; here = 1; Timer(0.1, lambda: print('a thread', here)).start()",
        "class Held:\n    def __del__(self): print('let go')\nheld = Held()"]  # fmt: skip


def both(command, **options):
    """What `subprocess` and what a copy gives."""
    options |= {"capture_output": True, "text": True}
    done = [each.run([sys.executable, *command], check=False, **options) for each in (subprocess, processes)]
    return [(each.returncode, each.stdout, each.stderr) for each in done]


@pytest.mark.parametrize("kind", ["code", "script", "module"])
def test_it_has_its_own_arguments_directory_environment_and_streams(tmp_path, kind):
    (tmp_path / "show.py").write_text(SHOW)
    first = {"code": ["-c", SHOW], "script": [str(tmp_path / "show.py")], "module": ["-m", "show"]}[kind]
    plain, copied = both([*first, "a", "-b"], cwd=tmp_path, env={"WHO": "ann"}, input="heard")
    assert copied == (plain[0], plain[1].replace("wpinq\n", "True\n"), plain[2])
    assert "ann heard" in copied[1]


@pytest.mark.parametrize("code", ENDS)
def test_it_ends_as_any_other(code):
    plain, copied = both(["-W", "ignore", "-c", code], input="x\n")
    assert plain == copied


def test_a_traceback_ends_in_the_same_line():
    plain, copied = both(["-c", "1 / 0"])
    assert [(code, out, said.splitlines()[-1]) for code, out, said in (plain, copied)] == [
        (1, "", "ZeroDivisionError: division by zero")
    ] * 2


@pytest.mark.parametrize("kind", ["code", "script"])
def test_what_it_did_not_close_is_written(tmp_path, kind):
    code = "file = open('written', 'w'); file.write('all of it')"
    (tmp_path / "write.py").write_text(code)
    first = {"code": ["-W", "ignore", "-c", code], "script": [str(tmp_path / "write.py")]}[kind]
    for each in (subprocess, processes):
        each.run([sys.executable, *first], cwd=tmp_path, check=True)
        assert (tmp_path / "written").read_text() == "all of it"
        (tmp_path / "written").unlink()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_signals_reach_it(number):
    command = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"]
    with processes.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == b"1\n"
        process.send_signal(number)
    assert process.returncode == -number
