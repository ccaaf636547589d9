"""A ledger in a temporary directory, and ways to spend from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import processes
import pytest
from servers import postgres

from wpinq.core.ledger import Cost, Ledger
from wpinq.core.ledger.stores.address import ledger_path

SPENDER = Path(__file__).with_name("spender.py")


@pytest.fixture(autouse=True)
def no_secret_in_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WPINQ_SECRET", raising=False)
    monkeypatch.delenv("WPINQ_SECRET_FILE", raising=False)
    monkeypatch.delenv("WPINQ_SECRET_COMMAND", raising=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "views.ledger"


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """The URL of a server, for those that declare what a crash of it may lose: it writes to no disk."""
    pytest.importorskip("psycopg")
    with postgres() as url:
        yield f"{url}?may_lose=crash"


@pytest.fixture
def url(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a ledger that is not there yet, for a client that has its secret."""
    monkeypatch.setenv("WPINQ_SECRET", bytes(range(32)).hex())
    monkeypatch.setenv("WPINQ_STATE", str(tmp_path / "client"))
    return f"{database}&ledger=t{os.urandom(8).hex()}"


@pytest.fixture
def in_database(url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same as the path that stands for it, also in processes that are started."""
    path = ledger_path(url)
    monkeypatch.setenv("LEDGER", url)
    monkeypatch.setenv("ANCHOR", str(path))
    return path


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
def full(opened: Callable[..., Ledger], spend: Callable[..., bool], place: Path) -> Path:
    """A ledger with charges of 0.5 in all, a seal and a cap: 8 rows."""
    ledger = opened()
    for number in range(5):
        spend(ledger, number)
    ledger.seal("00000001", "1", b"digest")
    ledger.cap("ada", Fraction(1, 2))
    return place


@pytest.fixture
def spender() -> Callable[..., Any]:
    """Start `spender.py` in a process of its own; it prints JSON.

    One that kills its children forks hundreds of times. It is no copy of a process that holds all of wpinq (200 MB, of
    which each fork copies the page tables, seven tenths of its time in the system), but begins with the ledger alone.
    """

    def call(*words: object) -> Any:
        command = [sys.executable, str(SPENDER), *map(str, words)]
        paths = os.pathsep.join(filter(None, [str(SPENDER.parents[2]), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": paths}
        begin = subprocess.Popen if words[0] in ("kill", "steps") else processes.Popen
        process = begin(command, stdout=subprocess.PIPE, env=environment, text=True)

        def result() -> Any:
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 0, output
            return json.loads(output)

        return result

    return call
