"""Wikimedia's day on a small site: its noise, its threshold, and its two faults, told before they are published."""

import processes
from depth import deep

from examples.wikimedia_day import COUNTRIES, PAGES


@deep
def test_faults_are_told_and_nothing_below_the_threshold_is_shown(tmp_path):
    """Noise holds back a day that is as it should be, or explains one that is not, below 1e-8."""
    said = processes.printed("-W", "error", "-m", "examples.wikimedia_day", tmp_path / "new", fresh=True)
    assert "its keys lack 'US' in column 'country'" in said
    assert f"standard deviation 18.26 for each of {len(PAGES) * len(COUNTRIES)} keys" in said
    assert said.count(": published\n") == 4
    assert "HeldError: 2026-03-06: held back: views: count has almost nothing of" in said
    assert int(said.partition("the least ")[2].split()[0]) >= 91
    assert "Rho 0.015 of 0.09 is left" in said
