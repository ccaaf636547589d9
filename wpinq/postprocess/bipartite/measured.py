"""What was released of a bipartite graph, as plain numbers, and as the chain takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wpinq.postprocess.bipartite.walker import PairTarget
from wpinq.postprocess.degrees.fit import Fit
from wpinq.postprocess.graphs.counts import Floats
from wpinq.postprocess.graphs.measured import SHARPNESS, Noisy, averaged

SPREAD = 1.0
"""How far answers lie from those of a random graph with these degrees at the least, in shares of them."""


@dataclass(frozen=True, eq=False, repr=False)
class PairMeasurements:
    """What was released of a bipartite graph: plain numbers, all that a synthetic one follows from.

    Attributes:
        left: The fitted degree distribution of the left nodes.
        right: That of the right ones.
        joint: Of `graphs.pair_buckets`: entry (i - 1, j - 1) is of buckets i and j; None where it was not asked.
        butterflies: Of `graphs.butterfly_buckets`: entry (i - 1, k - 1) is of bucket i and slice k; or None.
        about: What describes them: data set, unit, cost, and what is not in them; None for bare numbers.
    """

    left: Fit
    right: Fit
    joint: Noisy | None = None
    butterflies: Noisy | None = None
    about: Mapping[str, Any] | None = None

    def target(self, expected: Floats, shape: tuple[int, int, int]) -> PairTarget:
        """The answers as the chain takes them, and how sure each is.

        Args:
            expected: What a random graph with the fitted degrees has, joint degrees and then slices.
            shape: The numbers of buckets on the left and on the right, and of slices.
        """
        size = shape[0] * shape[1]
        queries = {
            "joint": (self.joint, shape[:2], expected[:size]),
            "slices": (self.butterflies, shape[1:], expected[size:]),
        }
        least = min((noisy.scale for noisy, _, _ in queries.values() if noisy is not None), default=1.0)
        rows = []
        for noisy, sides, chance in queries.values():
            wanted, weight, slack = np.zeros((3, *sides))
            if noisy is not None:
                part = tuple(slice(0, min(pair)) for pair in zip(sides, noisy.values.shape, strict=True))
                guess = believed(Noisy(noisy.values[part], noisy.scale), chance.reshape(sides)[part])
                wanted[part], slack[part] = guess
                weight[part] = SHARPNESS * least / noisy.scale
            rows.append([item.ravel() for item in (wanted, weight, slack)])
        row, weights, near = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        return PairTarget(row, weights, near, shape)

    def noisy(self) -> dict[str, Noisy]:
        """What was asked beside the degrees, by name."""
        queries = {"joint": self.joint, "butterflies": self.butterflies}
        return {name: answers for name, answers in queries.items() if answers is not None}

    def __repr__(self) -> str:
        return f"<released answers of a bipartite graph: degrees{''.join(f', {name}' for name in self.noisy())}>"


def believed(noisy: Noisy, expected: Floats) -> tuple[Floats, Floats]:
    """Answers, those that noise swamps moved to what is expected; and how sure each is, as noise of which scale.

    Each is an average of itself and of what is expected, by the variances of the noise and of the truth around what is
    expected: `SPREAD` times that, or what the answer is off it beyond noise (empirical Bayes, one answer at a time).

    >>> found, unsure = believed(Noisy(np.array([900.0, -8.0, 90.0]), 10.0), np.array([500.0, 5.0, 0.0]))
    >>> found.round(1).tolist(), unsure.round(1).tolist()
    ([899.7, 3.6, 87.8], [10.0, 3.3, 9.9])
    """
    beyond = (noisy.values - expected) ** 2 - 2 * noisy.scale**2
    return averaged(noisy, expected, np.maximum((SPREAD * expected) ** 2, beyond))
