"""What a table asks for its medians: one of each cell and total, also of each level of a hierarchy.

A median of coarser codes does not follow from those of finer ones, so each level is a set of keys, and all sets share
what medians cost. Records have finest codes; a public table has the codes above each. A code without finer ones counts
as its own at the levels below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from wpinq.query.crosstabs.hierarchy import Hierarchy
from wpinq.sources.databases.postgres import quoted


@dataclass(frozen=True)
class Ranking:
    """The question.

    Attributes:
        keys: For each column its name and its values, the last of which is the total.
        hierarchies: The columns that have one.
        aggregates: The medians, as SQL has them.
    """

    keys: Sequence[tuple[str, Sequence[str]]]
    hierarchies: Mapping[str, Hierarchy]
    aggregates: Sequence[str]

    @property
    def query(self) -> str:
        """It in SQL, over `records` and `tables`."""
        shown, joins, sets = [], [], []
        for name, _ in self.keys:
            column, levels = f"records.{quoted(name)}", []
            if name in self.hierarchies:
                table = self._table(name)
                joins.append(f' JOIN {table} ON {column} = {table}."{table} 0"')
                levels = [f'{table}."{table} {level}"' for level in range(1, self.hierarchies[name].levels)]
            shown += [f"{level} AS {quoted(f'{name} (level {at})')}" for at, level in enumerate(levels, 1)] + [column]
            sets.append(f"ROLLUP ({', '.join([*levels, column])})")
        chosen = ", ".join([*shown, *self.aggregates])
        return f"SELECT {chosen} FROM records{''.join(joins)} GROUP BY {', '.join(sets)}"  # noqa: S608

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The codes above each finest code, for each hierarchy."""
        result = {}
        for name, tree in self.hierarchies.items():
            rows = [(code, *tree.line(code)[:-1]) for code in tree.finest]
            table = self._table(name)
            schema = [f"{table} {level}" for level in range(tree.levels)]  # names that no column of records has
            result[table] = pl.DataFrame(rows, schema=dict.fromkeys(schema, pl.String), orient="row")
        return result

    @cached_property
    def groups(self) -> pl.DataFrame:
        """The groups, in the order of the table."""
        frame = pl.DataFrame({"grouping": [0]}, schema={"grouping": pl.Int64})
        for place, (name, values) in enumerate(self.keys):
            rows: list[list[str | None]] = [[value] for value in values[:-1]]
            if name in self.hierarchies:
                tree = self.hierarchies[name]
                rows = [tree.group(code) for code in tree.codes]
            rows.append([None] * len(rows[0]))
            names = [f"{place} {at}" for at in range(len(rows[0]))]
            column = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
            frame = frame.join(column, how="cross", maintain_order="left_right")
            for each in names:
                frame = frame.with_columns(grouping=2 * pl.col("grouping") + pl.col(each).is_null().cast(pl.Int64))
        return frame.select(pl.exclude("grouping"), "grouping")

    def _table(self, name: str) -> str:
        return f"levels{list(self.hierarchies).index(name)}"
