"""Small files in a plain loop, without bytewax: loading an engine would take longer than the whole run.

The answers are those of every engine, bit for bit: contract tests run over all of them. Inputs come before the steps
that read them, so a state has taken in all records before it emits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from wpinq.engines.job import Job
from wpinq.engines.linear import StepBatches
from wpinq.engines.reading import THREADED, until_failure
from wpinq.engines.sharing import Lowered
from wpinq.plan.dataset import DataSet
from wpinq.plan.node import Node
from wpinq.plan.shapes import Keyed, Read
from wpinq.records.batch import Batch
from wpinq.state.histogram import Histogram
from wpinq.state.states import State

Take: TypeAlias = Callable[[Batch], None]


def fits(sources: Sequence[DataSet]) -> bool:
    """Whether the sources are files of less than 16 MB together, which no thread reads ahead."""
    sizes = [data.reader.total_bytes for data in sources]
    return sum(THREADED if size is None else size for size in sizes) < THREADED


def run(job: Job) -> list[Histogram]:
    """Read the sources once and compute the histograms of all roots.

    Raises:
        SourceError: A source could not be read to its end.
        EngineError: A step failed; the message names it and never the data.
    """
    result = job.empty()
    job.failure.guard("the dataflow", _run, None)(job, result)
    job.failure.raise_if_failed()
    return result


def _run(job: Job, result: list[Histogram]) -> None:
    plan, guard = Lowered(job), job.failure.guard
    takers: dict[Node, list[Take]] = {node: [] for node in plan.read}
    for root, histogram in zip(job.roots, result, strict=True):
        takers[plan.chosen[root]].append(guard("measure", histogram.absorb, None))
    states: dict[Node, State] = {}
    for node, shape in plan.shapes.items():
        if isinstance(shape, Keyed):
            states[node] = shape.state(job.key)
            for port, up in enumerate(node.inputs):
                takers[plan.chosen[up]].append(guard(node.title, partial(states[node].absorb, port), None))

    def give(parts: StepBatches) -> None:
        for end, some in parts.items():
            for batch in some:
                for take in takers[end]:
                    take(batch)

    for node, shape in plan.shapes.items():
        if isinstance(shape, Read):
            push = guard("exchange", plan.follows(node).push, {})
            for lots in until_failure(shape, (0, 1), job.progress, job.failure):
                for batch in lots:
                    give(push(batch))
        elif isinstance(shape, Keyed):
            give(guard(node.title, partial(plan.follows(node).change, last=True), {})(states[node]))
