"""An HTTP endpoint beside a publishing process: /metrics, and /health and /ready for whoever restarts it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from wpinq.errors import SourceError

PATIENCE = 3600.0
"""Seconds without a sign of life after which a process is not healthy: publishing a large period takes its time."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Silent(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nobody needs to know who asked."""


class Endpoint:
    """Answers until it is closed. There is no authentication: it tells no more than the figures, to whoever reaches it.

    Args:
        address: A port, for this machine alone, or host:port.
        registry: What is told, of prometheus-client.

    Raises:
        SourceError: The address cannot be listened on.

    Attributes:
        ready: Whether the last look at the stream or the period went well.
    """

    def __init__(self, address: str, registry: Any) -> None:
        from prometheus_client import make_wsgi_app

        host, _, port = address.rpartition(":")
        self.ready = False
        self._seen = time.monotonic()
        self._metrics: Any = make_wsgi_app(registry)
        try:
            self._server = make_server(host or "127.0.0.1", int(port), self._answer, _Server, _Silent)
        except (OSError, ValueError, OverflowError) as error:
            why = getattr(error, "strerror", None) or "write a port, or host:port"
            raise SourceError(f"--metrics {address[:80]}: cannot be listened on: {why}.") from None
        threading.Thread(target=self._server.serve_forever, daemon=True, name="wpinq metrics").start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_port)

    def alive(self, *, ready: bool) -> None:
        """Say that the process goes on, and whether all is well."""
        self._seen, self.ready = time.monotonic(), ready

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, asked: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = asked.get("PATH_INFO", "")
        if path == "/metrics":
            answer: Iterable[bytes] = self._metrics(asked, start)
            return answer
        well = {"/health": time.monotonic() - self._seen < PATIENCE, "/ready": self.ready}.get(path)
        status, text = ("404 Not Found", b"not found\n") if well is None else (
            ("200 OK", b"ok\n") if well else ("503 Service Unavailable", b"not well\n")
        )  # fmt: skip
        start(status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(text)))])
        return [text]
