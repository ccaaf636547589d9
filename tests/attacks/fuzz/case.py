"""A case: tables, lines of a program over them, and the privacy unit by which neighbours differ."""

from __future__ import annotations

from dataclasses import dataclass, replace

from attacks.fuzz.equal import canon

WAYS = ["split", "tuples", "parquet", "shards"]
"""Other ways to hand over or to compute the same; `run` knows them."""


@dataclass(frozen=True)
class Table:
    """Records of one data set.

    Attributes:
        name: Of the data set; several tables of one name and ledger are versions of it.
        version: Of the data set.
        columns: Names and kinds.
        rows: Values as `pools` writes them: dates are days, times are microseconds.
        epochs: For a live table the epoch of each row; empty for a finite one.
        unit: The arguments of `protect` that say whom it protects, as Python.
        form: What the source is handed over as.
        ledger: The number of the ledger that it shares with others; None for one of its own.
        live: Whether its records are sent to a live source.
        budget: Of its ledger, as Python.
        span: The column and the length of the windows, where the unit is a person in one of them.
    """

    name: str
    version: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[object, ...], ...]
    epochs: tuple[int, ...] = ()
    unit: str = ""
    form: str = "frame"
    ledger: int | None = None
    live: bool = False
    budget: str = "10**40"
    span: tuple[str, int] | None = None

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    def kept(self, places: list[int]) -> Table:
        """The same table with some of its rows."""
        epochs = tuple(self.epochs[place] for place in places) if self.epochs else ()
        return replace(self, rows=tuple(self.rows[place] for place in places), epochs=epochs)


def number_of(time: object, span: int) -> int | None:
    """The window that a time lies in."""
    return None if time is None else int(time) // span  # type: ignore[call-overload]


@dataclass(frozen=True)
class Case:
    """A program.

    Attributes:
        tables: What `table(0)`, `table(1)`, ... are in it.
        lines: Python, one statement each.
        person: The value of the user's column whose records the neighbour lacks; None where the unit is a record.
        places: For a unit of a record, the row of each table that the neighbour lacks.
        window: Where the unit is a person in one window, the number of that; None in it for records without a time.
        way: Another way in which it must come out the same.
    """

    tables: tuple[Table, ...]
    lines: tuple[str, ...]
    person: tuple[object, ...] | None = None
    places: tuple[tuple[int, int], ...] = ()
    window: tuple[int | None] | None = None
    way: str = ""

    def without(self) -> Case:
        """The neighbour: the same without the privacy unit."""
        tables = []
        for number, table in enumerate(self.tables):
            gone = [row for at, row in self.places if at == number]
            if self.person is not None and "users" in table.unit:
                column = table.names.index("user")
                person = canon(self.person[0])  # NaN is null, so records with either are one person's
                gone = [place for place, row in enumerate(table.rows) if canon(row[column]) == person]
                if self.window is not None and table.span is not None:
                    at, span = table.names.index(table.span[0]), table.span[1]
                    gone = [p for p in gone if number_of(table.rows[p][at], span) == self.window[0]]
            tables.append(table.kept([place for place in range(len(table.rows)) if place not in gone]))
        return replace(self, tables=tuple(tables), places=(), person=None)

    def program(self) -> str:
        """The case as text that says everything."""
        shown = [f"# table({number}) = {table}" for number, table in enumerate(self.tables)]
        unit = f"# the neighbour lacks person {self.person}, rows {self.places}, in window {self.window}"
        return "\n".join([*shown, unit, *self.lines])
