"""The interface between a charged query and the run that answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from wpinq.core.ledger.transaction import Seal
    from wpinq.core.plan.dataset import DataSet
    from wpinq.core.plan.node import Node
    from wpinq.core.state.histogram import Histogram


class PendingQuery(Protocol):
    """A charged query, as far as a run needs to know."""

    @property
    def settled(self) -> bool:
        """Whether it has its histogram."""

    @property
    def node(self) -> Node:
        """Its plan."""

    @property
    def key_owner(self) -> DataSet:
        """The data set whose secret keys it."""

    @property
    def question(self) -> str:
        """Tells it from other queries."""

    @property
    def analyst(self) -> str | None:
        """Who asked, where that is known."""

    def digest(self, histogram: Histogram) -> int:
        """The keyed digest of what a histogram holds; the same for all queries of its plan."""

    def seals(self, digest: int) -> list[tuple[DataSet, Seal]]:
        """What is sealed in the ledgers of its data sets before it answers."""

    def answer_from(self, histogram: Histogram) -> None:
        """Answer from this histogram, whose digest is sealed, from now on."""
