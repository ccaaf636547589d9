"""Which margins to measure, and how to split a budget over them, so that wanted tables err least.

The sum of the variances of all wanted cells is a sum over residuals of a number over what is measured of them
(`cube.py`), so for Gaussian noise, where a margin's weight is its share of rho, it is convex in the shares. For
Laplace noise, whose weight is the square of a share of epsilon, it is not, and several beginnings are tried. Each step
minimizes a sum of one number over each weight, which is nowhere below the sum of variances and touches it at the shares
so far (Jensen's inequality); so no step makes it worse.

Of mechanisms that add independent noise to margins this is the best for Gaussian noise, as in HDMM (`OPT_M`). Noise on
residuals themselves (ResidualPlanner) is the best of all: `bound` tells how good, and nothing that is drawn for margins
one by one reaches it. The gap is 0.1% to 3.5% of the error on the domains that both published on, 8% on 14 columns of
10 values, and 15% on 14 columns of two.

Source: as `cube.py`; steps as in Silvey, Titterington, Torsney, "An algorithm for optimal designs on a design
space", Communications in Statistics 7(14), 1978.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wpinq.postprocess.cube import Cube, Floats

STEPS = 1000
"""Steps at the most."""
NEAR = 1e-4
"""How near the sum of variances is to the least one, as a part of it, where Gaussian steps end."""
EXTRA = 1.9
"""How much further than its minimum a step goes, where that is better."""
STARTS = 6
"""Random beginnings for Laplace noise."""


class Workload:
    """Wanted tables over a cube.

    Args:
        cube: All margins.
        importance: For each margin what the variance of one of its cells counts; 0 where it is not wanted.
        allowed: For each margin whether it may be measured.
        gaussian: Whether weights are shares, of rho, or their squares, of epsilon.
    """

    def __init__(self, cube: Cube, importance: Floats, allowed: npt.NDArray[np.bool_], *, gaussian: bool) -> None:
        self.cube, self.importance, self.allowed, self.gaussian = cube, importance, allowed, gaussian
        self._parts = cube.supersets(importance * cube.repeats) * cube.dimensions

    def weights(self, shares: Floats) -> Floats:
        """What each margin weighs, where a budget of 1 buys a weight of 1."""
        return shares if self.gaussian else shares**2

    def error(self, shares: Floats) -> float:
        """The sum of the variances of all wanted cells."""
        return self._loss(shares)[0]

    def bound(self) -> float:
        """The least sum of variances of any matrix mechanism, whose noise is Gaussian and may be correlated.

        Source: Xiao et al., NeurIPS 2023, section 5 (a sum of numbers over shares, by Cauchy's inequality).
        """
        prices = self.cube.dimensions / self.cube.cells[-1]
        return float(np.sqrt(self._parts * prices).sum() ** 2)

    def _loss(self, shares: Floats) -> tuple[float, Floats]:
        """The sum, and for each margin how fast it falls with its weight."""
        information = self.cube.information(self.weights(shares))
        variance = np.divide(
            1, information, out=np.zeros_like(information), where=(self._parts > 0) & (information > 0)
        )
        lost = (self._parts > 0) & (information <= 0)
        total = np.inf if lost.any() else float((self._parts * variance).sum())
        return total, self.cube.subsets(self._parts * variance**2) * self.cube.repeats

    def _step(self, shares: Floats, slopes: Floats, extra: float) -> Floats:
        factors = slopes ** (1 / 2) if self.gaussian else (shares * slopes) ** (1 / 3)
        factors = np.where(shares > 0, factors, 0)
        factors /= (shares * factors).sum()
        moved = shares * factors**extra
        return np.asarray(moved / moved.sum())

    def descended(self, shares: Floats, steps: int = STEPS) -> tuple[float, Floats]:
        """The sum of variances and the shares after steps from some shares; who begins with none stays so."""
        (total, slopes), extra = self._loss(shares), EXTRA
        for _ in range(steps):
            moved = self._step(shares, slopes, extra)
            after, slopes_after = self._loss(moved)
            if after > total and extra > 1:
                extra = 1.0
                continue
            gained, total, shares, slopes = total - after, after, moved, slopes_after
            extra = EXTRA
            if self.gaussian:
                if slopes[self.allowed].max() <= (1 + NEAR) * total:
                    break
            elif gained < 1e-7 * total:
                break
        return total, shares


def best(workload: Workload) -> Floats:
    """For each margin its share of the budget; those that are not measured have none.

    >>> cube = Cube([4, 5])
    >>> wanted = np.array([0.0, 1, 1, 0])  # the two columns, each by itself
    >>> best(Workload(cube, wanted, np.ones(4, bool), gaussian=True)).round(3).tolist()
    [0.0, 0.532, 0.468, 0.0]
    """
    everywhere = workload.allowed / workload.allowed.sum()
    total, shares = workload.descended(everywhere)
    for begin in () if workload.gaussian else _begins(workload, shares):
        if np.isfinite(workload.error(begin)):
            total, shares = min((total, shares), workload.descended(begin), key=lambda result: result[0])
    return _pruned(workload, total, shares)


def _begins(workload: Workload, shares: Floats) -> list[Floats]:
    """Shares to begin with: the wanted margins, the largest alone, those for Gaussian noise, and some by chance."""
    wanted = (workload.importance > 0).astype(np.float64)
    largest = wanted * (workload.cube.supersets(wanted) == 1)
    every = workload.cube.margin(
        column for margin in np.flatnonzero(wanted) for column in workload.cube.columns(int(margin))
    )
    whole = np.arange(len(wanted)) == every
    gaussian = Workload(workload.cube, workload.importance, workload.allowed, gaussian=True)
    rng = np.random.default_rng(0)
    likely = workload.allowed * workload.cube.supersets(np.maximum(wanted, whole))
    random = [np.where(likely > 0, rng.exponential(size=len(wanted)) ** 4, 0) for _ in range(STARTS)]
    begins = [wanted, largest, whole, shares, gaussian.descended(shares, 300)[1], *random]
    allowed = [begin * workload.allowed for begin in begins]
    return [begin / begin.sum() for begin in allowed if begin.sum() > 0]


def _pruned(workload: Workload, total: float, shares: Floats) -> Floats:
    """The same with fewer margins, where that costs next to nothing."""
    for least in (1e-2, 1e-3, 1e-4):
        fewer = np.where(shares >= least * shares.max(), shares, 0)
        if np.isfinite(workload.error(fewer / fewer.sum())):
            after, shares_after = workload.descended(fewer / fewer.sum(), 300)
            if after <= total * (1 + 10 * NEAR):
                return shares_after
    return shares
