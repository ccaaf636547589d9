"""Who may come in, how often, and how slowly: decided before a request is decoded."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from wpinq.apps.serve.refusals import RefusedError, refused
from wpinq.apps.serve.sessions import Sessions
from wpinq.apps.serve.tokens import Grant, Tokens

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from wpinq.apps.serve.config import Config, Limits

STATIC = "/static/"
OPEN = frozenset(
    {"/api/openapi.json", "/sign-in", *(STATIC + name for name in ("page.css", "page.js", "uPlot.js", "icon.svg"))}
)
"""What needs no token: the contract itself, and what a browser shows before somebody has signed in."""
API, AGENTS = "/api/", "/mcp"
"""Where a token is asked for; elsewhere are the pages of a browser, which has a session and no token."""
GUESSES = 30
"""Wrong tokens in a minute from one address; then they are refused as too many. Right ones are let in always."""
REMEMBERED = 10_000
HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""No cache keeps an answer, and no page of another origin may use one. There is no CORS header, ever."""


class Pace:
    """So many events in a minute, for each of many names: a bucket that fills steadily.

    Args:
        most: How many.
    """

    def __init__(self, most: int) -> None:
        self._most, self._rate = float(most), most / 60
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def takes(self, name: str) -> bool:
        """Whether one more may come now; then it is counted."""
        now = time.monotonic()
        left, last = self._left.pop(name, (self._most, now))
        left = min(self._most, left + (now - last) * self._rate)
        self._left[name] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        return left >= 1


class Entrance:
    """Who is let in, and how often: by a token, or in a browser by a session that a token has begun.

    Args:
        tokens: The tokens.
        config: Where the server is, and how many requests one token may make in a minute, everywhere together.
    """

    def __init__(self, tokens: Tokens, config: Config) -> None:
        server = config.server
        self._tokens, self.sessions = tokens, Sessions(secure=server.proxy or server.certificate is not None)
        self._requests, self._guesses = Pace(config.limits.requests), Pace(GUESSES)

    def by_token(self, token: str, address: str) -> Grant:
        """What a token allows.

        Raises:
            RefusedError: It allows nothing, or there are too many requests.
        """
        grant = self._tokens.granted(token)
        if grant is None:
            raise RefusedError(401 if self._guesses.takes(address) else 429)
        return self.paced(grant)

    def by_session(self, scope: Scope) -> Grant | None:
        """What the session of a browser allows; None where there is none. `scope["session"]` is the session then.

        Raises:
            RefusedError: There are too many requests.
        """
        session = self.sessions.session_of(scope["headers"])
        grant = None if session is None else self._tokens.current(session.token)
        if grant is None:
            return None
        scope["session"] = session
        return self.paced(grant)

    def paced(self, grant: Grant) -> Grant:
        """Count one more request of a token.

        Raises:
            RefusedError: There are too many.
        """
        if not self._requests.takes(grant.id):
            raise RefusedError(429)
        return grant


def address(scope: Scope) -> str:
    """Where a request comes from."""
    return str((scope.get("client") or ("",))[0])


class Door:
    """Middleware around all routes: `scope["user"]` is what the request may do, or None for a page's to ask.

    Args:
        app: What comes in is given to it.
        entrance: Who is let in.
        limits: How slowly, and how much.
    """

    def __init__(self, app: ASGIApp, entrance: Entrance, limits: Limits) -> None:
        self._app, self._entrance, self._limits = app, entrance, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        began = False

        async def answer(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                names = {name for name, _ in message["headers"]}  # a page may say what it needs itself
                message["headers"] = [*message["headers"], *(header for header in HEADERS if header[0] not in names)]
            await send(message)

        try:
            await self._entered(scope, receive, answer)
        except asyncio.CancelledError:  # the server ends
            if not began:
                await refused(RefusedError(503))(scope, receive, answer)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001  a panic of Polars is no Exception, and its text may quote a record
            response = refused(error, scope["path"])  # it says so in the log, too
            if not began:
                await response(scope, receive, answer)

    async def _entered(self, scope: Scope, receive: Receive, answer: Send) -> None:
        try:
            if scope["path"] not in OPEN:
                api = scope["path"].startswith(API) or scope["path"] == AGENTS
                scope["user"] = self._grant(scope) if api else self._entrance.by_session(scope)
            whole = await self._arrived(scope, receive)
        except Exception as error:  # noqa: BLE001  a traceback must not reach the log; a file of tokens may be gone
            await refused(error, None)(scope, receive, answer)
        else:
            await self._app(scope, whole, answer)

    def _grant(self, scope: Scope) -> Grant:
        """By a token alone: a browser sends its cookie with what pages of others ask, too."""
        values = [value for name, value in scope["headers"] if name == b"authorization"]
        words = values[0].decode("latin-1").split(" ") if len(values) == 1 else []
        token = words[1] if len(words) == 2 and words[0].lower() == "bearer" else ""
        return self._entrance.by_token(token, address(scope))

    async def _arrived(self, scope: Scope, receive: Receive) -> Receive:
        """The whole body, in time and not too long, so that nothing that is decoded waits for a slow client."""
        content = bytearray()
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        if lengths and (not lengths[0].isdigit() or len(lengths[0]) > 18 or int(lengths[0]) > self._limits.body):
            raise RefusedError(413)
        try:
            async with asyncio.timeout(self._limits.seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise RefusedError(408)
                    content += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(content) > self._limits.body:
                        raise RefusedError(413)
        except TimeoutError:
            raise RefusedError(408) from None
        whole: list[Message] = [{"type": "http.request", "body": bytes(content), "more_body": False}]

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        return replay
