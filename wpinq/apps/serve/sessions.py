"""Sessions of browsers: a token is shown once, then a cookie that no script can read stands for it.

The server holds hashes of what cookies hold, in memory: after a restart one signs in again. A session ends with its
token, which is looked up for every request.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from time import monotonic

from wpinq.apps.serve.refusals import RefusedError

FOREIGN = "the form was not sent from this page, or the page is old: go back, load it again, and send it again."
IDLE, LONGEST = 3_600.0, 12 * 3_600.0
"""Seconds without a request, and in all, after which a session ends."""
MOST, MOST_OF_ONE = 10_000, 20
"""Sessions that are kept, in all and of one token; then the one that was used longest ago ends."""


@dataclass
class Session:
    """A browser in which somebody has signed in.

    Attributes:
        token: The name of the token that was shown.
        form: What every form of the pages holds, so that no other page can send one.
    """

    token: str
    form: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    begun: float = field(default_factory=monotonic)
    used: float = field(default_factory=monotonic)

    def insist_on_own(self, form: str) -> None:
        """Insist that a form is of this session's pages; in constant time.

        Raises:
            RefusedError: It is not.
        """
        if not hmac.compare_digest(self.form.encode(), form.encode()):
            raise RefusedError(403, FOREIGN)


class Sessions:
    """The sessions of one server; used by one event loop.

    Args:
        secure: Whether browsers speak TLS. Then no other host, and no page without TLS, can set the cookie.
    """

    def __init__(self, *, secure: bool) -> None:
        self._held: OrderedDict[bytes, Session] = OrderedDict()
        self._name, self._more = ("__Host-wpinq", "; Secure") if secure else ("wpinq", "")

    def begin(self, token: str) -> str:
        """Begin a session, and give what its cookie holds.

        Args:
            token: The name of the token that was shown.
        """
        sessions = [key for key, session in self._held.items() if session.token == token]
        for key in sessions[: max(0, len(sessions) - MOST_OF_ONE + 1)]:
            del self._held[key]
        if len(self._held) >= MOST:
            self._held.popitem(last=False)
        value = secrets.token_urlsafe(32)
        self._held[_key(value)] = Session(token)
        return value

    def session_of(self, headers: Iterable[tuple[bytes, bytes]]) -> Session | None:
        """The session of a request, if it has one that has not ended."""
        key = _key(self._value(headers))
        session, now = self._held.get(key), monotonic()
        if session is None:
            return None
        if now - session.used > IDLE or now - session.begun > LONGEST:
            del self._held[key]
            return None
        session.used = now
        self._held.move_to_end(key)
        return session

    def end(self, session: Session) -> None:
        """End a session."""
        for key in [key for key, held in self._held.items() if held is session]:
            del self._held[key]

    def cookie(self, value: str) -> str:
        """The header that sets the cookie, or takes it away where the value is empty."""
        gone = "" if value else "; Max-Age=0"
        return f"{self._name}={value}; Path=/; HttpOnly; SameSite=Strict{self._more}{gone}"

    def _value(self, headers: Iterable[tuple[bytes, bytes]]) -> str:
        cookies = b";".join(value for name, value in headers if name == b"cookie").decode("latin-1").split(";")
        named = [cookie.strip().partition("=") for cookie in cookies]
        return next((value for name, _, value in named if name == self._name), "")


def _key(value: str) -> bytes:
    return hashlib.sha256(value.encode()).digest()
