"""The comparison of libraries, with those that are installed."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path

import processes
import pytest

from examples import compare_libraries

ROOT = Path(__file__).parents[2]
PEERS = ("diffprivlib", "opendp")


@pytest.fixture(scope="module")
def rows() -> dict[str, str]:
    text = processes.printed("-m", "examples.compare_libraries")
    return dict(re.findall(r"^   (\w+) +(.*)$", text, re.MULTILINE)[1:])


def error_is_that_of_noise_of_scale_one(row: str) -> None:
    """A mean of 350 draws of scale 1 is within 5 standard errors: 1 run in 100,000 is not."""
    ratio = math.exp(-1)
    least, most = 2 * ratio / (1 - ratio**2), 1.0  # geometric noise, Laplace noise
    draws = compare_libraries.RUNS * compare_libraries.BINS
    assert least - 5 / math.sqrt(draws) < float(row.split()[1]) < most + 5 / math.sqrt(draws)


def test_ours_and_the_truth(rows):
    assert list(rows) == [one.__name__ for one in compare_libraries.LIBRARIES]
    assert float(rows["polars"].split()[1]) == 0
    error_is_that_of_noise_of_scale_one(rows["wpinq"])


@pytest.mark.parametrize("name", PEERS)
def test_a_peer(name, rows):
    if importlib.util.find_spec(name) is None:
        assert rows[name].endswith("not installed: pip install '.[peers]'")
        pytest.skip(f"{name} is not installed: pip install '.[peers]'")
    error_is_that_of_noise_of_scale_one(rows[name])


def test_the_extra_that_is_named_holds_the_peers():
    text = (ROOT / "pyproject.toml").read_text()
    (extra,) = re.findall(r"^peers = \[.*?^\]", text, re.MULTILINE | re.DOTALL)
    assert all(f'"{name}>=' in extra for name in PEERS)
