"""A ledger in a database, for streams that several processes read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from servers import postgres


@pytest.fixture(scope="session")
def stream_server() -> Iterator[str]:
    """The URL of a server, for those that declare what a crash of it may lose: it writes to no disk."""
    pytest.importorskip("psycopg")
    with postgres() as url:
        yield url


@pytest.fixture
def shared_ledger(stream_server: str, tmp_path: Path) -> Iterator[str]:
    """The URL of a new ledger in a database; what is in it is gone after the test."""
    import psycopg

    yield f"{stream_server}?ledger=views&may_lose=crash&state={tmp_path}/state"
    with psycopg.connect(stream_server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS wpinq_views CASCADE")


@pytest.fixture
def shared(shared_ledger: str, tmp_path: Path) -> Iterator[Any]:
    """A stream in that ledger, with a worker in this process over one file."""
    from streaming.test_shared import Shared

    path = tmp_path / "views.csv"
    path.write_text("user,page\n")
    with closing(Shared(shared_ledger, path)) as result:
        yield result
