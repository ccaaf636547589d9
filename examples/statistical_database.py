"""A statistical database, attacked: what three sets of queries tell with privacy off and on.

python -m examples.statistical_database

Ten thousand made-up people. The attacker may only count, and asks about one person: her age by the
difference of two counts, the age and income of the richest, and whether somebody is in the data. With privacy off the
reference engine gives true counts; with it on, each question costs epsilon 0.1 and is answered with noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from fractions import Fraction

import numpy as np

import wpinq
from wpinq.engines import reference
from wpinq.plan import Source, steps

PEOPLE, EPSILON = 10_000, Fraction(1, 10)
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


def neighbours(table: Table, place: int, but: str | None) -> Table:
    """The ages of those who live in a place: zip = 80127 AND name <> 'Abel Woods'."""
    return table.filter(lambda zip, name: zip == place and name != but).map(lambda age: age)  # noqa: A006


def ages_of_the_richest(table: Table, counts: Counts, targets: list[Person]) -> list[bool]:
    """The last income that anybody has, in steps of 10,000, and the age of those who have it."""
    incomes = table.map(lambda income: income // STEP, columns={"step": int})
    last = [int(np.flatnonzero(row >= 1)[-1]) for row in counts([incomes] * len(targets), list(range(TOP)))]
    rich = [at_least(table, step * STEP) for step in last]
    ages = counts(rich, list(AGES)).argmax(axis=1)
    wanted = [(int(person[2] // STEP), person[1]) for person in targets]
    return [(step, AGES[age]) == right for step, age, right in zip(last, ages, wanted, strict=True)]


def at_least(table: Table, income: int) -> Table:
    """The ages of those who have an income, or more."""
    least = income
    return table.filter(lambda income: income >= least).map(lambda age: age)


def are_in(table: Table, counts: Counts, targets: list[Person]) -> list[bool]:
    """Whether anybody of a name lives in a place; every other name is made up."""
    names = [person[0] + "!" * (place % 2) for place, person in enumerate(targets)]
    found = [called(table, name) for name in names]
    return [(count >= 0.5) == (place % 2 == 0) for place, count in enumerate(counts(found, [1])[:, 0])]


def called(table: Table, who: str) -> Table:
    """How many people have a name: 1 or 0."""
    return table.filter(lambda name: name == who).map(lambda name: 1)


def truly(records: list[Person]) -> Counts:
    """True counts, by the reference engine."""
    weighed = reference.weigh(records)

    def counts(collections: list[Table], bins: list[int]) -> np.ndarray:
        found = []
        for collection in collections:
            (source,) = [node for node in steps(collection._node) if isinstance(node, Source)]
            weights = reference.run(collection._node, {source: weighed})
            found.append([float(weights.get((one,), 0)) for one in bins])
        return np.array(found)

    return counts


def privately(collections: list[Table], bins: list[int]) -> np.ndarray:
    """Noisy counts; every attempt is charged anew, and all of them are computed in one pass."""
    asked = [one.measure(EPSILON, name=f"attempt {attempt}") for attempt, one in enumerate(collections)]
    return np.array([one.observe_many(bins) for one in asked])


ATTACKS = {
    "her age, by a difference": (ages_of, f"1 of {len(AGES)}"),
    "the richest, age and income": (ages_of_the_richest, f"1 of {len(AGES) * TOP:,}"),
    "is she in the data": (are_in, "1 of 2"),
}


def main(attempts: int) -> None:
    """Attack with privacy off, once, for there is no chance in it; and with privacy on, as often as asked."""
    records = people()
    richest = max(records, key=lambda person: person[2])
    true = truly(records)
    table = wpinq.protect(records, budget=10**6, columns=COLUMNS)
    print(
        f"{PEOPLE:,} people; how often the attacker is right, in {attempts:,} attempts, epsilon {EPSILON} a question:\n"
    )
    print(f"   {'question':<30}{'privacy off':>12}{'privacy on':>12}{'a blind guess':>16}")
    for name, (attack, guess) in ATTACKS.items():
        targets = [richest] * attempts if attack is ages_of_the_richest else records[:attempts]
        off, on = attack(table, true, targets[:1]), attack(table, privately, targets)
        print(f"   {name:<30}{np.mean(off):>12.0%}{np.mean(on):>12.1%}{guess:>16}")
    half = table.map("zip").measure(EPSILON).interval(Fraction(9, 10))
    print(f"\nCounts of many people are hardly touched: nine in ten are within {half:g} of the truth.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=50, help="1,000 take some minutes")
    main(parser.parse_args().attempts)
