"""One person in several tables of one ledger: what all answers together lose is at most what the ledger shows.

Random programs over two tables of the same people are tried with and without one person, whose records change in one
or in both at once. In exact arithmetic: the movement of each true histogram over the scale of its noise is the privacy
loss of its answer, and the ledger was charged for all of them.
"""

import random
from fractions import Fraction

import pytest
from attacks.test_joint_loss import COLUMNS, LINEAR, MEETING, ONE, follow, ledger_of
from depth import thin

import wpinq
from wpinq.collection import Collection
from wpinq.testing import evaluate
from wpinq.testing.evaluation import leaves

SEEDS, TRIALS = 8, 4
UNITS = [{"at_most": 1}, {"at_most": 2}, {"at_most": 3, "per": ("page", 1)}, {"at_most": 4}, {"shared": True}]
TRIPLE = {"user": str, "page": int, "time": int}


def paired(how, on):
    def rows(one, other):
        return one.join_rows(other, on=on, how=how).map(lambda user, page, time: (user, page, time), columns=TRIPLE)

    return rows


def other_columns(one, other):
    """Rows by the columns of the second table, which are None where there is no partner."""
    rows = one.join_rows(other.map("user, page as p, time as t"), on="user", how="left")
    return rows.map(lambda user, p, t: (user, p or 7, t or 7), columns=TRIPLE)


TWO = {
    "join_rows": paired("inner", "user"),
    "join_rows by page": paired("inner", ["user", "page"]),
    "left": other_columns,
    "left by page": paired("left", ["page", "user"]),
    "join": lambda one, other: one.join(other, on="user", result=lambda user, page, time: (user, page, time)),
    "join by page": lambda one, other: one.join(other, on="page", result=lambda user, page, time: (user, page, time)),
    "concat": lambda one, other: one.concat(other),
    "subtract": lambda one, other: one.subtract(other),
    "union": lambda one, other: one.union(other),
    "intersect": lambda one, other: one.intersect(other),
    "semijoin": lambda one, other: one.semijoin(other, on="user"),
    "antijoin": lambda one, other: one.antijoin(other, on="page"),
    "limited": lambda one, other: paired("left", "page")(one.limit("page"), other.limit("page", 2)),
}
QUERIES = [
    "SELECT v.page, COUNT(*) AS n, COUNT(p.time) AS m FROM v LEFT JOIN p ON v.user = p.user GROUP BY 1",
    "SELECT p.page, COUNT(*) AS n, COUNT(DISTINCT v.user) AS m FROM v JOIN p USING (user) WHERE v.time <> 1 GROUP BY 1",
    "SELECT v.page, COUNT(*) AS n FROM p JOIN v ON v.user = p.user AND p.page = v.page GROUP BY 1",
]


def drawn(draw):
    """A few questions: steps of each table, how both meet, what follows, of which sometimes each part is asked."""
    names = [*LINEAR, *MEETING]
    plans = []
    for how in draw.sample([*TWO], 5):
        below = [[draw.choice(names)] if draw.random() < 0.4 else [] for _ in range(2)]
        above = [draw.choice(names) for _ in range(draw.randint(0, 2))]
        plans.append((how, below, above, draw.random() < 0.3, draw.random() < 0.5))
    return plans


def asked_of(place, units, plans, query):
    """What was charged for all questions over two tables, with what each of them reads and the scale of its noise."""
    tables = {
        name: wpinq.protect([], 10**9, columns=COLUMNS, unit=wpinq.users("user", **unit), name=name, version="1",
                            ledger=place, secret=ONE)
        for name, unit in zip("vp", units, strict=True)
    }  # fmt: skip
    made = []
    for how, below, above, parts, swapped in plans:
        try:
            sides = [follow(one, plan) for one, plan in zip(tables.values(), below, strict=True)]
            met = follow(TWO[how](*(sides[::-1] if swapped else sides)), above)
            made += [one.measure(1) for one in (met.partition("page", range(3)).values() if parts else [met])]
        except wpinq.PlanError:  # nothing bounds a key after these steps
            continue
    bounded = not any("shared" in unit for unit in units)
    answer = wpinq.sql(query, tables, epsilon=1, keys=[0, 1, 2], loss=1 if bounded else None)
    made += [*answer.measurements, *(answer.loss.measurements if bounded else ())]
    assert answer.cost["epsilon"] == pytest.approx(1, abs=1e-12), "a person in both loses what is said"
    return list({one.question: one for one in made}.values()), ledger_of(tables["v"]).spent()[0]


def histogram(measured, histories):
    """The true histogram, by the definitions of its steps."""
    collection = Collection(measured.node)
    return evaluate(collection, *(histories[source.data.name] for source in leaves(collection)))


def moved(one, other):
    return sum((abs(one.get(key, 0) - other.get(key, 0)) for key in one.keys() | other.keys()), Fraction(0))


@thin(3)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_person_in_two_tables_loses_more_than_their_ledger_shows(seed, tmp_path):
    """All together, and each answer by what both tables are said to move it together, in whichever the person is.

    Other records of a person who stays are the person who leaves and another who comes.
    """
    draw = random.Random(seed)
    units, plans, query = draw.choices(UNITS, k=2), drawn(draw), draw.choice(QUERIES)
    made, paid = asked_of(tmp_path / "L", units, plans, query)
    assert len(made) >= 2
    for _ in range(TRIALS):
        pages, times = draw.choice([1, 3]), draw.choice([1, 3])

        def records(user, least, most, pages=pages, times=times):
            return [(user, draw.randrange(pages), draw.randrange(times)) for _ in range(draw.randint(least, most))]

        others = {name: [one for user in ("bob", None) for one in records(user, 0, 3)] for name in "vp"}
        hers = {name: records("ann", 1, 6) for name in "vp"}
        found = {
            where: [histogram(one, {n: others[n] + hers[n] * (n in where) for n in "vp"}) for one in made]
            for where in ("", "v", "p", "vp")
        }
        for one, *each in zip(made, *found.values(), strict=True):
            both = sum(one.quote.sensitivities.values())
            for where, histories in zip(list(found)[1:], each[1:], strict=True):
                assert moved(each[0], histories) <= both, (one.node, where, others)
            for start in (1, 2):  # the person is in the other table before
                assert moved(each[start], each[3]) <= 2 * both, (one.node, start, others, hers)
        lost = sum(moved(*pair) / one.scale for one, *pair in zip(made, found[""], found["vp"], strict=True))
        assert lost <= paid, (units, plans, query, others, hers)
