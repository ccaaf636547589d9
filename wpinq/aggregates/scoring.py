"""Scoring: choose among candidates by a score of one's own, PINQ's exponential mechanism.

Each record gives each candidate a number; the candidate whose numbers sum to most is chosen by permute-and-flip. With B
how far all records of one unit together move, and numbers clamped to -s..s, one unit moves the sum of each candidate by
s B at the most, and the difference of two by 2 s B: the rate is epsilon / (2 s B), however many candidates there are
(`heavy_hitters.py` has the proof). Numbers are divided by s and rounded to thousandths, record by record, so nothing of
the claim rests on what the function does: it is clamped, and where it has no value it gives nothing.

Source: McSherry and Talwar, FOCS 2007; McSherry, PINQ, SIGMOD 2009 (`ExponentialMechanism`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from inspect import isfunction
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.aggregates.heavy_hitters import Chosen, TopKeys, quoted
from wpinq.arguments import NAME, NOTHING, takes
from wpinq.core.functions.bind import bind
from wpinq.core.functions.function import Dropped, Function
from wpinq.core.measurements.answer import About, Answer, Released
from wpinq.core.operators.resolution import fit_resolution
from wpinq.core.plan.forms import Linear
from wpinq.core.plan.node import Record
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.bins import bin_frame
from wpinq.core.records.schema import Column, Kind, Schema, polars_type
from wpinq.errors import PlanError
from wpinq.exact import Amount, positive

if TYPE_CHECKING:
    from wpinq.core.plan.node import Builder

CANDIDATE, PLACE = "candidate", "place"
FINE = 1000
"""Steps of a number of the largest size."""
MOST = 1000
"""Candidates."""


@takes(name=NAME | NOTHING, analyst=NAME | NOTHING)
def select_by(
    self: Builder[Any], score: Any, candidates: Sequence[Any], epsilon: Amount, *, sensitivity: Amount = 1,
    name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for the candidate of the highest score, the sum of what each record gives it.

    It tells the candidate and no score. One whose score is within about (2 sensitivity / epsilon) log(number of
    candidates) of the highest may stand in its place, and so many times the bound, of people.

    Args:
        score: A function of one record and `candidate`, a parameter of that name, or an expression: a number, which is
            clamped to -sensitivity..sensitivity. Where it has no value the record gives nothing.
        candidates: What is chosen from: whole numbers, numbers, texts or times, all of one kind, that do not depend on
            the data; 1,000 at the most.
        epsilon: What it costs the privacy unit, exact.
        sensitivity: How much one record of weight 1 may give at the most, either way.
        name: Tells repetitions apart.
        analyst: Who is charged, where the curator keeps caps for each analyst.

    Raises:
        PlanError: There are no candidates, or too many, or of several kinds, or the function does not fit the columns.
        ExactnessError, BudgetError, LedgerError: See `measure`.

    >>> import wpinq
    >>> ages = wpinq.protect([(age,) for age in range(20, 61)], budget=9, columns={"age": int})
    >>> ages.select_by(lambda age, candidate: -abs(age - candidate), [0, 41, 90], epsilon=9, sensitivity=100).value
    41
    """
    call = "select_by"
    chosen, kind = _candidates(candidates)
    schema = self._node.schema
    if CANDIDATE in schema:
        raise PlanError(f"{call}: there is a column {CANDIDATE!r}; name it otherwise, with map.")
    wide = Schema((*schema.expanded(), Column(CANDIDATE, kind)))
    function = bind(score, wide, f"{call}(score=...)", columns={"score": float} if isfunction(score) else None)
    kinds = [column.kind for column in function.output]
    if len(kinds) != 1 or kinds[0] in (Kind.TEXT, Kind.BYTES):
        raise PlanError(f"{call}(score=...): gives a number for a record and a candidate.")
    reach = positive(sensitivity, f"{call}(sensitivity=...)")
    node = Scores(fit_resolution(self._node, FINE), function, chosen, reach)
    selection = TopKeys.of(node.schema, 1, list(range(len(chosen))))
    quote = quoted(self._then(node), selection, positive(epsilon, f"{call}(epsilon=...)"), name, analyst)
    (made,) = self._commit([quote])
    best = Best(Chosen(made, selection, None), chosen, kind)
    return Answer(About(node.title, (made,), intervals=False), best.released, many=False)


