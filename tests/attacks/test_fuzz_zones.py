"""Periods on the clocks of zones, from fixed seeds; `python -m attacks.fuzz --of zones` draws random ones."""

import pytest
from attacks.fuzz import zones
from depth import deeper, often, thin


@deeper
@thin(3)
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_people_in_periods_of_any_zone_lose_what_they_are_charged(first):
    for seed in range(first, first + often(10)):
        assert not zones.FUZZER.wrong(seed)
