"""Publishing into PostgreSQL, killed (SIGKILL) before each word to the database, and run again: whole, and once.

Usage: kills_postgres.py URL DIRECTORY, which prints as JSON what was killed and what was wrong.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import signal
import sys
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from kills import DAY, NOW, ROOT, Steps, calm, ended, forked

PAGES = ["/p0", "/p1", "/p2"]


def child(home: Path, url: str, name: str, fatal: int) -> None:
    """Publish the day into tables of this name."""
    import adbc_driver_manager.dbapi as driver

    from wpinq.apps.publish import Release

    calm()
    steps = Steps(fatal)
    for owner, word in (("Cursor", "execute"), ("Cursor", "adbc_ingest"), ("Connection", "commit"),
                        ("Connection", "close")):  # fmt: skip
        steps.wrap(getattr(driver, owner), word, word)
    given: dict[str, Any] = {
        "data": {"source": f"{home.parent}/{{date}}.csv", "ledger": "ledger"}, "budget": {"epsilon": 5},
        "question": [{"name": "views", "counts": ["page"], "keys": PAGES, "epsilon": 2, "plot": False}],
        "sink": [{"postgres": url}],
    }  # fmt: skip
    release = Release(given, name, home, clock=lambda: NOW)
    done = release.run(DAY).done
    told = {
        "done": done,
        "steps": list(steps.done),
        "left": str(release.plan(DAY).left),
        "differs": release.verify(DAY),
    }
    (home / "said").write_text(json.dumps(told))
    (home / "modules").write_text("\n".join(sys.modules))


def seen(place: Path, url: str, name: str) -> None:
    """What readers see of tables of this name."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM information_schema.tables WHERE table_name = $1", (f"{name}_views",))
        there = cursor.fetchall() == [(1,)]
        cursor.execute(f"SELECT page, count FROM {name}_views ORDER BY page" if there else "SELECT 1 WHERE false")
        (place / "seen").write_text(json.dumps([list(row) for row in cursor.fetchall()]))


def main(url: str, place: Path) -> None:
    """Kill at each word, until there is none left."""
    log, wrong, killed = place / "log", list[str](), list[int]()
    (place / f"{DAY}.csv").write_text("user,page\n" + "".join(f"u{n},/p{n % 3}\n" for n in range(90)))

    def rows(name: str) -> Any:
        assert ended(forked(lambda: seen(place, url, name), log)) == 0, log.read_text()
        return json.loads((place / "seen").read_text())

    def publish(name: str, fatal: int) -> int:
        (place / name).mkdir(exist_ok=True)
        return ended(forked(lambda: child(place / name, url, name, fatal), log))

    assert publish("s0", 0) == 0, log.read_text()
    whole = rows("s0")
    for module in (place / "s0" / "modules").read_text().split():  # what is imported here, no child imports
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    for fatal in count(1):
        name = f"s{fatal}"
        code = publish(name, fatal)
        if code == 0:
            break
        wrong += [f"{fatal}: ended with {code}"] * (code != -signal.SIGKILL)
        wrong += [f"{fatal}: half published"] * (rows(name) not in ([], whole))
        wrong += [f"{fatal}: {log.read_text()[-500:]}"] * (publish(name, 0) != 0)
        told = json.loads((place / name / "said").read_text())
        wrong += [f"{fatal}: {told}"] * (rows(name) != whole or told["left"] != "3" or bool(told["differs"]))
        killed.append(fatal)
    json.dump({"killed": len(killed), "wrong": wrong}, sys.stdout)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main(sys.argv[1], Path(sys.argv[2]))
