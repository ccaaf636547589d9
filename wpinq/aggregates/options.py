"""What all aggregates take beside their column and epsilon; see `count` and `sum` for what it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypedDict

from wpinq.exact import Amount

Bounds: TypeAlias = "tuple[Amount, Amount]"
"""The least and the largest number, which do not depend on the data."""


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
