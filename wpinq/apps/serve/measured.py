"""What there is, and bins of it."""

from __future__ import annotations

import asyncio

from wpinq import Measurement
from wpinq.apps.remote.bins import bins_of
from wpinq.apps.remote.wire import DataTold, Fitted, FitTold, Listed, Observe, Observed
from wpinq.apps.serve.catalogue import Catalogue, Served
from wpinq.apps.serve.descriptions import columns, described, unit_of
from wpinq.apps.serve.operations import Call, Operation
from wpinq.apps.serve.refusals import RefusedError
from wpinq.apps.serve.work_queue import Charged
from wpinq.core import sources
from wpinq.exact import exact

BAND = 0.9
FEW = 8
"""Bins that are quicker asked one by one than as a column; the answers are the same."""
QUICK = 500
"""Bins that are answered on the spot; more are in a thread, so that others need not wait."""


async def measurements(call: Call[None]) -> Listed:
    """Measurements with their meaning, scale and cost, and data sets of which questions may be asked."""
    catalogue, mine = call.site.catalogue, set(call.grant.data)
    return Listed(
        measurements=[described(served) for served in catalogue.measured.values() if served.data in mine],
        data=[
            DataTold(name=name, columns=columns(data_set.views._node.schema), questions=data_set.file.questions,
                     protects=data_set.protects, unit=unit_of(sources(data_set.views._node)[0].unit))
            for name, data_set in catalogue.data.items() if name in mine
        ],
        fits=[
            FitTold(name=name, data=fit_.data, cdf=f"{fit_.data}.{fit_.cdf}", sequence=f"{fit_.data}.{fit_.sequence}",
                    meaning=fit_.meaning)
            for name, fit_ in catalogue.config.fit.items() if fit_.data in mine
        ],
        releases=[name for name, release in catalogue.config.release.items() if release.data in mine],
    )  # fmt: skip


async def observe(call: Call[Observe]) -> Observed:
    """The noisy weights of some bins, whether they exist or not; free, and the same whenever they are asked."""
    name, catalogue = call.path["name"], call.site.catalogue
    served: Served | None = catalogue.measured.get(name)
    # One of an earlier version is not known: whether its counts are still kept follows from records.
    served = served or await call.site.desk.again((call.grant.data, catalogue.versions, name))
    if served is None or served.data not in call.grant.data:
        raise RefusedError(403)
    insist_on_opened(call.site.catalogue, served)
    return await observed(served.measurement, call.body, call.site.catalogue.config.limits.bins)


def insist_on_opened(catalogue: Catalogue, served: Served) -> None:
    """Refuse what the curator serves of a version that was not opened.

    Raises:
        RefusedError: It was not.
    """
    if served.name in catalogue.measured and catalogue.data[served.data].stopped:
        raise RefusedError(503)


async def observed(made: Measurement, wanted: Observe, most: int) -> Observed:
    """The noisy weights of the bins that a request names."""
    bins = bins_of(wanted, made.node.schema, most)

    def observations() -> list[float | int]:
        if len(bins) <= FEW:
            return [made.observe(bin_) for bin_ in bins]
        values: list[float | int] = made.observe_many(bins).tolist()
        return values

    level = exact(wanted.level, "observe(level=...)")
    half = made.interval(level)
    values = observations() if len(bins) <= QUICK else await asyncio.to_thread(observations)
    return Observed(values=values, half_width=half, level=float(level))


async def fit(call: Call[None]) -> Fitted:
    """The degree distribution that fits two measurements best, with its 90% credible bands; free."""
    from wpinq.postprocess.degrees.reconcile import reconcile

    catalogue, name = call.site.catalogue, call.path["name"]
    of = catalogue.config.fit.get(name)
    if of is None or of.data not in call.grant.data:
        raise RefusedError(403)
    curves = [catalogue.measured[f"{of.data}.{curve}"] for curve in (of.cdf, of.sequence)]
    insist_on_opened(catalogue, curves[0])
    cdf, sequence = (curve.measurement for curve in curves)

    def fitted() -> Fitted:
        fit = reconcile(cdf, sequence)
        low, high = fit.band(BAND)
        return Fitted(
            name=name, cdf=fit.cdf.tolist(), low=low.tolist(), high=high.tolist(), sequence=fit.sequence.tolist(),
            level=BAND, distinct=fit.distinct, records=fit.records,
        )  # fmt: skip

    key = ("fit", name, catalogue.versions)
    return await call.site.desk.answered(call.grant.analyst, key, lambda: Charged("fit", fitted))


OBSERVING = (
    Operation("GET", "/api/fits/{name}", Fitted, fit),
    Operation("GET", "/api/measurements", Listed, measurements),
    Operation("POST", "/api/measurements/{name}/observe", Observed, observe, Observe),
)
