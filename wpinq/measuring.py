"""`measure`: one call for the four things that can be measured: a whole, a live epoch, windows, and every epoch."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from wpinq.continual import ContinualMeasurement
from wpinq.errors import ExactnessError, PlanError
from wpinq.exact import Amount, exact, positive
from wpinq.measurement import Measurement, epsilon_for
from wpinq.operators.first import first
from wpinq.operators.lattice import measurable
from wpinq.question import charge_together
from wpinq.rewrite import rewrite
from wpinq.versions import at_epoch, live_log, refuse_forgotten
from wpinq.windowed import WindowedMeasurement, windows

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.plan import Node


def measure(
    self: Collection, epsilon: Amount | None = None, name: str | None = None, mechanism: str = "geometric",
    analyst: str | None = None, *, within: Amount | None = None, confidence: Amount = Fraction(95, 100),
    continual: bool = False,
) -> Measurement:  # fmt: skip
    """Charge for a noisy histogram of the collection, computed when it is first observed.

    The same plan on the same version with the same name, scale and mechanism is the same measurement: it costs nothing
    again and gives the same answers, in this process or another. A name makes an independent repetition.

    A measurement of windows answers for each window by itself: `observe(bin, window=...)`. One of a live source
    answers for the first epoch that closes after it was made, and with `continual` for that one and every later one:
    `observe(bin, epoch=...)`.

    Args:
        epsilon: What the measurement costs the privacy unit, exact. The noise scale is the largest movement that one
            unit can cause, divided by epsilon; a continual one needs more (`ContinualMeasurement`).
        name: Tells repetitions apart, and names the charge in the ledger.
        mechanism: "geometric" (discrete Laplace) or "laplace" (on a dyadic grid).
        analyst: Who is charged, where the curator keeps caps for each analyst.
        within: Instead of epsilon, how near to the truth a bin shall be: the least epsilon that does it, in four
            significant digits, is charged, and is told by `epsilon`, `repr` and `explain`. Not with `continual`.
        confidence: How often a bin shall be as near as `within`.
        continual: Answer at every epoch of a live source, for ever, for this epsilon in all. Only where every step is
            linear for each record: map, filter, flat_map, concat, subtract and partition. Of people, each with
            `at_most` records, the first ones are kept then, for ever; a sample or a share would take back what was
            counted before.

    Raises:
        ExactnessError: An amount is not a finite number above zero, or there is none.
        PlanError: Both of `epsilon` and `within` are given, `continual` does not fit them or the plan, its windows
            are of several lengths, or the live source has let go of records that it needs (`live(keep=...)`).
        BudgetError: It costs more than is left; nothing was charged and nothing drawn.
        LedgerError: The ledger cannot be trusted or written; nothing was drawn.
    """
    node = measurable(self._node)
    if continual and within is not None:
        raise PlanError("measure(within=..., continual=True): its noise widens with the epochs; give epsilon=.")
    amount = _amount(node, epsilon, within, confidence, mechanism)
    log = live_log(node)
    if continual:
        if log is None:
            raise PlanError("measure(continual=True): a finite source has no epochs; use wpinq.live(...).")
        node = rewrite(node, first)
        refuse_forgotten(log, node)
        found: Measurement = ContinualMeasurement(node, amount, name, mechanism, analyst)
        log.asked.append((found, node))
        return found
    if windows(node):
        return WindowedMeasurement(node, amount, name, mechanism, analyst)
    if log is None:
        return Measurement(node, amount, name, mechanism, analyst)
    refuse_forgotten(log, node)
    found = Measurement(at_epoch(node, log.closed + 1), amount, name, mechanism, analyst)
    log.asked.append((found, node))
    return found


def charge_at_once(self: Collection, call: str, make: Callable[[], None]) -> None:
    """Charge for all measurements of the collection that a function makes, or for none, to be answered at once.

    Raises:
        PlanError: Its answers are those of windows, or of an epoch that is open; nothing was charged.
        BudgetError: They cost more together than is left; nothing was charged.
    """
    if windows(self._node) or live_log(self._node) is not None:
        raise PlanError(
            f"{call}: windows, and the epochs of a live source, are answered once they have closed; measure "
            "degrees.cdf(...) and degrees.sequence(...), and reconcile them then. Nothing was charged."
        )
    charge_together(make)


def _amount(node: Node, epsilon: Amount | None, within: Amount | None, confidence: Amount, noise: str) -> Fraction:
    """What the measurement costs, given or found."""
    if epsilon is None and within is None:
        raise ExactnessError("measure(): give epsilon=, what it costs, or within=, how near to the truth it is.")
    if within is None:
        return positive(epsilon, "measure(epsilon=...)")
    if epsilon is not None:
        raise PlanError("measure(...): give either epsilon=, what it costs, or within=, how near to the truth it is.")
    near, level = positive(within, "measure(within=...)"), exact(confidence, "measure(confidence=...)")
    return epsilon_for(node, near, level, noise)
