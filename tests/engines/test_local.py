"""Small files are run in a plain loop; wherever tests run a plan on bytewax, `run_flow` holds the loop to it too."""

import sys

import numpy as np
import pytest

import wpinq
from wpinq.engines import flow, local
from wpinq.engines.job import Job
from wpinq.engines.reading import THREADED
from wpinq.plan.node import sources

ROWS = "user,page\n" + "".join(f"user{i % 7},page{i % 11}\n" for i in range(500))


@pytest.fixture
def views(tmp_path):
    (tmp_path / "views.csv").write_text(ROWS)
    return wpinq.protect(tmp_path / "views.csv", budget=10)


def job(collection):
    return Job([collection._node], sources(collection._node)[0].identity_key)


def test_only_small_files_fit(views, tmp_path):
    small, table = sources(views._node), sources(wpinq.protect([("ann", "home")], budget=1)._node)
    assert local.fits(small)
    assert local.fits([*small, *small])
    assert not local.fits([*small, *table]), "how large a table or a database is, is not asked"
    with (tmp_path / "views.csv").open("a") as file:
        file.write("x" * THREADED)
    assert not local.fits(sources(wpinq.protect(tmp_path / "views.csv", budget=10, version="grown")._node))


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
            patch.setattr(sys.modules["wpinq.operators.slices"].Slices, part, broken)
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
