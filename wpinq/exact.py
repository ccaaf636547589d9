"""Exact numbers: amounts as people write them, read without rounding, and exp, log and powers between integer bounds.

A float is read as the decimal that it prints, so `0.1` is 1/10 and three of them are exactly 3/10; one that prints with
all digits that floats have is a simple fraction that was rounded to it, if there is one: `1 / 11` is 1/11.
Nothing downstream of this room ever sees a float as an amount of epsilon, delta, scale or weight.
"""

from __future__ import annotations

import math
import numbers
from decimal import Context, Decimal
from fractions import Fraction
from typing import TypeAlias

from wpinq.errors import ExactnessError

Amount: TypeAlias = "int | float | str | Decimal | Fraction"
"""What a caller may write where an exact number is wanted."""

LONGEST = 60
"""Characters of the longest number that is printed digit by digit."""

PRECISION = Context(prec=28)
"""Digits that are computed of a number that is shown, whatever a script sets for its own."""

HELD = Fraction(10) ** 300
"""The largest number that is read."""

MOST_DIGITS = 400
"""Digits, before or after the point, of the longest number that is read."""

ALL_DIGITS, SIMPLE = 13, 10**6
"""Digits of a float that is rounded, and the largest denominator of a fraction that is read for one. Of a million
other floats one is nearer than that to some such fraction, by chance."""

USUAL = Fraction(10) ** 100
"""The largest amount, and the inverse of the least: what is computed from amounts for people fits into floats."""


def exact(value: object, call: str) -> Fraction:
    """Read a number exactly.

    Args:
        value: An integer, a Fraction, a Decimal, a float (the decimal that it prints, or the fraction) or a string
            such as `"1/3"` or `"0.1"`. Booleans are refused.
        call: The call and argument, for the message: `"measure(epsilon=...)"`.

    Raises:
        ExactnessError: It is not a finite number.

    >>> exact(1 / 11, "budget"), exact(0.1 + 0.2, "budget")
    (Fraction(1, 11), Fraction(7500000000000001, 25000000000000000))
    >>> exact(0.1, "budget") + exact("0.2", "budget") == exact(0.3, "budget")
    True
    """
    if isinstance(value, bool) or not isinstance(value, (numbers.Number, str)):
        raise ExactnessError(f"{call}: {type(value).__name__} is not a number; write it as 0.1 or '1/10'.")
    try:
        if isinstance(value, numbers.Rational):
            return _held(Fraction(int(value.numerator), int(value.denominator)))
        if isinstance(value, (str, Decimal)):
            return _held(_written(str(value)))
        number = float(value)  # type: ignore[arg-type]
        if math.isfinite(number):
            return _held(_printed(number))
    except (ValueError, TypeError, ArithmeticError):
        pass
    result = type(value).__name__ if isinstance(value, int) else repr(str(value)[:LONGEST])
    usual = f"not a finite number of at most {MOST_DIGITS} digits, and of a size that floats have"
    raise ExactnessError(f"{call}: {result} is {usual}; write it as 0.1 or '1/10'.")


def _printed(number: float) -> Fraction:
    """The decimal that a float prints, or where it prints as many digits as floats have, the fraction it stands for.

    What is read is what is charged and what noise is made of, so either is right; of `1 / 11` only the fraction is
    what was meant, and eleven of it make 1.
    """
    text = repr(number)
    if sum(map(str.isdigit, text.partition("e")[0].lstrip("-0."))) >= ALL_DIGITS:
        simple = Fraction(number).limit_denominator(SIMPLE)
        if simple and float(simple) == number:
            return simple
    return Fraction(text)


def _written(text: str) -> Fraction:
    """Read a decimal or a fraction; one beyond what floats can be is refused, for its digits would fill the memory."""
    if len(text) > MOST_DIGITS or ("/" not in text and abs(Decimal(text).adjusted()) > MOST_DIGITS):
        raise ValueError
    return Fraction(text)


def _held(number: Fraction) -> Fraction:
    """Refuse what floats do not hold: answers are shown as such."""
    if abs(number) > HELD:
        raise ValueError
    return number


def positive(value: object, call: str) -> Fraction:
    """Read a number exactly and insist that it is above zero, and such that floats hold it and its inverse.

    Raises:
        ExactnessError: It is not a finite number above zero, or not between 1e-100 and 1e100.
    """
    number = exact(value, call)
    if number <= 0:
        raise ExactnessError(f"{call}: {decimal(number)} is not above zero; give a positive number.")
    if not 1 / USUAL <= number <= USUAL:
        raise ExactnessError(f"{call}: {decimal(number)} is not between 1e-100 and 1e100.")
    return number


