"""The graph queries of the wPINQ paper, over the edges of a graph that are written in both directions.

A graph is protected edge by edge: one record is an edge in one direction. The queries are those of `wpinq.graphs`,
which says what they weigh; `wpinq graph` makes a synthetic graph from better ones.

| query | bin | true weight | uses of the edges |
|---|---|---|---|
| `degree_cdf` | k | nodes with k edges or more | 1 |
| `degree_sequence` | r | edges of the r-th most connected node | 1 |
| `triangles_by_intersect` (TbI) | "triangles" | sum over edges of min(1, sum over common neighbours of 1/(2 d_b)) | 3 |

The noise has the scale uses/epsilon. TbI tells a clustered graph from a rewired one at a noise of scale 30.

Source: Proserpio, Goldberg, McSherry, Calibrating data to sensitivity in private data analysis, PVLDB 7(8), 2014.

    wpinq explain graph
    wpinq run graph edges.parquet --budget 0.5 --observe triangles=triangles
"""

from __future__ import annotations

import wpinq
from wpinq import Collection, Measurement

DEGREES = "0.1"
TRIANGLES = "0.3"


def dataflow(edges: Collection) -> dict[str, Measurement]:
    """Measure the degrees, and triangles by intersect."""
    graph = wpinq.graphs.simple(edges)
    return {
        "degree_cdf": degree_cdf(graph).measure(epsilon=DEGREES, name="degree_cdf"),
        "degree_sequence": degree_sequence(graph).measure(epsilon=DEGREES, name="degree_sequence"),
        "triangles": wpinq.graphs.triangles_by_intersect(graph).measure(epsilon=TRIANGLES, name="triangles"),
    }


def degree_cdf(edges: Collection) -> Collection:
    """Count the nodes that have k edges or more."""
    return wpinq.degrees.cdf(edges.map(lambda src: src))


def degree_sequence(edges: Collection) -> Collection:
    """Count the edges of the r-th most connected node."""
    return wpinq.degrees.sequence(edges.map(lambda src: src))
