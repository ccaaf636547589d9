"""A stream engineer counts views as they come: windows, totals so far, and a process that is killed.

python -m examples.stream_engineer OUT

A web server, made up here, appends 500 lines a second to its log. `wpinq run --follow` answers about it as JSON lines.
It is killed in the middle (`kill -9`) while the server goes on, and started again with the same command. It protects
what one visitor did in two seconds, as a service would protect an hour, so all windows cost epsilon 1 together. The
truth beside the answers is counted by the server; a real curator would not show it.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

PAGES = ["/", "/about", "/news", *(f"/article/{number}" for number in range(20))]
RATE, TICK, SPAN, LATENESS = 500, 0.1, 2, 3
FLOW = f'''
def dataflow(views):
    pages = views.window("{SPAN}s", at="time").map("page")
    return {{
        "window": pages.measure(epsilon=1),
        "so far": views.map("page").measure(epsilon=1, continual=True),
    }}
'''


class Server(threading.Thread):
    """Appends to a log at a rate until it is stopped, and counts what it appended."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self.log, self.stopped, self.truth = log, threading.Event(), Counter[tuple[str, str]]()
        log.touch()

    def run(self) -> None:
        """Append lines every tenth of a second."""
        rng = random.Random(7)
        weights = [1 / (number + 1) for number in range(len(PAGES))]
        while not self.stopped.wait(TICK):
            now, lines = dt.datetime.now(dt.UTC), []
            window = dt.datetime.fromtimestamp(now.timestamp() // SPAN * SPAN, dt.UTC).isoformat()
            for page in rng.choices(PAGES, weights, k=int(RATE * TICK)):
                host = f"10.0.{rng.randrange(8)}.{rng.randrange(250)}"
                lines.append(f'{host} - - [{now:%d/%b/%Y:%H:%M:%S +0000}] "GET {page} HTTP/1.1" 200 512\n')
                self.truth[window, page] += 1
            with self.log.open("a") as file:
                file.writelines(lines)


def command(out: Path) -> list[str]:
    """The same command each time."""
    people = ["--unit", "host", "--at-most", "5", "--period", f"{SPAN}s", "--at", "time"]
    kept = ["--budget", "2", "--ledger", str(out / "ledger"), "--recover", str(out / "epochs")]
    asked = ["--observe", "window=/,/about,/news", "--observe", "so far=/", "--json", str(out / "answers.jsonl")]
    paced = ["--follow", "--every", "0.5", "--lateness", str(LATENESS), "--status", str(out / "status")]
    return [sys.executable, "-m", "wpinq", "run", str(out / "flow.py"), str(out / "access.log"), *people, *kept, *asked,
            *paced]  # fmt: skip


def answers(out: Path) -> dict[str, dict[str, Any]]:
    """The answers so far, by key; a line that was cut off is none."""
    path = out / "answers.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return {one["key"]: one for one in (json.loads(line) for line in lines if line.endswith("\n"))}


def windows(told: dict[str, dict[str, Any]]) -> set[str]:
    """The windows that were answered."""
    return {one["window_start"] for one in told.values() if one["window_start"]}


def until(out: Path, many: int, process: subprocess.Popen[bytes]) -> dict[str, dict[str, Any]]:
    """Wait until so many windows are answered."""
    while len(windows(answers(out))) < many and process.poll() is None:
        time.sleep(0.1)
    return answers(out)


def main(out: Path) -> None:
    """Serve, answer, be killed, go on, and print the answers beside the truth."""
    (out / "flow.py").write_text(FLOW)
    server = Server(out / "access.log")
    server.start()
    first = subprocess.Popen(command(out))  # noqa: S603  our own command
    before = until(out, 2, first)
    first.kill()
    first.wait()
    print(f"killed after {len(windows(before))} windows; started again with the same command")
    second = subprocess.Popen(command(out))  # noqa: S603
    until(out, len(windows(before)) + 3, second)
    second.send_signal(signal.SIGTERM)
    code = second.wait()
    server.stopped.set()
    server.join()
    after = answers(out)
    kept = all(after[key]["value"] == one["value"] for key, one in before.items())
    print(f"ended with exit code {code}; answers of before are {'the same' if kept else 'OTHERS'}\n")
    print("window    page        answer            truth")
    for one in after.values():
        if (start := one["window_start"]) is not None:
            noisy = f"{one['value']:>7,} +- {one['half_width']:<3.0f}"
            print(f"{start[11:19]}  {one['bin']:<9}{noisy}{server.truth[start, one['bin']]:>10,}")
    status = json.loads((out / "status").read_text())
    spent, left = status["epsilon"]["spent"], status["epsilon"]["left"]
    print(f"\nEpsilon {spent:g} of {spent + left:g} is spent, as before the kill; ", end="")
    print(f"{status['dropped']} lines were dropped.")
    print(f"Windows and totals cost 1 each, and protect {one['protects']}.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="a new directory for the log, the ledger and the answers")
    options = parser.parse_args()
    options.out.mkdir(parents=True)
    main(options.out)
