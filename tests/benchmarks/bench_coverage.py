"""How often do intervals hold the truth, how wide are they beside the error, and how biased are the answers?

Usage: python tests/benchmarks/bench_coverage.py [--runs N] [--smoke]

Ranks and moments of real and of made-up numbers, with intervals of 95%, each run a fresh name on one protected source;
then the degree distributions that `degrees.release` fits, with simulated noise (see bench_accuracy) and bands of 90%:
the share of values that they hold, over the CDF and the sequence, and in the worst third of either. `half/rmse` is half
of the mean width over the root mean square error; where the law of the noise is used up it is about 2. Extremes have an
interval that ends at their bound. Real data is read from `shared/data` beside the repository.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import polars as pl
from bench_accuracy import SHARED, WOMEN, Corner
from flags import flags

import wpinq
from wpinq import aggregates
from wpinq.degrees.observed import observe_corner
from wpinq.postprocess.degrees.fit import Fit
from wpinq.postprocess.degrees.path import conjugate
from wpinq.postprocess.degrees.posterior.evidence import Cornered

TRUTHS: dict[str, Callable[[np.ndarray], float]] = {
    "mean": np.mean, "variance": np.var, "stdev": np.std, "median": np.median,
    "quantile": lambda x: np.quantile(x, 0.9), "min": np.min, "max": np.max,
}  # fmt: skip


def incomes() -> np.ndarray:
    """A thousand skewed incomes: the largest is 420,500, the tenth 325,000, the fortieth 125,000, the median 18,000."""
    low = np.exp(np.random.default_rng(3).normal(9.8, 1.2, 960)).clip(0, 124_000)
    return np.append(low, np.interp(np.arange(1, 41), [1, 10, 40], [420_500, 325_000, 125_000])).round()


def counted(name: str, column: str) -> np.ndarray | None:
    """How often each value of a column of the real data is there, largest first."""
    file = SHARED / f"{name}.parquet"
    if not file.exists():
        return None
    return np.sort(pl.read_parquet(file).group_by(column).len()["len"].to_numpy().astype(np.int64))[::-1]


def numbers(smoke: bool) -> Iterator[tuple[str, np.ndarray, tuple[int, int]]]:
    """Names, numbers, and declared bounds."""
    yield "incomes", incomes(), (0, 500_000)
    yield "ages", np.random.default_rng(4).normal(45, 18, 10_000).clip(0, 99).round(), (0, 120)
    for name, column, bounds in [] if smoke else [("retail", "user", (0, 100)), ("CA-GrQc", "page", (0, 200))]:
        found = counted(name, column)
        if found is not None:
            yield f"{name} by {column}", found, bounds


def shapes(smoke: bool) -> Iterator[tuple[str, np.ndarray]]:
    """Names and true degrees, largest first."""
    yield "two items of 30", np.array([30, 30])
    yield "Davis women", np.array(WOMEN)
    yield "100, 99, ..., 1", np.arange(100, 0, -1)
    found = None if smoke else counted("CA-GrQc", "page")
    if found is not None:
        yield "CA-GrQc", found


def ask(which: str, source: wpinq.Collection, bounds: tuple[int, int], epsilon: str, name: str) -> tuple[float, ...]:
    """The answer and the ends of its interval."""
    more = {"share": "0.9"} if which == "quantile" else {}
    answer = getattr(aggregates, which)(source, "x", bounds=bounds, epsilon=epsilon, name=name, **more)
    return answer.value, *answer.interval()


def of_numbers(runs: int, smoke: bool, show: Callable[[str], None]) -> None:
    columns = ("what", 10), ("truth", 12), ("median", 12), ("rmse", 11), ("coverage", 10), ("half/rmse", 11)
    show(f"{'numbers':18}{'epsilon':>8} " + "".join(f"{one:>{width}}" for one, width in columns))
    for name, values, bounds in numbers(smoke):
        source = wpinq.protect(pl.DataFrame({"x": values}), budget=10**6, name=name, version="1")
        for epsilon in ("0.05", "1"):
            for which, truth_of in TRUTHS.items():
                truth = float(truth_of(values))
                found = np.array([ask(which, source, bounds, epsilon, f"{which} {run}") for run in range(runs)])
                error = float(np.sqrt(np.mean((found[:, 0] - truth) ** 2)))
                held = float(np.mean((found[:, 1] <= truth * (1 + 1e-12)) & (found[:, 2] >= truth * (1 - 1e-12))))
                half = float(np.mean(found[:, 2] - found[:, 1])) / 2
                show(f"{name:18}{epsilon:>8} {which:>10}{truth:12.6g}{np.median(found[:, 0]):12.6g}{error:11.4g}"
                     f"{held:10.3f}{half / error if error else 0:11.2f}")  # fmt: skip


def of_degrees(runs: int, smoke: bool, show: Callable[[str], None]) -> None:
    show(f"\n{'degrees':18}{'epsilon':>8}{'largest: truth':>16}{'bias':>8}{'rmse':>7}{'records: truth':>16}{'bias':>8}"
         f"{'rmse':>7}{'cdf held':>10}{'worst':>7}{'sequence':>10}{'worst':>7}")  # fmt: skip
    for name, degrees in shapes(smoke):
        truth = conjugate(np.append(degrees, 0), int(degrees[0])), degrees
        for epsilon in ("1/10", "1/5", "1"):
            off, held = [], ([], [])
            for run in range(runs):
                corner = Corner(truth, 1 / Fraction(epsilon), np.random.default_rng([2026, run]))
                evidence = Cornered(observe_corner(corner), corner.scale)
                fit = Fit(*evidence.staircases((0.5,))[0], evidence, "posterior")
                off.append((fit.largest - degrees[0], fit.records - degrees.sum()))
                for of, curve, inside in zip(("cdf", "sequence"), truth, held, strict=True):
                    low, high = (np.pad(end, (0, len(curve)))[: len(curve)] for end in fit.band(0.9, of))
                    inside.append((low <= curve) & (curve <= high))
            bias, error = np.mean(off, axis=0), np.sqrt(np.mean(np.square(off), axis=0))
            shares = [[np.mean(part) for part in np.array_split(np.array(one), 3, axis=1) if part.size] for one in held]
            show(f"{name:18}{epsilon:>8}{degrees[0]:16,}{bias[0]:8.1f}{error[0]:7.1f}{degrees.sum():16,}{bias[1]:8.1f}"
                 f"{error[1]:7.1f}{np.mean(held[0]):10.3f}{min(shares[0]):7.2f}{np.mean(held[1]):10.3f}"
                 f"{min(shares[1]):7.2f}")  # fmt: skip


def main(show: Callable[[str], None] = print) -> None:
    parser = flags(__doc__, "made-up data, three runs")
    parser.add_argument("--runs", type=int, default=300)
    options = parser.parse_args()
    runs = 3 if options.smoke else options.runs
    of_numbers(runs, options.smoke, show)
    of_degrees(runs, options.smoke, show)


if __name__ == "__main__":
    main()
