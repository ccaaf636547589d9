"""The server as an ASGI application: its operations, the pages for browsers, and the door before them.

`/api/metrics` tells the curator's Prometheus what is left of the ledgers' budgets and caps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from wpinq.apps.serve.admin import CURATING
from wpinq.apps.serve.agents import Agents
from wpinq.apps.serve.catalogue import Catalogue
from wpinq.apps.serve.measured import OBSERVING
from wpinq.apps.serve.middleware import AGENTS, Door, Entrance
from wpinq.apps.serve.operations import JSON, Site, description
from wpinq.apps.serve.page.routes import pages
from wpinq.apps.serve.questions import ASKING, MEASURING
from wpinq.apps.serve.refusals import RefusedError, refused, respond
from wpinq.apps.serve.rehearsal import Rehearsal
from wpinq.apps.serve.releases import RELEASES
from wpinq.apps.serve.tokens import Grant, Tokens
from wpinq.apps.serve.turning import Turning
from wpinq.apps.serve.work_queue import Desk
from wpinq.tools.openmetrics import MEDIA, openmetrics

OPERATIONS = (*OBSERVING, *ASKING, *MEASURING, *CURATING, *RELEASES)
"""All that can be asked."""


def site_of(catalogue: Catalogue, tokens: Tokens) -> Site:
    """What handlers share.

    Args:
        catalogue: What is served.
        tokens: Who may ask.
    """
    limits = catalogue.config.limits
    desk = Desk(limits.waiting, limits.held, limits.memory)
    return Site(catalogue, tokens, desk, Entrance(tokens, catalogue.config), Rehearsal())


def application(catalogue: Catalogue, tokens: Tokens) -> Starlette:
    """The server as an ASGI application.

    Args:
        catalogue: What is served.
        tokens: Who may ask.
    """
    content = description(OPERATIONS)

    async def openapi(_: Request) -> Response:
        return Response(content, media_type=JSON)

    site, limits = site_of(catalogue, tokens), catalogue.config.limits
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
