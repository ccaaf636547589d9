"""One request of a browser in which somebody has signed in, and the page that answers it.

What a page shows can be had as a file: CSV, Parquet, or a picture.
"""

from __future__ import annotations

import io
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec
import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from wpinq.apps.remote.wire import Left, Problem
from wpinq.apps.serve.operations import Operation, Site
from wpinq.apps.serve.refusals import RefusedError, headers, problem
from wpinq.apps.serve.sessions import FOREIGN, Session
from wpinq.apps.serve.tokens import Grant
from wpinq.errors import PlanError
from wpinq.exact import exact
from wpinq.html.numbers import of_threshold, upwards
from wpinq.html.parts import gauge
from wpinq.html.written import csv_bytes, in_text

FIELDS = 40
"""Fields of one form."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "same-origin",  # with no-referrer a browser would not say which origin sends a form
    "cross-origin-opener-policy": "same-origin",
}
ROWS = 500
"""Rows that a page shows; downloads hold all."""
SIGN_IN = "/sign-in"


@dataclass(frozen=True)
class Visit:
    """One request.

    Attributes:
        site: What is served, and what handlers share.
        operations: What can be asked, by name.
        grant: What the token allows with which somebody signed in.
        session: The session of the browser.
        path: The values of the parameters in the path.
        fields: What was typed: the fields of the form, or of the address.
        posted: Whether a form of these pages was sent; nothing is charged by an address.
    """

    site: Site
    operations: Mapping[str, Operation]
    grant: Grant
    session: Session
    path: dict[str, str]
    fields: dict[str, str]
    posted: bool

    async def ask(self, operation: str, body: object = None, **path: str) -> Any:
        """What the API answers.

        Args:
            operation: The name of it.
            body: What a client would send as JSON.
            path: The values of the parameters in its path.
        """
        content = b"" if body is None else msgspec.json.encode(body)
        return await self.operations[operation].answered(self.site, self.grant, content, path)

    async def tried(self, operation: str, body: object = None, **path: str) -> tuple[Any, Problem | None]:
        """The same; or what was wrong, which is shown beside the form."""
        try:
            return await self.ask(operation, body, **path), None
        except Exception as error:  # noqa: BLE001  told as the API tells it
            return None, problem(error, self.operations[operation].path)

    def page(self, template: str, status: int = 200, **what: object) -> Response:
        """A page of this browser."""
        return page(
            template, status, grant=self.grant, form=self.session.form, given=defaultdict(str, self.fields), **what
        )


View = Callable[[Visit], Awaitable[Response]]


def page(template: str, status: int = 200, **what: object) -> Response:
    """A page, all of whose text is escaped."""
    known = {"grant": None, "form": "", "given": {}, "problem": None, **what}
    return HTMLResponse(TEMPLATES.get_template(f"{template}.html").render(**known), status, headers=HEADERS)


def endpoint(view: View, site: Site, operations: Mapping[str, Operation]) -> Callable[[Request], Awaitable[Response]]:
    """What answers a browser: signed in, with a form of its own pages, or refused."""

    async def answer(request: Request) -> Response:
        grant: Grant | None = request.scope["user"]
        try:
            if grant is None:
                return RedirectResponse(SIGN_IN, 303)
            session: Session = request.scope["session"]
            fields = await sent(request)
            if request.method == "POST":
                insist_on_own(request, site)
                session.insist_on_own(fields.pop("form", ""))
            return await view(
                Visit(site, operations, grant, session, dict(request.path_params), fields, request.method == "POST")
            )
        except Exception as error:  # noqa: BLE001  a traceback, in a log or a page, can quote records
            refusal = problem(error, request.scope["path"])
            result = page("refused", refusal.status, grant=grant, problem=refusal)
            result.headers.update(headers(error, refusal.status))
            return result

    return answer


async def sent(request: Request) -> dict[str, str]:
    """What was typed.

    Raises:
        RefusedError: It is no form.
    """
    content = (await request.body()) if request.method == "POST" else request.scope["query_string"]
    try:
        pairs = parse_qsl(content.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS, errors="replace")
    except ValueError:
        raise RefusedError(422, "that is no form of this page.") from None
    return dict(pairs)


def insist_on_own(request: Request, site: Site) -> None:
    """Insist that a form was sent from a page of this server, as far as the browser says.

    Raises:
        RefusedError: It comes from elsewhere.
    """
    fetched, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    names = {request.headers.get("host"), *site.catalogue.config.server.names}
    if fetched is not None:
        fits = fetched in ("same-origin", "none")
    else:
        fits = origin is None or urlsplit(origin).netloc in names
    if not fits:
        raise RefusedError(403, FOREIGN)


def cost(amounts: Mapping[str, str]) -> str:
    """What something costs, in words.

    >>> cost({"epsilon": "0.1", "delta": "0"})
    'epsilon 0.1'
    """
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items() if amount != "0") or "nothing"


def drawn(now: Left, after: Left | None = None, *, own: bool = False) -> Markup:
    """A gauge of what is left of a budget, or of the own cap, and of what a question would take."""
    left, whole = ((now.own or "0", now.cap or "0")) if own else (now.left, now.budget)
    rest = left if after is None else (after.own or "0") if own else after.left
    cost = exact(left, "left") - exact(rest, "left")
    label = f"{rest} of {whole} left" + (f", {cost} of it asked for" if cost > 0 else "")
    return Markup(gauge(exact(left, "left"), exact(whole, "cap"), label, max(cost, Fraction(0))))  # noqa: S704  escaped there


TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, undefined=StrictUndefined,
    trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip
TEMPLATES.filters.update(cost=cost, upwards=upwards, threshold=lambda least: of_threshold(least, "Groups"))
TEMPLATES.globals.update(gauge=drawn)


KINDS = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet", "png": "image/png"}
DRAWING = threading.Lock()
"""Fonts of matplotlib are shared."""

Ends = Mapping[str, tuple[pl.Series, pl.Series]]


def framed(
    columns: Mapping[str, Sequence[Any]], ends: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]
) -> pl.DataFrame:
    """Columns, and after each that is noisy the ends of its intervals; no name is there twice."""
    series: dict[str, pl.Series] = {}

    def add(name: str, values: Sequence[Any]) -> None:
        while name in series:
            name += "_"
        try:
            series[name] = pl.Series(name, values)
        except (TypeError, pl.exceptions.PolarsError):  # values of several types: as text
            series[name] = pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)

    for name, values in columns.items():
        add(name, values)
        for word, end in zip(("low", "high"), ends.get(name, ()), strict=False):
            add(f"{name}_{word}", end)
    return pl.DataFrame(list(series.values()))


async def saved(visit: Visit, name: str, frame: pl.DataFrame, draw: Callable[[], Any]) -> Response:
    """What was asked for, as a file.

    Args:
        visit: The request, which says what kind of file.
        name: What the file is called.
        frame: What it holds.
        draw: Draws it.

    Raises:
        PlanError: There is no such kind of file.
    """
    kind = visit.fields.get("as", "")
    if kind not in KINDS:
        raise PlanError(f"as: there are {', '.join(KINDS)}.")

    def made() -> bytes:
        if kind == "png":
            with DRAWING:
                picture: bytes = draw()._repr_png_()
                return picture
        if kind == "csv":
            return csv_bytes(frame)
        file = io.BytesIO()
        in_text(frame, pl.Object).write_parquet(file)
        return file.getvalue()

    content = await visit.site.desk.quoted(visit.grant.analyst, made)
    return attached(content, f"{name}.{kind}", KINDS[kind])


def attached(content: bytes, name: str, kind: str = "application/octet-stream") -> Response:
    """A file to keep, which no browser shows as a page."""
    return Response(content, headers={"content-disposition": f"attachment; filename*=UTF-8''{quote(name)}"},
                    media_type=kind)  # fmt: skip
