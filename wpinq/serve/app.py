"""The server as an ASGI application: its operations, the pages for browsers, and the door before them."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from wpinq.serve.access import Door, Entrance
from wpinq.serve.catalogue import Catalogue
from wpinq.serve.contract import JSON, Site, description
from wpinq.serve.curating import CURATING
from wpinq.serve.desk import Desk
from wpinq.serve.measured import OBSERVING
from wpinq.serve.measuring import MEASURING
from wpinq.serve.metrics import metrics
from wpinq.serve.page.routes import pages
from wpinq.serve.questions import ASKING
from wpinq.serve.refusals import respond
from wpinq.serve.releases import RELEASES
from wpinq.serve.tokens import Tokens

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
    routes = [one.route(site) for one in OPERATIONS]
    result = Starlette(
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
