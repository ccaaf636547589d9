"""Numbers of a table that are public, and kept as they are: structural zeros, and totals that everybody knows.

They are told of no record, so they cost nothing: the estimates are moved to them as little as makes all numbers add up,
in the measure of their noise. Below a total of zero all cells are zero. The variance of no number grows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from wpinq.errors import PlanError
from wpinq.postprocess.axes import Axis, exactly

if TYPE_CHECKING:
    import numpy.typing as npt

CALL = "table(keep=...)"
MOST = 1_000
"""Numbers that are kept, with the cells below those of zero."""


@dataclass(frozen=True)
class Public:
    """Public numbers.

    Attributes:
        numbers: For each place of the table its count.
    """

    numbers: Mapping[tuple[int, ...], int]

    @property
    def empty(self) -> Public:
        """Those of which no record is: all sums are zero there, too."""
        return Public({place: number for place, number in self.numbers.items() if not number})

    def imposed(self, estimates: npt.NDArray[np.float64], axes: Sequence[Axis]) -> npt.NDArray[np.float64]:
        """The estimates with these numbers, moved as little as makes all add up."""
        if not self.numbers:
            return estimates
        places = list(self.numbers)
        columns = [[axis.covariance(place[at]) for at, axis in enumerate(axes)] for place in places]
        wanted = np.array([estimates[place] - number for place, number in self.numbers.items()])
        result = estimates.copy()
        for share, parts in zip(self._shares(columns, wanted), columns, strict=True):
            result -= share * reduce(np.multiply.outer, parts)
        for place, number in self.numbers.items():
            result[place] = number
        return result

    def insist(self, axes: Sequence[Axis]) -> None:
        """Refuse numbers that no table has together.

        Raises:
            PlanError: There is none.
        """
        columns = [[axis.covariance(place[at]) for at, axis in enumerate(axes)] for place in self.numbers]
        wanted = np.array(list(self.numbers.values()), np.float64)
        if len(wanted) and np.abs(self._matrix(columns) @ self._shares(columns, wanted) - wanted).max() > 1e-6 * (
            1 + wanted.max()
        ):
            raise PlanError(f"{CALL}: no table has all of these numbers, for parts and totals contradict each other.")

    def _shares(self, columns: Sequence[Sequence[Any]], wanted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(np.linalg.lstsq(self._matrix(columns), wanted, rcond=1e-10)[0], np.float64)

    def _matrix(self, columns: Sequence[Sequence[Any]]) -> npt.NDArray[np.float64]:
        """The covariance of the places, in variances of one measured number."""
        spots = np.array(list(self.numbers))
        result: npt.NDArray[np.float64] = np.ones((len(spots), len(spots)))
        for at in range(spots.shape[1]):
            result = result * np.array([parts[at][spots[:, at]] for parts in columns], np.float64)
        return result


def read_public(
    keep: Sequence[tuple[Mapping[str, str], int]],
    keys: Sequence[tuple[str, tuple[str, ...]]],
    axes: Sequence[Axis],
    chosen: Collection[str] = (),
) -> Public:
    """Read public numbers.

    Args:
        keep: Pairs of a value for each column, but those whose total is meant, and a count.
        keys: The columns of the table with their values.
        axes: How they were measured.
        chosen: The columns whose values nobody listed: totals of them are kept, and nothing below.

    Raises:
        PlanError: A place is none of the table, a number no count, or they contradict each other; or whole numbers do
            not reach a place exactly.
    """
    if not isinstance(keep, (list, tuple)):
        raise PlanError(f"{CALL}: list pairs, for example [({{'region': 'North', 'age': '90+'}}, 0)].")
    result: dict[tuple[int, ...], int] = {}
    ordered = not exactly(axes)
    for pair in keep:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not isinstance(pair[0], Mapping):
            raise PlanError(f"{CALL}: list pairs, for example [({{'region': 'North', 'age': '90+'}}, 0)].")
        where, number = pair
        if set(chosen) & set(where) or (chosen and not number):
            raise PlanError(
                f"{CALL}: values of {' and '.join(chosen)} are not known before they are chosen; keep totals of them"
                " above zero, or list their values in categories=."
            )
        place = _place(where, keys)
        if type(number) is not int or not 0 <= number < 2**50:
            raise PlanError(f"{CALL}: a public number is a count, a whole number from zero on.")
        if number and ordered and not _in_order(place, axes):
            raise PlanError(
                f"{CALL}: of three columns, or two hierarchies, whole numbers that keep every total need not exist;"
                " cells are kept, and totals of the last columns. Put the columns of this number first."
            )
        below = product(*(axis.cells[at] for axis, at in zip(axes, place, strict=True))) if number == 0 else ()
        for spot in (place, *below):
            if result.setdefault(spot, number) != number:
                raise PlanError(f"{CALL}: no table has all of these numbers, for some contradict each other.")
        if len(result) > MOST:
            raise PlanError(f"{CALL}: more than {MOST:,} numbers are kept, with the cells below those of zero.")
    public = Public(result)
    public.insist(axes)
    return public


def _place(where: Mapping[str, str], keys: Sequence[tuple[str, tuple[str, ...]]]) -> tuple[int, ...]:
    """Where a number stands in the table."""
    known = dict(keys)
    for name, value in where.items():
        if not isinstance(name, str) or name not in known or not isinstance(value, str) or value not in known[name]:
            raise PlanError(f"{CALL}: the table has no {str(name)[:40]!r} of that value, written as the table has it.")
    return tuple(values.index(where.get(name, values[-1])) for name, values in keys)


def _in_order(place: Sequence[int], axes: Sequence[Axis]) -> bool:
    """Whether whole numbers along the columns in their order reach a place."""
    leaves = [at in axis.leaves for axis, at in zip(axes, place, strict=True)]
    roots = [at == axis.nodes - 1 for axis, at in zip(axes, place, strict=True)]
    return any(all(leaves[:cut]) and all(roots[cut + 1 :]) for cut in range(len(axes)))
