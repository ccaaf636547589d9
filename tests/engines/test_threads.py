"""Keyed steps in several threads: the same histogram, bit for bit, in any number of them."""

import datetime as dt
import tempfile
import threading
import time

import numpy as np
import polars as pl
import pytest
from algebra import STEPS, UNITS, apply, source
from depth import thin

import wpinq
from wpinq.core.engines import local, shards, threads
from wpinq.core.engines.job import Job, Lowered
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.operators.shave_by import Thicknesses
from wpinq.core.plan.node import sources
from wpinq.core.plan.shapes import Keyed
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.state import memory, workers, write_buffer
from wpinq.core.state.pointwise import Pointwise
from wpinq.errors import EngineError

pytest.importorskip("bytewax", reason="needs bytewax")
from wpinq.core.engines.bytewax import flow

DRAW = np.random.default_rng(5)
PAIRS = [[tuple(pair) for pair in DRAW.integers(-1, 4, (50, 2)).tolist()] for _ in range(2)]
DAY = dt.datetime(2026, 11, 1)
VIEWS = pl.DataFrame(
    {
        "user": DRAW.choice(["ann", "bob", "cy", "dee", "a person with a long name", None], 400),
        "page": DRAW.choice(["", "a", "b", "c", None], 400),
        "at": [DAY + dt.timedelta(hours=int(hours)) for hours in DRAW.integers(0, 90, 400)],
    }
)
PEOPLE = [
    wpinq.users("user", at_most=2),
    wpinq.users("user", shared=True),
    wpinq.users("page", at_most=5, per=("user", 2)),
    wpinq.users("user", at_most=3, per=("page", 2), period="1d", at="at"),
]


def counted(collection, count, monkeypatch, pieces=7, limit=""):
    """The content of a plan's histogram, its keyed steps in so many threads, which begin with the first record."""
    monkeypatch.setenv(memory.MEMORY, limit)
    monkeypatch.setenv(memory.SPILL, tempfile.gettempdir())
    monkeypatch.setattr(threads, "WORTH", count)
    monkeypatch.setattr(threads, "LOT", 40 * count)
    monkeypatch.setattr(flow, "cores", lambda: count)
    monkeypatch.setattr(write_buffer, "cores", lambda: count)
    monkeypatch.setattr(threads, "FEW", -1)
    monkeypatch.setattr(write_buffer, "FEW", 5)
    absorb = threads.Threads.absorb

    def in_pieces(self, port, batch):
        for frame in batch.frame.iter_slices(pieces):
            absorb(self, port, type(batch)(frame, batch.schema))

    monkeypatch.setattr(threads.Threads, "absorb", in_pieces)
    root = fit_noise(collection._node)
    found = flow.run(Job([root], sources(root)[0].identity_key))[0].content()
    monkeypatch.undo()
    return found


def people(unit):
    return wpinq.protect(VIEWS, budget=10, unit=unit, secret=Secret(bytes(32)), name="v", version="1")


@thin(16)
@pytest.mark.parametrize("name", sorted(STEPS | UNITS))
def test_every_step_says_the_same_in_any_number_of_threads(name, monkeypatch):
    plan = apply(name, *(source(side, fine=False, records=rows) for side, rows in zip("lr", PAIRS, strict=True)))
    one, *others = [counted(plan, count, monkeypatch) for count in (1, 2, 7)]
    others.append(counted(plan, 3, monkeypatch, limit="3000"))  # what is bounded by memory goes to disk
    assert all(np.array_equal(*pair) for other in others for pair in zip(one, other, strict=True))


@thin(4)
@pytest.mark.parametrize("unit", PEOPLE, ids=str)
def test_people_have_the_same_records_in_any_number_of_threads(unit, monkeypatch):
    views = people(unit)
    for plan in (views, views.map("page"), views.map(lambda user, page: (user, page)).distinct().map("page")):
        one, *others = [counted(plan, count, monkeypatch, pieces=20) for count in (1, 2, 7)]
        others.append(counted(plan, 3, monkeypatch, limit="3000"))  # some parts go to disk in the middle, some at once
        assert len(one[1])
        assert all(np.array_equal(*pair) for other in others for pair in zip(one, other, strict=True))


