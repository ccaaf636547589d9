"""Sums, means, variances and ranks in a query, of numbers that are clamped to their bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import polars as pl

from wpinq.aggregates import QuotedAggregate
from wpinq.aggregates.groups import Groups
from wpinq.aggregates.groups import groups as grouped
from wpinq.aggregates.keywords import Options
from wpinq.aggregates.order_statistics import ask_max, ask_median, ask_min, ask_quantile, ask_shares
from wpinq.aggregates.scale import Bounds, limits
from wpinq.aggregates.sums import ask_mean, ask_stdev, ask_sum, ask_variance
from wpinq.core.functions.sql.terms import shown
from wpinq.core.pricing.privacy_cost import Terms
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, exact
from wpinq.query.select.datetimes import spelled
from wpinq.query.select.derived import CALL, plainly

if TYPE_CHECKING:
    from wpinq.collection import Collection

Ask: TypeAlias = Callable[..., QuotedAggregate]

AGGREGATES: dict[str, tuple[str, Ask]] = {
    "Sum": ("sum", ask_sum),
    "Avg": ("mean", ask_mean),
    "Min": ("min", ask_min),
    "Max": ("max", ask_max),
    "Median": ("quantile 1/2", ask_median),
    "Variance": ("spread", partial(ask_variance, sample=True)),
    "VariancePop": ("spread", ask_variance),
    **dict.fromkeys(("Stddev", "StddevSamp"), ("spread", partial(ask_stdev, sample=True))),
    "StddevPop": ("spread", ask_stdev),
}
"""What is measured for each of these, and how the answer follows; what is measured alike is measured once."""

NOISY = ("sum", "mean", "spread")
"""Of what is measured, what noise is added to."""
DISTINCT = " of different values"
RANKS = ("Quantile", "ApproxQuantile", "WithinGroup")
NUMBERS = (*AGGREGATES, *RANKS)
LISTED = (
    "COUNT(*), COUNT(x), COUNT(DISTINCT x), SUM, AVG, MIN, MAX, MEDIAN, PERCENTILE_CONT, VARIANCE and STDDEV of one "
    "record's numbers are answered here"
)


MEANT = {"ANON_QUANTILES": "PERCENTILE_CONT(x, 0.25) for each share, and declare bounds=", "TOP": "LIMIT 10 at the end"}
"""Names in other databases and libraries, and what to write instead."""


def unknown_function(node: Any) -> str:
    """Why a function by an unknown name is not answered, and what to write instead."""
    name = str(node.name).upper()
    known = f"write {MEANT[name]}" if name in MEANT else LISTED
    if name.startswith("ANON_") and name not in MEANT:
        known = f"write {name[5:]}(x) alone, whose noise epsilon= pays for and whose range bounds= declares"
    return f"there is no function {shown(name)} here; {known}"


class ChargeNames(TypedDict):
    """The name of a charge, and the analyst who is charged."""

    name: str | None
    analyst: str | None


@dataclass(frozen=True)
class Number:
    """A sum, a mean, a spread or a rank that a query asks for.

    Attributes:
        collection: Its records are the group keys and, last, the number.
        measured: What is measured; equal for two numbers that follow from one measurement.
        ask: Quotes it.
        bounds: The least and the largest number.
        written: How the query has it.
        kind: The type of the answer.

    Raises:
        PlanError: The column holds no numbers, or the bounds are none.
        ExactnessError: A bound is no finite number.
    """

    collection: Collection
    measured: tuple[str, Any]
    ask: Ask
    bounds: Bounds
    written: str
    kind: Kind = Kind.FLOAT

    def __post_init__(self) -> None:
        limits(self.collection._node, self.collection.columns[-1], self.bounds, None, f"{CALL}: {self.written}")

    @property
    def text(self) -> str:
        """How `explain` shows it."""
        return f"{self.written}, clamped to {self._range}"

    @property
    def bias(self) -> str:
        """What bounds do to it, as a clause."""
        extreme = (
            ", and its interval ends at the bound"
            if self.measured[0] in ("min", "max") and self.kind is Kind.FLOAT
            else ""
        )
        return f"numbers of {self.written} are clamped to {self._range}{extreme}"

    @property
    def _range(self) -> str:
        shown = [decimal(exact(bound, CALL)) for bound in self.bounds]
        if self.kind is not Kind.FLOAT:
            shown = [spelled(int(exact(bound, CALL)), self.kind) for bound in self.bounds]
        return "..".join(shown)

    @property
    def noisy(self) -> bool:
        """Whether noise is added to what is measured, or a rank is chosen."""
        return self.measured[0].removesuffix(DISTINCT) in NOISY

    def epsilon(self, within: Amount) -> Fraction:
        """The epsilon for which a rank is off by no more than so many records, with probability 0.95.

        Raises:
            PlanError: It is no rank, or see `quantile`.
        """
        if self.noisy:
            raise PlanError(
                f"{CALL}: within= speaks of counts and ranks; how far noise moves {self.text} depends on the records. "
                "Give epsilon=, or ask for it by itself: sum(within=...), mean(within=..., records=...)."
            )
        *by, column = self.collection.columns
        options = Options(by=by or None, keys=[] if by else None, within=within)
        return self.ask(self.collection, column, bounds=self.bounds, epsilon=None, options=options).quote.epsilon

    def quote(self, terms: Terms, chosen: Fraction, charged: ChargeNames) -> QuotedAggregate:
        """Quote it in each group, or in all; which groups there are changes no price.

        Args:
            terms: What it costs, where noise is added.
            chosen: Epsilon, where a rank is chosen.
            charged: The name of the charge, and who is charged.
        """
        *by, column = self.collection.columns
        options = Options(by=by or None, keys=[] if by else None, **charged)
        if not self.noisy:
            return self.ask(self.collection, column, bounds=self.bounds, epsilon=chosen, options=options)
        options = replace(options, mechanism=terms.mechanism, rho=terms.rho, delta=terms.delta)
        return self.ask(self.collection, column, bounds=self.bounds, epsilon=terms.epsilon, options=options)

    @property
    def share(self) -> Fraction | None:
        """Of a quantile."""
        share: Fraction | None = getattr(self.ask, "keywords", {}).get("share")
        return share

    @property
    def ranked(self) -> tuple[bool, Any]:
        """What a quantile is of."""
        return self.measured[0].endswith(DISTINCT), self.measured[1]

    def beside(self, shares: tuple[Fraction, ...]) -> Number:
        """The same, measured together with the quantiles at these shares."""
        if self.share is None or len(shares) == 1:
            return self
        what = f"quantiles{DISTINCT if self.ranked[0] else ''}"
        ask = partial(ask_shares, shares=shares, index=shares.index(self.share))
        return replace(self, measured=(what, self.measured[1]), ask=ask)

    def groups(self, keys: pl.DataFrame) -> Groups | None:
        """The groups that it is answered for; None where there is one of all records."""
        *by, _ = self.collection.columns
        bins = keys if keys.width > 1 else keys.to_series()
        return grouped(self.collection._node, by, bins, CALL) if by else None


def with_joint_quantiles(numbers: Sequence[Number]) -> tuple[Number, ...]:
    """The numbers of a query, of which the quantiles of one expression are one measurement, chosen together."""
    shares: dict[tuple[bool, Any], set[Fraction]] = {}
    for number in numbers:
        if number.share is not None:
            shares.setdefault(number.ranked, set()).add(number.share)
    return tuple(number.beside(tuple(sorted(shares.get(number.ranked, ())))) for number in numbers)


def read(node: Any) -> tuple[Any, bool, str, Ask]:
    """What an aggregate is of, of different values alone or not, what is measured for it, and what quotes it.

    Raises:
        PlanError: It has parts that are not supported.
    """
    kind = type(node).__name__
    share, what = _ranked(node) if kind in RANKS else (None, node.this)
    distinct = type(what).__name__ == "Distinct" and len(what.expressions) == 1 and not what.args.get("on")
    if distinct:
        what = what.expressions[0]
    more = {name for name, value in node.args.items() if value} - {"this", "quantile", "expression"}
    if what is None or more or type(what).__name__ in ("Distinct", "Star", "Order"):
        raise PlanError(f"{CALL}: {plainly(node)} takes one number of each record, without ORDER BY; {LISTED}.")
    if share is None:
        return what, distinct, *AGGREGATES[kind]
    if not 0 <= share <= 1:
        raise PlanError(f"{CALL}: {plainly(node)}: a share is between 0 and 1; the median is 0.5.")
    return what, distinct, f"quantile {share}", partial(ask_quantile, share=share)


def _ranked(node: Any) -> tuple[Fraction, Any]:
    """The share and what is ranked, of QUANTILE(x, share) or PERCENTILE_CONT(share) WITHIN GROUP (ORDER BY x)."""
    ranks = type(node).__name__ == "WithinGroup"
    share = node.this.this if ranks else node.args.get("quantile")
    known = not ranks or type(node.this).__name__ in ("PercentileCont", "PercentileDisc")
    order = node.expression.expressions if ranks and type(node.expression).__name__ == "Order" else [node]
    if not known or len(order) != 1 or type(share).__name__ != "Literal" or share.is_string:
        raise PlanError(
            f"{CALL}: {plainly(node)}: write PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x), with one number."
        )
    result = exact(share.this, CALL)
    return (1 - result if order[0].args.get("desc") else result), order[0].this
