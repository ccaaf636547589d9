"""The pages and their addresses; signing in and out; and the files that pages need."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from wpinq.apps.serve.middleware import STATIC, address
from wpinq.apps.serve.operations import Operation, Site
from wpinq.apps.serve.page import views
from wpinq.apps.serve.page.query import ask
from wpinq.apps.serve.page.request import SIGN_IN, TEMPLATES, View, Visit, endpoint, insist_on_own, page, sent
from wpinq.apps.serve.refusals import headers, problem
from wpinq.html.parts import look

SCRIPT = "text/javascript"
KINDS = {"page.css": "text/css", "page.js": SCRIPT, "uPlot.js": SCRIPT, "icon.svg": "image/svg+xml"}
VIEWS: dict[str, tuple[View, tuple[str, ...]]] = {
    "/": (views.home, ("GET",)),
    "/measurements/{name}": (views.measurement, ("GET",)),
    "/fits/{name}": (views.fit, ("GET",)),
    "/releases/{name}": (views.release, ("GET",)),
    "/releases/{name}/{period}/{file}": (views.published, ("GET",)),
    "/budget": (views.budget, ("GET",)),
    "/ask": (ask, ("GET", "POST")),
}


def pages(site: Site, operations: Sequence[Operation]) -> list[Route]:
    """The routes of all pages."""
    named = {operation.handler.__name__: operation for operation in operations}

    async def enter(request: Request) -> Response:
        if request.method != "POST":
            return page("sign_in")
        try:
            insist_on_own(request, site)
            grant = site.entrance.by_token((await sent(request)).get("token", "").strip(), address(request.scope))
        except Exception as error:  # noqa: BLE001  a traceback must not reach the log
            refusal = problem(error, None)
            result = page("sign_in", refusal.status, problem=refusal)
            result.headers.update({k: v for k, v in headers(error, refusal.status).items() if k != "www-authenticate"})
            return result
        sessions = site.entrance.sessions
        return RedirectResponse("/", 303, {"set-cookie": sessions.cookie(sessions.begin(grant.id))})

    async def leave(visit: Visit) -> Response:
        sessions = site.entrance.sessions
        sessions.end(visit.session)
        return RedirectResponse(SIGN_IN, 303, {"set-cookie": sessions.cookie("")})

    TEMPLATES.globals.update(version=digest())
    made = {**VIEWS, "/sign-out": (leave, ("POST",))}
    routes = [Route(path, endpoint(view, site, named), methods=how) for path, (view, how) in made.items()]
    return [*routes, Route(SIGN_IN, enter, methods=("GET", "POST")), Route(STATIC + "{file}", static)]


async def static(request: Request) -> Response:
    """A file that pages need, compressed; it has nothing of anybody in it."""
    name = request.path_params["file"]
    if name not in KINDS:
        raise HTTPException(404)
    plain = "gzip" not in request.headers.get("accept-encoding", "")
    held = {"cache-control": "public, max-age=31536000, immutable", "vary": "accept-encoding"}
    more = held if plain else {**held, "content-encoding": "gzip"}
    return Response(content(name) if plain else squeezed(name), headers=more, media_type=KINDS[name])


@cache
def content(name: str) -> bytes:
    """A file."""
    data = (Path(__file__).parent / "static" / name).read_bytes()
    return look().encode() + data if name == "page.css" else data


@cache
def squeezed(name: str) -> bytes:
    """A file, compressed."""
    return gzip.compress(content(name), 9, mtime=0)


@cache
def digest() -> str:
    """Tells versions of these files apart, since browsers keep them."""
    return hashlib.sha256(b"".join(map(content, KINDS))).hexdigest()[:12]
