"""The graph queries of the wPINQ paper, over the edges of a graph that are written in both directions.

A graph is protected edge by edge, and the weighted join makes room for hubs: a path through b weighs 1/(2 d_b), so one
edge moves all paths together by one. No bound on degrees is asked for, and none is enforced.

| query | bin | true weight | uses of the edges |
|---|---|---|---|
| `degree_cdf` | k | nodes with k edges or more | 1 |
| `degree_sequence` | r | edges of the r-th most connected node | 1 |
| `joint_degrees` (JDD) | (d_a, d_b) | 1/(2 + 2 d_a + 2 d_b) for each edge | 4 |
| `triangles_by_degree` (TbD) | sorted degrees | 3/(d_a^2 + d_b^2 + d_c^2) for each triangle | 9 |
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
    graph = simple(edges)
    return {
        "degree_cdf": degree_cdf(graph).measure(epsilon=DEGREES, name="degree_cdf"),
        "degree_sequence": degree_sequence(graph).measure(epsilon=DEGREES, name="degree_sequence"),
        "triangles": triangles_by_intersect(graph).measure(epsilon=TRIANGLES, name="triangles"),
    }


def simple(edges: Collection) -> Collection:
    """Name the two columns `src` and `dst`; drop loops, and count each edge once."""
    named = edges.map(lambda src, dst: (src, dst), columns=["src", "dst"])
    return named.filter(lambda src, dst: src != dst).distinct()


def degree_cdf(edges: Collection) -> Collection:
    """Count the nodes that have k edges or more."""
    return wpinq.degrees.cdf(edges.map(lambda src: src))


def degree_sequence(edges: Collection) -> Collection:
    """Count the edges of the r-th most connected node."""
    return wpinq.degrees.sequence(edges.map(lambda src: src))


def degrees(edges: Collection) -> Collection:
    """Pair each node with its degree, at weight 1/2."""
    return edges.group_by("src", len, columns=["degree"])


def paths(edges: Collection) -> Collection:
    """Paths (a, b, c) of two edges between different nodes, at weight 1/(2 d_b)."""
    both = edges.join(edges, left="dst", right="src")
    named = both.map(lambda dst, src, dst_2: (src, dst, dst_2), columns=["a", "b", "c"])
    return named.filter(lambda a, c: a != c)


def joint_degrees(edges: Collection) -> Collection:
    """Count edges by the degrees of their two ends (JDD)."""
    known = edges.join(degrees(edges), on="src")
    ends = known.join(known, left=["src", "dst"], right=["dst", "src"])
    return ends.map(lambda degree, degree_2: (degree, degree_2))


def triangles_by_degree(edges: Collection) -> Collection:
    """Count triangles by the sorted degrees of their corners (TbD)."""
    middle = paths(edges).join(degrees(edges), left="b", right="src")
    abc = middle.map(lambda a, b, c, degree: (a, b, c, degree), columns=["a", "b", "c", "d"])
    bca = abc.map(lambda a, b, c, d: (b, c, a, d), columns=["a", "b", "c", "d"])
    cab = abc.map(lambda a, b, c, d: (c, a, b, d), columns=["a", "b", "c", "d"])
    found = abc.join(bca, on=["a", "b", "c"]).join(cab, on=["a", "b", "c"])
    return found.map(lambda d, d_2, d_3: tuple(sorted([d, d_2, d_3])), columns={"low": int, "mid": int, "high": int})


def triangles_by_intersect(edges: Collection) -> Collection:
    """Weigh triangles by intersecting the paths of two edges with the edges (TbI); one bin."""
    ends = edges.join(edges, left="dst", right="src", result=lambda src, dst_2: (src, dst_2))
    return ends.intersect(edges).map(lambda src, dst_2: "triangles")
