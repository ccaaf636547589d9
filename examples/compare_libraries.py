"""The same salary histogram in wpinq, Diffprivlib, OpenDP and plain Polars: lines of code, error, time.

pip install '.[peers]' && python -m examples.compare_libraries

Each function below is what a user of that library would write, and one record is protected by epsilon 1 (by nothing in
Polars). Noise has the same scale in all, so errors agree but for chance: the libraries differ in what is around the
noise. wpinq always charges a budget; Diffprivlib's BudgetAccountant and OpenDP's compositors do where they are used.
Lines are those of the function's body; error is the mean distance of a bin from the truth, and time the median, over
some runs. A library that is not installed is left out.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from examples.laplace_or_geometric import BINS, HIGH, LOW, salaries

RUNS = 7
WIDTH = (HIGH - LOW) // BINS
Histogram = Callable[[np.ndarray], Any]


def wpinq(paid: np.ndarray) -> Any:
    """Noise that follows from the plan; the budget is kept."""
    import polars as pl

    import wpinq

    table = wpinq.protect(pl.DataFrame({"salary": paid}), budget=1)
    bins = table.map(f"CAST(floor((salary - {LOW}) / {WIDTH}) AS INTEGER)")
    return bins.measure(epsilon=1).observe_many(range(BINS))


def polars(paid: np.ndarray) -> Any:
    """No privacy: the truth."""
    import polars as pl

    bins = pl.Series("bin", ((paid - LOW) // WIDTH).astype(int))
    counts = dict(bins.value_counts().iter_rows())
    return [counts.get(number, 0) for number in range(BINS)]


def diffprivlib(paid: np.ndarray) -> Any:
    """A drop-in for numpy.histogram."""
    from diffprivlib.tools import histogram  # type: ignore[import-not-found, unused-ignore]

    counts, _ = histogram(paid, epsilon=1, bins=BINS, range=(LOW, HIGH))
    return counts


def opendp(paid: np.ndarray) -> Any:
    """Transformations and a measurement, whose privacy is a function of the distance."""
    import opendp.prelude as dp  # type: ignore[import-not-found, unused-ignore]

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    counted = space >> dp.t.then_count_by_categories(list(range(BINS)), null_category=False)
    return (counted >> dp.m.then_laplace(scale=1.0))(((paid - LOW) // WIDTH).astype(int).tolist())


LIBRARIES: Sequence[Histogram] = (wpinq, diffprivlib, opendp, polars)


def lines(histogram: Histogram) -> int:
    """Lines of a function's body, without its docstring."""
    body = inspect.getsource(histogram).split('"""', 2)[2]
    return sum(bool(line.strip()) for line in body.splitlines())


def compared(histogram: Histogram, paid: np.ndarray) -> tuple[float, float]:
    """The mean error of a bin, and the median time in milliseconds; the first run only imports."""
    truth, found, took = np.histogram(paid, BINS, (LOW, HIGH))[0], [], []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        counts = np.asarray(histogram(paid), float)
        took.append(1000 * (time.perf_counter() - start))
        found.append(np.abs(counts - truth).mean())
    return float(np.mean(found[1:])), float(np.median(took[1:]))


def main() -> None:
    """Print the table."""
    paid = salaries()
    print(f"{len(paid):,} salaries in {BINS} bins, epsilon 1, {RUNS} runs.\n")
    print(f"   {'library':<14}{'lines':>6}{'error':>8}{'time, ms':>10}")
    for histogram in LIBRARIES:
        name = histogram.__name__
        try:
            error, took = compared(histogram, paid)
        except ImportError:
            print(f"   {name:<14}left out, for it is not installed: pip install '.[peers]'")
        else:
            print(f"   {name:<14}{lines(histogram):>6}{error:>8.2f}{took:>10.1f}")


if __name__ == "__main__":
    main()
