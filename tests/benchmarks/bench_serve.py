"""Concurrent observes of a server, beside the same server answering a constant. Loopback only.

python tests/benchmarks/bench_serve.py [--smoke] [--clients 10000] [--each 2]

The server runs in a process of its own, the clients in this one, over connections that stay open: all of them are
opened first, then each asks so many times, one after another. Times are from the request's first byte to the answer's
last; with all clients at once they are mostly waiting for others, so p99 is also told for few clients.
"""

import asyncio
import contextlib
import datetime as dt
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from flags import flags
from serving import CONFIG, written

SERVER = """
import sys
from pathlib import Path
from starlette.responses import Response
from starlette.routing import Route
from wpinq.apps.serve import app
from wpinq.apps.serve import run
from wpinq.apps.serve.catalogue import opened
from wpinq.apps.serve.config import read
from wpinq.apps.serve.app import serve
from wpinq.apps.serve.run import listening
from wpinq.apps.serve.tokens import Tokens
from wpinq.apps.serve.operations import Operation

async def constant(call):
    return CONSTANT

CONSTANT = {"values": [0], "half_width": 1.0, "level": 0.95}
app.OPERATIONS = (*app.OPERATIONS, Operation("POST", "/api/constant", dict, constant, dict))
run.IDLE = run.HEAD = 600
config = read(Path(sys.argv[1]))
catalogue = opened(config)
place = listening(config.server)
print(place.getsockname()[1], flush=True)
serve(catalogue, Tokens(Path(config.home) / config.server.tokens), place)
"""


class Client(asyncio.Protocol):
    """One connection, which sends the same request again and again."""

    def __init__(self, request, each, took, done):
        self._request, self._left, self._took, self._done = request, each, took, done

    def connection_made(self, transport):
        self._transport = transport

    def ask(self):
        self._data, self._begun = b"", time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data):
        self._data += data
        head, found, body = self._data.partition(b"\r\n\r\n")
        if not found:
            return
        size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(body) < size:
            return
        assert head.startswith(b"HTTP/1.1 200"), self._data[:300]
        self._took.append(time.perf_counter() - self._begun)
        self._left -= 1
        if self._left:
            self.ask()
        else:
            self._done()

    def connection_lost(self, error):
        if self._left:
            self._done()

    def close(self):
        self._transport.close()


async def load(port, request, clients, each):
    """The times of all answers, and how long all took."""
    took, left, ended = [], clients, asyncio.Event()

    def done():
        nonlocal left
        left -= 1
        if not left:
            ended.set()

    loop, made = asyncio.get_running_loop(), []
    for at in range(0, clients, 200):
        some = range(at, min(at + 200, clients))
        made += await asyncio.gather(
            *(loop.create_connection(lambda: Client(request, each, took, done), "127.0.0.1", port) for _ in some)
        )
    begun = time.perf_counter()
    for _, client in made:
        client.ask()
    await ended.wait()
    whole = time.perf_counter() - begun
    for _, client in made:
        client.close()
    return sorted(took), whole


def request(token, path, body):
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def cpu(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    from wpinq.apps.serve.tokens import Tokens

    options = flags(__doc__)
    options.add_argument("--clients", type=int, default=10_000)
    options.add_argument("--each", type=int, default=2)
    given = options.parse_args()
    clients, each = (50, 2) if given.smoke else (given.clients, given.each)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, clients + 1_000)), hard))
    with tempfile.TemporaryDirectory() as folder:
        place = written(Path(folder), CONFIG + "\n[limits]\nrequests = 10000000\nseconds = 120\n")
        process = subprocess.Popen([sys.executable, "-c", SERVER, str(place / "site.toml")], stdout=subprocess.PIPE)
        try:
            port = int(process.stdout.readline())
            tokens = Tokens(place / "tokens")
            token, _ = tokens.make("bench", ["views"], dt.datetime.now(dt.UTC) + dt.timedelta(1))
            asked = {
                "observe": request(token, "/api/measurements/views.pages/observe", {"bins": ["p1"]}),
                "a constant": request(token, "/api/constant", {"bins": ["p1"]}),
            }
            for number in (min(20, clients), clients):
                for name, content in asked.items():
                    before = cpu(process)
                    took, whole = asyncio.run(load(port, content, number, each if number == clients else 50 * each))
                    spent = (cpu(process) - before) / len(took) * 1e6
                    p50, p99 = (took[min(len(took) - 1, int(share * len(took)))] * 1e3 for share in (0.5, 0.99))
                    assert len(took) == (each if number == clients else 50 * each) * number, "some were not answered"
                    print(
                        f"{number:6,} at once, {name:10}: {len(took):7,} answers, {len(took) / whole:7,.0f} a second,"
                        f" p50 {p50:8.1f} ms, p99 {p99:8.1f} ms, {spent:5.0f} us of CPU each"
                    )
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.stdout.close()


if __name__ == "__main__":
    main()
