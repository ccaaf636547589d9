"""What counting may hold in memory, and what waits on disk: no answer changes, and nothing is left behind."""

import os
import signal
import stat
import subprocess
import sys

import polars as pl
import pytest

import wpinq
from wpinq.core import kernels
from wpinq.core.engines import local, shards, threads
from wpinq.core.engines.job import Job
from wpinq.core.kernels import partitions, sums
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.operators.contribution.reservoirs import Reservoirs
from wpinq.core.state import memory
from wpinq.errors import EngineError, PlanError

ROWS = pl.DataFrame({"page": [f"page {i * 7919 % 60_001}" for i in range(90_000)]})


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """What a test says of memory ends with it."""
    for name in (memory.MEMORY, memory.SPILL):
        monkeypatch.setenv(name, "")


def answers(frame):
    pages = wpinq.protect(frame, budget=9, secret=Secret(bytes(range(32))), name="views", version="v")
    cdf, views = pages.shave().map(lambda page, index: index).measure(1), pages.measure(1)
    return [*cdf.observe_many(range(1, 30)), *views.observe_many([f"page {i}" for i in range(500)])]


@pytest.mark.skipif(kernels.LIB is None, reason="pages are kernels")
def test_answers_are_the_same_from_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "urandom", bytes)  # ledgers of one name, so that both have the same noise
    expected, written = answers(ROWS), []
    monkeypatch.setattr(sums, "LARGE", 11)
    monkeypatch.setattr(sums, "LARGEST", 11)
    monkeypatch.setattr(partitions, "BITS", 4)
    monkeypatch.setattr(partitions, "ARENA", 64)
    monkeypatch.setenv(memory.MEMORY, str(10**6))
    monkeypatch.setenv(memory.SPILL, str(tmp_path))
    write, mapped = memory.Scratch.write, memory.Scratch.mapped
    monkeypatch.setattr(memory.Scratch, "write", lambda *given: written.append("pages") or write(*given))
    monkeypatch.setattr(memory.Scratch, "mapped", lambda *given: written.append("result") or mapped(*given))
    held = memory.LIMIT._held
    assert answers(ROWS) == expected
    assert {*written} == {"pages", "result"}
    assert memory.LIMIT._held == held
    assert not list(tmp_path.iterdir())


def people(size, monkeypatch, memory_limit="", lot=1):
    """What is counted of some people's sample, the most that was held, and what each part held."""
    views = pl.DataFrame({"user": [f"person {i * 7919 % (size // 3)}" for i in range(size)], "page": range(size)})
    plan = wpinq.protect(views, budget=9, unit=wpinq.users("user", at_most=2), secret=Secret(bytes(32)), version="v")
    monkeypatch.setattr(threads, "FEW", 0)
    monkeypatch.setattr(threads, "WORTH", 20)
    monkeypatch.setattr(threads, "LOT", lot)
    monkeypatch.setattr(shards, "PIECE", 2000)
    monkeypatch.setenv(memory.MEMORY, memory_limit)
    monkeypatch.setattr(threads, "LIMIT", memory.Memory())
    held, parts, absorb = [], {}, Reservoirs.absorb

    def noted(self, port, batch):
        absorb(self, port, batch)
        held.append(threads.LIMIT._held)
        parts[self] = self.size

    with monkeypatch.context() as patch:
        patch.setattr(Reservoirs, "absorb", noted)
        found = local.run(Job([plan._node], bytes(16)), threads=2)[0].content()
    assert threads.LIMIT._held == 0
    return [item.tolist() for item in found], max(held), [*parts.values()]


@pytest.mark.skipif(kernels.LIB is None, reason="reservoirs are kernels")
def test_people_are_bounded_within_memory_part_by_part(monkeypatch, tmp_path):
    """However many records there are: what is held is within the limit, and a part is a small share of the rest."""
    monkeypatch.setenv(memory.SPILL, str(tmp_path))
    written, write = [], memory.Scratch.write
    monkeypatch.setattr(memory.Scratch, "write", lambda self, pages, at: written.append(self) or write(self, pages, at))
    for size in (6_000, 24_000):
        expected, _, parts = people(size, monkeypatch)
        whole = sum(parts)
        assert not written
        found, held, parts = people(size, monkeypatch, "300000")
        assert found == expected
        assert written
        assert held <= 300_000 < whole
        assert max(parts) < 4 * whole / threads.PARTS
        waited, held, _ = people(size, monkeypatch, "300000", 1 << 20)  # an eighth waits before it is taken in
        assert waited == expected
        assert held <= 300_000
        content = os.pread(written[-1]._file, 10**6, 0)
        assert len(content) > 10_000
        assert b"person" not in content
        written.clear()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(kernels.LIB is None, reason="reservoirs are kernels")
def test_a_disk_that_is_full_is_told_where_people_are_bounded(monkeypatch, tmp_path):
    monkeypatch.setenv(memory.SPILL, str(tmp_path / "gone"))
    with pytest.raises(EngineError, match="gone: what does not fit in memory"):
        people(6_000, monkeypatch, "1")


