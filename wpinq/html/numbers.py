"""How released numbers are shown: the digits that noise leaves, and sentences that speak of noise as noise only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from wpinq.exact import decimal, short

if TYPE_CHECKING:
    import polars as pl

KEPT = 2
"""Significant digits of the half width of an interval that are shown; of the answer inside it no further ones."""


ASKEW = 1.1
"""From how much more than half an interval on, as its further end, both of its ends are shown."""


def rounded(value: Any, half: float) -> Any:
    """An answer with no more digits than noise leaves: to the place of the second digit of its half width.

    >>> rounded(5573.540679853485, 23.0262), rounded(36500, 0), rounded(0.12347, 0.0034), rounded(48123, 1234.5)
    (5574, 36500, 0.1235, 48100)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return value
    if not 0 < half < math.inf:
        return value
    digits = KEPT - 1 - math.floor(math.log10(half))
    result = round(value, digits)
    return int(result) if digits <= 0 else result


def upwards(half: float) -> str:
    """The half width of an interval in two digits, and never less than it is.

    >>> upwards(23.0262), upwards(1234.5), upwards(0.0), upwards(60)
    ('24', '1,300', '0', '60')
    """
    if not 0 < half < math.inf:
        return f"{half:,g}"
    digits = KEPT - 1 - math.floor(math.log10(half))
    result = math.ceil(round(half * 10**digits, 6)) / 10**digits
    return f"{result:,.{max(digits, 0)}f}".rstrip("0").rstrip(".") if digits > 0 else f"{round(result):,}"


def nearly(amount: Fraction) -> str:
    """An amount for people: exactly where that is short, else in six digits.

    >>> nearly(Fraction(10)), nearly(Fraction(25000, 1483)), nearly(Fraction(655370, 65536)), nearly(Fraction(1, 3))
    ('10', '16.8577', '10.0002', '1/3')
    """
    return short(amount, 6)


def of_noise(half: float, level: Fraction, what: str = "it") -> str:
    """What an interval says: it speaks of noise alone.

    >>> of_noise(60, Fraction(95, 100))
    'noise moves it by at most 60 with probability 95%'
    """
    return f"noise moves {what} by at most {upwards(half)} with probability {decimal(level * 100)}%"


LARGE = 1_000_000
"""A number that six digits do not write to the whole."""


def six(value: float) -> str:
    """A number to six digits, or to the whole where it is a large one.

    >>> [six(value) for value in (12345.0, 0.51234567, 3270443.05)]
    ['12,345', '0.512346', '3,270,443']
    """
    return f"{value:,.0f}" if abs(value) >= LARGE else f"{value:,.6g}"


FEW = 1_000
"""A threshold from which on it is said that few groups pass."""


def of_threshold(least: float, what: str = "groups") -> str:
    """What publishing unnamed groups leaves out, which follows from the price alone, and a warning where that is much.

    >>> of_threshold(324)
    'groups whose noisy count is below 324 are left out'
    >>> of_threshold(1614)
    'groups whose noisy count is below 1,614 are left out: few pass that; more epsilon or a lower at_most lowers it'
    """
    text = f"{what} whose noisy count is below {six(least)} are left out"
    return text if least < FEW else f"{text}: few pass that; more epsilon or a lower at_most lowers it"


def beside_noise(clauses: Iterable[str]) -> str:
    """What else answers differ by, as sentences; empty where they differ by nothing else.

    >>> beside_noise(["records beyond 20 of one user are not in it"])
    'Beside noise: records beyond 20 of one user are not in it.'
    """
    text = "; ".join(clauses)
    return f"Beside noise: {text}." if text else ""


ROWS, MANY = 10, 30
"""Rows that are shown of a table, in a terminal and in a notebook."""


def heading(about: Mapping[str, Any]) -> str:
    """What was asked of whom, and what it cost."""
    return f"{_plain(about['query'])} {whose(about)}" if about["data set"] else _plain(about["query"])


def whose(about: Mapping[str, Any]) -> str:
    """Of which data an answer is, what it cost, and whom it protects."""
    cost = about["cost"]
    delta = f", delta {cost['delta']:g}" if cost["delta"] else ""
    spent = [f"{name} {cost[name]:g}" for name in ("epsilon", "rho") if cost.get(name)] or ["epsilon 0"]
    return f"of {_state(about)}, {' and '.join(spent)}{delta}, protects {about['protects']}"


def _state(about: Mapping[str, Any]) -> str:
    """The data set, and its version where that has a name of its own; of several data sets their names alone.

    >>> _state({"data set": "views", "version": "2026"}), _state({"data set": "views, people", "version": "a, b"})
    ('views in version 2026', 'views, people')
    """
    name, version = about["data set"], about.get("version", "")
    unnamed = version in ("", name, "records") or version.startswith("live ") or ", " in version
    return _plain(name) if unnamed else f"{_plain(name)} in version {_plain(version)}"


