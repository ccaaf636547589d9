"""Requests that schemathesis makes of the server's own OpenAPI description: none fails inside, all are as described.

python tests/benchmarks/fuzz_serve.py [--smoke] [--cases 100000] [--seed 1] [--schemathesis COMMAND]

It needs `schemathesis` (4 or later), which is no dependency: install it in an environment of its own and name its
command. Without it there is nothing to do. In every second round the description has the names of data sets, columns
and measurements, so that requests get past what looks names up. The server counts all of them, by status.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from flags import flags
from serving import CONFIG, serving, written

from wpinq.apps.serve import app, middleware

QUERIES = [
    "SELECT COUNT(*) FROM views", "SELECT page, COUNT(*) AS c FROM views GROUP BY page",
    "SELECT SUM(size), AVG(size) FROM views WHERE page <> 'p1'", "SELECT COUNT(DISTINCT user) FROM views",
]  # fmt: skip
COSTS = {"epsilon": ["0.001"], "within": [None], "delta": [None], "name": [None, "x"]}
KNOWN = {
    "Table": {"name": ["views", "hidden"]},
    "Column": {"name": ["page", "user", "size"]},
    "Constant": {"type": ["integer", "text", "boolean"]},
    "Do": {"name": ["lower", "add", "lt", "eq", "len", "slice", "part", "replace", "and"]},
    "Chosen": {"names": [["page"], ["user"], ["user", "page"]]},
    "Traced": {"reads": [["page"], ["size"]], "names": [["a"], ["a", "b"]]},
    "Written": {"text": ["page", "size > 3", "upper(page) AS p"]},
    "Sql": {"query": QUERIES, **COSTS, "keys": [None, ["p1"]], "bounds": [{"size": [0, 9]}]},
    "WindowsAsked": {"table": ["views"], "after": [None, "2026-11-21T09"]},
    "Observe": {"bins": [["p1"], [1, 2], []], "range": [{"first": 1, "last": 50}]},
    "Measure": {**COSTS, "rho": [None]},
    "Cap": {"data": ["views"], "analyst": ["ann", "fuzzer"], "cap": [10, "1/2", None]},
}
"""What the server knows, by class and field."""
PATHS = {"name": ["views.pages", "views.cdf", "hidden.pages", "degrees", "daily"], "id": ["0123456789abcdef"],
         "period": ["2026-11-21T09"], "file": ["views.csv", "evidence.json", "../ledger"]}  # fmt: skip
LEFT_OUT = ("negative_data_rejection", "positive_data_acceptance", "unsupported_method", "use_after_free",
            "ensure_resource_availability", "object_level_authorization")  # fmt: skip
"""Checks that want what no description says: which data are right is for budgets to say."""


def told(description):
    """The description, in which some fields are what the server knows, and nothing else."""
    for name, schema in description["components"]["schemas"].items():
        for field, values in KNOWN.get(name, {}).items():
            if field in schema.get("properties", {}):
                schema["properties"][field] = {"enum": values}
    for operations in description["paths"].values():
        for operation in operations.values():
            for one in operation.get("parameters", ()):
                one["schema"] = {"enum": PATHS[one["name"]]}
    return description


class Counting:
    """An application, and how often it has given each status."""

    def __init__(self, app):
        self.app, self.found, self.failed = app, Counter(), []

    async def __call__(self, scope, receive, send):
        async def counted(message):
            if message["type"] == "http.response.start":
                self.found[message["status"]] += 1
                if message["status"] >= 500:
                    self.failed.append((scope["method"], scope["path"]))
            await send(message)

        await self.app(scope, receive, counted)


def main():
    options = flags(__doc__)
    options.add_argument("--cases", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--each", type=int, default=500, help="cases of one operation in one round")
    options.add_argument("--schemathesis", default=shutil.which("schemathesis"))
    given = options.parse_args()
    if given.schemathesis is None:
        print("schemathesis is not installed, so nothing was asked; --schemathesis names its command")
        return 0
    cases, each = (500, 20) if given.smoke else (given.cases, given.each)
    made, application = [], app.application
    app.application = lambda *of: made.append(Counting(application(*of))) or made[0]
    middleware.GUESSES = 10**9  # else most of what comes with a wrong token is refused for that
    limits = "\n[limits]\nrequests = 100000000\nwaiting = 64\n"
    bad = 0
    with tempfile.TemporaryDirectory() as folder, serving(written(Path(folder), CONFIG + limits)) as site:
        token = site.token("fuzzer", 900, curator=True)
        revoke, name = site.tokens.revoke, token.split("_", 2)[1]
        site.tokens.revoke = lambda one: None if one == name else revoke(one)  # it finds its own name in what is told
        own = site.ask(None, "GET", "/api/openapi.json").body
        places = [Path(folder) / name for name in ("openapi.json", "known.json")]
        places[0].write_text(json.dumps(own))
        places[1].write_text(json.dumps(told(own)))
        rounds, begun, found = 0, time.perf_counter(), made[0].found
        while found.total() < cases:
            command = [
                given.schemathesis, "run", str(places[rounds % 2]), "--url", site.url,
                "-H", f"Authorization: Bearer {token}", "--checks", "all", "--exclude-checks", ",".join(LEFT_OUT),
                "--max-examples", str(each), "--seed", str(given.seed + rounds), "--continue-on-failure",
                "--suppress-health-check", "all", "--no-color", "--warnings", "off",
                "--phases", "examples,coverage,fuzzing" if not rounds else "fuzzing",
            ]  # fmt: skip
            done = subprocess.run(
                command, check=False, text=True, capture_output=True, cwd=folder, env={**os.environ, "CI": "1"}
            )
            rounds += 1
            if done.returncode:
                bad += 1
                print(done.stdout[-20_000:], done.stderr[-2_000:])
            told_ = ", ".join(f"{status}: {count:,}" for status, count in sorted(found.items()))
            print(
                f"round {rounds}, {time.perf_counter() - begun:,.0f} s: {found.total():,} requests ({told_})",
                flush=True,
            )
        print(
            f"{len(made[0].failed)} failed inside {set(made[0].failed) or ''}; {bad} rounds found what is not described"
        )
    return int(bool(made[0].failed or bad))


if __name__ == "__main__":
    sys.exit(main())
