"""A plain loop in this process, without bytewax.

It runs small files, for which loading an engine would take longer than the whole run, and everything where bytewax is
not installed.

The answers are those of every engine, bit for bit: contract tests run over all of them. Inputs come before the steps
that read them, so a state has taken in all records of a turn before it emits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from wpinq.core.engines.job import FlowItem, Job, Lowered
from wpinq.core.engines.linear import Linear, StepBatches, match
from wpinq.core.engines.reading import until_failure
from wpinq.core.plan.node import Node
from wpinq.core.plan.shapes import Keyed, Read
from wpinq.core.records.batch import Batch
from wpinq.core.state.histogram import Histogram
from wpinq.core.state.states import State
from wpinq.core.state.workers import cores
from wpinq.errors import EngineError

Take: TypeAlias = Callable[[Batch], None]


def run(job: Job, plan: Lowered | None = None, *, threads: int | None = None) -> list[Histogram]:
    """Read the sources once and compute the histograms of all roots.

    Args:
        job: The plans.
        plan: They, where they are lowered already.
        threads: In how many a keyed step may run; as many as there are cores by default.

    Raises:
        SourceError: A source could not be read to its end.
        EngineError: A step failed; the message names it and never the data.
    """
    result = job.empty()
    job.failure.guard("the dataflow", _run, None)(job, plan, result, threads or cores())
    job.failure.raise_if_failed()
    return result


def _run(job: Job, plan: Lowered | None, result: list[Histogram], threads: int) -> None:
    def read(shape: Read) -> Iterable[Batch]:
        for lots in until_failure(shape, (0, 1), job.progress, job.failure):
            yield from lots

    Loop(job, plan or Lowered(job), threads).turn(read, result, last=True)


class Loop:
    """The steps of some plans, inputs first.

    Args:
        job: The plans.
        plan: They, lowered.
        threads: In how many a keyed step may run that answers once; None where it answers again and again.
    """

    def __init__(self, job: Job, plan: Lowered, threads: int | None) -> None:
        self._job, self._plan = job, plan
        self._takers: dict[Node, list[Take]] = {node: [] for node in self._plan.read}
        self._states: dict[Node, State] = {}
        for node, shape in self._plan.shapes.items():
            if isinstance(shape, Keyed):
                from wpinq.core.engines.threads import state_of  # many plans have no step with a state

                state = self._states[node] = state_of(shape, job.key, threads, self._plan.size)
                for port, up in enumerate(self._plan.ups(node)):
                    absorb = job.failure.guard(node.title, partial(state.absorb, port), None)
                    self._takers[up].append(absorb)

    def turn(self, read: Callable[[Read], Iterable[Batch]], result: Sequence[Histogram], *, last: bool) -> None:
        """Take in records, and add to the histograms what follows from them.

        Args:
            read: The batches of a source.
            result: A histogram for each plan.
            last: Whether nothing comes afterwards.
        """
        guard = self._job.failure.guard
        takers = {node: list(some) for node, some in self._takers.items()}
        for root, histogram in zip(self._job.roots, result, strict=True):
            takers[self._plan.chosen[root]].append(guard("measure", histogram.absorb, None))

        follows = {node: self._plan.follows(node) for node in self._plan.shapes if self._begins(node)}
        if last:
            match(self._plan.shapes, self._plan.chosen, self._job.roots, follows.values())

        def give(parts: StepBatches) -> None:
            for end, some in parts.items():
                for batch in some:
                    for take in takers[end]:
                        take(batch)

        for node, linear in follows.items():
            shape = self._plan.shapes[node]
            if isinstance(shape, Read):
                push = guard("exchange", linear.push, {})
                for batch in read(shape):
                    give(push(batch))
                linear.finished()
            else:
                guard(node.title, self._change, None)(node, linear, give, last)

    def _begins(self, node: Node) -> bool:
        return isinstance(self._plan.shapes[node], Read | Keyed)

    def _change(self, node: Node, linear: Linear, give: Callable[[StepBatches], None], last: bool) -> None:
        for parts in linear.changes(self._states[node], last=last):
            give(parts)


class LiveLoop:
    """Some plans that take in one epoch after another, in the thread that pushes it.

    Args:
        roots: The plans; other plans need another loop.
        key: Identity key of the data set.
    """

    def __init__(self, roots: Sequence[Node], key: bytes) -> None:
        self.roots = tuple(roots)
        self._job = Job(self.roots, key)
        self._loop = Loop(self._job, Lowered(self._job), None)
        self._closed = False

    def push(self, items: Sequence[FlowItem]) -> list[Histogram]:
        """Take in one epoch.

        Returns:
            The change of the histogram of each plan.

        Raises:
            EngineError: A step failed now or before, or the loop was closed.
        """
        self.check()

        def read(shape: Read) -> Iterable[Batch]:
            return [batch.select(shape.columns) for data, batch in items if data is shape.data]

        changes = self._job.empty()
        self._job.failure.guard("the live dataflow", partial(self._loop.turn, last=False), None)(read, changes)
        self.check()
        return changes

    def check(self) -> None:
        """Raise what has failed, if anything has.

        Raises:
            EngineError: A step failed, or the loop was closed.
        """
        self._job.failure.raise_if_failed()
        if self._closed:
            raise EngineError("the live dataflow has ended; make another source.")

    def close(self) -> None:
        """End the loop."""
        self._closed = True
