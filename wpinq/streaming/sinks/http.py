"""A service that takes JSON lines by HTTP."""

from __future__ import annotations

import base64
import http.client
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from wpinq.errors import SourceError
from wpinq.streaming.sinks.sink import Release

TIMEOUT = 10.0
"""Seconds in which a service must answer."""


class _Stay(HTTPRedirectHandler):
    """Redirects are answers like any other: a POST that follows one becomes a GET, without its content."""

    def redirect_request(  # noqa: PLR0917  as it is called
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: http.client.HTTPMessage, newurl: str
    ) -> None:
        """Follow none."""


class HttpService:
    """Posts the answers of an epoch as JSON lines, with a key by which the service can tell that it has them.

    A status of 2xx means that they are safe there. `Idempotency-Key` names the stream and the epoch, and each line has
    the key of its answer.

    Args:
        url: Where to, as http or https; a user and a password in it are sent as `Authorization: Basic`.
        content: What lines are said to be.
    """

    def __init__(self, url: str, content: str = "application/x-ndjson") -> None:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        if not host:
            raise SourceError("--to http://...: names no host; write http://host:port/path.")
        self._url = urlunsplit((parts.scheme, host, parts.path, parts.query, ""))
        self.name = urlunsplit((parts.scheme, host, parts.path, "", ""))
        self._headers = {"Content-Type": content}
        if parts.username is not None:
            word = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(word).decode()}"
        self._opener: Any = build_opener(_Stay)

    def deliver(self, release: Release) -> None:
        """See `Sink.deliver`.

        Raises:
            SourceError: The service is not reached, or says another status than 2xx.
        """
        if not release.rows:
            return
        headers = {**self._headers, "Idempotency-Key": release.key}
        request = Request(self._url, release.lines(), headers, method="POST")  # noqa: S310  its scheme was checked
        try:
            with self._opener.open(request, timeout=TIMEOUT) as reply:
                reply.read()
        except HTTPError as error:
            error.close()
            raise SourceError(f"{self.name}: says {error.code}; it shall answer a POST with 2xx.") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise SourceError(f"{self.name}: is not reached ({type(error).__name__}).") from None

    def close(self) -> None:
        """Nothing is held open."""
