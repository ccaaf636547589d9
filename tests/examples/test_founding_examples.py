"""The founding experiments: they run, and what they print is what theory says."""

from __future__ import annotations

import math
import re

import processes
import pytest
from depth import deep

from examples import laplace_or_geometric


def run(module, *arguments):
    return processes.printed("-W", "error", "-m", f"examples.{module}", *arguments, more={"MPLBACKEND": "agg"})


def numbers(text, name):
    (line,) = [one for one in text.splitlines() if one.strip().startswith(name)]
    return [float(one) for one in re.findall(r"-?\d+\.?\d*", line.split(name)[1])]


@deep
def test_pitfalls_are_broken_naively_and_mended(tmp_path):
    """A mended one is proved over 0.5 by its 99% bounds in fewer than 1 of 100 runs each."""
    text = run("pitfalls", tmp_path)
    for name in ("bins from the data", "records for people", "range from the data"):
        naive, mended = numbers(text, name)
        assert naive > 3
        assert mended <= 0.55
    assert numbers(text, "records for people")[1] > 0.1  # the audit does find what little there is
    assert (tmp_path / "pitfalls.png").read_bytes().startswith(b"\x89PNG")


def test_variances_are_those_of_the_distributions():
    for epsilon in (0.1, 1, 3, 6):
        _, geometric = laplace_or_geometric.variances(epsilon)
        ratio = math.exp(-epsilon)
        summed = sum(k * k * (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-2000, 2001))
        assert geometric == pytest.approx(summed, rel=1e-6)


@deep
def test_laplace_or_geometric(tmp_path):
    """Means of 500 runs lie within 5 of their standard errors of the expected L1 error: 1 run in 100,000 does not."""
    text = run("laplace_or_geometric", tmp_path)
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        (row,) = [line for line in text.splitlines() if re.match(rf"\s+{epsilon:g}\s", line)]
        _, _, laplace, spread, geometric, other = (float(one) for one in re.findall(r"\d+\.?\d*", row))
        ratio = math.exp(-epsilon)
        assert abs(laplace - 50 / epsilon) < 5 * spread / math.sqrt(500) + 0.1
        assert abs(geometric - 50 * 2 * ratio / (1 - ratio**2)) < 5 * other / math.sqrt(500) + 0.1
    assert (tmp_path / "laplace_or_geometric.png").read_bytes().startswith(b"\x89PNG")


@deep
@pytest.mark.slow
def test_the_attacker_is_right_with_privacy_off_and_no_more_than_epsilon_allows_with_privacy_on(tmp_path):
    """The attempts exceed the bound by 5 of its standard errors and one in fewer than 1 of 10,000 runs."""
    many = 50
    text = run("statistical_database", tmp_path, "--attempts", many)
    for name, guess, bound in (
        ("her age, by a difference", 1 / 48, math.exp(0.2) / (47 + math.exp(0.2))),
        ("the richest, age and income", 1 / 9600, math.exp(0.2) / (47 + math.exp(0.2))),
        ("is she in the data", 1 / 2, math.exp(0.1) / (1 + math.exp(0.1))),
    ):
        off, on, blind, most = (one / 100 for one in numbers(text, name))
        assert off == 1
        assert on <= bound + 5 * math.sqrt(bound * (1 - bound) / many) + 1 / many
        assert (blind, most) == (pytest.approx(guess, abs=1e-4), pytest.approx(bound, abs=1e-3))
    assert (tmp_path / "statistical_database.png").read_bytes().startswith(b"\x89PNG")
