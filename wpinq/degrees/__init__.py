"""Degree distributions: how often things are counted, released, reconciled, drawn and imitated.

`cdf` and `sequence` are collections to measure; everything else takes released numbers and works with the data deleted.
"""

from wpinq.degrees.distance import earth_movers, kolmogorov_smirnov, volume
from wpinq.degrees.fit import Fit
from wpinq.degrees.pipelines import cdf, sequence
from wpinq.degrees.reconcile import reconcile

__all__ = ["Fit", "cdf", "earth_movers", "kolmogorov_smirnov", "reconcile", "sequence", "volume"]
