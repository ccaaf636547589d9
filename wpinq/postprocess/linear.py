"""Released curves as linear measurements for `mbi`, which fits tables to what is linear in their counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from wpinq.errors import PlanError, needs


def measured(noisy_cdf: npt.NDArray[Any], stddev: float, attribute: str) -> Any:
    """A noisy CDF as a measurement of a column of degrees: its first value is degree 1, its last that degree or more.

    Entry k - 1 is the sum of the counts of degree k and more, plus noise that is independent of the others: what `mbi`
    supposes. Differences of neighbours would be counts by degree, with noise that they share, and posterior means are
    no measurements; so neither is offered. A sequence is not linear in the counts: what it tells of the tail is left
    out, and all degrees beyond the curve are in its last value. `mbi` reads a total from counts alone: without a
    marginal beside this, give it `known_total=fit.distinct`.

    Args:
        noisy_cdf: The released values.
        stddev: The standard deviation of the noise on each.
        attribute: The name of the column.

    Raises:
        PlanError: There is no value.
        ExtraError: `mbi` is not installed.
    """
    if not len(noisy_cdf):
        raise PlanError("fit.to_mbi(): nothing was released of the CDF: there are no items to speak of.")
    needs("mbi", "fit.to_mbi()")
    from mbi import LinearMeasurement

    return LinearMeasurement(np.asarray(noisy_cdf, np.float64), (attribute,), stddev, query=at_least)


def at_least(counts: Any) -> Any:
    """How many have each degree or a higher one, of an `mbi` factor of counts by degree."""
    return counts.datavector()[::-1].cumsum()[::-1]
