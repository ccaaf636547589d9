"""A measurement that answers at every epoch of a live source."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np

from wpinq.arguments import NOTHING, WHOLE, require
from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.measurements.measurement import Measurement, quoted
from wpinq.core.noise import Mechanism, Words, mechanism
from wpinq.core.noise.accuracy import level_of_each
from wpinq.core.noise.counting_tree import FORM, TreeNode, parts, segment
from wpinq.core.noise.tails import half_width
from wpinq.core.noise.threshold import refuse_other_law
from wpinq.core.operators.contribution.first import First
from wpinq.core.operators.window import Window, combines_records
from wpinq.core.plan.node import Node, Source
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.explain import show_measured
from wpinq.core.pricing.privacy_cost import Payment
from wpinq.core.pricing.quote import Quote
from wpinq.core.records.bins import bin_frame
from wpinq.core.records.identity import identities
from wpinq.core.records.siphash import siphash
from wpinq.core.records.values import KEY_SIZE
from wpinq.core.runs.epochs import Epochs
from wpinq.core.runs.prefix_sums import Changes
from wpinq.core.runs.timeline import Timeline
from wpinq.core.state.histogram import Histogram
from wpinq.core.state.table import Ids
from wpinq.errors import NotReadyError, PlanError
from wpinq.exact import Amount, decimal, exact
from wpinq.failures import redacted

FAR = 24
"""A segment that is reached after 10^11 epochs; noise that is too wide there is refused before it is charged."""
FEW = 1 << 10
"""Bins of which the noise of nodes is held for the next epoch, of those that were asked for last."""
Drawn: TypeAlias = dict[tuple[int, int, int], np.ndarray]
"""Noise by node: its segment, level and place."""


class ContinualMeasurement(Measurement):
    """A charged, noisy histogram of every epoch that closes after it was made, for ever.

    The noise is that of the nodes of counting trees (`core/noise/counting_tree.py` has the proof). The noise of a node
    is a keyed function of the release, the node and the bin, so it is computed for observed bins and epochs only, and
    repeated observations have the same answer. The key does not cover a digest of the histogram, which changes from
    epoch to epoch; the counts of a closed epoch never change (privacy rule 5). The answer at an epoch is a sum of noisy
    nodes, whatever else was released.

    Epochs have the numbers of the source, not counted from the measurement on: a measurement that is made again later
    is the same release, with the same answer for each epoch. If they were counted from the measurement on, both would
    have the same noise at different epochs, and the difference of their answers would be exact.

    Attributes:
        scale: The L1 sensitivity divided by epsilon; an answer has the noise of several nodes, see `deviation`.
    """

    unreleased = "a continual measurement is observed bin by bin; release an epoch's measurement"
    """Its bins are given by name, because a published table would reveal new bins."""

    def __init__(self, quote: Quote[Any]) -> None:
        super().__init__(quote)
        self._first, self._closed, self._root = 0, 0, quote.node
        secret = self.key_owner.secret
        self._nodes = secret.derive("continual node", quote.key, size=KEY_SIZE)
        self._noises = Words(secret.derive("continual noise", quote.key))
        self._levels: dict[tuple[int, int], Mechanism] = {}
        self._drawn: tuple[Ids, Drawn] = np.empty((0, 2), np.uint64), {}
        self._changes = self._no_changes()
        self._keep = None if quote.epochs is None else quote.epochs.log.keep

    @classmethod
    def quoted(
        cls, survey: Survey, log: Timeline, paid: Payment, *, name: str | None, analyst: str | None
    ) -> Quote[ContinualMeasurement]:
        """Quote a continual measurement of a plan over what a live source is sent.

        Raises:
            PlanError: A step of the plan is not linear for each record, it is too late for it, or the noise has another
                law than that of the nodes of the trees, or see `price`.
        """
        refuse_unless_linear(survey.steps)
        result = quoted(
            survey, paid, cls, name=name, analyst=analyst, epochs=Epochs(log, survey.root, None),
            fields=("continual", FORM),
        )  # fmt: skip
        refuse_other_law(result.mechanism, "measure(continual=True)")
        refuse_too_wide(result.mechanism)
        return result

    @property
    def settled(self) -> bool:
        """True: no run answers it, because the live source hands it the change of each epoch."""
        return True

    def begin(self, epoch: int, total: Histogram) -> None:
        """Answer from this epoch on, whose histogram this is, and goes on to be; none before can be asked for."""
        self._first = epoch
        self._changes = self._no_changes()
        self.receive(epoch, total.copy())

    def receive(self, epoch: int, change: Histogram) -> None:
        """Take in the change of the histogram in the next epoch."""
        self._changes.append(change)
        self._closed = epoch
        if self._keep is not None:
            self._changes.forget(epoch - self._keep - self._first + 2)

    def observe(self, bin: Any, epoch: int | None = None) -> int | float:  # noqa: A002
        """The noisy weight of one bin at the end of an epoch.

        Args:
            bin: A value, or a tuple of values where the collection has several columns.
            epoch: A closed epoch, from the first that closed after the measurement was made; by default the last.

        Raises:
            BinError: The collection could never hold such a bin.
            NotReadyError: The epoch is still open, or was closed before.
        """
        value: int | float = self.observe_many([bin], epoch)[0].item()
        return value

    def observe_many(self, bins: Any, epoch: int | None = None) -> np.ndarray:
        """The noisy weights of many bins at the end of an epoch; the same as asking one by one.

        Raises:
            BinError, NotReadyError: See `observe`.
        """
        refuse_inside("observe")
        frame = bin_frame(bins, self.node.schema)
        closed = self._closed_epoch(epoch)

        def answer() -> np.ndarray:
            ids = identities(frame, self.node.schema, self.key_owner.identity_key)
            true = self._changes.lookup(closed - self._first + 1, frame, ids)
            return self._divided(self._sum(true, self._noise(closed, ids)))

        return redacted("observe", answer)

    def pairs(self, bins: Any, epoch: int) -> list[tuple[Any, Any]]:
        """Each of some bins with its noisy weight at the end of an epoch.

        Raises:
            BinError, NotReadyError: See `observe`.
        """
        return list(zip(bins, self.observe_many(bins, epoch).tolist(), strict=True))

    def deviation(self, epoch: int | None = None) -> float:
        """The standard deviation of the noise at an epoch.

        Raises:
            NotReadyError: See `observe`.
        """
        return self._deviation(self._closed_epoch(epoch))

    def interval(self, level: Amount = Fraction(95, 100), bins: int = 1, epoch: int | None = None) -> float:
        """Half the width of an interval around an answer that holds the true weight with at least this probability.

        Args:
            level: Between 0 and 1.
            bins: Around how many answers the intervals shall hold all together.
            epoch: The epoch of the answers; by default the last that closed.

        Raises:
            PlanError: The level is not strictly between 0 and 1, or `bins` is not a whole number above zero.
            NotReadyError: See `observe`.
        """
        rest = 1 - level_of_each(exact(level, "interval(level=...)"), bins)
        return half_width(self._scales(self._closed_epoch(epoch)), float(rest)) / self._unit

    def explain(self) -> str:
        """Show the plan, what the measurement costs, and how wide its noise is at some epochs; print and return it."""
        noise = self.noise_lines()
        if self.quote.delta:
            noise.append(f"  each data set pays delta {decimal(self.quote.delta)} as well, once for all epochs")
        return show_measured(self.node, self.epsilon, noise=noise)

    def noise_lines(self) -> list[str]:
        """What adds noise, and how wide it is at some epochs, in two lines; for quotes too."""
        wide = [f"{self._deviation(epoch):,.4g} at epoch {epoch:,}" for epoch in self._shown_epochs]
        delta = f", delta={decimal(self.quote.delta)}" if self.quote.delta else ""
        return [
            f"{self.quote.call}(epsilon={decimal(self.epsilon)}{delta}, {self._terms})  {self._title}",
            f"  standard deviation of the noise on a bin: {', '.join(wide)}",
        ]

    @property
    def _shown_epochs(self) -> tuple[int, ...]:
        return 1, 100, 10_000, 1_000_000

    @property
    def _terms(self) -> str:
        return "continual=True"

    @property
    def _title(self) -> str:
        return "noise of the nodes of counting trees"

    def _no_changes(self) -> Changes:
        return Changes(lambda: Histogram(self.node.schema, self.key_owner.identity_key, self.node.held.array))

    def _deviation(self, epoch: int) -> float:
        """The standard deviation of the noise at an epoch, closed or not."""
        variance = sum(self._level(*node[:2]).variance() for node in parts(epoch))
        return math.sqrt(variance) / self._unit

    def _closed_epoch(self, epoch: int | None) -> int:
        """The number of an epoch that can be asked for."""
        require(epoch, WHOLE | NOTHING, "observe(epoch=...)")
        last = self._closed if epoch is None else epoch
        if not self._closed or last > self._closed:
            raise NotReadyError("observe: the epoch is still open; call advance() first.")
        if self._keep is not None and last <= self._closed - self._keep:
            raise NotReadyError(f"observe: the last {self._keep} epochs are kept, no earlier one; see live(keep=...).")
        if last < self._first:
            raise NotReadyError(f"observe: made after epoch {last} closed; ask for epoch {self._first} or a later one.")
        return last

    def _scales(self, epoch: int) -> list[float]:
        """The scales of the noises of an epoch, in steps."""
        return [float(self._level(*node[:2]).scale) for node in parts(epoch)]

    def _level(self, number: int, level: int) -> Mechanism:
        """The noise of the nodes of a level in a segment, all on one grid."""
        if (number, level) not in self._levels:
            scale = self._mechanism.scale / segment(number).shares[level]
            self._levels[number, level] = mechanism("geometric", scale * self._mechanism.grid)
        return self._levels[number, level]

    def _noise(self, epoch: int, ids: Ids) -> np.ndarray:
        """The noise of an epoch for bins, of whose nodes the epoch before has most: those are not drawn again."""
        nodes = parts(epoch)
        if len(ids) > FEW:
            return self._of_nodes(nodes, ids)
        before, drawn = self._drawn
        drawn = dict(drawn) if np.array_equal(before, ids) else {}
        result = self._of_nodes(nodes, ids, drawn)
        self._drawn = ids, {node[:3]: drawn[node[:3]] for node in nodes}  # at once: other threads ask too
        return result

    def _of_nodes(self, nodes: Sequence[TreeNode], ids: Ids, drawn: Drawn | None = None) -> np.ndarray:
        """The noise of nodes for each bin, all nodes of a level at once.

        Args:
            nodes: Those of an epoch.
            ids: The bins.
            drawn: What was drawn for these bins before; the rest is added.
        """
        total = np.zeros(len(ids), np.int64)
        for (number, level), group in groupby(nodes, key=lambda node: node[:2]):
            of_level, known = list(group), {} if drawn is None else drawn
            index = np.array([node.position for node in of_level if node[:3] not in known], np.int64)
            if len(index):
                more = self._level(number, level).draw(self._noises, self._blocks(number, level, index, ids))
                fresh = zip(index.tolist(), more.reshape(len(index), len(ids)), strict=True)
                known |= {(number, level, position): noise for position, noise in fresh}
            for node in of_level:
                total += node.sign * known[node[:3]]
        return total

    def _blocks(self, number: int, level: int, index: np.ndarray, ids: Ids) -> Ids:
        """The blocks from which words are made: for each node and bin a keyed 128-bit hash of both."""
        words = [np.tile(ids[:, i], len(index)) for i in (0, 1)]
        position = np.repeat(index.astype(np.uint64), len(ids))
        close = np.full(len(position), np.uint64(32 << 56 | number << 8 | level))
        return siphash(self._nodes, [*words, position, close])


def refuse_too_wide(noise: Mechanism) -> None:
    """Refuse noise that could not be drawn at a later epoch.

    Raises:
        PlanError: Its scale would be out of range there; nothing was charged.
    """
    mechanism("geometric", noise.scale * noise.grid / min(segment(FAR).shares))


def refuse_unless_linear(walk: Iterable[Node]) -> None:
    """Refuse a plan with a step that combines records, except a bound that keeps each user's first records for ever.

    Raises:
        PlanError: A step is not linear for each record, or records of a source can be taken back.

    Source: Dwork, Naor, Pitassi, Rothblum, STOC 2010: the tree hides a stream of changes, of which a record moves one.
    """
    for node in walk:
        if isinstance(node, Source) and node.data.retractions:
            raise PlanError(
                f"measure(continual=True): records of {node.data.name} can be taken back, so one would be in two "
                "epochs for the price of one. Measure an epoch, or windows; or make the source without "
                "retractions=True, and send what reverses a record as a record with a column that says so. Nothing "
                "was charged."
            )
        if isinstance(node, Window):
            raise PlanError("measure(continual=True): leave it out; each window is measured when it has closed.")
        if not isinstance(node, First) and combines_records(node):
            raise PlanError(
                f"measure(continual=True): {node.title} is not linear for each record, so one early record can move "
                "every later epoch. Use window(...) and measure each window when it has closed, or measure an epoch."
            )
