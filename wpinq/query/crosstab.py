"""Cross tables: counts by several columns with all totals, from one charge, in whole numbers that add up."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from wpinq.arguments import MAPPING, NAME, NOTHING, PATH, TEXT, takes
from wpinq.collection import Collection
from wpinq.core.measurements.answer import LEVEL, Answer
from wpinq.core.pricing.privacy_cost import LAPLACE
from wpinq.core.records.kinds import TYPES
from wpinq.core.records.schema import Kind, polars_type
from wpinq.errors import PlanError
from wpinq.exact import Amount
from wpinq.postprocess import shown
from wpinq.postprocess.degrees.posterior.law import NoiseTerm, half_width
from wpinq.postprocess.degrees.synthesis.writers import replacing
from wpinq.postprocess.margins import added_up, cube_noise, whole
from wpinq.query.answer import sql
from wpinq.query.contribution import rebounded

if TYPE_CHECKING:
    import numpy.typing as npt

    from wpinq.core.measurements.measurement import Measurement

CALL = "table"
MOST = 6
"""Columns of a table: each doubles the totals that share epsilon."""
CELLS = 1_000_000
"""Counts of a table, with its totals."""
LISTED = {Kind.TEXT, Kind.INT, Kind.BOOL, Kind.DATE}
"""Kinds of columns whose values can be listed."""
TAKEN = {"", "count", "low", "high", "grouping"}
"""Names that a column of a table cannot have: those of what it says of each count."""


@dataclass(frozen=True)
class Table:
    """A cross table of noisy counts that add up. Using it costs nothing more.

    Attributes:
        answer: What was measured, with what it cost.
        keys: For each column its name and its values, the last of which is the total.
        down: How many of the columns stand at the side; the others stand above.
        totals: For each column whether its totals were measured, too; else they are sums.
        partial: The columns of which only records with a listed value are counted.
    """

    answer: Answer
    keys: tuple[tuple[str, tuple[str, ...]], ...]
    down: int
    totals: tuple[bool, ...]
    partial: tuple[str, ...] = ()

    @cached_property
    def estimates(self) -> npt.NDArray[np.float64]:
        """The counts that are nearest to what was measured of all that add up: an axis for each column, totals last."""
        sizes = [len(values) - (not measured) for (_, values), measured in zip(self.keys, self.totals, strict=True)]
        result = self.answer.frame["count"].cast(pl.Float64).to_numpy().reshape(sizes)
        for axis, measured in enumerate(self.totals):
            result = added_up(result, axis, measured=measured)
        return result

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """The estimates in whole numbers that add up."""
        return whole(self.estimates)

    @cached_property
    def halves(self) -> npt.NDArray[np.float64]:
        """How far noise moves each estimate at most, with probability 0.95."""
        measured: Any = self.answer.measurements[0]
        result = np.empty(self.counts.shape)
        for totals in product((False, True), repeat=len(self.keys)):
            block = tuple(slice(-1, None) if total else slice(None, -1) for total in totals)
            result[block] = self._half(measured, totals)
        return result

    def _half(self, measured: Measurement, totals: Sequence[bool]) -> float:
        sizes = [len(values) - 1 for _, values in self.keys]
        added = math.prod(
            size for size, summed, total in zip(sizes, self.totals, totals, strict=True) if total and not summed
        )
        terms = cube_noise([size for size, summed in zip(sizes, self.totals, strict=True) if summed])
        if added == len(terms) == 1:
            return float(measured.interval(LEVEL))
        noise = (NoiseTerm(float(measured.scale) * part, many * added, measured.gaussian) for part, many in terms)
        return half_width(tuple(noise), float(LEVEL))

    @property
    def frame(self) -> pl.DataFrame:
        """A row for each count: the value or the total of each column, the count, and its interval, `low` and `high`.

        The interval is of the number before it was made whole, and so holds the true one as often as it says.
        """
        labels = list(product(*(values for _, values in self.keys)))
        table = pl.DataFrame(labels, schema=[name for name, _ in self.keys], orient="row")
        half, middle = self.halves.reshape(-1), self.estimates.reshape(-1)
        ends = {"low": middle - half, "high": middle + half}
        return table.with_columns(count=self.counts.reshape(-1), **{name: pl.Series(end) for name, end in ends.items()})

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of it, in sentences."""
        about, least, most = self.answer.about, self.halves.min(), self.halves.max()
        each = f"each number by {least:,.4g}" if least == most else (
            f"a cell by {self.halves[(0,) * self.halves.ndim]:,.4g} and the total of all by"
            f" {self.halves[(-1,) * self.halves.ndim]:,.4g}"
        )  # fmt: skip
        left_out = [f"Left out are records with another value, or none, of {' or '.join(self.partial)}."]
        return (
            f"Counted {shown.whose(about)}.",
            *(left_out if self.partial else ()),
            f"Noise moves {each} at most with probability 0.95; what is nearer to zero may be zero, and a number below"
            " zero stands for a small one.",
            "All numbers add up. They are whole along the columns in their order, each within one of the best estimate;"
            " other totals are sums of their parts, and may be moved by more.",
            *shown.footnotes(about)[1:],
        )

    @takes(path=PATH | NOTHING, title=NAME | NOTHING)
    def html(self, path: str | os.PathLike[str] | None = None, title: str | None = None) -> str:
        """The table as one page for readers, on screens and on paper; it is written too, where a file is named.

        Raises:
            SourceError: The file cannot be written.
        """
        from wpinq.postprocess.crosstab import page

        heading = title or f"Records by {' and '.join(name for name, _ in self.keys)}"
        result = page(heading, self.keys, self.down, self.counts, halves=self.halves, notes=self.notes)
        if path is not None:
            with replacing("html", Path(path), (".html", ".htm")) as file:
                file.write(result.encode())
        return result

    @takes(path=PATH)
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `frame` and what describes it: `.csv` or `.parquet`, as `Answer.save` does.

        Raises:
            SourceError: The suffix is another, or the place cannot be written.
        """
        from wpinq.core.measurements.answer import save

        save(self.frame, {**self.answer.about, "notes": self.notes}, path, (".csv", ".parquet"))

    def __repr__(self) -> str:
        head, *rows = self._texts()
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [
            "  ".join(
                text.ljust(width) if index < self.down else text.rjust(width)
                for index, (text, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (head, *rows)
        ]
        return "\n".join([*lines, *self.notes])

    def _texts(self) -> list[list[str]]:
        """The table as texts, its head first."""
        side, above = self.keys[: self.down], self.keys[self.down :]
        heads = ["count"] if not above else [" ".join(labels) for labels in product(*(values for _, values in above))]
        rows = self.counts.reshape(-1, len(heads)).tolist()
        names = product(*(values for _, values in side))
        body = [[*name, *(f"{number:,}" for number in row)] for name, row in zip(names, rows, strict=True)]
        return [[*(name for name, _ in side), *heads], *body]

    def _repr_html_(self) -> str:
        from wpinq.html import parts

        head, *rows = self._texts()
        return parts.framed("Cross table", parts.table(head, rows), *(parts.text(note) for note in self.notes))


@takes(categories=MAPPING, mechanism=NAME, other=TEXT | NOTHING, total=TEXT)
def table(
    records: Collection,
    down: str | Sequence[str] = (),
    across: str | Sequence[str] = (),
    *,
    categories: Mapping[str, Sequence[Any]],
    epsilon: Amount | None = None,
    rho: Amount | None = None,
    delta: Amount | None = None,
    mechanism: str = LAPLACE,
    at_most: int | None = None,
    per: tuple[str, int] | None = None,
    other: str | None = "other",
    total: str = "all",
    name: str | None = None,
    analyst: str | None = None,
) -> Table:
    """Count records by several columns, with all totals, in whole numbers that add up.

    The cells are measured, and of columns with many values also the totals (`GROUP BY ROLLUP`), which then share
    epsilon equally: whatever leaves less noise. All counts are moved as little as makes them add up, and made whole. A
    person who has several records counts so often, up to the bound. Nothing is left out because it is small.

    Args:
        records: What is counted.
        down: The columns at the side of the table.
        across: The columns above it.
        categories: For each column the values that the table has; they do not depend on the records. Of a column that
            is true or false they may be left out, and so are then records without a value.
        epsilon: What it costs one person in all, exact.
        rho: Instead of epsilon, with Gaussian noise.
        delta: What goes with epsilon of Gaussian noise.
        mechanism: What adds noise; see `measure`.
        at_most: How many records of each person are counted, where that was not said before.
        per: A column and a number: of one person's records with the same value of it no more are kept.
        other: What records are counted under that have none of the values; None leaves them out of the table.
        total: What totals are called.
        name: Tells repetitions apart, and names the charge in the ledger.
        analyst: Who is charged, where the curator keeps caps for each analyst.

    Raises:
        PlanError: The columns or categories do not fit; nothing was charged.
        BudgetError: It costs more than is left; nothing was charged.
        SourceError, EngineError, LedgerError: The dataflow could not run.

    Source: least squares as in Hay, Rastogi, Miklau, Suciu, PVLDB 3(1), 2010; products of strategies as in McKenna,
    Miklau, Hay, Machanavajjhala, "Optimizing error of high-dimensional statistical queries", PVLDB 11(10), 2018.

    >>> import wpinq
    >>> rows = [("ann", "IT"), ("bob", "IT"), ("eve", "HR")]
    >>> staff = wpinq.protect(rows, budget=99, columns={"who": str, "team": str})
    >>> wpinq.table(staff, "team", categories={"team": ["HR", "IT"]}, other=None, epsilon=99).counts.tolist()
    [1, 2, 3]
    """
    made = layout(records, down, across, categories, other=other, total=total, bound=(at_most, per))
    answer = sql(
        made.query, {"records": made.records}, keys=made.groups, epsilon=epsilon, rho=rho, delta=delta,
        mechanism=mechanism, name=name, analyst=analyst,
    )  # fmt: skip
    return Table(answer, made.keys, made.down, made.totals, made.partial)


@dataclass(frozen=True)
class Layout:
    """What a table asks, before anything is charged.

    Attributes:
        query: The query that counts.
        records: What it counts, as `records`: the label of each column.
        keys: For each column its name and its labels, the last of which is the total.
        down: How many of the columns stand at the side.
        totals: For each column whether its totals are measured, too.
        partial: The columns of which only records with a listed value are counted.
    """

    query: str
    records: Collection
    keys: tuple[tuple[str, tuple[str, ...]], ...]
    down: int
    totals: tuple[bool, ...]
    partial: tuple[str, ...]

    @property
    def groups(self) -> pl.DataFrame:
        """All groups that are measured, in the order of the table."""
        frame = pl.DataFrame({"grouping": [0]}, schema={"grouping": pl.Int64})
        for (name, values), measured in zip(self.keys, self.totals, strict=True):
            column = pl.DataFrame({name: [*values[:-1], *([None] if measured else [])]}, schema={name: pl.String})
            frame = frame.join(column, how="cross", maintain_order="left_right").with_columns(
                grouping=2 * pl.col("grouping") + pl.col(name).is_null().cast(pl.Int64)
            )
        return frame.select(*(name for name, _ in self.keys), *(["grouping"] if any(self.totals) else []))


def layout(
    records: Collection,
    down: str | Sequence[str],
    across: str | Sequence[str],
    categories: Mapping[str, Sequence[Any]],
    *,
    other: str | None,
    total: str,
    bound: tuple[int | None, tuple[str, int] | None] = (None, None),
) -> Layout:
    """Read what a table is to be.

    Args:
        bound: How many records of each person are counted, and how many with the same value. The other arguments are
            those of `table`.

    Raises:
        PlanError: The columns or categories do not fit.
    """
    if not isinstance(records, Collection):
        raise PlanError(f"{CALL}: give protected records, as protect(...) makes them.")
    side = _names(down, "down")
    names = [*side, *_names(across, "across")]
    if not names or len(set(names)) < len(names) or len(names) > MOST:
        raise PlanError(f"{CALL}: give one to {MOST} different columns, down and across.")
    if taken := [name for name in names if name.lower() in TAKEN]:
        raise PlanError(f"{CALL}: a column cannot be called {taken[0]!r} here; rename it with map.")
    if unknown := [str(name) for name in categories if name not in names]:
        raise PlanError(f"{CALL}(categories=...): {unknown[0]!r} is no column of the table.")
    records = rebounded({"records": records}, *bound)["records"]
    outside = left_out(records, names, categories, other)
    keys = tuple(
        (name, (*_without(total, name, labels(records, name, categories.get(name), outside[name])), total))
        for name in names
    )
    if math.prod(len(values) for _, values in keys) > CELLS:
        raise PlanError(f"{CALL}: has more than {CELLS:,} counts; list fewer categories, or leave a column out.")
    totals = tuple(measured_too(len(values) - 1) for _, values in keys)
    quoted = ['"{}"'.format(name.replace('"', '""')) for name in names]
    parts = [f"ROLLUP ({name})" if measured else name for name, measured in zip(quoted, totals, strict=True)]
    query = f'SELECT {", ".join(quoted)}, COUNT(*) AS "count" FROM records GROUP BY {", ".join(parts)}'  # noqa: S608
    partial = tuple(name for name, label in outside.items() if label is None)
    listed = [(name, values[:-1]) for name, values in keys]
    return Layout(query, in_categories(records, listed, outside), keys, len(side), totals, partial)


def measured_too(size: int) -> bool:
    """Whether the totals of a column of so many values are to be measured, for the least variance on the average.

    Measured, they double what one record moves, so each variance is 4 times as large; least squares leave n / (n + 1)
    of that. Summed, a total has n times the variance of a value. Errors of several columns multiply, so each column is
    decided by itself: by public sizes alone.

    >>> [measured_too(size) for size in (2, 5, 6)]
    [False, False, True]
    """
    return 4 * size / (size + 1) < (1 + size) / 2


def _names(columns: str | Sequence[str], word: str) -> list[str]:
    names = [columns] if isinstance(columns, str) else columns
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise PlanError(f"{CALL}({word}=...): give the name of a column, or a list of names.")
    return list(names)


def labels(
    records: Collection, name: str, values: Sequence[Any] | None, other: str | None, call: str = CALL
) -> tuple[str, ...]:
    """What a table calls the values of a column, then those that are not listed.

    Args:
        records: What has the column.
        name: The column.
        values: What was listed for it.
        other: What is not listed is called; None where it is left out.
        call: What the caller wrote, for messages.

    Raises:
        PlanError: They are no values of the column, or two have one name.
    """
    kind = records._node.schema[name].kind
    if kind not in LISTED:
        raise PlanError(f"{call}: column {name!r} holds {kind.value}; derive a column of text, such as a band of it.")
    if values is None and kind is Kind.BOOL:
        values = ("false", "true")
    if not isinstance(values, (list, tuple)) or not values:
        raise PlanError(f"{call}(categories=...): list the values of {name!r}, which do not depend on the records.")
    if any(not isinstance(value, str) and TYPES.get(type(value)) is not kind for value in values):
        raise PlanError(f"{call}(categories=...): the values of {name!r} are {kind.value}.")
    result = [str(value).lower() if kind is Kind.BOOL else str(value) for value in values]
    result += [] if other is None else [other]
    if any(not label.isprintable() for label in result):
        raise PlanError(f"{call}: a value of {name!r}, or other=, holds what cannot be printed.")
    if odd := [label for label in result[: len(values)] if not _written(label, kind)]:
        raise PlanError(f"{call}(categories=...): no {kind.value} of {name!r} is written {odd[0][:40]!r}.")
    if len({*result}) < len(result):
        raise PlanError(f"{call}: two values of {name!r} have one name, or that of other=.")
    return tuple(result)


def _without(total: str, name: str, values: tuple[str, ...]) -> tuple[str, ...]:
    """The values of a column, none of which is called as totals are."""
    if not total.isprintable():
        raise PlanError(f"{CALL}: total= holds what cannot be printed.")
    if total in values:
        raise PlanError(f"{CALL}: a value of {name!r} and total= have one name.")
    return values


def left_out(
    records: Collection, names: Sequence[str], categories: Mapping[str, Any], other: str | None
) -> dict[str, str | None]:
    """For each column what records are counted under that have none of its values; None where they are left out."""
    nobody = [
        name for name in names
        if other is None or (categories.get(name) is None and records._node.schema[name].kind is Kind.BOOL)
    ]  # fmt: skip
    return {name: None if name in nobody else other for name in names}


def _written(label: str, kind: Kind) -> bool:
    """Whether a value of a kind is written so, as text."""
    if kind is Kind.BOOL:
        return label in ("false", "true")
    text = pl.Series([label], dtype=pl.String)
    value = (
        text.str.to_date("%Y-%m-%d", strict=False) if kind is Kind.DATE else text.cast(polars_type(kind), strict=False)
    )
    return bool(value.cast(pl.String)[0] == label)


def in_categories(
    records: Collection, keys: Sequence[tuple[str, tuple[str, ...]]], outside: Mapping[str, str | None]
) -> Collection:
    """Each record with the label of each column.

    Args:
        records: What has the columns.
        keys: For each column its name and its labels.
        outside: As `left_out` gives it.
    """
    labelled = []
    for name, values in keys:
        text = pl.col(name).cast(pl.String, strict=False)
        listed = text.is_in(list(values))
        if outside[name] is None:
            records = records.filter(listed)
            labelled.append(text.alias(name))
        else:
            labelled.append(pl.when(listed).then(text).otherwise(pl.lit(outside[name])).alias(name))
    return records.map(labelled)
