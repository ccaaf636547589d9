"""A plan as tasks: the same histograms bit for bit in any number of parts, in any order, and where tasks run twice."""

from dataclasses import dataclass, field, replace
from functools import cache
from random import Random

import numpy as np
import polars as pl
import pytest
from depth import often, thin
from hypothesis import given, settings
from hypothesis import strategies as st

import wpinq
from wpinq.core.engines import local
from wpinq.core.engines.job import Job
from wpinq.core.engines.shards import split
from wpinq.core.engines.shuffle import stages
from wpinq.core.engines.shuffle import tasks as shuffle_tasks
from wpinq.core.engines.shuffle.content import pack, unpack
from wpinq.core.engines.shuffle.tasks import Item, Records, Task, Tasks
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.node import sources
from wpinq.core.records.batch import END, WEIGHT, Batch
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.state.states import Hashed
from wpinq.errors import EngineError

RECORDS = [(f"u{i % 97}", f"p{i * i % 1009 % (i % 50 + 1)}") for i in range(3000)]
PLANS = {
    "counts": lambda views: views.map("page"),
    "cdf": lambda views: wpinq.degrees.cdf(views.map("page")),
    "slices": lambda views: views.map("page").shave(),
    "pairs": lambda views: views.join(views, on="user").map("page"),
    "groups": lambda views: views.group_by("user", len),
    "people": lambda views: views.map("user").distinct(),
    "sums": lambda views: views.map("user").union(views.map("page").distinct()).concat(views.map("page")),
    "kept": lambda views: views.intersect(views.filter("page <> 'p1'")).semijoin(views, on="user"),
}


def planned(name, unit=None):
    """Some plans over people and records; the first histogram of each."""
    columns = {"user": str, "page": str}
    views = wpinq.protect(RECORDS, budget=1, columns=columns, unit=unit)
    root = fit_noise(PLANS[name](views)._node)
    return Job([root], sources(root)[0].identity_key)


def content(histograms):
    return [array.tolist() for one in histograms for array in one.content()]


@cache
def counted(name, unit):
    """A plan, and its histogram as it is counted at once."""
    job = planned(name, unit)
    return job, content(local.run(job))


@dataclass
class Unruly:
    """Runs tasks in any order, some of them twice, over items in any order."""

    loop: stages.Loop
    random: Random
    reads: bool
    ran: list = field(default_factory=list)

    def perform(self, tasks):
        tasks = list(tasks)
        self.random.shuffle(tasks)
        for task in tasks:
            outcomes = []
            for _ in range(self.random.choice([1, 2])):
                items = None if task.items is None else list(task.items)
                if items is not None:
                    self.random.shuffle(items)
                    items.sort(key=lambda item: item.shard)
                outcomes.append(list(self.loop.perform([replace(task, items=items)])))
                self.ran.append(task.step)
            yield from self.random.choice(outcomes)  # as when the first one's answer was lost

    def keep(self, kept):
        return kept

    def read(self, kept):
        return kept

    def travels(self, read):
        return self.reads


@thin(3)
@pytest.mark.parametrize("unit", [None, wpinq.users("user", at_most=5)], ids=["records", "people"])
@pytest.mark.parametrize("name", PLANS)
@settings(deadline=None, max_examples=often(6))
@given(
    parts=st.integers(1, 7),
    each=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    reads=st.booleans(),
    rows=st.sampled_from([50, 1 << 16]),
)
def test_tasks_twice_in_any_order_and_parts_give_the_same_histogram(name, unit, parts, each, seed, reads, rows):
    job, expected = counted(name, unit)
    before, shuffle_tasks.ROWS, shuffle_tasks.OF_SHARD = (shuffle_tasks.ROWS, shuffle_tasks.OF_SHARD), rows, 1
    try:
        tasks = Tasks(job, parts, each)
        unruly = Unruly(stages.Loop(tasks), Random(seed), reads)
        found = stages.run(tasks, unruly)
    finally:
        shuffle_tasks.ROWS, shuffle_tasks.OF_SHARD = before
    assert content(found) == expected
    assert len(unruly.ran) >= len(tasks.origins)


def test_plans_that_share_steps_share_tasks():
    views = wpinq.protect(RECORDS, budget=1, columns={"user": str, "page": str})
    roots = [fit_noise(PLANS[name](views)._node) for name in ("counts", "slices", "cdf", "kept")]
    job = Job(roots, sources(roots[0])[0].identity_key)
    assert content(stages.run_in_loop(job, 3)) == content(local.run(job))
    tasks = Tasks(job, 3)
    assert sorted(step for stage in tasks.stages() for step in stage) == list(range(len(tasks.origins)))
    assert len(list(tasks.stages())) > 2


WIDE = [2**100, -(2**90), 3]


