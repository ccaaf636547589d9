"""Small cells of a table are hidden in seven ways and found again by seven attacks; then they are told with noise.

python -m examples.small_cells

835 pupils of four schools and the support that they get are made up, so the truth may be shown. A table is counts with
their totals in the last row and the last column; a hidden number is NaN. Attacks read published numbers alone.

Sources: linear bounds of hidden cells are Cox, "Suppression methodology and statistical disclosure control", JASA 75,
1980; averages over splits are Asghar, Kaafar, "Averaging attacks on bounded noise-based disclosure control algorithms",
PoPETs 2020(2); groups that are alike are Machanavajjhala et al., "l-diversity", ICDE 2006. `bounds` needs SciPy.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.optimize import LinearConstraint, milp

import wpinq

Table: TypeAlias = npt.NDArray[np.float64]
Count: TypeAlias = Callable[[pl.DataFrame], int]

SCHOOLS = ["North", "East", "South", "West"]
SUPPORT = ["none", "reading", "hearing", "sight", "care"]
COUNTS = np.array([[212, 6, 8, 14, 22], [180, 9, 12, 3, 17], [145, 31, 24, 7, 7], [96, 18, 14, 8, 2]], float)
QUERY = "SELECT school, support, COUNT(*) AS pupils FROM pupils GROUP BY CUBE (school, support)"


def made_up(seed: int = 38) -> pl.DataFrame:
    """A row for each pupil. Of East, all pupils with support for hearing are in one class."""
    rng, cells = np.random.default_rng(seed), list(product(SCHOOLS, SUPPORT))
    of = np.repeat(np.arange(len(cells)), COUNTS.ravel().astype(int))
    school, support = (pl.Series([cells[cell][part] for cell in of]) for part in (0, 1))
    age, day = rng.integers(6, 18, len(of)), rng.integers(1, 366, len(of))
    classes = [f"{chr(65 + (number - 6) // 4)}" if cells[cell] != ("East", "hearing") else "H"
               for cell, number in zip(of, age, strict=True)]  # fmt: skip
    return pl.DataFrame(
        {"pupil": np.arange(len(of)), "school": school, "support": support, "class": classes, "age": age, "day": day}
    )


def counted(pupils: pl.DataFrame) -> Table:
    """The exact table of pupils, with totals."""
    cells = [pupils.filter(school=school, support=support).height for school, support in product(SCHOOLS, SUPPORT)]
    whole = np.array(cells, float).reshape(len(SCHOOLS), len(SUPPORT))
    whole = np.vstack([whole, whole.sum(axis=0)])
    return np.hstack([whole, whole.sum(axis=1, keepdims=True)])


def shown(table: Table) -> pl.DataFrame:
    """A table with its names, to print."""
    frame = pl.DataFrame({"school": [*SCHOOLS, "all"]})
    columns = zip([*SUPPORT, "all"], table.T, strict=True)
    return frame.with_columns(pl.Series(name, part).fill_nan(None).cast(pl.Int64) for name, part in columns)


# What is done by hand


def suppressed(table: Table, least: int = 10, also: Iterable[tuple[int, int]] = ()) -> Table:
    """The table without numbers below a threshold, and without others, so that those cannot be subtracted."""
    hidden = table < least
    for place in also:
        hidden[place] = True
    return np.where(hidden, np.nan, table)


def rounded(table: Table, base: int = 5) -> Table:
    """Each number, by itself, as the nearest multiple."""
    return np.asarray(np.rint(table / base) * base)


def randomly_rounded(table: Table, rng: np.random.Generator, base: int = 5) -> Table:
    """Each number as the multiple below or above it, by chance, and right on average."""
    return np.asarray((np.floor(table / base) + (rng.random(table.shape) < table / base % 1)) * base)


def swapped(pupils: pl.DataFrame, share: float, rng: np.random.Generator) -> pl.DataFrame:
    """A share of the pupils have exchanged their schools; all totals stay."""
    chosen = rng.permutation(pupils.height)[: round(share * pupils.height)]
    schools = pupils["school"].to_numpy().copy()
    schools[chosen] = schools[rng.permutation(chosen)]
    return pupils.with_columns(school=pl.Series(schools))


def at_least_ten(pupils: pl.DataFrame) -> int:
    """How many there are, refused below ten."""
    if pupils.height < 10:
        raise ValueError("fewer than ten")
    return pupils.height


def cell_keys(seed: int = 1) -> Count:
    """A count with noise of -2 to 2 that the keys of its records decide: the same pupils, the same noise; 0 stays 0."""
    keys = np.random.default_rng(seed).integers(0, 2**32, 10_000)

    def count(pupils: pl.DataFrame) -> int:
        cell = int(keys[pupils["pupil"].to_numpy()].sum()) % 2**32
        noise = int(np.random.default_rng(cell).integers(-2, 3))
        return max(0, pupils.height + noise) if pupils.height else 0

    return count


# What it leaks


def subtract(table: Table) -> Table:
    """Fill in each number that alone is hidden in its row or column, as long as there is one."""
    found = table.copy()
    for line in [*found, *found.T] * table.size:
        hidden = np.isnan(line)
        if hidden.sum() == 1:
            signs = np.append(np.ones(len(line) - 1), -1)  # the parts, less their total, are zero
            line[hidden] = -signs[hidden] * (signs * line)[~hidden].sum()
    return found


def between(table: Table, off: float = 0) -> tuple[Table, Table]:
    """What a published table says of each number: how far it can be off, and of a hidden one nothing."""
    return np.maximum(0, np.nan_to_num(table - off, nan=0)), np.nan_to_num(table + off, nan=np.inf)


def bounds(low: Table, high: Table) -> tuple[Table, Table]:
    """The least and the largest whole number that each can be, where each lies between two and all add up."""
    rows, columns = (np.vstack([np.eye(size - 1), np.ones(size - 1)]) for size in low.shape)
    sums = np.kron(rows, columns)  # for each number of the table, the cells that it is the sum of
    known = LinearConstraint(sums, low.ravel(), high.ravel())
    least, most = (
        [sign * milp(sign * parts, constraints=known, integrality=np.ones(len(parts))).fun for parts in sums]
        for sign in (1, -1)
    )
    return np.rint(least).reshape(low.shape), np.rint(most).reshape(low.shape)


def newcomer(before: Table, after: Table) -> tuple[str, str]:
    """The school and the support of the one pupil whom two versions of a table differ by, from their totals."""
    moved = after - before
    (row,), (column,) = np.flatnonzero(moved[:-1, -1]), np.flatnonzero(moved[-1, :-1])
    return SCHOOLS[row], SUPPORT[column]


def averaged(ask: Callable[[], Table], times: int) -> Table:
    """The mean of what is told when the same is asked again and again."""
    return np.asarray(np.rint(np.mean([ask() for _ in range(times)], axis=0)))


def split(count: Count, pupils: pl.DataFrame, column: str) -> int:
    """A count as the mean over many ways to cut its records in two by a column: each cut has noise of its own."""
    cuts = pupils[column].unique().sort()[1:]
    sums = [count(pupils.filter(pl.col(column) < cut)) + count(pupils.filter(pl.col(column) >= cut)) for cut in cuts]
    return round(float(np.mean(sums)))


def differenced(count: Count, pupils: pl.DataFrame, column: str, first: int, second: int) -> int:
    """How many more are told below one end of a band than below another."""
    wide, narrow = (count(pupils.filter(pl.col(column) < end)) for end in (second, first))
    return wide - narrow


def alike(pupils: pl.DataFrame, k: int, by: Iterable[str] = ("school", "class")) -> pl.DataFrame:
    """Groups of k pupils or more who all get the same support: whoever is known to be in one has no secret left."""
    groups = pupils.group_by(*by).agg(pl.len().alias("pupils"), pl.col("support").unique())
    return groups.filter(pl.col("pupils") >= k, pl.col("support").list.len() == 1).explode("support")


def real(pupils: pl.DataFrame, published: pl.DataFrame, least: int = 10) -> float:
    """Of the pupils whom a swapped table has in cells below a number, the share who are in them in truth."""
    cell = ["school", "support"]
    few = published.join(published.group_by(cell).len().filter(pl.col("len") < least), on=cell)
    return few.join(pupils, on=["pupil", *cell]).height / few.height


# Instead


def keys() -> list[tuple[str | None, str | None, int]]:
    """Every cell and total with its GROUPING, whether anybody is in it or not: what could be there is public."""
    cells = product([*SCHOOLS, None], [*SUPPORT, None])
    return [(school, support, 2 * (school is None) + (support is None)) for school, support in cells]


def attacked(pupils: pl.DataFrame) -> None:
    """Print what each attack finds."""
    table, rng = counted(pupils), np.random.default_rng(5)
    hidden, more = suppressed(table), suppressed(table, also=[(1, 2)])
    found = np.isnan(hidden) & ~np.isnan(subtract(hidden))
    least, most = bounds(*between(more))
    print(f"suppressed below ten: {found.sum()} of {np.isnan(hidden).sum()} cells by subtraction")
    print(
        f"one cell more suppressed: {np.isnan(more).sum() - np.isnan(subtract(more)).sum()} by subtraction, by bounds:"
    )
    for row, column in np.argwhere(np.isnan(more)):
        print(f"  {SCHOOLS[row]} {SUPPORT[column]}: {least[row, column]:.0f} to {most[row, column]:.0f}")
    least, most = bounds(*between(rounded(table), off=2))
    print(f"rounded to fives: {(least == most)[:-1, :-1].sum()} cells are known exactly")
    wrong = averaged(lambda: randomly_rounded(table, rng), 400) != table
    print(f"rounded at random, 400 times: {wrong.sum()} of {table.size} numbers are not known exactly")
    share = np.mean([real(pupils, swapped(pupils, 0.1, rng)) for _ in range(50)])
    print(f"a tenth swapped: {share:.0%} of the pupils in small cells are truly there")
    west, count = pupils.filter(school="West"), cell_keys()
    others = west.filter(pl.col("support") != "care")
    print(f"cell keys: West {split(count, west, 'day')}, without care {split(count, others, 'day')}")
    helped = west.filter(pl.col("support") != "none")
    print(f"two bands of age: {differenced(at_least_ten, helped, 'age', 10, 11)} of ten years")
    print(f"ten alike: {alike(pupils, 10).rows()}")


def main() -> None:
    """Print what each attack finds, and then the table with noise beside the truth."""
    pupils = made_up()
    print("the truth", shown(counted(pupils)), sep="\n")
    attacked(pupils)
    table = wpinq.protect(pupils, budget=2, unit=wpinq.users("pupil", at_most=1), name="pupils")
    answer = wpinq.sql(QUERY, {"pupils": table}, epsilon=2, keys=keys())
    print("\nwith noise, at epsilon 2")
    told, added = answer.frame, answer.consistent().frame["pupils"]
    columns = [told["school"].fill_null("all"), told["support"].fill_null("all"), told["low"], told["high"], added]
    for school, support, low, high, number, true in zip(*columns, counted(pupils).flat, strict=True):
        print(f"{school:<6} {support:<8} {number:7.1f}, between {max(0, low):4.0f} and {high:4.0f}; truth {true:4.0f}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
