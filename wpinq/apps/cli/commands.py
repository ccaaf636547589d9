"""What can be said at the prompt of `wpinq shell`, without any terminal."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpinq import Answer
from wpinq.apps.cli import questions
from wpinq.apps.cli.bins import parse_bins
from wpinq.apps.cli.outputs import check_outputs
from wpinq.apps.cli.show import (
    LEVEL,
    budget_line,
    measurement_table,
    noise_lines,
    protects_line,
    released,
    shown,
    written,
)
from wpinq.apps.scripts.script import chosen
from wpinq.core import sources
from wpinq.errors import BinError, PlanError

if TYPE_CHECKING:
    from wpinq import Measurement
    from wpinq.collection import Collection as Records
    from wpinq.core import Ledger

HELP = """\
SELECT ... epsilon 0.1 price a new question about the records, called views; then yes, which charges and asks it
measure NAME = views.map(page).shave() epsilon 0.1
                       price a new measurement; after yes it is observed like the others. Instead of epsilon:
                       within 50, or rho 0.01; after it: mechanism M, delta 1e-6; of SELECT: keys home,news,
                       bounds size=0..100. Columns stand for themselves, expressions in quotes: filter("size > 3")
NAME BIN [BIN...]      the noisy weight of bins; text with spaces in quotes: page_views "Page 1" "Page 2"
NAME 1..20             of a range; of several columns, values are separated by colons: ann:1..3
plot NAME 1..1000 OUT  draw a range of whole numbers on logarithmic axes, into OUT.png, .svg or .pdf
measurements           names, columns, costs and noise
explain NAME           the plan of a measurement
budget                 what is left
help, quit"""


class Commands:
    """The commands of one session.

    Args:
        measurements: The charged measurements by name.
        records: The records, of which new questions may be asked.
        keep: Files that a plot must not replace.
    """

    def __init__(self, measurements: Mapping[str, Measurement], records: Records, keep: Collection[Path] = ()) -> None:
        self.measurements, self.records, self._keep = dict(measurements), records, keep
        self._priced: questions.Question | None = None
        self._words: dict[str, Callable[[list[str]], str]] = {
            "help": lambda _: HELP,
            "measurements": lambda _: measurement_table(self.measurements),
            "budget": lambda _: budget_line(self._ledger),
            "explain": self._explain,
            "plot": self._plot,
        }

    @property
    def words(self) -> list[str]:
        """All that a line can begin with."""
        return [*self.measurements, *self._words, "SELECT", "measure", "yes", "quit"]

    @property
    def _ledger(self) -> Ledger:
        return sources(self.records._node)[0].ledger

    def do(self, line: str) -> str:
        """Carry out one line and return what it answers.

        Raises:
            WpinqError: It is not a command, or it failed.
        """
        priced, self._priced = self._priced, None
        if line.split() == ["yes"]:
            return self._charge(priced)
        if questions.asks(line):
            return self._price(line)
        try:
            first, *rest = shlex.split(line, comments=True) or [""]
        except ValueError:
            raise PlanError("a quote is not closed.") from None
        if not first:
            return ""
        if first in self._words and first not in self.measurements:
            return self._words[first](rest)
        return self._observe(first, rest)

    def _price(self, line: str) -> str:
        """Price a question, which the next line may be `yes` to."""
        from wpinq.apps.remote.answers import RemoteQuote

        question = questions.read(line, self.records)
        if question.name in (*self.words, "help", "exit"):
            raise PlanError(f"measure: there is a {question.name!r} already; take another name.")
        self._priced = question if question.price.fits else None
        return f"{RemoteQuote(question.price)}" + (
            "\nyes asks it; anything else drops it." if question.price.fits else ""
        )

    def _charge(self, question: questions.Question | None) -> str:
        if question is None:
            raise PlanError("yes: to what? A question is priced first, by the line before.")
        answer = question.charge()
        if isinstance(answer, Answer):
            return shown(answer, [self._ledger], free=question.price.free)
        self.measurements[question.name] = answer
        return f"Charged. {question.name} BIN observes it: {answer.node.schema}."

    def _observe(self, name: str, texts: list[str]) -> str:
        if name not in self.measurements:
            raise PlanError(f"{name!r} is neither a command nor a measurement; there are {', '.join(self.words)}.")
        measurement = self.measurements[name]
        if not texts:
            raise BinError(f"{name}: which bins? For example: {name} 1..10, or help.")
        bins = [parsed for text in texts for parsed in parse_bins(text, measurement.node.schema)]
        values = measurement.observe_many(bins).tolist()
        half = measurement.interval(LEVEL)
        lines = [f"{written(bin_)}  {released(value, half)}" for bin_, value in zip(bins, values, strict=True)]
        return "\n".join([*lines, *noise_lines(measurement), protects_line(measurement.node)])

    def _plot(self, words: list[str]) -> str:
        from wpinq.postprocess.style import SUFFIXES

        if len(words) != 3:
            raise PlanError("plot takes a measurement, a range and a file: plot NAME 1..1000 OUT.png")
        name, text, path = words[0], words[1], Path(words[2])
        measurement = chosen(self.measurements, name)
        bins = parse_bins(text, measurement.node.schema)
        if not isinstance(bins, range):
            raise BinError(f"plot {text!r}: give one range of whole numbers, such as 1..1000.")
        check_outputs({"plot": (path, SUFFIXES)}, self._keep)
        draw(name, bins, measurement.observe_many(bins), path)
        return f"Written: {path}"

    def _explain(self, words: list[str]) -> str:
        for name in words or self.measurements:
            chosen(self.measurements, name).explain()
        return ""


def draw(name: str, bins: range, values: Any, path: Path) -> None:
    """Draw noisy values above zero on logarithmic axes."""
    from wpinq.postprocess.picture import Picture

    figure = Picture(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    points = [(item, value) for item, value in zip(bins, values.tolist(), strict=True) if item > 0 and value > 0]
    axes.scatter([entry for entry, _ in points], [value for _, value in points], s=9)
    axes.set(xlabel="bin", ylabel="noisy weight")
    if points:
        axes.set(xscale="log", yscale="log")
    axes.set_title(name, loc="left", parse_math=False)
    hidden = len(bins) - len(points)
    if hidden:
        figure.supxlabel(f"{hidden:,} values are not above zero, and not shown", x=0.01, ha="left", fontsize=8)
    figure.write(path)
