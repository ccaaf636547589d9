"""Epsilon from answers alone: how much more likely they are with a unit than without it, against what was charged.

Each bin is an experiment of its own: in half of them there is a unit, in the others there is none, and each has its own
noise. Source: Jagielski, Ullman, Oprea, Auditing Differentially Private Machine Learning, NeurIPS 2020, for the bound
from two counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wpinq.core.plan.unit import users
from wpinq.errors import needs
from wpinq.protection import protect
from wpinq.testing.checks.laws import ALARM
from wpinq.testing.checks.result import Result, judged
from wpinq.testing.checks.samplers import BUDGET, answers

BINS = 100_000
"""Bins with a unit, and as many without one."""
EPSILON = 1
MANY = 5
"""Records of a person, of whom two are kept."""
CUTS = 41
POWER = 0.75
"""A bound below so much of what was asked for shows that the audit is too weak to tell anything."""


class Answers(NamedTuple):
    """Answers of bins with and without a unit, in which they differ by `moved`, and the epsilon that was charged."""

    present: NDArray[np.float64]
    absent: NDArray[np.float64]
    moved: float
    charged: float


def _split(values: NDArray[np.float64], moved: float, spent: float) -> Answers:
    return Answers(values[: len(values) // 2], values[len(values) // 2 :], moved, spent)


def records(bins: int) -> Answers:
    """Counts of bins with one record, and with none."""
    views = protect(pl.DataFrame({"bin": range(bins)}), BUDGET, name="records", version="1")
    counts = views.map("bin").measure(EPSILON)
    return _split(answers(counts, 2 * bins), 1, float(views.budget.spent))


def people(bins: int) -> Answers:
    """Counts of bins with the records of one person, and with none; of five records two are kept."""
    frame = pl.DataFrame({"user": np.repeat(np.arange(bins), MANY), "bin": np.repeat(np.arange(bins), MANY)})
    views = protect(frame, BUDGET, unit=users("user", at_most=2), name="people", version="1")
    counts = views.map("bin").measure(EPSILON)
    return _split(answers(counts, 2 * bins), 2, float(views.budget.spent))


def sums(bins: int) -> Answers:
    """Sums of bins with one record, whose number is beyond the bounds, and with none."""
    frame = pl.DataFrame({"bin": range(bins), "n": [10**6] * bins})
    views = protect(frame, BUDGET, name="sums", version="1")
    answer = views.sum("n", by="bin", bounds=(0, 10), keys=range(2 * bins), epsilon=EPSILON)
    return _split(np.array([row[1] for row in answer.rows], dtype=np.float64), 10, float(views.budget.spent))


PIPELINES: dict[str, Callable[[int], Answers]] = {"records": records, "people": people, "sums": sums}


def losses(effort: float) -> Result:
    """No answers tell more of a unit than was asked for, as counts of events show it."""
    return _judged(effort, epsilon, charges=True)


def by_others(effort: float) -> Result:
    """The same as an auditor sees it that this project did not write: `CanaryScoreAuditor` of JAX Privacy.

    Raises:
        ExtraError: It is not installed.
    """
    needs("audit", "wpinq audit --self")
    from jax_privacy.auditing import CanaryScoreAuditor

    def least(both: Answers) -> float:
        auditor = CanaryScoreAuditor(both.present, both.absent)
        return float(auditor.epsilon_clopper_pearson(significance=ALARM, one_sided=False))

    return _judged(effort, least, charges=False)


def _judged(effort: float, bound: Callable[[Answers], float], *, charges: bool) -> Result:
    bins, problems, looked = round(BINS * effort), [], []
    for name, pipeline in PIPELINES.items():
        both = pipeline(bins)
        least = bound(both)
        looked.append(f"{name}: at least {least:.2f} of {EPSILON}")
        if charges and both.charged != EPSILON:
            problems.append(f"{name}: epsilon {EPSILON} was asked for, and {both.charged:g} was charged")
        if least > EPSILON:
            problems.append(f"{name}: answers lose epsilon {least:.2f} at least, and {EPSILON} was asked for")
        if least < POWER * EPSILON:
            problems.append(f"{name}: they show only epsilon {least:.2f} of {EPSILON}: too weak, or more noise")
    return judged(2 * bins * len(PIPELINES), "answers", problems, ", ".join(looked), len(PIPELINES) * ALARM)


def epsilon(both: Answers) -> float:
    """The epsilon that answers show at the least, but for a probability of `ALARM`.

    An event is that an answer is a cut or more; the cuts are of the scale alone, and each bound of a chance fails with
    its share of `ALARM`.
    """
    best, alarm = 0.0, ALARM / (4 * CUTS)
    for cut in np.linspace(-both.moved, 2 * both.moved, CUTS).tolist():
        hits = [int(np.count_nonzero(values >= cut)) for values in (both.present, both.absent)]
        count = [len(both.present), len(both.absent)]
        for high, low in ((0, 1), (1, 0)):
            for sides in (hits, [total - hit for total, hit in zip(count, hits, strict=True)]):
                least = chance(sides[high], count[high], alarm)
                most = 1 - chance(count[low] - sides[low], count[low], alarm)
                if least > 0:
                    best = max(best, math.log(least / most))
    return best


def chance(hits: int, trials: int, alarm: float) -> float:
    """A bound below the chance of a hit, which fails with probability `alarm` at the most (Chernoff, Hoeffding 1963).

    >>> round(chance(500, 1000, 1e-7), 2), chance(0, 10, 0.01)
    (0.41, 0.0)
    """
    share, low, high = hits / trials, 0.0, hits / trials
    if not hits:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        apart = share * math.log(share / middle) if middle else math.inf
        if share < 1:
            apart += (1 - share) * math.log((1 - share) / (1 - middle))
        low, high = (middle, high) if trials * apart > math.log(1 / alarm) else (low, middle)
    return low
