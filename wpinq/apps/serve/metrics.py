"""`/api/metrics`: what is left of the ledgers' budgets and caps, for the curator's Prometheus."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from wpinq.apps.serve.operations import Site
from wpinq.apps.serve.refusals import RefusedError, refused
from wpinq.apps.serve.tokens import Grant
from wpinq.tools.openmetrics import MEDIA, openmetrics


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
