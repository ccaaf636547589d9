"""The comparison of libraries, with those that are installed."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

from examples import compare_libraries

ROOT = Path(__file__).parents[2]


def test_errors_are_those_of_noise_of_scale_one():
    """A mean of 350 draws of scale 1 is within 5 standard errors: 1 run in 100,000 is not."""
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "examples.compare_libraries"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    rows = dict(re.findall(r"^   (\w+) +(.*)$", done.stdout, re.MULTILINE)[1:])
    assert list(rows) == [one.__name__ for one in compare_libraries.LIBRARIES]
    assert float(rows.pop("polars").split()[1]) == 0
    ratio = math.exp(-1)
    draws = compare_libraries.RUNS * compare_libraries.BINS
    assert "left out" not in rows["wpinq"]
    for name, text in rows.items():
        if "left out" in text:
            assert text.endswith(f"pip install {name}")
            continue
        least, most = 2 * ratio / (1 - ratio**2), 1.0  # geometric noise, Laplace noise
        assert least - 5 / math.sqrt(draws) < float(text.split()[1]) < most + 5 / math.sqrt(draws)
