"""Collections that tell how a graph hangs together, over its edges written in both directions.

The queries of the wPINQ paper, and two over buckets of degrees, 1, 2 to 3, 4 to 7, ..., that tell more for less. A
weighted join makes room for hubs: a path of two edges through b weighs 1/(2 d_b), so one edge moves all of them
together by one. No bound on degrees is asked for, and none is enforced.

| query | bin | true weight | uses of the edges |
|---|---|---|---|
| `joint_degrees` (JDD) | (d_a, d_b) | 1/(2 + 2 d_a + 2 d_b) for each edge | 4 |
| `triangles_by_degree` (TbD) | sorted degrees | 3/(d_a^2 + d_b^2 + d_c^2) for each triangle | 9 |
| `triangles_by_intersect` (TbI) | "triangles" | sum over edges of min(1, sum over common neighbours of 1/(2 d_b)) | 3 |
| `joint_buckets` | (i, j), i <= j | 1/4 for each edge, shared among the buckets of its ends | 4 |
| `triangle_buckets` | i | t d / (d^2 + t) for each node with t triangles, shared among its buckets | 6 |

**Buckets.** A node with d edges lies in bucket i with the share of 1, ..., d that has i binary digits, from 2^(i-1) to
2^i - 1. So an edge more moves it only a little, where a node that had one bucket alone would now and then move as a
whole. That makes these two cheap: the weight of an edge or a triangle is not divided once more by the degrees, as in
JDD and TbD.

Each edge here is one of two records of an undirected edge (`undirected`), which therefore uses it twice as often.

Source: Proserpio, Goldberg, McSherry, Calibrating data to sensitivity in private data analysis, PVLDB 7(8), 2014.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from wpinq.arguments import COLLECTION, FLAG, takes
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq.collection import Collection

MOST_BUCKETS = 32
"""Buckets of degrees; beyond 2^32 edges of one node more of them are as large as the last."""


@takes("graphs.simple", edges=COLLECTION)
def simple(edges: Collection) -> Collection:
    """Name the two columns `src` and `dst`; drop loops, and count each edge once.

    Raises:
        PlanError: There are not two columns of one type.
    """
    ends = edges._node.schema
    if len(ends.names) != 2:
        raise PlanError(
            f"graphs: an edge has two columns, its ends; found {ends.listed}. Choose two, by map or "
            "columns=('src', 'dst')."
        )
    if len({column.kind for column in ends}) > 1:
        raise PlanError(f"graphs: both ends of an edge are names of nodes, so of one type; found {ends}.")
    named = edges.map(lambda src, dst: (src, dst), columns=["src", "dst"])
    return named.filter(lambda src, dst: src != dst).distinct()


@takes("graphs.undirected", edges=COLLECTION, mutual=FLAG)
def undirected(edges: Collection, mutual: bool = False) -> Collection:
    """The edges of a graph in both directions, each once: what all queries here take, and `measure` makes itself.

    It does not matter whether the list has an edge in one direction, in both, or repeatedly. Loops are dropped.

    Stability: 2, as an edge is two records here. That is the price of all records of an edge together, too: however
        often it is listed, its two records are there or not.

    Args:
        edges: A collection of two columns.
        mutual: Keep an edge only where both of its ends list it. Then a node's own records decide about all of its
            edges: where the privacy unit is the first column, `users("src", at_most=k)`, nodes are protected, with
            the k records kept of each, whoever else lists them. Without it a unit's records are what it lists itself.

    >>> from wpinq.graphs import undirected
    >>> from wpinq.testing import evaluate, protected
    >>> evaluate(undirected(protected(a="text", b="text")), [("x", "y"), ("y", "x"), ("x", "x"), ("y", "z")])
    {('x', 'y'): 1, ('y', 'x'): 1, ('y', 'z'): 1, ('z', 'y'): 1}
    """
    listed = simple(edges)
    turned = listed.map(lambda src, dst: (dst, src), columns=["src", "dst"])
    return listed.intersect(turned) if mutual else listed.union(turned)


def degrees(edges: Collection) -> Collection:
    """Pair each node with its degree, at weight 1/2."""
    return edges.group_by("src", len, columns=["degree"])


def paths(edges: Collection) -> Collection:
    """Paths (a, b, c) of two edges between different nodes, at weight 1/(2 d_b)."""
    both = edges.join(edges, left="dst", right="src")
    named = both.map(lambda dst, src, dst_2: (src, dst, dst_2), columns=["a", "b", "c"])
    return named.filter(lambda a, c: a != c)


@takes("graphs.joint_degrees", edges=COLLECTION)
def joint_degrees(edges: Collection) -> Collection:
    """Count edges by the degrees of their two ends (JDD)."""
    known = edges.join(degrees(edges), on="src")
    ends = known.join(known, left=["src", "dst"], right=["dst", "src"])
    return ends.map(lambda degree, degree_2: (degree, degree_2))


@takes("graphs.triangles_by_degree", edges=COLLECTION)
def triangles_by_degree(edges: Collection) -> Collection:
    """Count triangles by the sorted degrees of their corners (TbD)."""
    middle = paths(edges).join(degrees(edges), left="b", right="src")
    abc = middle.map(lambda a, b, c, degree: (a, b, c, degree), columns=["a", "b", "c", "d"])
    bca = abc.map(lambda a, b, c, d: (b, c, a, d), columns=["a", "b", "c", "d"])
    cab = abc.map(lambda a, b, c, d: (c, a, b, d), columns=["a", "b", "c", "d"])
    triangles = abc.join(bca, on=["a", "b", "c"]).join(cab, on=["a", "b", "c"])
    return triangles.map(
        lambda d, d_2, d_3: tuple(sorted([d, d_2, d_3])), columns={"low": int, "mid": int, "high": int}
    )


@takes("graphs.triangles_by_intersect", edges=COLLECTION)
def triangles_by_intersect(edges: Collection) -> Collection:
    """Weigh triangles by intersecting the paths of two edges with the edges (TbI); one bin."""
    ends = edges.join(edges, left="dst", right="src", result=lambda src, dst_2: (src, dst_2))
    return ends.intersect(edges).map(lambda src, dst_2: "triangles")


def buckets(edges: Collection) -> Collection:
    """Each node in its buckets, at a weight of d in all: slices of its edges that are 1, 2, 4, 8, ... thick."""
    thick = [2**i for i in range(MOST_BUCKETS)]
    return edges.map(lambda src: src).shave(thick, name="bucket")


@takes("graphs.joint_buckets", edges=COLLECTION)
def joint_buckets(edges: Collection) -> Collection:
    """Count edges by the buckets of their two ends, the lower bucket first.

    >>> from wpinq.graphs import joint_buckets, undirected
    >>> from wpinq.testing import evaluate, protected
    >>> found = evaluate(joint_buckets(undirected(protected(a="text", b="text"))), [("x", "y"), ("y", "z")])
    >>> {bin: round(float(weight), 3) for bin, weight in sorted(found.items())}
    {(1, 1): 0.5, (1, 2): 0.5}
    """
    known = edges.join(buckets(edges), on="src", result=lambda src, dst, bucket: (src, dst, bucket))
    ends = known.join(known, left=["src", "dst"], right=["dst", "src"])
    lower = pl.min_horizontal("bucket", "bucket_2"), pl.max_horizontal("bucket", "bucket_2")
    return ends.map(list(lower), columns={"low": int, "high": int})


@takes("graphs.triangle_buckets", edges=COLLECTION)
def triangle_buckets(edges: Collection) -> Collection:
    """Weigh the triangles at each node, by the buckets of the node.

    A path (a, b, c) is kept as far as the edge from a to c has room for it: the paths from a to c weigh one at the
    most, all together. Where they weigh less, as nearly everywhere in real graphs, the paths of b weigh t / d.

    >>> from wpinq.graphs import triangle_buckets, undirected
    >>> from wpinq.testing import evaluate, protected
    >>> graph = undirected(protected(a="text", b="text"))
    >>> found = evaluate(triangle_buckets(graph), [("x", "y"), ("y", "z"), ("z", "x")])
    >>> {bin: round(float(weight), 3) for bin, weight in sorted(found.items())}
    {(1,): 0.6, (2,): 0.6}
    """
    both = edges.join(edges, left="dst", right="src", result=lambda src, dst, dst_2: (src, dst, dst_2))
    closed = both.semijoin(edges, left=["src", "dst_2"], right=["src", "dst"]).map(lambda dst: dst)
    return closed.join(buckets(edges), left="dst", right="src", result=lambda bucket: bucket)
