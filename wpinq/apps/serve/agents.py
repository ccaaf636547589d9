"""`/mcp`: the tools of agents over HTTP, answered by the operations of the API, for the token of each request."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
from anyio import from_thread
from starlette.routing import compile_path

from wpinq.apps.agents.tools import Desk, Payments
from wpinq.apps.remote.transport import refuse
from wpinq.apps.remote.wire import Refused
from wpinq.apps.serve.config import Server, loopback
from wpinq.apps.serve.operations import Operation, Site
from wpinq.apps.serve.refusals import RefusedError, problem, refused
from wpinq.apps.serve.tokens import Grant
from wpinq.errors import needs

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

T = TypeVar("T")
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class Inside:
    """The server itself, as the tools of one request ask it. It is asked on a thread that anyio started.

    Args:
        site: What handlers share.
        operations: All that can be asked.
        grant: What the token of the request allows.
    """

    def __init__(self, site: Site, operations: Sequence[Operation], grant: Grant) -> None:
        self._site, self._operations, self._grant = site, operations, grant

    def ask(self, path: str, answer: type[T], body: object = None) -> T:
        """Ask an operation of the API, as a request of this token: it is counted, decoded, charged and refused alike.

        Raises:
            BudgetError, PlanError, SourceError: See `Transport.ask`.
        """
        try:
            answer_made = from_thread.run(self._answered, path, b"" if body is None else msgspec.json.encode(body))
        except Exception as error:  # noqa: BLE001  what is told of it is what a client of the API is told
            refusal = problem(error, path)
            refuse(refusal.status, msgspec.json.encode(Refused(error=refusal)))
        return msgspec.json.decode(msgspec.json.encode(answer_made), type=answer)

    async def _answered(self, path: str, content: bytes) -> Any:
        self._site.entrance.paced(self._grant)  # one call may price many questions
        for operation in self._operations:
            match = compile_path(operation.path)[0].match(path)
            if match and operation.method == ("POST" if content else "GET"):
                parameters = {name: unquote(value) for name, value in match.groupdict().items()}
                return await operation.answered(self._site, self._grant, content, parameters)
        raise RefusedError(404)


class Agents:
    """The ASGI application of `/mcp`. No request leaves anything behind but the count of what its token paid.

    Args:
        site: What handlers share.
        operations: All that can be asked.

    Raises:
        ExtraError: The extra `mcp` is not installed.
    """

    def __init__(self, site: Site, operations: Sequence[Operation]) -> None:
        needs("mcp", "server.agents")
        from wpinq.apps.agents.protocol import over_http

        self._site, self._operations = site, operations
        self._payments: dict[str, Payments] = {}
        self._manager = over_http(self._desk)

    def run(self) -> AbstractAsyncContextManager[None]:
        """Answer for as long as this lasts."""
        return self._manager.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, which the door has let in."""
        try:
            insist_on_host(scope, self._site.catalogue.config.server)
            await self._manager.handle_request(scope, receive, send)
        except RefusedError as error:
            await refused(error, scope["path"])(scope, receive, send)

    def _desk(self, scope: Scope) -> Desk:
        grant: Grant = scope["user"]
        per_minute = self._site.catalogue.config.server.agents_per_minute
        payments = self._payments.setdefault(grant.id, Payments())
        return Desk(Inside(self._site, self._operations, grant), per_minute, payments=payments)


def insist_on_host(scope: Scope, server: Server) -> None:
    """Insist that a request names this server, and that it is of no page of another.

    Raises:
        RefusedError: A name was made to lead here, or the page of another asks.
    """
    hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
    origins = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"origin"]
    names = {server.host.lower(), *(name.lower() for name in server.names)}
    names |= LOCAL if loopback(server.host) else set()
    try:
        named = len(hosts) == 1 and (hosts[0] in names or urlsplit(f"//{hosts[0]}").hostname in names)
        same = all(
            urlsplit(origin).scheme in ("http", "https") and urlsplit(origin).netloc == hosts[0] for origin in origins
        )
    except (ValueError, IndexError):
        named = same = False
    if not named:
        raise RefusedError(403, "this server has another name; its curator names it in server.names.")
    if not same:
        raise RefusedError(403, "pages of other sites may not ask here.")
