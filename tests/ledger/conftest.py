"""A ledger in a temporary directory, and ways to spend from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import processes
import pytest

from wpinq.core.ledger import Cost, Ledger

SPENDER = Path(__file__).with_name("spender.py")


@pytest.fixture(autouse=True)
def no_secret_in_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WPINQ_SECRET", raising=False)
    monkeypatch.delenv("WPINQ_SECRET_FILE", raising=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "views.ledger"


@pytest.fixture
def opened(place: Path) -> Callable[..., Ledger]:
    """Open the ledger of data set "views" with budget 1, or as told."""

    def call(path: Path | None = place, **changes: Any) -> Ledger:
        settings: dict[str, Any] = {"name": "views", "unit": "record", "budget": Fraction(1)}
        return Ledger.open(path, **{**settings, **changes})

    return call


@pytest.fixture
def spend() -> Callable[..., bool]:
    """Charge a numbered question."""

    def call(ledger: Ledger, number: int, epsilon: Any = "1/10", **changes: Any) -> bool:
        settings: dict[str, Any] = {"version": "1", "label": f"m{number}"}
        return ledger.charge(f"{number:08x}", [Cost(epsilon)], **{**settings, **changes})

    return call


@pytest.fixture
def spender() -> Callable[..., Any]:
    """Start `spender.py` in a process of its own; it prints JSON."""

    def call(*words: object) -> Any:
        command = [sys.executable, str(SPENDER), *map(str, words)]
        paths = os.pathsep.join(filter(None, [str(SPENDER.parents[2]), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": paths}
        process = processes.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)

        def result() -> Any:
            output, _ = process.communicate(timeout=120)
            assert process.returncode == 0, output
            return json.loads(output)

        return result

    return call
