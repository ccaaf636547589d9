"""What a search for a graph looks for: the counts that released answers ask for, and what each is worth."""

from __future__ import annotations

from dataclasses import dataclass

from wpinq.postprocess.graphs.counts import Floats


@dataclass(frozen=True, eq=False)
class Target:
    """What counts should be, and what each unit is worth.

    Attributes:
        wanted: As many numbers as there are counts, in one row, joint degrees first.
        weight: What a difference of one costs; 0 where nothing was asked.
        slack: Within so much of the answer a difference costs less than that, its square (Huber's loss).
        joint: How many of the counts are joint degrees of buckets.
    """

    wanted: Floats
    weight: Floats
    slack: Floats
    joint: int

    def times(self, factor: float, rest: bool = True) -> Target:
        """The same answers, told more or less loudly; without the rest, those about joint degrees alone."""
        weight = self.weight * factor
        if not rest:
            weight[self.joint :] = 0
        return Target(self.wanted, weight, self.slack, self.joint)
