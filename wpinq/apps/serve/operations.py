"""The contract: operations with their requests and answers, as routes and as an OpenAPI description, from one table."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from wpinq.apps.remote.wire import Refused
from wpinq.apps.serve.catalogue import Catalogue
from wpinq.apps.serve.middleware import Entrance
from wpinq.apps.serve.refusals import STATUSES, RefusedError, refused
from wpinq.apps.serve.rehearsal import Rehearsal
from wpinq.apps.serve.tokens import Grant, Tokens
from wpinq.apps.serve.work_queue import Desk

B = TypeVar("B")
JSON = "application/json"
PARAMETER = re.compile(r"{(\w+)}")
REFUSALS = (401, 403, 404, 408, 413, 422, 429, 500, 503)


@dataclass
class Site:
    """What handlers share.

    Attributes:
        catalogue: What is served; another one when the clock names the next version of a data set.
        tokens: All tokens.
        desk: Where questions wait to be computed.
        entrance: Who is let in.
        rehearsal: Where questions are priced first.
    """

    catalogue: Catalogue
    tokens: Tokens
    desk: Desk
    entrance: Entrance
    rehearsal: Rehearsal

    @classmethod
    def of(cls, catalogue: Catalogue, tokens: Tokens) -> Site:
        """Of a catalogue, for whoever holds one of the tokens."""
        limits = catalogue.config.limits
        desk = Desk(limits.waiting, limits.held, limits.memory)
        return cls(catalogue, tokens, desk, Entrance(tokens, catalogue.config), Rehearsal())


@dataclass(frozen=True)
class Call(Generic[B]):
    """One request that was let in and decoded.

    Attributes:
        site: What is served, to whom, and the desk where questions wait.
        grant: What the token of the request allows.
        body: The body, decoded.
        path: The values of the parameters in the path.
    """

    site: Site
    grant: Grant
    body: B
    path: dict[str, str]


@dataclass(frozen=True)
class Operation:
    """One thing that can be asked.

    Attributes:
        method: GET, POST, PUT or DELETE.
        path: The address, with parameters in braces.
        body: What the body of the request is decoded to; None where there is none.
        answer: The answer's type.
        handler: Answers.
        more: Statuses that it may give beside those that all may.
        curator: Whether only a curator's token allows it.
    """

    method: str
    path: str
    answer: Any
    handler: Callable[[Call[Any]], Awaitable[Any]]
    body: Any = None
    more: Sequence[int] = ()
    curator: bool = False

    def route(self, site: Site) -> Route:
        """The route of it."""

        async def endpoint(request: Request) -> Response:
            grant: Grant = request.scope["user"]
            try:
                answer = await self.answered(site, grant, await request.body(), dict(request.path_params))
                return Response(msgspec.json.encode(answer), media_type=JSON)
            except Exception as error:  # noqa: BLE001  a traceback, in a log or an answer, can quote records
                return refused(error, request.scope["path"])

        return Route(self.path, endpoint, methods=[self.method])

    async def answered(self, site: Site, grant: Grant, content: bytes, path: dict[str, str]) -> Any:
        """Answer, for the API and the pages of a browser alike.

        Args:
            site: What handlers share.
            grant: What the asker may do.
            content: The body of the request.
            path: The values of the parameters in the path.
        """
        if self.curator and not grant.curator:
            raise RefusedError(403)
        body = None if self._decoder is None else _decoded(self._decoder.decode, content)
        return await self.handler(Call(replace(site), grant, body, path))  # one version to the end, whatever turns

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any] | None:
        return None if self.body is None else msgspec.json.Decoder(self.body, strict=True)

    def described(self, schema: Callable[[Any], Any]) -> dict[str, Any]:
        """The operation as OpenAPI has it."""
        text = (self.handler.__doc__ or "").strip()
        statuses = {str(status): {"$ref": f"#/components/responses/{status}"} for status in (*REFUSALS, *self.more)}
        answer = {"description": "The answer.", "content": {JSON: {"schema": schema(self.answer)}}}
        result: dict[str, Any] = {
            "operationId": self.handler.__name__, "summary": text.partition("\n")[0],
            "responses": {"200": answer, **statuses},
        }  # fmt: skip
        names = PARAMETER.findall(self.path)
        if names:
            kind = {"type": "string", "minLength": 1}
            result["parameters"] = [{"name": name, "in": "path", "required": True, "schema": kind} for name in names]
        if self.body is not None:
            result["requestBody"] = {"required": True, "content": {JSON: {"schema": schema(self.body)}}}
        return result


def _decoded(decode: Callable[[bytes], Any], content: bytes) -> Any:
    """A body, read strictly. What is said of a wrong one is what msgspec says: a place and types, no value."""
    try:
        return decode(content or b"null")
    except msgspec.ValidationError as error:
        raise RefusedError(422, f"the request is not what the contract says: {error}.") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise RefusedError(422, "the request is no JSON, or too deep.") from None


def description(operations: Sequence[Operation]) -> bytes:
    """All operations as an OpenAPI 3.1 description, in JSON."""
    types = [kind for operation in operations for kind in (operation.body, operation.answer) if kind is not None]
    components, schemas = msgspec.json.schema_components([*types, Refused], ref_template="#/components/schemas/{name}")
    known = dict(zip(map(id, types), components, strict=False))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = operation.described(
            lambda kind: known[id(kind)]
        )
    shape = {JSON: {"schema": {"$ref": "#/components/schemas/Refused"}}}
    refusals = {str(status): {"description": text, "content": shape} for status, (_, text) in STATUSES.items()}
    return msgspec.json.encode({
        "openapi": "3.1.0",
        "info": {"title": "wpinq", "version": "1", "description": "Noisy counts and questions, within a budget."},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": refusals,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    })  # fmt: skip
