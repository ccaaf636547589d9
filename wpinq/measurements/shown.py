"""How released numbers are shown: the digits that noise leaves, and sentences that speak of noise as noise only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from wpinq.exact import decimal

KEPT = 2
"""Significant digits of the half width of an interval that are shown; of the answer inside it no further ones."""


def rounded(value: Any, half: float) -> Any:
    """An answer with no more digits than noise leaves: to the place of the second digit of its half width.

    >>> rounded(5573.540679853485, 23.0262), rounded(36500, 0), rounded(0.12347, 0.0034), rounded(48123, 1234.5)
    (5574, 36500, 0.1235, 48100)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return value
    if not 0 < half < math.inf:
        return value
    place = KEPT - 1 - math.floor(math.log10(half))
    result = round(value, place)
    return int(result) if place <= 0 else result


def upwards(half: float) -> str:
    """The half width of an interval in two digits, and never less than it is.

    >>> upwards(23.0262), upwards(1234.5), upwards(0.0), upwards(60)
    ('24', '1,300', '0', '60')
    """
    if not 0 < half < math.inf:
        return f"{half:,g}"
    place = KEPT - 1 - math.floor(math.log10(half))
    result = math.ceil(round(half * 10**place, 6)) / 10**place
    return f"{result:,.{max(place, 0)}f}".rstrip("0").rstrip(".") if place > 0 else f"{round(result):,}"


def nearly(amount: Fraction) -> str:
    """An amount for people: exactly where that is short, else in six digits.

    >>> nearly(Fraction(10)), nearly(Fraction(25000, 1483)), nearly(Fraction(655370, 65536)), nearly(Fraction(1, 3))
    ('10', '16.8577', '10.0002', '1/3')
    """
    text = decimal(amount)
    return text if amount.denominator == 1 or len(text) <= 6 else f"{float(amount):.6g}"


def of_noise(half: float, level: Fraction, what: str = "it") -> str:
    """What an interval says: it speaks of noise alone.

    >>> of_noise(60, Fraction(95, 100))
    'noise moves it by at most 60 with probability 95%'
    """
    return f"noise moves {what} by at most {upwards(half)} with probability {decimal(level * 100)}%"


def beside_noise(clauses: Iterable[str]) -> str:
    """What else answers differ by, as sentences; empty where they differ by nothing else.

    >>> beside_noise(["records beyond 20 of one user are not in it"])
    'Beside noise: records beyond 20 of one user are not in it.'
    """
    text = "; ".join(clauses)
    return f"Beside noise: {text}." if text else ""
