"""Checks before release: whether released numbers break with those of earlier periods. They cost nothing.

They look at released numbers only, so holding a period back is post-processing. A data set that lost a country by a
misspelt name, or a day of which half arrived, shows here; noise and ordinary change do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import polars as pl

from wpinq.apps.publish.answers import naming
from wpinq.apps.publish.file.declared import Checks
from wpinq.html.numbers import rounded

PAST = 8
"""Earlier periods that are looked at."""
LEAST = 3
"""Without as many of them, nothing is said."""
SURE = 6
"""Noise moves a total by more than so many of its standard deviations once in 10^8."""
CLEAR = 6
"""A key counted clearly if it was beyond so many half widths of its interval."""
SHOWN = 5


@dataclass(frozen=True)
class Column:
    """One noisy column of an answer.

    Attributes:
        table: The table that it is in.
        name: Its name.
        keys: What names each row, as text.
        values: Its numbers.
        half: Half the width of the interval of one of them, of probability 95%.
    """

    table: str
    name: str
    keys: Sequence[str]
    values: Sequence[float]
    half: float

    @property
    def total(self) -> float:
        """The sum."""
        return float(sum(self.values))

    @property
    def spread(self) -> float:
        """The standard deviation of the noise in the sum: a half width is at least 1.96 of them."""
        return self.half / 1.96 * math.sqrt(len(self.values))


def columns(
    tables: Mapping[str, tuple[pl.DataFrame, dict[str, tuple[pl.Series, pl.Series]]]], named: Mapping[str, list[str]]
) -> Iterator[Column]:
    """The noisy columns of answers.

    Args:
        tables: Cells and the ends of their intervals, by the name of the table.
        named: The columns that name the rows of each table, where that is known.
    """
    for table, (cells, ends) in tables.items():
        names = named[table] if table in named else naming(cells.schema, ends)
        keys = [", ".join(map(str, row)) for row in cells.select(names).iter_rows()] if names else [""] * cells.height
        for name, (low, high) in ends.items():
            width = (high - low).max()
            half = float(width) / 2 if isinstance(width, (int, float)) else 0.0
            yield Column(table, name, keys, [float(value or 0) for value in cells[name]], half)


def doubts(now: Sequence[Column], past: Sequence[Sequence[Column]], checks: Checks) -> list[str]:
    """What should be looked at before a period is published.

    Args:
        now: The columns of the period.
        past: Those of earlier periods, the latest last.
        checks: What is looked at.
    """
    broken = []
    for column in now:
        periods = past[-PAST:]
        before = [
            each for period in periods for each in period if (each.table, each.name) == (column.table, column.name)
        ]
        if len(before) < LEAST:
            continue
        if checks.totals is not False:
            broken += _broken(column, before, float(checks.totals))
        if checks.keys:
            broken += _vanished(column, before)
    return broken


def _broken(now: Column, past: Sequence[Column], share: float) -> list[str]:
    usual = median(earlier.total for earlier in past)
    noise = SURE * math.hypot(now.spread, max(earlier.spread for earlier in past))
    if abs(now.total - usual) <= share * abs(usual) + noise:
        return []
    shown = [f"{rounded(number, noise):,}" for number in (now.total, usual)]
    return [f"{now.table}: {now.name} sums to about {shown[0]}, and usually to {shown[1]}"]


def _vanished(now: Column, past: Sequence[Column]) -> list[str]:
    here = dict(zip(now.keys, now.values, strict=True))
    series: dict[str, list[float]] = {}
    for column in past:
        for key, value in zip(column.keys, column.values, strict=True):
            series.setdefault(key, []).append(value)
    half = max(now.half, *(earlier.half for earlier in past))
    lost = []
    for key, values in series.items():
        usual = median([*values, *[0.0] * (len(past) - len(values))])
        if usual > CLEAR * half and here.get(key, 0.0) < min(usual / 10, 2 * half):
            lost.append(f"{key} (usually {rounded(usual, half):,})")
    if not lost:
        return []
    more = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
    return [f"{now.table}: {now.name} has almost nothing of {', '.join(lost[:SHOWN])}{more}"]
