"""A statistics office asks a survey: counts, means and medians by region, and which clinics who visited.

python -m examples.statistician OUT

10,000 persons and their visits of 40 clinics are made up, so the truth may be shown. Clinics are public. What one
person said and did is protected, in both tables: of persons there is one record, of visits a bound is chosen privately.
Two answers to "how many visits" stand side by side:

- weighed: `join` pairs what needs no bound, and weighs pairs so that a person cannot count for much. No pair is lost,
  and what comes out is no number of visits.
- counted: both tables bound how many records a person has, so SQL's JOIN counts rows, with noise for the bound.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import wpinq

REGIONS, KINDS, BANDS = ["north", "east", "south", "west"], ["eye", "bone", "skin", "child"], [20, 30, 40, 50, 60, 70]
BOUNDS = {"income": (0, 120_000)}
MEANS = (
    "SELECT region, floor(age / 10) * 10 AS band, COUNT(*) AS persons, AVG(income) AS income FROM persons GROUP BY 1, 2"
)
MEDIANS = "SELECT region, MEDIAN(income) AS income FROM persons GROUP BY region"
VISITS = """SELECT region, kind, COUNT(*) AS visits FROM visits JOIN persons ON visits.person = persons.person
JOIN clinics ON visits.clinic = clinics.clinic GROUP BY region, kind"""


def made_up(persons: int = 10_000, seed: int = 4) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Persons, visits, and the clinics that they visited."""
    rng = np.random.default_rng(seed)
    person = np.arange(persons)
    region = rng.choice(4, persons, p=[0.4, 0.3, 0.2, 0.1])
    age = rng.integers(20, 80, persons)
    income = rng.lognormal(10.2 + 0.1 * region + 0.004 * (age - 20), 0.5)
    who = np.repeat(person, rng.poisson(rng.gamma(1.2, 2, persons) * (0.4 + age / 80)))
    clinics = pl.DataFrame({"clinic": range(40), "kind": KINDS * 10})
    named = pl.Series(REGIONS)[region]
    people = pl.DataFrame({"person": person, "region": named, "age": age, "income": income.round(2)})
    visits = pl.DataFrame({"person": who, "clinic": (rng.zipf(1.3, len(who)) - 1) % 40})
    return people, visits, clinics


def cells(*columns: tuple[str, Iterable[object]]) -> pl.DataFrame:
    """All combinations of values."""
    first, *others = (pl.DataFrame({name: values}) for name, values in columns)
    for other in others:
        first = first.join(other, how="cross")
    return first


def show(answer: wpinq.Answer, truth: pl.DataFrame, number: str, shown: int = 4) -> None:
    """Print some answers beside the truth, and of how many the interval holds it."""
    names = [name for name in answer.columns if name in truth.columns and name != number]
    both = answer.frame.join(truth.rename({number: "truth"}), on=names, how="left").fill_null(0)
    ends = ("low", "high") if "low" in both.columns else (f"{number}_low", f"{number}_high")
    noisy, low, high, true = (both[name] for name in (number, *ends, "truth"))
    print(f"\n{' '.join(names):<14}{number:>10}{'from':>10}{'to':>10}{'truth':>10}")
    for row in range(shown):
        values = "".join(f"{column[row]:>10,.0f}" for column in (noisy, low, high, true))
        print(f"{' '.join(str(both[name][row]) for name in names):<14}{values}")
    held = ((low <= true) & (true <= high)).sum()
    print(f"{held} of {both.height} intervals of {number} hold the truth, at 95% each")


def main(out: Path) -> None:
    """Ask the survey, and print the answers beside the truth."""
    people, visited, clinics = made_up()
    persons = wpinq.protect(people, budget=4, unit=wpinq.users("person", at_most=1), name="persons")
    try:
        persons.map(lambda region: region.uper())
    except wpinq.PlanError as error:
        print("a misspelt method, before anything is charged:", error)
    groups = cells(("region", REGIONS), ("band", BANDS))
    means = wpinq.sql(MEANS, {"persons": persons}, epsilon=1, keys=groups, bounds=BOUNDS)
    banded = people.with_columns(band=pl.col("age") // 10 * 10).group_by("region", "band")
    show(means, banded.agg(persons=pl.len()), "persons")
    show(means, banded.agg(pl.col("income").mean()), "income")
    medians = wpinq.sql(MEDIANS, {"persons": persons}, epsilon=1, keys=REGIONS, bounds=BOUNDS)
    show(medians, people.group_by("region").agg(pl.col("income").median()), "income")
    means.save(out / "means.csv")
    many = persons.filter("income > 50000").count(within=50)
    true = people.filter(pl.col("income") > 50_000).height
    print(f"\nwith over 50,000: {many.value:,.0f} +- 50, truth {true:,}, for epsilon {many.cost['epsilon']:.3f}")

    unit = wpinq.users("person", at_most=1000)  # any number will do to choose a bound by
    bound = wpinq.suggest_bound(wpinq.protect(visited, budget=1, unit=unit, name="bound"), epsilon=1, share=0.99)
    visits = wpinq.protect(visited, budget=4, unit=wpinq.users("person", at_most=bound), name="visits")
    told = wpinq.loss(visits, epsilon=1).rows
    print(f"\nat most {bound} visits of a person; left out: " + ", ".join(f"{what} {n:,.0f}" for what, n in told))
    asked = {"visits": visits, "persons": persons, "clinics": clinics}
    pairs = cells(("region", REGIONS), ("kind", KINDS))
    counted = wpinq.sql(VISITS, asked, epsilon=1, keys=pairs)
    whole = visited.join(people, on="person").join(clinics, on="clinic")
    truth = whole.group_by("region", "kind").agg(visits=pl.len())
    show(counted, truth, "visits")
    weighed = weigh(visits, persons, clinics)
    print("weighed, those are", ", ".join(f"{one:,.0f}" for one in weighed.observe_many(pairs.rows()[:4])))


def weigh(visits: wpinq.Collection, persons: wpinq.Collection, clinics: pl.DataFrame) -> wpinq.Measurement:
    """The weighted join of the two tables, by region and kind."""
    kinds: dict[Any, Any] = dict(clinics.iter_rows())
    joined = visits.join(persons, on="person", result=lambda clinic, region: (region, clinic))
    columns = {"region": str, "kind": str}
    return joined.map(lambda region, clinic: (region, kinds[clinic]), columns=columns).measure(epsilon=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="a new directory for the table")
    options = parser.parse_args()
    options.out.mkdir(parents=True)
    main(options.out)
