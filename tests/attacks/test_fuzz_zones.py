"""Periods on the clocks of zones, from fixed seeds; `python -m attacks.fuzz.zones` draws random ones."""

import pytest
from attacks.fuzz import zones
from attacks.fuzz.search import hunt
from depth import often


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_people_in_periods_of_any_zone_lose_what_they_are_charged(first):
    for seed in range(first, first + often(10)):
        found = zones.check(seed)
        assert not found, f"python -m attacks.fuzz.zones --case {seed}\n" + "\n".join(found)


@pytest.mark.parametrize("name", sorted(zones.PLANTS))
def test_a_planted_bug_about_periods_is_found(name):
    seed, text, _ = hunt(zones.PLANTS[name], zones.check)
    assert seed >= 0, text
