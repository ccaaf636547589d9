"""Run each benchmark at its smallest, one after the other: `python tests/benchmarks/smoke.py`.

Each is a copy of one process that has imported wpinq (`tests/processes.py`), which takes a third of what most do.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import processes  # noqa: E402


def main() -> int:
    """Run all, up to the first that fails."""
    for path in sorted(HERE.glob("bench_*.py")):
        begun = time.monotonic()
        if processes.run([sys.executable, path, "--smoke"]).returncode:
            print(f"failed: {path.name} --smoke", flush=True)
            return 1
        print(f"{time.monotonic() - begun:.0f} s: {path.name} --smoke", flush=True)
    processes.STEM_OF_THIS.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