def decimal(number: Fraction, digits: int = 6) -> str:
    """Print a fraction for people: exactly as a decimal or a fraction where that is short, else nearly.

    >>> decimal(Fraction(1, 10)), decimal(Fraction(1, 3)), decimal(Fraction(20))
    ('0.1', '1/3', '20')
    >>> decimal(Fraction(16787, 30000))
    '0.559567'
    >>> decimal(Fraction(10) ** 400), decimal(Fraction(2, 3) / 10**400)
    ('1.00000e+400', '6.66667e-401')
    """
    denominator = number.denominator
    while denominator % 10 == 0:
        denominator //= 10
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    rounded = PRECISION.divide(Decimal(number.numerator), Decimal(number.denominator))
    text = f"{rounded:f}"
    long = number.denominator.bit_length() > 64 or len(text) > LONGEST
    if denominator != 1 and not long and len(str(number)) <= digits + 1:
        return str(number)
    if denominator != 1 or long:
        return f"{rounded:.{digits}g}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Bound 2^bits * exp(-x) from below and above by integers, for x >= 0.

    The argument is halved until it is at most 1/2, where the terms of the alternating series decrease,
    so that the next term bounds the remainder; then the result is squared as often. Every division
    and shift is rounded down in the lower bound and up in the upper one.

    >>> exp_bounds(Fraction(0), 8), exp_bounds(Fraction(1), 4)[0] <= 16 * 0.3679 <= exp_bounds(Fraction(1), 4)[1]
    ((256, 256), True)
    """
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)
    numerator, denominator = x.numerator, x.denominator << halvings
    low = high = term_low = term_high = 1 << bits
    index = 0
    while term_high > 1:
        index += 1
        term_low = term_low * numerator // (denominator * index)
        term_high = -(-term_high * numerator // (denominator * index))
        if index % 2:
            low, high = low - term_high, high - term_low
        else:
            low, high = low + term_low, high + term_high
        if not term_high:
            break
    low, high = max(0, low - term_high), min(1 << bits, high + term_high)
    for _ in range(halvings):
        low, high = low * low >> bits, -(-high * high >> bits)
    return low, high


def log_bounds(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Bound 2^bits * log(numerator / denominator) from below and above by integers, for two that are above zero.

    A power of two is taken out, so that a ratio y between 1/2 and 2 is left, and log y = 2 artanh((y - 1) / (y + 1)).
    Each term of that series is at most 1/9 of the one before, so all that follow the last come to less than it.

    >>> low, high = log_bounds(2, 1, 20)
    >>> low <= 2**20 * 0.693147 <= high, high - low < 30
    (True, True)
    """
    halvings = numerator.bit_length() - denominator.bit_length()
    low, high = _log_near(numerator << max(-halvings, 0), denominator << max(halvings, 0), bits)
    if halvings:
        steps = [halvings * bound for bound in _log_near(2, 1, bits)]
        low, high = low + min(steps), high + max(steps)
    return low, high


def _log_near(over: int, under: int, bits: int) -> tuple[int, int]:
    """The same for a ratio from 1/2 to 2."""
    sign, over, under = (1 if over >= under else -1), abs(over - under), over + under
    ratio_low, ratio_high = (over << bits) // under, -((-over << bits) // under)
    term_low, term_high, low, high, index = ratio_low, ratio_high, ratio_low, ratio_high, 1
    while term_high > 1:
        index += 2
        term_low = term_low * ratio_low * ratio_low >> 2 * bits
        term_high = -(-term_high * ratio_high * ratio_high >> 2 * bits)
        low, high = low + term_low // index, high - (-term_high // index)
    low, high = 2 * low, 2 * (high + 1)
    return (low, high) if sign > 0 else (-high, -low)


def power(base: int, exponent: int, bits: int, *, up: bool) -> int:
    """Give (base / 2^bits)^exponent in units of 2^-bits, rounded down or up throughout."""
    result = 1 << bits
    while exponent:
        if exponent & 1:
            result = -(-result * base >> bits) if up else result * base >> bits
        base = -(-base * base >> bits) if up else base * base >> bits
        exponent >>= 1
    return result


def short(number: Fraction, most: int = 8) -> str:
    """A number exactly, or in six digits where that would be long."""
    text = decimal(number)
    return text if len(text) <= most or number.denominator == 1 else f"{float(number):.6g}"


def four_digits(number: float) -> str:
    """Four digits, written out."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"
