"""Laplace or geometric noise? Their variances over epsilon, and what a histogram of salaries loses to each.

python -m examples.laplace_or_geometric OUT

Both noises cost the same epsilon. The geometric one (discrete Laplace) is made for whole counts: it is never worse, the
same for small epsilon (below 1 the variances differ by less than a tenth), and for large epsilon it is mostly zero,
while Laplace noise is almost never: its variance is 2 times the other's at epsilon 3 and 10 times from 5.9 on.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

import wpinq

EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "3", "4", "6", "8")
PEOPLE, BINS, RUNS = 29_000, 50, 500
LOW, HIGH = 40_000, 400_000


def variances(epsilon: float) -> tuple[float, float]:
    """The variances of Laplace and geometric noise of scale 1 / epsilon."""
    ratio = math.exp(-epsilon)
    return 2 / epsilon**2, 2 * ratio / (1 - ratio) ** 2


def salaries() -> np.ndarray:
    """Log-normal salaries, clamped to the declared range."""
    drawn = np.random.default_rng(1).lognormal(math.log(90_000), 0.5, PEOPLE)
    return np.clip(drawn, LOW, HIGH - 1)


def errors(protected: wpinq.Collection, truth: np.ndarray, epsilon: str, mechanism: str) -> np.ndarray:
    """The L1 error of the histogram, in as many runs.

    The noise of each bin is independent of all others, so the runs after the first are bins beyond the last, which are
    empty: the same noise, for one charge.
    """
    measured = protected.measure(epsilon, mechanism=mechanism)
    noisy = measured.observe_many(range(RUNS * BINS)).reshape(RUNS, BINS)
    noisy[0] -= truth
    return np.asarray(np.abs(noisy).sum(axis=1))


def main(out: Path) -> None:
    """Print both comparisons, and draw them."""
    paid = salaries()
    truth = np.histogram(paid, BINS, (LOW, HIGH))[0]
    table = wpinq.protect([(float(salary),) for salary in paid], budget=100, columns={"salary": float})
    width = (HIGH - LOW) // BINS
    bins = table.map(f"CAST(floor((salary - {LOW}) / {width}) AS INTEGER)")
    found = {name: np.array([errors(bins, truth, one, name) for one in EPSILONS]) for name in ("laplace", "geometric")}
    print(f"{PEOPLE:,} salaries in {BINS} bins, {RUNS} runs; L1 is the error of all bins together, mean ± one standard")
    print("deviation. The variance ratio is that of Laplace to geometric noise.\n")
    print(f"   {'epsilon':>7}{'variance ratio':>16}{'L1, Laplace':>16}{'L1, geometric':>16}")
    for place, epsilon in enumerate(EPSILONS):
        laplace, geometric = variances(float(epsilon))
        cells = [
            f"{rows[place].mean():.1f} ± {rows[place].std():.1f}" for rows in (found["laplace"], found["geometric"])
        ]
        print(f"   {epsilon:>7}{laplace / geometric:>16.2f}{cells[0]:>16}{cells[1]:>16}")
    out.mkdir(parents=True, exist_ok=True)
    _draw(found, out / "laplace_or_geometric.png")


def _draw(found: dict[str, np.ndarray], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    grid = np.geomspace(0.1, 10, 200)
    left.plot(grid, [laplace / geometric for laplace, geometric in map(variances, grid)], color="#333333")
    left.axhline(1, color="grey", linewidth=0.8, linestyle="--")
    left.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="variance of Laplace / of geometric noise")
    left.set_yticks((1, 2, 5, 10, 20, 50, 100, 200), ("1", "2", "5", "10", "20", "50", "100", "200"))
    at = np.array(list(map(float, EPSILONS)))
    for (name, rows), colour in zip(found.items(), ("#c44e52", "#4c72b0"), strict=True):
        mean, spread = rows.mean(axis=1), rows.std(axis=1)
        right.plot(at, mean, color=colour, label=name, marker="o", markersize=3)
        right.fill_between(at, np.maximum(mean - spread, 0.05), mean + spread, color=colour, alpha=0.2, linewidth=0)
    right.set(xscale="log", yscale="log", xlabel="epsilon", ylabel=f"L1 error of {BINS} bins", ylim=(0.1, None))
    right.set_yticks((0.1, 1, 10, 100, 500), ("0.1", "1", "10", "100", "500"))
    right.legend(frameon=False, loc="lower left", title=f"mean of {RUNS} runs,\none standard deviation")
    for axes in (left, right):
        axes.set_xticks(at, EPSILONS)
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="directory for the picture")
    main(parser.parse_args().out)
