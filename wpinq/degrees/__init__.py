"""Degree distributions: how often things are counted, released, reconciled, drawn and imitated.

`release` does the whole job. `cdf`, `sequence` and `corner` are collections to measure; everything else takes released
numbers and works with the data deleted.

`README.md` says what each file knows.
"""

from wpinq.degrees.hierarchy import Hierarchy
from wpinq.degrees.pipelines import cdf, corner, sequence
from wpinq.degrees.release import release
from wpinq.postprocess.distance import earth_movers, kolmogorov_smirnov, volume
from wpinq.postprocess.fit import Fit
from wpinq.postprocess.reconcile import reconcile
from wpinq.postprocess.synthesis.synthesize import to_networkx

__all__ = [
    "Fit",
    "Hierarchy",
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
