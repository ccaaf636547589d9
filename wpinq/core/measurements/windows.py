"""Measurements of windows: charged once for all or for each, and answered for every window that has closed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from wpinq.core.measurements.measurement import Measurement, quoted
from wpinq.core.measurements.query import commit
from wpinq.core.measurements.times import Moment, Times
from wpinq.core.operators.window import Window, each_is_charged
from wpinq.core.plan.node import Node, rewrite, steps
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.quote import Quote
from wpinq.core.runs.epochs import log_of
from wpinq.core.runs.timeline import Timeline, at_epoch
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


class Windows(Times):
    """Each window that is asked for is a measurement of its own, with noise of its own.

    Where a unit is in one window only (`core/operators/window.py`), all windows are charged when the measurement is
    made, and the ledger shows each of them at no cost. Else, as with people in a live source, whose unit is the whole
    person, each window is charged when it is first asked for.

    """

    window: Window
    unreleased = "each window is released by itself, once it has closed: .at(time).release(...)"

    def __init__(self, quote: Quote[Any]) -> None:
        super().__init__(quote)
        self.window, self._log = windows(steps(quote.node))[0], log_of(quote.sources)
        self.each = each_is_charged(Survey.of(quote.node))
        self._made: dict[int, Measurement] = {}

    @property
    def log(self) -> Timeline | None:
        """The live source that is measured."""
        return self._log

    def check(self, window: Any, epoch: int | None) -> None:
        """See `Times`."""
        if epoch is not None:
            raise PlanError("observe(epoch=...): this is a measurement of windows; give window=, any time in it.")
        if window is None:
            raise PlanError("observe(window=...): which window? Give any time in it.")

    def at(self, windows: Sequence[Any]) -> list[Measurement]:
        """The measurements of some windows, of which all are charged or none.

        Args:
            windows: A time in each, as the column of the time holds them.

        Raises:
            BinError: The column could never hold such a time.
            NotReadyError: A window has not closed yet.
            BudgetError: Each window is charged, and they cost more than is left; nothing was charged.
        """
        numbers = [self.window.span.number(time) for time in windows]
        plans = {number: self._closed(number) for number in numbers}
        quotes = {number: self._quote(number, plan) for number, plan in plans.items() if number not in self._made}
        self._made |= zip(quotes, commit(list(quotes.values())), strict=True)
        result = [self._made[number] for number in numbers]
        while self._log is not None and self._log.keep is not None and len(self._made) > MAX_HELD_WINDOWS:
            del self._made[min(self._made)]
        return result

    def moments(self, epoch: int, since: int = 0, *, again: bool = False) -> Iterator[Moment]:
        """The windows that an epoch closed, in order; from the second epoch on."""
        if self._log is None or not self._log.forgotten + 1 < epoch <= self._log.closed:
            return
        before, watermark = self._log.watermark(epoch - 1), self._log.watermark(epoch)
        if before is None or watermark is None:
            return
        span = self.window.span
        for number in range(span.number_at(before) - 1, span.number_at(watermark) + 1):
            if before < span.end(number) <= watermark:
                yield Moment(epoch, (span.time(number), span.time(number + 1)))

    def _quote(self, number: int, plan: Node) -> Quote[Measurement]:
        survey, quote = Survey.of(rewrite(plan, partial(_numbered, number))), self.quote
        return quoted(survey, quote.payment, name=quote.name, analyst=quote.analyst)

    def _closed(self, number: int) -> Node:
        """The plan over the records that had come when the window closed; windows of a finite source are all closed."""
        if self._log is None:
            return self.quote.node
        epoch = self._log.closing(self.window.span.end(number))
        if epoch is None:
            raise NotReadyError(
                f"observe: this window of {self._log.name} is still open; "
                "advance(until=...) closes all that end by a time."
            )
        return at_epoch(self.quote.node, epoch, number)


def _numbered(number: int, node: Node) -> Node:
    return replace(node, number=number) if isinstance(node, Window) and node.number is None else node
