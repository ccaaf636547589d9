"""Measurements of plans that analysts send: priced, charged once, and kept for a while to be observed."""

from __future__ import annotations

from typing import Any

import msgspec

from wpinq import Measurement, Quote
from wpinq.apps.remote.grammar import Measure
from wpinq.apps.remote.pricing import priced
from wpinq.apps.remote.wire import Measured
from wpinq.apps.serve.catalogue import Catalogue, Served
from wpinq.apps.serve.measured import described
from wpinq.apps.serve.operations import Call, Operation
from wpinq.apps.serve.plans import collection
from wpinq.apps.serve.questions import insist_on_any_cap, insist_on_cap
from wpinq.apps.serve.tokens import Grant
from wpinq.apps.serve.work_queue import Charged
from wpinq.core import commit, settle
from wpinq.errors import PlanError

OWN = "asked."
"""What names of measurements of analysts begin with; no data set has a point in its name."""


async def measure(call: Call[Measure]) -> Measured:
    """Price a measurement of a plan (dry), or charge for it; its bins are then observed like any other's."""
    body, grant, site = call.body, call.grant, call.site

    def price() -> Measured:
        quote = _quoted(body, grant, site.catalogue)
        insist_on_cap([quote], grant.analyst, site.catalogue.config.limits)
        return Measured(price=priced([quote], grant.analyst, ["weight"]))

    def charged() -> Charged[Served]:
        quote = _quoted(body, grant, site.catalogue)
        insist_on_cap([quote], grant.analyst, site.catalogue.config.limits)
        (made,) = commit([quote])
        (data, *_) = (
            name for name, data_set in site.catalogue.data.items() if data_set.ledger is made.key_owner.ledger
        )

        def answer() -> Served:
            settle(made)
            return Served(f"{OWN}{made.question[:32]}", data, made.quote.label, made)

        return Charged(made.key_owner.name, answer)

    if body.dry:
        return await site.desk.quoted(grant.analyst, price)
    key = (grant.analyst, grant.data, site.catalogue.versions, msgspec.json.encode(body))
    served = await site.desk.answered(grant.analyst, key, charged)
    site.desk.name((grant.data, served.name), key, charged)
    return Measured(measurement=described(served))


def _quoted(body: Measure, grant: Grant, catalogue: Catalogue) -> Quote[Measurement]:
    """The measurement, priced; nothing is charged, and no record is read.

    Raises:
        RefusedError: The analyst has no cap; the plan is not read then.
        PlanError, ExactnessError: It cannot be asked.
    """
    mine = {
        name: data_set for name, data_set in catalogue.data.items() if name in grant.data and data_set.file.questions
    }
    insist_on_any_cap(mine.values(), grant.analyst)
    tables = {name: data_set.views for name, data_set in mine.items()}
    amounts: dict[str, Any] = {"rho": body.rho, "delta": body.delta, "within": body.within}
    wanted = collection(body.plan, tables, catalogue.config.limits)
    quote = wanted.quote(
        body.epsilon, body.name, body.mechanism, grant.analyst,
        **{name: amount for name, amount in amounts.items() if amount is not None},
    )  # fmt: skip
    if not quote.at_once:
        raise PlanError("measure: it is answered only once a window or epoch has closed, which is not served.")
    return quote


MEASURING = (Operation("POST", "/api/measure", Measured, measure, Measure, more=(409,)),)
