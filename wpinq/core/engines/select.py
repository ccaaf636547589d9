"""Which engine runs a plan: bytewax, or a plain loop.

The loop runs small files, all where bytewax cannot be installed, and plans in which a step with a state reads what
another one makes, such as `distinct` of a join. bytewax takes what a step says at its end as a whole; the loop hands it
on piece by piece, so that memory never holds all pairs of a join.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from wpinq.core.engines import installed
from wpinq.core.engines.job import Job, Live, Lowered
from wpinq.core.engines.reading import THREADED
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node
from wpinq.core.state.histogram import Histogram


def finite(read: Sequence[DataSet]) -> Callable[[Job], list[Histogram]]:
    """What runs plans over these data sets."""
    sizes = [data.reader.total_bytes for data in read]
    if sum(THREADED if size is None else size for size in sizes) < THREADED:  # nothing that a thread would read ahead
        from wpinq.core.engines import local

        return partial(local.run, threads=1)
    return large


def large(job: Job) -> list[Histogram]:
    """Run plans over more than a little; see above."""
    plan = job.failure.guard("the dataflow", Lowered, None)(job)
    if not installed() or (plan is not None and plan.stacked):
        from wpinq.core.engines import local

        return local.run(job, plan)
    from wpinq.core.engines.bytewax import flow

    return flow.run(job, plan)


def live(roots: Sequence[Node], key: bytes) -> Live:
    """What keeps plans up to date, epoch by epoch."""
    if not installed():
        from wpinq.core.engines import local

        return local.LiveLoop(roots, key)
    from wpinq.core.engines.bytewax.live import LiveFlow

    return LiveFlow(roots, key)
