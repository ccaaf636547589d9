"""Synthetic graphs: `measure` asks what one needs of a protected graph, `fit` searches for graphs that answer like it.

The rest are the queries, over edges in both directions; everything after `measure` takes released numbers.
"""

from wpinq.graphs.bipartite import butterfly_buckets, measure_pairs, pair_buckets, pairs
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
from wpinq.postprocess.graphs.fit import GraphFit, PairFit, fit
from wpinq.postprocess.graphs.measured import Measurements, Noisy, NoisyByDegree, PairMeasurements
from wpinq.postprocess.graphs.pair_counts import PairGraph
from wpinq.postprocess.graphs.synthetic import PairSummary, Summary, SyntheticGraph, SyntheticPairs

__all__ = [
    "Graph", "GraphFit", "Measurements", "Noisy", "NoisyByDegree", "PairFit", "PairGraph", "PairMeasurements",
    "PairSummary", "Summary", "SyntheticGraph", "SyntheticPairs", "butterfly_buckets", "fit", "joint_buckets",
    "joint_degrees", "measure", "measure_pairs", "pair_buckets", "pairs", "simple", "triangle_buckets",
    "triangles_by_degree", "triangles_by_intersect", "undirected",
]  # fmt: skip
