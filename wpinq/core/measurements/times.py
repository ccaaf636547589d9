"""When a measurement answers: once, for each window (`windows.py`), or at every epoch (`continual.py`).

What differs between them is where the true weights and the noise of bins come from, and of which times there are
answers. All else is the same, and in `measurement.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from wpinq.core.records.identity import identities
from wpinq.errors import PlanError
from wpinq.lazy import above

if TYPE_CHECKING:
    from wpinq.core.measurements.query import ChargedQuery
    from wpinq.core.operators.window import Window
    from wpinq.core.pricing.quote import Quote
    from wpinq.core.records.log import Log


class Moment(NamedTuple):
    """A time of which there is an answer.

    Attributes:
        epoch: The epoch of the live source that brought it.
        window: Where it is of a window, the times at which that begins and ends.
    """

    epoch: int
    window: tuple[Any, Any] | None = None


class Times:
    """When a measurement answers: once, from the histogram that a run or an epoch has handed to it.

    Args:
        quote: That of the measurement.

    Attributes:
        window: The step that cuts windows, where there is an answer for each.
        each: Whether each of them is charged when it is first asked for.
        continual: Whether there is an answer at every epoch.
        unreleased: Why bins are not published as one table, and what is; empty where they are.
    """

    window: Window | None = None
    each: bool = False
    continual: ClassVar[bool] = False
    unreleased: ClassVar[str] = ""

    def __init__(self, quote: Quote[Any]) -> None:
        self.quote = quote

    @property
    def once(self) -> bool:
        """Whether there is one answer, which a run or an epoch brings."""
        return self.window is None and not self.continual

    @property
    def log(self) -> Log | None:
        """The live source that is measured."""
        return None if self.quote.epochs is None else self.quote.epochs.log

    def check(self, window: Any, epoch: int | None) -> None:
        """Refuse a window or an epoch that this kind of measurement has not.

        Raises:
            PlanError: It has none, or no window was given.
        """
        if window is not None:
            raise PlanError(
                "observe(window=...): this is no measurement of windows; leave it out. A bin of several columns is a"
                " tuple; observe_many takes several bins."
            )
        if epoch is not None:
            raise PlanError("observe(epoch=...): it was measured once; leave it out, or measure(continual=True).")

    def parts(self, query: ChargedQuery, frame: pl.DataFrame, epoch: int | None) -> tuple[np.ndarray, np.ndarray]:
        """The true weights of bins, and their noise in steps."""
        histogram, words = query._settled()
        ids = identities(frame, self.quote.node.schema, query.key_owner.identity_key)
        return histogram.lookup(frame, ids), self.quote.mechanism.draw(words, ids)

    def at(self, windows: Sequence[Any]) -> list[Any]:
        """The measurements of some windows.

        Raises:
            PlanError: There are no windows.
        """
        raise PlanError("at: this is no measurement of windows; observe it.")

    def half_width(self, level: Fraction, bins: int, epoch: int | None) -> float:
        """Half the width of an interval, in steps; see `Measurement.interval`."""
        from wpinq.core.noise.accuracy import level_of_each

        return float(self.quote.mechanism.half_width(level_of_each(level, bins)))

    def variance(self, epoch: int | None) -> float:
        """The variance of the noise, in squared steps."""
        return float(self.quote.mechanism.variance())

    def moments(self, epoch: int, since: int = 0, *, again: bool = False) -> Iterator[Moment]:
        """The times whose answers an epoch of the live source brought.

        Args:
            epoch: A closed epoch.
            since: The epoch after which the measurement was added.
            again: Whether what is answered once is given with each.
        """
        epochs = self.quote.epochs
        answered = 1 if epochs is None or epochs.epoch is None else epochs.epoch
        if again or epoch == max(since + 1, answered):
            yield Moment(answered)

    def noise_lines(self) -> list[str]:
        """What adds noise, and how wide it is, where that differs from answer to answer; for quotes."""
        return []

    def explain(self) -> str:
        """See `Measurement.explain`."""
        text: str = above("explain_measurement")(self.quote, self.noise_lines())
        return text


def noisy(true: np.ndarray, noise: np.ndarray, grid: int) -> np.ndarray:
    """Add on the grid of the noise, in integers, so that no true weight is rounded before noise is added.

    On a fine grid all weights are Python integers, not only those beyond 64 bits: otherwise the time taken would reveal
    whether there are any.
    """
    if grid != 1:
        true, noise = true.astype(object), noise.astype(object)
    total: np.ndarray = true * grid + noise
    return total
