"""Requests to a server from Python: over TLS or to this machine only, never redirected, and errors as wpinq's own."""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, NoReturn, TypeVar

import msgspec

from wpinq.apps.remote.wire import Refused
from wpinq.errors import BudgetError, PlanError, SourceError, WpinqError

T = TypeVar("T")
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
TOKEN = re.compile(r"wpinq_[0-9a-f]{16}_[A-Za-z0-9_-]{43}")
PIECE = 5_000
"""Bins of one request."""


class _Straight(urllib.request.HTTPRedirectHandler):
    """Follows nothing: a token goes to the server that it is of, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        """Give None, so that the answer is an error."""


class Transport:
    """A server, as it is asked.

    Args:
        url: Its address, `https://...`; `http://` for one on this machine only.
        token: The token.
        timeout: Seconds until an answer is given up; what was charged by then is free when it is asked again.

    Raises:
        PlanError: The address or the token cannot be one.
    """

    def __init__(self, url: str, token: str, timeout: float) -> None:
        if not isinstance(url, str) or not isinstance(token, str) or not TOKEN.fullmatch(token.strip()):
            raise PlanError("connect(url, token): takes an address and a token of `wpinq token make`, both as text.")
        try:
            parts = urllib.parse.urlsplit(url)
            local = parts.hostname in LOCAL
        except ValueError:
            parts, local = None, False
        if parts is None or any(sign.isspace() or not sign.isprintable() for sign in url):
            raise PlanError("connect(url=...): no address; write https://example.org.")
        if parts.scheme != "https" and not (parts.scheme == "http" and local):
            raise PlanError("connect(url=...): write https://...; over http:// a token would go in clear text.")
        if parts.username or parts.query or parts.fragment:
            raise PlanError("connect(url=...): an address without user, query and fragment; the token is apart.")
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < 1e6:
            raise PlanError("connect(timeout=...): takes a number of seconds.")
        self.url, self._token, self._timeout = url.rstrip("/"), token.strip(), timeout
        proxies = [urllib.request.ProxyHandler({})] if local else []
        self._opener = urllib.request.build_opener(_Straight, *proxies)

    def ask(self, path: str, answer: type[T], body: object = None) -> T:
        """Send one request and decode its answer.

        Raises:
            BudgetError: It costs more than is left; nothing was charged.
            PlanError: The server refuses the question.
            SourceError: The server cannot be reached, or refuses the token.
        """
        content = None if body is None else msgspec.json.encode(body)
        request = urllib.request.Request(f"{self.url}{path}", content)  # noqa: S310  http and https only
        request.add_header("Authorization", f"Bearer {self._token}")
        request.add_header("Content-Type", "application/json")
        try:
            return msgspec.json.decode(self._answered(request), type=answer)
        except WpinqError:
            raise
        except (OSError, ValueError, http.client.HTTPException, msgspec.MsgspecError) as error:
            reason = "no answer in time; ask again, what was charged is free" if isinstance(
                error, TimeoutError) else "it cannot be reached, or is no wpinq server"  # fmt: skip
            raise SourceError(f"{self.url}: {reason}.") from None

    def _answered(self, request: urllib.request.Request) -> bytes:
        """What was read of an answer.

        Raises:
            BudgetError, PlanError, SourceError: The server refuses it.
        """
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                read: bytes = response.read()
                return read
        except urllib.error.HTTPError as error:
            with error:
                refuse(error.code, error.read())

    def __repr__(self) -> str:
        return f"<server {self.url}>"


def quoted(name: str) -> str:
    """A name as a part of an address."""
    return urllib.parse.quote(name, safe="")


def refuse(status: int, content: bytes) -> NoReturn:
    """Raise what a refusal of a server means here.

    Raises:
        BudgetError, PlanError, SourceError: See `Transport.ask`.
    """
    try:
        message = msgspec.json.decode(content, type=Refused).error.message
    except msgspec.MsgspecError:
        message = f"the server answered {status}"
    if status == 409:
        raise BudgetError(message)
    if status in (413, 422):
        raise PlanError(message)
    raise SourceError(message)
