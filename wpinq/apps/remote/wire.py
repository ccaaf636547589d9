"""What requests and answers look like: the contract of a server, from which its OpenAPI description is made.

Requests are decoded strictly: what is unknown, of another type, or missing is refused.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

Scalar: TypeAlias = str | int | float | bool | None
"""A value of a record as JSON has it; dates, times and durations are ISO 8601 text, bytes are Base64, and an infinity
is "Infinity" or "-Infinity"."""
Bin: TypeAlias = Scalar | list[Scalar]
Amount: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)] | float | int
"""An amount, read exactly: 0.1, "0.1" or "1/10"."""
Word: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class Request(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The body of a request."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an answer."""


class Range(Request, frozen=True):
    """Whole numbers, both ends included."""

    first: int
    last: int


class Observe(Request, frozen=True):
    """Which bins to observe: a list of them, or a range; and how often `half_width` shall hold, by default 0.95."""

    bins: list[Bin] | None = None
    range: Range | None = None
    level: Amount = 0.95


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
    fits: list[FitTold]
    releases: list[str]


class DataTold(Told, frozen=True):
    """A data set, of which questions may be asked or not."""

    name: str
    columns: list[ColumnTold]
    protects: str
    unit: Unit | None
    questions: bool


class Unit(Told, frozen=True):
    """Whom answers protect, as `wpinq.users` takes it; where there is none it is one record."""

    column: str
    at_most: int | None = None
    per: dict[str, int] = {}
    shared: bool = False
    period: str | None = None
    at: str | None = None
    zone: str | None = None


class FitTold(Told, frozen=True):
    """A degree distribution that fits two measurements."""

    name: str
    data: str
    cdf: str
    sequence: str
    meaning: str


class Fitted(Told, frozen=True):
    """A fitted degree distribution.

    Attributes:
        cdf: How many things occur at least once, twice, and so on.
        low: Where the credible band around each of these begins.
        high: Where it ends.
        sequence: How often things occur, the most frequent first.
        level: How much of the posterior each band holds.
        distinct: How many things there are.
        records: How many records.
    """

    name: str
    cdf: list[int]
    low: list[int]
    high: list[int]
    sequence: list[int]
    level: float
    distinct: int
    records: int


class Measured(Told, frozen=True):
    """Either the price of a measurement, or the measurement, whose bins can be observed by its name."""

    price: Priced | None = None
    measurement: Described | None = None


class Asks(Request, frozen=True, kw_only=True):
    """What every question says.

    Attributes:
        epsilon: What it may cost the privacy unit.
        within: Instead of it, by how much noise may move a count, with probability 0.95.
        dry: Whether it is only priced; without it nothing is charged by mistake.
        name: Tells repetitions apart: the same question with the same name is free, and has the same answer.
    """

    epsilon: Amount | None = None
    within: Amount | None = None
    dry: bool = True
    name: Word | None = None


class Sql(Asks, frozen=True, kw_only=True):
    """A SELECT over data sets, with the groups to show (`keys`), or a delta for publishing them.

    Attributes:
        mechanism: What adds noise to counts, sums, means and spreads.
        rho: What it may cost with Gaussian noise, instead of epsilon.
        at_most: How many records of each person it looks at, up to the curator's bound; that bound without it.
    """

    query: str
    mechanism: Literal["geometric", "laplace", "gaussian", "best"] = "geometric"
    rho: Amount | None = None
    at_most: int | None = None
    delta: Amount | None = None
    keys: list[Bin] | None = None
    bounds: dict[str, tuple[Amount, Amount]] = {}


class Expected(Told, frozen=True):
    """The noise that one column of an answer will have; no half width where it depends on the answer."""

    column: str
    mechanism: str
    scale: float
    half_width: float | None


class Left(Told, frozen=True):
    """What may still be spent of one data set: `left` by all together, `own` by this analyst; the same of delta."""

    data: str
    kind: str
    budget: str
    left: str
    cap: str | None
    own: str | None
    delta: str
    delta_left: str
    delta_cap: str | None
    delta_own: str | None


class Priced(Told, frozen=True):
    """What a question costs; what `dry` quotes is what is charged.

    Attributes:
        cost: What it costs the privacy unit: epsilon or rho, and delta.
        free: Whether it was charged before.
        expected: The noise of its columns, before it is asked.
        level: How often the half widths hold.
        now: What is left now.
        after: What will be left.
        more: How many further questions of this kind the caps and budgets allow after it, 1,000 at most.
        fits: Whether caps and budgets allow it.
        threshold: The noisy count below which groups are left out, where none were named.
    """

    cost: dict[str, str]
    free: bool
    expected: list[Expected]
    level: float
    now: list[Left]
    after: list[Left]
    more: int
    fits: bool = True
    threshold: float | None = None


class Answered(Told, frozen=True):
    """Either the price of a question, or its answer: rows, the ends of their intervals, and what describes them.

    Attributes:
        price: The price.
        columns: The names of its columns.
        types: Their types, which say what a text of a row stands for.
        rows: Its rows.
        intervals: For each cell the ends of its interval; None where it is no noisy number.
        about: What describes it.
    """

    price: Priced | None = None
    columns: list[str] | None = None
    types: list[str] | None = None
    rows: list[list[Any]] | None = None
    intervals: list[list[tuple[float, float] | None]] | None = None
    about: dict[str, Any] | None = None


class Budget(Told, frozen=True):
    """What this analyst may still spend of each data set."""

    analyst: str
    data: list[Left]


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


def exact_text(number: Fraction) -> str:
    """An amount in an answer, exactly: a decimal where there is one, else a fraction.

    >>> exact_text(Fraction(1, 8)), exact_text(Fraction(1, 3))
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
