"""A synthetic graph: edges or pairs that follow from released numbers, to look at, to hand over and to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from wpinq.errors import PlanError, needs
from wpinq.postprocess.degrees.synthesis.gale_ryser import nearest, rescale
from wpinq.postprocess.degrees.synthesis.sampler import sample
from wpinq.postprocess.degrees.synthesis.writers import WRITERS, write_pairs
from wpinq.postprocess.graphs.counts import Floats, Graph, Ints
from wpinq.postprocess.graphs.pair_counts import LARGEST, MOST, PairGraph
from wpinq.storage import replacing

if TYPE_CHECKING:
    import networkx as nx

MOST_LOWERED = 1 << 16
"""How often a degree is lowered for want of nodes to join it to."""


@dataclass(frozen=True, eq=False)
class Summary:
    """A graph in a few numbers.

    Attributes:
        nodes: Nodes with an edge.
        edges: Edges, each once.
        triangles: Triangles, each once.
        clustering: Of paths of two edges, the share that an edge closes (global clustering, transitivity).
        average_clustering: That share at each node, on average over nodes with an edge.
        assortativity: Correlation of the degrees at both ends of an edge; 0 where all are alike.
        degree_variance: Variance of the degrees.
    """

    nodes: int
    edges: int
    triangles: int
    clustering: float
    average_clustering: float
    assortativity: float
    degree_variance: float

    @classmethod
    def of(cls, edges: Ints, triangles: Ints, degrees: Ints) -> Summary:
        """Of the edges of a graph, the triangles at its nodes, and their degrees."""
        joined = degrees > 0
        pairs = (degrees * (degrees - 1)) / 2
        local = triangles / np.maximum(pairs, 1)
        return cls(
            int(joined.sum()),
            len(edges),
            int(triangles.sum()) // 3,
            float(triangles.sum() / max(pairs.sum(), 1)),
            float(local[joined].mean()) if joined.any() else 0.0,
            assortativity(degrees[edges].astype(float)),
            float(degrees[joined].var()) if joined.any() else 0.0,
        )


def assortativity(ends: Floats) -> float:
    """The correlation of two numbers at both ends of edges."""
    if not len(ends):
        return 0.0
    off = ends - ends.mean()
    spread = float((off**2).mean())
    return float((off[:, 0] * off[:, 1]).mean() / spread) if spread > 0 else 0.0


@dataclass(frozen=True, eq=False)
class PairSummary:
    """A bipartite graph in a few numbers.

    Attributes:
        lefts: Left nodes with a pair.
        rights: Right ones.
        pairs: Pairs, each once.
        butterflies: Cycles of four pairs, each once.
        clustering: Of paths of three pairs, the share that a fourth one closes (Robins, Alexander, 2004).
        assortativity: Correlation of the degrees at both ends of a pair; 0 where one side's are all alike.
    """

    lefts: int
    rights: int
    pairs: int
    butterflies: int
    clustering: float
    assortativity: float

    @classmethod
    def of(cls, graph: PairGraph) -> PairSummary:
        """Of a graph."""
        left, right = graph.degrees
        left_degrees, right_degrees = left[graph.pairs[:, 0]].astype(float), right[graph.pairs[:, 1]].astype(float)
        butterflies, paths = graph.butterflies(), float(((left_degrees - 1) * (right_degrees - 1)).sum())
        alike = not len(left_degrees) or left_degrees.std() == 0 or right_degrees.std() == 0
        return cls(
            int((left > 0).sum()),
            int((right > 0).sum()),
            len(graph.pairs),
            butterflies,
            4 * butterflies / max(paths, 1),
            0.0 if alike else float(np.corrcoef(left_degrees, right_degrees)[0, 1]),
        )


class Synthetic:
    """What graphs that nobody is in have in common: their nodes are numbers, and they follow from released numbers."""

    COLUMNS: ClassVar[tuple[str, str]]
    rows: Any
    title: Any

    def save(self, path: str | Path, columns: tuple[str, str] | None = None) -> None:
        """Write the edges, or pairs, each once, to `.parquet`, `.arrow`, `.csv`, `.tsv` or `.txt`; nodes count from 1.

        Args:
            path: Where to write: the file appears whole or not at all.
            columns: Names of the two ends; by default `src` and `dst`, of pairs `left` and `right`.

        Raises:
            SourceError: The suffix is unknown, or the path cannot be written.
        """
        with replacing("save", path, tuple(WRITERS)) as file:
            first, second = self.rows.astype(np.int32).T
            write_pairs(file, Path(path).suffix.lower(), first, second, columns or self.COLUMNS)

    def __repr__(self) -> str:
        return f"<synthetic {self.title}>"


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticGraph(Synthetic, Graph):
    """A simple graph that nobody is in: its nodes are numbers, and its edges follow from released numbers."""

    COLUMNS = ("src", "dst")

    @classmethod
    def like(cls, graph: Graph) -> SyntheticGraph:
        """The same graph."""
        return cls(graph.edges, graph.nodes)

    def summary(self) -> Summary:
        """The graph in a few numbers."""
        return Summary.of(self.edges, self.at_nodes(), self.degrees)

    def to_networkx(self) -> nx.Graph[int]:
        """The graph of networkx."""
        needs("graphs", "to_networkx()")
        import networkx as nx

        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(self.nodes))
        graph.add_edges_from(self.edges.tolist())
        return graph

    @property
    def title(self) -> str:
        """What it is, and how large."""
        return f"graph of {self.nodes:,} nodes and {len(self.edges):,} edges"


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticPairs(Synthetic, PairGraph):
    """A simple bipartite graph that nobody is in: its nodes are numbers, and its pairs follow from released numbers."""

    COLUMNS = ("left", "right")

    @classmethod
    def like(cls, graph: PairGraph) -> SyntheticPairs:
        """The same graph."""
        return cls(graph.pairs, graph.lefts, graph.rights)

    def summary(self) -> PairSummary:
        """The graph in a few numbers."""
        return PairSummary.of(self)

    def to_networkx(self) -> nx.Graph[tuple[str, int]]:
        """The graph of networkx: nodes `("left", 1)` and `("right", 1)`, whose attribute `bipartite` is 0 and 1."""
        needs("graphs", "to_networkx()")
        import networkx as nx

        graph: nx.Graph[tuple[str, int]] = nx.Graph()
        for number, (side, many) in enumerate((("left", self.lefts), ("right", self.rights))):
            graph.add_nodes_from(((side, node) for node in range(1, many + 1)), bipartite=number)
        graph.add_edges_from((("left", left + 1), ("right", right + 1)) for left, right in self.pairs.tolist())
        return graph

    @property
    def title(self) -> str:
        """What it is, and how large."""
        return f"bipartite graph of {self.lefts:,} and {self.rights:,} nodes and {len(self.pairs):,} pairs"


def with_degrees(degrees: Sequence[int] | Ints) -> Graph:
    """A simple graph with these degrees, or nearly: an odd one is lowered, and those that no simple graph has.

    None are refused: they are noisy, and so a little less of the largest is as good a guess.
    """
    needs("graphs", "graphs.fit(...)")
    import networkx as nx

    wanted = np.sort(np.asarray(degrees, np.int64))[::-1]
    wanted = np.minimum(wanted[wanted > 0], max(len(wanted) - 1, 0))
    for _ in range(MOST_LOWERED):
        wanted = wanted[wanted > 0]
        if wanted.sum() % 2:
            wanted[-1] -= 1
        elif not nx.is_graphical(wanted.tolist()):
            wanted = -np.sort(-(wanted - (np.arange(len(wanted)) == 0)))
        else:
            break
    made = nx.havel_hakimi_graph(wanted.tolist())
    edges = np.sort(np.array(list(made.edges), np.int64).reshape(-1, 2), axis=1)
    return Graph(edges, len(wanted))


def pairs_with_degrees(left: Ints, right: Ints, rng: np.random.Generator) -> PairGraph:
    """A random simple bipartite graph with these degrees, in falling order, or nearly.

    Both sides are noisy, so their sums differ a little: both are brought to the mean. Where no simple graph has both,
    the fewest pairs are moved between left nodes, or to new ones.

    Raises:
        PlanError: There are more pairs, or a larger degree on the right, than the search has room for.
    """
    total = (int(left.sum()) + int(right.sum())) // 2
    left, right = rescale(left, total), rescale(right, total)
    if total > MOST or right.max(initial=0) > LARGEST:
        raise PlanError(
            f"graphs.fit: takes fitted degrees of at most {LARGEST:,} on the right and {MOST:,} pairs; found "
            f"{right.max(initial=0):,} and {total:,}. Measure a part of the pairs."
        )
    left, _ = nearest(left, right)
    return PairGraph(np.stack(sample(left, right, rng), axis=1).astype(np.int64), len(left), len(right))
