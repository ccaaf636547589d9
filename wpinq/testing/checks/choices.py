"""Choices by permute-and-flip: each coin at its border, and how often public answers choose what.

Source: McKenna and Sheldon, "Permute-and-flip", NeurIPS 2020, for the law; it is summed here over all coins.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from wpinq.core.noise.exponential import FIRST_COIN, ORDER, PermuteAndFlip
from wpinq.core.plan.unit import users
from wpinq.protection import protect
from wpinq.testing.checks.borders import Strings, bins, exponential, misplaced
from wpinq.testing.checks.laws import ALARM
from wpinq.testing.checks.losses import chance
from wpinq.testing.checks.result import Result, judged
from wpinq.testing.checks.samplers import BUDGET

CHOICES = 600
"""Of each pipeline, each a question of its own; of scores, which take five times as long, a third."""
RATES = (Fraction(1, 1000), Fraction(1, 7), Fraction(1), Fraction(5, 2))
LOSSES = (1, 2, 17)
KEYS = range(10)
AHEAD = 4
"""By how much the first key is heavier than the others, of which there are so many that it is often not chosen."""
Outcome = tuple[Any, ...]
Law = dict[Outcome, float]


def choices(effort: float) -> Result:
    """Coins are taken with their chances, exactly, and keys are chosen as epsilon says."""
    problems = [f"a coin of exp(-{rate * loss}) is not taken with that chance" for rate in RATES for loss in LOSSES
                if misplaced(exponential(rate * loss), partial(_taken, rate, loss))]  # fmt: skip
    tried, each = len(RATES) * len(LOSSES) * 2, max(round(CHOICES * effort), 1)
    for name, pipeline in PIPELINES.items():
        law, drawn = pipeline(each)
        problems += [f"{name}: {problem}" for problem in unlikely(drawn, law)]
        tried += drawn.total()
    looked = f"coins at their borders, and {', '.join(PIPELINES)}"
    return judged(tried, "choices", problems, looked, len(PIPELINES) * ALARM)


def _taken(rate: Fraction, loss: int, words: Sequence[int]) -> bool:
    """Whether a candidate with these words of its coin is taken: it comes before the one that is taken anyway."""
    coins = {FIRST_COIN + depth: np.array([[0, 0], [word, 0]], np.uint64) for depth, word in enumerate(words)}
    order = {ORDER: np.array([[1, 0], [0, 0]], np.uint64)}
    return PermuteAndFlip(rate).choose(Strings(order | coins), bins(2), np.array([0, loss])) == 1


def law_of(weights: Sequence[float], rate: float, k: int = 1) -> Law:
    """How likely each k of some keys are chosen, one after another, each left out once it is chosen.

    >>> {keys: round(p, 3) for keys, p in law_of([1, 0], 1).items()}
    {(0,): 0.816, (1,): 0.184}
    """
    left: dict[Outcome, float] = {(): 1.0}
    for _ in range(k):
        further: Law = {}
        for chosen, before in left.items():
            keys = [key for key in range(len(weights)) if key not in chosen]
            coins = [math.exp(rate * (weights[key] - max(weights[other] for other in keys))) for key in keys]
            for place, key in enumerate(keys):
                others = np.ones(1)  # how likely so many of the others are taken
                for coin in (*coins[:place], *coins[place + 1 :]):
                    others = np.convolve(others, [1 - coin, coin])
                first = float((others / np.arange(1, len(others) + 1)).sum())
                further[(*chosen, key)] = before * coins[place] * first
        left = further
    return left


def unlikely(drawn: Counter[Outcome], law: Law) -> list[str]:
    """What is chosen first, and in all, too rarely or too often for a law; that finds a right sampler with `ALARM`."""
    problems: list[str] = []
    for length in range(1, max(map(len, law)) + 1):
        chances, hits = _begun(law, length), _begun(drawn, length)
        alarm = ALARM / (4 * len(chances))
        for outcome, expected in chances.items():
            often, many = round(hits.get(outcome, 0)), drawn.total()
            if not chance(often, many, alarm) <= expected <= 1 - chance(many - often, many, alarm):
                problems.append(f"{outcome} is chosen with probability {expected:.3f}, and {often} of {many:,} times")
    return problems


def _begun(whole: Mapping[Outcome, float], length: int) -> Law:
    """The same of the first keys alone."""
    result: Law = {}
    for outcome, weight in whole.items():
        result[outcome[:length]] = result.get(outcome[:length], 0) + weight
    return result


def _mode(each: int) -> tuple[Law, Counter[Outcome]]:
    """A record adds to one key and takes from none, so the rate is epsilon."""
    records = [(0,)] * AHEAD + [(5,)] * 2
    views = protect(records, BUDGET, columns={"key": int}, name="mode", version="1")
    drawn = Counter((views.mode("key", "1/2", KEYS, name=str(i)).value,) for i in range(each))
    return law_of(_counted(records), 1 / 2), drawn


def _top(each: int) -> tuple[Law, Counter[Outcome]]:
    """A person has one record of each key, so a choice of two has the rate epsilon / 2, of however many keys."""
    records = [(person, key) for person in range(AHEAD) for key in (0, person % 3)]
    words: dict[str, Any] = {"columns": {"user": int, "key": int}, "unit": users("user", at_most=9), "version": "1"}
    views = protect(records, BUDGET, name="top", **words).distinct()
    rows = (views.top("key", 2, 1, KEYS, name=str(i)).rows for i in range(each))
    drawn = Counter(tuple(row[0] for row in both) for both in rows)
    return law_of(_counted([(key,) for _, key in set(records)]), 1 / 2, 2), drawn


def _score(each: int) -> tuple[Law, Counter[Outcome]]:
    """A record may raise the score of one candidate and lower another's, so the rate is epsilon / 2."""
    records = [(0,)] * AHEAD
    views = protect(records, BUDGET, columns={"key": int}, name="score", version="1")

    def score(key: int, candidate: int) -> float:
        return 1.0 if key == candidate else 0.0

    drawn = Counter((views.select_by(score, list(KEYS), 1, name=str(i)).value,) for i in range(-(-each // 3)))
    return law_of(_counted(records), 1 / 2), drawn


def _counted(records: Sequence[tuple[int]]) -> list[float]:
    held = Counter(key for (key,) in records)
    return [float(held[key]) for key in KEYS]


PIPELINES: dict[str, Callable[[int], tuple[Law, Counter[Outcome]]]] = {
    "mode": _mode,
    "top of two": _top,
    "select_by": _score,
}
