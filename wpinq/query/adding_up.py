"""Counts that add up: of one answer by several sets of keys, or of several answers about the same records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl

from wpinq.core.measurements.answer import Answer
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.operators.map import Map
from wpinq.core.plan.node import Node, fingerprints, sources
from wpinq.core.records.bins import Blocks
from wpinq.errors import PlanError
from wpinq.postprocess.degrees.posterior.law import NoiseTerm
from wpinq.postprocess.margins import consistent as least_squares
from wpinq.query.rows import Move, added_up, ends_of, observed
from wpinq.query.statement import Statement

CALL = "consistent"


@dataclass(frozen=True)
class AddingUp:
    """What makes counts of an answer add up, by themselves or with those of others.

    Attributes:
        statement: The query.
        listed: Whether its groups were given, and are not what a threshold has left.
        groups: Its groups.
        counted: Its counts.
        moved: Makes the answer anew, of counts that are moved.
    """

    statement: Statement
    listed: bool
    groups: Blocks
    counted: Sequence[Measurement]
    moved: Callable[[Move], Answer]

    def __call__(self) -> Answer:
        """The answer, whose counts by several sets of keys add up; see `Answer.consistent`."""
        if not self.statement.sets:
            raise PlanError(
                f"{CALL}(): it makes counts of GROUP BY ROLLUP, CUBE or GROUPING SETS add up; ask those, or give"
                " several answers to wpinq.consistent."
            )
        self.refuse()
        return self.moved(added_up)

    def refuse(self) -> None:
        """Refuse counts that cannot be made to add up."""
        from sqlglot import exp

        statement = self.statement
        if not self.listed:
            raise PlanError(f"{CALL}(): groups below the threshold are missing, so those that are published do not add"
                            " up to their totals; give all groups as keys=.")  # fmt: skip
        if not statement.counts or statement.numbers:
            raise PlanError(f"{CALL}(): only counts are made to add up; ask the query for COUNT alone.")
        if statement.stepped is not None or any(count.find(exp.Distinct) for count in statement.released["count"]):
            raise PlanError(f"{CALL}(): COUNT(DISTINCT ...) of a total is not the sum of those of its parts, since what"
                            " is in two of them counts once in it.")  # fmt: skip
        for item in statement.items:
            names = (
                () if type(item.node).__name__ == "Column" else (each.name for each in item.node.find_all(exp.Column))
            )
            if any(name.startswith("count ") for name in names):
                raise PlanError(f"{CALL}(): {item.label} is computed from counts; ask for the counts themselves.")

    def margin(self) -> Margin:
        """Its one count, as a margin of the records that it counts.

        Raises:
            PlanError: It has several counts or sets of keys, or its keys are no columns of these records.
        """
        self.refuse()
        if len(self.counted) > 1 or self.statement.sets:
            raise PlanError(f"{CALL}(...): takes answers of one COUNT by one set of keys; ask for each by itself.")
        node = self.counted[0].node
        keys: tuple[str, ...] | None = ()
        if self.statement.keys:
            keys = node.function.projection if isinstance(node, Map) else None
        if not isinstance(node, Map) or keys is None:
            raise PlanError(f"{CALL}(...): takes counts by columns, and a key is computed; compute it by derive=.")
        groups = self.groups.whole.unique(maintain_order=True)
        values = observed(self.counted[0], groups).cast(pl.Float64).to_numpy()
        named = groups.rename(dict(zip(groups.columns, keys, strict=True))) if keys else groups.select([])
        noise = NoiseTerm(float(self.counted[0].scale), 1, self.counted[0].gaussian)
        return Margin(node.source, keys, named, values, noise.stddev)


@dataclass(frozen=True)
class Margin:
    """Counts of some records by some of their columns.

    Attributes:
        records: The plan of the records.
        keys: The columns.
        groups: A column for each of them.
        values: The noisy count of each group.
        deviation: The standard deviation of the noise.
    """

    records: Node
    keys: tuple[str, ...]
    groups: pl.DataFrame
    values: npt.NDArray[np.float64]
    deviation: float

    @property
    def identity(self) -> object:
        """Equal for two margins of the same records."""
        code = fingerprints(self.records)[self.records]
        return (code, *map(id, sources(self.records))) if code else id(self.records)


def consistent(*answers: Answer) -> tuple[Answer, ...]:
    """Counts of several answers about the same records, moved as little as makes them agree. It costs nothing.

    For example visits by page, by day, by page and day, and in all, each asked by itself by `wpinq.sql`: any two of
    them tell the counts of the keys that they share. Each number counts by one over the variance of its noise. The
    groups that were given as `keys` must be all that have records; then the squared errors, weighted so, never add up
    to more, whatever the noise was. An interval stays that of the number as it was measured, and holds as before.

    Args:
        answers: Two or more, each of one COUNT by columns, of the same table, conditions and bound.

    Returns:
        The answers in their order, with numbers that agree.

    Raises:
        PlanError: An answer is of other records, of several counts or none, by keys that are computed, or by groups
            that were published by a threshold.

    Source: Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private histograms through
    consistency", PVLDB 3(1), 2010, for any weights.

    >>> import wpinq
    >>> visits = [("ann", "a"), ("bob", "b"), ("eve", "b")]
    >>> views = wpinq.protect(visits, budget=2000, columns={"user": str, "page": str})
    >>> total = wpinq.sql("SELECT COUNT(*) AS n FROM views", {"views": views}, epsilon=1000)
    >>> pages = wpinq.sql("SELECT page, COUNT(*) AS n FROM views GROUP BY page", {"views": views}, epsilon=1000,
    ...                   keys=["a", "b"])
    >>> total, pages = wpinq.consistent(total, pages)
    >>> total.value, pages.rows
    (3.0, (('a', 1.0), ('b', 2.0)))
    """
    parts = [part for answer in answers if isinstance(part := getattr(answer, "_agreeing", None), AddingUp)]
    if len(parts) < max(len(answers), 2):
        raise PlanError(f"{CALL}(...): takes two answers of wpinq.sql or more; one by several sets has .{CALL}().")
    margins = [part.margin() for part in parts]
    if len({margin.identity for margin in margins}) > 1:
        raise PlanError(f"{CALL}(...): these answers count different records, which need not agree; ask each of the"
                        " same table with the same WHERE and bound.")  # fmt: skip
    moved = iter(np.split(_agreed(margins), np.cumsum([len(margin.values) for margin in margins])[:-1]))
    return tuple(
        part.moved(partial(_replaced, margin.values, values))
        for part, margin, values in zip(parts, margins, moved, strict=True)
    )


def _agreed(margins: Sequence[Margin]) -> npt.NDArray[np.float64]:
    """The counts of all margins, one after the other, as least squares have them."""
    keys = list(dict.fromkeys(key for margin in margins for key in margin.keys))
    frames = []
    for index, margin in enumerate(margins):
        lacking = sum(1 << place for place, key in enumerate(reversed(keys)) if key not in margin.keys)
        number = pl.Series("\0set", np.full(len(margin.values), lacking + (index << len(keys))), pl.Int64)
        frames.append(pl.DataFrame([*margin.groups.get_columns(), number]))
    groups = pl.concat(frames, how="diagonal").select(*keys, "\0set")
    scales = np.concatenate([np.full(len(margin.values), margin.deviation) for margin in margins])
    return least_squares(groups, np.concatenate([margin.values for margin in margins]), scales)


def _replaced(
    measured: npt.NDArray[np.float64], values: npt.NDArray[np.float64], _statement: Statement, _groups: pl.DataFrame,
    _counted: object, halves: Sequence[float], _level: float,
) -> list[pl.Series]:  # fmt: skip
    """The one count of an answer, replaced, with the ends of its interval as they were."""
    count = pl.Series("count 0", values)
    return [count, *ends_of(pl.Series(count.name, measured), halves[0])]
