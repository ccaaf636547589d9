"""Periods of a release as OpenLineage events, which carry what each of them cost: `wpinq publish run --openlineage`.

Where events go is said as everywhere: `OPENLINEAGE_URL`, or a file `openlineage.yml`. They hold names, prices and when
the run began and ended, which depends on how many records there are; that a run fails may follow from records too
(`vulnerabilities.md`), and of that no event says why. They hold no place of records, which can hold a password.
"""

from __future__ import annotations

import datetime as dt
import warnings
from typing import Any
from zoneinfo import ZoneInfo

import attr
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import RunFacet, error_message_run, nominal_time_run
from openlineage.client.uuid import generate_new_uuid

from wpinq.apps.publish import Outcome, Release
from wpinq.errors import SourceError, WpinqError, redacted

PRODUCER = "urn:wpinq"
NAMESPACE = "wpinq"
UNREAD = "The records could not be read as they are; why, the run tells their curator alone."
"""Of what is refused because of records or where they lie."""


@attr.define
class ChargeFacet(RunFacet):
    """What a period costs one privacy unit, and what is left: the facet `wpinq_charge` of a run.

    Attributes:
        done: "published", or "was published before", which costs nothing more.
        protects: Whom the price is for.
        epsilon: The price, of noise that an epsilon bounds.
        rho: Of Gaussian noise.
        delta: Of groups that nobody named.
        kind: What the budget is in, epsilon or rho.
        budget: The budget in all.
        left: What is left of it.
    """

    done: str
    protects: str
    epsilon: float
    rho: float
    delta: float
    kind: str
    budget: float
    left: float


def publish(
    release: Release, period: str | None = None, *, client: OpenLineageClient | None = None,
    accept: bool = False, again: bool = False, check: bool = False,
) -> Outcome:  # fmt: skip
    """Publish one period, as `Release.run`, and tell OpenLineage: START, then COMPLETE with the charge, or FAIL.

    An event that nobody takes stops no publication: it is a warning.

    Args:
        release: The release.
        period: Its name; by default the last one that is over.
        client: Takes the events; by default the one that the environment describes.
        accept, again, check: See `Release.run`.

    Raises:
        WpinqError: See `Release.run`.
    """
    wanted, emit = release.period(period), _Emitter(release, client)
    zone = ZoneInfo(release.file.period.zone)
    start, end = (time.replace(tzinfo=zone).isoformat() for time in (wanted.start, wanted.end))
    facets = {"nominalTime": nominal_time_run.NominalTimeRunFacet(start, end)}
    emit(RunState.START, facets)
    try:
        outcome = redacted("publish", lambda: release.run(wanted.name, accept=accept, again=again, check=check))
    except WpinqError as error:
        message = UNREAD if isinstance(error, SourceError) else str(error)
        emit(RunState.FAIL, {**facets, "errorMessage": error_message_run.ErrorMessageRunFacet(message, "python")})
        raise
    emit(RunState.COMPLETE, {**facets, "wpinq_charge": charge(release, outcome)})
    return outcome


def charge(release: Release, outcome: Outcome) -> ChargeFacet:
    """What became of a period, as a facet."""
    price, funds = outcome.price, release.funds()
    return ChargeFacet(
        outcome.done, release.protects, float(price.epsilon), float(price.rho), float(price.delta),
        funds.unit, float(funds.total), float(funds.left),
    )  # fmt: skip


class _Emitter:
    """Emits the events of one run."""

    def __init__(self, release: Release, client: OpenLineageClient | None) -> None:
        self._client = client or OpenLineageClient()
        self._run, self._name = str(generate_new_uuid()), release.name
        self._outputs = [
            OutputDataset(NAMESPACE, f"{release.name}.{question.name}") for question in release.file.question
        ]

    def __call__(self, state: RunState, facets: dict[str, Any]) -> None:
        """Emit one."""
        try:
            self._client.emit(RunEvent(
                eventType=state, eventTime=dt.datetime.now(dt.UTC).isoformat(), producer=PRODUCER,
                run=Run(self._run, facets), job=Job(NAMESPACE, self._name),
                inputs=[InputDataset(NAMESPACE, f"{self._name}.records")], outputs=self._outputs,
            ))  # fmt: skip
        except Exception as error:  # noqa: BLE001  what is published is published
            why = f"{self._name}: OpenLineage did not take the event {state.value} ({type(error).__name__})."
            warnings.warn(why, RuntimeWarning, stacklevel=3)
