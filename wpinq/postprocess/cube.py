"""The data cube of a table, all of its margins: what noise leaves in each cell when some are measured; least squares.

Every margin is a sum of *residuals*: that of a set B of columns is what the margin of B tells beyond those of fewer. A
measured margin A of weight w (one over the variance of its noise) tells of the residual of each B within A, and least
squares take the mean of what all of them tell, by weight w times `repeats` of A. So nothing is ever as large as the
table of all columns, and neither matrices nor iterations are needed. Residuals may be measured themselves, too.

A margin is a number below 2^d: a bit for each of d columns, the first column the highest.

Source: McKenna, Miklau, Hay, Machanavajjhala, "Optimizing error of high-dimensional statistical queries under
differential privacy", PVLDB 11(10), 2018, section 7 (the inverse of a weighted sum of margins); Xiao, Sun, Xiao, Kifer,
Zhang, "An optimal and scalable matrix mechanism for noisy marginals under convex loss functions", NeurIPS 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
POINTS = 5_000
"""Points at which the characteristic function of a sum of noises is looked at."""
MANY = 64
"""Scales that are taken as they are; of more each is raised by 1% at most, so that few are left."""
NOTHING = 25.0
"""Minus the logarithm of what the characteristic function is no more where it is left out."""
FINE = 0.01
"""Logarithm of what they are raised to multiples of."""


class Cube:
    """All margins of a table.

    Args:
        sizes: How many values each column has.

    >>> cube = Cube([2, 3])
    >>> cube.margin([1]), cube.columns(2), cube.cells.tolist()
    (1, [0], [1.0, 3.0, 2.0, 6.0])
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)

    def margin(self, columns: Iterable[int]) -> int:
        """The number of the margin of some columns."""
        return sum(1 << (len(self.sizes) - 1 - column) for column in set(columns))

    def columns(self, margin: int) -> list[int]:
        """The columns of a margin, in their order."""
        return [column for column in range(len(self.sizes)) if margin >> (len(self.sizes) - 1 - column) & 1]

    def shape(self, margin: int) -> tuple[int, ...]:
        """How many values each column of a margin has."""
        return tuple(self.sizes[column] for column in self.columns(margin))

    def below(self, margins: Iterable[int]) -> list[int]:
        """All margins of no other columns than one of these, in ascending order."""
        marked = np.zeros(1 << len(self.sizes))
        marked[list(margins)] = 1
        return [int(margin) for margin in np.flatnonzero(self.supersets(marked))]

    @cached_property
    def cells(self) -> Floats:
        """How many cells each margin has."""
        return self._product([(1, size) for size in self.sizes])

    @cached_property
    def repeats(self) -> Floats:
        """How many cells of the table of all columns each cell of a margin adds up."""
        return self._product([(size, 1) for size in self.sizes])

    @cached_property
    def dimensions(self) -> Floats:
        """How many numbers each residual has that no other tells."""
        return self._product([(1, size - 1) for size in self.sizes])

    def _product(self, factors: Iterable[tuple[int, int]]) -> Floats:
        """For each margin the product over the columns: the first number where it lacks a column, else the second."""
        pairs = (np.array(pair, float) for pair in factors)
        return reduce(lambda whole, pair: np.multiply.outer(whole, pair).ravel(), pairs, np.ones(1))

    def supersets(self, values: Floats) -> Floats:
        """For each margin the sum over all margins of the same columns and more."""
        return self._summed(values, 1, 0)

    def subsets(self, values: Floats) -> Floats:
        """For each margin the sum over all margins of its columns and fewer."""
        return self._summed(values, 0, 1)

    def _summed(self, values: Floats, source: int, target: int) -> Floats:
        result = values.copy()
        for column in range(len(self.sizes)):
            halves = result.reshape(1 << column, 2, -1)
            halves[:, target] += halves[:, source]
        return result

    def information(self, weights: Floats) -> Floats:
        """What measured margins tell of each residual, as the weight of the cells of the table of all columns.

        Args:
            weights: For each margin one over the variance of the noise of its cells; 0 where it is not measured.
        """
        return self.supersets(weights * self.repeats)

    def variances(self, information: Floats) -> Floats:
        """The variance of a cell of each margin after least squares; infinite where it cannot be told.

        Args:
            information: Of each residual, as `information` gives it; or where residuals are measured themselves, how
                often their cells are repeated, over the variance of their noise in any direction.

        >>> cube = Cube([2, 3])
        >>> cube.variances(cube.information(np.array([0.0, 0, 0, 1]))).round(6).tolist()
        [6.0, 2.0, 3.0, 1.0]
        """
        each = np.zeros(len(self.cells))
        with np.errstate(divide="ignore", over="ignore"):
            np.divide(self.dimensions, information, out=each, where=self.dimensions > 0)
            return self.subsets(each) * self.repeats / self.cells

    def least_squares(
        self, measured: Mapping[int, Floats], weights: Floats, wanted: Iterable[int]
    ) -> dict[int, Floats]:
        """Margins that are nearest to what was measured of all that agree with each other.

        Args:
            measured: The noisy cells of each measured margin, an axis for each of its columns.
            weights: As `information` takes them.
            wanted: The margins to tell; what is measured must tell them.

        >>> margins = Cube([2]).least_squares({0: np.array(12.0), 1: np.array([5.0, 4])}, np.ones(2), [0, 1])
        >>> margins[0].round(6).tolist(), margins[1].round(6).tolist()
        (11.0, [6.0, 5.0])
        """
        wanted, information = list(wanted), self.information(weights)
        residuals = {margin: np.zeros(self.shape(margin)) for margin in self.below(wanted)}
        for margin, cells in measured.items():
            columns, weight = self.columns(margin), weights[margin] * self.repeats[margin]
            for part in residuals:
                if part & margin == part:
                    others = tuple(axis for axis, column in enumerate(columns) if column not in self.columns(part))
                    residuals[part] += weight / information[part] * cells.sum(axis=others)
        for part, sums in residuals.items():
            for axis in range(sums.ndim):
                residuals[part] = residuals[part] - residuals[part].mean(axis=axis, keepdims=True)
        return {margin: self.of_residuals(margin, residuals) for margin in wanted}

    def of_residuals(self, margin: int, residuals: Mapping[int, Floats]) -> Floats:
        """A margin from the residuals of its columns and of fewer; one that is not there is zero.

        >>> Cube([2]).of_residuals(1, {0: np.array(9.0), 1: np.array([0.5, -0.5])}).tolist()
        [5.0, 4.0]
        """
        result = np.zeros(self.shape(margin))
        columns = self.columns(margin)
        for part in (part for part in self.below([margin]) if part in residuals):
            inner = self.columns(part)
            shape = [self.sizes[column] if column in inner else 1 for column in columns]
            result += residuals[part].reshape(shape) * (self.cells[part] / self.cells[margin])
        return result

    def noise(self, weights: Floats, margin: int) -> Iterator[tuple[int, Floats, Floats]]:
        """What a cell of a margin takes of the noise of each measured one: its number, factors, and how many have each.

        A cell of a measured margin is taken by the columns in which it agrees with the cell that is told.

        >>> [(number, factors.tolist(), many.tolist()) for number, factors, many in Cube([2]).noise(np.ones(2), 0)]
        [(0, [0.6666666666666666], [1.0]), (1, [0.3333333333333333], [2.0])]
        """
        information = self.information(weights)
        for number in map(int, np.flatnonzero(weights)):
            shared = self.columns(number & margin)
            below, agreeing = np.zeros(1, int), np.ones((1, 1), np.float64)
            for column in shared:
                size = self.sizes[column]
                below = np.add.outer(below, [0, self.margin([column])]).ravel()
                agreeing = np.asarray(np.kron(agreeing, [[1, -1 / size], [1, 1 - 1 / size]]), np.float64)
            parts = weights[number] * self.repeats[number] / information[below] * self.cells[below] / self.cells[margin]
            others = self.cells[number] / self.cells[number & margin]
            yield number, agreeing @ parts, self.dimensions[below[::-1]] * others


