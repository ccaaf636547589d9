"""A synthetic bipartite graph: pairs that follow from released numbers, to look at, to hand over and to write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wpinq.errors import PlanError, needs
from wpinq.postprocess.bipartite.counts import LARGEST, MOST, Ints, PairGraph
from wpinq.postprocess.degrees.synthesis.gale_ryser import nearest, rescale
from wpinq.postprocess.degrees.synthesis.sampler import sample
from wpinq.postprocess.degrees.synthesis.writers import WRITERS, replacing, write_pairs

if TYPE_CHECKING:
    import networkx as nx


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


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticPairs(PairGraph):
    """A simple bipartite graph that nobody is in: its nodes are numbers, and its pairs follow from released numbers."""

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

    def save(self, path: str | Path, columns: tuple[str, str] = ("left", "right")) -> None:
        """Write the pairs, each once, to `.parquet`, `.arrow`, `.csv`, `.tsv` or `.txt`; nodes count from 1.

        Args:
            path: Where to write: the file appears whole or not at all.
            columns: Names of the two sides.

        Raises:
            SourceError: The suffix is unknown, or the path cannot be written.
        """
        with replacing("save", path, tuple(WRITERS)) as file:
            left, right = self.pairs.astype(np.int32).T
            write_pairs(file, Path(path).suffix.lower(), left, right, columns)

    def __repr__(self) -> str:
        return f"<synthetic bipartite graph of {self.lefts:,} and {self.rights:,} nodes and {len(self.pairs):,} pairs>"


def with_degrees(left: Ints, right: Ints, rng: np.random.Generator) -> PairGraph:
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