def footnotes(about: Mapping[str, Any]) -> list[str]:
    """What must be known beside the numbers."""
    noise = f"Intervals are of noise alone, with probability {about['level']:.6g} each."
    noise = noise if about["intervals are of"] else ""
    sentences = [noise, beside_noise(about["beside noise"])]
    if about["threshold"] is not None:
        why = "whoever is alone does not show"
        sentences.append(f"What has a noisy weight below {about['threshold']:g} is left out: {why}.")
    return [sentence for sentence in sentences if sentence]


def texts(cells: pl.DataFrame, ends: Mapping[str, tuple[pl.Series, pl.Series]], most: int) -> list[list[str]]:
    """The names of the columns and the first rows, numbers with what noise leaves of them and their intervals."""
    columns = []
    for column in cells.head(most).get_columns():
        low, high = ends.get(column.name, (None, None))
        if low is None or high is None:
            columns.append([_plain(column.name), *map(_exact, column)])
            continue
        columns.append([_plain(column.name), *(within(*row) for row in zip(column, low, high, strict=False))])
    return [list(row) for row in zip(*columns, strict=True)]


def framed(cells: pl.DataFrame, ends: Mapping[str, tuple[pl.Series, pl.Series]]) -> pl.DataFrame:
    """A table with the ends of each interval beside its number: `low` and `high` (`c_low`, of several)."""
    columns: list[pl.Series] = []
    taken = set(cells.columns)
    for column in cells.get_columns():
        columns.append(column)
        for word, end in zip(("low", "high"), ends.get(column.name, ()), strict=False):
            name = word if len(ends) == 1 else f"{column.name}_{word}"
            while name in taken:
                name += "_"
            taken.add(name)
            columns.append(end.alias(name))
    return cells.select(columns)


def lines(cells: pl.DataFrame, ends: Mapping[str, tuple[pl.Series, pl.Series]]) -> list[str]:
    """The first rows as lines of text."""
    rows = texts(cells, ends, ROWS)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows_of_text = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return rows_of_text + ([f"... {cells.height - ROWS:,} more rows"] if cells.height > ROWS else [])


def html(
    about: Mapping[str, Any], cells: pl.DataFrame | None = None,
    ends: Mapping[str, tuple[pl.Series, pl.Series]] | None = None,
) -> str:  # fmt: skip
    """A table for a notebook; without rows where there is no answer yet."""
    from wpinq.html import parts

    table = []
    if cells is not None and ends is not None:
        head, *rows = texts(cells, ends, MANY)
        table = [parts.table(head, rows)]
        table += [parts.text(f"... {cells.height - MANY:,} more rows")] if cells.height > MANY else []
    return parts.framed(heading(about), *table, *(parts.text(note) for note in footnotes(about)))


def noisy(value: Any, half: float) -> str:
    """A number with what noise leaves of it.

    >>> noisy(5573.54, 23.03), noisy(None, 1), noisy(0.12, 0.011)
    ('5,574 ± 24', 'NULL', '0.12 ± 0.011')
    """
    if value is None:
        return "NULL"
    return f"{_digits(rounded(value, half))} ± {upwards(half)}"


def within(value: Any, low: float, high: float) -> str:
    """A number with its interval: how far its further end is, or both ends where the number is not about its middle.

    >>> within(12.0, 0.0, 24.0), within(11.24, 10.79, 11.7), within(None, 0.0, 1.0)
    ('12 ± 12', '11.24 ± 0.46', 'NULL')
    >>> within(15.7, 10.0, 34.0), within(17.0, 17.0, 100.0)
    ('16 (10 to 34)', '17 (17 to 100)')
    """
    half = (high - low) / 2
    if value is None or not 0 < half < math.inf:
        return noisy(value, half)
    reach = max(value - low, high - value)
    if reach <= half * ASKEW:
        return noisy(value, reach)
    digits = KEPT - 1 - math.floor(math.log10(half))
    least, most = (
        turn(round(end * 10**digits, 6)) / 10**digits for turn, end in ((math.floor, low), (math.ceil, high))
    )
    return f"{_digits(rounded(value, half))} ({_digits(least)} to {_digits(most)})"


def _digits(number: float) -> str:
    """A number with a comma between thousands."""
    return f"{number:,}" if isinstance(number, int) else f"{number:,.10g}"


def _exact(cell: Any) -> str:
    """A value that has no noise.

    >>> _exact(1 / 3), _exact(20.0), _exact(None), _exact("a")
    ('0.3333333333', '20', 'NULL', 'a')
    """
    if cell is None:
        return "NULL"
    return f"{cell:.10g}" if isinstance(cell, float) else _plain(str(cell))


def _plain(text: str) -> str:
    """Without what would move a terminal's cursor."""
    return text if text.isprintable() else repr(text)[1:-1]
