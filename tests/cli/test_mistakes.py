"""The mistakes of `mistakes.txt`: each is one line, an exit code, no record, no charge, and no word of Python's."""

from __future__ import annotations

import io
import re
import shlex
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from depth import thin

from tests.cli.mistakes import MARK, SHORT, made
from wpinq.apps.cli import main
from wpinq.core.ledger import Ledger

TEXT = (Path(__file__).parent / "mistakes.txt").read_text()
GROUPS = {group.splitlines()[0]: group.splitlines()[1:] for group in TEXT.removeprefix("# ").split("\n# ")}
PYTHON = re.compile(r"(?<![\w?&/'\"-])(?!measure\()[a-z_]+=(?:\.\.\.|(?=[\s,;:.)({]))")
"""An argument, as Python calls it."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    home = tmp_path_factory.mktemp("mistakes")
    made(home)
    return home


def said(words):
    """What a command says, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(shlex.split(words))
    return code, out.getvalue(), err.getvalue()


def left(home, before):
    """Take away what a command left; nothing of it was charged."""
    for path in set(home.iterdir()) - before:
        if path.name.endswith("ledger") and path.is_file():
            assert Ledger.existing(path).spent() == (0, 0)
    for path in set(home.iterdir()) - before:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@thin(4)
@pytest.mark.parametrize("group", sorted(GROUPS))
def test_a_mistake_is_one_line(group, filled, monkeypatch):
    monkeypatch.chdir(filled)
    before = set(filled.iterdir())
    for line in GROUPS[group]:
        words, piece = line.split(" => ")
        for short, meant in SHORT.items():
            words = words.replace(short, meant)
        code, out, err = said(words)
        assert (code, out) == (2, ""), (line, out, err)
        assert err.startswith("wpinq: "), (line, err)
        assert err.count("\n") == 1, (line, err)
        assert piece in err, (line, err)
        assert not any(word in err + out for word in (MARK, "Traceback", "not foreseen", "report this")), (line, err)
        assert not PYTHON.search(err.replace("measure(epsilon=...)", "")), (line, err)
        left(filled, before)


def test_there_are_as_many_as_were_found():
    assert sum(map(len, GROUPS.values())) > 164
