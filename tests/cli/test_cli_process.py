"""The console entry in processes of its own: what only a process can show."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys

import polars as pl
import processes

from wpinq.apps.cli import main


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wpinq", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


def test_start_is_light():
    code = (
        "import sys, wpinq.apps.cli\n"
        "assert not {'typer', 'rich'} & set(sys.modules)\n"
        "import wpinq.apps.cli.app\n"
        "heavy = 'numpy polars pyarrow matplotlib networkx bytewax cryptography prompt_toolkit'\n"
        "print([one for one in heavy.split() if one in sys.modules])\n"
    )
    assert processes.printed("-c", code, fresh=True) == "[]\n"


def test_the_version_is_told_without_what_computes():
    code = (
        "import sys\n"
        "from wpinq.apps.cli import main\n"
        "assert not main(['--version'])\n"
        "print([one for one in ('numpy', 'polars', 'pyarrow', 'bytewax') if one in sys.modules])\n"
    )
    said = processes.printed("-c", code, fresh=True)
    assert said.startswith("wpinq ") and said.endswith("\n[]\n")


def test_version_and_help():
    done = run("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("wpinq ")
    done = run("--help")
    assert done.returncode == 0
    assert all(one in done.stdout for one in ("degrees", "run", "shell", "explain", "check", "ledger"))
    done = run()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_another_process_gives_the_same_answers_for_the_same_charge(views, tmp_path, remaining):
    ledger, outs = tmp_path / "ledger", [tmp_path / "1.json", tmp_path / "2.json"]
    for out in outs:
        done = run("degrees", views, "--of", "page", "--budget", "0.2", "--ledger", ledger, "--json", out)
        assert (done.returncode, done.stderr) == (0, "")
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert json.loads(outs[0].read_text())["cost"]["epsilon"] == 0.2
    assert remaining(ledger) == 0


def test_bad_input_has_one_line_and_code_2(views, tmp_path):
    (tmp_path / "empty").mkdir()
    for arguments in (["no.csv"], [tmp_path / "empty"], [views, "--json", "/no/such/place.json"]):
        done = run("degrees", *arguments, "--of", "page", "--budget", "1", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("wpinq: ")
        assert done.stderr.count("\n") == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == ["empty", "views.csv"]


def test_names_that_are_no_text(tmp_path):
    """A file name is bytes: it may be no UTF-8, or move the cursor."""
    name = os.fsencode(tmp_path) + b"/v\xff\x1b[2J\n.csv"
    command = [sys.executable, "-m", "wpinq", "degrees", name, "--of", "page", "--budget", "1"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"\x1b" not in done.stderr


def test_a_reader_that_goes_away_is_no_error():
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; from wpinq.apps.cli import main; sys.exit(main(['explain', 'degrees']))"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 1


def test_an_interrupt_while_modules_are_loaded_is_one_line(monkeypatch, capsys):
    class Interrupted:
        def __getattr__(self, name):
            raise KeyboardInterrupt

    kept, threshold = signal.getsignal(signal.SIGINT), gc.get_threshold()
    monkeypatch.setitem(sys.modules, "wpinq.apps.cli.app", Interrupted())
    monkeypatch.setattr("atexit.register", lambda *_: None)
    try:
        assert main() == 130
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL  # the end of the interpreter is quiet too
    finally:
        signal.signal(signal.SIGINT, kept)
        gc.set_threshold(*threshold)
    assert capsys.readouterr().err.startswith("wpinq: interrupted; what was charged stays charged")


def test_an_interrupt_that_makes_another_error_is_an_interrupt(monkeypatch, capsys):
    def broken(*_, **__):
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr("typer.main.get_command", broken)
    assert main(["--version"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_an_interrupt_is_one_line(views, loud, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-m", "wpinq", "shell", str(loud), str(views), "--budget", "150"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - ignored in `pytest &`
    ) as process:
        process.stdin.write("budget\n")
        process.stdin.flush()
        assert "is left" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read().startswith("wpinq: interrupted; what was charged stays charged")


def test_a_panic_of_polars_is_one_line_and_nothing_of_its_text(monkeypatch, capsys):
    def panics(*_, **__):
        raise pl.exceptions.PanicException("ann viewed page 7")

    monkeypatch.setattr("wpinq.apps.cli.errors.check_room", panics)
    assert main(["--version"]) == 2
    said = capsys.readouterr().err
    assert said == "wpinq: PanicException, which was not foreseen; please report this, with the command.\n"
