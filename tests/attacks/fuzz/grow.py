"""Random cases."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from attacks.fuzz import pools, steps
from attacks.fuzz.case import WAYS, Case, Table, number_of
from attacks.fuzz.run import Runner, Trace, silent
from attacks.fuzz.themes import THEMES, nothing

EPSILONS = ["1", "0.5", "0.25", "2", "0.1", "'1/3'"]


def grow(seed: int, theme: str = "") -> Case:
    """The case of a number, and of a theme where one is given."""
    rng = Random(seed)
    make, begin = THEMES[theme or rng.choice(list(THEMES))] if theme or rng.random() < 0.6 else (make_tables, nothing)
    tables = make(rng)
    with tempfile.TemporaryDirectory() as place, silent():
        grower = Grower(rng, tables, Path(place))
        grower.plan(begin)
        if grower.known:
            (grower.ask_live if grower.live else grower.ask)()
        grower.close()
    return unit_of(rng, Case(tables, tuple(grower.lines), way=WAYS[seed % 4]))


def unit_of(rng: Random, case: Case) -> Case:
    """Choose what the neighbour lacks: one person in all tables, or a record of each table of one ledger."""
    people = [table for table in case.tables if "users" in table.unit]
    if people:
        values = [row[table.names.index("user")] for table in people for row in table.rows]
        if not values:
            return replace(case, person=(None,))
        person = rng.choice(values)
        window = None
        if people[0].span is not None:
            at, span = people[0].names.index(people[0].span[0]), people[0].span[1]
            window = (rng.choice([number_of(row[at], span) for row in people[0].rows]),)
        return replace(case, person=(person,), window=window)
    first = rng.randrange(len(case.tables))
    same = [
        n for n, table in enumerate(case.tables) if n == first or table.ledger == case.tables[first].ledger is not None
    ]
    places = tuple((n, rng.randrange(len(case.tables[n].rows))) for n in same if case.tables[n].rows)
    return replace(case, places=places)


# ---- tables


def make_tables(rng: Random) -> tuple[Table, ...]:
    live = rng.random() < 0.4
    count = rng.choice([1, 1, 1, 2])
    shared = count > 1 and rng.random() < 0.7
    unit = unit_text(rng)
    columns = make_columns(rng, unit)
    if "per=" in unit:
        unit = unit.replace("COLUMN", repr(rng.choice(columns[1:])[0] if columns[1:] else "user"))
    weighed = "weight=" in unit
    if weighed:
        columns = (*columns[:2], ("w", rng.choice(["integer", "number"])))
    tables = []
    for number in range(count):
        own = columns if number == 0 or rng.random() < 0.6 or weighed else make_columns(rng, unit)
        known = {name: pools.some(rng, kind) for name, kind in own}
        rows = [tuple(rng.choice(known[name]) for name, _ in own) for _ in range(rng.choice([0, 1, 3, 5, 8]))]
        rows += [rng.choice(rows)] * rng.choice([0, 0, 0, 3, 20]) if rows else []
        stays = live and number == 0
        if stays and weighed:
            unit = ""
        epochs = tuple(rng.randint(1, 3) for _ in rows) if stays else ()
        alike = rng.random() < 0.3
        name = "t" if shared or alike else f"t{number}"
        form = rng.choice(["frame", "frame", "split", "tuples", "parquet"])
        tables.append(Table(name, "v" if alike and not shared else f"v{number}", own, tuple(rows), epochs, unit, form,
                            0 if shared else None, stays, rng.choice(["10**40"] * 6 + ["1"])))  # fmt: skip
    return tuple(tables)


def unit_text(rng: Random) -> str:
    return rng.choice(["", "", "", "unit=users('user', at_most=2)", "unit=users('user', at_most=20)",
                       "unit=users('user', shared=True)", "unit=users('user', at_most=3, per=(COLUMN, 1))",
                       "weight='w', max_weight=2**53 - 1", "weight='w', max_weight=2"])  # fmt: skip


def make_columns(rng: Random, unit: str) -> tuple[tuple[str, str], ...]:
    names = rng.sample(pools.NAMES[1:] + (pools.ODD_NAMES if rng.random() < 0.1 else []), rng.randint(1, 2))
    kinds = rng.choices(list(pools.POOLS), [3, 4, 3, 1, 2, 2, 3, 1, 1], k=len(names))
    own = list(zip(names, kinds, strict=True))
    if "users" in unit or rng.random() < 0.3:
        own.insert(0, ("user", rng.choice(["text", "text", "integer", "number"])))
    return tuple(own)


# ---- plans and questions


class Grower:
    """Writes lines, and tries each as it goes on tables without records: no line may depend on records."""

    def __init__(self, rng: Random, tables: tuple[Table, ...], place: Path) -> None:
        self.rng, self.tables = rng, tables
        empty = tuple(replace(table, rows=(), epochs=(), budget="10**90") for table in tables)
        self.trace = Trace()
        self.runner = Runner(Case(empty, ()), place, "", self.trace)
        self.lines: list[str] = []
        self.live = any(table.live for table in tables)
        self.windowed: tuple[str, int] | None = None
        self.parts: tuple[str, str, list[str]] | None = None
        self.count = 0
        self.heavy = rng.random() < 0.25 or any("2**53" in table.unit for table in tables)

    def add(self, text: str, mark: str = "c", *, always: bool = False) -> str | None:
        """Keep a line, if it can be, and give the name of what it makes."""
        name = f"{mark}{self.count}"
        outcome = self.runner.step(0, f"{name} = {text}")
        if outcome[0] == "done" or (outcome[0] != "skipped" and (always or self.rng.random() < 0.05)):
            self.lines.append(f"{name} = {text}")
            self.count += 1
        return name if outcome[0] == "done" else None

    def say(self, text: str) -> None:
        self.runner.step(0, text)
        self.lines.append(text)

    def columns(self, name: str) -> steps.Columns:
        return self.trace.columns[name]

    @property
    def known(self) -> list[str]:
        return list(self.trace.columns)

    def pick(self) -> str:
        """A collection, a late one rather than an early one."""
        known = self.known
        return known[max(self.rng.randrange(len(known)), self.rng.randrange(len(known)))]

    def plan(self, begin: Callable[[Grower], None]) -> None:
        for number in range(len(self.tables)):
            self.add(f"table({number})")
        if len(self.known) < len(self.tables):  # a source that is refused
            return
        begin(self)
        for _ in range(self.rng.randint(0, 5)):
            self.grow_one()

    def grow_one(self) -> None:
        rng, name = self.rng, self.pick()
        roll = rng.random()
        if roll < 0.08:
            self.add(f"double({name}, {rng.choice([8, 30, 50, 58, 60, 61] if self.heavy else [1, 2, 3])})")
        elif roll < 0.68:
            self.add(f"{name}.{steps.unary(rng, self.columns(name), self.heavy)}")
        elif roll < 0.72 and (self.live or rng.random() < 0.3):
            self.window(name)
        else:
            self.join_two(name)

    def join_two(self, name: str) -> None:
        rng, other = self.rng, self.rng.choice(self.known)
        width = len(self.columns(name))
        call = steps.binary(rng, self.columns(name), self.columns(other))
        if call.split("(")[0] in steps.ALIKE and len(self.columns(other)) != width:
            changed = self.add(f"{other}.map(lambda *all: (*all, *all, *all)[:{width}])")
            other = changed or other
        self.add(f"{name}.{call.format(other)}")

    def window(self, name: str) -> None:
        found = [(at, kind) for at, kind in self.columns(name) if kind in ("integer", "timestamp", "date")]
        if found and self.windowed is None:
            at, kind = self.rng.choice(found)
            span = self.rng.choice([1, 2]) if kind == "integer" else 60_000_000 if kind == "timestamp" else pools.DAY
            length = repr(span) if kind == "integer" else "'1m'" if kind == "timestamp" else "'1d'"
            if self.add(f"{name}.window({length}, at={at!r})"):
                self.windowed = (at, span)

    # ---- finite

    def ask(self) -> None:
        if self.parts and self.rng.random() < 0.7:
            self.parted("c0")
        for _ in range(self.rng.randint(1, 4)):
            self.ask_one(self.pick())

    def ask_one(self, name: str) -> str | None:
        rng, epsilon = self.rng, self.rng.choice(EPSILONS)
        roll = rng.random()
        if roll < 0.12 and not self.live:
            return self.parted(name)
        if roll < 0.17:
            return self.add(f"{name}.select(epsilon={epsilon}, delta=1e-6)", "s")
        if roll < 0.22:
            return self.aggregated(name)
        extra = rng.choice(["", "", "", ", mechanism='laplace'", ", name='again'"])
        asked = self.add(f"{name}.measure(epsilon={epsilon}{extra})", "m")
        if asked and self.windowed:
            return asked
        if asked and not self.live and rng.random() < 0.15:
            self.say(f"{asked}.release(delta=1e-6)")
        return asked

    def aggregated(self, name: str) -> str | None:
        rng = self.rng
        column, kind = rng.choice(self.columns(name))
        bounds = rng.choice(["(0, 10)", "(-1, 1)", "(1e15, 1e15 + 1)", "(0, 2**63)", "(10**30, 10**30 + 5)"])
        calls = [f"{name}.count(epsilon=1)", f"{name}.count_distinct({column!r}, epsilon=1)"]
        if kind in steps.NUMBERS:
            calls += [
                f"{name}.{one}({column!r}, bounds={bounds}, epsilon=1)" for one in ("sum", "mean", "median", "max")
            ]
        call = rng.choice(calls)
        value = "" if self.live or self.windowed else ".value"  # of windows there is an answer at a time
        if rng.random() < 0.15 and not self.live:
            call, value = (
                f'sql("SELECT COUNT(*) AS c, COUNT(DISTINCT {column}) AS d FROM t", {{"t": {name}}}, epsilon=1)',
                "",
            )
        return self.add(f"{call}{value}", "a")

    def parted(self, name: str) -> str | None:
        cut, found = self.cut(name)
        for part in found:
            self.add(f"{cut}[{part}].measure(epsilon=1)", "m")
        return None

    def cut(self, name: str) -> tuple[str | None, list[str]]:
        """A partition, and its parts."""
        name, made, found = self.parts or (name, *steps.parts(self.rng, self.columns(name)))
        cut = self.add(f"{name}.{made}", "p")
        return cut, found if cut else []

    # ---- live

    def ask_live(self) -> None:
        rng, cut = self.rng, None
        open_windows = [self.add(f"{self.pick()}.measure(epsilon=1)", "m")] if self.windowed else []
        if self.parts or rng.random() < 0.4:
            cut, found = self.cut(self.pick())
        if rng.random() < 0.3:
            self.add(f"{self.pick()}.measure(epsilon=1, continual=True)", "m")
        if cut:  # some at each epoch, or another one at each
            first = rng.randrange(len(found))
            stairs = {epoch: [found[(first + epoch) % len(found)]] for epoch in (1, 2, 3)}
            some = {epoch: rng.sample(found, rng.randint(0, len(found))) for epoch in (1, 2, 3)}
            taken = rng.choice([stairs, some])
        for epoch in range(1, 4):
            for part in taken[epoch] if cut else []:
                self.add(f"{cut}[{part}].measure(epsilon=1)", "m")
            for _ in range(rng.choice([0, 1, 1, 2])):
                self.ask_one(self.pick())
            at, span = self.windowed or ("", 1)
            self.say(f"advance({epoch * span + rng.choice([0, span]) if at else ''})")
            for asked in open_windows if span < 10 else []:
                self.lines += [f"{asked}.at({epoch - one})" for one in (0, 1, 2) if asked and epoch >= one]
            for asked in open_windows if span >= 10 else []:
                self.lines += [f"{asked}.at(dt.datetime(1970, 1, 1))"] if asked else []

    def close(self) -> None:
        for one in self.runner.made.values():
            if hasattr(one, "advance"):
                one.close()
