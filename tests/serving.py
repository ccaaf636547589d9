"""A server on a free port of this machine, and what asks it."""

import datetime as dt
import http.client
import json
import re
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlencode

import processes

from wpinq.apps.serve import rehearsal
from wpinq.apps.serve.app import runner
from wpinq.apps.serve.catalogue import opened
from wpinq.apps.serve.config import read
from wpinq.apps.serve.run import listening
from wpinq.apps.serve.tokens import Tokens
from wpinq.core.ledger import Ledger

CONFIG = """
[server]
port = 0

[data.views]
source = "views.csv"
ledger = "ledger"
budget = 1000
delta = 1e-3
unit = { column = "user", at_most = 4 }
columns = { user = "str", page = "str", size = "int" }
dataflow = "script.py"
meanings = { pages = "Views of each page" }
bounds = { size = [0, 100] }

[data.hidden]
source = "views.csv"
ledger = "ledger.hidden"
budget = 10
dataflow = "script.py"

[fit.degrees]
data = "views"
cdf = "cdf"
sequence = "sequence"
"""
SCRIPT = """
import wpinq
def dataflow(views):
    pages = views.map(lambda page: page)
    return {
        "pages": pages.measure(epsilon=1, name="pages"),
        "cdf": wpinq.degrees.cdf(pages).measure(epsilon=1, name="cdf"),
        "sequence": wpinq.degrees.sequence(pages).measure(epsilon=1, name="sequence"),
    }
"""


@dataclass
class Answer:
    status: int
    body: object
    headers: dict
    raw: bytes


@dataclass
class Asker:
    """A running server, and how to ask it."""

    place: Path
    port: int
    catalogue: object
    tokens: Tokens
    room: object = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def token(self, analyst="ann", cap=None, data=("views",), **more):
        if cap is not None:
            Ledger.existing(self.place / "ledger").cap(analyst, cap)
        expires = dt.datetime.now(dt.UTC) + more.pop("lasts", dt.timedelta(days=1))
        return self.tokens.make(analyst, data, expires, **more)[0]

    def ask(self, token, method, path, body=None, *, headers=None, raw=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        more = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            connection.request(method, path, content, {**more, **(headers or {})})
            found = connection.getresponse()
            content = found.read()
        finally:
            connection.close()
        return Answer(found.status, json.loads(content or b"null"), dict(found.getheaders()), content)


class Visitor:
    """A browser without scripts."""

    def __init__(self, site, token=None):
        self.site, self.token, self.cookie, self.headers = site, token, "", {}
        if token is not None:
            self.entered = self.post("/sign-in", token=token)
            self.cookie = self.entered.headers.get("set-cookie", "").partition(";")[0]

    def ask(self, method, path, content=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=30)
        more = {"Cookie": self.cookie} if self.cookie else {}
        try:
            connection.request(method, path, content, {**more, **self.headers, **headers})
            found = connection.getresponse()
            found.raw = found.read()
        finally:
            connection.close()
        plain = "text/" in found.headers.get("content-type", "") and "content-encoding" not in found.headers
        found.text = found.raw.decode() if plain else ""
        return found

    def get(self, path, **given):
        return self.ask("GET", f"{path}?{urlencode(given)}" if given else path)

    def post(self, path, **given):
        return self.ask("POST", path, urlencode(given), **{"Content-Type": "application/x-www-form-urlencoded"})

    def form(self):
        return re.search(r'name="form" value="([^"]+)"', self.get("/").text)[1]


@contextmanager
def serving(place, config="site.toml"):
    """A server in a thread, which ends with the block."""
    read_ = read(place / config)
    catalogue, tokens = opened(read_), Tokens(place / read_.server.tokens)
    listener = listening(read_.server)
    server = runner(catalogue, tokens)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        with patch.object(rehearsal, "Popen", processes.Popen):
            yield Asker(place, listener.getsockname()[1], catalogue, tokens, listener.room)
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


def written(place, config=CONFIG, rows=400):
    lines = [f"u{number % 150},p{number % 7},{number % 50}" for number in range(rows)]
    (place / "views.csv").write_text("\n".join(["user,page,size", *lines]) + "\n")
    (place / "script.py").write_text(SCRIPT)
    (place / "site.toml").write_text(config)
    return place
