"""*Things that count*, retold on a web log that we make up ourselves, so that the truth may be shown beside the noise.

python -m examples.things_that_count OUT

The story is Frank McSherry's (2018): count page views, then how often things are counted, then reconcile the two sides
of the answer. Nothing is drawn or printed of the log but what its budget of 0.2 pays for, except in the columns called
"truth", which a real curator could not show. Run it twice: the second time costs nothing and says the same.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import wpinq
from examples import sample

VIEWS, SEED = 30_000, 1


def main(out: Path) -> None:
    """Tell the story, and leave its pictures in `out`."""
    log = out / "views.csv"
    sample.write(log, VIEWS, SEED)
    truth = np.sort(np.bincount(sample.sample(VIEWS, SEED)[1])[1:])[::-1]  # views of each page, most viewed first

    views = wpinq.protect(log, budget=0.2)
    print(f"\n1. A curator protects {log} with a budget of epsilon 0.2. It holds records (user, page).\n")

    pages = views.map(lambda user, page: page)
    page_views = pages.measure(epsilon=0.05, name="page views")
    cdf = wpinq.degrees.cdf(pages).measure(epsilon=0.1, name="cdf")
    sequence = wpinq.degrees.sequence(pages).measure(epsilon=0.05, name="sequence")
    count_views(page_views)
    count_counts(cdf, sequence, truth)
    fit = reconcile(cdf, sequence, truth)

    true_cdf = (truth[:, None] >= np.arange(1, truth[0] + 1)).sum(axis=0)
    fit.plot(out / "degrees.png", truth=true_cdf)
    fit.synthesize(out / "synthetic.csv", seed=SEED)
    size = f"{fit.sequence.sum():,} made-up views of {len(fit.sequence):,} pages"
    print(f"\n5. Both curves are drawn in {out / 'degrees.png'}, and {out / 'synthetic.csv'} holds {size},")
    print("   with exactly the degrees of the curve. They cost nothing: they follow from what was paid for.")


def count_views(page_views: wpinq.Measurement) -> None:
    """Ask the first question: how often was a page viewed."""
    true = np.bincount(sample.sample(VIEWS, SEED)[1], minlength=sample.PAGES + 1)
    print("2. How often was each page viewed? It costs 0.05, and the noise has scale 1 / 0.05 = 20.\n")
    print("   page          noisy   truth")
    for number in (1, 2, 10, 100, 1000):
        print(f"   {f'Page {number}':<12}{page_views.observe(f'Page {number}'):>7,}{true[number]:>8,}")
    print(f"   {'No such page':<12}{page_views.observe('No such page'):>7,}{0:>8,}")
    print(
        "\n   It is good for popular pages and useless for the rest. A page that is not there answers like any other."
    )


def count_counts(cdf: wpinq.Measurement, sequence: wpinq.Measurement, truth: np.ndarray) -> None:
    """Ask the second question from both sides: how often are things counted."""
    print("\n3. How many pages have at least k views (cdf, costs 0.1)? How often was the r-th page viewed (0.05)?\n")
    print("       k     cdf   truth        r   sequence   truth")
    for one, rows in ((k, sequence.observe(k)) for k in (1, 2, 5, 10, 50, 100, 200)):
        columns, true = cdf.observe(one), int((truth >= one).sum())
        print(f"   {one:>5}{columns:>8,}{true:>8,}{one:>9}{rows:>11,}{truth[one - 1]:>8,}")
    print("\n   The cdf is sharp where k is small, the sequence where r is small: each sees one end of one staircase.")


def reconcile(cdf: wpinq.Measurement, sequence: wpinq.Measurement, truth: np.ndarray) -> wpinq.degrees.Fit:
    """Fit one staircase to both, and compare what that is worth."""
    print("\n4. So fit one staircase to both. Its mean error for a page, beside that of the noisy sequence:\n")
    noisy = sequence.observe_many(range(1, len(truth) + 1))
    print(f"   noisy sequence     {np.abs(noisy - truth).mean():>8.2f} views")
    for method in ("squares", "path", "posterior"):
        fit = wpinq.degrees.reconcile(cdf, sequence, method=method)
        fitted = np.zeros(max(len(truth), len(fit.sequence)))
        fitted[: len(fit.sequence)] = fit.sequence
        error = np.abs(fitted - np.pad(truth, (0, len(fitted) - len(truth)))).sum() / len(truth)
        print(f"   {f'fit, {method}':<19}{error:>8.2f} views, {fit.distinct:,} pages, {fit.records:,} views")
    print(f"   {'truth':<19}{'':>14} {np.count_nonzero(truth):,} pages, {truth.sum():,} views")
    return fit


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="directory for the log, its ledger and the pictures")
    main(parser.parse_args().out)
