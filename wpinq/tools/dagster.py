"""A release file as a partitioned asset of Dagster, whose materializations carry what each period cost."""

import os
from typing import Any

from dagster import (
    AssetExecutionContext,
    AssetsDefinition,
    Failure,
    MaterializeResult,
    TimeWindowPartitionsDefinition,
    asset,
)  # fmt: skip

from wpinq.apps.publish import BusyError, Release
from wpinq.apps.publish.file.periods import Period
from wpinq.errors import PlanError, WpinqError
from wpinq.tools.orchestrated import published

CRON = {"hour": "0 * * * *", "day": "0 0 * * *", "week": "0 0 * * 1", "month": "0 0 1 * *", "year": "0 0 1 1 *"}
"""When the windows of each kind of period begin."""
FORM = {"hour": "%Y-%m-%d-%H:%M"}
"""How Dagster writes the names of partitions; others are days."""


def publishing(path: str | os.PathLike[str], *, openlineage: bool = False) -> AssetsDefinition:
    """An asset with a partition for each period of a release file; to materialize one is `wpinq publish run`.

    It is published exactly once, however often Dagster runs it. The metadata of a materialization are its price and
    what is left of the budget.

    Args:
        path: The release file. Its `[period]` must say the `first` one, where Dagster's partitions begin.
        openlineage: Whether to emit OpenLineage events too, which takes `wpinq[openlineage]`.

    Raises:
        SourceError: The file cannot be read.
        PlanError: It says what cannot be, or no first period.
    """
    release = Release.read(path)
    every, first, zone = release.file.period.every, release.file.period.first, release.file.period.zone
    if first is None:
        raise PlanError(f"publishing({release.name}): [period] first = ... says where the partitions of Dagster begin.")
    partitions = TimeWindowPartitionsDefinition(
        start=Period.parse(str(first), every).start, fmt=FORM.get(every, "%Y-%m-%d"), timezone=zone,
        cron_schedule=CRON[every],
    )  # fmt: skip

    @asset(name=release.name, partitions_def=partitions, description=f"{release!r}, protects {release.protects}",
           kinds={"wpinq"})  # fmt: skip
    def period_asset(context: AssetExecutionContext) -> MaterializeResult[Any]:
        """Publish the partition's period."""
        start = context.partition_time_window.start.replace(tzinfo=None)
        return _published(release, Period.of(start, every).name, openlineage=openlineage)

    return period_asset


def _published(release: Release, period: str, *, openlineage: bool) -> MaterializeResult[Any]:
    """Publish a period.

    Raises:
        Failure: It could not be.
    """
    try:
        return MaterializeResult(metadata=published(release, period, openlineage=openlineage))
    except WpinqError as error:
        failed = Failure(str(error), allow_retries=isinstance(error, BusyError))
    raise failed
