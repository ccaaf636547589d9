"""Outputs that cannot be written and limits that are too low: told before a charge where they can be known."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.mistakes import RELEASE
from wpinq import storage
from wpinq.apps.cli import outputs, process
from wpinq.apps.cli.app import app
from wpinq.apps.cli.errors import guarded
from wpinq.errors import EngineError, redacted


def ended(views, *, low=None, **streams):
    """A command in a process of its own, with a limit."""
    command = [sys.executable, "-m", "wpinq", "degrees", str(views), "--of", "page", "--budget", "1"]
    set_low = None if low is None else lambda: resource.setrlimit(low[0], (low[1], low[1]))
    done = subprocess.run(
        command, stderr=subprocess.PIPE, text=True, timeout=60, check=False, preexec_fn=set_low, **streams
    )
    assert done.stderr.count("\n") == 1, done.stderr
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_standard_output_is_told_before_a_charge(views):
    with Path("/dev/full").open("w") as full:
        assert ended(views, stdout=full) == (
            2, "wpinq: standard output: no room is left where it goes; make room, or send it elsewhere.\n")  # fmt: skip
    assert not views.with_name("views.csv.ledger").exists()


def test_a_limit_that_is_too_low_is_told_before_a_charge(views):
    code, err = ended(views, low=(resource.RLIMIT_FSIZE, 4096), stdout=subprocess.DEVNULL)
    assert (code, err) == (2, "wpinq: ulimit -f 4 is too low: a command needs 16384 KB for a file.\n")
    assert not views.with_name("views.csv.ledger").exists()


@pytest.mark.parametrize(("which", "soft", "said"), [
    (resource.RLIMIT_NOFILE, 12, "ulimit -n 12 is too low: a command needs 64 open files"),
    (resource.RLIMIT_AS, 900_000 << 10, "ulimit -v 900000 is too low: a command needs 2097152 KB of memory"),
])  # fmt: skip
def test_each_limit_has_its_words(wpinq, views, monkeypatch, which, soft, said):
    real = resource.getrlimit
    monkeypatch.setattr(process.resource, "getrlimit", lambda one: (soft, soft) if one == which else real(one))
    assert said in wpinq("degrees", views, "--of", "page", "--budget", 1).refused()


@pytest.mark.parametrize(("words", "least"), [
    (("degrees", "views.csv", "--of", "page", "--budget", "1"), 1), (("serve", "site.toml"), 2),
    (("degrees", "views.csv", "--of", "page", "--budget", "1", "--processes", "3"), 3),
    (("publish", "run", "site.toml", "--period", "2026-11-21"), 3),
], ids=["degrees", "serve", "processes", "publish"])  # fmt: skip
def test_too_few_threads_are_told_before_a_charge(views, monkeypatch, capsys, words, least):
    """Libraries that can start none panic, write megabytes of lines, abort after the charge, or wait for ever."""
    monkeypatch.chdir(views.parent)
    Path("site.toml").write_text(RELEASE.replace("[data]", "[data]\nprocesses = 3"))
    needed = (process.THREADS + process.BY_CORE * (os.cpu_count() or 1)) * least
    started, start = [], threading.Thread.start

    def starts(thread):
        if len(started) + 1 >= needed:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starts)
    monkeypatch.setattr(sys, "argv", ["wpinq", *words])
    assert guarded(app, None) == 2
    assert "too few threads can be started: a command needs" in capsys.readouterr().err
    assert not any(thread.is_alive() for thread in started)
    assert not views.with_name("views.csv.ledger").exists()


def test_a_step_that_can_start_no_thread_says_so_and_quotes_nothing():
    def starts():
        raise RuntimeError("can't start new thread")

    with pytest.raises(EngineError, match="observe failed with RuntimeError: too few threads can be started; raise"):
        redacted("observe", starts)


@pytest.mark.parametrize("how", ["closed", "read"])
def test_a_standard_output_that_is_none_is_told_before_a_charge(wpinq, views, monkeypatch, how):
    mode = partial(os.stat, "/nowhere") if how == "closed" else lambda: os.O_RDONLY
    monkeypatch.setattr(process, "_mode", lambda _: mode())
    line = wpinq("degrees", views, "--of", "page", "--budget", 1).refused()
    assert "standard output is closed" in line if how == "closed" else "cannot be written to" in line
    assert not views.with_name("views.csv.ledger").exists()


def test_a_disk_without_room_is_told_before_a_charge(wpinq, views, tmp_path, monkeypatch):
    monkeypatch.setattr(outputs.shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    line = wpinq("degrees", views, "--of", "page", "--budget", 1, "--json", tmp_path / "out.json").refused()
    assert "no room is left there" in line
    assert not views.with_name("views.csv.ledger").exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EMFILE, errno.EIO, errno.ENOTDIR, 0])
def test_what_fails_after_the_charge_says_that_the_answer_stays_paid(wpinq, views, remaining, monkeypatch, number):
    words = ("degrees", views, "--of", "page", "--budget", 1)
    with monkeypatch.context() as patch:
        patch.setattr("wpinq.apps.cli.degrees._show", lambda *_: (_ for _ in ()).throw(OSError(number, "no")))
        assert wpinq(*words).refused().endswith("; what was charged stays charged, so the same command is free.\n")
    assert remaining(views.with_name("views.csv.ledger")) == 0
    assert wpinq(*words).code == 0


def test_a_file_that_fails_after_the_charge_says_so_too(wpinq, views, tmp_path, monkeypatch):
    appearing = storage.appearing

    def full(path, *mode, **how):  # for what is written; the ledger has room
        if path.suffix == ".json":
            raise OSError(errno.ENOSPC, "No space left on device")
        return appearing(path, *mode, **how)

    words = ("degrees", views, "--of", "page", "--budget", 1, "--json", tmp_path / "out.json")
    with monkeypatch.context() as patch:
        patch.setattr(storage, "appearing", full)
        line = wpinq(*words).refused()
    assert "No space left on device" in line
    assert "what was charged stays charged" in line
    assert wpinq(*words).code == 0
    assert (tmp_path / "out.json").exists()


def test_a_reader_that_goes_away_is_no_trouble_of_a_ledger(wpinq, views, monkeypatch, capsys):
    def gone(*_, **__):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    assert wpinq("degrees", views, "--of", "page", "--budget", 1).code == 0
    monkeypatch.setattr("wpinq.apps.cli.ledger.typer.echo", gone)
    with pytest.raises(SystemExit) as ended:
        wpinq("ledger", "show", f"{views}.ledger")
    assert ended.value.code == 1
    assert capsys.readouterr().err == ""
