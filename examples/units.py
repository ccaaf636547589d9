"""Two ways to protect a person, and what each costs: a bound on records, or a weight that they share.

python -m examples.units OUT

A person who made a thousand records moves an answer by a thousand, so noise that hides one person would have to be a
thousand times that which hides one record. There are two ways out, and each has its own error.

`users("user", at_most=k)` keeps a uniform sample of k of each person's records. Noise grows with k: its scale is
k / epsilon. What is left out is bias: who did more than k things speaks as if it had been k, so what only such people
do is under-counted. A small k is mostly bias, a large k mostly noise, and the best one depends on the data
(`suggest_bound` chooses one, for a charge). Noise is known, and every interval states it. Bias is not: no interval
holds it, and it does not shrink with epsilon.

`users("user", shared=True)` keeps all records, and lets the records of a person weigh 1 together. There is nothing to
choose, and noise is that of one record. But the question is another: a page's count is no longer how often it was
viewed but how much of people's attention it had, each person having the same. That is bias only if views were meant.
It is what `at_most=1` is on average, without the chance of which record is kept.

Here made-up people view twenty pages, and the few who view most of all prefer other pages than the rest. Asked is each
page's share of all views. Errors are summed over the pages: noise is the distance between the answer and the same
answer without noise, bias that between the answer without noise and the truth. Which records the bound keeps is chance
too, and counts as bias.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

import numpy as np

import wpinq

PEOPLE, PAGES, EPSILON, RUNS = 3000, 20, Fraction(1, 10), 20
BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128)
QUIET = 300  # epsilon for each record that is kept, at which noise is zero but for a chance of exp(-300)


def views(seed: int = 1) -> list[tuple[int, int]]:
    """Who viewed what: log-normal activity, and the more active somebody is the later the pages that they prefer."""
    random = np.random.default_rng(seed)
    activity = np.ceil(random.lognormal(1, 1.4, PEOPLE)).astype(int)
    users = np.repeat(np.arange(PEOPLE), activity)
    first = 1 / np.arange(1, PAGES + 1)
    pages = random.choice(PAGES, len(users), p=first / first.sum())
    heavy = random.random(len(users)) < (activity / (activity + 20))[users]
    return list(zip(users.tolist(), np.where(heavy, PAGES - 1 - pages, pages).tolist(), strict=True))


def shares(counts: np.ndarray) -> np.ndarray:
    """Each page's share of all; a count below zero is none."""
    positive = np.maximum(np.asarray(counts, float), 0)
    return np.asarray(positive / max(positive.sum(), 1))


def errors(records: list[tuple[int, int]], unit: wpinq.Unit) -> tuple[float, float, float]:
    """Noise, bias and their sum as it is: each the distance of shares, on average over the runs."""
    truth = shares(np.bincount([page for _, page in records], minlength=PAGES))
    pages = wpinq.protect(records, budget=10**6, unit=unit, columns={"user": int, "page": int}).map("page")
    plain = shares(pages.measure(QUIET * int(unit.bound)).observe_many(range(PAGES)))
    noisy = [shares(pages.measure(EPSILON, name=f"run {run}").observe_many(range(PAGES))) for run in range(RUNS)]
    noise, total = (np.mean([np.abs(one - other).sum() for one in noisy]) for other in (plain, truth))
    return float(noise), float(np.abs(plain - truth).sum()), float(total)


def main(out: Path) -> None:
    """Print and draw the errors of both units."""
    records = views()
    most = np.bincount([user for user, _ in records]).max()
    print(f"{PEOPLE:,} people, {len(records):,} views, {most:,} of one person; epsilon {EPSILON}, {RUNS} runs.\n")
    print(f"   {'unit':<16}{'noise':>8}{'bias':>8}{'error':>8}")
    units = {f"at_most={bound}": wpinq.users("user", at_most=bound) for bound in BOUNDS}
    found = {}
    for name, unit in {**units, "shared=True": wpinq.users("user", shared=True)}.items():
        found[name] = errors(records, unit)
        print(f"   {name:<16}" + "".join(f"{one:>8.3f}" for one in found[name]))
    out.mkdir(parents=True, exist_ok=True)
    _draw(np.array(list(found.values())), out / "units.png")


def _draw(found: np.ndarray, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
    bounded, shared = found[:-1], found[-1]
    for place, (name, colour) in enumerate((("noise", "#4c72b0"), ("bias", "#c44e52"), ("error", "#333333"))):
        axes.plot(BOUNDS, bounded[:, place], color=colour, marker="o", markersize=4, label=f"{name}, at_most")
        axes.axhline(shared[place], color=colour, linestyle="--", linewidth=1, label=f"{name}, shared weight")
    axes.set(xscale="log", xlabel="at_most: records that are kept of each person", ylim=(0, None))
    axes.set_ylabel("error of the pages' shares, summed")
    axes.set_xticks(BOUNDS, [str(bound) for bound in BOUNDS])
    axes.minorticks_off()
    axes.legend(frameon=False, ncols=1)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="directory for the picture")
    main(parser.parse_args().out)
