"""A server over data with and without one privacy unit: whatever is asked, in whatever order, both answer alike.

Two servers begin with copies of one ledger and one file of tokens, over files that differ by one unit, and are asked
the same. Where the records that a run reads are the same in both (`planted`), all bytes must be equal but times; else
all but the noisy numbers: statuses, headers, names, their order and how many there are.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import logging
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from attacks.fuzz.fuzzer import Fuzzer
from attacks.fuzz.served_plants import PLANTS
from attacks.fuzz.served_steps import REPLACED, Step, grown
from msgspec import structs

from wpinq.apps.serve.app import application
from wpinq.apps.serve.catalogue import PLAN, Served, opened
from wpinq.apps.serve.config import read
from wpinq.apps.serve.rehearsal import Rehearsal
from wpinq.apps.serve.tokens import Tokens
from wpinq.core.ledger import Ledger
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import sources
from wpinq.core.runs.people_index import Kept

CONFIG = """
[data.views]
source = "views.csv"
ledger = "ledger"
budget = 9
delta = 1e-2
version = "v1"
unit = {{ column = "user", at_most = {bound} }}
columns = {{ user = "str", page = "str", size = "int" }}
dataflow = "script.py"
bounds = {{ size = [0, 50] }}

[data.hidden]
source = "views.csv"
ledger = "hidden"
budget = 9
version = "v1"

[fit.degrees]
data = "views"
cdf = "cdf"
sequence = "sequence"

[limits]
delta = 1e-3
memory = {memory}
held = {held}
"""
SCRIPT = """
import wpinq
def dataflow(views):
    pages = views.map("page")
    return {
        "pages": pages.measure(epsilon=1, name="pages"),
        "cdf": wpinq.degrees.cdf(pages).measure(epsilon="1/2", name="cdf"),
        "sequence": wpinq.degrees.sequence(pages).measure(epsilon="1/2", name="sequence"),
    }
