"""The example of units: noise grows with the bound and bias falls, and a shared weight is at_most=1 on average."""

from __future__ import annotations

import re

import pytest

from examples import units


@pytest.mark.slow
def test_noise_grows_and_bias_falls(tmp_path, capsys):
    units.main(tmp_path)
    rows = re.findall(
        r"^ +(at_most=\d+|shared=True) +([\d.]+) +([\d.]+) +([\d.]+)$", capsys.readouterr().out, re.MULTILINE
    )
    found = {name: tuple(map(float, numbers)) for name, *numbers in rows}
    assert len(found) == len(units.BOUNDS) + 1
    noise, bias, error = ([found[f"at_most={bound}"][place] for bound in units.BOUNDS] for place in range(3))
    assert noise[-1] > 3 * noise[2]
    assert bias[-1] < bias[0] / 3
    assert min(error) < min(error[0], error[-1])  # the best bound is between
    assert all(one <= sum(parts) + 0.01 for one, *parts in zip(error, noise, bias, strict=True))  # the triangle
    shared = found["shared=True"]
    assert shared[0] == pytest.approx(noise[0], rel=0.5)
    assert shared[1] == pytest.approx(bias[0], abs=0.1)
    assert (tmp_path / "units.png").read_bytes().startswith(b"\x89PNG")
