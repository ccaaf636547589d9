"""Selections of names that nobody listed: by partition selection, and by rounds of weighted Gaussian noise.

Source: Desfontaines, Voss, Gipson and Mandayam, PoPETs 2022(1), for the recursion of partition selection; Gopi et al.,
ICML 2020, and Swanberg, Desfontaines and Haney, PoPETs 2023, for weighted noise and rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import polars as pl

from wpinq.core.noise.selection import PartitionSelection
from wpinq.core.plan.unit import users
from wpinq.protection import protect
from wpinq.testing.checks.borders import PRECISION, Strings, bins, column, exponential, misplaced
from wpinq.testing.checks.laws import ALARM
from wpinq.testing.checks.losses import chance
from wpinq.testing.checks.result import Result, judged
from wpinq.testing.checks.samplers import BUDGET

BINS = 50_000
"""Of each weight."""
PEOPLE = 8_000
"""Who have all their names to themselves; names of each number of people are half as many."""
PAID = ((Fraction(1, 10), Fraction(1, 10**6)), (Fraction(1), Fraction(1, 100)), (Fraction(3), Fraction(1, 7)))
WEIGHTS = 40
EPSILON, DELTA = Fraction(1), Fraction(1, 100)
WIDE = Fraction(1, 5)
"""The delta of names of people: so large that a fault in it shows."""
MOST = (4, 10)
"""Names of a person: few have a single round, more have several."""
CROWD = 12
"""People of a name, at the most."""


def kept(epsilon: Fraction, delta: Fraction, most: int) -> list[Decimal]:
    """The largest probabilities with which bins of weight 0, 1, 2, ... may be named, by their recursion.

    >>> [round(float(p), 4) for p in kept(Fraction(1), Fraction(1, 100), 3)]
    [0.0, 0.01, 0.0372, 0.1111]
    """
    falls, lost = exponential(epsilon), PRECISION.divide(Decimal(delta.numerator), Decimal(delta.denominator))
    grows, chances = PRECISION.divide(Decimal(1), falls), [Decimal(0)]
    for _ in range(most):
        rising = PRECISION.add(PRECISION.multiply(grows, chances[-1]), lost)
        left = PRECISION.subtract(Decimal(1), PRECISION.add(chances[-1], lost))
        chances.append(min(rising, PRECISION.subtract(Decimal(1), PRECISION.multiply(falls, left)), Decimal(1)))
    return chances


def partitions(effort: float) -> Result:
    """Bins are named with the probabilities that epsilon and delta allow, exactly, also where a public call asks."""
    problems, tried = [], 0
    for paid in PAID:
        for weight, exactly in enumerate(kept(*paid, WEIGHTS)):
            tried += 2
            if misplaced(exactly, partial(_named, *paid, weight)):
                problems.append(f"a bin of weight {weight} is not named with probability {exactly:.6f}")
    each, law = max(round(BINS * effort), 1), kept(EPSILON, DELTA, 8)
    bin_ = np.arange(8 * each)
    views = protect(pl.DataFrame({"bin": np.repeat(bin_, bin_ % 8 + 1)}), BUDGET, delta="1/2", name="bins", version="1")
    named = views.map("bin").select(EPSILON, DELTA).bins["bin"].to_numpy()
    for weight in range(1, 9):
        hits, alarm = int(np.count_nonzero(named % 8 == weight - 1)), ALARM / 16
        expected = float(law[weight])
        if not chance(hits, each, alarm) <= expected <= 1 - chance(each - hits, each, alarm):
            problems.append(f"{hits:,} of {each:,} bins of weight {weight} are named, with probability {expected:.4f}")
    looked = f"probabilities at their borders, and {8 * each:,} bins of 1 to 8 records"
    return judged(tried + 8 * each, "bins", problems, looked, ALARM)


def _named(epsilon: Fraction, delta: Fraction, weight: int, words: Sequence[int]) -> bool:
    strings = Strings({depth: column(word) for depth, word in enumerate(words)})
    return bool(PartitionSelection(epsilon, delta).keep(strings, bins(1), np.array([weight]))[0])


def weighted(effort: float) -> Result:
    """Names of people who have many: whoever is alone stays hidden but for half of delta; who is not costs the rest."""
    problems, tried = [], 0
    for most in MOST:
        alone, shared = _published(most, max(round(PEOPLE * effort), 1))
        tried += alone[1] + sum(crowd for _, crowd in shared)
        if chance(*alone, ALARM / 4) > WIDE / 2:
            problems.append(f"of {alone[1]:,} people with {most} names of their own {alone[0]:,} are published, "
                            f"and half of delta {WIDE} allows {float(WIDE / 2):.3f} of them")  # fmt: skip
        problems += [f"{most} names: {problem}" for problem in _loss(shared)]
        if shared[-1][0] < 0.9 * shared[-1][1]:
            problems.append(f"{most} names: of those of {CROWD} people fewer than nine in ten are published")
    looked = f"people of {' and '.join(map(str, MOST))} names of their own, and names of 1 to {CROWD} people"
    return judged(tried, "names", problems, looked, len(MOST) * ALARM)


def _published(most: int, people: int) -> tuple[tuple[int, int], list[tuple[int, int]]]:
    """How many people, alone with so many names, have one that is published; and of names of 1, 2, ... people."""
    half = -(-people // 2)
    lonely = np.repeat(np.arange(people), most)
    of_people = np.repeat(np.arange(CROWD), half) + 1
    names = np.repeat(people * most + np.arange(CROWD * half), of_people)
    frame = pl.DataFrame({
        "user": np.concatenate([lonely, people + np.arange(len(names))]),
        "name": np.concatenate([np.arange(people * most), names]),
    })  # fmt: skip
    unit = users("user", at_most=most)
    views = protect(frame, BUDGET, delta="1/2", unit=unit, name=f"of {most}", version="1")
    selected = views.map("name").select(EPSILON, WIDE).bins["name"].to_numpy()
    alone = selected[selected < people * most] // most
    crowds = (selected[selected >= people * most] - people * most) // half
    hits = np.bincount(crowds, minlength=CROWD)
    return (len(np.unique(alone)), people), [(int(hit), half) for hit in hits]


def _loss(shared: Sequence[tuple[int, int]]) -> list[str]:
    """Where one person more of a name changes how likely it is published by more than epsilon and half of delta."""
    problems, alarm = [], ALARM / (8 * CROWD)
    grows, delta = math.exp(EPSILON), float(WIDE / 2)
    for number, (fewer, more) in enumerate(pairwise(shared), 1):
        for what, likely, rare in (("published", more, fewer), ("hidden", _others(fewer), _others(more))):
            least, most = chance(*likely, alarm), 1 - chance(*_others(rare), alarm)
            if least > grows * most + delta:
                problems.append(f"a name of {number + 1} people instead of {number} is {what} with probability "
                                f"{least:.3f} at least, instead of {most:.3f} at most")  # fmt: skip
    return problems


def _others(hits: tuple[int, int]) -> tuple[int, int]:
    return hits[1] - hits[0], hits[1]
