"""How servers run: uvicorn, with bounds for clients that send or read nothing, an end in time, and a quiet log."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wpinq.apps.serve.config import Server
from wpinq.apps.serve.connections import Listener, Room
from wpinq.errors import SourceError

BACKLOG = 16_384
"""Connections that wait to be accepted, as far as the system lets them."""
IDLE = 15
"""Seconds that a connection may stay open between requests."""
HEAD, LARGEST = 10.0, 16_384
"""Seconds in which the head of a request has to come, and bytes that it may have."""
STUCK = 30.0
"""Seconds for which a client may read nothing of an answer that waits for it."""
GRACE, LAST = 7.0, 9.0
"""Seconds after a signal in which requests may still be answered, and after which the process ends whatever runs."""
LOG = logging.getLogger("wpinq.serve")


class Impatient(HttpToolsProtocol):
    """HTTP over one connection, which is closed where the head of a request does not come in time, or is too long.

    So is one whose client does not read. The room knows which connections wait.
    """

    room: Room
    _late: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None
    _size = 0

    def connection_made(self, transport: Any) -> None:
        """A client has come."""
        super().connection_made(transport)
        self._hurry()

    def connection_lost(self, exc: Exception | None) -> None:
        """A client has gone."""
        self._calm()
        self._reads()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._size = 0
        self._hurry()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of its address."""
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header of it."""
        self._count(name + value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Its head is whole."""
        self._calm()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of it has come."""
        if self.client is not None:
            self.room.works(self.client)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """It is answered."""
        idle = not self.pipeline
        super().on_response_complete()
        if idle and self.client is not None:
            self.room.waits(self.client)

    def pause_writing(self) -> None:
        """The client reads slower than it is answered."""
        super().pause_writing()
        if self.client is not None:
            self.room.waits(self.client)
        self._stuck = self.loop.call_later(STUCK, self.transport.abort)  # whatever further requests have come

    def resume_writing(self) -> None:
        """It has read."""
        self._reads()
        if self.client is not None:
            self.room.works(self.client)
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """No further request has come."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(STUCK, self.transport.abort)  # closing waits for what the client has not read

    def _hurry(self) -> None:
        self._calm()
        self._late = self.loop.call_later(HEAD, self.transport.abort)

    def _reads(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()

    def _calm(self) -> None:
        if self._late is not None:
            self._late.cancel()

    def _count(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > LARGEST:
            self.transport.abort()


class Ending(uvicorn.Server):
    """A server that ends in time, and whose event loop writes no traceback: one can quote records, and fill a disk."""

    def __init__(self, config: uvicorn.Config, room: Room) -> None:
        super().__init__(config)
        self._room = room

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept."""
        for listener in sockets or []:
            if isinstance(listener, Listener):
                listener.begin(self._room)
        asyncio.get_running_loop().set_exception_handler(_say)
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(BACKLOG)  # asyncio has one number for those that wait and for those it accepts at once

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what is under way for a while, then refuse it."""
        await super().shutdown(sockets)
        await asyncio.sleep(0.1)  # in which refusals are sent

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End within ten seconds; at the second signal, at once. What was charged is free after a restart."""
        if self.should_exit:
            signal.signal(sig, signal.SIG_DFL)
            os.kill(os.getpid(), sig)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, LAST)  # the system ends the process, whatever a thread of it does
        super().handle_exit(sig, frame)


def _say(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """One line of what failed in the event loop."""
    LOG.error("a connection failed: %s", type(context.get("exception")).__name__)


def listening(server: Server) -> Listener:
    """A socket on the server's address.

    Raises:
        SourceError: It is taken, or there is no such address.
    """
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    result = Listener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # of which asyncio delays no small packet
    try:
        result.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        result.bind((server.host, server.port))
        result.listen(BACKLOG)
    except OSError as error:
        result.close()
        raise SourceError(f"{server.host}:{server.port}: {error.strerror}; set server.host and server.port.") from None
    return result
