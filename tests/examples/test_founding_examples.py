"""The founding experiments: they run, and what they print is what theory says."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples import laplace_or_geometric

ROOT = Path(__file__).parents[2]


def run(module, *arguments):
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", f"examples.{module}", *map(str, arguments)],
        capture_output=True, text=True, timeout=200, check=False,
        env={**os.environ, "PYTHONPATH": paths, "MPLBACKEND": "agg"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def numbers(text, name):
    (line,) = [one for one in text.splitlines() if one.strip().startswith(name)]
    return [float(one) for one in re.findall(r"-?\d+\.?\d*", line.split(name)[1])]


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


@pytest.mark.slow
def test_the_attacker_is_right_with_privacy_off_and_guesses_with_privacy_on():
    """In 10 attempts at scale 10 a difference of 1 is found more than 3 times with a chance below 1 in 10,000."""
    text = run("statistical_database", "--attempts", 10)
    for name, most in (
        ("her age, by a difference", 30),
        ("the richest, age and income", 30),
        ("is she in the data", 100),
    ):
        off, on, *_ = numbers(text, name)
        assert off == 100
        assert on <= most
