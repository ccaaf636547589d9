"""The door of an intake: POST of one JSON object or of JSON lines, each of exactly the declared columns.

Whoever sends gets the same 204 for a record that is new, that was there before, or whose period is closed, and gets it
once that is durable. Nothing of a record, of who sent it, or of how many there were is logged. Requests are bounded in
bytes, in time, and in how many one address may make, or who shows one token; never by whom a record says that it is of,
for a bound on people would let anybody use up somebody's.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from wpinq.apps.publish.file.declared import File
from wpinq.apps.publish.file.declared import Intake as Limits
from wpinq.apps.publish.intake import Intake, Sent
from wpinq.apps.serve.config import Server
from wpinq.apps.serve.connections import AT_ONCE, Listener, Room, bounded, network, raised
from wpinq.apps.serve.middleware import Pace
from wpinq.apps.serve.run import GRACE, IDLE, Ending, Impatient, listening
from wpinq.apps.serve.tokens import Tokens, purpose
from wpinq.core import Kind, Schema
from wpinq.errors import SourceError

LOG = logging.getLogger("wpinq.serve")
WAITING = 1_000
"""Requests that wait to be made durable; further ones are to come again later."""
AT_A_TIME = 500
"""Requests that are made durable together."""
SECONDS = 10.0
"""In which the body of a request has to come."""
LONGEST = 4_096
"""Characters of a text."""
YEARS = (1_900, 2_200)
"""Between which times lie."""
CONNECTIONS, OF_ONE = 4_096, 256
"""Open connections, of all and of one address."""

STANDARD = Limits()
"""What holds where nobody says otherwise."""

TYPES: dict[Kind, Any] = {
    Kind.INT: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    Kind.FLOAT: float,
    Kind.TEXT: Annotated[str, msgspec.Meta(max_length=LONGEST)],
    Kind.BOOL: bool,
    Kind.DATE: dt.date,
    Kind.TIME: Annotated[dt.datetime, msgspec.Meta(tz=False)],
    Kind.INSTANT: Annotated[dt.datetime, msgspec.Meta(tz=True)],
}


class Pass:
    """How often one may send: an address, or whoever shows a token, which counts for itself wherever it is shown.

    A token that is unknown, expired or revoked is refused, as one more request of its address.

    Args:
        requests: How many in a minute; 0 for any number.
        tokens: The tokens; None where there are none, and what is shown as one counts for nothing.
        purpose: What a token has to be for.
    """

    def __init__(self, requests: int, tokens: Tokens | None = None, purpose: str = "") -> None:
        self._of_addresses = Pace(requests) if requests else None
        self._of_tokens = Pace(requests) if requests else None
        self._tokens, self._purpose = tokens, purpose

    def enter(self, request: Request) -> None:
        """Let a request in.

        Raises:
            RefusedError: There were too many, or its token is none.
            SourceError: The file of tokens cannot be read.
        """
        shown = None if self._tokens is None else request.headers.get("authorization")
        grant = None
        if self._tokens is not None and shown is not None:
            kind, _, token = shown.partition(" ")
            grant = self._tokens.granted(token.strip() if kind.lower() == "bearer" else "")
            grant = grant if grant is not None and self._purpose in grant.data else None
        host = "" if request.client is None else request.client.host
        pace, name = (self._of_addresses, network(host)) if grant is None else (self._of_tokens, grant.id)
        if pace is not None and not pace.takes(name):
            whom = "of this address" if grant is None else "with this token"
            raise RefusedError(429, f"not taken: too many requests {whom}; come again later.")
        if shown is not None and grant is None:
            raise RefusedError(401, "not taken: this token is unknown, expired or revoked.")


class RefusedError(Exception):
    """A request that is not taken: a status code and a sentence."""


class Form:
    """What a record has to look like.

    Args:
        schema: Its columns, all of which it has, and no others.
        person: The column that says whose it is.
    """

    def __init__(self, schema: Schema, person: str | None) -> None:
        self._names = [f"field{index}" for index in range(len(schema))]
        fields = [(name, TYPES[column.kind]) for name, column in zip(self._names, schema, strict=True)]
        rename = dict(zip(self._names, schema.names, strict=True))
        kind: Any = msgspec.defstruct("Record", fields, rename=rename, forbid_unknown_fields=True)
        self._decoder = msgspec.json.Decoder(kind)
        self._person = None if person is None else schema.names.index(person)
        columns = ", ".join(f"{column.name} ({column.kind.value})" for column in schema)
        self.expected = f"not taken: send one JSON object, or one in each line, with exactly these keys: {columns}."

    def read(self, body: bytes, key: str | None) -> list[Sent]:
        """The records of a body.

        Args:
            body: It.
            key: What tells this request from others of the same person.

        Raises:
            RefusedError: It is not as declared; none of it is taken.
        """
        try:
            records = [self._decoder.decode(body)]
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            try:
                records = self._decoder.decode_lines(body)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                raise RefusedError(400, self.expected) from None
        rows = [tuple(getattr(record, name) for name in self._names) for record in records]
        times = [value for row in rows for value in row if isinstance(value, dt.date)]
        if not rows or any(not YEARS[0] <= time_.year < YEARS[1] for time_ in times):
            raise RefusedError(400, self.expected)
        return [
            Sent(row, self._whose(row), None if key is None else f"{index} {key}") for index, row in enumerate(rows)
        ]

    def _whose(self, row: tuple[Any, ...]) -> Any:
        """Within what keys are looked up: a person, or where records are protected, a record that is the same."""
        return msgspec.json.encode(row).decode() if self._person is None else row[self._person]


class Store(Protocol):
    """What makes records durable: an intake, or a file that is followed.

    Attributes:
        name: What tokens are for.
        tokens: The file of the tokens that senders may show; None where there are none.
    """

    name: str
    tokens: Path | None

    def connected(self) -> AbstractContextManager[Any]:
        """What `take` is given."""

    def take(self, store: Any, sent: Iterable[Sent], now: dt.datetime, /) -> None:
        """Make records durable, all or none."""


class Writer:
    """Makes what came durable, many requests in one transaction, on a thread of its own.

    Args:
        intake: Where it is held.
        clock: The time.
    """

    def __init__(self, intake: Store, clock: Callable[[], dt.datetime]) -> None:
        self._intake, self._clock = intake, clock
        self._waiting: queue.Queue[Any] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._run, daemon=True, name="wpinq intake")
        self._thread.start()

    async def keep(self, sent: list[Sent]) -> None:
        """Return once records are durable.

        Raises:
            RefusedError: They are not: too many wait, or the disk does not take them.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()
        try:
            self._waiting.put_nowait((sent, loop, done))
        except queue.Full:
            raise RefusedError(503, "not taken: come again later.") from None
        if not await done:
            raise RefusedError(503, "not taken: come again later.")

    def close(self) -> None:
        """Make durable what waits, and end."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._waiting.get()) is not None:
            try:
                with self._intake.connected() as store:
                    while first is not None:
                        first = self._together(store, first)
                break
            except Exception as error:  # noqa: BLE001  a disk that is full, say: the next one is tried anew
                LOG.error("records were not made durable: %s", type(error).__name__)  # noqa: TRY400  no traceback
                _answer([first], durable=False)

    def _together(self, store: Any, first: Any) -> Any:
        """Keep a request and those that wait behind it, and wait for the next one; None where there will be none."""
        batch, durable = [first], False
        while len(batch) < AT_A_TIME and batch[-1] is not None:
            try:
                batch.append(self._waiting.get_nowait())
            except queue.Empty:
                break
        try:
            sent = [record for request in batch if request is not None for record in request[0]]
            self._intake.take(store, sent, self._clock())
            durable = True
        finally:
            _answer(batch, durable=durable)
            if not durable and batch[-1] is None:
                self._waiting.put(None)
        return None if batch[-1] is None else self._waiting.get()


def _answer(batch: list[Any], *, durable: bool) -> None:
    for request in batch:
        if request is not None:
            _, loop, done = request
            loop.call_soon_threadsafe(_settle, done, durable)


def _settle(done: asyncio.Future[bool], durable: bool) -> None:
    if not done.done():
        done.set_result(durable)


def application(limits: Limits, form: Form, writer: Writer, entrance: Pass) -> Starlette:
    """What answers requests."""

    async def post(request: Request) -> Response:
        try:
            entrance.enter(request)
            await writer.keep(form.read(await _body(request, limits.body), _key(request)))
        except RefusedError as error:
            return refused(error)
        except Exception as error:  # noqa: BLE001  a traceback, in a log or a reply, can quote records
            LOG.error("a request was not taken: %s", type(error).__name__)  # noqa: TRY400
            return refused(RefusedError(503, "not taken: come again later."))
        return Response(status_code=204)

    return Starlette(routes=[Route("/", post, methods=["POST"])])


def refused(error: RefusedError) -> Response:
    """The answer to a request that is not taken."""
    status, text = error.args
    return PlainTextResponse(f"{text}\n", status, {"retry-after": "10"} if status in (429, 503) else None)


def _key(request: Request) -> str | None:
    """What tells a request from others of the same person.

    Raises:
        RefusedError: It is no such text.
    """
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= 200 and key.isascii() and key.isprintable()):
        raise RefusedError(400, "not taken: an Idempotency-Key has 1 to 200 printable ASCII characters.")
    return key


async def _body(request: Request, most: int) -> bytes:
    """What was sent.

    Raises:
        RefusedError: It is too large, or came too slowly.
    """
    large = RefusedError(413, f"not taken: a request has at most {most:,} bytes.")
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > most:
        raise large
    content = bytearray()
    try:
        async with asyncio.timeout(SECONDS):
            async for piece in request.stream():
                content += piece
                if len(content) > most:
                    raise large
    except TimeoutError:
        raise RefusedError(408, "not taken: the request did not come in time.") from None
    return bytes(content)


@contextmanager
def taking(
    address: str, form: Form, store: Store, clock: Callable[[], dt.datetime], limits: Limits = STANDARD,
) -> Iterator[Listener]:  # fmt: skip
    """Take records for as long as this lasts.

    Args:
        address: host:port.
        form: What a record has to look like.
        store: What makes it durable.
        clock: The time.
        limits: How many and how large requests may be, by one address or with one token.

    Raises:
        SourceError: It cannot be listened on, or the file of tokens cannot be read.
    """
    entrance = Pass(limits.requests, None if store.tokens is None else Tokens(store.tokens), purpose(store.name))
    host, _, port = address.rpartition(":")
    try:
        listener = listening(Server(host=host.strip("[]"), port=int(port)))
    except (SourceError, ValueError, OverflowError) as error:
        why = str(error).partition(";")[0] if isinstance(error, SourceError) else f"{address[:80]}: write host:port"
        raise SourceError(f"listen: {why}.") from None
    writer = Writer(store, clock)
    most = bounded(CONNECTIONS, raised())
    room = Room(most, min(most, OF_ONE) if limits.requests else most)
    config = uvicorn.Config(
        application(limits, form, writer, entrance),
        http=type("Connected", (Impatient,), {"room": room}), ws="none",
        loop="asyncio", access_log=False, log_config=None, log_level="error", server_header=False, date_header=False,
        timeout_keep_alive=IDLE, timeout_graceful_shutdown=GRACE, backlog=AT_ONCE, proxy_headers=False, lifespan="off",  # type: ignore[arg-type]
    )  # fmt: skip
    server = Ending(config, room)
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True, name="wpinq door")
    thread.start()
    try:
        yield listener
    finally:
        server.should_exit = True
        thread.join()
        writer.close()


@contextmanager
def of_release(
    file: File, schema: Schema, intake: Intake, clock: Callable[[], dt.datetime]
) -> Iterator[Listener]:  # fmt: skip
    """Take the records of a release, at the address of its file.

    Raises:
        SourceError: It cannot be listened on, or the file of tokens cannot be read.
    """
    person = None if file.data.unit is None else file.data.unit.column
    with taking(file.data.listen or "", Form(schema, person), intake, clock, file.intake) as listener:
        yield listener
