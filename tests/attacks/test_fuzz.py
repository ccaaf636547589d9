"""Random programs with and without one privacy unit, from fixed seeds; `python -m attacks.fuzz` draws random ones.

Nothing here is statistical: true histograms are compared, before noise, so no run is red by chance.
"""

import pytest
from attacks.fuzz import plants
from attacks.fuzz.grow import grow
from attacks.fuzz.judge import WAYS, judge
from attacks.fuzz.themes import THEMES
from depth import DEEP, often

EACH = 5 if DEEP else 2
"""Cases of a theme, beside those that plants name."""


def check(seed, theme=""):
    found = judge(grow(seed, theme), WAYS[seed % 4])
    assert not found, f"python -m attacks.fuzz --case {seed} --theme {theme}\n" + "\n".join(found)


@pytest.mark.parametrize("theme", sorted(THEMES))
def test_no_unit_matters_more_than_it_is_charged(theme):
    for seed in range(EACH):
        check(seed, theme)


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_nor_in_programs_of_any_steps(first):
    for seed in range(first, first + often(10)):
        check(seed)


@pytest.mark.parametrize("name", sorted(plants.PLANTS))
def test_a_bug_that_was_there_is_found_when_it_is_back(name):
    seed, text, _ = plants.hunt(name, most=100)
    assert seed >= 0, text
