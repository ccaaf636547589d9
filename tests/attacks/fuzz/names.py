"""What the lines of a program may name, beside its tables."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import polars as pl


class Thing:
    """Something whose methods no fingerprint covers."""

    def same(self, value: object) -> object:
        return value


def first(group: object) -> object:
    return group[0][0]  # type: ignore[index]


NAMES = {
    "dt": dt, "math": math, "nan": math.nan, "inf": math.inf, "Decimal": Decimal, "Fraction": Fraction, "pl": pl,
    "thing": Thing(), "first": first,
}  # fmt: skip
