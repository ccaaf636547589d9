"""Noisy counts of several sets of keys that add up: weighted least squares over the lattice of margins.

Any two sets of keys tell the counts of the keys that they share. Of all numbers that agree there, those are taken that
are nearest to what was measured, each by the inverse of its variance. This is a projection onto a space that holds the
true counts, so the error, weighted alike, is never larger, whatever the noise was.

Source: Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private histograms through consistency",
PVLDB 3(1), 2010; for margins Barak, Chaudhuri, Dwork, Kale, McSherry, Talwar, PODS 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from wpinq.errors import PlanError

Cell = tuple[frozenset[int], tuple[Any, ...]]
"""A set of keys, by their places, and a value for each place; those that are not in the set do not matter."""


def consistent(
    cells: Sequence[Cell], values: npt.NDArray[np.float64], variances: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Noisy counts that add up, from those that were measured. It is post-processing, and costs nothing.

    The cells of a set must be all that have records, below each cell of another set that it divides. What only one of
    two sets has is left as it is by these two: of it nothing is known.

    Args:
        cells: Different ones.
        values: The noisy count of each.
        variances: How much noise each has, above 0.

    Raises:
        PlanError: A cell is there twice, there are not as many numbers as cells, or a variance is not above 0.

    >>> total, ann, bob = (frozenset(), (None,)), (frozenset([0]), ("ann",)), (frozenset([0]), ("bob",))
    >>> consistent([total, ann, bob], np.array([12.0, 5.0, 4.0]), np.ones(3)).round(6).tolist()
    [11.0, 6.0, 5.0]
    """
    if len({_named(one) for one in cells}) != len(cells) or not len(cells) == len(values) == len(variances):
        raise PlanError("consistent(cells=...): give each cell once, with its number and its variance.")
    if not np.all(np.isfinite(values)) or not np.all((variances > 0) & np.isfinite(variances)):
        raise PlanError("consistent(variances=...): numbers are finite, and variances are above 0.")
    rows, columns, signs = _sums(cells)
    if not rows:
        return values.copy()
    spread = np.sqrt(variances)
    sums, of = np.asarray(rows), np.asarray(columns)
    return _without(values / spread, sums, of, np.asarray(signs) * spread[of]) * spread


def _without(
    values: npt.NDArray[np.float64], rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64],
    entries: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:  # fmt: skip
    """What is left of a vector without its part along some rows, by conjugate gradients (Hestenes, Stiefel, 1952).

    Each step takes away a projection onto some of that part, so a step that is not made leaves an error no larger.
    """
    many, rest = int(rows.max()) + 1, values.copy()
    slope = np.bincount(rows, entries * rest[columns], many)
    direction, size = slope, float(slope @ slope)
    least = size * 1e-24
    for _ in range(20 * many + 100):
        if size <= least:
            break
        image = np.bincount(columns, entries * direction[rows], len(values))
        rest -= size / float(image @ image) * image
        slope = np.bincount(rows, entries * rest[columns], many)
        size, before = float(slope @ slope), size
        direction = slope + size / before * direction
    return rest


def _named(cell: Cell) -> tuple[frozenset[int], tuple[Any, ...]]:
    return cell[0], tuple(cell[1][place] for place in sorted(cell[0]))


def _sums(cells: Sequence[Cell]) -> tuple[list[int], list[int], list[float]]:
    """What is zero of true counts: entries of sums, as the number of the sum, the cell and its sign."""
    by_set: dict[frozenset[int], list[int]] = {}
    for number, (chosen, _) in enumerate(cells):
        by_set.setdefault(chosen, []).append(number)
    rows: list[int] = []
    columns: list[int] = []
    signs: list[float] = []
    many = 0
    for pair in combinations(by_set, 2):
        shared = sorted(pair[0] & pair[1])
        sides: list[dict[tuple[Any, ...], list[int]]] = [{}, {}]
        for side, chosen in zip(sides, pair, strict=True):
            for number in by_set[chosen]:
                side.setdefault(tuple(cells[number][1][place] for place in shared), []).append(number)
        for key in sides[0].keys() & sides[1].keys():
            for side, sign in zip(sides, (1.0, -1.0), strict=True):
                rows += [many] * len(side[key])
                columns += side[key]
                signs += [sign] * len(side[key])
            many += 1
    return rows, columns, signs
