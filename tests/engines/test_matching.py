"""Records that meet nobody do not reach a semijoin, and its answer is the same with them."""

import random

import pytest
from strategies import expected, protected, run_flow, same

from wpinq.core.engines import local
from wpinq.core.engines.job import Job
from wpinq.core.plan.node import sources
from wpinq.core.state.bykey import ByKey
from wpinq.testing import evaluate

pytest.importorskip("bytewax", reason="needs bytewax")
from wpinq.core.engines.bytewax import flow

EDGES = random.Random(1).sample([(a, b) for a in range(30) for b in range(30)], 60)


def closed(records):
    edges = protected(records, src="integer", dst="integer").distinct()
    paths = edges.join(edges, left="dst", right="src", result=lambda src, dst, dst_2: (src, dst, dst_2))
    return paths.semijoin(edges, left=["src", "dst_2"], right=["src", "dst"])


@pytest.mark.parametrize("engine", [flow, local])
def test_paths_that_no_edge_closes_are_dropped_on_the_way(engine, monkeypatch):
    plan, taken = closed(EDGES), []
    absorb = ByKey.absorb

    def counted(self, port, batch):
        if len(self._ports[0].keys) == 2:
            taken.append((port, len(batch)))
        absorb(self, port, batch)

    monkeypatch.setattr(ByKey, "absorb", counted)
    engine.run(Job([plan._node], sources(plan._node)[0].identity_key))
    every = [(a, d) for a, b in EDGES for c, d in EDGES if b == c]
    kept = [ends for ends in every if ends in EDGES]
    assert sum(rows for port, rows in taken if port == 0) == len(kept) < len(every)
    assert sum(rows for port, rows in taken if port == 1) == len(EDGES)


def test_the_answer_is_the_same():
    plan = closed(EDGES)
    assert same(run_flow(plan), plan._node, expected(plan, dict.fromkeys(EDGES, 1)))


def test_null_meets_null_and_what_others_read_is_kept():
    left, right = protected(user="text", page="text").distinct(), protected(user="text").distinct()
    kept = left.semijoin(right, on="user")
    records = [("ann", "a"), (None, "b"), ("bob", "c")]
    assert evaluate(kept, records, [(None,), ("ann",)]) == {("ann", "a"): 1, (None, "b"): 1}
    assert evaluate(kept.concat(left), records, [("ann",)]) == {("ann", "a"): 2, (None, "b"): 1, ("bob", "c"): 1}
