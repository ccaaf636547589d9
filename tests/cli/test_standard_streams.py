"""Standard streams that are closed, full or none: told before a charge, or nothing changes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from depth import thin

import wpinq as library
from wpinq.apps.cli import stream
from wpinq.errors import SourceError


def ended(place, words, streams):
    """A command in a process of its own, its streams as a shell makes them, and what it wrote to files beside."""
    quoted = " ".join(f"'{word}'" for word in words)
    script = f"'{sys.executable}' -m wpinq {quoted} >out 2>err </dev/null {streams}"
    done = subprocess.run(["/bin/sh", "-c", script], cwd=place, timeout=60, check=False)
    return done.returncode, *((place / name).read_text() for name in ("out", "err"))


COUNT = ("degrees", "views.csv", "--of", "page", "--budget", "1")


@thin(2)
@pytest.mark.parametrize("streams", ["2>&-", "<&-", "<&- 2>&-", "2>/dev/full"])
def test_a_question_is_answered_without_standard_error_and_input(views, remaining, streams):
    """The bar of progress asked whether standard error is a terminal, where there was none, after the charge."""
    assert ended(views.parent, COUNT, streams)[::2] == (0, "")
    again = ended(views.parent, COUNT, "")
    assert again[0] == 0 and again[1]
    assert ended(views.parent, COUNT, streams) == (0, again[1], "")
    assert remaining(views.with_name("views.csv.ledger")) == 0


@pytest.mark.parametrize("streams", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_question_whose_answer_nobody_could_see_is_refused(views, streams):
    code, _, said = ended(views.parent, COUNT, streams)
    assert code == 2
    assert said == (
        "" if "2>&-" in streams else "wpinq: standard output is closed; send it to a file, or to /dev/null.\n"
    )
    assert not views.with_name("views.csv.ledger").exists()


@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full"])
def test_a_refusal_that_cannot_be_told_has_its_code(views, streams):
    assert ended(views.parent, ("degrees", "no.csv", "--of", "page", "--budget", "1"), streams) == (2, "", "")


@pytest.mark.parametrize("words", [
    ("run", "loud.py", "-", "--columns", "user,page", "--budget", "200", "--ledger", "L"),
    ("shell", "loud.py", "views.csv", "--budget", "200", "--ledger", "L"),
], ids=["run", "shell"])  # fmt: skip
def test_lines_that_cannot_come_are_told_before_a_charge(views, loud, words):
    code, out, said = ended(views.parent, words, "<&-")
    assert (code, out, said) == (2, "", "wpinq: standard input is closed; give it lines, or /dev/null for none.\n")
    assert not (views.parent / "L").exists()


CODE = """
import os, sys
from wpinq.apps.cli.process import hold_standard
hold_standard()
held = [os.fstat(number).st_rdev == os.stat(os.devnull).st_rdev for number in range(3)]
os.write(2, b"a line that nobody sees")
opened = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(opened, repr((held, opened > 2, sys.stdin is None, sys.stdout is None, sys.stderr is None)).encode())
"""


def test_no_file_gets_the_number_of_a_stream_that_is_closed(tmp_path):
    """Else what is written to standard error is written into that file."""
    script = f"'{sys.executable}' -c '{CODE}' '{tmp_path}/seen' <&- >&- 2>&-"
    subprocess.run(["/bin/sh", "-c", script], timeout=60, check=True)
    assert (tmp_path / "seen").read_text() == "([True, True, True], True, True, True, False)"


def test_streams_that_another_process_does_not_wait_for_are_waited_for():
    read, write = os.pipe()
    os.set_blocking(read, False)
    code = "import os; from wpinq.apps.cli.process import hold_standard as h; h(); print(os.get_blocking(0))"
    with subprocess.Popen([sys.executable, "-c", code], stdin=read, stdout=subprocess.PIPE, text=True) as done:
        assert done.communicate(timeout=60)[0] == "True\n"
    os.close(read)
    os.close(write)


def test_a_standard_input_that_breaks_ends_the_stream_in_one_line():
    class Broken:
        def read(self, _):
            raise OSError(5, "a disk or a terminal")

    blocks: stream.Blocks = stream.queue.Queue()
    stream._read(Broken(), blocks)
    asks = type("Stream", (), {"every": 9, "stop": threading.Event()})
    with pytest.raises(SourceError, match="standard input cannot be read: a disk or a terminal refused to read"):
        stream._take(None, blocks, asks, None)


@pytest.mark.parametrize("how", ["none", "closed"])
def test_a_program_without_standard_streams_is_answered(views, monkeypatch, tmp_path, how):
    gone = None
    if how == "closed":
        gone = (tmp_path / "gone").open("w+")
        gone.close()
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, gone)
    pages = library.protect(views, budget=1, ledger=tmp_path / "ledger").map("page").measure(1)
    assert abs(pages.observe("home") - 3) < 40
