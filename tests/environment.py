"""The environment variables of a test process are at the end of each file what they were at its beginning.

Found: a file that set WPINQ_SECRET and left it let those fail that a worker happened to run after it. Libraries add
variables of their own when they begin (Airflow, Spark); these stay.
"""

import os

import pytest

OF_PYTEST = "PYTEST_CURRENT_TEST"


def variables():
    """All but the one that pytest sets for each test."""
    return {name: value for name, value in os.environ.items() if name != OF_PYTEST}


class Environment:
    """Fails the last test of a file that leaves another environment, and puts the old one back for the next file."""

    def __init__(self):
        self._before = variables()

    def pytest_collection_finish(self):
        self._before = variables()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item, nextitem):
        result = yield
        if nextitem is None or nextitem.path != item.path:
            now, before = variables(), self._before
            changed = sorted(name for name in {*now, *before} if now.get(name) != before.get(name)
                             and (name in before or name.startswith("WPINQ")))  # fmt: skip
            for name in changed:
                os.environ.pop(name, None)
            os.environ.update(before)
            assert not changed, f"{item.path.name} leaves {changed} changed; monkeypatch.setenv puts them back"
        return result
