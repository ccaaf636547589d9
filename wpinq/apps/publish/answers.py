"""The answer to a question of a release: tables of noisy numbers, and what describes, draws and names them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

LOSS = "_loss"
"""Ends the name of a table that says how much was left out."""
Ends: TypeAlias = "dict[str, tuple[pl.Series, pl.Series]]"


@dataclass(frozen=True)
class Answered:
    """The answer to one question.

    Attributes:
        tables: Cells and the ends of their intervals, by the name of the table.
        abouts: What describes each table.
        draw: Draws each table that can be drawn into a file.
        keys: The columns that name the rows of each table; of one that is not there, `naming` says it.
    """

    tables: Mapping[str, tuple[pl.DataFrame, Ends]]
    abouts: Mapping[str, dict[str, Any]]
    draw: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def named(self, table: str) -> list[str]:
        """The columns that name the rows of a table."""
        cells, ends = self.tables[table]
        return list(self.keys[table] if table in self.keys else naming(cells.schema, ends))


def naming(schema: Mapping[str, pl.DataType], ends: Iterable[str]) -> list[str]:
    """The columns of a table that name its rows, where all others are numbers with intervals, or fractions.

    >>> naming({"page": pl.String(), "views": pl.Int64(), "share": pl.Float64()}, ["views"])
    ['page']
    """
    return [name for name, kind in schema.items() if name not in set(ends) and not kind.is_float()]