def test_large_files_are_cut_into_more_parts_and_small_ones_take_no_memory_for_them(monkeypatch):
    """Into so many that two at once take half of the memory at the most, while records take 16 times their files."""
    monkeypatch.setenv(memory.MEMORY, str(10**9))
    plan = Lowered(Job([people(PEOPLE[0])._node], bytes(16)))
    (shape,) = [shape for shape in plan.shapes.values() if isinstance(shape, Keyed)]
    sizes = {None: threads.PARTS, 0: 2, 10 * threads.BYTES: 10, 10**9: threads.PARTS, 10**10: 640, 10**15: 1024}
    assert {size: threads.state_of(shape, bytes(16), 2, size)._count for size in sizes} == sizes
    for size in (10**9, 10**10):
        assert 2 * threads.WIDER * size / threads.state_of(shape, bytes(16), 2, size)._count <= 10**9 / 2


def begun_before_the_end(views, monkeypatch, most=10**9):
    """How many of 16 parts took records in before all had come, the most that was held, and what was counted."""
    held, early, last = [], [], threads.Threads.last
    with monkeypatch.context() as patch:
        for name, value in {"FEW": 0, "WORTH": 1, "LOT": 2000, "PARTS": 16}.items():
            patch.setattr(threads, name, value)
        patch.setattr(shards, "PIECE", 500)
        patch.setenv(memory.MEMORY, str(most))
        patch.setattr(threads, "LIMIT", limit := memory.Memory())

        def noted(self):
            self._workers.finish()
            early.append(sum(part._begun for part in self._parts))
            held.append(limit._held)
            return last(self)

        patch.setattr(threads.Threads, "last", noted)
        unit = wpinq.users("user", at_most=2)
        plan = wpinq.protect(views, budget=9, unit=unit, secret=Secret(bytes(32)), name="v", version="v").map("page")
        content = local.run(Job([fit_noise(plan._node)], bytes(16)), threads=2)[0].content()
    assert limit._held == 0
    return early[0], held[0], [part.tolist() for part in content]


def test_records_wait_where_they_take_less_than_in_a_state_and_are_taken_in_where_they_repeat(monkeypatch):
    """Of different records one part for each doubling is begun; of equal ones nearly all are, and little is held."""
    rows = np.arange(20_000) * 7919 % 20_000
    different = pl.DataFrame({"user": [f"person {row // 3}" for row in rows], "page": rows})
    equal = pl.DataFrame({"user": [f"person {row % 251}" for row in rows], "page": rows % 251})
    waiting, expected = [begun_before_the_end(views, monkeypatch) for views in (different, equal)]
    assert waiting[0] <= 7
    assert expected[0] >= 12
    assert expected[1] < waiting[1] / 2
    for views, (_, _, counted_before) in ((different, waiting), (equal, expected)):
        begun, held, content = begun_before_the_end(views, monkeypatch, 200_000)
        assert content == counted_before
        assert begun == 16, "what does not fit in half of memory goes to disk"
        assert held <= 200_000


def address(frame):
    return frame["page"].to_numpy(allow_copy=False).ctypes.data


def test_what_waits_for_a_part_lies_in_memory_of_its_own():
    """Pieces of one cut share its memory, so that it would be held until the last part has taken in its own."""
    schema, size = Schema((Column("page", Kind.INT),)), threads.PIECES
    frame = pl.DataFrame({"page": np.arange(40 * size), WEIGHT: np.ones(40 * size, np.int64)})
    begin = address(frame)
    pile = threads.Pile()
    for piece in frame.iter_slices(20):  # two lots of pieces, which leave nothing behind
        pile.add(Batch(piece, schema))
    assert [len(batch) for batch in pile._batches] == [20 * size] * 2
    assert not pile._pieces
    for batch in pile._batches:
        assert not begin <= address(batch.frame) < begin + 8 * frame.height
    pile.add(Batch(frame.head(3), schema))
    whole = pile.take()
    assert whole.frame.equals(pl.concat([frame, frame.head(3)]))
    assert not pile._batches
    assert not pile._pieces


