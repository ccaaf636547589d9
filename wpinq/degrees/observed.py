"""Quotes of what is answered at once, with noise that a fit can be made of, and the bins that hold a corner."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wpinq.core.measurements.measure import quote_terms
from wpinq.core.pricing.privacy_cost import Terms
from wpinq.errors import PlanError
from wpinq.exact import decimal
from wpinq.postprocess.degrees.posterior.horizon import Observable, block
from wpinq.postprocess.degrees.reconcile import LEAST_SCALE

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.core.pricing.quote import Quote

WIDEST = 1_000
"""Largest scale of a diagonal split's noise for which bands certainly fit in memory; about a minute and 3 GB."""
FIRST = 256
MAX_BINS = 1 << 20


def at_once(
    questions: Sequence[tuple[Collection, Terms, str | None]], widest: Fraction | int, analyst: str | None
) -> list[Quote[Measurement]]:
    """Quotes of what is answered at once, with noise that a fit can be made of.

    Raises:
        PlanError: It is not.
    """
    quotes = [quote_terms(item, terms, name, analyst) for item, terms, name in questions]
    for quote in quotes:
        if not quote.at_once:
            raise PlanError(
                "release(...): windows, and the epochs of a live source, are answered once they have closed; measure "
                "degrees.cdf(...) and degrees.sequence(...), and reconcile them then. Nothing was charged."
            )
        check_scale(quote.scale, widest)
    return quotes


def check_scale(scale: Fraction, widest: Fraction | int) -> None:
    """Refuse noise that is too wide for a posterior in memory, or too narrow, before anything is charged."""
    if scale < LEAST_SCALE:
        raise PlanError("release(...): noise of a scale below 10**-9 is none; nothing was charged. Give less epsilon.")
    if scale > widest:
        raise PlanError(
            f"release(...): noise of scale {decimal(scale)} is too wide to fit in memory (at most {int(widest):,}); "
            "nothing was charged. Give more epsilon, or split= with method='path'."
        )


def observe_corner(measurement: Observable) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Observe as many bins of each side as hold the corner.

    They are doubled until the bins of the upper half, K to 2K, sum to less than K**2 / 4 on either side: a corner that
    reaches beyond them adds K**2 / 2. With K >= 11 scale**(2/3) noise hides that with probability below 10**-9, by
    Chernoff's bound exp(-K**3 / (64 scale**2)); Gaussian noise with exp(-K**3 / (32 scale**2)).
    """
    last = max(FIRST, 1 << int(np.ceil(np.log2(max(1, 22 * float(measurement.scale) ** (2 / 3))))))
    columns, rows = observe_sides(measurement, 1, last)
    while last < MAX_BINS and min(float(bins[last // 2 :].sum()) for bins in (columns, rows)) >= last**2 / 16:
        more = observe_sides(measurement, last + 1, 2 * last)
        columns, rows, last = np.append(columns, more[0]), np.append(rows, more[1]), 2 * last
    return columns, rows


def observe_sides(measurement: Observable, first: int, last: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Observe bins `first` to `last` of the columns, and of the rows."""
    return block(measurement, first, last), block(measurement, -first, -last)
