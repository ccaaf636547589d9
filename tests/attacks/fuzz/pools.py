"""Odd values of every type, and records of few of them: what is odd must meet itself."""

from __future__ import annotations

import datetime as dt
import math
from random import Random

DAY = 86_400_000_000
POOLS: dict[str, list[object]] = {
    "integer": [0, 1, 2, 3, -1, 2**63 - 1, -(2**63), 2**53 + 1],
    "number": [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 0.1, 2.5, float(2**53), 1e300, 5e-324],
    "text": ["", "a", "b", "A", "é", "e\u0301", "\0", "nan", "null", "1", "a,b", "x" * 40],
    "boolean": [True, False],
    "date": [0, 1, 20_000, -1, 2_932_896, 2_932_897, 3_000_000, -719_163, -800_000, 200_000_000],
    "timestamp": [0, 1, 60_000_000, -1, 253_402_300_800_000_000, 9 * 10**18, -(9 * 10**18)],
    "value": [None, "x", 1, 1.0, True, 2.5, math.nan, math.inf, "1", b"n", "n", (1, "x"), (), dt.date(2020, 1, 1)],
    "bytes": [b"", b"n", b"\xff", b"as"],
    "duration": [0, 1, -DAY],
}
"""Dates are days and times are microseconds since 1970: Python cannot hold all of them."""
CALM = {"date": [0, 1, 20_000], "timestamp": [0, 1, 60_000_000]}
NAMES = ["user", "page", "x", "y", "key", "index", "group", "value", "weight", "count"]
ODD_NAMES = ["", "*", "^a$", " ", "\x00", "é", "a b", "index_2", "lambda", "literal"]
EPOCH = dt.datetime(1970, 1, 1)


def some(rng: Random, kind: str, count: int = 3) -> list[object]:
    """Few values of a kind, null among them at times."""
    pool = POOLS[kind] if rng.random() < 0.5 or kind not in CALM else CALM[kind]
    found = rng.sample(pool, min(len(pool), rng.randint(1, count)))
    if kind == "number" and rng.random() < 0.4:
        found = [math.nan, *found[:1]]
    return [*found, None] if rng.random() < 0.3 else found


def python(value: object, kind: str) -> object:
    """What the value is in Python, as a function sees it; null where Python has no such time."""
    if value is None:
        return None
    try:
        if kind == "date":
            return EPOCH.date() + dt.timedelta(days=value)  # type: ignore[arg-type]
        if kind == "timestamp":
            return EPOCH + dt.timedelta(microseconds=value)  # type: ignore[arg-type]
        if kind == "instant":
            return EPOCH.replace(tzinfo=dt.UTC) + dt.timedelta(microseconds=value)  # type: ignore[arg-type]
        if kind == "duration":
            return dt.timedelta(microseconds=value)  # type: ignore[arg-type]
    except OverflowError:
        return None
    return value


def literal(rng: Random, kind: str) -> str:
    """Python for a constant to compare with."""
    value = rng.choice([one for one in POOLS[kind] if python(one, kind) is not None])
    return text(python(value, kind))


def text(value: object) -> str:
    """Python for a value."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return repr(value).replace("datetime.", "dt.")