def _candidates(values: Sequence[Any]) -> tuple[tuple[Any, ...], Kind]:
    """The candidates, each once, and their kind.

    Raises:
        PlanError: There are none, too many, or several kinds.
    """
    call = "select_by(candidates=...)"
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not 1 <= len(values) <= MOST:
        raise PlanError(f"{call}: takes a list of 1 to {MOST:,} values.")
    known = {bool: Kind.BOOL, int: Kind.INT, float: Kind.FLOAT, str: Kind.TEXT}
    kinds = {known.get(type(value)) for value in values}
    if kinds == {Kind.INT, Kind.FLOAT}:
        kinds = {Kind.FLOAT}
    if len(kinds) != 1 or None in kinds:
        raise PlanError(f"{call}: are whole numbers, numbers, texts or truth values, all of one kind.")
    (kind,) = kinds
    assert kind is not None  # noqa: S101  None was refused
    frame = bin_frame(list(values), Schema((Column(CANDIDATE, kind),)))
    return tuple(frame[CANDIDATE].unique(maintain_order=True).to_list()), kind


@dataclass(frozen=True, eq=False)
class Scores(Linear):
    """Plan node of `select_by`: for each record what it gives each candidate.

    Weights:    out[i] = sum over the records x of in[x] * round(clamp(score(x, candidate i), -s, s) / s), in steps of
                a thousandth
    Stability:  the number of candidates; of one candidate 1, since no number is above s.
    """

    function: Function
    candidates: tuple[Any, ...]
    reach: Fraction
    shown = "select_by({0.function.note})"

    @cached_property
    def schema(self) -> Schema:
        """Which candidate it is of."""
        return Schema((Column(PLACE, Kind.INT),))

    @cached_property
    def resolution(self) -> int:
        """That of its input, and the steps of a number."""
        return self.source.resolution * FINE

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """One for each candidate."""
        return (Fraction(len(self.candidates)),)

    @property
    def slices(self) -> Mapping[str, Fraction]:
        """One candidate moves as far as the records."""
        return {PLACE: Fraction(1)}

    @property
    def images(self) -> int:
        """One for each candidate."""
        return len(self.candidates)

    @property
    def reads(self) -> tuple[str, ...]:
        """What the function reads of a record."""
        read = tuple(name for name in self.function.reads if name != CANDIDATE)
        return read or self.source.schema.names[:1]

    def image(self, record: Record) -> Iterable[tuple[Record, Fraction]]:
        """What it gives each."""
        for index, candidate in enumerate(self.candidates):
            try:
                (value,) = self.function.call((*record, candidate))
            except Dropped:
                continue
            steps = pl.DataFrame({"value": [value]}, strict=False).select(self._steps(pl.col("value"))).item()
            if steps:
                yield (index,), Fraction(steps, FINE)

    def _steps(self, value: pl.Expr) -> pl.Expr:
        """A number in steps; null where it is none.

        It is multiplied, since Polars divides by a constant in another way where a record is alone in its batch.
        """
        number = value.cast(pl.Float64, strict=False).fill_nan(None) * float(1 / self.reach)
        return (number.clip(-1.0, 1.0) * FINE + 0.5).floor().clip(-FINE, FINE).cast(pl.Int64)

    def apply(self, batch: Batch) -> Batch:
        """Candidate by candidate."""
        parts, (label,) = [], self.function.output.names
        kind = polars_type(self.function.schema[CANDIDATE].kind)
        for index, candidate in enumerate(self.candidates):
            wide = batch.frame.with_columns(pl.lit(candidate, kind).alias(CANDIDATE))
            made = self.function.apply(wide, [WEIGHT]).with_columns(self._steps(pl.col(label)).alias("\0steps"))
            made = made.filter(pl.col("\0steps").is_not_null() & (pl.col("\0steps") != 0))
            weight = pl.col(WEIGHT).cast(self.held.column) * pl.col("\0steps").cast(self.held.column)
            parts.append(made.select(pl.lit(index, pl.Int64).alias(PLACE), weight.alias(WEIGHT)))
        return Batch(pl.concat(parts), self.schema).consolidate()


@dataclass(frozen=True)
class Best:
    """What is told: the candidate that was chosen."""

    chosen: Chosen
    candidates: tuple[Any, ...]
    kind: Kind

    def released(self, level: Fraction, simultaneous: bool) -> Released:
        """It, as a row."""
        table, _ = self.chosen.released(level, simultaneous)
        index = int(table[PLACE][0])
        return pl.DataFrame({CANDIDATE: [self.candidates[index]]}), {}
