"""Release a degree distribution: choose the question, split epsilon, measure, fit.

By default the question is the corner (see `durfee`), which needs no split and had the least error on every real data
set that it was tried on. With `split` it is two whole curves, as in *Things that count*, with that share for the CDF.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wpinq.degrees.evidence import Cornered
from wpinq.degrees.fit import Fit
from wpinq.degrees.horizon import Observable, block
from wpinq.degrees.pipelines import cdf, corner, sequence
from wpinq.degrees.reconcile import Method, check_method, reconcile
from wpinq.errors import ExactnessError, PlanError
from wpinq.exact import Amount, positive

if TYPE_CHECKING:
    from wpinq.collection import Collection

FIRST = 256
MOST = 1 << 20


def release(
    collection: Collection,
    epsilon: Amount,
    *,
    split: Amount | None = None,
    method: Method | None = None,
    name: str | None = None,
) -> Fit:
    """Measure how often each record of a collection is counted, and fit a degree distribution.

    Without `split` it is one measurement at the full epsilon: each record is counted by column or by row, whichever
    tells it better, so nothing depends on a choice that the data would have to make. Asked again with the same
    arguments it costs nothing and answers the same.

    Args:
        collection: The items, such as `views.map(lambda user, page: page)`.
        epsilon: What it costs the privacy unit in all, exact.
        split: Measure two whole curves instead, and give this share of epsilon, between 0 and 1, to the CDF.
        method: How two curves are reconciled, `"posterior"` by default; a corner has no other method.
        name: Name of the release in the ledger, which also makes an independent repetition.

    Raises:
        PlanError: The method is unknown, or is not `"posterior"` without a split; nothing was charged. Or the noise is
            too wide to fit in memory (scales beyond about 3,000).
        ExactnessError: `epsilon` or `split` is not an exact number in its range; nothing was charged.
        BudgetError: It costs more than is left; nothing was charged, or, of two curves, at most the CDF.
    """
    method = check_method(method or "posterior", "release")
    whole = positive(epsilon, "release(epsilon=...)")
    if split is None:
        if method != "posterior":
            raise PlanError(f"release(method={method!r}): only two curves have it; add split=, such as split=0.75.")
        measurement = corner(collection).measure(epsilon=whole, name=name)
        bins = observe_corner(measurement)
        evidence = Cornered(bins, measurement.scale)
        return Fit(*evidence.staircases((0.5,))[0], evidence, method)
    share = positive(split, "release(split=...)")
    if share >= 1:
        raise ExactnessError(f"release(split={split}): the share of the CDF is between 0 and 1; both curves need some.")
    return reconcile(
        cdf(collection).measure(epsilon=share * whole, name=name and f"{name}: cdf"),
        sequence(collection).measure(epsilon=(1 - share) * whole, name=name and f"{name}: sequence"),
        method=method,
    )


def observe_corner(measurement: Observable) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Observe as many bins of each side as hold the corner.

    They are doubled until the bins of the upper half, K to 2K, sum to less than K**2 / 4 on either side: a corner that
    reaches beyond them adds K**2 / 2. With K >= 11 scale**(2/3) noise hides that with probability below 10**-9, by
    Chernoff's bound exp(-K**3 / (64 scale**2)).
    """
    last = max(FIRST, 1 << int(np.ceil(np.log2(22 * float(measurement.scale) ** (2 / 3)))))
    columns, rows = observe_sides(measurement, 1, last)
    while last < MOST and min(float(bins[last // 2 :].sum()) for bins in (columns, rows)) >= last**2 / 16:
        more = observe_sides(measurement, last + 1, 2 * last)
        columns, rows, last = np.append(columns, more[0]), np.append(rows, more[1]), 2 * last
    return columns, rows


def observe_sides(measurement: Observable, first: int, last: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Observe bins `first` to `last` of the columns, and of the rows."""
    return block(measurement, first, last), block(measurement, -first, -last)
