"""What all aggregates take beside their column and epsilon; see `count` and `sum` for what it means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from wpinq.exact import Amount

Bounds: TypeAlias = "tuple[Amount, Amount]"
"""The least and the largest number, which do not depend on the data."""

LEVEL = Fraction(95, 100)
"""How often an interval holds where nothing is said."""


@dataclass(frozen=True)
class Options:
    """How an aggregate was asked.

    Attributes:
        by: The columns that make groups.
        keys: The groups to answer.
        name: Tells repetitions apart.
        analyst: Who is charged.
        step: To whose multiples numbers are rounded; None where the bounds tell.
        confidence: How often the interval of a rank holds, or what was asked for by `within`.
        within: How near to the truth noise shall leave an answer, instead of epsilon.
    """

    by: str | Sequence[str] | None = None
    keys: Any = None
    name: str | None = None
    analyst: str | None = None
    step: Amount | None = None
    confidence: Amount = LEVEL
    within: Amount | None = None
