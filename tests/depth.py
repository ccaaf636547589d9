"""How deep the tests go: `WPINQ_TESTS` is the way that conftest.py tells of.

Each guarantee is tried in a plain run. What only repeats it - more examples, seeds, names, moments of a kill - is
left to `WPINQ_TESTS=deep`, which takes what the plain run left out and nothing else. `all` and `search` take both.

- `@deep`: a test that says what others say in less time, of more or at greater length. It runs in the deep run alone.
- `@thin(n)`: of the cases of a test every n-th runs in a plain run, the others in the deep one.
- `often(times)`: how many of so many examples are taken. Tests that call it are in both runs: those of Hypothesis by
  themselves, others are marked `@deeper`; without the mark the call fails, so that none is forgotten in the deep run.
"""

import os
from functools import cache
from pathlib import Path

import pytest

WAY = os.environ.get("WPINQ_TESTS", "same")
DEEP = WAY != "same"
deep, deeper, thin = pytest.mark.deep, pytest.mark.deeper, pytest.mark.thin
running: list[pytest.Item] = []
"""The test that runs."""


def often(times: int, plain: int | None = None) -> int:
    """How many of so many examples are taken: all, or an eighth, but five at the least; or as many as are named."""
    if running and WAY != "all" and not in_both(running[-1]):
        raise RuntimeError(f"{running[-1].nodeid} goes deeper in the deep run: mark it with @deeper.")
    return times if DEEP else plain or max(times // 8, min(times, 5))


def in_both(item: pytest.Item) -> bool:
    """Whether a test runs in the plain run and again, deeper, in the deep one."""
    return item.get_closest_marker("deeper") is not None or hasattr(getattr(item, "obj", None), "hypothesis")


@cache
def may_go_deeper(path: Path) -> bool:
    """Whether a file may hold what the deep run takes: it names this module, or Hypothesis. It imports no other."""
    text = path.read_text() if path.suffix == ".py" else ""
    return path.name.startswith("test_") and ("depth" in text or "hypothesis" in text)


def chosen(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Those tests that run in this way, and the others.

    Raises:
        RuntimeError: The deep run takes one of them, and would not look into its file.
    """
    place: dict[str, int] = {}
    runs: tuple[list[pytest.Item], list[pytest.Item]] = [], []
    for item in items:
        name = item.nodeid.partition("[")[0]
        place[name] = place.get(name, -1) + 1
        mark = item.get_closest_marker("thin")
        plain = item.get_closest_marker("deep") is None and (mark is None or place[name] % mark.args[0] == 0)
        if (not plain or in_both(item)) and not may_go_deeper(item.path):
            raise RuntimeError(f"{item.nodeid}: the deep run reads no file that names neither depth nor hypothesis.")
        wanted = {"same": plain, "deep": not plain or in_both(item)}.get(WAY, True)
        runs[not wanted].append(item)
    return runs
