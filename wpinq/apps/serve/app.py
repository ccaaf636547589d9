"""The server as an ASGI application: its operations, the pages for browsers, and the door before them."""

from __future__ import annotations

from collections.abc import AsyncIterator
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
from wpinq.apps.serve.measuring import MEASURING
from wpinq.apps.serve.metrics import metrics
from wpinq.apps.serve.middleware import AGENTS, Door, Entrance
from wpinq.apps.serve.operations import JSON, Site, description
from wpinq.apps.serve.page.routes import pages
from wpinq.apps.serve.questions import ASKING
from wpinq.apps.serve.refusals import respond
from wpinq.apps.serve.releases import RELEASES
from wpinq.apps.serve.tokens import Tokens
from wpinq.apps.serve.turning import Turning
from wpinq.apps.serve.work_queue import Desk

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

    limits = catalogue.config.limits
    entrance = Entrance(tokens, catalogue.config)
    site = Site(catalogue, tokens, Desk(limits.waiting, limits.held, limits.memory), entrance)
    routes = [operation.route(site) for operation in OPERATIONS]
    agents = Agents(site, OPERATIONS) if catalogue.config.server.agents else None
    if agents is not None:
        routes.append(Route(AGENTS, agents, methods=["POST"]))

    @asynccontextmanager
    async def turning(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
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
        middleware=[Middleware(Door, entrance=entrance, limits=limits)],
        exception_handlers={HTTPException: respond},
    )
    result.router.redirect_slashes = False  # it would send a client, with its token, to whatever Host a request named
    return result
