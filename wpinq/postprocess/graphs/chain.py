"""What the chains of simple and of bipartite graphs share: what a search asks of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from wpinq.core import kernels
from wpinq.errors import ExtraError
from wpinq.postprocess.graphs.counts import Floats, Graph
from wpinq.postprocess.graphs.pair_counts import PairGraph
from wpinq.postprocess.graphs.synthetic import PairSummary, Summary, SyntheticGraph, SyntheticPairs
from wpinq.postprocess.graphs.target import Target

G = TypeVar("G", Graph, PairGraph)
S = TypeVar("S", SyntheticGraph, SyntheticPairs)


def ready(call: str) -> None:
    """Insist on the compiled kernels: a search in plain Python would take hours.

    Raises:
        ExtraError: They are not there.
    """
    if kernels.LIB is None:
        raise ExtraError(f"{call}: there are no compiled kernels; install wpinq from a wheel, or with a C compiler.")


@dataclass(eq=False)
class Chain(ABC, Generic[G]):
    """A graph that swaps move, with what is known of it: a strategy of `fit`.

    Attributes:
        graph: Where it starts.
        rng: Where chance comes from.
        title: What kind of graph it is.
        steps: Swaps that a search proposes for each edge.
        least: And how many at the least.
        mixing: Swaps for each edge that make a graph of the given degrees a random one; 0 where it begins with that.
        traced: The numbers of a graph by which R-hat tells whether chains agree.
    """

    graph: G
    rng: np.random.Generator
    title: ClassVar[str]
    steps: ClassVar[int]
    least: ClassVar[int]
    mixing: ClassVar[int]
    traced: ClassVar[tuple[str, ...]]

    @classmethod
    @abstractmethod
    def begin(cls, measurements: Any, rng: np.random.Generator) -> tuple[Self, Target]:
        """A chain that starts at a graph of the fitted degrees, and what it looks for."""

    @property
    @abstractmethod
    def now(self) -> G:
        """The graph, now."""

    @abstractmethod
    def summary(self) -> Summary | PairSummary:
        """The graph in a few numbers, now."""

    @abstractmethod
    def counts(self) -> Floats:
        """What the queries weigh on the graph as it is now, in one row."""

    @abstractmethod
    def walk(self, target: Target, steps: int, wedges: float = 0.5) -> int:
        """Propose so many swaps, that share of them along paths; how many were made."""
