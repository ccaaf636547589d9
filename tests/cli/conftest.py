"""Run commands in this process: what they print, their exit code, and what they leave behind."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from wpinq.apps.cli import main
from wpinq.core.ledger import Ledger


@dataclass
class Done:
    code: int
    out: str
    err: str

    def refused(self) -> str:
        """Check that it is one clear line and code 2, and return the line."""
        assert self.code == 2, (self.code, self.out, self.err)
        assert self.err.startswith("wpinq: ")
        assert self.err.count("\n") == 1
        assert self.err.endswith("\n")
        assert "Traceback" not in self.err + self.out
        return self.err


@pytest.fixture
def wpinq(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    def run(*arguments: object) -> Done:
        capsys.readouterr()
        code = main([str(one) for one in arguments])
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def views(tmp_path: Path) -> Path:
    """Three pages with 3, 2 and 1 views."""
    path = tmp_path / "views.csv"
    path.write_text("user,page\nann,home\nbob,home\ncid,home\nann,news\nbob,news\nann,a b\n")
    return path


@pytest.fixture
def loud(tmp_path: Path) -> Path:
    """A dataflow whose noise is zero but for a chance of exp(-50)."""
    path = tmp_path / "loud.py"
    path.write_text(
        "def dataflow(views):\n"
        "    pages = views.map(lambda page: page)\n"
        "    return {'pages': pages.measure(epsilon=50), 'both': views.measure(epsilon=50),\n"
        "            'cdf': pages.shave().map(lambda page, index: index).measure(epsilon=50)}\n"
    )
    return path


@pytest.fixture
def listing() -> Callable[[Path], dict[str, bytes]]:
    """Every file below a directory, with its content."""

    def found(path: Path) -> dict[str, bytes]:
        files = (Path(root) / name for root, _, names in os.walk(path) for name in names)
        return {str(file.relative_to(path)): file.read_bytes() for file in files}

    return found


@pytest.fixture
def remaining() -> Callable[[Path], Fraction]:
    """What is left of the budget of a ledger."""
    return lambda ledger: Ledger.existing(ledger).remaining()
