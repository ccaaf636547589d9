"""What doctests and tests share: fixed examples and fixed secrets."""

import gc
import os
import random
import shutil
import sys
import tempfile
from decimal import localcontext
from pathlib import Path

import _pytest.capture
import bytecode
import pytest
from _pytest.doctest import DoctestModule
from depth import WAY, chosen, may_go_deeper, often, running
from environment import Environment
from hypothesis import HealthCheck, settings
from processes import STEM_OF_THIS
from stem import load_polars_with_one_thread

# No run is red by chance: examples and secrets are the same in every run of the same code, so a red run names a change.
# WPINQ_TESTS=deep takes what this leaves out (`depth.py`), `all` both. WPINQ_TESTS=search draws others in every run,
# ten times as many where a test does not say how many, and prints what repeats a failure. No slow machine fails a test.
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", RELAXED, derandomize=True, max_examples=often(100))
for way in ("deep", "all"):
    settings.register_profile(way, RELAXED, derandomize=True, max_examples=100)
settings.register_profile("search", RELAXED, derandomize=False, print_blob=True, max_examples=1000)
settings.load_profile(WAY)


def closed_by_its_maker(stream, close=_pytest.capture.EncodedFile.close):
    """Close a stream that pytest captures with, for pytest alone; for everybody else it stays open.

    Found: in some full runs such a stream was closed beneath pytest in the midst of tests/publish/test_intake.py, and
    every later test of that process ended in "I/O operation on closed file": at the first server of the process, whose
    library closed every handler of logs. It was not seen again since it does not.
    """
    if sys._getframe(1).f_code.co_filename == _pytest.capture.__file__:
        close(stream)


_pytest.capture.EncodedFile.close = closed_by_its_maker


class Chance:
    """In place of os.urandom in this process: in every run of a test the same secrets, and so the same noise.

    The modules `random` and `secrets` hold the function by a name of their own.
    """

    def __init__(self):
        self._drawn = random.Random(0)

    def __call__(self, size):
        return self._drawn.randbytes(size)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        self._drawn = random.Random(item.nodeid)
        random.seed(item.nodeid)


class Examples:
    """Only files that have an example are searched for one: to search the others was a quarter of all collection.

    The deep run imports no file that holds nothing for it, unless it is named: half of what is collected otherwise.
    """

    @staticmethod
    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(file_path, parent):
        collectors = yield
        named = any(str(file_path).endswith(argument.partition("::")[0]) for argument in parent.config.args)
        if WAY == "deep" and not named and not may_go_deeper(file_path):
            return []
        empty = ">>>" not in file_path.read_text() if file_path.suffix == ".py" else True
        return [found for found in collectors if not (empty and isinstance(found, DoctestModule))]


# Temporary files of tests lie in memory where there is room: most of what a ledger costs is waiting for the disk, and
# what a kill leaves behind is the same on either.
MEMORY, ROOM = Path("/dev/shm"), 4 << 30
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

bytecode.keep()

# Frames of ten rows are handed from thread to thread for longer than they are computed, a third of all processor time.
# So each of several workers has a pool of one thread, as copies of processes have; what is run alone has all of them.
if "PYTEST_XDIST_WORKER" in os.environ:
    load_polars_with_one_thread()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    items[:], left = chosen(items)
    # Tests of streams wait for clocks, leases and servers three quarters of their time. They come first, where other
    # workers compute meanwhile: at the end, where the longest were, one worker was busy half a minute after the others.
    items.sort(key=lambda item: "streaming" not in item.path.parts)
    config.hook.pytest_deselected(items=left)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    running.append(item)
    try:
        return (yield)
    finally:
        running.pop()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Little of what is made meanwhile is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    """What was loaded stays: to look for garbage in it again and again was a twelfth of all processor time.

    The collector looks through all again where a quarter more is there than at its last whole look. So there has to be
    one here, at what is most.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


def pytest_unconfigure():
    """At the end all is garbage, and DuckDB counts what is not collected; no process is copied any more."""
    gc.unfreeze()
    STEM_OF_THIS.end()


def pytest_configure(config):
    config.pluginmanager.register(Examples, "wpinq examples")
    config.pluginmanager.register(Environment(), "wpinq environment")
    bytecode.share(config)
    if WAY != "search":
        os.urandom = random._urandom = chance = Chance()
        config.pluginmanager.register(chance, "wpinq chance")


@pytest.fixture(scope="module")
def many_digits():
    """Decimals of 120 digits; other tests keep theirs, in whatever order they run."""
    with localcontext() as context:
        context.prec = 120
        yield


@pytest.fixture
def views_file(tmp_path):
    """Four views: three of "home", two of bob."""
    path = tmp_path / "views.csv"
    path.write_text("user,page\nann,home\nbob,home\nbob,news\ncid,home\n")
    return path


@pytest.fixture
def mortal():
    """A directory of somebody to whom permissions apply; whoever runs the tests is that somebody meanwhile."""
    place, root = Path(tempfile.mkdtemp(prefix="wpinq-")), os.geteuid() == 0
    if root:
        shutil.chown(place, "nobody")
        os.seteuid(place.stat().st_uid)
    yield place
    if root:
        os.seteuid(0)
    shutil.rmtree(place)
