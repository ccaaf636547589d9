"""A file of tests that changes the environment is found, whichever file runs after it."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from environment import Environment

HERE, OTHER = (SimpleNamespace(path=Path(name)) for name in ("test_a.py", "test_b.py"))


def ended(guard, nextitem):
    """What a test of `HERE` is torn down with, at the end of what pytest does."""
    turn = guard.pytest_runtest_teardown(HERE, nextitem)
    next(turn)
    with pytest.raises(StopIteration):
        turn.send(None)


@pytest.mark.parametrize("change", ["set", "replaced", "removed"])
@pytest.mark.parametrize("nextitem", [None, OTHER])
def test_what_a_file_leaves_is_found_and_put_back(monkeypatch, change, nextitem):
    monkeypatch.setenv("WPINQ_OLD", "old")
    monkeypatch.delenv("WPINQ_NEW", raising=False)
    guard, before = Environment(), dict(os.environ)
    ended(guard, nextitem)
    if change == "removed":
        monkeypatch.delenv("WPINQ_OLD")
    else:
        monkeypatch.setenv({"set": "WPINQ_NEW", "replaced": "WPINQ_OLD"}[change], "new")
    ended(guard, HERE)  # in the midst of a file a fixture of the file may have set it
    with pytest.raises(AssertionError, match=r"test_a\.py leaves \['WPINQ_(OLD|NEW)'\]"):
        ended(guard, nextitem)
    assert dict(os.environ) == before
