"""Several answers about the same records agree: by exact least squares, never worse, and only where they may."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

import wpinq
from wpinq import Secret
from wpinq.errors import PlanError

PAGES, DAYS, KINDS = ["a", "b", "c"], ["mon", "tue"], [1, 2]
ROWS = [(f"u{number % 40}", PAGES[number % 3], DAYS[number % 7 % 2], KINDS[number % 5 % 2]) for number in range(300)]
KEYS = {"page": PAGES, "day": DAYS, "kind": KINDS}


def protected(seed=0, **more):
    columns = {"user": str, "page": str, "day": str, "kind": int}
    return wpinq.protect(ROWS, budget=10**5, columns=columns, secret=Secret(bytes([seed] * 32)), **more)


def asked(views, *keys, epsilon="0.2", where="", **more):
    by = ", ".join(keys)
    query = f"SELECT {by}{', ' if by else ''}COUNT(*) AS n FROM views{where}{' GROUP BY ' + by if by else ''}"
    cells = list(itertools.product(*(KEYS[key] for key in keys)))
    listed = {"keys": pl.DataFrame(cells, schema=list(keys), orient="row")} if keys else {}
    return wpinq.sql(query, {"views": views}, epsilon=epsilon, **listed, **more)


def by_matrices(sets, answers, epsilons):
    """Least squares over the table of all cells, by numpy."""
    cells = list(itertools.product(*KEYS.values()))
    place = list(KEYS)
    rows, values, weights = [], [], []
    for keys, answer, epsilon in zip(sets, answers, epsilons, strict=True):
        for row in answer.rows:
            rows.append(
                [all(cell[place.index(key)] == value for key, value in zip(keys, row, strict=False)) for cell in cells]
            )
            values.append(row[-1])
            weights.append(epsilon)
    matrix, weights = np.array(rows, float), np.array(weights)
    fitted = np.linalg.lstsq(matrix * weights[:, None], np.array(values) * weights, rcond=None)[0]
    return matrix @ fitted


@pytest.mark.parametrize(
    "sets",
    [[(), ("page",)], [("page",), ("day",)], [("page", "day"), ("kind",), ()], [("page", "day"), ("day", "kind")],
     [("page",), ("page",), ("page", "day", "kind")]],
)  # fmt: skip
def test_they_are_the_nearest_numbers_that_agree_each_by_the_width_of_its_noise(sets):
    views = protected()
    epsilons = [0.25 * 2**index for index in range(len(sets))]
    answers = [asked(views, *keys, epsilon=epsilon, name=f"{index}" if index else None)
               for index, (keys, epsilon) in enumerate(zip(sets, epsilons, strict=True))]  # fmt: skip
    left = views.left
    moved = wpinq.consistent(*answers)
    found = np.concatenate([[row[-1] for row in answer.rows] for answer in moved])
    assert found == pytest.approx(by_matrices(sets, answers, epsilons), abs=1e-6)
    assert views.left == left
    for before, after in zip(answers, moved, strict=True):
        assert after.intervals == before.intervals
        assert after.cost == before.cost
        assert "counts were moved to add up" in after.bias


def test_errors_never_add_up_to_more_and_mostly_to_less():
    sets, better = [("page", "day"), ("page",), ("day",), ()], 0
    for seed in range(20):
        views = protected(seed)
        answers = [asked(views, *keys) for keys in sets]
        truths = [[sum(all(row[list(KEYS).index(key) + 1] == value for key, value in zip(keys, group, strict=False))
                       for row in ROWS) for group in answer.rows]
                  for keys, answer in zip(sets, answers, strict=True)]  # fmt: skip
        errors = [sum((row[-1] - true) ** 2 for answer, true_of in zip(some, truths, strict=True)
                      for row, true in zip(answer.rows, true_of, strict=True))
                  for some in (answers, wpinq.consistent(*answers))]  # fmt: skip
        assert errors[1] <= errors[0] + 1e-6
        better += errors[1] < 0.9 * errors[0]
    assert better >= 15


def test_people_who_are_bounded_alike_are_the_same_records():
    views = protected(unit=wpinq.users("user", at_most=3))
    pages, days = wpinq.consistent(asked(views, "page"), asked(views, "day"))
    assert sum(row[-1] for row in pages) == pytest.approx(sum(row[-1] for row in days))
    with pytest.raises(PlanError, match="count different records"):
        wpinq.consistent(asked(views, "page"), asked(views.at_most(2), "day"))


def test_what_need_not_agree_is_refused():
    views, other = protected(), protected(1)
    pages, days = asked(views, "page"), asked(views, "day")
    for wrong in (asked(views, "day", where=" WHERE kind = 1"), asked(other, "day")):
        with pytest.raises(PlanError, match="count different records"):
            wpinq.consistent(pages, wrong)
    computed = wpinq.sql("SELECT UPPER(page) AS big, COUNT(*) AS n FROM views GROUP BY UPPER(page)", {"views": views},
                         epsilon=1, keys=["A", "B", "C"])  # fmt: skip
    two = wpinq.sql("SELECT page, COUNT(*) AS n, SUM(kind) AS s FROM views GROUP BY page", {"views": views}, epsilon=1,
                    keys=PAGES, bounds={"kind": (1, 2)})  # fmt: skip
    cube = wpinq.sql("SELECT page, COUNT(*) AS n FROM views GROUP BY ROLLUP(page)", {"views": views}, epsilon=1,
                     keys=[*((page, 0) for page in PAGES), (None, 1)])  # fmt: skip
    for answers, why in (
        ((pages,), "two answers"), ((pages, "days"), "two answers"), ((computed, days), "a key is computed"),
        ((two, days), "only counts"), ((cube, days), "one set of keys"),
    ):  # fmt: skip
        with pytest.raises(PlanError, match=why):
            wpinq.consistent(*answers)
    with pytest.raises(PlanError, match="or give several answers"):
        days.consistent()


def test_keys_and_numbers_of_the_query_stay_its_own():
    views = protected()
    pages = wpinq.sql("SELECT page AS p, COUNT(*) AS n FROM views GROUP BY page HAVING COUNT(*) > 0 ORDER BY n DESC"
                      " LIMIT 2", {"views": views}, epsilon=100, keys=PAGES)  # fmt: skip
    moved, total = wpinq.consistent(pages, asked(views, epsilon=100))
    assert [row[0] for row in moved.rows] == ["a", "b"] or {row[0] for row in moved.rows} <= set(PAGES)
    assert moved.columns == ("p", "n")
    assert len(moved.rows) == 2
    assert total.value == pytest.approx(300, abs=1)
