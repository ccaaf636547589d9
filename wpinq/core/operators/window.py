"""Window: split a collection by time into windows, which are measured one by one.

**Parallel composition.** The ledger charges only the costliest of the parts of one step. The parts of one step are
disjoint: the change that a unit causes in the step is divided among them, so all parts together change no more than the
step. This holds for one collection. A step over a live source is another collection at each epoch, and parts that are
measured at two epochs belong to two collections. They still compose in parallel where a unit causes the same change of
the step at every epoch from its first on: where every step from the source on is linear for each record, so that the
output for a record depends on no other record. After a step that combines records (`shave` over pages, a sample of each
user) one early record can change another part at every epoch, and the costs of epochs add up: the name of the partition
in the ledger then holds the epoch. A finite source has no epochs; two versions of it are two sources, and their parts
are parts of two partitions.

Source: McSherry, PINQ, SIGMOD 2009 (parallel composition); the induction over plans is in `core/ledger/sums/cost.py`.
"""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass, field

import polars as pl

from wpinq.arguments import NAME, NOTHING, described, require
from wpinq.core.operators.contribution.sample import Bound
from wpinq.core.operators.contribution.share import Share
from wpinq.core.operators.periods import Periods, periods
from wpinq.core.plan.forms import Where
from wpinq.core.plan.node import Builder, C, Node, Record, fingerprints, sources, steps
from wpinq.core.plan.shapes import Keyed
from wpinq.core.plan.stability import Survey
from wpinq.core.records.fields import SHOWN
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError


def window(self: Builder[C], length: str | dt.timedelta | int, at: str, zone: str | None = None) -> C:
    """Cut time into windows of one length, side by side, and measure each of them by itself.

    What follows is done to each window as if it were all there is: `observe(bin, window=...)`. Where a unit is in one
    window only, a measurement costs its epsilon once, however many windows are asked for: over a file, and over a live
    source where every step up to here is linear for each record and records are protected. Otherwise each window that
    is asked for is charged; `explain` tells which it is.

    Weights:    `out[w][x] = in[x]` where w is the period that time(x) is in, else 0; a record without a time is in none
    Stability:  1 for each window, and 1 for all windows of one collection together, as for the parts of a partition.
                A user's records may lie in many windows. Over a file the bound on all of them holds for all windows
                together. Right over a live source it holds in each window by itself, so a user is protected in all of
                them by what is charged for each. A unit that is a user in one period, `users(..., period="1h",
                at="time")`, lies in one window as long, or made of whole ones: these cost as one.
    Source:     McSherry, PINQ, SIGMOD 2009 ("Partition"). Windows are closed by the caller or the clock, never by
                records: that of one person would decide what is counted of others.

    Args:
        length: Such as "90s", "15m", "1h", "1d", "1w", "1mo", or a timedelta; a whole number where the column holds
            whole numbers. Windows begin at 1970-01-01 or at 0, weeks on Mondays, months with the calendar's.
        at: The column of the time: a timestamp, a date or a whole number.
        zone: Whose clocks they follow, such as "Europe/Berlin", where times have a zone; by default UTC.

    Raises:
        PlanError: There is no such column or zone, it holds no times, or the length is not above zero.

    >>> from wpinq.testing import protected
    >>> hours = protected(page="text", minute="integer").window(60, at="minute")
    >>> hours
    <protected collection (page: text, minute: integer) by window(60, at=minute)>
    """
    require(at, NAME, "window(at=...)")
    require(zone, NAME | NOTHING, "window(zone=...)")
    column = self._node.schema[at]
    digest = fingerprints(self._node)[self._node]
    span = periods(length, column, f"window(length={described(length)})", zone)
    group = f"window {digest.hex() if digest else os.urandom(32).hex()} of {span} by {at!r}"
    return self._then(Window(self._node, at, span, f"{length} in {span.zone}" if span.zone else str(length), group))


@dataclass(frozen=True, eq=False)
class Window(Where):
    """Plan node of `window`: of one window, or of all of them as long as it has no number."""

    at: str
    span: Periods
    length: str = field(metadata=SHOWN)
    group: str
    number: int | None = None

    endless = True
    windows = True
    shown = "window({0.length}, at={0.at})"

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.at,)

    @property
    def many(self) -> bool:
        """As long as it has no number."""
        return self.number is None

    @property
    def kind(self) -> Kind:
        """The kind of the times."""
        return self.source.schema[self.at].kind

    @property
    def part(self) -> tuple[str, str] | None:
        """The windows, and which of them; "every" is what was charged before any was measured."""
        return (self.group, "every" if self.number is None else str(self.number))

    @property
    def single(self) -> int:
        """The number of the window.

        Raises:
            PlanError: It is no single window.
        """
        if self.number is None:
            raise PlanError(f"{self.title}: a window is observed by itself; write observe(bin, window=...).")
        return self.number

    def accepts(self, record: Record) -> bool:
        time = record[self.source.schema.names.index(self.at)]
        return time is not None and self.span.number(time) == self.single

    @property
    def rows(self) -> pl.Expr:
        """Which rows lie in the window."""
        return (self.span.numbers(self.at) == self.single).fill_null(value=False)

    def mask(self, frame: pl.DataFrame) -> pl.Expr:
        return self.rows


def combines_records(node: Node) -> bool:
    """Whether a step combines records, so that its output for one record may depend on others."""
    return isinstance(node.lower(frozenset(node.schema.names)), Keyed)


def linear(root: Node) -> bool:
    """Whether a unit changes the output alike at every epoch: no step over a live source combines records."""
    return not any(combines_records(node) for node in steps(root) if any(data.live for data in sources(node)))


def parallel(window: Window) -> bool:
    """Whether each unit is in one window only, whichever epochs the windows are measured at.

    That holds where all steps below are linear. A person is in many windows, unless the unit is a person in one period
    and these windows are unions of whole ones: then what is kept of a unit depends on its own records alone.
    """
    below = window.source
    if linear(below):
        return True
    if not isinstance(below, (Bound, Share)):
        return False
    unit_key = below.unit_key
    return unit_key.span is not None and unit_key.unit.columns[1] == window.at and window.span.made_of(unit_key.span)


def each_is_charged(survey: Survey) -> bool:
    """Whether each measured window is charged: because a unit may change the plan outside of one window."""
    parallel_groups = {node.group for node in survey.steps if isinstance(node, Window) and parallel(node)}
    return any(not any(group in parallel_groups for group, _ in parts) for _, parts in survey.paths)
