"""What all aggregates take beside their column and epsilon; see `count` and `sum` for what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, TypedDict

from wpinq.errors import PlanError
from wpinq.exact import Amount

Bounds: TypeAlias = "tuple[Amount, Amount]"
"""The least and the largest number, which do not depend on the data."""

LEVEL = Fraction(95, 100)
"""How often an interval holds where nothing is said."""


class Where(TypedDict, total=False):
    """Groups, and whose question it is."""

    by: str | Sequence[str] | None
    keys: Any
    name: str | None
    analyst: str | None


class Numbers(Where, total=False):
    """And how numbers are rounded."""

    step: Amount | None


class Ranked(Numbers, total=False):
    """And how often the interval holds."""

    confidence: Amount


def check_options(given: Mapping[str, object], known: frozenset[str], call: str) -> None:
    """Refuse options that there are not, which are most likely misspelled, before anything is charged.

    Raises:
        PlanError: There is one.
    """
    for name in given:
        if name not in known:
            raise PlanError(f"{call}({name}=...): there is no such option; there are {', '.join(sorted(known))}.")
