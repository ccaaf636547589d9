"""Which engine runs a plan: bytewax, or a plain loop for small files and where bytewax cannot be installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.util import find_spec

from wpinq.core.engines import local
from wpinq.core.engines.job import Job, Live
from wpinq.core.engines.reading import THREADED
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node
from wpinq.core.state.histogram import Histogram


@cache
def installed() -> bool:
    """Whether bytewax is: it has no release for Python 3.13 and later."""
    return find_spec("bytewax") is not None


def engine_name() -> str:
    """The engine of large files and streams, in words."""
    return "bytewax" if installed() else "a plain loop in one process (bytewax needs Python 3.11 or 3.12)"


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
