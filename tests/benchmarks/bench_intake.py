"""How many requests an intake makes durable in a second, beside the same server that drops them.

python tests/benchmarks/bench_intake.py [--seconds 10] [--connections 64]
"""

from __future__ import annotations

import datetime as dt
import http.client
import json
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from flags import flags

from wpinq.apps.publish import Release
from wpinq.apps.publish.intake import Intake
from wpinq.apps.publish.stream import schema_of
from wpinq.apps.serve.intake import of_release

PROCESSES = 2
"""Of clients, which share the cores with the server."""
FILE = {
    "data": {"listen": "127.0.0.1:0", "columns": {"install": "text", "feature": "text"}, "ledger": "ledger",
             "unit": {"column": "install", "at_most": 10}},
    "intake": {"requests": 0}, "budget": {"epsilon": 1},
    "question": [{"name": "f", "counts": ["feature"], "keys": ["a"], "epsilon": 1}],
    "sink": [{"directory": "out/{date}"}],
}  # fmt: skip


class Dropping(Intake):
    """One that says that it has kept what it did not keep."""

    def take(self, *_: object) -> None:
        """Nothing."""


def client(port: int, number: int, until: float, took: list[float]) -> None:
    """Send one record after another over one connection, and one where the time has passed before it began."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    sent = 0
    while not sent or time.time() < until:
        body = json.dumps({"install": f"{number} {sent}", "feature": "a"})
        began = time.perf_counter()
        connection.request("POST", "/", body, {"Idempotency-Key": "1"})
        response = connection.getresponse()
        response.read()
        assert response.status == 204
        took.append(time.perf_counter() - began)
        sent += 1


def clients(port: int, first: int, connections: int, until: float) -> list[float]:
    """Some connections of one process; how long each request took."""
    took: list[float] = []
    threads = [
        threading.Thread(target=client, args=(port, first + number, until, took)) for number in range(connections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took


def measured(kind: type[Intake], home: Path, seconds: float, connections: int) -> tuple[float, float, float]:
    """Requests in a second, and how long they took: half of them at most, and 99 of 100."""
    file = Release(FILE, "bench", home).file
    intake = kind(file, "bench", home, schema_of(file.data, home))
    intake.hold(dt.datetime.now(dt.UTC))
    with of_release(file, schema_of(file.data, home), intake, lambda: dt.datetime.now(dt.UTC)) as place:
        port, each = place.getsockname()[1], connections // PROCESSES
        until = time.time() + 2 + seconds  # processes take two seconds to begin
        with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
            found = [pool.submit(clients, port, 10**6 * number, each, until) for number in range(PROCESSES)]
            took = [one for some in found for one in some.result()]
    intake.release()
    took.sort()
    return len(took) / seconds, took[len(took) // 2], took[int(len(took) * 0.99)]


def main() -> None:
    """Measure both."""
    words = flags(__doc__, "a second of each, over four connections")
    words.add_argument("--seconds", type=float, default=10)
    words.add_argument("--connections", type=int, default=64)
    given = words.parse_args()
    if given.smoke:
        given.seconds, given.connections = 1, 4
    for name, kind in (("held durably", Intake), ("dropped", Dropping)):
        with tempfile.TemporaryDirectory() as home:
            rate, half, most = measured(kind, Path(home), given.seconds, given.connections)
        print(f"{name:13} {rate:7,.0f} requests/s, median {1000 * half:.1f} ms, p99 {1000 * most:.1f} ms")


if __name__ == "__main__":
    main()
