"""EXPLAIN SELECT: what each measurement of a query would cost, how far one unit moves it, and how wide its noise is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import polars as pl

from wpinq.aggregates.expected_noise import numbers_unit
from wpinq.core.ledger.sums.privacy_filter import RHO
from wpinq.core.measurements.answer import About, Answer, Released
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.quote import Quote
from wpinq.core.pricing.sensitivity import moved_bins, unit_sensitivities
from wpinq.errors import PlanError
from wpinq.query.select.derived import CALL

Line: TypeAlias = tuple[str, Quote[Any], float | None]
"""How a query has a measurement, its price, and by how much noise moves it with probability 0.95.

None where that depends on the answer, as of a mean or a rank.
"""
WORD = re.compile(r"\s*EXPLAIN\b\s*", re.IGNORECASE)


def explains(query: str) -> str | None:
    """The query behind EXPLAIN; None where there is no such word.

    Raises:
        PlanError: EXPLAIN has options, or would run the query.

    >>> explains("EXPLAIN SELECT COUNT(*) FROM views"), explains("SELECT COUNT(*) FROM views")
    ('SELECT COUNT(*) FROM views', None)
    """
    word = WORD.match(query)
    if word is None:
        return None
    rest = query[word.end() :]
    if re.match(r"\(|ANALY[SZ]E\b|VERBOSE\b", rest, re.IGNORECASE):
        raise PlanError(f"{CALL}: EXPLAIN has no options here; it never runs the query. Write EXPLAIN SELECT ...")
    return rest


def explained(
    query: str, lines: Sequence[Line], threshold: float | None = None, *, choice: Quote[Any] | None = None,
    ranged: Sequence[tuple[str, float]] = (),
) -> Answer:  # fmt: skip
    """A row for each measurement, for which nothing is charged.

    Args:
        query: The query.
        lines: Its measurements.
        threshold: The noisy count below which groups are left out, where they are not given.
        choice: What the choice of a bound costs first, on which the noise of the others depends.
        ranged: Counts that follow from several of them, and by how much noise moves each: rows without a price.
    """
    rows: list[tuple[Any, ...]] = [(text, *_moves(quote), half, *_cost(quote)) for text, quote, half in lines]
    rows += [(text, *(None,) * 4, half, *(None,) * 3) for text, half in ranged]
    if choice is not None:
        rows = [(text, *(None,) * 5, *costs) for text, _, _, _, _, _, *costs in rows]
        moves = (1.0, 1.0, 1.0, float(choice.scale), None)
        rows.insert(0, ("at_most, chosen by people's numbers of records", *moves, *_cost(choice)))
    names = [
        "measurement", "one unit moves", "in one bin", "bins", "scale of noise", "95% of noise within", "epsilon",
        "rho", "delta",
    ]  # fmt: skip
    frame = pl.DataFrame(rows, dict.fromkeys(names, pl.Float64) | {names[0]: pl.String()}, orient="row")

    def released_at(level: Fraction, simultaneous: bool) -> Released:
        return frame, {}

    return Answer(About(f"EXPLAIN {' '.join(query.split())}", (), threshold=threshold, intervals=False), released_at)


def _moves(quote: Quote[Any]) -> tuple[float, float, float | None, float]:
    """How far one unit moves all bins together, and one; how many bins, where that is known; the scale of noise.

    Of a sum they are in the unit of its numbers. Where weights are not whole, a bound on bins that follows from the
    least weight alone says nothing.
    """
    survey, fine, unit = Survey.of(quote.node), quote.node.resolution, numbers_unit(quote.node)
    moves = unit_sensitivities(survey)
    together, most = max(move.l1 for move in moves), max(move.linf for move in moves)
    bins = list(moved_bins(survey).values())
    known = [float(moved) for moved in bins if moved is not None and (fine == 1 or moved < together)]
    return (
        unit * together / fine,
        unit * most / fine,
        max(known) if len(known) == len(bins) else None,
        unit * float(quote.scale),
    )


def _cost(quote: Quote[Any]) -> tuple[float, float, float]:
    """The epsilon, rho and delta that it costs who is in all tables of a ledger; of any noise where rho adds up."""
    from wpinq.protection import LIMITLESS

    deltas: dict[str, Fraction] = defaultdict(Fraction)
    rhos: dict[str, Fraction] = defaultdict(Fraction)
    for ledger, charge in quote.charges:
        deltas[ledger.identity] += sum((cost.delta for cost in charge.costs), Fraction(0))
        if ledger.promise.accounting == RHO and ledger.promise.budget != LIMITLESS:
            rhos[ledger.identity] += ledger.promise.begun().including(charge.costs).divergence
    rho = max(rhos.values(), default=quote.rho)
    return float(max(quote.paid.values())), float(rho), float(max(deltas.values(), default=Fraction(0)))
