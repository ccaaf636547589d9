"""Private partition selection by threshold: publish the bins whose noisy weight is at least a threshold.

The noise is that of the measurement, so only delta is charged: unless a bin that only one unit is in reaches the
threshold, the published table is a function of the noisy histogram. A threshold above the private one publishes fewer
bins, which is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from wpinq.core.noise import Mechanism
from wpinq.core.noise.threshold import least_threshold, tail_of
from wpinq.core.plan.node import Node, sources
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.sensitivity import ledger_sensitivities, moved_bins
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Schema
from wpinq.core.runs.key_recovery import named
from wpinq.core.state.histogram import Histogram, is_steps
from wpinq.core.state.table import Ids, Weights
from wpinq.errors import ExactnessError
from wpinq.exact import Amount, positive

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet

BINS_PER_LOT = 1 << 20
"""Bins that are processed at once."""

Bins: TypeAlias = tuple["Ids | Weights", Ids, Weights]
"""What is needed to name bins (integers or identities), their identities, their true weights."""


DEFAULT = Fraction(1, 10**6)
"""Delta of a release or selection, where nothing else is said."""
PART = Fraction(1, 10)
"""Of the delta that a ledger with Renyi accounting keeps for thresholds: what one of them takes by default."""


def delta_of(delta: Amount | None, sources: Iterable[DataSet], call: str) -> Fraction:
    """The delta that was asked for; by default what a ledger has for it: `DEFAULT`, or `PART` of less.

    Raises:
        ExactnessError: See `probability`.
    """
    if delta is not None:
        return probability(delta, call)
    promises = [data.ledger.promise for data in sources]
    return min([DEFAULT, *(promise.failing * PART for promise in promises if 0 < promise.failing < promise.delta)])


def probability(delta: Amount, call: str) -> Fraction:
    """Read a delta.

    Raises:
        ExactnessError: It is not strictly between 0 and 1.
    """
    number = positive(delta, call)
    if number >= 1:
        raise ExactnessError(f"{call}: {delta} is not below 1; delta is a small probability, for example 1e-6.")
    return number


def l1_sensitivity(survey: Survey) -> int:
    """The largest L1 sensitivity of a data set, in units of 1/resolution, rounded up: the change that costs epsilon.

    For pure differential privacy it suffices: a unit of two data sets of one ledger loses the sum of both charges.
    """
    return max(math.ceil(move * survey.root.resolution) for move in survey.sensitivities.values())


def private_threshold(node: Node, noise: Mechanism, delta: Fraction) -> int:
    """The least noisy weight to publish, in steps, such that bins of a unit alone are published with delta at most.

    A unit of several data sets of one ledger is in all of them and is charged for each: its sensitivity is the sum over
    them, and so is its delta.

    Raises:
        PlanError: The noise has a law that thresholds are not known for.
    """
    tail, scale = tail_of(noise, "release")
    survey = Survey.of(node)
    bins = moved_bins(survey)
    return max(
        least_threshold(scale, noise.grid, unit.l1, unit.data_sets * delta, unit.linf, bins=bins[book], tail=tail)
        for book, unit in ledger_sensitivities(survey).items()
    )


def threshold_of(node: Node, noise: Mechanism, delta: Fraction) -> float:
    """The same in weight, for people.

    Raises:
        PlanError: See `private_threshold`.
    """
    return float(Fraction(private_threshold(node, noise, delta), node.resolution * noise.grid))


def present(histogram: Histogram, node: Node) -> Iterator[Bins]:
    """All bins of non-zero weight, in lots, in an order that follows from the histogram alone."""
    ids, _ = histogram.content()
    if not is_steps(node.schema):
        for first in range(0, len(ids), BINS_PER_LOT):
            some = ids[first : first + BINS_PER_LOT]
            yield some, some, histogram.lookup(pl.DataFrame(), some)
        return
    starts, ends = ids.view(np.int64)[:, 0], ids.view(np.int64)[:, 1]
    past = np.cumsum(ends - starts)
    for first in range(0, int(past[-1]) if len(past) else 0, BINS_PER_LOT):
        number = np.arange(first, min(first + BINS_PER_LOT, int(past[-1])))
        piece = np.searchsorted(past, number, "right")
        integers: Weights = (ends[piece] - (past[piece] - number)).astype(np.int64)
        frame = pl.DataFrame({node.schema.names[0]: integers})
        yield (
            integers,
            identities(frame, node.schema.expanded(), sources(node)[0].identity_key),
            histogram.lookup(frame, ids),
        )


def names_of(node: Node, chosen: list[Ids | Weights]) -> pl.DataFrame:
    """The bins that were chosen, as columns."""
    schema: Schema = node.schema
    if is_steps(schema):
        return pl.DataFrame({schema.names[0]: np.concatenate([np.empty(0, np.int64), *chosen])})
    return named(node, np.concatenate([np.empty((0, 2), np.uint64), *chosen]))
