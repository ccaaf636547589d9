"""Answers: released numbers as a table, with all that describes them. Using one costs nothing more.

`About` says what an answer is of: query, data set, unit, cost, level, and what is not in it. Answers are written as
files and tables that describe themselves: CSV, Parquet, JSON and Arrow.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from wpinq.arguments import FLAG, NAME, NOTHING, PATH, takes
from wpinq.core.measurements.query import ChargedQuery
from wpinq.core.plan.node import Node, sources, steps
from wpinq.core.plan.person_bound import key_weight
from wpinq.core.plan.phrase import biases
from wpinq.core.plan.stability import by_ledger
from wpinq.errors import PlanError, WpinqError
from wpinq.exact import Amount, decimal, exact
from wpinq.lazy import above, shown_by
from wpinq.storage import replacing

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure


LEVEL = Fraction(95, 100)
"""How often an interval holds where nothing is said."""


@dataclass(frozen=True)
class About:
    """What an answer is of.

    Attributes:
        query: The question, as people read it.
        charged: What was charged for it.
        delta: What it cost each data set beside epsilon.
        threshold: What a noisy weight had to reach for its row to be published; None where rows were given by name.
        bias: What bounds, clamping and weights keep out of it.
        level: How often its intervals hold, for the noise; None where each caller may say.
        intervals: Whether it has any.
    """

    query: str
    charged: Sequence[ChargedQuery]
    delta: Fraction = Fraction(0)
    threshold: float | None = None
    bias: tuple[str, ...] | None = None
    level: Fraction | None = None
    intervals: bool = True

    def described(self, level: Fraction) -> dict[str, Any]:
        """All of it, as JSON has it."""
        read = list(dict.fromkeys(data for query in self.charged for data in sources(query.node)))
        bias = self.bias
        if bias is None:
            bias = tuple(dict.fromkeys(clause for query in self.charged for clause in biases(query.node)))
        return {
            "query": self.query,
            "data set": ", ".join(data.name for data in read),
            "version": ", ".join(data.version for data in read),
            "before the bound": list(dict.fromkeys(f"{data.name}: {step}" for data in read for step in data.before)),
            "unit": "; ".join(dict.fromkeys(data.unit.text for data in read)),
            "protects": "; ".join(dict.fromkeys(data.unit.protects for data in read)),
            "cost": self._cost,
            "level": float(level),
            "intervals are of": "noise alone, each by itself" if self.intervals else None,
            "beside noise": list(bias),
            "threshold": self.threshold,
            "cut": cut([query.node for query in self.charged]),
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
        }

    @property
    def _cost(self) -> dict[str, float]:
        """What it costs; without an epsilon where all noise is Gaussian, which no epsilon bounds."""
        rho = {"rho": float(self.rho)} if self.rho else {}
        epsilon = {"epsilon": float(self.epsilon)} if self.epsilon or not rho else {}
        noise = sum(query.quote.payment.delta for query in {query.question: query for query in self.charged}.values())
        return {**epsilon, "delta": float(self.delta * self._tables + noise), **rho}

    @property
    def _tables(self) -> int:
        """In how many tables of a ledger one unit can be."""
        each = [paid for query in self.charged for paid in by_ledger(query.quote.sensitivities).values()]
        return max(map(len, each), default=1)

    @property
    def rho(self) -> Fraction:
        """What Gaussian noise costs one unit, likewise."""
        return sum((query.rho for query in {query.question: query for query in self.charged}.values()), Fraction(0))

    @property
    def epsilon(self) -> Fraction:
        """What it costs one unit, in all tables of a ledger together; what was measured once is charged once.

        With the choice of a bound, where the question chose it.
        """
        paid: dict[str, Fraction] = defaultdict(Fraction)
        read = dict.fromkeys(data for query in self.charged for data in sources(query.node))
        for book, choice in dict.fromkeys((data.book, data.unit.choice) for data in read):
            if choice is not None and choice.asked:
                paid[book] += choice.epsilon
        for query in {query.question: query for query in self.charged}.values():
            for book, epsilon in query.quote.paid.items():
                paid[book] += epsilon
        return max(paid.values(), default=Fraction(0))


def cut(roots: Iterable[Node]) -> float | None:
    """The multiplicity that no item can pass, where plans count items by slices and a bound says so; else None."""
    from wpinq.core.operators.slices import Slicing

    shaved = {node.source for root in roots for node in steps(root) if isinstance(node, Slicing)}
    weights = [key_weight(items, frozenset(items.schema.names)) for items in shaved]
    return min((float(weight) for weight in weights if weight is not None), default=None)


def save(frame: pl.DataFrame, content: dict[str, Any], path: Any, suffixes: tuple[str, ...]) -> None:
    """Write an answer, whole or not at all; see `Answer.save`.

    A CSV file quotes all text, so that no group whose name begins with # is taken for a comment.

    Args:
        frame: The table.
        content: What describes it, and for JSON its rows.
        path: Where.
        suffixes: The endings that are written.

    Raises:
        SourceError: The suffix is none of these, or the place cannot be written.
    """
    with replacing("save", path, suffixes) as file:
        file.write(_written(frame, content, Path(path).suffix.lower()))


def _written(frame: pl.DataFrame, content: dict[str, Any], suffix: str) -> bytes:
    if suffix == ".json":
        text: str = above("json_text")(content, indent=1)
        return f"{text}\n".encode()
    about, file = json.dumps(content), io.BytesIO()
    if suffix == ".parquet":
        above("in_text")(frame, pl.Object).write_parquet(file, metadata={"wpinq": about})
        return file.getvalue()
    table: bytes = above("csv_bytes")(frame, quote_style="non_numeric")
    return f"# {about}\n".encode() + table


def arrow(frame: pl.DataFrame, about: dict[str, Any]) -> pa.Table:
    """An answer as an Arrow table, with what describes it as JSON in its metadata; see `Answer.to_arrow`."""
    plain: pl.DataFrame = above("in_text")(frame, pl.Object)
    table = plain.to_arrow(compat_level=pl.CompatLevel.oldest())
    return table.replace_schema_metadata({"wpinq": json.dumps(about)})


Ends: TypeAlias = "dict[str, tuple[pl.Series, pl.Series]]"
"""For each column of noisy numbers, where the interval around each of them begins and ends."""

Released: TypeAlias = "tuple[pl.DataFrame, Ends]"

Place: TypeAlias = "str | os.PathLike[str]"


class Answer:
    """Noisy numbers that were charged for, as a table: what names each row, then its numbers with their intervals.

    An interval speaks of noise alone: of the records that were let in, and of numbers as they were clamped. What that
    keeps out is told by `about["beside noise"]`, by `repr`, and in every file and picture. It is computed when it is
    first asked for, and the same for ever. Iterated over, it gives its rows without their intervals.

    Args:
        about: What it is of.
        found: Gives the rows and the ends of intervals, at a level, each by itself or all together.
        at: Gives the answer for one window, where there are windows.
        many: Whether it is more than one number in one row.
        loss: How much was left out, where that was asked too.
        agreeing: Gives the same with numbers that add up, where they can.
    """

    def __init__(
        self, about: About, release: Callable[[Fraction, bool], Released], *, many: bool = True,
        at: Callable[[Any], Answer] | None = None, loss: Answer | None = None,
        agreeing: Callable[[], Answer] | None = None,
    ) -> None:  # fmt: skip
        self.loss, self._agreeing = loss, agreeing
        self._about, self._find, self._at, self._many = about, release, at, many

    @cached_property
    def _usual(self) -> Released:
        return self._found(None, simultaneous=False)

    def _found(self, level: Amount | None, *, simultaneous: bool) -> Released:
        wanted = self._level if level is None else exact(level, "interval(level=...)")
        if self._about.level not in (None, wanted):
            paid = f"its interval was charged at confidence={decimal(self._level)}"
            raise PlanError(f"interval(level=...): {paid}; ask anew for another.")
        if not 0 < wanted < 1:
            raise PlanError(f"interval(level=...): {decimal(wanted)} is not strictly between 0 and 1; write 0.95, say.")
        return self._find(wanted, simultaneous)

    @property
    def _level(self) -> Fraction:
        return self._about.level or LEVEL

    @property
    def value(self) -> Any:
        """The noisy number, where there is one.

        Raises:
            PlanError: There are groups, or several numbers; use `frame`.
            SourceError, EngineError, LedgerError: The first question runs the dataflow, which failed.
        """
        return self._one(self._usual)[0].item()

    def interval(self, level: Amount | None = None) -> tuple[float, float]:
        """An interval that holds, but for noise, the one true number with this probability; by default with 0.95.

        Raises:
            PlanError: As `value`; or the level is not strictly between 0 and 1, or not what a rank was charged for.
        """
        _, ends = self._one(self._found(level, simultaneous=False))
        if not ends:
            raise PlanError("it follows from several noisy numbers, and has no interval; ask for each of them.")
        ((low, high),) = ends.values()
        return float(low.item()), float(high.item())

    @property
    def frame(self) -> pl.DataFrame:
        """One row for each group: its columns, and each number with the ends of its interval, `low` and `high`."""
        return self._framed(self._usual)

    @takes(simultaneous=FLAG)
    def table(self, level: Amount | None = None, simultaneous: bool = False) -> pl.DataFrame:
        """`frame`, with intervals of another level, or that hold together.

        Args:
            level: How often an interval holds; by default 0.95, or what a rank was charged for.
            simultaneous: Whether all intervals of a column hold together so often, or each.

        Raises:
            PlanError: See `interval`.
        """
        return self._framed(self._found(level, simultaneous=simultaneous))

    def at(self, time: Any) -> Answer:
        """The answer for one window that has closed.

        Args:
            time: Any time in the window, as the column of the time holds them.

        Raises:
            BinError: The column could never hold such a time.
            NotReadyError: The window has not closed yet.
            PlanError: There are no windows.
        """
        if self._at is None:
            raise PlanError(f"{self._about.query}: the collection has no windows; ask value, interval() or frame.")
        return self._at(time)

    def consistent(self) -> Answer:
        """The counts of ROLLUP, CUBE or GROUPING SETS, moved as little as makes them add up. It costs nothing.

        The groups that were given as `keys` must be all that have records: below each total all of its parts, or none.
        Then the sum of squared errors of all groups is never larger, whatever the noise was, and mostly much smaller.
        An interval stays that of the number as it was measured, and holds as before; of a whole CUBE, of which every
        set has all of its groups, it is that of the number that was moved, and narrower.

        Raises:
            PlanError: There are no several sets of keys or no counts, or their groups were published by a threshold, so
                that what is below it is missing, or a column is computed from counts, or counts what is distinct.
            SourceError, EngineError, LedgerError: The first question runs the dataflow, which failed.
        """
        if self._agreeing is None:
            raise PlanError(
                "consistent(): it makes counts of GROUP BY ROLLUP, CUBE or GROUPING SETS add up; ask those."
            )
        return self._agreeing()

    @property
    def released(self) -> Released:
        """Its table without intervals, and for each column of noisy numbers where their intervals begin and end."""
        return self._usual

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns, without those of intervals."""
        return tuple(self._usual[0].columns)

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """Its rows, without intervals."""
        return tuple(self._usual[0].rows())

    @property
    def intervals(self) -> tuple[tuple[tuple[float, float] | None, ...], ...]:
        """For each cell of `rows` its interval; None where it is no noisy number."""
        cells, ends = self._usual
        none = [None] * cells.height
        columns = [zip(*ends[name], strict=True) if name in ends else none for name in cells.columns]
        return tuple(zip(*columns, strict=True))

    @property
    def about(self) -> dict[str, Any]:
        """What describes it, as files hold it: query, data set, unit, cost, level, threshold, what is not in it."""
        return self._about.described(self._level)

    @property
    def cost(self) -> dict[str, float]:
        """What it costs the privacy unit: `epsilon`, or `rho` of Gaussian noise; and `delta`.

        Delta is what publishing rows costs, and Gaussian noise of an epsilon and a delta. What `loss` cost is its own.
        """
        return dict(self.about["cost"])

    @property
    def threshold(self) -> float | None:
        """What a noisy weight had to reach for its row to be published; None where rows were given by name."""
        return self._about.threshold

    @property
    def bias(self) -> tuple[str, ...]:
        """What bounds, clamping and weights keep out of it, in words."""
        return tuple(self.about["beside noise"])

    @property
    def measurements(self) -> tuple[ChargedQuery, ...]:
        """What was charged for it."""
        return tuple(self._about.charged)

    def content(self) -> dict[str, Any]:
        """As JSON has it."""
        loss = {} if self.loss is None else {"loss": self.loss.content()}
        return {**self.about, "columns": self.columns, "rows": self.rows, "intervals": self.intervals, **loss}

    @takes(path=PATH)
    def save(self, path: Place) -> None:
        """Write the table and what describes it: `.csv`, `.parquet` or `.json`.

        A CSV file has `about` as JSON in its first line, after a #; a Parquet file as metadata named `wpinq`.

        Raises:
            SourceError: The suffix is another, or the place cannot be written.
        """
        described = self.content() if str(path).lower().endswith(".json") else self.about
        save(self.frame, described, path, (".csv", ".parquet", ".json"))

    def to_arrow(self) -> pa.Table:
        """The table for whatever speaks Arrow (pyarrow, DuckDB, ADBC), described by JSON in its metadata, as `wpinq`.

        What takes an Arrow stream takes the answer as it is: `pl.DataFrame(answer)`.
        """
        return arrow(self.frame, self.about)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @takes(path=PATH | NOTHING, title=NAME | NOTHING)
    def plot(self, path: Place | None = None, title: str | None = None) -> Figure:
        """Draw the numbers with their intervals: bars for names, a line for times and for whole numbers.

        Args:
            path: A `.png`, `.svg` or `.pdf` file to write; a notebook shows the figure that is returned.
            title: Heading; the query, where it is left out.

        Raises:
            SourceError: The suffix is unknown, or the path cannot be written.
        """
        figure: Figure = above("answer_chart")(self, path, title)
        return figure

    def _one(self, value: Released) -> Released:
        if self._many:
            raise PlanError("an answer by groups, or of several numbers, has many values; use frame.")
        return value

    def _framed(self, released: Released) -> pl.DataFrame:
        frame: pl.DataFrame = above("framed")(*released)
        return frame

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return self._usual[0].height

    def __str__(self) -> str:
        with suppress(WpinqError):
            self._usual  # noqa: B018  what is printed has its numbers
        return repr(self)

    def __repr__(self) -> str:
        text: str = above("answer_text")(self, self.__dict__.get("_usual"))
        return text

    _repr_html_ = shown_by("answer_html")


def beside(answer: Answer, query: str, charged: Sequence[ChargedQuery], delta: Fraction = Fraction(0)) -> Answer:
    """An answer, described together with what was charged beside it.

    Args:
        answer: The answer.
        query: What else was asked, as people read it.
        charged: What was charged for it.
        delta: What it cost each data set beside epsilon.
    """
    about = answer._about
    bias = dict.fromkeys((*(about.bias or ()), *(clause for query in charged for clause in biases(query.node))))
    both = replace(about, query=f"{about.query}; {query}", charged=(*about.charged, *charged),
                   delta=about.delta + delta, bias=tuple(bias))  # fmt: skip
    return Answer(both, answer._find, many=answer._many)
