"""Connections of a server: bounded in all and by address, so that idle ones keep nobody out.

A connection waits for as long as no whole request has come over it, and works from then until it is answered. Where
there is no room, one that waits makes it: the one that has waited longest, of the address that has the most. So whoever
opens thousands ends his own.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import logging
import os
import resource
import socket
import time
from collections import OrderedDict
from typing import Any

LOG = logging.getLogger("wpinq.serve")
RESERVED = 256
"""File descriptors that are left to ledgers, data and their runs."""
AT_ONCE = 64
"""Connections that are accepted before others are answered again."""
QUIET = 60.0
"""Seconds for which nothing is said again of a full table of file descriptors."""
FULL = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

Peer = tuple[str, int]
"""The other end: its host and port, which no other open connection has."""


def raised() -> int:
    """Raise the number of files that this process may have open as far as the system lets it, and give it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return soft if soft != resource.RLIM_INFINITY else 1 << 20


def bounded(most: int, files: int) -> int:
    """How many connections fit beside what else a server has open.

    >>> bounded(1_000, 20_000), bounded(1_000, 1_024), bounded(1_000, 256)
    (1000, 768, 128)
    """
    return min(most, max(files - RESERVED, files // 2))


class Connection(socket.socket):
    """An accepted connection, which leaves its room when it is closed."""

    room: Room | None = None
    peer: Peer = ("", 0)

    def close(self) -> None:
        """Close it."""
        super().close()
        if self.room is not None:
            self.room.leave(self)


class Room:
    """The open connections; used by one event loop.

    Args:
        most: How many there may be.
        each: How many of one address; of IPv6 a network of 64 bits is one.
    """

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._open: dict[Peer, Connection] = {}
        self._waiting: dict[str, OrderedDict[Peer, Connection]] = {}
        self._of: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._open)

    def enters(self, connection: Connection) -> bool:
        """Whether there is room for a connection; where another has to make it, that one is shut down."""
        name = network(connection.peer[0])
        if self._of.get(name, 0) >= self._each and not self._end(name):
            return False
        if len(self._open) >= self._most and not self.ease():
            return False
        connection.room = self
        self._open[connection.peer] = connection
        self._of[name] = self._of.get(name, 0) + 1
        self.waits(connection.peer)
        return True

    def waits(self, peer: Peer) -> None:
        """A connection has no request, or not the whole of it."""
        if peer in self._open:
            self._waiting.setdefault(network(peer[0]), OrderedDict())[peer] = self._open[peer]

    def works(self, peer: Peer) -> None:
        """The whole of a request has come over a connection."""
        name = network(peer[0])
        waiting = self._waiting.get(name)
        if waiting is not None and waiting.pop(peer, None) is not None and not waiting:
            del self._waiting[name]

    def leave(self, connection: Connection) -> None:
        """A connection was closed."""
        peer = connection.peer
        if self._open.get(peer) is not connection:
            return
        self.works(peer)
        del self._open[peer]
        name = network(peer[0])
        self._of[name] -= 1
        if not self._of[name]:
            del self._of[name]

    def ease(self) -> bool:
        """Shut down one that waits, of the address that has the most of them; False where none waits."""
        return bool(self._waiting) and self._end(max(self._waiting, key=lambda name: len(self._waiting[name])))

    def _end(self, name: str) -> bool:
        """Shut down the one of an address that has waited longest; what reads it then closes it."""
        waiting = self._waiting.get(name)
        if not waiting:
            return False
        connection = waiting[next(iter(waiting))]
        self.leave(connection)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        return True


class Listener(socket.socket):
    """A listening socket that accepts what there is room for, and drops the rest at once."""

    room: Room | None = None
    _spare: int | None = None
    _logged_at = -QUIET

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection for which there is room.

        Raises:
            BlockingIOError: There is none now.
        """
        for _ in range(AT_ONCE):
            try:
                accepted, peer = super().accept()
            except OSError as error:
                if error.errno not in FULL:
                    raise
                self._full()
                break
            connection = Connection(fileno=accepted.detach())
            connection.peer = (str(peer[0]), int(peer[1]))
            if self.room is None or self.room.enters(connection):
                return connection, peer
            connection.close()
        raise BlockingIOError

    def begin(self, room: Room) -> None:
        """Accept what there is room for, from now on."""
        self.room = room
        self._keep()

    def _keep(self) -> None:
        """Keep a file descriptor for the time when there is none."""
        if self._spare is None:
            with contextlib.suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        """Close it."""
        super().close()
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def _full(self) -> None:
        """There is no file descriptor: one that waits is ended, and the new one taken with the spare and dropped.

        Left in the queue it would be tried again at once, and again: no time would be left for others.
        """
        if self.room is not None:
            self.room.ease()
        now = time.monotonic()
        if now - self._logged_at >= QUIET:
            self._logged_at = now
            LOG.error("no file descriptor is left for a new connection; raise the limit of open files (LimitNOFILE=).")
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
            with contextlib.suppress(OSError):
                super().accept()[0].close()
        self._keep()


def network(host: str) -> str:
    """Whose an address is: it itself, or of IPv6 its network of 64 bits.

    >>> network("127.0.0.1"), network("2001:db8::1"), network("::ffff:10.0.0.1")
    ('127.0.0.1', '2001:db8::/64', '10.0.0.1')
    """
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host.partition("%")[0])
    return str(address.ipv4_mapped or ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
