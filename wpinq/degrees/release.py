"""Release a degree distribution: choose the question, split epsilon, measure, fit.

By default the question is the corner (see `durfee`), which needs no split and had the least error on every real data
set that it was tried on. With `split` it is two whole curves, as in *Things that count*, with that share for the CDF.
Where epsilon is 1 or more a split near 1/2 costs twice the error of one near 1 (see `reconcile`): prefer none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wpinq.arguments import COLLECTION, NAME, NOTHING, takes
from wpinq.degrees.pipelines import cdf, corner, sequence
from wpinq.errors import ExactnessError, PlanError
from wpinq.exact import Amount, decimal, positive
from wpinq.postprocess.fit import Fit
from wpinq.postprocess.posterior.evidence import Cornered
from wpinq.postprocess.posterior.horizon import Observable, block
from wpinq.postprocess.reconcile import LARGEST_SCALE, LEAST_SCALE, Method, Prior, check_method, check_prior, reconcile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from wpinq.collection import Collection
    from wpinq.measurements.measurement import Measurement
    from wpinq.measurements.quote import Quote

FIRST = 256
MAX_BINS = 1 << 20
WIDEST = 1_000
"""Largest scale of a diagonal split's noise for which bands certainly fit in memory; about a minute and 3 GB."""
WIDEST_OF_TWO = {"uniform": 500, "smooth": 25}
"""The same of two curves."""


@takes("degrees.release", collection=COLLECTION, method=NAME | NOTHING, prior=NAME | NOTHING)
def release(
    collection: Collection,
    epsilon: Amount,
    *,
    split: Amount | None = None,
    method: Method | None = None,
    prior: Prior | None = None,
    name: str | None = None,
    analyst: str | None = None,
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
        prior: What the posterior of two curves assumes, `"uniform"` by default; see `reconcile` for what `"smooth"`
            gains and risks. A corner finds its prior itself (see `durfee`). Where the smooth one turns
            out to be too much work, asking again without it costs nothing more.
        name: Name of the release in the ledger, which also makes an independent repetition.
        analyst: Who is charged, where the curator keeps caps for each analyst.

    Raises:
        PlanError: The method or the prior is unknown, or is given without a split where only two curves have it, or the
            noise is too wide for a posterior in memory (scale 1,000, of two curves 500, smooth 25) or next to none
            (scale 10**-9); nothing was charged. Or the data turn out too large beside wide noise, after the charge.
        ExactnessError: `epsilon` or `split` is not an exact number in its range; nothing was charged.
        BudgetError: It costs more than is left; nothing was charged.
    """
    method = check_method(method or "posterior", "release")
    quotes = quoted(collection, epsilon, split=split, method=method, prior=prior, name=name, analyst=analyst)
    made = collection._commit(quotes)
    if split is None:
        evidence = Cornered(observe_corner(made[0]), made[0].scale)
        return Fit(*evidence.staircases((0.5,))[0], evidence, method, made[0].about)
    return reconcile(made[0], made[1], method=method, prior=prior or "uniform")


def quoted(
    collection: Collection,
    epsilon: Amount,
    *,
    split: Amount | None,
    method: Method,
    prior: Prior | None,
    name: str | None,
    analyst: str | None,
) -> list[Quote[Measurement]]:
    """Check the arguments of `release` and quote its measurements: the diagonal split, or the two curves of a split."""
    check_prior(prior or "uniform", method, "release")
    whole = positive(epsilon, "release(epsilon=...)")
    if split is None:
        if method != "posterior" or prior is not None:
            given = f"prior={prior!r}" if method == "posterior" else f"method={method!r}"
            raise PlanError(f"release({given}): only two curves have it; add split=, such as split=0.75.")
        return at_once([(corner(collection), whole, name)], WIDEST, analyst)
    share = positive(split, "release(split=...)")
    if share >= 1:
        raise ExactnessError(f"release(split={split}): the share of the CDF is between 0 and 1; both curves need some.")
    names = (name and f"{name}: cdf", name and f"{name}: sequence")
    asked = (cdf(collection), share * whole, names[0]), (sequence(collection), (1 - share) * whole, names[1])
    widest = WIDEST_OF_TWO[prior or "uniform"] if method == "posterior" else LARGEST_SCALE
    return at_once(asked, widest, analyst)


def at_once(
    asked: Sequence[tuple[Collection, Fraction, str | None]],
    widest: Fraction | int,
    analyst: str | None,
) -> list[Quote[Measurement]]:
    """Quotes of what is answered at once, with noise that a fit can be made of.

    Raises:
        PlanError: It is not.
    """
    quotes = [item.quote(epsilon, name, analyst=analyst) for item, epsilon, name in asked]
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
    Chernoff's bound exp(-K**3 / (64 scale**2)).
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
