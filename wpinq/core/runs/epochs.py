"""Which epochs of a live source answer a query, and the plan over the one that is open."""

from __future__ import annotations

from dataclasses import dataclass

from wpinq.core.plan.node import Node
from wpinq.core.plan.stability import Survey
from wpinq.core.runs.compaction import refuse_merged
from wpinq.core.runs.timeline import Timeline, at_epoch, log_of, refuse_forgotten, refuse_windows
from wpinq.errors import PlanError


@dataclass(frozen=True, eq=False)
class Epochs:
    """The epochs of a live source that answer a query.

    Attributes:
        log: The live source.
        root: The plan over the open source.
        epoch: The one that answers; None for each that closes from now on.
    """

    log: Timeline
    root: Node
    epoch: int | None

    def check(self, call: str) -> None:
        """Refuse a quote of an epoch that has closed, and a plan whose records are no longer held, or were merged.

        Raises:
            PlanError: The epoch has closed, or records are no longer held or were merged; nothing was charged.
        """
        if self.epoch is not None and self.epoch != self.log.closed + 1:
            raise PlanError(
                f"{call}: the quote is for epoch {self.epoch} of {self.log.name}, which has closed; quote again for "
                "the open one. Nothing was charged."
            )
        refuse_forgotten(self.log, self.root)
        if self.epoch is None:
            refuse_merged(self.log, self.root)


def answered_from(root: Node, call: str) -> tuple[Survey, Epochs | None]:
    """The plan of a query with a single answer; over a live source that of the next epoch to close.

    Raises:
        PlanError: The plan has windows, with an answer for each; or records that it needs are no longer held.
    """
    survey = Survey.of(root)
    refuse_windows(survey.steps, call)
    return opened(survey)


def opened(survey: Survey) -> tuple[Survey, Epochs | None]:
    """The plan itself, or over the epoch of its live source that is open.

    Raises:
        PlanError: Records that it needs are no longer held, or there are two live sources.
    """
    log = log_of(survey.sources)
    if log is None:
        return survey, None
    refuse_forgotten(log, survey.root)
    epoch = log.closed + 1
    return Survey.of(at_epoch(survey.root, epoch)), Epochs(log, survey.root, epoch)