"""
WHO = {"ann": ("4", ["views"]), "ben": ("1/4", ["views", "hidden"]), "eve": (None, ["views"]), "boss": ("1", ["views"])}
TIME = re.compile(rb'\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(\+00:00|Z)?|name="form" value="[^"]*"')


@dataclass
class Reply:
    """What a client sees of one answer."""

    status: int
    headers: dict[str, str]
    body: bytes


class World:
    """A server without sockets, and browsers in which everybody has signed in."""

    def __init__(self, place: Path) -> None:
        self.place, self.config = place, read(place / "site.toml")
        self.catalogue = opened(self.config)
        self.app = application(self.catalogue, Tokens(place / "tokens"))
        self._cookies: dict[str, str] = {}
        self._forms: dict[str, str] = {}

    def replace_file(self) -> None:
        """Add a record to the file of the records, as a curator would who does not know that it is served."""
        with (self.place / "views.csv").open("a") as file:
            file.write("u0,p0,7\n")

    async def ask(self, step: Step, tokens: dict[str, str]) -> Reply:
        """Ask over the API, or as a browser."""
        if not step.browser:
            return await self._sent(step, [(b"authorization", b"Bearer " + tokens[step.who].encode())])
        if step.who not in self._cookies:
            entering = Step(step.who, "POST", "/sign-in", f"token={tokens[step.who]}".encode())
            entered = await self._sent(entering, [])
            self._cookies[step.who] = entered.headers.get("set-cookie", "").partition(";")[0]
            home = await self._sent(Step(step.who, "GET", "/"), self._signed(step.who))
            form = re.search(rb'name="form" value="([^"]+)"', home.body)
            self._forms[step.who] = form[1].decode() if form else ""
        body = step.body + b"&form=" + self._forms[step.who].encode() if step.method == "POST" else step.body
        return await self._sent(replace(step, body=body), self._signed(step.who))

    def _signed(self, who: str) -> list[tuple[bytes, bytes]]:
        return [(b"cookie", self._cookies[who].encode())]

    async def _sent(self, step: Step, headers: list[tuple[bytes, bytes]]) -> Reply:
        path, _, query = step.path.partition("?")
        scope = {
            "type": "http", "method": step.method, "path": path, "raw_path": path.encode(), "headers": headers,
            "query_string": query.encode(), "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "scheme": "http",
            "root_path": "", "http_version": "1.1", "asgi": {"version": "3.0"},
        }  # fmt: skip
        coming = [{"type": "http.request", "body": step.body, "more_body": False}]
        sent: list[Any] = []

        async def receive() -> Any:
            return coming.pop() if coming else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        head = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Reply(sent[0]["status"], head, b"".join(one.get("body", b"") for one in sent[1:]))


@dataclass
class Case:
    """What a seed says: records of both worlds, limits, what is asked, and whether runs read the same."""

    seed: int
    rows: list[str]
    unit: list[str]
    config: str
    planted: bool
    steps: list[Step]


def grow(seed: int) -> Case:
    """The case of a seed."""
    draw, planted = Random(seed), seed % 2 == 0
    pages = [f"p{number}" for number in range(draw.choice([1, 3, 9]))]

    def record(user: str, among: list[str]) -> str:
        return f"{user},{draw.choice(among)},{draw.choice(['', '0', '7', '50', '-3', '999'])}"

    rows = [record(f"u{draw.randrange(12)}", pages) for _ in range(draw.choice([0, 3, 40]))]
    unit = [record("unit", [*pages, "new", ""]) for _ in range(draw.choice([1, 2, 12]))]
    memory = draw.choice([1, 30_000, 10**8, draw.randrange(20_000, 400_000)])
    config = CONFIG.format(bound=draw.choice([1, 4, 20]), memory=memory, held=draw.choice([1, 3, 64]))
    return Case(seed, rows, unit, config, planted, grown(draw, planted=planted))


@contextmanager
def worlds(case: Case) -> Iterator[tuple[World, World, dict[str, str]]]:
    """Both servers, and tokens that hold at both."""
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name,
        ExitStack() as held,
    ):
        one, other = Path(name) / "one", Path(name) / "other"
        one.mkdir()
        (one / "site.toml").write_text(case.config)
        (one / "script.py").write_text(SCRIPT)
        (one / "views.csv").write_text("\n".join(["user,page,size", *case.rows]) + "\n")
        _begin(one)
        tokens = _tokens(one)
        shutil.copytree(one, other)
        (other / "views.csv").write_text("\n".join(["user,page,size", *case.rows, *case.unit]) + "\n")
        held.enter_context(patch.object(Rehearsal, "insist", lambda *_: None))  # it knows no records, and takes half
        # A bin weighs a thousand times what it does: so few records decide what is kept, as many do at a server.
        held.enter_context(patch.object(Served, "size", property(lambda self: PLAN + 1_000 * self.measurement._size)))
        first = World(one)
        if case.planted:
            held.enter_context(_planted(first))
        yield first, World(other), tokens


def _begin(place: Path) -> None:
    """Make the ledgers, and charge nothing."""
    config = read(place / "site.toml")
    data = {name: structs.replace(one, dataflow=None, meanings={}) for name, one in config.data.items()}
    opened(structs.replace(config, data=data, fit={}))


def _tokens(place: Path) -> dict[str, str]:
    store, day = Tokens(place / "tokens"), dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
    result = {"nobody": "wpinq_0123456789abcdef_" + "x" * 43}
    for name, (cap, data) in WHO.items():
        if cap is not None:
            for one in data:
                path = place / ("ledger" if one == "views" else one)
                Ledger.existing(path).cap(name, Fraction(cap), Fraction("1/500") if path.name == "ledger" else None)
        result[name] = store.make(name, data, day, curator=name == "boss")[0]
    return result


@contextmanager
def _planted(one: World) -> Iterator[None]:
    """Let runs of other servers read the records of this one: all else sees its own."""
    read_, own = DataSet.batches, {name: sources(data.views._node)[0] for name, data in one.catalogue.data.items()}

    def batches(self: DataSet, *given: Any, **more: Any) -> Any:
        theirs = own.get(self.name)
        if theirs is not None and self.ledger is not theirs.ledger and not isinstance(self.reader, Kept):
            self = replace(self, reader=theirs.reader)
        return read_(self, *given, **more)

    with patch.object(DataSet, "batches", batches):
        yield


def judge(case: Case) -> list[str]:
    """What differs between the worlds and must not."""
    logging.disable(logging.CRITICAL)
    try:
        with worlds(case) as (one, other, tokens):
            return asyncio.run(_compared(case, one, other, tokens))
    finally:
        logging.disable(logging.NOTSET)


async def _compared(case: Case, one: World, other: World, tokens: dict[str, str]) -> list[str]:
    known: list[str] = []
    for number, given in enumerate(case.steps):
        if given is REPLACED:
            for world in (one, other):
                world.replace_file()
            continue
        step = given.of(known)
        replies = [await world.ask(step, tokens) for world in (one, other)]
        seen = [seen_of(step, reply, whole=case.planted) for reply in replies]
        if seen[0] != seen[1]:
            return [f"step {number}: {step}", *(str(each)[:600] for each in seen)]
        found = re.search(rb'"name":"(asked\.[0-9a-f]+)"', replies[0].body)
        if found and found[1].decode() not in known:
            known.append(found[1].decode())
    charged = [
        str([(row.kind, row.label, row.analyst, row.epsilon) for row in data.ledger.entries() if not row.internal])
        for data in (world.catalogue.data["views"] for world in (one, other))
    ]
    return [] if charged[0] == charged[1] else ["the ledgers' rows differ", *charged]


def seen_of(step: Step, reply: Reply, *, whole: bool) -> tuple[Any, ...]:
    """What must be equal of an answer."""
    headers = {name: value for name, value in reply.headers.items() if name != "set-cookie"}
    if whole:
        return reply.status, headers, TIME.sub(b"", reply.body)
    headers.pop("content-length", None)
    if reply.status != 200 or not headers.get("content-type", "").startswith("application/json"):
        return reply.status, headers, b"" if reply.status == 200 else TIME.sub(b"", reply.body)
    body = json.loads(TIME.sub(b"", reply.body))
    if step.path.startswith("/api/fits/"):
        return reply.status, headers, sorted(body)
    noisy = {name: _masked(body[name]) for name in ("values", "rows", "intervals") if name in body}
    return reply.status, headers, json.dumps({**body, **noisy})


def _masked(value: Any) -> Any:
    """Without its numbers."""
    if isinstance(value, list):
        return [_masked(one) for one in value]
    return type(value).__name__ if isinstance(value, (int, float)) and not isinstance(value, bool) else value


FUZZER = Fuzzer("served", grow, judge, PLANTS)
