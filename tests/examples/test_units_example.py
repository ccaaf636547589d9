"""The example of units: noise grows with the bound and bias falls, as its page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import polars as pl
import processes
import pytest
from depth import deep

from examples import units

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "wpinq" / "docs" / "units.md").read_text()
TABLE = re.findall(r"^\| `(\S+)` \| ([\d.]+) \| ([\d.]+) \| \**([\d.]+)\** \|$", PAGE, re.MULTILINE)


def told(text: str) -> dict[str, tuple[float, ...]]:
    rows = re.findall(r"^ +(at_most=\d+|shared=True) +([\d.]+) +([\d.]+) +([\d.]+)$", text, re.MULTILINE)
    return {name: tuple(map(float, numbers)) for name, *numbers in rows}


def run(command: str, where: Path) -> str:
    _, *words = shlex.split(command)
    return processes.printed("-W", "error", *words, "--runs", "3", cwd=where, more={"MPLBACKEND": "agg"})


@deep
@pytest.mark.slow
def test_the_page_s_commands_and_numbers(tmp_path):
    """Which records a bound keeps is chance; 3 runs move noise by a fifth. Wrong once in 10,000 runs at most."""
    made_up, own = re.findall(r"```sh\n(.*)\n(.*)\n```", PAGE)[0]
    found, page = told(run(made_up, tmp_path)), {name: tuple(map(float, numbers)) for name, *numbers in TABLE}
    assert found.keys() == page.keys()
    assert len(page) == len(units.BOUNDS) + 1
    for name, (noise, bias, error) in found.items():
        assert noise == pytest.approx(page[name][0], rel=0.6)
        assert bias == pytest.approx(page[name][1], abs=0.05)
        assert error <= noise + bias + 0.002  # the triangle, and rounding
    noise, bias, error = ([page[f"at_most={bound}"][place] for bound in units.BOUNDS] for place in range(3))
    assert noise == sorted(noise)
    assert bias == sorted(bias, reverse=True)
    assert min(error) < min(error[0], error[-1])  # the best bound is between
    assert (tmp_path / "out" / "units.png").read_bytes().startswith(b"\x89PNG")
    assert (ROOT / "wpinq" / "docs" / "units.png").read_bytes().startswith(b"\x89PNG")

    pl.DataFrame({"user": [1, 2, 2, 3], "page": [7, 7, 8, 9]}).write_parquet(tmp_path / "VIEWS.parquet")
    text = run(own, tmp_path)
    assert text.startswith("3 people, 4 views, 2 of one person;")
    assert told(text)["at_most=2"][1] == 0  # nothing is left out
