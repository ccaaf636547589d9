"""Degree distributions: how often things are counted, released, reconciled, drawn and imitated.

`release` does the whole job. `cdf`, `sequence` and `corner` are collections to measure; everything else takes released
numbers and works with the data deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wpinq.degrees.pipelines import cdf, corner, sequence
from wpinq.degrees.release import release
from wpinq.lazy import late

if TYPE_CHECKING:
    from wpinq.degrees.hierarchy import Hierarchy
    from wpinq.postprocess.degrees.distance import earth_movers, kolmogorov_smirnov, volume
    from wpinq.postprocess.degrees.fit import Fit
    from wpinq.postprocess.degrees.reconcile import reconcile
    from wpinq.postprocess.degrees.synthesis.synthesize import to_networkx

__all__ = [
    "Fit", "Hierarchy", "cdf", "corner", "earth_movers", "kolmogorov_smirnov", "reconcile", "release", "sequence",
    "to_networkx", "volume",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    _HOMES = {
        "degrees.hierarchy": "Hierarchy",
        "postprocess.degrees.distance": "earth_movers kolmogorov_smirnov volume",
        "postprocess.degrees.fit": "Fit",
        "postprocess.degrees.reconcile": "reconcile",
        "postprocess.degrees.synthesis.synthesize": "to_networkx",
    }
    __getattr__ = late(__name__, _HOMES)
