"""One server for all tests of a file, and a clock that stands."""

import datetime as dt
import threading

import pytest
from serving import serving, written

from wpinq.apps.serve import turning


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with serving(written(tmp_path_factory.mktemp("site"))) as asker:
        yield asker


class Clock:
    """A clock that stands until it is set."""

    def __init__(self):
        self.now, self.looked = dt.datetime.now(dt.UTC), threading.Semaphore(0)

    def __call__(self):
        self.looked.release()
        return self.now

    def set(self, now):
        """Set it, and wait until it was looked at and what follows from it is done."""
        self.now = now
        for _ in range(3):
            while self.looked.acquire(blocking=False):
                pass
            assert self.looked.acquire(timeout=30)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(turning, "clock", clock)
    monkeypatch.setattr(turning, "EVERY", 0.01)
    return clock
