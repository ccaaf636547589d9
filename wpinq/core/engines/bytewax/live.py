"""The live engine: a dataflow that keeps running in this process and takes in one epoch after another.

bytewax runs it in a thread of its own, with one source. With an epoch interval of zero bytewax asks the source for more
only when its earlier output has passed through the whole flow, so the next call of the source shows that an epoch is
done. Steps emit a change for each change; the changes of measured histograms are handed over at the end of an epoch.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import bytewax.operators as op
from bytewax.dataflow import Dataflow, Stream
from bytewax.testing import run_main

from wpinq.core.engines.bytewax.flow import Feed, HandOver, Lowering
from wpinq.core.engines.job import FlowItem, Job
from wpinq.core.plan.node import Node
from wpinq.core.plan.shapes import Read
from wpinq.core.records.batch import Batch
from wpinq.core.state.histogram import Histogram
from wpinq.errors import EngineError, Failure, redact

CLOSE_TIMEOUT = 10.0
"""Seconds to wait for a step that is still at work when the flow is closed."""


class LiveFlow:
    """The running dataflow of some plans.

    Args:
        roots: The plans; the flow is frozen, so other plans need another flow.
        key: Identity key of the data set.
    """

    def __init__(self, roots: Sequence[Node], key: bytes) -> None:
        self.roots = tuple(roots)
        self._key, self._failure = key, Failure()
        self._changes = self._fresh()
        self._turn = threading.Condition()
        self._batch: list[FlowItem] | None = None
        self._idle = self._closed = False
        flow = self._build()
        self._thread = threading.Thread(target=self._run, args=(flow,), name="wpinq live", daemon=True)
        self._thread.start()

    def push(self, items: Sequence[FlowItem]) -> list[Histogram]:
        """Take in one epoch.

        Returns:
            The change of the histogram of each plan, after all steps have taken the epoch in.

        Raises:
            EngineError: A step failed now or before, or the flow was closed.
        """
        with self._turn:
            self._turn.wait_for(lambda: self._idle or self._closed)
            if not self._closed:
                self._batch, self._idle = list(items), False
                self._turn.notify_all()
                self._turn.wait_for(lambda: self._idle or self._closed)
        self.check()
        changes, self._changes = self._changes, self._fresh()
        return changes

    def check(self) -> None:
        """Raise what has failed, if anything has.

        Raises:
            EngineError: A step failed, or the flow was closed.
        """
        self._failure.raise_if_failed()
        if self._closed:
            raise EngineError("the live dataflow has ended; make another source.")

    def close(self) -> None:
        """End the flow and wait for its thread: a process must not end while the engine is inside of Python."""
        self._end()
        if threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_TIMEOUT)

    def _end(self) -> None:
        with self._turn:
            self._closed = True
            self._turn.notify_all()

    def take(self) -> list[FlowItem] | None:
        """The next items of the flow's source; None at the end. A call means that all earlier items are processed."""
        with self._turn:
            self._idle = True
            self._turn.notify_all()
            self._turn.wait_for(lambda: self._batch is not None or self._closed)
            items, self._batch = self._batch, None
            return None if self._closed else items

    def absorb(self, number: int, batch: Batch) -> None:
        """Add to the change of a plan's histogram."""
        self._changes[number].absorb(batch)

    def _fresh(self) -> list[Histogram]:
        return [Histogram(root.schema, self._key, root.held.array) for root in self.roots]

    def _run(self, flow: Dataflow) -> None:
        try:
            run_main(flow, epoch_interval=timedelta(0))  # type: ignore[no-untyped-call]
        except BaseException as error:  # noqa: BLE001  a panic of the engine is no Exception
            self._failure.error = self._failure.error or redact("the live dataflow", error)
        finally:
            self._end()

    def _build(self) -> Dataflow:
        flow = Dataflow("wpinq_live")
        job = Job(self.roots, self._key, failure=self._failure)
        fed = op.input("fed", flow, Feed(lambda *_: iter(self.take, None)))
        lowering = _Live(flow, job, fed)
        streams = lowering.streams()
        for number, root in enumerate(self.roots):
            absorb = self._failure.guard("measure", partial(self.absorb, number), None)
            op.output(f"measure_{number}", streams[lowering.plan.chosen[root]], HandOver(absorb))
        return flow


class _Live(Lowering):
    """All reads are parts of one stream, and every change is answered at once."""

    eager = True

    def __init__(self, flow: Dataflow, job: Job, fed: Stream[FlowItem]) -> None:
        super().__init__(flow, job)
        self._fed = fed

    def read(self, name: str, shape: Read) -> Stream[Batch]:
        """The batches of one data set, and the columns that are read."""

        def pick(items: list[FlowItem]) -> list[Batch]:
            return [batch.select(shape.columns) for data, batch in items if data is shape.data]

        return op.flat_map_batch(name, self._fed, self.job.failure.guard("reading", pick, []))
