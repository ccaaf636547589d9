"""A statistical database, attacked: what three sets of queries tell with privacy off and on.

python -m examples.statistical_database OUT --attempts 1000

Ten thousand made-up people. The attacker may only count, and asks about one person: her age by the difference of two
counts, the age and income of the richest, and whether somebody is in the data. With privacy off the reference engine
gives true counts; with it on, each question costs epsilon 0.1 and is answered with noise.

What no attacker can exceed follows from epsilon. Whether she is in the data is a matter of one record, so an answer
favours the truth by e^0.1 at most: right in e^0.1 / (1 + e^0.1) of attempts. Another age is one record less and one
more, hence e^0.2 / (47 + e^0.2), where a blind guess is right in 1 / 48. Each attempt is judged by itself. Many on one
person could be averaged, but each is charged: that is what a budget refuses, and here it is raised out of the way.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np

import wpinq
from wpinq.core.engines import reference
from wpinq.core.plan.node import Source, steps

PEOPLE, TARGETS, EPSILON = 10_000, 20, Fraction(1, 10)
FIRST = ("Abel", "Ann", "Bob", "Cid", "Dee", "Eve", "Fay", "Gus", "Hal", "Ida")
LAST = ("Woods", "Stone", "Rivers", "Hill", "Field", "Marsh", "Lake", "Brook", "Ford", "Dale")
COLUMNS = {"name": str, "age": int, "income": float, "zip": int, "worth": float}
AGES, STEP, TOP = range(18, 66), 10_000, 200
Person = tuple[str, int, float, int, float]
Table = wpinq.Collection
Counts = Callable[[list[Table], list[int]], np.ndarray]


def people(seed: int = 1) -> list[Person]:
    """Names that are unique, ages 18 to 65, log-normal incomes, forty zip codes, net worths."""
    random = np.random.default_rng(seed)
    ages, zips = random.integers(18, 66, PEOPLE), 80_100 + random.integers(0, 40, PEOPLE)
    incomes, worths = random.lognormal(11, 0.6, PEOPLE), random.lognormal(12, 1, PEOPLE)
    names = [f"{FIRST[i % 10]} {LAST[i // 10 % 10]} {i // 100}".removesuffix(" 0") for i in range(PEOPLE)]
    found = zip(names, ages.tolist(), incomes.round(2).tolist(), zips.tolist(), worths.round(2).tolist(), strict=True)
    return list(found)


def ages_of(table: Table, counts: Counts, targets: list[Person]) -> list[bool]:
    """A person's age is the bin in which the counts with and without her differ most."""
    near = [neighbours(table, person[3], None) for person in targets]
    others = [neighbours(table, person[3], person[0]) for person in targets]
    differences = counts(near, list(AGES)) - counts(others, list(AGES))
    return [AGES[guess] == person[1] for guess, person in zip(differences.argmax(axis=1), targets, strict=True)]


@cache
def neighbours(table: Table, place: int, but: str | None) -> Table:
    """The ages of those who live in a place: zip = 80127 AND name <> 'Abel Woods'."""
    near = living(table, place)
    return (near if but is None else near.filter(lambda name: name != but)).map(lambda age: age)


@cache
def living(table: Table, place: int) -> Table:
    """Those who live in a place."""
    return table.filter(lambda zip: zip == place)  # noqa: A006


