"""A synthetic graph: edges that follow from released numbers, to look at, to hand over and to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wpinq.errors import needs
from wpinq.postprocess.degrees.synthesis.writers import WRITERS, replacing, write_pairs
from wpinq.postprocess.graphs.counts import Floats, Graph, Ints

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


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticGraph(Graph):
    """A simple graph that nobody is in: its nodes are numbers, and its edges follow from released numbers."""

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

    def save(self, path: str | Path, columns: tuple[str, str] = ("src", "dst")) -> None:
        """Write the edges, each once, to `.parquet`, `.arrow`, `.csv`, `.tsv` or `.txt`; nodes count from 1.

        Args:
            path: Where to write: the file appears whole or not at all.
            columns: Names of the two ends.

        Raises:
            SourceError: The suffix is unknown, or the path cannot be written.
        """
        with replacing("save", path, tuple(WRITERS)) as file:
            low, high = self.edges.astype(np.int32).T
            write_pairs(file, Path(path).suffix.lower(), low, high, columns)

    def __repr__(self) -> str:
        return f"<synthetic graph of {self.nodes:,} nodes and {len(self.edges):,} edges>"


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
