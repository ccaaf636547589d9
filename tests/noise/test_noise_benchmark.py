"""The benchmark runs, and writes what it says it writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "bench_noise.py"


def test_the_benchmark_runs(tmp_path: Path) -> None:
    out = tmp_path / "noise.json"
    subprocess.run([sys.executable, str(SCRIPT), "--smoke", "--json", str(out)], check=True, capture_output=True)
    found = json.loads(out.read_text())
    assert set(found["scales"]) == {"10", "10000"}
    for entry in found["scales"].values():
        assert {"wpinq geometric", "wpinq laplace", "numpy laplace (insecure)"} <= set(entry["us_per_bin"])
        assert all(0 < value < 1000 for value in entry["us_per_bin"].values())
