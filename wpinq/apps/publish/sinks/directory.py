"""A directory for each period: tables and evidence as files, renamed into place as a whole."""

from __future__ import annotations

import os
from pathlib import Path

from wpinq.apps.publish.file.periods import Period
from wpinq.apps.publish.files import found, put
from wpinq.apps.publish.sinks.place import Edition
from wpinq.errors import SourceError

TABLES = {"csv": ".csv", "parquet": ".parquet", "json": ".json"}


class Directory:
    """See `Place`.

    Args:
        pattern: The directory of a period, with {date} in it.
        formats: Of the tables; the evidence is always there.
        home: Where relative paths start.
    """

    def __init__(self, pattern: str, formats: tuple[str, ...], home: Path) -> None:
        self._pattern, self._home, self.name = pattern, home, f"directory {pattern}"
        self._suffixes = {TABLES[one] for one in formats}
        self._place(Period.parse("2000", "year"))  # whatever the period, it is refused now if it is for none

    def check(self, period: Period, *, fresh: bool) -> None:
        """See `Place.check`."""
        place = self._place(period)
        if fresh and place.exists():
            raise SourceError(f"{self.name}: {place} is there, and was not published by this release; move it away.")
        near = next(one for one in (place.parent, *place.parent.parents) if one.exists())
        if not near.is_dir() or not os.access(near, os.W_OK | os.X_OK):
            raise SourceError(f"{self.name}: {near} cannot be written to.")

    def deliver(self, edition: Edition) -> None:
        """See `Place.deliver`."""
        put(self._place(edition.period), self._chosen(edition), self.name)

    def differs(self, edition: Edition) -> str | None:
        """See `Place.differs`."""
        there, wanted = found(self._place(edition.period)), self._chosen(edition)
        if there is None:
            return f"{self._place(edition.period)} is missing"
        odd = sorted(name for name in there.keys() | wanted.keys() if there.get(name) != wanted.get(name))
        return f"{self._place(edition.period)}: other content in {', '.join(odd)}" if odd else None

    @property
    def root(self) -> Path | None:
        """The directory that those of all periods lie in; None where it is the release's own."""
        fixed = self._pattern.partition("{")[0].rpartition("/")[0]
        return self._home / fixed if fixed.strip("./") or fixed.startswith("/") else None

    def link(self, period: Period) -> str:
        """The directory of a period, from there."""
        return str(self._place(period).relative_to(self.root or self._home))

    @property
    def formats(self) -> list[str]:
        """The endings of the tables."""
        return sorted(suffix[1:] for suffix in self._suffixes)

    def _place(self, period: Period) -> Path:
        text = period.filled(self._pattern)
        if text == self._pattern:
            raise SourceError(f"{self.name}: write {{date}} into it; every period is a directory of its own.")
        return self._home / text

    def _chosen(self, edition: Edition) -> dict[str, bytes]:
        """The evidence, and the tables in the formats that are asked for."""
        tables = {f"{name}{suffix}": suffix for name in edition.tables for suffix in TABLES.values()}
        return {
            name: content
            for name, content in edition.files.items()
            if name not in tables or tables[name] in self._suffixes
        }