def ages_of_the_richest(table: Table, counts: Counts, targets: list[Person]) -> list[bool]:
    """The last income that anybody has, in steps of 10,000, and the age of those who have it."""
    incomes = table.map(lambda income: income // STEP, columns={"step": int})
    last = [int(np.flatnonzero(row >= 1)[-1]) for row in counts([incomes] * len(targets), list(range(TOP)))]
    rich = [at_least(table, step * STEP) for step in last]
    ages = counts(rich, list(AGES)).argmax(axis=1)
    wanted = [(int(person[2] // STEP), person[1]) for person in targets]
    return [(step, AGES[age]) == right for step, age, right in zip(last, ages, wanted, strict=True)]


@cache
def at_least(table: Table, income: int) -> Table:
    """The ages of those who have an income, or more."""
    least = income
    return table.filter(lambda income: income >= least).map(lambda age: age)


def are_in(table: Table, counts: Counts, targets: list[Person]) -> list[bool]:
    """Whether there is anybody of a name; every other name is made up."""
    names = [person[0] + "!" * (place % 2) for place, person in enumerate(targets)]
    found = counts([called(table, name) for name in names], [1])[:, 0]
    return [(count >= 0.5) == (place % 2 == 0) for place, count in enumerate(found)]


@cache
def called(table: Table, who: str) -> Table:
    """How many people have a name: 1 or 0."""
    return table.filter(lambda name: name == who).map(lambda name: 1)


def truly(records: list[Person]) -> Counts:
    """True counts, by the reference engine; there is no chance in it, so each plan is run once."""
    weighed = reference.weigh(records)

    def counts(collections: list[Table], bins: list[int]) -> np.ndarray:
        roots = [one._node for one in collections]
        (source,) = [node for node in steps(*roots) if isinstance(node, Source)]
        weights = reference.run_reference(roots, {source: weighed})
        return np.array([[float(one.get((value,), 0)) for value in bins] for one in weights])

    return counts


def privately(collections: list[Table], bins: list[int]) -> np.ndarray:
    """Noisy counts; every attempt is charged, named and drawn by itself, and all of them are computed in one pass."""
    asked = [one.measure(EPSILON, name=f"attempt {attempt}") for attempt, one in enumerate(collections)]
    return np.array([one.observe_many(bins) for one in asked])


def most(epsilon: Fraction, others: int) -> float:
    """How often any attacker can be right, who would guess blindly among one right and some other answers."""
    favour = math.exp(epsilon)
    return favour / (others + favour)


AGE = most(2 * EPSILON, len(AGES) - 1)
ATTACKS = {
    "her age, by a difference": (ages_of, 1 / len(AGES), AGE),
    "the richest, age and income": (ages_of_the_richest, 1 / (len(AGES) * TOP), AGE),
    "is she in the data": (are_in, 1 / 2, most(EPSILON, 1)),
}


def main(out: Path, attempts: int) -> None:
    """Attack with privacy off and on, print how often the attacker is right, and draw it."""
    records = people()
    richest = max(records, key=lambda person: person[2])
    true = truly(records)
    table = wpinq.protect(records, budget=10**6, columns=COLUMNS)
    print(f"{PEOPLE:,} people, of whom {TARGETS} are attacked in turn, and the richest always. How often the attacker")
    print(f"is right, in {attempts:,} attempts of each kind, at epsilon {float(EPSILON)} a question:\n", flush=True)
    print(f"   {'question':<29}{'privacy off':>12}{'privacy on':>12}{'blind guess':>13}{'at most, on':>13}")
    found = {}
    for name, (attack, guess, bound) in ATTACKS.items():
        chosen = [richest if attack is ages_of_the_richest else records[i % TARGETS] for i in range(attempts)]
        found[name] = [float(np.mean(attack(table, counts, chosen))) for counts in (true, privately)] + [guess]
        off, on, _ = found[name]
        print(f"   {name:<29}{off:>12.0%}{on:>12.1%}{guess:>13.2%}{bound:>13.1%}", flush=True)
    half = table.map("zip").measure(EPSILON).interval(Fraction(9, 10))
    print(f"\nCounts of many people are hardly touched: nine in ten are within {half:g} of the truth. The last column")
    print("is what epsilon allows the best attacker there could be, apart from luck in a finite number of attempts.")
    out.mkdir(parents=True, exist_ok=True)
    _draw(found, out / "statistical_database.png")
    print(f"The picture is {out / 'statistical_database.png'}.")


def _draw(found: dict[str, list[float]], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
    looks = (("privacy off", "#c44e52"), ("privacy on", "#4c72b0"), ("blind guess", "#bbbbbb"))
    for place, (label, colour) in enumerate(looks):
        heights = [100 * rates[place] for rates in found.values()]
        bars = axes.bar(np.arange(len(found)) + (place - 1) * 0.27, heights, 0.25, label=label, color=colour)
        axes.bar_label(bars, [f"{height:.3g}%" for height in heights], padding=2, fontsize=8)
    axes.set(xticks=range(len(found)), xticklabels=list(found), ylabel="attempts that are right, %", ylim=(0, 112))
    axes.set_yticks(range(0, 101, 25))
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, ncols=3, loc="outside upper center")
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="directory for the picture")
    parser.add_argument("--attempts", type=int, default=1000, help="of each kind (default: 1,000, under a minute)")
    options = parser.parse_args()
    main(options.out, options.attempts)
