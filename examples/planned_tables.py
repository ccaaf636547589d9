"""A survey office buys the tables that it wants for the least error, and draws a public-use file from what it bought.

python -m examples.planned_tables [OUT.parquet]

Person-years in the form of the American Community Survey's public-use microdata (PUMS) are made up: 6,000 people are
asked in one to four years, so a person has several records, and the bound is four. What is wanted are eleven tables;
the plan says what to measure for them, before anything is charged: with Gaussian noise residuals, what each margin
tells beyond smaller ones. With the extra `mbi` a model is fitted to all that was measured, the last step of AIM and MST
(McKenna, Mullins, Sheldon, Miklau, PVLDB 15(11), 2022; McKenna, Miklau, Sheldon, JPC 11(3), 2021), and a file of
made-up records is drawn from it. It costs nothing more.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl

import wpinq
from wpinq.query.crosstabs.plan import PlannedTables, TablePlan

KINDS: dict[str, list[str]] = {
    "age": ["0-17", "18-34", "35-49", "50-64", "65+"],
    "sex": ["female", "male"],
    "schooling": ["none", "school", "degree"],
    "work": ["child", "none", "employed", "self-employed", "retired"],
    "income": ["none", "low", "middle", "high"],
    "region": [f"region {number}" for number in range(1, 9)],
}
TABLES = [*combinations(["age", "sex", "schooling", "work", "income"], 2), ("region", "work", "income")]
RHO = Fraction(1, 8)


def made_up(people: int = 6_000, seed: int = 38) -> pl.DataFrame:
    """A record for each year in which a person was asked."""
    rng = np.random.default_rng(seed)
    age, sex, region = rng.integers(0, 90, people), rng.integers(0, 2, people), rng.zipf(1.5, people) % 8
    able, years = rng.normal(size=people), rng.integers(1, 5, people)
    person = np.repeat(np.arange(people), years)
    year = np.arange(len(person)) - np.repeat(np.cumsum(years) - years, years)
    now = age[person] + year
    learned = able[person] + rng.normal(0, 0.3, len(person))
    schooling = np.where(now < 18, 0, np.digitize(learned, [-1.2, 0.5]))
    employed = rng.random(len(person)) < 0.5 + 0.15 * schooling
    work = np.select([now < 16, now > 66, ~employed], [0, 4, 1], 2 + (rng.random(len(person)) < 0.12))
    income = np.where(
        work < 2, rng.integers(0, 2, len(person)) * (work == 1), 1 + np.digitize(learned + sex[person] * 0.3, [-0.2, 1])
    )
    codes = {"age": np.digitize(now, [18, 35, 50, 65]), "sex": sex[person], "schooling": schooling, "work": work,
             "income": income, "region": region[person]}  # fmt: skip
    named = {name: pl.Series(KINDS[name]).gather(code) for name, code in codes.items()}
    return pl.DataFrame({"person": person, **named})


def planned(records: pl.DataFrame) -> TablePlan:
    """The plan for people of four records at most."""
    people = wpinq.protect(records, rho=1, unit=wpinq.users("person", at_most=4), name="survey")
    return wpinq.plan_tables(people, TABLES, categories=KINDS, other=None, rho=RHO, mechanism="gaussian")


def held(tables: PlannedTables, records: pl.DataFrame) -> tuple[int, int]:
    """How many intervals hold the true count, and how many there are."""
    hold = cells = 0
    for names, frame in tables.tables.items():
        true = frame.join(records.group_by(names).len(), on=names, how="left").fill_null(0)
        hold += true.filter(pl.col("len").is_between("low", "high")).height
        cells += true.height
    return hold, cells


def synthetic(tables: PlannedTables) -> pl.DataFrame:
    """Made-up records that agree with all that was measured, as nearly as a graphical model can."""
    from mbi.estimation import MirrorDescent

    from wpinq.tools.mbi import domain, marginals, table

    model = MirrorDescent().estimate(domain(tables.plan.categories), marginals(tables))
    return table(model.synthetic_data())


def distance(records: pl.DataFrame, others: pl.DataFrame) -> float:
    """How much of a wanted table is in another cell, on average over all tables."""
    shares = []
    for names in TABLES:
        pair = [frame.group_by(names).agg(share=pl.len() / frame.height) for frame in (records, others)]
        both = pair[0].join(pair[1], on=names, how="full").fill_null(0)
        shares.append(float((both["share"] - both["share_right"]).abs().sum()) / 2)
    return float(np.mean(shares))


def main(out: Path | None = None) -> None:
    """Print the plan, how its tables hold the truth, and how far a drawn file is from it."""
    records = made_up()
    plan = planned(records)
    print(plan)
    tables = plan.measure()
    hold, cells = held(tables, records)
    print(f"\n{hold} of {cells} intervals hold the truth; {0.95 * cells:.0f} are to be expected")
    print(tables.table(("schooling", "income")))
    if out is not None:
        drawn = synthetic(tables)
        drawn.write_parquet(out)
        print(f"{drawn.height:,} records drawn; of a table {distance(records, drawn):.2%} lie in another cell")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path, help="where to write drawn records; needs the extra mbi")
    main(parser.parse_args().out)
