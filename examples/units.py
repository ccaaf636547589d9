"""Two ways to protect a person, and what each costs: a bound on records, or a weight that they share.

python -m examples.units OUT
python -m examples.units OUT --data VIEWS.parquet

`wpinq/docs/units.md` says when to use which, and shows the figure.

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
import polars as pl

import wpinq

PEOPLE, PAGES, EPSILON, RUNS = 3000, 20, Fraction(1, 10), 20
BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128)
QUIET = 300  # epsilon for each record that is kept, at which noise is zero but for a chance of exp(-300)


def views(seed: int = 1) -> pl.DataFrame:
    """Who viewed what: log-normal activity, and the more active somebody is the later the pages that they prefer."""
    random = np.random.default_rng(seed)
    activity = np.ceil(random.lognormal(1, 1.4, PEOPLE)).astype(int)
    users = np.repeat(np.arange(PEOPLE), activity)
    first = 1 / np.arange(1, PAGES + 1)
    pages = random.choice(PAGES, len(users), p=first / first.sum())
    heavy = random.random(len(users)) < (activity / (activity + 20))[users]
    return pl.DataFrame({"user": users, "page": np.where(heavy, PAGES - 1 - pages, pages)})


def shares(counts: np.ndarray) -> np.ndarray:
    """Each page's share of all; a count below zero is none."""
    positive = np.maximum(np.asarray(counts, float), 0)
    return np.asarray(positive / max(positive.sum(), 1))


def errors(records: pl.DataFrame, unit: wpinq.Unit, runs: int) -> tuple[float, float, float]:
    """Noise, bias and their sum as it is: each the distance of shares, on average over the runs."""
    asked, counts = records["page"].value_counts().sort("page").get_columns()
    truth = shares(counts.to_numpy())
    pages = wpinq.protect(records, budget=10**6, unit=unit).map("page")
    quiet = pages.measure(QUIET * int(unit.bound or 1))
    measured = [quiet, *(pages.measure(EPSILON, f"run {run}") for run in range(runs))]
    plain, *noisy = (shares(one.observe_many(asked)) for one in measured)
    noise, total = (np.mean([np.abs(one - other).sum() for one in noisy]) for other in (plain, truth))
    return float(noise), float(np.abs(plain - truth).sum()), float(total)


def main(out: Path, data: Path | None, runs: int) -> None:
    """Print and draw the errors of both units, on made-up views or on a Parquet file of columns user and page."""
    records = views() if data is None else pl.read_parquet(data, columns=["user", "page"])
    made = records["user"].value_counts()["count"].to_numpy()
    print(
        f"{len(made):,} people, {len(records):,} views, {made.max():,} of one person; epsilon {EPSILON}, {runs} runs.\n"
    )
    print(f"   {'unit':<16}{'noise':>8}{'bias':>8}{'error':>8}")
    units = {f"at_most={bound}": wpinq.users("user", at_most=bound) for bound in BOUNDS}
    found = {}
    for name, unit in {**units, "shared=True": wpinq.users("user", shared=True)}.items():
        found[name] = errors(records, unit, runs)
        print(f"   {name:<16}" + "".join(f"{one:>8.3f}" for one in found[name]), flush=True)
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
    parser.add_argument("--data", type=Path, metavar="PARQUET", help="columns user and page; made-up ones by default")
    parser.add_argument("--runs", type=int, default=RUNS, help="over which errors are averaged (default: %(default)s)")
    options = parser.parse_args()
    main(options.out, options.data, options.runs)
