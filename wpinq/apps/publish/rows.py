"""The records of a period, whatever files or tables hold them: those that are left by `where` and `derive`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wpinq.core import ChosenRows, Kind, Reader


@dataclass(frozen=True)
class PeriodSource:
    """What `protect` opens as the records of a period.

    Attributes:
        opened: Opens the source that holds them.
        where: The condition that says which they are, over the columns and what is computed.
        derive: What is computed of each record first.
    """

    opened: Callable[[], Reader]
    where: str
    derive: Mapping[str, str]

    def open_reader(self, columns: object) -> ChosenRows:
        """The reader.

        Raises:
            SourceError, PlanError: It cannot be read so.
        """
        return ChosenRows(self.opened(), self.where, self.derive)


def condition(at: str, kind: Kind, start: str, end: str) -> str:
    r"""The condition that a record's time is in a period.

    >>> condition("time", Kind.TIME, "2026-10-01 00:00:00", "2026-11-01 00:00:00")
    '"time" >= \'2026-10-01 00:00:00\' and "time" < \'2026-11-01 00:00:00\''
    """
    if kind is Kind.DATE:
        start, end = start[:10], end[:10]
    name = '"' + at.replace('"', '""') + '"'
    return f"{name} >= '{start}' and {name} < '{end}'"
