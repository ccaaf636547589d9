"""Synthetic graphs: `measure` asks what one needs of a protected graph, `fit` searches for graphs that answer like it.

The rest are the queries, over edges in both directions; everything after `measure` takes released numbers.

`README.md` says what each file knows.
"""

from wpinq.graphs.measure import measure
from wpinq.graphs.queries import (
    joint_buckets,
    joint_degrees,
    simple,
    triangle_buckets,
    triangles_by_degree,
    triangles_by_intersect,
    undirected,
)
from wpinq.postprocess.graphs.counts import Graph
from wpinq.postprocess.graphs.fit import GraphFit, fit
from wpinq.postprocess.graphs.measured import Measurements, Noisy, NoisyByDegree
from wpinq.postprocess.graphs.synthetic import Summary, SyntheticGraph

__all__ = [
    "Graph",
    "GraphFit",
    "Measurements",
    "Noisy",
    "NoisyByDegree",
    "Summary",
    "SyntheticGraph",
    "fit",
    "joint_buckets",
    "joint_degrees",
    "measure",
    "simple",
    "triangle_buckets",
    "triangles_by_degree",
    "triangles_by_intersect",
    "undirected",
]
