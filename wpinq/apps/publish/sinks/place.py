"""What is published of a period, and the interface of the places that it goes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from wpinq.apps.publish.file.periods import Period


@dataclass(frozen=True)
class Edition:
    """One period of a release, as it is published.

    Attributes:
        release: The release's name.
        period: The period.
        tables: The answers, by name, without intervals.
        files: The same as files in every format that is asked for, with the evidence.
    """

    release: str
    period: Period
    tables: Mapping[str, pl.DataFrame]
    files: Mapping[str, bytes]


class Place(Protocol):
    """A place that editions go to.

    Attributes:
        name: What messages call it; without passwords.
    """

    name: str

    def check(self, period: Period, *, fresh: bool) -> None:
        """Refuse, before anything is charged, what can be seen to fail.

        Args:
            period: The period.
            fresh: Whether nothing of it was published yet.

        Raises:
            SourceError: It cannot be written, or holds something for a fresh period.
        """

    def deliver(self, edition: Edition) -> None:
        """Publish an edition whole, durably, once. One that is there already, and is the same, is left as it is.

        Tables that were lost since are written again; of one of which some rows are there, nothing is changed.

        Raises:
            SourceError: It refuses, or holds something else for the period; nothing of the edition is there.
        """

    def differs(self, edition: Edition) -> str | None:
        """How what is there differs from an edition; None where it does not."""
