"""Amounts: read exactly, refused where they are none or would fill the memory, and shown shortly."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wpinq.errors import ExactnessError
from wpinq.exact import decimal, exact


@given(st.fractions())
def test_every_short_number_survives_its_text(number):
    assert exact(str(number), "call") == number
    assert exact(decimal(number), "call") == pytest.approx(number, rel=1e-5)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_what_it_prints_or_a_simple_fraction_up_to_a_size(number):
    if abs(number) > 1e300:
        with pytest.raises(ExactnessError, match="of a size that floats have"):
            exact(number, "call")
    else:
        found = exact(number, "call")
        assert float(found) == number
        assert found == Fraction(repr(number)) or found.denominator <= 10**6


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_a_float_that_is_a_rounded_simple_fraction_is_that_fraction(above, below):
    assert exact(above / below, "call") == Fraction(above, below)
    assert sum([exact(1 / below, "call")] * below) == 1


def test_what_was_computed_and_is_no_simple_fraction_is_the_decimal_that_it_prints():
    assert exact(0.1 + 0.2, "call") == Fraction("0.30000000000000004")
    assert exact(0.333333, "call") == Fraction(333333, 10**6)


@pytest.mark.parametrize(
    "what",
    ["nan", "inf", "x", "1/0", "", "1e99999999", "-1e-99999999", "9" * 500, Decimal("1e-9999999"), Decimal("NaN")],
)
def test_what_is_no_number_or_has_too_many_digits_is_refused_at_once(what):
    with pytest.raises(ExactnessError, match="not a finite number of at most 400 digits") as told:
        exact(what, "call")
    assert len(str(told.value)) < 200


def test_what_is_shown_does_not_depend_on_a_script_s_precision():
    with localcontext(prec=90):
        assert [decimal(Fraction(1, n)) for n in (3, 7, 10, 10**9 + 7)] == ["1/3", "1/7", "0.1", "1.00000e-9"]
    with localcontext(prec=2):
        assert decimal(Fraction(12345, 10000)) == "1.2345"


def test_long_numbers_are_shown_shortly():
    for number in (
        Fraction(10) ** 400,
        Fraction(10**5000),
        Fraction(1, 10**400),
        Fraction(10**5000, 3),
        Fraction(10**5000, 3**9999),
    ):
        assert len(decimal(number)) < 30
