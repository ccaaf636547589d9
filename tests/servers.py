"""A real PostgreSQL server for tests: its own data directory, a loopback port, and passwords that must be given."""

from __future__ import annotations

import atexit
import hashlib
import hmac
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from base64 import b64encode
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


def memory() -> Path:
    """Where files are quickest to make: in memory, where there is such a place."""
    shared = Path("/dev/shm")
    return shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())


def verifier(password: str) -> str:
    """A password as the server keeps it (RFC 5803), of one round and not 4,096: tests connect thousands of times."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt := bytes(16), 1)
    client, server = (hmac.digest(salted, name, "sha256") for name in (b"Client Key", b"Server Key"))
    salt, stored, server = (b64encode(part).decode() for part in (salt, hashlib.sha256(client).digest(), server))
    return f"SCRAM-SHA-256$1:{salt}${stored}:{server}"


class Cluster:
    """A server that a test starts, stops, kills, copies and follows.

    Args:
        place: A directory that the server's user may use.
        copied: Another one that runs, of which it shall be a copy; it is new where there is none.
        words: What more the copy is told: "-R" makes it a standby, which is called as its directory is.
    """

    def __init__(self, place: Path, copied: Cluster | None = None, *words: str) -> None:
        self.place, self.data, self.home = place, place / "data", programs()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        place.mkdir(exist_ok=True)
        secret = place / "password"
        secret.write_text(verifier(PASSWORD))
        for path in (place, secret):
            if os.geteuid() == 0:
                shutil.chown(path, ADMIN)
        if copied is None:
            self._initialized(secret)
        else:
            self.run("pg_basebackup", "-D", self.data, "-d", f"{copied.url}?application_name={place.name}", *words,
                     "-c", "fast", "--no-sync")  # fmt: skip

    def _initialized(self, secret: Path) -> None:
        """Make its files, once in a process; all further ones are copies."""
        model = memory() / f"wpinq-postgres-model-{os.getpid()}"
        if not model.exists():
            users = ("-U", ADMIN, "-A", "scram-sha-256", f"--pwfile={secret}")
            self.run(str(self.home / "initdb"), "-D", model, *users, "-E", "UTF8", "-N", "--wal-segsize=1")
            atexit.register(shutil.rmtree, model, ignore_errors=True)
        self.run("/bin/cp", "-a", model, self.data)

    @property
    def url(self) -> str:
        return f"postgresql://{ADMIN}:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *words: object) -> None:
        """Run one of PostgreSQL's programs as the server's user: a server refuses to run as root."""
        as_user = {"user": ADMIN} if os.geteuid() == 0 else {}
        command = [str(self.home / program), *map(str, words)]
        done = subprocess.run(command, cwd=self.place, capture_output=True, text=True, check=False,
                              env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}, **as_user)  # fmt: skip
        assert done.returncode == 0, done.stderr

    def start(self, **settings: object) -> None:
        fixed = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.place, **settings}
        options = " ".join(f"-c {name}={value}" for name, value in fixed.items())
        self.run("pg_ctl", "-D", self.data, "-w", "-l", self.place / "log", "-o", options, "start")

    def stop(self) -> None:
        """End it at once, as a crash does."""
        self.run("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop")

    def kill(self) -> None:
        """Kill the server; wait until its other processes have noticed, and ended."""
        os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        while any(_works_in(path, self.data) for path in Path("/proc").glob("[0-9]*")):
            time.sleep(0.01)
        for left in (self.data / "postmaster.pid", self.place / f".s.PGSQL.{self.port}.lock"):
            left.unlink()  # its number may be that of a process that nobody has waited for

    def promote(self) -> None:
        """Let a standby take over."""
        self.run("pg_ctl", "-D", self.data, "-w", "promote")


def _works_in(process: Path, data: Path) -> bool:
    try:
        return (process / "cwd").readlink() == data
    except OSError:
        return False


def programs() -> Path:
    """Where the server's programs lie; skip where there are none."""
    home = binaries()
    if home is None:
        pytest.skip("no PostgreSQL server is installed; .ci/postgres installs one")
    return home


@contextmanager
def postgres() -> Iterator[str]:
    """Start a server and give the URL of its database, for its owner; skip where there is no server to start."""
    programs()
    place = Path(tempfile.mkdtemp(prefix="wpinq-postgres-", dir=memory()))
    try:
        cluster = Cluster(place)
        cluster.start(fsync="off", log_statement="all")
        try:
            yield cluster.url
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(place, ignore_errors=True)
