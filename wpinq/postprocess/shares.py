"""Which margins or residuals to measure, and how to split a budget over them, so that wanted tables err least.

The sum of the variances of all wanted cells is a sum over residuals of a number over what is measured of them
(`cube.py`). With Gaussian noise residuals are measured themselves: the best split is then known in closed form, and no
matrix mechanism errs less (ResidualPlanner). Where the largest variance counts, it is the split of the sum for some
importance of each table, which is found by steps until it is at most a millionth above the least that is possible.

Margins are measured with Laplace noise. A margin's weight is the square of its share of epsilon, so the sum is not
convex, and several beginnings are tried; for Gaussian noise it is its share of rho, and the sum is convex (HDMM's
`OPT_M`). Each step minimizes a sum of one number over each weight, which is nowhere below the sum of variances and
touches it at the shares so far (Jensen's inequality); so no step makes it worse.

Source: as `cube.py`; steps as in Silvey, Titterington, Torsney, "An algorithm for optimal designs on a design
space", Communications in Statistics 7(14), 1978.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from wpinq.postprocess.cube import Cube, Floats

Prices: TypeAlias = "tuple[Floats, Floats]"

AIMS = ("cells", "tables", "max")
"""What is made least; see `planned`."""
STEPS = 1000
"""Steps at the most."""
NEAR = 1e-4
"""How near the sum of variances is to the least one, as a part of it, where Gaussian steps end."""
EXTRA = 1.9
"""How much further than its minimum a step goes, where that is better."""
TRIES = 100
"""Steps from each beginning for Laplace noise; the best go on."""
LEVELS, LEVEL = 1000, 1e-6
"""Importances of tables that are tried for the largest variance of residuals, and how near to the least is enough."""
SADDLE = 100
"""Steps from each beginning for the largest variance where margins are measured."""
TINY = 1e-14
"""No importance of a wanted table is less, so that all of them are told."""
POWERS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7, 1.0) * 2
"""Of the number of its cells: what a margin costs in a greedy cover."""


class Workload:
    """Wanted tables over a cube.

    Args:
        cube: All margins.
        importance: For each margin what the variance of one of its cells counts; 0 where it is not wanted.
        allowed: For each margin whether it may be measured, as all that are wanted may.
        gaussian: Whether weights are shares, of rho, or their squares, of epsilon.
        widths: For each margin the variance that a budget of 1 buys; None where it is 1 for all.
    """

    def __init__(
        self, cube: Cube, importance: Floats, allowed: npt.NDArray[np.bool_], *, gaussian: bool,
        widths: Floats | None = None,
    ) -> None:  # fmt: skip
        self.cube, self.importance, self.allowed, self.gaussian = cube, importance, allowed, gaussian
        self.widths = np.ones(len(allowed)) if widths is None else widths
        self._parts = cube.supersets(importance * cube.repeats) * cube.dimensions

    def weights(self, shares: Floats) -> Floats:
        """What each margin weighs: one over the variance of its noise."""
        return (shares if self.gaussian else shares**2) / self.widths

    def error(self, shares: Floats) -> float:
        """The sum of the variances of all wanted cells."""
        return self._loss(shares)[0]

    def of_residuals(self, prices: Floats) -> tuple[float, Floats]:
        """The least sum of variances where residuals are measured themselves, and for each its share.

        Args:
            prices: For each residual the variance that a budget of 1 buys, where 1 is that of a margin.

        Source: Xiao et al., NeurIPS 2023, section 5 (a sum of numbers over shares, by Cauchy's inequality).
        """
        roots = np.sqrt(self._parts * prices / self.cube.repeats)
        return float(roots.sum() ** 2), roots / roots.sum()

    def variances(self, shares: Floats) -> Floats:
        """The variance of a cell of each margin."""
        return self.cube.variances(self.cube.information(self.weights(shares)))

    def _loss(self, shares: Floats) -> tuple[float, Floats]:
        """The sum, and for each margin how fast it falls with its weight, over the variance that a budget buys."""
        information = self.cube.information(self.weights(shares))
        variance = np.divide(
            1, information, out=np.zeros_like(information), where=(self._parts > 0) & (information > 0)
        )
        lost = (self._parts > 0) & (information <= 0)
        total = np.inf if lost.any() else float((self._parts * variance).sum())
        return total, self.cube.subsets(self._parts * variance**2) * self.cube.repeats / self.widths

    def stepped(self, shares: Floats, slopes: Floats, extra: float = 1.0) -> Floats:
        """Shares after a step, by the slopes at them."""
        factors = slopes ** (1 / 2) if self.gaussian else (shares * slopes) ** (1 / 3)
        factors = np.where(shares > 0, factors, 0)
        factors /= (shares * factors).sum()
        moved = shares * factors**extra
        return np.asarray(moved / moved.sum())

    def descended(self, shares: Floats, steps: int = STEPS) -> tuple[float, Floats]:
        """The sum of variances and the shares after steps from some shares; who begins with none stays so."""
        (total, slopes), extra = self._loss(shares), EXTRA
        for _ in range(steps):
            moved = self.stepped(shares, slopes, extra)
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
    tried = [workload.descended(begin, TRIES) for begin in _begins(workload)]
    first = sorted({float(f"{total:.6g}"): shares for total, shares in tried}.items(), key=lambda result: result[0])
    return _pruned(
        workload, *min((workload.descended(shares) for _, shares in first[:5]), key=lambda result: result[0])
    )


def planned(
    cube: Cube, wanted: Sequence[int], allowed: npt.NDArray[np.bool_], prices: Prices | None, *, aim: str = AIMS[0]
) -> tuple[Floats, bool]:
    """The best shares of a budget, and whether they are of residuals; else they are of margins.

    Args:
        cube: All margins.
        wanted: The margins of the tables.
        allowed: For each margin whether it may be measured, as all that are wanted may.
        prices: The variance that a budget of 1 buys, of each residual and of each margin; None for Laplace noise.
        aim: What is made least: the mean variance of all "cells", or of all "tables", or the "max", of any cell.

    >>> prices = np.array([1, 0.8, 0.75, 0.6]), np.ones(4)  # of records
    >>> shares, residuals = planned(Cube([4, 5]), [1, 2], np.ones(4, bool), prices)
    >>> shares.round(3).tolist(), residuals
    ([0.169, 0.452, 0.379, 0.0], True)
    """
    told = np.isin(np.arange(len(cube.cells)), wanted)
    importance = np.where(told, 1 if aim == "cells" else 1 / cube.cells, 0)

    def error(variances: Floats) -> float:
        return float(variances[told].max() if aim == "max" else importance[told] @ (cube.cells * variances)[told])

    workload = Workload(cube, importance, allowed, gaussian=prices is not None, widths=prices and prices[1])
    if prices is not None:
        residuals = _of_residuals(workload, told, prices[0], aim)
        if (prices[1] >= 1).all():  # a unit may move one cell by all that it moves: no other mechanism errs less
            return residuals[0], True
    margins = lowered(workload, told) if aim == "max" else best(workload)
    if prices is not None and error(residuals[1]) <= error(workload.variances(margins)):
        return residuals[0], True
    return margins, False


def _of_residuals(workload: Workload, told: npt.NDArray[np.bool_], prices: Floats, aim: str) -> tuple[Floats, Floats]:
    """The best shares of residuals, and the variance of each margin."""
    cube = workload.cube

    def split(importance: Floats) -> tuple[Floats, Floats]:
        shares = Workload(cube, importance, workload.allowed, gaussian=True).of_residuals(prices)[1]
        bought = np.divide(shares, prices, out=np.zeros(len(told)), where=prices > 0)
        return shares, cube.variances(cube.repeats * bought)

    return leveled(cube, told, split) if aim == "max" else split(workload.importance)


def leveled(
    cube: Cube, wanted: npt.NDArray[np.bool_], split: Callable[[Floats], tuple[Floats, Floats]]
) -> tuple[Floats, Floats]:
    """Shares by which the largest variance of a cell of a wanted margin is least, or near to that, and all variances.

    For every importance of the wanted margins the mean of their variances is, at its best split, not above that largest
    variance for any split; so where both meet, it is the least. Margins that err more than the mean become more
    important. The best split that was seen is given.

    Args:
        cube: All margins.
        wanted: For each whether it is wanted.
        split: Gives for the importance of a cell of each margin the best shares, and the variance of each margin.
    """
    weight, least, result = wanted / wanted.sum(), np.inf, (np.zeros(len(wanted)), np.zeros(len(wanted)))
    for _ in range(LEVELS):
        shares, variances = split(weight / cube.cells)
        told = np.where(wanted, variances, 0)
        worst, mean = told.max(), weight @ told
        if worst < least:
            least, result = worst, (shares, variances)
        if worst <= (1 + LEVEL) * mean:
            break
        weight = np.where(wanted, np.maximum(weight * (told / mean) ** 2, TINY), 0)
        weight /= weight.sum()
    return result


def lowered(workload: Workload, wanted: npt.NDArray[np.bool_]) -> Floats:
    """Shares of margins by which the largest variance of a cell of a wanted margin is low, from several beginnings.

    For Laplace noise nothing says how near it is to the least.
    """
    begins = [best(workload), *_begins(workload)]
    return min((_saddle(workload, wanted, begin) for begin in begins), key=lambda result: result[0])[1]


def _saddle(workload: Workload, wanted: npt.NDArray[np.bool_], shares: Floats) -> tuple[float, Floats]:
    """The least largest variance that was seen, and its shares.

    Steps of shares and of importances alternate, each by a little, as for a saddle point.
    """
    weight, least, result = wanted / wanted.sum(), np.inf, shares
    for _ in range(SADDLE):
        at = Workload(workload.cube, weight / workload.cube.cells, workload.allowed, gaussian=workload.gaussian,
                      widths=workload.widths)  # fmt: skip
        total, slopes = at._loss(shares)
        told = np.where(wanted, at.variances(shares), 0)
        if told.max() < least:
            least, result = float(told.max()), shares
        if not np.isfinite(total):
            break
        shares = at.stepped(shares, slopes)
        weight = weight * np.sqrt(told / (weight @ told))
        weight /= weight.sum()
    return least, result


def _begins(workload: Workload) -> list[Floats]:
    """Shares to begin with: all margins, the wanted ones, those for Gaussian noise, some by chance, and few margins."""
    wanted = (workload.importance > 0).astype(np.float64) * workload.allowed
    gaussian = Workload(workload.cube, workload.importance, workload.allowed, gaussian=True)
    rng = np.random.default_rng(0)
    times = 4 if len(wanted) <= 1 << 8 else 1
    random = [np.where(workload.allowed, rng.random(len(wanted)) ** power, 0) for power in (1, 1, 4, 16) * times]
    everywhere = workload.allowed / workload.allowed.sum()
    begins = [everywhere, wanted, gaussian.descended(everywhere, TRIES)[1], *random]
    every = [*(begin / begin.sum() for begin in begins), *_covers(workload)]
    return list({begin.tobytes(): begin for begin in every}.values())


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
