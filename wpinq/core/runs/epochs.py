"""Which epochs of a live source answer a query, and the plan over the one that is open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wpinq.core.plan.node import Node
from wpinq.core.plan.stability import Survey
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet
    from wpinq.core.runs.timeline import Timeline


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
        from wpinq.core.runs.compaction import refuse_merged
        from wpinq.core.runs.timeline import refuse_forgotten

        refuse_forgotten(self.log, self.root)
        if self.epoch is None:
            refuse_merged(self.log, self.root)


def log_of(read: Iterable[DataSet]) -> Timeline | None:
    """The live source among some data sets; what knows of epochs is loaded where there is one.

    Raises:
        PlanError: There are several, which do not share their epochs.
    """
    live = [data.reader for data in read if data.live]
    if not live:
        return None
    from wpinq.core.records.log import Log

    result: list[Any] = [reader for reader in live if isinstance(reader, Log)]
    if len(result) > 1:
        raise PlanError("measure(...): the plan reads two live sources; send the records of both to one of them.")
    return result[0] if result else None


def refuse_windows(walk: Iterable[Node], call: str) -> None:
    """Refuse a plan that has an answer for each window.

    Raises:
        PlanError: It has.
    """
    if any(node.many for node in walk):
        raise PlanError(
            f"{call}: there would be an answer for each window. Measurements, counts, sums and means have one, "
            ".at(time); for others use partition(...) by hour or day, whose parts cost as one."
        )


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
    from wpinq.core.runs.timeline import at_epoch, refuse_forgotten

    refuse_forgotten(log, survey.root)
    epoch = log.closed + 1
    return Survey.of(at_epoch(survey.root, epoch)), Epochs(log, survey.root, epoch)
