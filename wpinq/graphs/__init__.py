"""Synthetic graphs: queries over the edges of a protected graph, and graphs that answer them like it.

`README.md` says what each file knows.
"""

from wpinq.graphs.queries import (
    joint_buckets,
    joint_degrees,
    simple,
    triangle_buckets,
    triangles_by_degree,
    triangles_by_intersect,
    undirected,
)

__all__ = [
    "joint_buckets",
    "joint_degrees",
    "simple",
    "triangle_buckets",
    "triangles_by_degree",
    "triangles_by_intersect",
    "undirected",
]
