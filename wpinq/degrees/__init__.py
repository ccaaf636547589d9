"""Degree distributions: how often things are counted, released, reconciled, drawn and imitated.

`release` does the whole job. `cdf`, `sequence` and `corner` are collections to measure; everything else takes released
numbers and works with the data deleted.

    release     the whole job
    pipelines   the collections to measure
    horizon     how many bins to observe
    reconcile   two curves, one distribution
    fit         the answer, with bands and intervals
    evidence    what a fit was made from
    path, corridor    the shortest path, and what is certain about it
    squares     the path in squared distance
    posterior   all paths, weighed
    smooth      the same under a smooth prior
    durfee      the same of a measured corner
    chain       what the three are computed by
    distance    between two distributions
    plot        the picture
    synthesize  data with the fitted degrees
    gale_ryser, sampler, curveball    whether there are such data, and random ones
    writers     files that appear whole or not at all
"""

from wpinq.degrees.pipelines import cdf, corner, sequence
from wpinq.degrees.release import release
from wpinq.postprocess.distance import earth_movers, kolmogorov_smirnov, volume
from wpinq.postprocess.fit import Fit
from wpinq.postprocess.reconcile import reconcile
from wpinq.postprocess.synthesis.synthesize import to_networkx

__all__ = [
    "Fit",
    "cdf",
    "corner",
    "earth_movers",
    "kolmogorov_smirnov",
    "reconcile",
    "release",
    "sequence",
    "to_networkx",
    "volume",
]
