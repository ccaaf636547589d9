"""The timeline of a live source: its closed epochs as versions of its data set, and queries of the open epoch."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from wpinq.core.operators.contribution.sample import Bound
from wpinq.core.operators.contribution.share import Share
from wpinq.core.operators.contribution.unit_key import origin
from wpinq.core.operators.partition import Part
from wpinq.core.operators.window import Window, linear, parallel
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node, Source, fingerprints, rewrite
from wpinq.core.plan.shapes import Read, Shape
from wpinq.core.records.log import Closed, Log
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq.core.runs.pending import PendingQuery


@dataclass(eq=False, repr=False)
class Timeline(Log):
    """The log of a live source, with its queries.

    Attributes:
        pending: Charged queries that wait for the open epoch to close, each with its plan over the open source.
        plans: The plans that are kept up to date.
        versions: The data set as of the end of each epoch, as far as anybody asked.
    """

    pending: list[tuple[PendingQuery, Node]] = field(default_factory=list)
    plans: set[Hashable] = field(default_factory=set)
    versions: dict[int, DataSet] = field(default_factory=dict)

    def forget(self) -> None:
        """Drop records and versions that no query can need any more."""
        with self.lock:
            super().forget()
            for epoch in [item for item in self.versions if item <= self.forgotten]:
                del self.versions[epoch]


def name_of(root: Node) -> Hashable:
    """Tells a plan from others that are kept up to date."""
    return fingerprints(root)[root] or id(root)


def refuse_forgotten(log: Timeline, root: Node) -> None:
    """Refuse a plan that needs records that are no longer held.

    Raises:
        PlanError: It is not one of those that are kept up to date.
    """
    if log.whole:
        return
    if name_of(root) not in log.plans and name_of(root) not in {name_of(item) for _, item in log.pending}:
        raise PlanError(
            f"measure(...): {log.name} keeps {log.keep} epochs, and has let go of its first ones; measure a plan "
            "before that, or windows, or give live(keep=...) more."
        )


def at_epoch(root: Node, epoch: int, number: int | None = None) -> Node:
    """The plan over the epochs up to one of them; where a window is given, its records alone are read for it.

    Where a unit may change other parts or windows at another epoch, their group's name holds the epoch, so that the
    ledger adds up the costs of epochs.
    """
    return rewrite(root, partial(_change, epoch, number))


def between(root: Node, after: int, epoch: int) -> Node:
    """The plan over the epochs after one of them up to another, for what holds for each record by itself."""

    def part(node: Node) -> Node:
        if type(node) is Source and isinstance(node.data.reader, Closed):
            return Source(replace(node.data, reader=replace(node.data.reader, after=after)))
        return node

    return rewrite(at_epoch(root, epoch), part)


def _change(epoch: int, number: int | None, node: Node) -> Node:
    if type(node) is Source and isinstance(node.data.reader, Timeline):
        return Source(version(node.data, node.data.reader, epoch))
    if isinstance(node, Part) and not linear(node.source):
        return replace(node, place=(f"{node.place[0]} at epoch {epoch}", node.place[1]))
    if isinstance(node, Window) and number is not None:
        return _one_window(replace(node, number=number), epoch)
    return node


def version(data: DataSet, log: Timeline, epoch: int) -> DataSet:
    """The data set as of the end of an epoch: always the same object."""
    if epoch not in log.versions:
        log.versions[epoch] = replace(data, reader=Closed(log, epoch), version=f"{data.version} epoch {epoch}")
    return log.versions[epoch]


def _one_window(node: Window, epoch: int) -> Window:
    """One window of a live source; directly over the source it reads the records of the window alone.

    A bound on users then holds in each window by itself, with a sample of its own.
    """
    below = node.source
    if isinstance(below, Source) and isinstance(below.data.reader, Closed):
        return replace(node, source=Slice(below.data, node))
    if isinstance(below, (Bound, Share)) and isinstance(origin(below).data.reader, Closed):
        group = node.group if parallel(node) else f"{node.group}, window {node.number} by itself"
        return replace(node, group=group, source=replace(below, source=_only(node, below.source)))
    return node if parallel(node) else replace(node, group=f"{node.group} at epoch {epoch}")


def _only(window: Window, entered: Node) -> Node:
    """The records of one window, before they are bounded."""
    if isinstance(entered, Source):
        return Slice(entered.data, window)
    return Within(entered, window.at, window.span, window.length, "", window.number)


@dataclass(frozen=True, eq=False)
class Within(Window):
    """Plan node of the records of one window before they are bounded, where its time may have been computed.

    It is no part: the window above the bound is.
    """

    shown = "within one window({0.length}, at={0.at})"

    @property
    def part(self) -> None:
        """None: nothing is priced by it."""
        return


@dataclass(frozen=True, eq=False)
class Slice(Source):
    """Plan node of the records of a live source that lie in one window."""

    window: Window

    def lower(self, needed: frozenset[str]) -> Shape:
        """Read the window's rows alone."""
        shape = super().lower(needed)
        closed = self.data.reader
        assert isinstance(shape, Read)  # noqa: S101  a source is read
        assert isinstance(closed, Closed)  # noqa: S101  see `_one_window`
        only = replace(closed, at=self.window.at, mask=self.window.rows)
        return Read(replace(self.data, reader=only), shape.columns)
