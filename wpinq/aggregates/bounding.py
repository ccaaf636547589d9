"""Suggest a bound on contributions: a charged, private choice of `at_most`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from wpinq.aggregates.groups import Groups
from wpinq.aggregates.rank_aim import RankAim
from wpinq.aggregates.ranks import GridPoints, QueryCost, ask_rank
from wpinq.arguments import COLLECTION, takes
from wpinq.core.measurements.answer import LEVEL
from wpinq.core.operators.contribution.sample import Bound
from wpinq.core.operators.contribution.share import Share
from wpinq.core.operators.contribution.unit_key import ByUnit, Whole
from wpinq.core.plan.node import Record, Weighted, read_by, sources, steps
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.runs.epochs import log_of
from wpinq.core.state.states import State
from wpinq.core.state.table import Table, combine
from wpinq.errors import PlanError
from wpinq.exact import Amount, exact, positive

if TYPE_CHECKING:
    from wpinq.core.plan.node import Builder

GRID = tuple(digit * 10**power for power in range(7) for digit in (1, 2, 3, 5, 7))
"""1, 2, 3, 5, 7, 10, 20, ... up to 7 million; chosen before any data was seen."""


@takes(collection=COLLECTION)
def suggest_bound(
    collection: Builder[Any], epsilon: Amount, share: Amount = Fraction(95, 100), grid: Sequence[int] = GRID
) -> int:
    """Choose how many records to keep of each person, so that about this share of people lose none.

    Every person is counted once, by its number of records before any bound, so the choice needs no bound itself. It
    is charged to the ledger of the collection, which protects people in either way (`shared=True` needs no number).
    The unit of a ledger is fixed; to protect with the suggested bound another ledger is opened, and a person then
    loses the sum of what both spend.

    Args:
        collection: Any that reads one source whose unit is a person.
        epsilon: What it costs a person, exact.
        share: The share of people who shall lose no record.
        grid: Numbers to choose from, rising, that do not depend on the data.

    Returns:
        A number of the grid; the same whenever it is asked.

    Raises:
        PlanError: The unit is not a person, there are several sources, one is live, or the grid does not rise.
        BudgetError, LedgerError, ExactnessError: See `measure`.
    """
    walk = steps(collection._node)
    entered = [node.source for node in walk if isinstance(node, (Bound, Share, Whole))]
    if len(entered) != 1 or len(read_by(walk)) != 1:
        raise PlanError("suggest_bound: takes a collection over one source whose unit is wpinq.users(...).")
    if log_of(sources(collection._node)) is not None:
        raise PlanError(
            "suggest_bound: answers at once, and a live source when an epoch closes; give a file of the past."
        )
    numbers = tuple(grid)
    whole = all(isinstance(number, int) and 0 < number < 2**31 for number in numbers)
    if not numbers or not whole or any(lower >= upper for lower, upper in pairwise(numbers)):
        raise PlanError("suggest_bound(grid=...): takes whole numbers above zero that rise.")
    wanted = exact(share, "suggest_bound(share=...)")
    if not 0 < wanted < 1:
        raise PlanError("suggest_bound(share=...): a share is strictly between 0 and 1, for example 0.95.")
    cost = positive(epsilon, "suggest_bound(epsilon=...)")
    lengths = Lengths(entered[0], numbers)
    quoted = ask_rank(
        lengths,
        Groups(),
        GridPoints(numbers),
        partial(RankAim, (wanted,), intervals=False),
        QueryCost("suggest_bound", cost, LEVEL),
    )
    return int(quoted.charge(collection).value)


@dataclass(frozen=True, eq=False)
class Lengths(ByUnit):
    """Each person once, as the first number of a grid that is at least their number of records, or the last number.

    Stability:  a person with all records changes the output by 1: 1 divided by the unit's bound.
    """

    grid: tuple[int, ...]
    shown = "suggest_bound"

    @cached_property
    def schema(self) -> Schema:
        """The place in the grid."""
        return Schema((Column("cell", Kind.INT),))

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """Of a person, who moves the source by the unit's bound."""
        return (1 / self.most,)

    @property
    def moves_at_most(self) -> Mapping[frozenset[str], Fraction]:
        """One person by 1, whatever bounds the records of one."""
        return {frozenset(): Fraction(1)}

    @cached_property
    def gain(self) -> Fraction:
        """There are no more people than records."""
        return self.source.gain

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """The columns that name the unit."""
        return (frozenset(self.unit_key.unit.columns),)

    def state(self, keep: tuple[str, ...], key: bytes) -> State:
        """The number of records of each person."""
        return Counts(self, key)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Person by person."""
        unit_key = self.unit_key
        counts: dict[bytes, int] = {}
        for record, weight in inputs[0].items():
            counts[unit_key.of(record)] = counts.get(unit_key.of(record), 0) + int(weight)
        cells = [
            next((j for j, most in enumerate(self.grid) if n <= most), len(self.grid) - 1) for n in counts.values()
        ]
        return {(cell,): Fraction(cells.count(cell)) for cell in set(cells)}


class Counts:
    """How many records each person has."""

    def __init__(self, plan: Lengths, key: bytes) -> None:
        self._plan, self._unit_key, self._key = plan, plan.unit_key, key
        self._table = Table()
        self._emitted = Batch.empty(plan.schema)

    def absorb(self, port: int, batch: Batch) -> None:
        """Count records."""
        batch = batch.select(self._unit_key.unit.columns).consolidate()
        self._table.add(*combine(self._unit_key.ids(batch.frame, self._key), batch.weights)[1:])

    def emit(self) -> Batch:
        """The people at each place of the grid now, less those that were there before."""
        _, counts = self._table.items()
        cells = np.minimum(np.searchsorted(self._plan.grid, counts), len(self._plan.grid) - 1)
        frame = pl.DataFrame({"cell": cells.astype(np.int64), WEIGHT: np.ones(len(cells), np.int64)})
        before, self._emitted = self._emitted, Batch(frame, self._plan.schema).consolidate()
        return Batch.concat([self._emitted, before.scale(-1)], self._plan.schema).consolidate()
