"""Run a server: uvicorn, with deadlines for clients that send nothing, and a log that holds no token."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wpinq.errors import SourceError
from wpinq.serve.app import application
from wpinq.serve.catalogue import Catalogue
from wpinq.serve.config import Server
from wpinq.serve.tokens import Tokens

BACKLOG = 16_384
"""Connections that wait to be accepted, as far as the system lets them."""
IDLE = 15
"""Seconds that a connection may stay open between requests."""
HEAD, LARGEST = 10.0, 16_384
"""Seconds in which the head of a request has to come, and bytes that it may have."""


class Impatient(HttpToolsProtocol):
    """HTTP over one connection, which is closed where the head of a request does not come in time, or is too long."""

    _late: asyncio.TimerHandle | None = None
    _size = 0

    def connection_made(self, transport: Any) -> None:
        """A client has come."""
        super().connection_made(transport)
        self._hurry()

    def connection_lost(self, exc: Exception | None) -> None:
        """A client has gone."""
        self._calm()
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

    def _hurry(self) -> None:
        self._calm()
        self._late = self.loop.call_later(HEAD, self.transport.close)

    def _calm(self) -> None:
        if self._late is not None:
            self._late.cancel()

    def _count(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > LARGEST:
            self.transport.abort()


def listening(server: Server) -> socket.socket:
    """A socket on the server's address.

    Raises:
        SourceError: It is taken, or there is no such address.
    """
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    result = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # of which asyncio delays no small packet
    try:
        result.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        result.bind((server.host, server.port))
        result.listen(BACKLOG)
    except OSError as error:
        result.close()
        raise SourceError(f"{server.host}:{server.port}: {error.strerror}; set server.host and server.port.") from None
    return result


def runner(catalogue: Catalogue, tokens: Tokens) -> uvicorn.Server:
    """The server, ready to run on a socket.

    Args:
        catalogue: What is served.
        tokens: Who may ask.
    """
    place = catalogue.config.server
    pem = [None if one is None else str(catalogue.home / one) for one in (place.certificate, place.key)]
    logging.getLogger("wpinq.serve").setLevel(logging.INFO)
    config = uvicorn.Config(
        application(catalogue, tokens), http=Impatient, ws="none", access_log=False, log_level="error",
        server_header=False, date_header=False, timeout_keep_alive=IDLE,
        backlog=BACKLOG, ssl_certfile=pem[0], ssl_keyfile=pem[1], proxy_headers=False,
    )  # fmt: skip
    return uvicorn.Server(config)


def serve(catalogue: Catalogue, tokens: Tokens, place: socket.socket) -> None:
    """Serve until a signal ends it."""
    runner(catalogue, tokens).run(sockets=[place])
