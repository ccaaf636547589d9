"""The server as an ASGI application, and run: its operations, the pages for browsers, and the door before them.

`/api/metrics` tells the curator's Prometheus what is left of the ledgers' budgets and caps.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from wpinq.apps.serve import run
from wpinq.apps.serve.admin import CURATING
from wpinq.apps.serve.agents import Agents
from wpinq.apps.serve.catalogue import Catalogue
from wpinq.apps.serve.config import Config
from wpinq.apps.serve.connections import AT_ONCE, Room, bounded, raised
from wpinq.apps.serve.measured import OBSERVING
from wpinq.apps.serve.middleware import AGENTS, Door
from wpinq.apps.serve.operations import JSON, Site, description
from wpinq.apps.serve.page.routes import pages
from wpinq.apps.serve.questions import ASKING, MEASURING
from wpinq.apps.serve.refusals import RefusedError, refused, respond
from wpinq.apps.serve.releases import RELEASES
from wpinq.apps.serve.tokens import Grant, Tokens
from wpinq.apps.serve.turning import Turning
from wpinq.tools.openmetrics import MEDIA, openmetrics

OPERATIONS = (*OBSERVING, *ASKING, *MEASURING, *CURATING, *RELEASES)
"""All that can be asked."""


def application(catalogue: Catalogue, tokens: Tokens) -> Starlette:
    """The server as an ASGI application.

    Args:
        catalogue: What is served.
        tokens: Who may ask.
    """
    content = description(OPERATIONS)

    async def openapi(_: Request) -> Response:
        return Response(content, media_type=JSON)

    site, limits = Site.of(catalogue, tokens), catalogue.config.limits
    routes = [operation.route(site) for operation in OPERATIONS]
    agents = Agents(site, OPERATIONS) if catalogue.config.server.agents else None
    if agents is not None:
        routes.append(Route(AGENTS, agents, methods=["POST"]))

    @asynccontextmanager
    async def turning(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.enter_context(site.rehearsal)
            stack.enter_context(Turning(site))
            if agents is not None:
                await stack.enter_async_context(agents.run())
            yield

    result = Starlette(
        lifespan=turning,
        routes=[
            *routes,
            Route("/api/openapi.json", openapi),
            Route("/api/metrics", metrics(site)),
            *pages(site, OPERATIONS),
        ],
        middleware=[Middleware(Door, entrance=site.entrance, limits=limits)],
        exception_handlers={HTTPException: respond},
    )
    result.router.redirect_slashes = False  # it would send a client, with its token, to whatever Host a request named
    return result


def metrics(site: Site) -> Callable[[Request], Awaitable[Response]]:
    """What answers `/api/metrics` to a curator's token: each ledger once, by the name of a data set that it is of."""

    async def endpoint(request: Request) -> Response:
        grant: Grant = request.scope["user"]
        if not grant.curator:
            return refused(RefusedError(403))
        try:
            data = [data_set for data_set in site.catalogue.data.values() if data_set.name in grant.data]
            once = {data_set.ledger.identity: data_set for data_set in data}
            ledgers = {data_set.name: data_set.ledger for data_set in once.values()}
            text = await site.desk.quoted(grant.analyst, lambda: openmetrics(ledgers))
            return Response(text, headers={"content-type": MEDIA})
        except Exception as error:  # noqa: BLE001  a traceback, in a log or an answer, can quote records
            return refused(error, request.scope["path"])

    return endpoint


def runner(catalogue: Catalogue, tokens: Tokens) -> uvicorn.Server:
    """The server, ready to run on sockets of `run.listening`.

    Args:
        catalogue: What is served.
        tokens: Who may ask.
    """
    server, room = catalogue.config.server, _room(catalogue.config)
    pem = [None if path is None else str(catalogue.home / path) for path in (server.certificate, server.key)]
    run.LOG.setLevel(logging.INFO)
    protocol = type("Connected", (run.Impatient,), {"room": room})
    config = uvicorn.Config(
        application(catalogue, tokens), http=protocol, ws="none", loop="asyncio", access_log=False,
        log_config=None, log_level="error",  # uvicorn's own closes every handler of the process
        server_header=False, date_header=False, timeout_keep_alive=run.IDLE,
        timeout_graceful_shutdown=run.GRACE,  # type: ignore[arg-type]  # asyncio takes parts of seconds
        backlog=AT_ONCE, ssl_certfile=pem[0], ssl_keyfile=pem[1], proxy_headers=False,
    )  # fmt: skip
    return run.Ending(config, room)


def _room(config: Config) -> Room:
    """How many connections there may be. A proxy has all of them."""
    most = bounded(config.limits.connections, raised())
    return Room(most, most if config.server.proxy else min(most, config.limits.each))


def serve(catalogue: Catalogue, tokens: Tokens, listener: socket.socket) -> None:
    """Serve until a signal ends it."""
    try:
        runner(catalogue, tokens).run(sockets=[listener])
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)  # Python would wait for questions whose threads nothing interrupts
