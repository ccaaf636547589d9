"""A connection between two processes of a cluster, and the sockets under it."""

from __future__ import annotations

import hmac
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from wpinq.errors import PlanError

SILENCE = 15
"""Seconds without an answer after which the other process counts as gone."""
ALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 5, "TCP_USER_TIMEOUT": SILENCE * 1000}
MAX_MESSAGE_BYTES = 1 << 16
"""The largest message, in bytes."""


class Connection:
    """A connection on which objects are exchanged."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in ALIVE.items():
            if hasattr(socket, option):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        self.socket = connection
        self._file = connection.makefile("rb")

    def send(self, **content: object) -> None:
        """Send an object; a broken connection is noticed when the next object is received."""
        with suppress(OSError):
            self.socket.sendall(json.dumps(content).encode() + b"\n")

    def receive(self, timeout: float | None = None) -> dict[str, Any] | None:
        """The next object; None where the other end is gone, silent, or sends something else."""
        try:
            self.socket.settimeout(timeout)
            result = json.loads(self._file.readline(MAX_MESSAGE_BYTES))
        except (OSError, ValueError, RecursionError):
            return None
        return result if isinstance(result, dict) else None

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self.socket.close()


def place(address: str) -> tuple[str, int]:
    """Host and port."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def listen(address: str) -> socket.socket:
    """Listen at an address and at no other.

    Raises:
        PlanError: That cannot be done here.
    """
    try:
        return socket.create_server(place(address), family=_family(address))
    except OSError as error:
        what = os.strerror(error.errno) if error.errno and error.errno > 0 else "no such host"
        raise PlanError(f"--addresses: cannot listen at {address}: {what}; give a free port of this host.") from None


def _family(address: str) -> socket.AddressFamily:
    result = socket.getaddrinfo(*place(address), type=socket.SOCK_STREAM)
    return result[0][0]


def proof(key: bytes, *parts: object) -> str:
    """An authentication code that only processes with the key can make."""
    return hmac.new(key, json.dumps(parts).encode(), "blake2b").hexdigest()


def is_proof(answer: object, expected: str) -> bool:
    """Whether a received value is the expected proof."""
    return isinstance(answer, str) and hmac.compare_digest(answer.encode("utf-8", "surrogatepass"), expected.encode())


def listening(address: str) -> bool:
    """Whether a process listens at a port of this host; a test connection would be taken for another process."""
    ending = f":{place(address)[1]:04X}"
    tables = [path for path in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")) if path.exists()]
    if not tables:
        time.sleep(0.5)
    rows = [line.split() for path in tables for line in path.read_text().splitlines()[1:]]
    return not tables or any(row[1].endswith(ending) and row[3] == "0A" for row in rows)
