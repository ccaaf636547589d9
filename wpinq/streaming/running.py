"""The running dataflow of a live source, which keeps its plans up to date epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from weakref import WeakSet

from wpinq.core.engines import select
from wpinq.core.engines.job import FlowItem, Live
from wpinq.core.engines.reading import batches
from wpinq.core.measurements.continual import EveryEpoch
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.measurements.query import digest_after, digest_of
from wpinq.core.operators.contribution.first import First
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node, sources, steps
from wpinq.core.plan.shapes import Read
from wpinq.core.records.batch import Batch
from wpinq.core.records.log import Merged
from wpinq.core.runs.compaction import covers
from wpinq.core.runs.pending import PendingQuery
from wpinq.core.runs.run import answer
from wpinq.core.runs.timeline import Timeline, name_of
from wpinq.core.state.histogram import Histogram
from wpinq.errors import EngineError

TORN = "the live source did not take in an epoch as a whole; make another source, which begins with what was kept."


@dataclass
class MaintainedPlan:
    """A plan and its current histogram.

    Attributes:
        root: The plan, over the open source.
        total: Its histogram after the last epoch.
        digest: Of the total; None until a query needs it.
        continual: Whether it was ever measured at every epoch.
        followers: What answers at every epoch, weakly referenced, and receives every change.
    """

    root: Node
    total: Histogram
    digest: int | None = None
    continual: bool = False
    followers: WeakSet[EveryEpoch] = field(default_factory=WeakSet)

    def move(self, change: Histogram, epoch: int, *, merged: bool) -> None:
        """Take in what an epoch changed, or several epochs that were merged."""
        digest = self.digest
        if digest is not None:
            digest = digest_after(sources(self.root)[0], digest, self.total, change)
        self.total.merge(change)
        self.digest = digest
        for follower in self.followers:  # who may be asked at the same time, so what they are told stays as it is
            if merged:
                follower.begin(epoch, self.total)
            else:
                follower.receive(epoch, change)

    def answer(self, query: PendingQuery, epoch: int) -> None:
        """Answer from the histogram after an epoch; what answers at every epoch receives all later changes."""
        if isinstance(query, Measurement) and isinstance(query.times, EveryEpoch):
            query.times.begin(epoch, self.total)
            self.continual = True
            self.followers.add(query.times)
            return
        if self.digest is None:
            self.digest = digest_of(sources(self.root)[0], self.total)
        answer([(query, self.total.copy(), self.digest)])


class Running:
    """A live dataflow and its plans. A plan stays in it for ever, because it may be measured again.

    Args:
        data: The open source.
        log: What is sent to it.
    """

    def __init__(self, data: DataSet, log: Timeline) -> None:
        self._data, self._log, self._key = data, log, data.identity_key
        self._plans: dict[Hashable, MaintainedPlan] = {}
        self._flow: Live | None = None
        self._whole = True

    @property
    def continual(self) -> list[Node]:
        """The plans that were measured at every epoch."""
        return [plan.root for plan in self._plans.values() if plan.continual]

    def take(self, close: Callable[[], Batch], merged: Merged | None = None) -> None:
        """Bring all plans up to an epoch, and answer the queries that waited for it.

        Args:
            close: Closes the epoch and gives its records.
            merged: Where it stands for several; plans that need more of them than there is are let go of.

        Raises:
            EngineError: A step failed, now or before.
            LedgerError: The histogram of a measurement could not be sealed.
        """
        self.tear()
        with self._log.lock:  # a query of the epoch is charged before, or is of the next one
            batch = close()
            waiting, self._log.pending = self._log.pending, []
        wanted = [(measurement, self._keep(root)) for measurement, root in waiting]
        if self._plans:
            if self._flow is None or len(self._flow.roots) < len(self._plans):
                self._restart()
            changes = self._push([(self._data, batch)] if len(batch) else [])
            for plan, change in zip(self._plans.values(), changes, strict=True):
                plan.move(change, self._log.closed, merged=merged is not None)
        if merged is not None:
            self._log.plans = {name for name, plan in self._plans.items() if covers(merged, plan.root)}
        self.mend()
        for measurement, plan in wanted:
            plan.answer(measurement, self._log.closed)

    def tear(self) -> None:
        """Mark the dataflow as broken until `mend`, in case an interrupt leaves it with half an epoch."""
        self._whole = False

    def mend(self) -> None:
        """Mark the dataflow as whole: an epoch was taken in completely, or not begun."""
        self._whole = True

    def check(self) -> None:
        """Raise what has failed, if anything has.

        Raises:
            EngineError: A step failed, or an epoch was taken in incompletely, because of an interrupt or because a
                joined table could not be read. Later answers would lack records.
        """
        if self._flow is not None:
            self._flow.check()
        if not self._whole:
            raise EngineError(TORN)

    def close(self) -> None:
        """End the dataflow."""
        if self._flow is not None:
            self._flow.close()

    def _keep(self, root: Node) -> MaintainedPlan:
        name = name_of(root)
        self._log.plans.add(name)
        return self._plans.setdefault(name, MaintainedPlan(root, Histogram(root.schema, self._key, root.held.array)))

    def _restart(self) -> None:
        """Start a new flow with new plans, over all earlier epochs, because a flow cannot be extended."""
        self.close()
        known = 0 if self._flow is None else len(self._flow.roots)
        self._flow = select.live([plan.root for plan in self._plans.values()], self._key)
        totals = self._push([])
        for lot in self._lots():
            for total, change in zip(totals, self._push(lot), strict=True):
                total.merge(change)
        for plan, total in list(zip(self._plans.values(), totals, strict=True))[known:]:
            plan.total = total

    def _lots(self) -> Iterator[list[FlowItem]]:
        """All that was sent, at once, or epoch by epoch where a plan depends on the order."""
        sent = list(self._sent())
        ordered = any(isinstance(node, First) for plan in self._plans.values() for node in steps(plan.root))
        yield [*self._finite(), *([] if ordered else sent)]
        if ordered:
            yield from ([item] for item in sent)

    def _push(self, items: Sequence[FlowItem]) -> list[Histogram]:
        if self._flow is None or not items:
            return [Histogram(item.root.schema, self._key, item.root.held.array) for item in self._plans.values()]
        return self._flow.push(items)

    def _sent(self) -> Iterator[FlowItem]:
        """All epochs before the one that was just closed."""
        schema = self._log.schema
        for frame in self._log.held(self._log.closed - 1):
            yield self._data, Batch(frame, schema)

    def _finite(self) -> Iterator[FlowItem]:
        """The other sources of the plans, which are read once."""
        for data in {data: None for plan in self._plans.values() for data in sources(plan.root)}:
            if data is not self._data:
                data.check()
                for lot in batches(Read(data, data.reader.schema.names), (0, 1), None):
                    yield from ((data, item) for item in lot)