def test_each_state_has_the_records_of_its_keys_in_one_thread_at_a_time_and_threads_end(monkeypatch):
    used, busy, absorb = set(), set(), Pointwise.absorb

    def noted(self, port, batch):
        assert self not in busy
        busy.add(self)
        used.update((value, id(self), threading.get_ident()) for value in batch.frame["a"].unique())
        time.sleep(0.001)
        absorb(self, port, batch)
        busy.remove(self)

    monkeypatch.setattr(Pointwise, "absorb", noted)
    monkeypatch.setattr(threads, "FEW", -1)
    monkeypatch.setattr(flow, "cores", lambda: 3)
    before = threading.active_count()
    numbers = source("l", fine=False, records=[(number % 40, 0) for number in range(2000)])
    root = fit_noise(numbers.distinct()._node)
    flow.run(Job([root], sources(root)[0].identity_key))
    assert len({(value, state) for value, state, _ in used}) == 40
    assert 3 < len({state for _, state, _ in used}) <= threads.PARTS
    assert len({thread for *_, thread in used}) > 1
    for _ in range(500):
        if threading.active_count() <= before:
            return
        time.sleep(0.01)
    pytest.fail("threads are left")


def test_sums_of_several_threads_are_those_of_one(monkeypatch):
    """Also where they are asked for and go on, and where sums of distinct identities come between."""
    monkeypatch.setattr(write_buffer, "FEW", 5)
    schema, found = Schema((Column("page", Kind.INT),)), []
    for count in (1, 2, 3, 7):
        rng, tally, taken = np.random.default_rng(6), write_buffer.Tally(schema, bytes(16), count), []
        for _ in range(3):
            for size in (3, 9, 200, 1):
                rows = {"page": rng.integers(0, 300, size), WEIGHT: rng.integers(-2, 4, size)}
                tally.absorb(Batch(pl.DataFrame(rows), schema))
            tally.add(np.arange(8, dtype=np.uint64).reshape(4, 2), np.ones(4, np.int64))
            taken.extend(tally.take())
        found.append(taken)
    assert all(np.array_equal(*pair) for other in found[1:] for pair in zip(found[0], other, strict=True))


def test_a_failure_of_a_thread_that_adds_up_is_raised_when_the_sums_are_asked_for(monkeypatch):
    monkeypatch.setattr(write_buffer, "FEW", -1)
    schema = Schema((Column("page", Kind.INT),))
    tally = write_buffer.Tally(schema, bytes(16), 2)
    tally.absorb(Batch(pl.DataFrame({"other": [1], WEIGHT: [1]}), schema))
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        tally.take()


def test_few_records_start_no_thread(monkeypatch):
    monkeypatch.setattr(flow, "cores", lambda: 3)
    monkeypatch.setattr(workers, "ThreadPoolExecutor", None)
    root = fit_noise(source("l", fine=False, records=PAIRS[0]).distinct()._node)
    assert len(flow.run(Job([root], sources(root)[0].identity_key))[0].content()[1]) == len(set(PAIRS[0]))


def test_no_thread_of_ours_calls_a_function_of_the_user(monkeypatch):
    used, called = set(), Thicknesses.apply_many

    def noted(self, *given):
        used.add(threading.current_thread().name)
        return called(self, *given)

    monkeypatch.setattr(Thicknesses, "apply_many", noted)
    monkeypatch.setattr(threads, "FEW", -1)
    monkeypatch.setattr(flow, "cores", lambda: 3)
    root = fit_noise(apply("shave: by record", source("l", fine=False, records=PAIRS[0]))._node)
    flow.run(Job([root], sources(root)[0].identity_key))
    assert used
    assert not [name for name in used if name.startswith("wpinq")]


def test_a_failure_in_a_thread_names_the_step_and_nothing_of_the_data(monkeypatch):
    def broken(self, port, batch):
        raise ValueError(f"the record {batch.frame.rows()}")

    monkeypatch.setattr(Pointwise, "absorb", broken)
    monkeypatch.setattr(threads, "FEW", -1)
    monkeypatch.setattr(flow, "cores", lambda: 2)
    root = fit_noise(source("l", fine=False, records=PAIRS[0]).distinct()._node)
    with pytest.raises(EngineError, match=r"^distinct failed with ValueError; please report this.$") as caught:
        flow.run(Job([root], sources(root)[0].identity_key))
    assert caught.value.__cause__ is None and caught.value.__context__ is None
