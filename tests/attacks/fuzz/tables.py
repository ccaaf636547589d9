"""Tables of the themes: few values that meet, and units of every kind."""

from __future__ import annotations

from random import Random

from attacks.fuzz import pools
from attacks.fuzz.case import Table

WORDS = ["a", "b", "c"]


def few(rng: Random, columns: dict[str, list[object]], most: int = 6) -> list[tuple[object, ...]]:
    """Some records of these values."""
    return [tuple(rng.choice(values) for values in columns.values()) for _ in range(rng.randint(1, most))]


def table(rng: Random, kinds: dict[str, str], columns: dict[str, list[object]], **options: object) -> Table:
    rows = few(rng, columns)
    epochs = tuple(rng.randint(1, 3) for _ in rows) if options.get("live") else ()
    form = rng.choice(["frame", "split", "tuples", "parquet"])
    return Table("t", "v0", tuple(kinds.items()), tuple(rows), epochs, form=form, **options)  # type: ignore[arg-type]


def live_pages(rng: Random) -> tuple[Table, ...]:
    return (table(rng, {"page": "text"}, {"page": ["a"] if rng.random() < 0.7 else WORDS}, live=True),)


def numbers(rng: Random) -> tuple[Table, ...]:
    pool = rng.choice([[0.1], [0.1, 2.0**53], [float("nan")], [float("nan"), 1.0], pools.POOLS["number"]])
    return (
        table(
            rng, {"user": "text", "x": "number"}, {"user": WORDS, "x": [*pool, None][: len(pool) + rng.randrange(2)]}
        ),
    )


def person_twice(rng: Random) -> tuple[Table, ...]:
    unit = rng.choice(
        ["unit=users('user', at_most=20)", "unit=users('user', at_most=2)", "unit=users('user', shared=True)"]
    )
    made = []
    for version in range(2):
        own = rng.choice([1, 2, 20])
        rows = [("alice", rng.choice(["secret", "secret", "home"]))] * own + [("bob", "home")] * rng.randrange(4)
        made.append(Table("t", f"v{version}", (("user", "text"), ("page", "text")), tuple(rows), unit=unit, ledger=0))
    return tuple(made)


def people(rng: Random) -> tuple[Table, ...]:
    budget = rng.choice(["1", "1", "2", "10**40"])
    kinds = {"u": "text", "p": "text", "n": "integer"}
    return (table(rng, kinds, {"u": ["alice", "bob"], "p": ["x", "y"], "n": [1, 2]}, budget=budget),)


def twins(rng: Random) -> tuple[Table, ...]:
    kinds, values = {"user": "text", "page": "text"}, {"user": WORDS, "page": WORDS}
    return (table(rng, kinds, values), table(rng, kinds, values))


def versions(rng: Random) -> tuple[Table, ...]:
    """Two or three versions of one data set, by names of their own; what one holds, another may hold too, or nearly."""
    unit = rng.choice(["", "", "unit=users('user', at_most=2)", "unit=users('user', shared=True)"])
    kinds = (("user", "text"), ("page", "text"))
    rows = few(rng, {"user": WORDS, "page": WORDS})
    made = []
    for version in range(rng.choice([2, 2, 3])):
        own = list(rows)
        for _ in range(rng.choice([0, 0, 1])):
            own.append((rng.choice(WORDS), rng.choice(WORDS)))
        if rng.random() < 0.3:
            own.pop(rng.randrange(len(own)))
        form = rng.choice(["frame", "csv", "tuples", "parquet"])
        made.append(Table("t", f"v{version}", kinds, tuple(own), unit=unit, ledger=0, form=form,
                          budget=rng.choice(["10**40"] * 3 + ["1", "2"])))  # fmt: skip
    return tuple(made)


def anything(rng: Random) -> tuple[Table, ...]:
    kinds = {"k": "text", "v": "value"}
    values: dict[str, list[object]] = {"k": ["A", "B"], "v": rng.choice([[None], [None, "x"], [None, 1, "n", b"n"]])}
    first, other = table(rng, kinds, values, live=rng.random() < 0.5), table(rng, kinds, values)
    return (first, Table("o", "v1", other.columns, other.rows, form="tuples"))


def far(rng: Random) -> tuple[Table, ...]:
    kind = rng.choice(["date", "timestamp"])
    return (table(rng, {"d": kind, "s": "text"}, {"d": pools.POOLS[kind], "s": WORDS}, live=rng.random() < 0.2),)


def weighed(rng: Random) -> tuple[Table, ...]:
    rows = tuple((rng.choice(["a", "a", "b"]), rng.choice([2**53 - 1, 2**53 - 1, 1, -(2**52)])) for _ in range(4))
    return (Table("t", "v0", (("page", "text"), ("w", "integer")), rows, unit="weight='w', max_weight=2**53 - 1"),)


def odd_names(rng: Random) -> tuple[Table, ...]:
    name = rng.choice(pools.ODD_NAMES)
    unit = rng.choice(["", "unit=users('user', at_most=2)", "unit=users('user', shared=True)",
                       "unit=users('user', at_most=3, per=('page', 1))"])  # fmt: skip
    made = table(
        rng, {name: "integer", "user": "text", "page": "text"}, {name: [1, 2], "user": WORDS, "page": WORDS}, unit=unit
    )
    return (made,)


def visits(rng: Random) -> tuple[Table, ...]:
    """People over time; a unit is a person, or one in a period, and some records are dropped before the bound."""
    span = rng.choice([None, ("time", 1), ("time", 2)])
    period = f", period={span[1]}, at='time'" if span else ""
    unit = f"unit=users('user', {rng.choice(['at_most=2', 'at_most=1', 'shared=True'])}{period})"
    if rng.random() < 0.4 and (span or "at_most" in unit):
        unit += ", where=\"time < 3 or page = 'x'\", derive={'page': 'lower(page)'}"
    kinds = {"user": "text", "time": "integer", "page": "text"}
    values = {"user": ["ann", "ann", "bob"], "time": [1, 2, 3, None][: rng.randint(2, 4)], "page": ["x", "y"]}
    return (table(rng, kinds, values, live=rng.random() < 0.7, unit=unit, span=span),)
