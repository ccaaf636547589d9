"""A real PostgreSQL server for tests: its own data directory, a loopback port, and passwords that must be given."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PASSWORD = "pass-word-marker"
ADMIN = "postgres"


def binaries() -> Path | None:
    """Where initdb and postgres lie; Debian keeps them off the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    place = found[-1] if found else shutil.which("initdb")
    return Path(place).parent if place else None


@contextmanager
def postgres() -> Iterator[str]:
    """Start a server and give the URL of its database, for its owner; skip where there is no server to start."""
    home = binaries()
    if home is None:
        pytest.skip("no PostgreSQL server is installed; .ci/postgres installs one")
    user = ADMIN if os.geteuid() == 0 else getpass.getuser()  # a server refuses to run as root
    place = Path(tempfile.mkdtemp(prefix="wpinq-postgres-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    secret = place / "password"
    secret.write_text(PASSWORD)
    if os.geteuid() == 0:
        for path in (place, secret):
            shutil.chown(path, user)
    as_user = {"user": user} if os.geteuid() == 0 else {}

    def run(*command: object) -> None:
        done = subprocess.run([str(one) for one in command], cwd=place, capture_output=True, text=True, check=False,
                              env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}, **as_user)  # fmt: skip
        assert done.returncode == 0, done.stderr

    data = place / "data"
    try:
        run(home / "initdb", "-D", data, "-U", ADMIN, "-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8", "-N")
        options = f"-c listen_addresses=127.0.0.1 -p {port} -k {place} -c fsync=off -c log_statement=all"
        run(home / "pg_ctl", "-D", data, "-w", "-l", place / "log", "-o", options, "start")
        try:
            yield f"postgresql://{ADMIN}:{PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            run(home / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(place, ignore_errors=True)
