"""Time the exact path against one read of both arrays, and the other methods beside it.

Usage: python tests/benchmarks/bench_fit.py [--smoke] [--json OUT]

Goals (equal scales): the path at 10^6 x 10^7 takes at most five reads; at MiCo's size, warm, at most a millisecond.
Truths are Pareto degrees with seeded noise, so no data is needed; MiCo's size is 1,000 x 91,500.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from flags import flags

from wpinq.core import kernels
from wpinq.postprocess.degrees.path import conjugate, shortest_path
from wpinq.postprocess.degrees.posterior.curves import quantiles
from wpinq.postprocess.degrees.reconcile import squares_path

SIZES = [(1_000, 91_500), (10**5, 10**6), (10**6, 10**7)]
SCALES = [(10, 10), (10, 30)]


def curves(columns: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy CDF and sequence, whole numbers, of items with a heavy tail."""
    rng, p = np.random.default_rng(columns), 1 - np.exp(-0.1)
    items = rows - rows // 50
    degrees = np.zeros(rows, np.int64)
    degrees[:items] = np.sort(np.minimum(rng.pareto(1.2, items) + 1, columns).astype(np.int64))[::-1]
    noise = [rng.geometric(p, size) - rng.geometric(p, size) for size in (columns, rows)]
    return conjugate(degrees, columns) + noise[0], degrees + noise[1]


def seconds(work: Callable[[], object], times: int) -> float:
    """The best of several runs."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def measure(columns: int, rows: int) -> list[dict[str, object]]:
    """Figures of one size, one for each pair of scales."""
    v, h = curves(columns, rows)
    read = seconds(lambda: (v.sum(), h.sum()), 7)
    figures = []
    for pair in SCALES:
        scales = Fraction(pair[0]), Fraction(pair[1])
        start = time.perf_counter()
        shortest_path(v, h, scales)
        first = time.perf_counter() - start
        best = seconds(lambda scales=scales: shortest_path(v, h, scales), 7)
        figure = {"columns": columns, "rows": rows, "scales": pair, "read_ms": read * 1e3, "path_ms": best * 1e3}
        figure |= {"path_first_ms": first * 1e3, "path_per_read": best / read}
        figure["squares_ms"] = seconds(lambda scales=scales: squares_path(v, h, scales), 2) * 1e3
        figure["posterior_ms"] = seconds(lambda scales=scales: quantiles(v, h, scales, (0.5,)), 2) * 1e3
        figures.append(figure)
    return figures


def main() -> None:
    parser = flags(__doc__, "leave out 10^6 x 10^7")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    v, h = curves(*SIZES[0])
    cold = seconds(lambda: shortest_path(v, h, (Fraction(10), Fraction(10))), 1)
    print(f"MiCo's size, the first time: {cold * 1e3:.1f} ms; {'' if kernels.LIB else 'no '}compiled kernels")
    figures = [figure for size in SIZES[: 2 if options.smoke else 3] for figure in measure(*size)]
    for figure in figures:
        print(*(f"{key}={f'{value:.3g}' if isinstance(value, float) else value}" for key, value in figure.items()))
    if options.json:
        options.json.write_text(json.dumps({"first_mico_ms": cold * 1e3, "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