@pytest.mark.skipif(kernels.LIB is None, reason="pages are kernels")
def test_a_disk_that_is_full_is_told_without_a_count(monkeypatch, tmp_path):
    monkeypatch.setattr(sums, "LARGE", 11)
    monkeypatch.setattr(sums, "LARGEST", 11)
    monkeypatch.setattr(partitions, "ARENA", 64)
    monkeypatch.setattr(partitions, "BITS", 4)
    monkeypatch.setenv(memory.MEMORY, "1")
    monkeypatch.setenv(memory.SPILL, str(tmp_path))

    def full(*_):
        raise OSError(28, "No space left on device")

    for broken in (full, lambda _, pages, *_place: pages[0].nbytes):
        monkeypatch.setattr(memory.os, "pwritev", broken)
        with pytest.raises(EngineError, match="cannot be written there; make room") as caught:
            answers(ROWS)
        assert str(tmp_path) in str(caught.value)
        assert "\n" not in str(caught.value)
    monkeypatch.setenv(memory.SPILL, str(tmp_path / "gone"))
    with pytest.raises(EngineError, match="gone: what does not fit in memory"):
        answers(ROWS)


def test_what_waits_on_disk_has_no_name_and_nobody_else_may_read_it(tmp_path):
    scratch = memory.Scratch(str(tmp_path))
    scratch.write([memoryview(b"identities")] * 600, 0)
    page = bytearray(10)
    scratch.read([memoryview(page)], 10)
    assert page == b"identities"
    with pytest.raises(EngineError, match="cannot be read"):
        scratch.read([memoryview(page)], 6_000)
    assert not list(tmp_path.iterdir())
    status = os.fstat(scratch._file)
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_nlink == 0


def test_nothing_is_left_by_a_process_that_is_killed(tmp_path):
    code = f"""
from wpinq.core.operators.contribution.reservoirs import Reservoirs
from wpinq.core.state import memory
scratch = memory.Scratch({str(tmp_path)!r})
scratch.write([memoryview(bytes(4096))] * 99, 0)
print("written", flush=True)
input()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"written\n"
        child.send_signal(signal.SIGKILL)
    assert not list(tmp_path.iterdir())


def test_rows_wait_beside_the_ledger(tmp_path, monkeypatch):
    limit = memory.Memory()
    limit.beside(tmp_path / "ledger")
    limit.beside(None)
    assert limit.scratch()._folder == str(tmp_path)
    monkeypatch.setenv(memory.SPILL, str(tmp_path.parent))
    assert limit.scratch()._folder == str(tmp_path.parent)


@pytest.mark.parametrize(
    ("most", "size"), [(10**9, 10**9), ("8GB", 8 * 10**9), ("500 mb", 5 * 10**8), ("0.5TB", 5 * 10**11)]
)
def test_sizes(most, size, tmp_path):
    wpinq.limit_memory(most, spill=tmp_path)
    assert os.environ[memory.MEMORY] == str(size)
    assert os.environ[memory.SPILL] == str(tmp_path)
    assert memory.Memory().take(size)
    assert not memory.Memory().take(size + 1)


@pytest.mark.parametrize("most", ["", "GB", "8XB", "much", "-8GB", "1e400GB", "nan", 5, "99MB", 1.5, True])
def test_what_is_no_size_is_refused(most):
    with pytest.raises(PlanError, match="limit_memory") as caught:
        wpinq.limit_memory(most)
    assert "\n" not in str(caught.value)
    assert not os.environ[memory.MEMORY]


def test_a_place_that_is_none_is_refused(tmp_path):
    with pytest.raises(PlanError, match="no such directory"):
        wpinq.limit_memory("1GB", spill=tmp_path / "none")
    assert not os.environ[memory.MEMORY]


def test_half_of_the_memory_by_default():
    limit = memory.Memory()
    assert limit.take(10**8)
    assert not limit.take(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


@pytest.mark.skipif(kernels.LIB is None, reason="numbers are kernels")
@pytest.mark.parametrize("most", [None, 300_000])
def test_different_records_are_bounded_within_memory_part_by_part(most, monkeypatch, tmp_path):
    """Those of `distinct`, whose columns are held too: beyond the limit they wait on disk, where nobody reads them."""
    monkeypatch.setenv(memory.SPILL, str(tmp_path))
    written, write = [], memory.Scratch.write
    monkeypatch.setattr(memory.Scratch, "write", lambda self, pages, at: written.append(self) or write(self, pages, at))
    pairs = wpinq.protect(
        ROWS.with_row_index().head(24_000), budget=9, secret=Secret(bytes(32)), version="v"
    ).distinct()
    plan = pairs.map("page")._node
    expected = [part.tolist() for part in local.run(Job([plan], bytes(16)), threads=1)[0].content()]
    assert not written
    for name, value in {"FEW": 0, "WORTH": 20, "LOT": 1}.items():
        monkeypatch.setattr(threads, name, value)
    monkeypatch.setattr(shards, "PIECE", 2000)
    monkeypatch.setenv(memory.MEMORY, str(most or ""))
    monkeypatch.setattr(threads, "LIMIT", memory.Memory())
    assert [part.tolist() for part in local.run(Job([plan], bytes(16)), threads=2)[0].content()] == expected
    assert bool(written) == bool(most)
    assert threads.LIMIT._held == 0
    assert all(b"page" not in os.pread(file._file, 10**7, 0) for file in written[-1:])
