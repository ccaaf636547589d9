"""Where records of a release file lie: its paths, tables and queries, filled with what a period is called."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from wpinq.apps.publish.file.declared import Records
from wpinq.apps.publish.file.periods import Period
from wpinq.core import Reader
from wpinq.errors import PlanError
from wpinq.sources import open_source

DATABASE = re.compile(r"(sqlite|duckdb):")
URL = re.compile(r"[a-z]+://")


def source_of(records: Records, home: Path, period: Period) -> Any:
    """What `protect` opens.

    Args:
        records: What the release file says of them.
        home: The directory that relative paths start from.
        period: The period.

    Raises:
        PlanError: It takes no query.
    """
    text = period.filled(records.source)
    query = records.query and period.filled(records.query)
    if text.startswith(("postgresql://", "postgres://")):
        from wpinq.sources.databases.postgres import postgres

        return postgres(text, query=query) if query else text
    found = DATABASE.match(text)
    if found:
        place, mark, rest = text[found.end() :].partition("?")
        if query and found[1] == "sqlite":
            from wpinq.sources.databases.sqlite import sqlite

            return sqlite(home / place, query=query)
        text = f"{found[0]}{home / place}{mark}{rest}"
    if query:
        raise PlanError("data.query: only sources postgresql:// and sqlite: take one.")
    return text if found or URL.match(text) else str(home / text)


def told_of(records: Records) -> dict[str, Any]:
    """How they are read: words of `protect`."""
    return {"columns": records.columns, **records.form()}


def reader_of(records: Records, home: Path, period: Period) -> Reader:
    """What reads them.

    Raises:
        SourceError, PlanError: They are not there, or cannot be read so.
    """
    return open_source(source_of(records, home, period), **told_of(records))
