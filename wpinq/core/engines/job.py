"""A job: what an engine is asked to compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node
from wpinq.core.records.batch import Batch
from wpinq.core.state.histogram import Histogram
from wpinq.failures import Failure

Progress: TypeAlias = Callable[[int], None]
"""Called with the number of bytes of files read so far. Never rows: their number is protected."""
FlowItem: TypeAlias = tuple[object, Batch]
"""A batch and the data set that it belongs to."""


class Live(Protocol):
    """Plans that take in one epoch after another."""

    roots: tuple[Node, ...]

    def push(self, items: Sequence[FlowItem]) -> list[Histogram]:
        """Take in one epoch, and give the change of the histogram of each plan."""

    def check(self) -> None:
        """Raise what has failed, if anything has."""

    def close(self) -> None:
        """End it."""


@dataclass(frozen=True, slots=True)
class Job:
    """The plans of one run and how to run them.

    Attributes:
        roots: The plans to measure; their common steps run once.
        key: Identity key of the data set.
        shards: Into how many shards each keyed step is cut.
        progress: Called with the number of bytes that were read.
        failure: Keeps the first failure of a step.
    """

    roots: Sequence[Node]
    key: bytes
    shards: int = 1
    progress: Progress | None = None
    failure: Failure = field(default_factory=Failure)

    def histogram(self, root: Node) -> Histogram:
        """A histogram of a root, with nothing in it."""
        return Histogram(root.schema, self.key, root.held.array)

    def empty(self) -> list[Histogram]:
        """One for each root."""
        return [self.histogram(root) for root in self.roots]


@runtime_checkable
class Engine(Protocol):
    """Runs plans elsewhere than in this process."""

    def check(self, roots: Sequence[Node]) -> None:
        """Refuse plans that it cannot run, before they are charged.

        Raises:
            PlanError: There is one.
        """

    def prove(self, data: DataSet) -> None:
        """Read what may turn out to be damaged of a data set, before anything is charged; see `Reader.prove`.

        Raises:
            SourceError: It is damaged.
        """

    def run(self, job: Job) -> list[Histogram]:
        """Compute the histograms of all roots."""
