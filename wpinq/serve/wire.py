"""What requests and answers look like: the contract, from which the OpenAPI description is made.

Requests are decoded strictly: what is unknown, of another type, or missing is refused.
"""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

import msgspec

from wpinq.exact import exact

Scalar: TypeAlias = str | int | float | bool | None
"""A value of a record as JSON has it; dates, times and durations are ISO 8601 text, bytes are Base64."""
Bin: TypeAlias = Scalar | list[Scalar]
Amount: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)] | float | int
"""An amount, read exactly: 0.1, "0.1" or "1/10"."""


class Request(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The body of a request."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an answer."""


class Range(Request, frozen=True):
    """Whole numbers, both ends included."""

    first: int
    last: int


class Observe(Request, frozen=True):
    """Which bins to observe: a list of them, or a range."""

    bins: list[Bin] | None = None
    range: Range | None = None


class Observed(Told, frozen=True):
    """Noisy weights, in the order of the bins; each is within `half_width` of the truth with probability `level`."""

    values: list[float | int]
    half_width: float
    level: float


class ColumnTold(Told, frozen=True):
    """A column of what is measured."""

    name: str
    type: str


class Described(Told, frozen=True):
    """A measurement."""

    name: str
    data: str
    meaning: str
    columns: list[ColumnTold]
    mechanism: str
    scale: float
    half_width: float
    level: float
    cost: dict[str, str]
    protects: str
    beside_noise: list[str]


class Listed(Told, frozen=True):
    """What there is for this token."""

    measurements: list[Described]
    data: list[DataTold]
    fits: list[str]
    releases: list[str]


class DataTold(Told, frozen=True):
    """A data set, of which questions may be asked or not."""

    name: str
    columns: list[ColumnTold]
    protects: str
    questions: bool


class Problem(Told, frozen=True):
    """Why a request was refused.

    Attributes:
        status: The status code.
        code: A word for programs.
        message: A sentence for people.
    """

    status: int
    code: str
    message: str


class Refused(Told, frozen=True):
    """The one shape of every refusal."""

    error: Problem


def amount(given: Amount, call: str) -> Fraction:
    """An amount of a request, exactly.

    Raises:
        ExactnessError: It is none.
    """
    return exact(given, call)


def told(number: Fraction) -> str:
    """An amount in an answer, exactly: a decimal where there is one, else a fraction.

    >>> told(Fraction(1, 8)), told(Fraction(1, 3))
    ('0.125', '1/3')
    """
    rest, digits = number.denominator, 0
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest, count = rest // prime, count + 1
        digits = max(digits, count)
    if rest != 1 or digits > 30:
        return f"{number.numerator}/{number.denominator}"
    whole = f"{abs(number.numerator) * 10**digits // number.denominator:0{digits + 1}d}"
    sign, point = "-" * (number < 0), len(whole) - digits
    return f"{sign}{whole[:point]}.{whole[point:]}" if digits else f"{sign}{whole}"


def plain(value: Any) -> Any:
    """A value of a record as JSON has it."""
    if isinstance(value, (dt.timedelta, dt.date, bytes)):
        return msgspec.to_builtins(value)
    return [plain(one) for one in value] if isinstance(value, (tuple, list)) else value
