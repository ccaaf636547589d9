"""Random programs with and without one privacy unit, from fixed seeds; `python -m attacks.fuzz` draws random ones.

Nothing here is statistical: true histograms are compared, before noise, so no run is red by chance.
"""

import pytest
from attacks.fuzz.cases import FUZZER
from depth import deeper, often, thin

EACH = 5
"""Cases of a theme, beside those that plants name."""


@deeper
@thin(3)
@pytest.mark.parametrize("theme", sorted(FUZZER.themes))
def test_no_unit_matters_more_than_it_is_charged(theme):
    for seed in range(often(EACH, 2)):
        assert not FUZZER.wrong(seed, theme)


@deeper
@thin(3)
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_nor_in_programs_of_any_steps(first):
    for seed in range(first, first + often(10)):
        assert not FUZZER.wrong(seed)


@deeper
def test_a_step_that_a_dither_alone_makes_is_no_loss():
    assert not FUZZER.wrong(825003026)  # its selection reads nothing of the unit; the dithers of two runs differ


@deeper
def test_records_with_nan_and_with_null_are_one_persons():
    assert not FUZZER.wrong(910001855)
