"""What commands print about measurements: released numbers, public names and costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from wpinq.apps.cli.lines import printable
from wpinq.exact import decimal
from wpinq.html.numbers import beside_noise, footnotes, nearly, noisy, of_noise, rounded, texts

if TYPE_CHECKING:
    from wpinq import Answer, Measurement, Quote
    from wpinq.apps.cli.inputs import Input
    from wpinq.collection import Collection
    from wpinq.core import Ledger, Node

LEVEL = Fraction(9, 10)
"""Of the intervals that are printed."""
ROWS = 40
"""Rows of an answer that are printed; a JSON file holds them all."""
FEW = 3
"""Tables of a ledger that are named: a release has one for each period."""
ONE_RECORD = ["one record"]
"""Whom answers protect where nobody said --unit."""

SPENT_ALL = (
    "Nothing is left for new questions; what was asked stays free to ask again. `wpinq ledger raise PATH EPSILON`"
    " allows more, for next month too, which the same people lose as well"
)


def written(bin_: Any) -> str:
    """A bin as `parse_bins` reads it, without what would move a terminal's cursor.

    >>> written(("ann", 3)), written("Page 1")
    ('ann:3', 'Page 1')
    """
    return printable(":".join(map(str, bin_ if isinstance(bin_, tuple) else (bin_,))))


def aligned(rows: Sequence[Sequence[str]], *, right: bool = False) -> str:
    """A table as lines of text: rich draws finer ones, and takes longer to load than a small question to answer."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    put = str.rjust if right else str.ljust
    return "\n".join("  ".join(map(put, row, widths)).rstrip() for row in rows)


def measurement_table(measurements: Mapping[str, Measurement]) -> str:
    """One line for each measurement: its name, columns, cost and noise."""
    rows = [("measurement", "bins", "epsilon", "noise scale")]
    for name, measurement in measurements.items():
        delta = f", delta {decimal(measurement.quote.delta)}" if measurement.quote.delta else ""
        cost = measurement.quote.payment.text.removeprefix("epsilon ") + delta
        rows.append((name, str(measurement.node.schema), cost, nearly(measurement.scale)))
    return aligned(rows)


def released(value: float, half: float) -> str:
    """A noisy number with the digits that noise leaves."""
    return f"{rounded(value, half):,}"


def noise_lines(measurement: Measurement) -> list[str]:
    """How far noise moves each answer of a measurement, and what else answers differ by."""
    from wpinq.core import biases

    beside = beside_noise(biases(measurement.node))
    return [of_noise(measurement.interval(LEVEL), LEVEL, "each"), *([beside] if beside else [])]


def protected(node: Node) -> list[str]:
    """Whom an answer protects: one unit of each data set that its plan reads, each said once, and where they differ."""
    from wpinq.core import sources

    units: dict[str, list[str]] = {}
    for data in sources(node):
        units.setdefault(data.unit.protects, []).append(printable(data.name))
    return [f"{unit} in {' and '.join(names)}" if len(units) > 1 else unit for unit, names in units.items()]


def protects_line(node: Node) -> str:
    """Whom an answer protects, as a sentence."""
    units = protected(node)
    people = "" if units != ONE_RECORD else ", which need not be all of one person's; --unit COLUMN protects people"
    return f"Protects {' and '.join(units)}{people}."


def prices(call: str, quotes: Iterable[Quote[Measurement]]) -> str:
    """What each measurement of a call would cost, and by how much noise would move an answer, as EXPLAIN has it."""
    from wpinq.query.explained import explained

    return str(explained(call, [(quote.label, quote, quote.query.interval()) for quote in quotes]))


def explained(
    lines: Iterable[str], data: Input, empty: Collection, budget: Fraction | None, *, epsilon: Fraction | None = None,
    rho: Fraction | None = None,
) -> str:  # fmt: skip
    """What a question would cost, as these lines tell, whom it protects, and what is left in the ledger that there is.

    Raises:
        LedgerError, BudgetError: That ledger, or a new one, would refuse it; see `Input.led`.
        PlanError: How many records of a person are kept would be chosen first.
    """
    data.insist_on_a_number()
    led = (data if rho is None else replace(data, rho=None)).led(empty, budget, epsilon=epsilon, rho=rho)
    return "\n".join([*lines, protects_line(empty._node), *map(budget_line, led)])


def budget_line(ledger: Ledger) -> str:
    """What is left of a budget, and what that means where it is nothing; of a new one, where it lies."""
    left = ledger.remaining()
    tables = sorted(ledger.tables) or [ledger.name]
    names = " and ".join([*tables[:FEW], *([f"{len(tables) - FEW} more"] if len(tables) > FEW else [])])
    line = ledger.promise.left_line(left, ledger.told, names)
    line = line if left else f"{line} {SPENT_ALL}."
    if ledger.made is None:
        return line
    made = printable(ledger.title(ledger.made))
    return (
        f"{line}\nIts ledger is new: {made}. Name it by --ledger for other data of the same people. What of the data"
        " could not be read, wpinq check tells their curator."
    )


def shown(answer: Answer, ledgers: list[Ledger], *, free: bool) -> str:
    """An answer with its intervals, what is not in it, whom it protects, and what it cost."""
    cells, ends = answer.released
    lines = [aligned(texts(cells, ends, ROWS))]
    if len(answer) > ROWS:
        lines.append(f"... and {len(answer) - ROWS:,} more rows; wpinq sql --save OUT writes them all")
    if not len(answer):
        lines.append("\nNo group is shown.")
    lines += [f"\n{note}" for note in footnotes(answer.about)]
    if answer.loss is not None:
        lines.append(f"\n{_lost(answer.loss)}")
    spent = " and ".join(f"{name} {answer.cost[name]:g}" for name in ("epsilon", "rho") if name in answer.cost)
    spent += "" if answer.loss is None else f", and epsilon {answer.loss.cost['epsilon']:g} for what is left out"
    delta = f", delta {answer.cost['delta']:g}" if answer.cost["delta"] else ""
    several = f" in each of {len(ledgers)} ledgers at the most, and their sum for who is in all"
    each = several if len(ledgers) > 1 else ""
    again = ", charged before; nothing was charged now" if free else ""
    left = "\n".join(map(budget_line, ledgers))
    protects = protects_line(answer.measurements[0].node)
    return "\n".join([*lines, f"\n{protects}", f"\nCost: {spent}{delta}{each}{again}. {left}"])


def _lost(loss: Answer) -> str:
    """What the answer leaves out, as a sentence."""
    losses = zip(loss.rows, loss.intervals, strict=True)
    lost = "; ".join(f"{what} {noisy(value, (ends[1] - ends[0]) / 2)}" for (what, value), (_, ends) in losses if ends)
    more = "".join(f" ({clause})" for clause in loss.bias)
    return f"Left out, with probability 95% each, for epsilon {loss.cost['epsilon']:g}: {lost}{more}."
