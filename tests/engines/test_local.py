"""Small files are run in a plain loop; wherever tests run a plan on bytewax, `run_flow` holds the loop to it too."""

import shutil
import sys

import numpy as np
import polars as pl
import processes
import pytest
from depth import deep

import wpinq
from wpinq.core import engines
from wpinq.core.engines import local, select
from wpinq.core.engines.job import Job
from wpinq.core.engines.reading import THREADED
from wpinq.core.plan.node import sources
from wpinq.core.records.batch import Batch

pytest.importorskip("bytewax", reason="needs bytewax")
from wpinq.core.engines.bytewax import flow
from wpinq.core.engines.bytewax.live import LiveFlow

ROWS = "user,page\n" + "".join(f"user{i % 7},page{i % 11}\n" for i in range(500))


@pytest.fixture
def views(tmp_path):
    (tmp_path / "views.csv").write_text(ROWS)
    return wpinq.protect(tmp_path / "views.csv", budget=10)


def job(collection):
    return Job([collection._node], sources(collection._node)[0].identity_key)


def test_only_small_files_fit(views, tmp_path):
    small, table = sources(views._node), sources(wpinq.protect([("ann", "home")], budget=1)._node)
    assert select.finite(small) is not select.large
    assert select.finite([*small, *small]) is not select.large
    assert select.finite([*small, *table]) is select.large, "how large a table or a database is, is not asked"
    with (tmp_path / "views.csv").open("a") as file:
        file.write("x" * THREADED)
    grown = wpinq.protect(tmp_path / "views.csv", budget=10, version="grown")
    assert select.finite(sources(grown._node)) is select.large


def test_what_two_steps_with_a_state_make_of_each_other_goes_through_the_loop_piece_by_piece(views, monkeypatch):
    """bytewax would hold all pairs of a join at once; of one such step it is the engine."""
    ran = []
    monkeypatch.setattr(flow, "run", lambda job, plan: ran.append("bytewax"))
    monkeypatch.setattr(local, "run", lambda job, plan: ran.append("loop"))
    pages, pairs = views.map("page"), views.join(views, on="user")
    for plan in (pages, pages.distinct(), pairs, pages.concat(pages.distinct()), pairs.map("page"), views.distinct()):
        select.large(job(plan))
    assert ran == ["bytewax"] * 6
    ran.clear()
    for plan in (pairs.distinct(), pairs.map("page").shave(), views.distinct().join(views, on="user")):
        select.large(job(plan))
        select.large(Job([pages._node, plan._node], job(plan).key))
    assert ran == ["loop"] * 6


def test_steps_that_are_shared_run_once_and_all_roots_are_answered(views):
    pages = views.map("page")
    roots = [pages._node, pages.shave().map("index")._node, views.join(views, on="user", result="page")._node]
    both = [engine.run(Job(roots, sources(roots[0])[0].identity_key)) for engine in (flow, local)]
    for one, other in zip(*both, strict=True):
        assert all(np.array_equal(*pair) for pair in zip(one.content(), other.content(), strict=True))


@pytest.mark.parametrize("engine", [flow, local])
def test_a_failure_names_the_step_and_nothing_of_the_data(engine, views, monkeypatch):
    """A state that fails on the way in, one that fails on the way out, and a file that cannot be read."""
    plan = views.map("page").shave()
    name = plan._node.title

    def broken(*_, **__):
        raise ValueError("page3")

    for part in ("absorb", "emit"):
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules["wpinq.core.operators.slices"].Slices, part, broken)
            with pytest.raises(wpinq.EngineError) as told:
                engine.run(job(plan))
        assert str(told.value) == f"{name} failed with ValueError; please report this."
        assert told.value.__context__ is told.value.__cause__ is None
    with monkeypatch.context() as patch:
        patch.setattr(type(sources(plan._node)[0]), "batches", broken)
        with pytest.raises(wpinq.EngineError, match=r"^reading views\.csv failed with ValueError"):
            engine.run(job(plan))


@pytest.mark.parametrize("engine", [flow, local])
def test_an_interrupt_ends_the_run(engine, views, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(sources(views._node)[0]), "batches", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.run(job(views))


def test_epochs_in_a_loop_are_those_of_bytewax():
    """States that answer each change: five epochs of random records, signed where the plan allows it."""
    views = wpinq.live({"user": "text", "page": "text"}, budget=10)
    pages = views.map("page")
    plans = [
        pages, pages.shave(), views.group_by("user", len), views.join(views, on="user", result="page"),
        pages.union(views.map("user AS page")), views.distinct().limit("user", 2), pages.shave().map("index").shave(),
    ]  # fmt: skip
    roots, data = [plan._node for plan in plans], sources(views._node)[0]
    flowing, looping, rng = (
        LiveFlow(roots, data.identity_key),
        local.LiveLoop(roots, data.identity_key),
        np.random.default_rng(5),
    )
    moved = [0] * len(plans)
    for _ in range(5):
        frame = pl.DataFrame({"user": rng.integers(0, 9, 60).astype(str), "page": rng.integers(0, 5, 60).astype(str)})
        items = [(data, Batch.of(frame, data.reader.schema))]
        for number, (one, other) in enumerate(zip(flowing.push(items), looping.push(items), strict=True)):
            assert all(np.array_equal(*pair) for pair in zip(one.content(), other.content(), strict=True))
            moved[number] += one.content()[0].size
    assert all(moved)
    for engine in (flowing, looping):
        engine.close()
        with pytest.raises(wpinq.EngineError, match="has ended"):
            engine.push(items)
    views.close()


WITHOUT = """
import sys
if {without}:
    sys.modules["bytewax"] = None
import polars as pl
import wpinq
rows = range(5000)
views = pl.DataFrame({{"user": [f"u{{i % 97}}" for i in rows], "page": [f"p{{i * i % 13}}" for i in rows]}})
unit = wpinq.users("user", at_most=3)
finite = wpinq.protect(views, budget=3, ledger="finite", version="1", unit=unit)
print(finite.map("page").shave().measure(epsilon=1).observe_many([("p1", 1), ("p3", 2)]).tolist(), finite.left)
live = wpinq.live({{"user": "text", "page": "text"}}, 3, ledger="live", recover="epochs", unit=unit)
total = live.map("page").measure(epsilon=1, continual=True)
while live.epoch < {last}:
    live.send(views[live.epoch * 99 : live.epoch * 99 + 99])
    live.advance()
print(total.observe_many(["p1", "p3", "none"]).tolist(), live.left)
live.close()
"""


@deep
def test_without_bytewax_the_answers_are_the_same_and_free(tmp_path):
    """One process pays and closes epochs with bytewax; of two copies of what it left, one goes on without."""

    def told(place, last, *, without):
        return processes.printed("-c", WITHOUT.format(last=last, without=without), fresh=True, cwd=place)

    (tmp_path / "with").mkdir()
    told(tmp_path / "with", 3, without=False)
    shutil.copytree(tmp_path / "with", tmp_path / "without")
    assert told(tmp_path / "with", 7, without=False) == told(tmp_path / "without", 7, without=True)


def test_without_bytewax_a_plain_loop_is_named(monkeypatch):
    monkeypatch.setattr(engines, "installed", lambda: False)
    assert "plain loop" in engines.engine_name()
