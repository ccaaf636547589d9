"""Measurements of windows: charged once for all or for each, and answered for every window that has closed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from wpinq.core.measurements.measurement import Measurement, quoted
from wpinq.core.measurements.query import commit
from wpinq.core.operators.window import Window, each_is_charged
from wpinq.core.plan.node import Node, steps
from wpinq.core.plan.rewrite import rewrite
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.quote import Quote
from wpinq.core.records.bins import bin_frame
from wpinq.core.records.schema import Kind
from wpinq.core.runs.timeline import at_epoch, log_of
from wpinq.errors import NotReadyError, PlanError

MAX_HELD_WINDOWS = 1000
"""Windows whose answers are held at once for a live source that does not keep all."""


def windows(walk: Iterable[Node]) -> list[Window]:
    """The windows among the steps of a plan that have no number yet.

    Raises:
        PlanError: They are of several lengths, so no single window could be asked for.
    """
    result = [node for node in walk if isinstance(node, Window) and node.number is None]
    if len({node.span for node in result}) > 1:
        raise PlanError("measure(...): the plan has windows of several lengths or types; one window must be of one.")
    return result


class WindowedMeasurement(Measurement):
    """A charged, noisy histogram of every window.

    Each window that is asked for is a measurement of its own, with noise of its own. Where a unit is in one window only
    (`core/operators/window.py`), all windows are charged when it is made, and the ledger shows each of them at no
    cost. Else, as with people in a live source, whose unit is the whole person, each window is charged when it is first
    asked for.

    Attributes:
        each: Whether epsilon is what each window costs.
    """

    unreleased = "each window is released by itself, once it has closed: .at(time).release(...)"

    def __init__(self, quote: Quote[Any]) -> None:
        super().__init__(quote)
        self._first, self._log = windows(steps(quote.node))[0], log_of(quote.sources)
        self.each = each_is_charged(Survey.of(quote.node))
        self._made: dict[int, Measurement] = {}

    @property
    def settled(self) -> bool:
        """True: only its single windows are computed."""
        return True

    @property
    def span(self) -> int:
        """The length of a window: microseconds, or ones where the column holds whole numbers."""
        return self._first.span.longest

    @property
    def timed(self) -> bool:
        """Whether its windows are cut by a time, not by whole numbers."""
        return self._first.kind is not Kind.INT

    def observe(self, bin: Any, window: Any = None) -> int | float:  # noqa: A002
        """The noisy weight of one bin in one window that has closed.

        Args:
            bin: A value, or a tuple of values where the collection has several columns.
            window: Any time in the window, as the column of the time holds them.

        Raises:
            BinError: The collection could never hold such a bin, or the column such a time.
            NotReadyError: The window has not closed yet.
            PlanError: No window was given.
            BudgetError: Each window is charged, and this one costs more than is left.
            SourceError, EngineError, LedgerError: The first question runs the dataflow, which failed.
        """
        value: int | float = self.observe_many([bin], window)[0].item()
        return value

    def observe_many(self, bins: Any, window: Any = None) -> np.ndarray:
        """The noisy weights of many bins in one window, or in each of a list of windows, which are then read at once.

        Args:
            bins: An iterable of bins; a range, a NumPy array or a Polars series is quickest.
            window: Any time in the window, or a list of times.

        Returns:
            One number for each bin; for a list of windows one row for each.

        Raises:
            BinError, NotReadyError, PlanError, BudgetError, SourceError, EngineError, LedgerError: See `observe`.
        """
        if window is None:
            raise PlanError("observe(window=...): which window? Give any time in it.")
        listed = bins if isinstance(bins, (Sequence, np.ndarray, pl.Series)) else list(bins)
        if self.each:
            bin_frame(listed, self.node.schema)  # mistakes show before a window is charged
        if not isinstance(window, (list, tuple)):
            return self.at(window).observe_many(listed)
        return np.stack([measured.observe_many(listed) for measured in self._at(window)])

    def at(self, time: Any) -> Measurement:
        """The measurement of one window that has closed, for whatever takes a measurement, such as `degrees.reconcile`.

        Args:
            time: Any time in the window, as the column of the time holds them.

        Raises:
            BinError: The column could never hold such a time.
            NotReadyError: The window has not closed yet.
            BudgetError: Each window is charged, and this one costs more than is left; nothing was charged.
        """
        return self._at([time])[0]

    def end(self, time: Any) -> Any:
        """The time at which the window of a time ends, which belongs to the next one."""
        span = self._first.span
        return span.time(span.number(time) + 1)

    def closed(self, epoch: int) -> list[Any]:
        """The start times of the windows that an epoch of a live source closed, in order.

        Args:
            epoch: A closed epoch, from the second on.

        Returns:
            Times, as the column of the time holds them: none, one, or several.
        """
        if self._log is None or not self._log.forgotten + 1 < epoch <= self._log.closed:
            return []
        before, watermark = self._log.watermark(epoch - 1), self._log.watermark(epoch)
        if before is None or watermark is None:
            return []
        span = self._first.span
        numbers = range(span.number_at(before) - 1, span.number_at(watermark) + 1)
        return [span.time(number) for number in numbers if before < span.end(number) <= watermark]

    def _at(self, times: Sequence[Any]) -> list[Measurement]:
        """The measurements of some windows, of which all are charged or none."""
        numbers = [self._first.span.number(time) for time in times]
        plans = {number: self._closed(number) for number in numbers}
        quotes = {number: self._quote(number, plan) for number, plan in plans.items() if number not in self._made}
        self._made |= zip(quotes, commit(list(quotes.values())), strict=True)
        result = [self._made[number] for number in numbers]
        while self._log is not None and self._log.keep is not None and len(self._made) > MAX_HELD_WINDOWS:
            del self._made[min(self._made)]
        return result

    def _quote(self, number: int, plan: Node) -> Quote[Measurement]:
        survey = Survey.of(rewrite(plan, partial(_numbered, number)))
        return quoted(survey, self.quote.payment, Measurement, name=self.name, analyst=self.quote.analyst)

    def _closed(self, number: int) -> Node:
        """The plan over the records that had come when the window closed; windows of a finite source are all closed."""
        if self._log is None:
            return self.node
        epoch = self._log.closing(self._first.span.end(number))
        if epoch is None:
            raise NotReadyError(
                f"observe: this window of {self._log.name} is still open; "
                "advance(until=...) closes all that end by a time."
            )
        return at_epoch(self.node, epoch, number)


def _numbered(number: int, node: Node) -> Node:
    return replace(node, number=number) if isinstance(node, Window) and node.number is None else node
