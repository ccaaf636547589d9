"""Counts of ranges of one column, which are measured together.

`SELECT COUNT(*) FILTER (WHERE age < 18), COUNT(*) FILTER (WHERE age BETWEEN 18 AND 64) FROM people` asks how many
records have a number in each of some ranges. Asked one by one, n counts have a part of epsilon each, and noise n times
as wide. But all ends of the ranges together cut the column into buckets, and a record is in one bucket: so the buckets
cost what one count does, and each count is a sum of some of them. n ranges have at most 2 n ends, so that a range is at
most 2 n - 1 buckets, whose noises have n^2 / (2 n - 1) times less variance together than that of one of n counts: it is
never further from the truth. Of many buckets the levels of a tree are measured (`aggregates/range_tree.py`), where that
is nearer to these ranges.

A range is exactly what its conditions say: of whole numbers, dates and times the next one is known, and so is that of
a float. Whatever is read here follows from the text of the query and the types of its columns.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from wpinq.aggregates.buckets import Edges
from wpinq.aggregates.keywords import Options
from wpinq.aggregates.range_counts import QuotedRanges, Ranges, Spans, levels_of
from wpinq.aggregates.range_tree import Tree
from wpinq.core.functions.sql.terms import Term, to
from wpinq.core.functions.tree import Node
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError
from wpinq.postprocess.degrees.posterior.law import FAR, NoiseTerm, half_width
from wpinq.query.select.aggregates import ChargeNames
from wpinq.query.select.datetimes import FIRST
from wpinq.query.select.derived import CALL, plainly
from wpinq.query.select.joins import bare

if TYPE_CHECKING:
    from wpinq.collection import Collection

MECHANISMS = ("geometric", "laplace")
"""Noise for which levels share epsilon."""
FARTHEST = 2**62
"""Whole numbers beyond it are no ends: the next one must be a number of the column, too."""
COLUMN = "number"
End: TypeAlias = "Fraction | None"
Range: TypeAlias = "tuple[End, End]"
"""From the first on, and below the second; None where there is no end."""
BELOW, ABOVE = ("LT", "LTE"), ("GT", "GTE")
TURNED = dict(zip((*BELOW, *ABOVE, "EQ"), (*ABOVE, *BELOW, "EQ"), strict=True))
"""Comparisons, and what they are with their sides exchanged."""


@dataclass(frozen=True)
class RangedCounts:
    """Counts of a query that are counts of ranges of one column.

    Attributes:
        records: Its numbers, in one column.
        cuts: All ends of the ranges.
        tree: The levels that are measured.
        spans: For each such count, by its place among all counts, the places of its ends among the edges.
        text: What the ranges are of, as the query has it.
    """

    records: Collection
    cuts: Edges
    tree: Tree
    spans: Mapping[int, tuple[int, int]]
    text: str

    @property
    def fitted(self) -> bool:
        """Whether counts are fitted to several levels, so that they are no whole numbers."""
        return len(self.tree.sizes) > 1

    def quote(self, epsilon: Fraction, charged: ChargeNames, mechanism: str) -> QuotedRanges:
        """Quote all of them."""
        return levels_of(self.records, self.cuts, self.tree, epsilon, Options(**charged, mechanism=mechanism))

    def written(self, level: int) -> str:
        """What a level is, for people."""
        size = f"{self.tree.sizes[level]:,} buckets" if level == 0 else f"{self.tree.sizes[level]:,} stretches of them"
        return f"{len(self.spans)} ranges of {self.text}: {size}"


@dataclass(frozen=True)
class CountInRange:
    """One count of a range, as answers observe it.

    Attributes:
        ranges: The charged ranges.
        span: The places of its ends among the edges.
        whole: Whether it is a whole number.
    """

    ranges: Ranges
    span: tuple[int, int]
    whole: bool

    def observe_many(self, bins: Any, /) -> npt.NDArray[Any]:
        """The noisy count, for the one group that there is."""
        count = self.ranges.counted(*self.span)
        return np.full(len(bins), round(count) if self.whole else count)

    def interval(self, level: Fraction, bins: int = 1) -> float:
        """By how much noise moves it at most, with this probability."""
        return half_of_range(self.ranges, self.span, level, bins)


def half_of_range(ranges: Spans, span: tuple[int, int], level: Fraction, bins: int = 1) -> float:
    """By how much noise moves the count of a range at most, with this probability, where so many hold together.

    Of buckets alone it is a sum of equal noises, whose law is drawn as far as that tells (`rows.half_of` does so too).
    """
    surely = ranges.half_between(*span, level, bins)
    several, each = span[1] - span[0], float(1 - (1 - level) / bins)
    if len(ranges.measured) > 1 or several == 1 or each > FAR:
        return surely
    return min(surely, half_width((NoiseTerm(float(ranges.measured[0].scale), several),), each))


def ranged_counts(
    counts: Sequence[Any], term: Callable[[Any], Term], filtered: Collection, mechanism: str | None
) -> tuple[RangedCounts, ...]:
    """Which counts of a query are measured together: two or more of ranges of one column or expression.

    Args:
        counts: All of them, parsed.
        term: Translates an expression of one record.
        filtered: The records that WHERE leaves.
        mechanism: What adds noise; where it is not Laplace noise, none are.
    """
    if mechanism not in MECHANISMS:
        return ()
    columns: dict[Any, dict[int, Range]] = {}
    for place, count in enumerate(counts):
        found = _range_of_count(count, term)
        if found is not None:
            columns.setdefault(found[0], {})[place] = found[1]
    return tuple(_together(column, term(column), ranges, filtered) for column, ranges in columns.items()
                 if len(ranges) > 1)  # fmt: skip


def _together(column: Any, number: Term, ranges: Mapping[int, Range], filtered: Collection) -> RangedCounts:
    """The buckets that ranges have together."""
    ends = sorted({end for each in ranges.values() for end in each if end is not None})
    place_of = {end: place for place, end in enumerate(ends, start=1)}
    spans = {
        place: (0 if low is None else place_of[low], len(ends) + 1 if high is None else place_of[high])
        for place, (low, high) in ranges.items()
    }
    cuts = Edges(COLUMN, (None, *ends, None), number.kind is not Kind.FLOAT)
    records = filtered.map([_whole(number).alias(COLUMN)])
    return RangedCounts(records, cuts, Tree.nearest(len(ends) + 1, spans.values()), spans, plainly(column))


def _whole(number: Term) -> Node:
    """Dates as days and times as microseconds since 1970; numbers as they are."""
    if number.kind is Kind.DATE:
        return number.value.cast(pl.Int32, strict=False).cast(pl.Int64, strict=False)
    return number.value.dt.timestamp(time_unit="us") if number.kind in (Kind.TIME, Kind.INSTANT) else number.value


def _range_of_count(count: Any, term: Callable[[Any], Term]) -> tuple[Any, Range] | None:
    """What COUNT(*) FILTER (WHERE ...) is a range of, and which; None where it is none."""
    case = bare(count.this)
    if type(case).__name__ != "Case" or case.this or case.args.get("default") or len(case.args["ifs"]) != 1:
        return None
    test, value = case.args["ifs"][0].this, bare(case.args["ifs"][0].args["true"])
    found = _range(test, term)
    if found is None or (type(value).__name__ != "Literal" and value != found[0]):
        return None
    low, high = found[1]
    return None if low is not None and high is not None and low >= high else found


def _range(test: Any, term: Callable[[Any], Term]) -> tuple[Any, Range] | None:
    """The expression and the range that a condition says, if it says that alone."""
    test = bare(test)
    kind = type(test).__name__
    if kind == "And":
        parts = [_range(part, term) for part in (test.this, test.expression)]
        first, second = parts
        if first is None or second is None or first[0] != second[0]:
            return None
        return first[0], _both(first[1], second[1])
    if kind == "Between" and not test.args.get("symmetric"):
        low, high = (
            _compared(name, test.this, test.args[end], term) for name, end in (("GTE", "low"), ("LTE", "high"))
        )
        return None if low is None or high is None else (bare(test.this), _both(low, high))
    if kind not in TURNED:
        return None
    for name, column, bound in ((kind, test.this, test.expression), (TURNED[kind], test.expression, test.this)):
        found = _compared(name, column, bound, term)
        if found is not None:
            return bare(column), found
    return None


def _both(first: Range, second: Range) -> Range:
    """What is in two ranges."""
    low = max((end for end in (first[0], second[0]) if end is not None), default=None)
    return low, min((end for end in (first[1], second[1]) if end is not None), default=None)


def _compared(name: str, column: Any, bound: Any, term: Callable[[Any], Term]) -> Range | None:
    """The numbers for which a comparison of a column with a constant is true."""
    number, constant = term(column), term(bound)
    if number.constant is not None or number.quoted or constant.constant is None or number.kind is None:
        return None
    try:
        value = _value(to(constant, number.kind, CALL) if constant.quoted else constant, number.kind)
    except PlanError:
        return None
    if value is None:
        return None
    at, above = _steps(value, whole=number.kind is not Kind.FLOAT)
    if above is None or (number.kind is not Kind.FLOAT and max(abs(at), abs(above)) > FARTHEST):
        return None
    if name == "EQ":
        return None if at == above else (at, above)
    if name in ABOVE:
        return (at if name == "GTE" else above), None
    return None, (at if name == "LT" else above)


def _steps(value: Fraction, *, whole: bool) -> tuple[Fraction, End]:
    """The least number of a column that is at least a value, and the least above it."""
    if whole:
        return Fraction(math.ceil(value)), Fraction(math.floor(value) + 1)
    above = math.nextafter(float(value), math.inf)
    return value, Fraction(above) if math.isfinite(above) else None


def _value(constant: Term, kind: Kind) -> Fraction | None:
    """A constant as a number of a column of a type; None where they do not compare as such."""
    value = constant.constant
    if kind in (Kind.INT, Kind.FLOAT):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return None
        try:
            return Fraction(float(value)) if kind is Kind.FLOAT else Fraction(value)
        except OverflowError:
            return None
    if constant.kind is not kind:
        return None
    if kind is Kind.DATE and isinstance(value, dt.date):
        return Fraction((value - FIRST.date()).days)
    if kind in (Kind.TIME, Kind.INSTANT) and isinstance(value, dt.datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        return Fraction((aware - FIRST) // dt.timedelta(microseconds=1))
    return None
