"""Laplace or Gaussian noise? How near a count is to the truth, by how many of them one person is in.

python -m examples.laplace_or_gaussian OUT

A person is in at most k bins, and moves each by 1: of one histogram of pages of which k are counted of each person, or
of k questions about everybody. Told is the distance that a count is within with probability 0.95, where all of them
together cost a whole budget of epsilon 1 and delta 10^-6. `wpinq/docs/noise.md` says what follows.

Laplace noise is charged to a ledger of epsilon alone, and to one that adds up Renyi divergences beside; Gaussian noise
to such a one. Nothing is measured: all amounts are those of quotes, over no data. The last column is what no accounting
of Gaussian noise can pass: its exact epsilon and delta (Balle and Wang, "Improving the Gaussian mechanism for
differential privacy", ICML 2018).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import wpinq

BINS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500, 700, 1000)
EPSILON, DELTA, LEVEL = 1, "1e-6", Fraction(95, 100)
NAMES = ("Laplace, epsilons", "Laplace, Renyi", "Gaussian, Renyi", "Gaussian, exact")


def pages(bins: int, accounting: str) -> wpinq.Collection:
    """How many people viewed each page, at most so many pages of each of them."""
    person = wpinq.users("user", at_most=bins)
    columns = {"user": "text", "page": "text"}
    views = wpinq.protect([], columns=columns, unit=person, budget=EPSILON, delta=DELTA, accounting=accounting)
    return views.map("user, page").distinct().map("page")


def half(quote: wpinq.Quote[Any]) -> float:
    """What a bin is within."""
    return float(quote.mechanism.half_width(LEVEL) / quote.node.resolution)


def largest(fits: Callable[[Fraction], bool], low: Fraction) -> Fraction:
    """The largest amount that fits, to a thousandth; `low` does."""
    high = 2 * low
    while fits(high):
        low, high = high, 2 * high
    while high - low > low / 1000:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def renyi(bins: int) -> float:
    """Laplace noise of the largest epsilon that a ledger of Renyi divergences allows."""
    asked = pages(bins, "renyi")
    epsilon = largest(lambda one: asked.quote(one).prices[0].fits, Fraction(EPSILON))
    return half(asked.quote(epsilon))


def exact(bins: int) -> float:
    """Gaussian noise of exactly this epsilon and delta, through the least mu = sqrt(bins) / sigma."""
    normal = NormalDist()

    def fits(mu: Fraction) -> bool:
        m = float(mu)
        over = normal.cdf(m / 2 - EPSILON / m) - math.exp(EPSILON) * normal.cdf(-m / 2 - EPSILON / m)
        return over <= float(DELTA)

    return math.sqrt(bins) / float(largest(fits, Fraction(1, 100))) * normal.inv_cdf(float(1 + LEVEL) / 2)


def found(bins: int) -> tuple[float, ...]:
    """The four distances, in the order of `NAMES`."""
    gaussian = pages(bins, "renyi").quote(EPSILON, mechanism="gaussian", delta=DELTA)
    return half(pages(bins, "pure").quote(EPSILON)), renyi(bins), half(gaussian), exact(bins)


def main(out: Path) -> None:
    """Print the distances, and what `mechanism="best"` takes, and draw them."""
    print(f"Epsilon {EPSILON} and delta {DELTA} in all; a count is within so much with probability {float(LEVEL)}.\n")
    print(f"   {'bins':>5}" + "".join(f"{name:>20}" for name in NAMES) + "   best")
    rows = []
    for bins in BINS:
        rows.append(found(bins))
        best = pages(bins, "renyi").quote(EPSILON, mechanism="best", delta=DELTA).mechanism.name
        print(f"   {bins:>5}" + "".join(f"{one:>20,.1f}" for one in rows[-1]) + f"   {best}", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    draw(rows, out / "noise.png")


def draw(rows: list[tuple[float, ...]], path: Path) -> None:
    """A line for each noise, on two logarithmic scales."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
    styles = (("#e69f00", "-"), ("#d55e00", "-"), ("#0072b2", "-"), ("#666666", ":"))
    for place, (name, (colour, line)) in enumerate(zip(NAMES, styles, strict=True)):
        axes.plot(BINS, [row[place] for row in rows], line, color=colour, label=name)
    axes.set(xscale="log", yscale="log", xlabel="bins, or counts, that one person is in")
    axes.set_ylabel("a count is within so much (95%)")
    axes.legend(frameon=False, title="epsilon 1, delta 10$^{-6}$ in all")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="directory for the picture")
    main(parser.parse_args().out)
