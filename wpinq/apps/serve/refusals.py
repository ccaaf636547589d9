"""Refusals: one fixed shape, and for each kind of error its status. No text of a library reaches a client."""

from __future__ import annotations

import logging
import time

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from wpinq.apps.remote.wire import Problem, Refused
from wpinq.errors import (
    BinError,
    BudgetError,
    ExactnessError,
    LedgerError,
    NotReadyError,
    PlanError,
    SourceError,
    WpinqError,
)

LOG = logging.getLogger("wpinq.serve")

STATUSES: dict[int, tuple[str, str]] = {
    401: ("unauthorized", "no valid token: send Authorization: Bearer TOKEN."),
    403: ("forbidden", "this token does not allow it, or there is nothing of that name."),
    404: ("unknown", "no such address; /api/openapi.json lists them."),
    405: ("method", "no such method here; /api/openapi.json lists them."),
    408: ("slow", "the request did not come in time."),
    409: ("budget", "it costs more than is left; nothing was charged."),
    413: ("large", "the request is too large."),
    422: ("invalid", "the request is not what the contract says; /api/openapi.json does."),
    429: ("busy", "too many requests; wait, and ask again: what was charged is free."),
    500: ("failed", "it failed; what was charged stays charged, so asking again is free. The curator's log says more."),
    503: ("unavailable", "this is not answered now; tell the curator, and ask again later: what was charged is free."),
}
"""What is said where nothing may be told of the cause."""
QUIET = 60.0
"""Seconds for which the log says nothing again of what whoever has no token can bring about."""
CLOSE = {"connection": "close"}
MORE = {401: {"www-authenticate": "Bearer"}, 408: CLOSE, 413: CLOSE, 429: {"retry-after": "10"}}


class RefusedError(Exception):
    """A request that is refused.

    Args:
        status: The status code.
        message: What is said instead of the usual.
    """

    def __init__(self, status: int, message: str | None = None) -> None:
        super().__init__(status)
        self.status, self.message = status, message


def refusal(status: int, message: str | None = None) -> Refused:
    """The body of a refusal."""
    status = status if status in STATUSES else 422 if status < 500 else 500
    code, usual = STATUSES[status]
    return Refused(error=Problem(status=status, code=code, message=message or usual))


def problem(error: BaseException, path: str | None = "") -> Problem:
    """What is told of an error. The log names its type, and its text where it is ours.

    Args:
        error: The error.
        path: The address of the request; None before it was let in. Who has no token fills no log: the same is said
            once a minute.
    """
    status, message = _status(error)
    if status >= 500 and not isinstance(error, RefusedError):
        text = f"{type(error).__name__}: {error}" if isinstance(error, WpinqError) else type(error).__name__
        if path is not None or _anew(text):
            LOG.error("%s: %s", (path or "at the door").encode("unicode_escape").decode()[:200], text[:500])
    return refusal(status, message).error


_logged: dict[str, float] = {}


def _anew(text_: str) -> bool:
    now = time.monotonic()
    for text in [text for text, when in _logged.items() if now - when > QUIET]:
        del _logged[text]
    return now == _logged.setdefault(text_, now)


def headers(error: BaseException, status: int) -> dict[str, str]:
    """The headers of the answer to an error."""
    return {**MORE.get(status, {}), **dict(getattr(error, "headers", None) or {})}


def refused(error: BaseException, path: str | None = "") -> Response:
    """The answer to an error."""
    refusal_ = problem(error, path)
    content = msgspec.json.encode(Refused(error=refusal_))
    return Response(content, refusal_.status, headers(error, refusal_.status), "application/json")


async def respond(request: Request, error: Exception) -> Response:
    """The same, as Starlette asks for it."""
    return refused(error, request.scope["path"])


def _status(error: BaseException) -> tuple[int, str | None]:
    """The status of an error, and what may be told of it: messages about the question, never about records."""
    if isinstance(error, RefusedError):
        return error.status, error.message
    if isinstance(error, BudgetError):
        return 409, str(error)
    if isinstance(error, (PlanError, BinError, ExactnessError, NotReadyError)):
        return 422, str(error)
    if isinstance(error, (LedgerError, SourceError)):
        return 503, None  # also of data that are no more what was opened: the reason is the curator's alone
    if isinstance(error, HTTPException):
        return error.status_code, None
    return 500, None
