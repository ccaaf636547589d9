"""Telemetry that users accept: 5,000 installs say which features they use, a day closes, a page shows it.

python -m examples.telemetry OUT

Each made-up install sends what it used by one POST, with a key by which the server knows it again; one in ten sends
it twice, as whoever got no answer does. The records lie encrypted beside the ledger until the day is over. Then each
install is counted once for each feature, at epsilon 1, of 10 features at most; `OUT/public/index.html` shows the table,
and the records, their keys, and the noise are destroyed. The truth stands beside the answers, since it is made up.

The clock is set by hand here. On a server, `wpinq publish follow telemetry.toml` does all of this, day by day.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import http.client
import json
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np

from wpinq.apps.publish import Release
from wpinq.apps.serve.intake import of_release

FEATURES = [f"feature {number:02}" for number in range(20)] + ["rare plugin", "nobody has this"]
FILE = """
[data]
listen = "127.0.0.1:0"           # on a server a port, behind a proxy that speaks TLS
columns = { install = "text", feature = "text" }
unit = { column = "install", at_most = 10, per = { feature = 1 } }
ledger = "ledger"
[intake]
requests = 0                     # all installs of the example have one address
[budget]
epsilon = 1
per = "day"                      # and what one install did in another day is another day's
[[question]]
name = "features"
sql = "SELECT feature, COUNT(DISTINCT install) AS installs FROM data GROUP BY feature ORDER BY installs DESC"
keys = "features.csv"
epsilon = 1
plot = false
[page]
title = "What is used"
words = "Which features were used on a day, by how many installs. Of single installs nothing is kept."
[[sink]]
directory = "public/{date}"
"""
DAY = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)


def made_up(installs: int) -> list[list[str]]:
    """The features that each install used."""
    rng = np.random.default_rng(7)
    shares = [*(0.8 * 0.8**number for number in range(20)), 0.004, 0.0]
    used = rng.random((installs, len(FEATURES))) < shares
    return [[FEATURES[place] for place in np.flatnonzero(row)] for row in used]


def send(port: int, installs: list[tuple[int, list[str]]]) -> None:
    """Send what installs used, each by one POST of JSON lines; one in ten twice."""
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        for number, used in installs:
            lines = [json.dumps({"install": f"install {number}", "feature": feature}) for feature in used]
            for _ in range(1 + (number % 10 == 0) if lines else 0):
                connection.request("POST", "/", "\n".join(lines), {"Idempotency-Key": "2026-11-20"})
                response = connection.getresponse()
                response.read()
                assert response.status == 204, response.status


def main() -> None:
    """Tell the day."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="A directory for all of it.")
    parser.add_argument("--installs", type=int, default=5000)
    given = parser.parse_args()
    out, now = given.out, [DAY]
    out.mkdir(parents=True, exist_ok=True)
    (out / "telemetry.toml").write_text(FILE)
    (out / "features.csv").write_text("\n".join(["feature", *FEATURES, ""]))
    used, began = made_up(given.installs), time.monotonic()
    release = Release.read(out / "telemetry.toml", clock=lambda: now[0])
    with closing(release.follow()) as follower:
        assert follower.intake is not None
        with of_release(release.file, follower.schema, follower.intake, follower.clock) as place:
            port, shares = place.getsockname()[1], [list(enumerate(used))[part::4] for part in range(4)]
            threads = [threading.Thread(target=send, args=(port, share)) for share in shares]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        print(f"{given.installs:,} installs were heard in {time.monotonic() - began:.0f} seconds.")
        now[0] = DAY + dt.timedelta(days=1)
        for outcome in follower.step():
            print(getattr(outcome, "done", outcome))
    truth = Counter(feature for own in used for feature in own)
    with (out / "public" / "2026-11-20" / "features.csv").open() as file:
        for row in csv.DictReader(file):
            name, noisy = row["feature"], float(row["installs"])
            ends = f"between {row['installs_low']} and {row['installs_high']}"
            print(f"{name:16} {noisy:7,.0f}   {ends}, true {truth[name]:,}")
    print(f"\nThe page is {out / 'public' / 'index.html'}.")
    left = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    keys = list((out / "ledger.intake" / "telemetry" / "keys").glob("2026-11-20*"))
    print(f"Of installs and keys {'nothing' if b'install 7' not in left and not keys else 'SOMETHING'} is left.")


if __name__ == "__main__":
    main()
