"""Three ways to get a private histogram wrong, each broken and mended, and the epsilon that an audit finds in them.

python -m examples.pitfalls OUT

1. Publish the bins that there are: a bin that only one person is in tells of that person, whatever its noise.
2. Protect a record and promise it to a person: whoever has twenty records is hidden by a twentieth of the noise.
3. Take the range from the data: the richest person moves every edge, and so every bin.

The audit is an attacker who tells two neighbouring data sets apart by one event. If it happens p of the time in one and
q in the other, no epsilon below log(p / q) can be true; p and q are bounded by their trials at 99% confidence.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from pathlib import Path

import numpy as np

import wpinq

EPSILON = 0.5
TRIALS = 2000
RECORDS = 20  # of a heavy user
Z = 2.576  # 99%


def audit(seen: np.ndarray, unseen: np.ndarray) -> float:
    """The largest epsilon that the two lists of events prove, by Wilson's bounds; 0 if none."""

    def bound(events: np.ndarray, sign: int) -> float:
        n, p = len(events), float(events.mean())
        middle, half = p + Z * Z / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
        return (middle + sign * half) / (1 + Z * Z / n)

    return max(0.0, math.log(max(bound(seen, -1), 1e-9) / bound(unseen, 1)))


def naive_bins(random: np.random.Generator) -> float:
    """Noise on every bin that there is: whatever its noise, the bin of one person has a name."""

    def named(pages: list[str]) -> np.ndarray:
        counts = Counter(pages)
        trials = ({page: n + random.laplace(0, 1 / EPSILON) for page, n in counts.items()} for _ in range(TRIALS))
        return np.array(["her page" in published for published in trials])

    return audit(named(["home"] * 500 + ["her page"]), named(["home"] * 500))


def mended_bins(_: np.random.Generator) -> float:
    """`release` publishes a bin above a threshold; each of these people is alone in a bin: one trial each."""
    pages = [(f"user {i}", f"page {i}") for i in range(TRIALS)] + [(f"user {i}", "home") for i in range(500)]
    views = wpinq.protect(pages, budget=1, delta=1e-6, columns={"user": str, "page": str})
    released = views.map("page").measure(EPSILON).release(delta=1e-6)
    named = {page for page, _ in released}
    published = np.array([f"page {i}" in named for i in range(2 * TRIALS)])  # nobody viewed the second half
    return audit(published[:TRIALS], published[TRIALS:])


def naive_unit(_: np.random.Generator) -> float:
    """A record is protected; the event is that ten or more views are seen where a heavy user was, or was not."""
    return _heavy(wpinq.Unit())


def mended_unit(_: np.random.Generator) -> float:
    """The user is protected: at most twenty records, and noise for twenty."""
    return _heavy(wpinq.users("user", at_most=RECORDS))


def _heavy(unit: wpinq.Unit) -> float:
    rows = [(f"user {i}", i) for i in range(TRIALS) for _ in range(RECORDS)]
    views = wpinq.protect(rows, budget=1, unit=unit, columns={"user": str, "page": int})
    noisy = views.map("page").measure(EPSILON).observe_many(range(2 * TRIALS)) >= RECORDS / 2
    return audit(noisy[:TRIALS], noisy[TRIALS:])


def naive_range(random: np.random.Generator) -> float:
    """Ten bins from the least to the largest income: with a billionaire all others share the first."""
    incomes = random.lognormal(11, 0.5, 1000)

    def first(values: np.ndarray) -> np.ndarray:
        count = np.histogram(values, 10)[0][0]
        return np.asarray(count + random.laplace(0, 1 / EPSILON, TRIALS) > 900)

    return audit(first(np.append(incomes, 1e9)), first(incomes))


def mended_range(_: np.random.Generator) -> float:
    """Edges that were declared, and the last bin open: she is one more in one bin, of as many towns as trials."""
    rich = [(town, 1e9) for town in range(TRIALS)]
    towns = wpinq.protect(rich, budget=1, columns={"town": int, "income": float})
    band = "CASE WHEN income < 0 THEN 0 WHEN income >= 200000 THEN 10 ELSE CAST(floor(income / 20000) AS INTEGER) END"
    last = [(town, 10) for town in range(2 * TRIALS)]  # the second half of the towns has no billionaire
    noisy = towns.map(f"town, {band} AS band").measure(EPSILON).observe_many(last) > 0
    return audit(noisy[:TRIALS], noisy[TRIALS:])


PITFALLS = {
    "bins from the data": (naive_bins, mended_bins),
    "records for people": (naive_unit, mended_unit),
    "range from the data": (naive_range, mended_range),
}


def main(out: Path) -> None:
    """Audit each pitfall and its mending, print a table and draw it."""
    random = np.random.default_rng(1)
    found = {name: [attack(random) for attack in pair] for name, pair in PITFALLS.items()}
    print(f"Each histogram promises epsilon {EPSILON}. Trials of two neighbours, {TRIALS:,} each, prove at least:\n")
    print(f"   {'pitfall':<22}{'naive':>8}{'mended':>8}")
    for name, (naive, mended) in found.items():
        print(f"   {name:<22}{naive:>8.2f}{mended:>8.2f}")
    most = audit(np.ones(TRIALS), np.zeros(TRIALS))
    print(f"\nSo many trials can prove {most:.2f} at most, however broken a query is. And an audit only proves what is")
    print("broken, never that something is not: the proofs of what wpinq does stand in its docstrings.")
    out.mkdir(parents=True, exist_ok=True)
    _draw(found, out / "pitfalls.png")


def _draw(found: dict[str, list[float]], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    place = np.arange(len(found))
    for side, (label, colour) in enumerate((("naive query", "#c44e52"), ("wpinq", "#4c72b0"))):
        heights = [pair[side] for pair in found.values()]
        bars = axes.bar(place + (side - 0.5) * 0.38, heights, 0.36, label=label, color=colour)
        axes.bar_label(
            bars,
            fmt="%.2f",
            padding=3,
            fontsize=8,
            zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
    axes.axhline(EPSILON, color="black", linewidth=1, linestyle="--", label=f"promised: {EPSILON}")
    axes.set(xticks=place, xticklabels=list(found), ylabel="epsilon proved by the audit")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, ncols=3, loc="outside upper center")
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="directory for the picture")
    main(parser.parse_args().out)
