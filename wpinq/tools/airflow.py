"""A release file as a task of Airflow, which publishes a period and emits its charge as OpenLineage."""

import os
from typing import Any
from zoneinfo import ZoneInfo

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from wpinq.errors import WpinqError


class PublishOperator(BaseOperator):
    """A task that publishes one period of a release file, as `wpinq publish run`.

    It is published exactly once, however often Airflow runs the task. What the task returns are its price and what is
    left of the budget. Events of OpenLineage go where `OPENLINEAGE_URL` or `openlineage.yml` says.

    Args:
        release: The release file; a template.
        period: The name of a period, a template such as `{{ ds }}`; without it the last one that is over when the data
            interval of the run ends or, where it has none, when the run is to begin.
        openlineage: Whether to emit events.
        task: What every operator takes, such as `task_id`.
    """

    template_fields = ("release", "period")

    def __init__(
        self, *, release: str | os.PathLike[str], period: str | None = None, openlineage: bool = True, **task: Any
    ) -> None:
        super().__init__(**task)
        self.release, self.period, self.openlineage = os.fspath(release), period, openlineage

    def execute(self, context: Context) -> dict[str, Any]:
        """Publish the period.

        Raises:
            AirflowFailException: It could not be, and to try again does not help.
            AirflowException: Another process is publishing; Airflow may try again.
        """
        from wpinq.apps.publish import BusyError, Release
        from wpinq.tools.orchestrated import published

        try:
            release = Release.read(self.release)
            return published(release, self.period or _over(release, context), openlineage=self.openlineage)
        except WpinqError as error:
            failed = (AirflowException if isinstance(error, BusyError) else AirflowFailException)(str(error))
        raise failed


def _over(release: Any, context: Context) -> str:
    """The name of the last period that is over."""
    from wpinq.apps.publish.file.periods import Period

    end = context.get("data_interval_end") or context["dag_run"].run_after
    here = end.astimezone(ZoneInfo(release.file.period.zone)).replace(tzinfo=None)
    return Period.of(here, release.file.period.every).previous.name
