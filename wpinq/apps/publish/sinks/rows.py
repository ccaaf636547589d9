"""What the tables of databases have in common."""

from __future__ import annotations

from hashlib import sha256

import polars as pl

from wpinq.apps.publish.file.periods import Period
from wpinq.apps.publish.sinks.place import Edition
from wpinq.html.written import csv_bytes

DONE = ("wpinq_published", "release TEXT, period TEXT, digest TEXT, PRIMARY KEY (release, period)")
"""The table that holds which periods arrived; written in the same transaction as their rows."""


def named(edition: Edition, table: str) -> str:
    """The name of a question's table."""
    return f"{edition.release}_{table}".replace("-", "_")


def column_of(table: pl.DataFrame) -> str:
    """The column that holds the period."""
    return "release_period" if "period" in table.columns else "period"


def dated(table: pl.DataFrame, period: Period) -> pl.DataFrame:
    """A table with its period in the first column."""
    return table.select(pl.lit(period.name).alias(column_of(table)), pl.all())


def digest_of(edition: Edition) -> str:
    """A digest of what is published in tables."""
    result = sha256()
    for name, table in sorted(edition.tables.items()):
        result.update(name.encode() + b"\0" + sha256(csv_bytes(table)).digest())
    return result.hexdigest()
