"""Which engine runs a plan: bytewax, or a plain loop for small files and where bytewax cannot be installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from wpinq.core.engines import local
from wpinq.core.engines.installed import installed
from wpinq.core.engines.job import Job, Live
from wpinq.core.engines.reading import THREADED
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node
from wpinq.core.state.histogram import Histogram


def finite(read: Sequence[DataSet]) -> Callable[[Job], list[Histogram]]:
    """What runs plans over these data sets."""
    sizes = [data.reader.total_bytes for data in read]
    if sum(THREADED if size is None else size for size in sizes) < THREADED:  # nothing that a thread would read ahead
        return partial(local.run, threads=1)
    if not installed():
        return local.run
    from wpinq.core.engines.bytewax import flow

    return flow.run


def live(roots: Sequence[Node], key: bytes) -> Live:
    """What keeps plans up to date, epoch by epoch."""
    if not installed():
        return local.LiveLoop(roots, key)
    from wpinq.core.engines.bytewax.live import LiveFlow

    return LiveFlow(roots, key)
