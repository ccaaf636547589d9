"""What a cross table tells: counts and numbers of each cell and total, as frames, files, text and pages."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from wpinq.arguments import NAME, NOTHING, PATH, takes
from wpinq.core.measurements.answer import LEVEL, Answer, save
from wpinq.core.records.schema import Kind
from wpinq.html import numbers as shown
from wpinq.postprocess.axes import Axis, noises, rounded
from wpinq.postprocess.degrees.posterior.law import NoiseTerm, half_width
from wpinq.postprocess.rounding_search import too_far
from wpinq.query.crosstabs.hierarchy import Hierarchy
from wpinq.query.crosstabs.numbers import CellNumbers, Numbers, Solver, medians
from wpinq.query.crosstabs.public import Public
from wpinq.storage import replacing

if TYPE_CHECKING:
    import numpy.typing as npt

    from wpinq.core.measurements.measurement import Measurement


ADD_UP = "All counts add up. They are whole, each within one of the best estimate."
"""What is said of whole numbers; see `rounded`."""
KEPT = "*"
"""What stands after a public number."""
INDENT = "\u00a0\u00a0\u00a0"
"""What stands before a code for each level above it."""


@dataclass(frozen=True)
class Table:
    """A cross table of noisy counts that add up. Using it costs nothing more.

    Attributes:
        answer: What was measured, with what it cost.
        keys: For each column its name and its values, the last of which is the total.
        down: How many of the columns stand at the side; the others stand above.
        totals: For each column whether its totals were measured, too; else they are sums.
        partial: The columns of which only records with a listed value are counted.
        wanted: What it tells beside counts.
        kinds: The types of these columns.
        groups: What was measured, in its order.
        ranked: Medians of all cells and totals, where there are any.
        selected: The columns whose values nobody listed.
        hierarchies: The columns that have one, whose values are codes of all levels.
        public: Counts that are kept as they are.
    """

    answer: Answer
    keys: tuple[tuple[str, tuple[str, ...]], ...]
    down: int
    totals: tuple[bool, ...]
    partial: tuple[str, ...] = ()
    wanted: Numbers = field(default_factory=Numbers)
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    groups: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)
    ranked: Answer | None = None
    selected: tuple[str, ...] = ()
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    public: Public = field(default_factory=lambda: Public({}))

    @property
    def axes(self) -> list[Axis]:
        """How each column was measured."""
        return axes_of(self.keys, self.totals, self.hierarchies)

    @cached_property
    def estimates(self) -> npt.NDArray[np.float64]:
        """The counts that are nearest to what was measured of all that add up: an axis for each column, totals last."""
        measured = self._solved(self.answer.frame["count"].cast(pl.Float64).to_numpy())
        return self.public.imposed(measured, self.axes)

    def _solved(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        result = values.reshape([axis.measured for axis in self.axes])
        for place, axis in enumerate(self.axes):
            result = axis.solved(result, place)
        return result

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """The estimates in whole numbers that add up."""
        return rounded(self.estimates, self.axes, self.public.numbers)

    @cached_property
    def halves(self) -> npt.NDArray[np.float64]:
        """How far noise moves each estimate at most, with probability 0.95."""
        measured: Any = self.answer.measurements[0]
        result = np.empty(self.counts.shape)
        for cells, noise in self._noises(measured):
            unmoved = len(noise) == 1 and noise[0] == (float(measured.scale), 1, measured.gaussian)
            result[cells] = float(measured.interval(LEVEL)) if unmoved else half_width(noise, float(LEVEL))
        for place in self.public.numbers:
            result[place] = 0
        return result

    def _noises(self, measured: Measurement) -> list[tuple[Any, tuple[NoiseTerm, ...]]]:
        return list(noises(self.axes, NoiseTerm(float(measured.scale), 1, measured.gaussian)))

    @cached_property
    def numbers(self) -> tuple[CellNumbers, ...]:
        """Sums, means and medians, in the order in which they are told."""
        empty = self.public.empty
        solver = Solver(
            self.groups, lambda values: empty.imposed(self._solved(values), self.axes), self._noises,
            lambda values: rounded(values, self.axes, empty.numbers), empty.numbers,
        )  # fmt: skip
        result = solver.numbers(self.wanted, self.answer.measurements[1:][: len(self.wanted.totalled)], self.kinds)
        ranks = [] if self.ranked is None else medians(self.wanted, self.ranked, self.counts.shape, empty.numbers)
        return (*result, *ranks)

    @property
    def frame(self) -> pl.DataFrame:
        """A row for each cell and total: the value or the total of each column, then the count, `low` and `high`.

        Each sum, mean and median follows, with its interval: `income_sum`, `income_sum_low`, `income_sum_high`. The
        interval of what is rounded is of the number before that, and so holds the true one as often as it says.
        """
        labels = list(product(*(values for _, values in self.keys)))
        table = pl.DataFrame(labels, schema=[name for name, _ in self.keys], orient="row")
        half, middle = self.halves.reshape(-1), self.estimates.reshape(-1)
        columns = {"count": self.counts.reshape(-1), "low": middle - half, "high": middle + half}
        for number in self.numbers:
            ends = {f"{number.name}_low": number.low, f"{number.name}_high": number.high}
            columns |= {name: part.reshape(-1) for name, part in ({number.name: number.values} | ends).items()}
        return table.with_columns(pl.Series(name, part) for name, part in columns.items())

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of it, in sentences."""
        about, known = self.answer.about, self.halves[self.halves > 0]
        least, most = (known.min(), known.max()) if known.size else (0.0, 0.0)
        each = f"each count by {least:,.4g}" if least == most else (
            f"the count of a cell by {self.halves[(0,) * self.halves.ndim]:,.4g} and that of all by"
            f" {self.halves[(-1,) * self.halves.ndim]:,.4g}"
        )  # fmt: skip
        left_out = [f"Left out are records with another value, or none, of {' or '.join(self.partial)}."]
        rest = [repr(values[-2]) for name, values in self.keys if name in self.selected][:1]
        named = " and ".join(self.selected)
        chosen = [f"Values of {named} are told that enough records have; all else is {rest[0]}." for _ in rest]
        return (
            f"Counted {shown.whose(about)}.",
            *(left_out if self.partial else ()),
            *chosen,
            *([f"{KEPT} A public number, kept as it is."] if self.public.numbers else ()),
            f"Noise moves {each} at most with probability 0.95; what is nearer to zero may be zero, and a number below"
            " zero stands for a small one.",
            self._whole,
            *(number.note for number in self.numbers),
            *shown.footnotes(about)[1:],
        )

    @property
    def _whole(self) -> str:
        """What is said of whole numbers."""
        far = too_far(self.counts, self.estimates)
        if not far.any():
            return ADD_UP
        return (
            "All counts add up. They are whole, each cell within one of the best estimate; so are all totals but"
            f" {np.count_nonzero(far):,} of {far.size:,}, which are within {far.max() + 1:,.0f}, for none were found"
            " that are nearer."
        )

    @takes(path=PATH | NOTHING, title=NAME | NOTHING)
    def html(self, path: str | os.PathLike[str] | None = None, title: str | None = None) -> str:
        """The table as one page for readers, on screens and on paper; it is written too, where a file is named.

        Raises:
            SourceError: The file cannot be written.
        """
        from wpinq.postprocess.crosstab import page

        heading = title or f"Records by {' and '.join(name for name, _ in self.keys)}"
        faint = [(abs(self.counts) < self.halves).reshape(-1).tolist()]
        faint += [number.faint.reshape(-1).tolist() for number in self.numbers]
        measures = [(name, texts, pale) for (name, texts), pale in zip(self._measures(), faint, strict=True)]
        result = page(heading, self._shown, self.down, measures, notes=self.notes)
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

    @property
    def _shown(self) -> list[tuple[str, tuple[str, ...]]]:
        """The keys, of which finer codes stand further in."""
        result = []
        for name, values in self.keys:
            depths = self.hierarchies[name].depths if name in self.hierarchies else (0,) * len(values)
            result.append((name, tuple(INDENT * depth + value for depth, value in zip(depths, values, strict=True))))
        return result

    def _measures(self) -> list[tuple[str, list[str]]]:
        """What each cell tells, and the texts of all cells in order."""
        kept = {int(np.ravel_multi_index(place, self.counts.shape)) for place in self.public.numbers}
        numbers = self.counts.reshape(-1).tolist()
        counts = [f"{number:,}{KEPT if at in kept else ''}" for at, number in enumerate(numbers)]
        return [("count", counts), *((number.label, number.texts) for number in self.numbers)]

    def _texts(self) -> list[list[str]]:
        """The table as texts, its head first."""
        side, above = self._shown[: self.down], self._shown[self.down :]
        names, columns = zip(*self._measures(), strict=True)
        measured = names if len(names) > 1 or not above else ("",)
        labels = product(*(values for _, values in above))
        heads = [" ".join((*label, name)).strip() for label in labels for name in measured]
        cells = np.array(columns).T.reshape(-1, len(heads)).tolist()
        rows = product(*(values for _, values in side))
        return [[*(name for name, _ in side), *heads], *([*row, *line] for row, line in zip(rows, cells, strict=True))]

    def _repr_html_(self) -> str:
        from wpinq.html import parts

        head, *rows = self._texts()
        return parts.framed("Cross table", parts.table(head, rows), *(parts.text(note) for note in self.notes))


def axes_of(
    keys: Sequence[tuple[str, tuple[str, ...]]], totals: Sequence[bool], hierarchies: Mapping[str, Hierarchy]
) -> list[Axis]:
    """How each column of a table is measured, from its values, whether totals are, and its hierarchy."""
    result = []
    for (name, values), total in zip(keys, totals, strict=True):
        tree = hierarchies.get(name)
        parents = () if tree is None else tree.parents
        result.append(Axis(len(values) - 1 if tree is None else len(tree.finest), total, parents))
    return result
