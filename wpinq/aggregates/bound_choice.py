"""Trade: choose how many records to keep of each person, such that what is left out weighs about what noise does.

With b records kept of each person, a count has noise of scale b / epsilon, so K bins err by K b / epsilon together, in
absolute value; and all records beyond b, cut(b) = sum over people of max(0, n - b), are missing. Where they are spread
over the bins alike, each lacks c = cut(b) / K, of noise of scale s = b / epsilon it is c + s exp(-c / s) away on
average, and the best b is the one for which that is least.

cut(b) follows from how many people have how many records. That is measured: each person is in one cell of a grid, by
all of its records, so one person moves one cell by one, and the bins cost `epsilon` together, whatever a person has.
What is computed from the noisy cells is post-processing. From the top, cells are taken for empty until the people from
a cell on are more than noise explains (false alarm: about 1e-3 for all 73 cells): otherwise noise in a cell of people
with a million records would look like a million records. So what few people have beyond everybody else is not seen.

Source: Amin, Kulesza, Munoz Medina and Vassilvitskii, "Bounding user contributions: a bias-variance trade-off in
differential privacy", ICML 2019, for the trade-off; the choice is ours.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wpinq.aggregates.lengths import Lengths
from wpinq.core.plan.unit import Choice

if TYPE_CHECKING:
    from wpinq.core.plan.node import Builder

TOP = 10**6
"""The last number of the grid is about this."""
SPREAD, LEAST = 3, 6
"""How many people from a cell on are seen: deviations of their noise, and scales of it beside that."""


def numbers() -> list[int]:
    """The numbers to choose from: 1 to 10, and each a fifth more from there on."""
    grid = list(range(1, 11))
    while grid[-1] < TOP:
        grid.append(math.ceil(grid[-1] * 6 / 5))
    return grid


GRID = np.array(numbers())


def choose_bound(records: Builder[Any], choice: Choice) -> int:
    """Choose a bound for records that no bound was applied to; charged before anything is computed.

    Raises:
        BudgetError, LedgerError: See `measure`.
    """
    lengths = records._then(Lengths(records._node, tuple(GRID.tolist())))
    cells = lengths.measure(choice.epsilon, name="bound on contributions")
    noisy = np.asarray(cells.observe_many(range(len(GRID))), np.float64)
    return best_bound(noisy, float(1 / choice.epsilon), choice.bins / float(choice.asking))


def best_bound(cells: NDArray[np.float64], scale: float, price: float, most: int | None = None) -> int:
    """The number of the grid that errs least, by noisy numbers of people.

    Args:
        cells: How many people have at most as many records as each number of the grid, and more than the one before.
        scale: Of their noise.
        price: The expected error by noise of all bins, for each record that is kept of a person.
        most: The largest number that may be chosen.
    """
    low = np.append(0, GRID[:-1])
    beyond = np.append(_people(cells, scale), 0.0)  # those with more than `low`
    area = (GRID - low) * (beyond[:-1] + beyond[1:]) / 2
    cut = np.append(np.cumsum(area[::-1])[::-1][1:], 0.0)
    noise = price * GRID
    error = cut + noise * np.exp(-cut / noise)
    return int(GRID[np.argmin(error if most is None else error[: max(1, np.searchsorted(GRID, most, side="right"))])])


def _people(cells: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """How many people are in each cell or in a later one: never negative, and never rising."""
    total = np.cumsum(cells[::-1])[::-1]
    left = np.arange(len(cells), 0, -1)
    significant = np.flatnonzero(total >= scale * (SPREAD * np.sqrt(2 * left) + LEAST))
    total[significant.max(initial=-1) + 1 :] = 0
    falling, rising = np.minimum.accumulate(total), np.maximum.accumulate(total[::-1])[::-1]
    smooth: NDArray[np.float64] = np.maximum((falling + rising) / 2, 0)
    return smooth
