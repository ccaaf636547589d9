"""A service that takes answers by HTTP, now and then keeps them, or not, and says that it failed."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Post(NamedTuple):
    """One request."""

    key: str
    word: str
    body: str


class Service(http.server.BaseHTTPRequestHandler):
    """Takes answers by their keys; the statuses that it says are the server's `statuses`, as long as there are any."""

    def do_POST(self) -> None:
        body, server = self.rfile.read(int(self.headers["Content-Length"])).decode(), self.server
        server.calls.append(Post(self.headers["Idempotency-Key"], self.headers["Authorization"], body))
        status = server.statuses.pop(0) if server.statuses else 200
        if status != 502:  # with 500 the answers are safe, and the sink does not know
            server.kept.update({row["key"]: row for row in map(json.loads, body.splitlines())})
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def service_at(port: int = 0) -> Iterator[Any]:
    """A service on a port, by default a free one: `calls`, what it `kept` by key, and `statuses` to say first."""
    server: Any = http.server.ThreadingHTTPServer(("127.0.0.1", port), Service)
    server.calls, server.kept, server.statuses = [], {}, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
