"""Which margins to measure, and how to split a budget over them, so that wanted tables err least.

The sum of the variances of all wanted cells is a sum over residuals of a number over what is measured of them
(`cube.py`), so for Gaussian noise, where a margin's weight is its share of rho, it is convex in the shares. For
Laplace noise, whose weight is the square of a share of epsilon, it is not, and several beginnings are tried. Each step
minimizes a sum of one number over each weight, which is nowhere below the sum of variances and touches it at the shares
so far (Jensen's inequality); so no step makes it worse.

Of mechanisms that add independent noise to margins this is the best for Gaussian noise, as in HDMM (`OPT_M`). Noise on
residuals themselves (ResidualPlanner) is the best of all: `bound` tells how good, and nothing that is drawn for margins
one by one reaches it. The gap is 0.1% to 3.5% of the error on the domains of people that both published on, up to 8% on
15 columns of 10 values, and 10% to 16% on 14 columns of two (`tests/benchmarks/bench_plans.py`).

Source: as `cube.py`; steps as in Silvey, Titterington, Torsney, "An algorithm for optimal designs on a design
space", Communications in Statistics 7(14), 1978.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from wpinq.postprocess.cube import Cube, Floats

STEPS = 1000
"""Steps at the most."""
NEAR = 1e-4
"""How near the sum of variances is to the least one, as a part of it, where Gaussian steps end."""
EXTRA = 1.9
"""How much further than its minimum a step goes, where that is better."""
TRIES = 100
"""Steps from each beginning for Laplace noise; the best go on."""
POWERS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7, 1.0) * 2
"""Of the number of its cells: what a margin costs in a greedy cover."""


class Workload:
    """Wanted tables over a cube.

    Args:
        cube: All margins.
        importance: For each margin what the variance of one of its cells counts; 0 where it is not wanted.
        allowed: For each margin whether it may be measured, as all that are wanted may.
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
    if workload.gaussian:
        return _pruned(workload, *workload.descended(everywhere))
    begins = [everywhere, *_covers(workload), *_begins(workload)]
    first = sorted((workload.descended(begin, TRIES) for begin in begins), key=lambda result: result[0])
    return _pruned(
        workload, *min((workload.descended(shares) for _, shares in first[:3]), key=lambda result: result[0])
    )


def _begins(workload: Workload) -> list[Floats]:
    """Shares to begin with: the wanted margins, those for Gaussian noise, and some by chance."""
    wanted = (workload.importance > 0).astype(np.float64) * workload.allowed
    gaussian = Workload(workload.cube, workload.importance, workload.allowed, gaussian=True)
    rng = np.random.default_rng(0)
    random = [np.where(workload.allowed, rng.random(len(wanted)) ** power, 0) for power in (1, 1, 4, 16)]
    begins = [wanted, gaussian.descended(workload.allowed / workload.allowed.sum(), TRIES)[1], *random]
    return [begin / begin.sum() for begin in begins]


def _covers(workload: Workload) -> Iterator[Floats]:
    """Equal shares of few margins that tell all wanted tables: greedily, those first that tell most for their cells.

    Of Laplace noise two margins cost each four times the variance, so few larger ones are often better than many.
    """
    cube, rng = workload.cube, np.random.default_rng(1)
    for power in POWERS:
        prices = cube.cells**power * np.exp(0.01 * rng.random(len(cube.cells)))
        left, cover = (workload.importance > 0).astype(np.float64), np.zeros(len(cube.cells))
        while left.any():
            gains = np.where(workload.allowed, cube.subsets(left) / prices, 0)
            margin = int(gains.argmax())
            cover[margin] = 1
            numbers = np.arange(len(left))
            left[numbers & margin == numbers] = 0
        yield cover / cover.sum()


def _pruned(workload: Workload, total: float, shares: Floats) -> Floats:
    """The same with fewer margins, where that costs next to nothing."""
    for least in (1e-2, 1e-3, 1e-4):
        fewer = np.where(shares >= least * shares.max(), shares, 0)
        if np.isfinite(workload.error(fewer / fewer.sum())):
            after, shares_after = workload.descended(fewer / fewer.sum(), 300)
            if after <= total * (1 + 10 * NEAR):
                return shares_after
    return shares
