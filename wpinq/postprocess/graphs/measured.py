"""What was released of a graph, as plain numbers, and as the chain takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wpinq.postprocess.fit import Fit
from wpinq.postprocess.graphs.counts import Floats
from wpinq.postprocess.graphs.walker import Target

SHARPNESS = 200.0
"""What a unit of weight is worth, of the answer with the least noise. The likelihood itself would be worth 1/scale, and
then nearly all graphs have few triangles, whatever was answered, for there are so many more of them."""


@dataclass(frozen=True, eq=False)
class Noisy:
    """Released answers of one query, and the scale of the Laplace noise on each."""

    values: Floats
    scale: float


@dataclass(frozen=True, eq=False, repr=False)
class Measurements:
    """What was released of a graph: plain numbers, all that a synthetic graph follows from.

    Attributes:
        degrees: The fitted degree distribution.
        joint: Of `graphs.joint_buckets`: entry (i - 1, j - 1) is of buckets i <= j; None where it was not asked.
        triangles: Of `graphs.triangle_buckets`: entry i - 1 is of bucket i; or None.
        intersect: Of `graphs.triangles_by_intersect`, one number; or None.
        about: What describes them: data set, unit, cost, and what is not in them; None for bare numbers.
    """

    degrees: Fit
    joint: Noisy | None = None
    triangles: Noisy | None = None
    intersect: Noisy | None = None
    about: Mapping[str, Any] | None = None

    def target(self, buckets: int, sharpness: float = SHARPNESS) -> Target:
        """The answers as the chain takes them: those of the buckets that its degrees have."""
        asked = (self.joint, self.triangles, self.intersect)
        shapes = ((buckets, buckets), (buckets,), (1,))
        least = min((one.scale for one in asked if one is not None), default=1.0)
        wanted, weight = [], []
        for one, shape in zip(asked, shapes, strict=True):
            values, known = np.zeros(shape), np.zeros(shape)
            if one is not None:
                part = tuple(slice(0, min(size, len(one.values))) for size in shape)
                values[part] = one.values[part]
                known[part] = sharpness * least / one.scale
            wanted.append(values.ravel())
            weight.append((np.triu(known) if len(shape) == 2 else known).ravel())
        return Target(np.concatenate(wanted), np.concatenate(weight), buckets)

    def __repr__(self) -> str:
        asked = [name for name in ("joint", "triangles", "intersect") if getattr(self, name) is not None]
        return f"<released answers of a graph: degrees{''.join(f', {name}' for name in asked)}>"
