"""Noisy counts of several sets of keys that add up: least squares over all margins.

Any two sets of keys tell the counts of the keys that they share. Of all numbers that agree there, those are taken that
are nearest to what was measured. This is a projection onto a space that holds the true counts, so the sum of squared
errors is never larger, whatever the noise was.

Source: Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private histograms through consistency",
PVLDB 3(1), 2010; for margins Barak, Chaudhuri, Dwork, Kale, McSherry, Talwar, PODS 2007.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

Places: TypeAlias = npt.NDArray[np.int64]

PATIENCE = 100
"""Steps of which none comes nearer, after which none will."""
ROUNDING = 16 * np.finfo(np.float64).eps
"""The part of all that a sum adds, by which it is zero: what is smaller comes from rounding alone."""


def consistent(
    groups: pl.DataFrame, values: npt.NDArray[np.float64], scales: npt.NDArray[np.float64] | None = None
) -> npt.NDArray[np.float64]:
    """Noisy counts that add up, from those that were measured. It is post-processing, and costs nothing.

    Below each group of one set, the groups of a finer set must be all that have records. A group of which the other set
    has none is left as it is by these two: of it nothing is known.

    Args:
        groups: A column for each key, and last the number of the set, as SQL's GROUPING of all keys tells it: a bit for
            each key, from the left, that is 1 where the set lacks it. Higher bits tell sets apart that have the same
            keys. Each group of a set is there once.
        values: The noisy count of each.
        scales: How wide the noise of each is, for any unit; None where all have the same.

    >>> groups = pl.DataFrame({"user": [None, "ann", "bob"], "grouping": [1, 0, 0]})
    >>> consistent(groups, np.array([12.0, 5.0, 4.0])).round(6).tolist()
    [11.0, 6.0, 5.0]
    """
    wide = np.ones(len(values)) if scales is None else scales
    levels = _levels(groups)
    if levels is not None:
        return _of_tree(values, wide**2, levels)
    sums = _sums(groups)
    if not sums.height:
        return values.copy()
    rows, columns, signs = (sums[name].to_numpy() for name in ("sum", "row", "sign"))
    return wide * _without(values / wide, rows, columns, signs * wide[columns])


def cube_sizes(groups: pl.DataFrame) -> list[int] | None:
    """How many values each key has, where the groups are all of a whole cube: every set of keys, of the same values.

    Args:
        groups: As `consistent` takes them.
    """
    *keys, number = groups.columns
    bits = [(pl.col(number) // 2**index) % 2 == 1 for index in reversed(range(len(keys)))]
    if not keys:
        return None
    sizes = [groups.filter(~bit)[key].n_unique() for bit, key in zip(bits, keys, strict=True)]
    sets = dict(groups.group_by(number).len().iter_rows())
    every = {
        mask: math.prod(size for index, size in enumerate(sizes) if not mask >> (len(keys) - 1 - index) & 1)
        for mask in range(2 ** len(keys))
    }
    return sizes if sets == every else None


def cube_noise(sizes: Sequence[int]) -> list[tuple[float, int]]:
    """The noise of each count of a whole cube that adds up: parts of the noise of one measured count, and how many.

    The counts of a cube are a product over its keys of one row for each value and one for their sum. Least squares are
    the same product of `I - J / (n + 1)`, so any count takes n / (n + 1) of one measured count of each key's n + 1, and
    1 / (n + 1) of the n others, added or taken away. Symmetric noise is the same either way.

    >>> cube_noise([2])
    [(0.6666666666666666, 1), (0.3333333333333333, 2)]
    """
    terms = [(1.0, 1)]
    for size in sizes:
        terms = [(part * factor, many * times) for part, many in terms
                 for factor, times in ((size / (size + 1), 1), (1 / (size + 1), size))]  # fmt: skip
    return terms


def added_up(values: npt.NDArray[np.float64], axis: int, *, measured: bool) -> npt.NDArray[np.float64]:
    """Counts with their totals along an axis that add up, by least squares.

    Args:
        values: The counts.
        axis: The axis.
        measured: Whether its last place is a total that was measured with the same noise; else there is none.

    >>> added_up(np.array([5.0, 4.0, 12.0]), 0, measured=True).tolist()
    [6.0, 5.0, 11.0]
    """
    if measured:
        values, total = np.split(values, [-1], axis=axis)
        values = values + (total - values.sum(axis=axis, keepdims=True)) / (values.shape[axis] + 1)
    return np.concatenate([values, values.sum(axis=axis, keepdims=True)], axis=axis)


def _levels(groups: pl.DataFrame) -> list[tuple[Places, Places]] | None:
    """The levels of a tree, from the root down, if the groups are one, as those of ROLLUP are.

    Returns:
        For each level the rows of its groups, and the places of those above in the level before; None where the sets
        of keys are not each within the next, or a group has none above it, or none below it.
    """
    keys = groups.width - 1
    rows = groups.rename({name: str(index) for index, name in enumerate(groups.columns)}).with_row_index("row")
    sets = sorted(rows.partition_by(str(keys), as_dict=True).items(), key=lambda item: -item[0][0].bit_count())
    result: list[tuple[Places, Places]] = []
    before, shared = None, 0
    for (number,), part in sets:
        told = ~number & ((1 << keys) - 1)
        if number >> keys or (before is not None and (shared & ~told or shared == told)):
            return None
        above = np.zeros(part.height, np.int64)
        if before is not None:
            on = [str(index) for index in range(keys) if shared >> (keys - 1 - index) & 1]
            both = [frame.select("row", *on).with_columns(all=pl.lit(0)) for frame in (part, before)]
            named = both[1].with_columns(above=pl.int_range(pl.len())).drop("row")
            pair = both[0].join(named, on=[*on, "all"], how="left", nulls_equal=True, maintain_order="left")
            if pair.height > part.height or pair["above"].null_count() or pair["above"].n_unique() < before.height:
                return None
            above = pair["above"].to_numpy()
        result.append((part["row"].to_numpy().astype(np.int64), above))
        before, shared = part, told
    return result if len(result) > 1 else None


def _of_tree(
    values: npt.NDArray[np.float64], variances: npt.NDArray[np.float64], levels: Sequence[tuple[Places, Places]]
) -> npt.NDArray[np.float64]:
    """Least squares over a tree, exactly: from the leaves up, what each node and all below tell of it; then down.

    Source: Hay, Rastogi, Miklau, Suciu, PVLDB 3(1), 2010, section 4, for any variances.
    """
    told, unsure = [values[rows] for rows, _ in levels], [variances[rows] for rows, _ in levels]
    for level in range(len(levels) - 1, 0, -1):
        above, size = levels[level][1], len(told[level - 1])
        sums, wide = (np.bincount(above, each[level], size) for each in (told, unsure))
        own = unsure[level - 1]
        told[level - 1] = (wide * told[level - 1] + own * sums) / (own + wide)
        unsure[level - 1] = own * wide / (own + wide)
    result = values.copy()
    result[levels[0][0]] = told[0]
    for level in range(1, len(levels)):
        rows, above = levels[level]
        size = len(told[level - 1])
        lacking = result[levels[level - 1][0]] - np.bincount(above, told[level], size)
        share = unsure[level] / np.bincount(above, unsure[level], size)[above]
        result[rows] = told[level] + share * lacking[above]
    return result


def _sums(groups: pl.DataFrame) -> pl.DataFrame:
    """What is zero of true counts: for each entry the number of the sum, the row of the group and its sign."""
    keys = groups.width - 1
    rows = groups.rename({name: str(index) for index, name in enumerate(groups.columns)}).with_row_index("row")
    sets = {number: part for (number,), part in rows.partition_by(str(keys), as_dict=True).items()}
    entries_of = [pl.DataFrame(schema={"row": pl.get_index_type(), "sign": pl.Float64})]
    for pair in combinations(sets, 2):
        shared = [str(index) for index in range(keys) if not (pair[0] | pair[1]) >> (keys - 1 - index) & 1]
        sides = [
            sets[number].select("row", *shared, pl.lit(sign).alias("sign"), pl.lit(0).alias("all"))
            for number, sign in zip(pair, (1.0, -1.0), strict=True)
        ]
        entries = pl.concat(sides).group_by("all", *shared, maintain_order=True).agg("row", "sign")
        entries_of.append(entries.filter(pl.col("sign").list.n_unique() == 2).select("row", "sign"))
    whole = pl.concat([entries_of[0].select(pl.all().implode()).clear(), *entries_of[1:]])
    return whole.with_row_index("sum").explode("row", "sign")


def _without(
    values: npt.NDArray[np.float64], rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64],
    entries: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:  # fmt: skip
    """What is left of a vector without its part along some rows, by conjugate gradients (Hestenes, Stiefel, 1952).

    Each step takes away a projection onto some of that part, so a step that is not made leaves an error no larger. It
    ends where rounding is all that is left: a step along that would lead anywhere. How much that is can only be
    guessed, so it also ends where no step has come nearer for some time, and the nearest is given.
    """
    many, rest = int(rows.max()) + 1, values.copy()
    entries = entries / np.sqrt(np.bincount(rows, entries**2, many))[rows]  # rows of one length are fewer steps
    slope = np.bincount(rows, entries * rest[columns], many)
    direction, size = slope, float(slope @ slope)
    rounding = ROUNDING * np.bincount(rows, np.abs(entries * rest[columns]), many)
    enough = float(rounding @ rounding)
    nearest, least, since = rest, size, 0
    while size > enough and since < PATIENCE:
        image = np.bincount(columns, entries * direction[rows], len(values))
        rest = rest - size / float(image @ image) * image
        slope = np.bincount(rows, entries * rest[columns], many)
        size, before = float(slope @ slope), size
        direction = slope + size / before * direction
        since += 1
        if size < least:
            nearest, least, since = rest, size, 0
    return nearest