def batches():
    names = Schema((Column("user", Kind.TEXT), Column("\0n", Kind.INT, ranged=True), Column("any", Kind.ANY)))
    frame = pl.DataFrame(
        {
            "user": ["a", None, "c"],
            "\0n": [0, 5, -3],
            "any": [b"x", b"", None],
            WEIGHT: [1, -2, 3],
            END + "\0n": [2, 6, 9],
        },
        schema_overrides={"any": pl.Binary},
    )
    yield Batch(frame, names)
    yield Batch(frame.with_columns(pl.Series(WEIGHT, WIDE, dtype=pl.Int128)), names)


@pytest.mark.parametrize("batch", list(batches()), ids=["narrow", "wide"])
def test_a_batch_travels_with_its_columns_and_weights(batch):
    found = unpack(pack(batch))
    assert found.schema == batch.schema
    assert found.frame.equals(batch.frame, null_equal=True)
    assert found.frame.schema == batch.frame.schema


@pytest.mark.parametrize("weights", [np.array([1, -2]), np.array(WIDE[:2], object)], ids=["narrow", "wide"])
def test_identities_and_steps_travel(weights):
    ids = np.array([[1, 2], [2**64 - 1, 2**63]], np.uint64)
    hashed = unpack(pack(Hashed(ids, weights)))
    assert (hashed.ids == ids).all()
    assert hashed.weights.tolist() == weights.tolist()
    assert hashed.weights.dtype == weights.dtype
    bins = unpack(pack((ids, weights)))
    assert [one.tolist() for one in bins] == [ids.tolist(), weights.tolist()]
    steps = unpack(pack((np.array([0, 4]), np.array([4, 9]), weights)))
    assert [one.tolist() for one in steps] == [[0, 4], [4, 9], weights.tolist()]


@pytest.mark.parametrize("damaged", [b"", b"{}\n", b'{"is": "other"}\n', b"no json\nx", b'{"is": "batch"}\nARROW1'])
def test_what_is_damaged_is_refused_without_a_word_of_it(damaged):
    with pytest.raises(EngineError, match="what a task sent is damaged; nothing was answered"):
        unpack(damaged)


@pytest.mark.parametrize(("distinct", "adds"), [(10, True), (10**6, False)])
def test_equal_records_are_added_up_only_where_that_shrinks_them(distinct, adds, monkeypatch):
    monkeypatch.setattr(shuffle_tasks, "ROWS", 1000)
    monkeypatch.setattr(shuffle_tasks, "OF_SHARD", 1)
    schema = Schema.of(user=Kind.INT)
    records = Records(("user",), bytes(16), 2)
    sent = []
    for start in range(0, 5000, 500):
        frame = pl.DataFrame({"user": [i * 2 // 2 % distinct for i in range(start, start + 500)]})
        sent += records.add(Batch.of(frame, schema))
    sent += records.rest()
    rows = sum(len(batch) for _, batch in sent)
    assert rows == (50 if adds else 5000)
    assert sum(int(batch.weights.sum()) for _, batch in sent) == 5000
    assert {shard for shard, _ in sent} == {0, 1}


def test_attack_44_which_shard_holds_a_record_is_secret_and_even():
    """Records chosen to collide under one key lie evenly under another."""
    schema = Schema.of(user=Kind.TEXT)
    users = pl.DataFrame({"user": [f"user{i}" for i in range(20_000)]})
    chosen = dict(split(Batch.of(users, schema), ["user"], bytes(16), 4))[0]
    again = split(Batch.of(chosen.frame, schema), ["user"], bytes(range(16)), 4)
    sizes = np.array([len(batch) for _, batch in again])
    assert abs(sizes - len(chosen) / 4).max() < 6 * np.sqrt(len(chosen) / 4)
    assert [number for number, _ in again] == [0, 1, 2, 3]


def test_a_failure_of_a_task_names_the_step_and_quotes_nothing(monkeypatch):
    views = wpinq.protect(RECORDS, budget=1, columns={"user": str, "page": str})
    root = fit_noise(views.map("page").shave()._node)
    tasks = Tasks(Job([root], sources(root)[0].identity_key), 2)
    keyed = len(tasks.origins) - 1
    with pytest.raises(wpinq.InternalError, match="was sent what it does not take in"):
        list(tasks.run(Task(keyed, 0, [Item(0, 0, (np.zeros((1, 2), np.uint64), np.array([1])))])))

    def failing(*_):
        raise ValueError("secret name")

    monkeypatch.setattr(Tasks, "_state", failing)
    with pytest.raises(wpinq.EngineError, match=r"shave\(\) failed with ValueError; please report") as failed:
        list(
            tasks.run(Task(keyed, 0, [Item(0, 0, Batch.of(pl.DataFrame({"page": ["a"]}), Schema.of(page=Kind.TEXT)))]))
        )
    assert "secret" not in str(failed.value)
    assert failed.value.__cause__ is None
