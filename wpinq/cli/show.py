"""What commands print about measurements: released numbers, public names and costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wpinq.cli.errors import printable
from wpinq.exact import decimal

if TYPE_CHECKING:
    from wpinq.ledger import Ledger
    from wpinq.measurements.measurement import Measurement


def installed() -> str:
    """The version of wpinq that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("wpinq")
    except PackageNotFoundError:
        return "not installed"


def written(one: Any) -> str:
    """A bin as `parse_bins` reads it, without what would move a terminal's cursor.

    >>> written(("ann", 3)), written("Page 1")
    ('ann:3', 'Page 1')
    """
    return printable(":".join(map(str, one if isinstance(one, tuple) else (one,))))


def measurement_table(measurements: Mapping[str, Measurement]) -> str:
    """One line for each measurement: its name, columns, cost and noise."""
    rows = [("measurement", "bins", "epsilon", "noise scale")]
    for name, one in measurements.items():
        rows.append((name, str(one.node.schema), decimal(one.epsilon), decimal(one.scale)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def budget_line(ledger: Ledger) -> str:
    """What is left of a budget."""
    return f"Epsilon {decimal(ledger.remaining())} of {decimal(ledger.budget)} is left for {ledger.name}."
