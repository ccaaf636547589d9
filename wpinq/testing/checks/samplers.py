"""Noise as it is answered: draws against their law, each noise drawn once, thresholds.

Answers are those of the public calls: a bin that no record is in is answered with its noise alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wpinq.collection import Collection
from wpinq.protection import protect
from wpinq.testing.checks.laws import ALARM, TESTS, Law, discrete_gaussian, discrete_laplace, laplace, wrong
from wpinq.testing.checks.result import Result, judged

DRAWS = 500_000
EPSILONS = (Fraction(3), Fraction(1), Fraction(1, 10), Fraction(1, 1000))
RHOS = (Fraction(1), Fraction(1, 50), Fraction(1, 5000))
BUDGET = 10**6
DELTA = Fraction(1, 1000)
FAR = 6.0
"""Deviations of a correlation that are too many: a normal variable is as far away with probability 2e-9."""


def nobody(name: str = "nobody", **words: Any) -> Collection:
    """A protected collection without records, under a secret of its own."""
    return protect([], columns={"bin": int}, name=name, version="1", **(words or {"budget": BUDGET}))


def answers(measurement: Any, draws: int) -> NDArray[np.float64]:
    """What so many bins are answered."""
    return np.asarray(measurement.observe_many(range(draws)), dtype=np.float64)


def _against(draws: int, pairs: Sequence[tuple[NDArray[np.float64], Law]]) -> Result:
    problems = [problem for values, law in pairs for problem in wrong(values, law)]
    looked = ", ".join(law.name for _, law in pairs)
    return judged(draws * len(pairs), "draws", problems, looked, TESTS * ALARM * len(pairs))


def geometric(effort: float) -> Result:
    """Noise of `mechanism="geometric"` is discrete Laplace."""
    draws, views = round(DRAWS * effort), nobody()
    pairs = [(answers(views.measure(e), draws), discrete_laplace(float(1 / e))) for e in EPSILONS]
    return _against(draws, pairs)


def fine(effort: float) -> Result:
    """Noise of `mechanism="laplace"` is Laplace: its grid is far below what draws can tell."""
    draws, views = round(DRAWS * effort), nobody()
    pairs = [(answers(views.measure(e, mechanism="laplace"), draws), laplace(float(1 / e))) for e in EPSILONS]
    return _against(draws, pairs)


def gaussian(effort: float) -> Result:
    """Noise of `mechanism="gaussian"` is discrete Gaussian: a record moves one bin by one, so rho = 1 / (2 square)."""
    draws, views = round(DRAWS * effort), nobody(rho=BUDGET, delta=DELTA)
    pairs = [
        (answers(views.measure(rho=rho, mechanism="gaussian"), draws), discrete_gaussian(float(1 / (2 * rho))))
        for rho in RHOS
    ]
    return _against(draws, pairs)


def once(effort: float) -> Result:
    """A question has one answer, whenever it is asked; two questions, versions or bins have noises of their own."""
    draws = round(DRAWS * effort)
    with TemporaryDirectory(prefix="wpinq-audit-") as folder:
        ledger = Path(folder) / "ledger"
        views = nobody(budget=BUDGET, ledger=ledger)
        first, again = (answers(views.measure(1, name="first"), draws) for _ in range(2))
        with_one = protect(pl.DataFrame({"bin": [-1]}), name="nobody", version="2", ledger=ledger)
        others = {
            "a measurement of another name": views.measure(1, name="second"),
            "one of another epsilon": views.measure(Fraction(1, 2), name="first"),
            "one with a finer grid": views.measure(1, name="first", mechanism="laplace"),
            "one of another plan": views.filter(pl.col("bin") >= 0).measure(1, name="first"),
            "the next version, with one record more": with_one.measure(1, name="first"),
            "another data set": nobody("somebody", budget=BUDGET, ledger=ledger).measure(1, name="first"),
        }
        tried = {name: answers(measurement, draws) for name, measurement in others.items()}
    problems = [] if np.array_equal(first, again) else ["the same question has two answers, which can be averaged"]
    tried |= {f"the bin {lag} further": np.roll(first, lag) for lag in (1, 2, 64, 4096)}
    for name, values in tried.items():
        for of, form in (("noise", np.asarray), ("size of the noise", np.abs)):
            far = float(np.corrcoef(form(first), form(values))[0, 1]) * math.sqrt(draws)
            if not abs(far) < FAR:  # so that no correlation at all, of equal numbers, is too much
                problems.append(f"the {of} of {name} is correlated with that of the first: {far:.0f} deviations")
    looked = f"the same question asked again, and {len(tried)} that are others: {'; '.join(others)}; bins further on"
    return judged(draws * (len(tried) + 2), "draws", problems, looked, 4e-9 * len(tried))


def threshold(effort: float) -> Result:
    """A bin that one unit alone is in is published with no more probability than delta, whatever the noise is."""
    bins = round(DRAWS * effort)
    frame = pl.DataFrame({"bin": range(bins)})
    by_laplace = protect(frame, BUDGET, delta="1/2", name="alone", version="1").measure(1)
    words: dict[str, Any] = {"rho": BUDGET, "delta": "1/2", "name": "alone", "version": "1"}
    by_gauss = protect(frame, **words).measure(rho=Fraction(1, 50), mechanism="gaussian")
    mean = float(DELTA) * bins
    most = mean + math.sqrt(3 * mean * math.log(1 / ALARM))  # Chernoff, for a share of 1 or less above the mean
    texts, problems = [], []
    for noise, counts in (("geometric", by_laplace), ("Gaussian", by_gauss)):
        published = len(counts.release(delta=DELTA).frame)
        text = f"{noise} noise publishes {published:,} of {bins:,} bins of one record each"
        texts.append(text)
        problems += [f"{text}, and delta {DELTA} allows {mean:.0f}"] if published > most else []
    return judged(2 * bins, "bins", problems, "; ".join(texts) + f"; delta {DELTA} allows {mean:.0f}", 2 * ALARM)