def half_width(scales: Floats, many: Floats, level: float) -> float:
    """What the sum of independent Laplace variables exceeds, either way, with probability 1 - `level`.

    It is read off their characteristic function, the product of 1 / (1 + scale^2 t^2), by the inversion of Gil-Pelaez
    (Biometrika 38, 1951): P(|X| <= x) = 2/pi times the integral of that product times sin(x t) / t.

    Args:
        scales: The scale of each kind.
        many: How many of each there are.
        level: Between 0 and 1.

    >>> round(half_width(np.array([10.0]), np.array([1.0]), 0.95), 2)  # 10 ln 20
    29.96
    """
    spread = math.sqrt(2 * float(many @ scales**2))
    kinds = np.exp(FINE * np.ceil(np.log(np.maximum(scales, 1e-9 * spread)) / FINE)) if len(scales) > MANY else scales
    kinds, of = np.unique(kinds, return_inverse=True)
    step = 0.02 / spread
    counts = np.bincount(of, many)
    last = POINTS // 2 ** np.arange(5)  # of many noises the product is nothing long before
    gone = counts @ np.log1p((step * np.multiply.outer(kinds, last)) ** 2) > NOTHING
    points = step * (np.arange(last[gone].min(initial=POINTS)) + 0.5)
    product = np.exp(-counts @ np.log1p(np.multiply.outer(kinds, points) ** 2))
    low, high = 0.0, 20 * spread
    for _ in range(60):
        middle = (low + high) / 2
        within = 2 / math.pi * step * float((product * np.sin(middle * points) / points).sum())
        low, high = (middle, high) if within < level else (low, middle)
    return high
