"""Measurements: noisy histograms, charged first and computed at the first observation.

A measurement is the histogram of a plan plus independent noise for every bin that the collection could have. The noise
is a keyed function of the bin (`core/noise/words.py`), so bins may be observed one by one, in any order and process,
and repeated observations have the same answer; bins that are not observed take no memory or time.

Prices are in `quote.py`; charging, keys and seals in `query.py`; when it is answered, in `times.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.measurements.query import ChargedQuery, pay
from wpinq.core.measurements.times import Moment, Times, noisy
from wpinq.core.noise import Mechanism
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.privacy_cost import Payment
from wpinq.core.pricing.quote import Quote, price
from wpinq.core.records.bins import Blocks, bin_blocks, bin_codes, bin_frame, in_blocks
from wpinq.core.records.fields import Field
from wpinq.core.records.identity import identity
from wpinq.core.runs.epochs import Epochs
from wpinq.errors import PlanError, redacted
from wpinq.exact import Amount, exact
from wpinq.lazy import shown_by

if TYPE_CHECKING:
    from wpinq.core.measurements.answer import Answer, Released


def quoted(
    survey: Survey, paid: Payment, *, name: str | None, analyst: str | None,
    times: Callable[[Quote[Any]], Times] = Times, epochs: Epochs | None = None, fields: tuple[Field, ...] = (),
    law: Mechanism | None = None,
) -> Quote[Measurement]:  # fmt: skip
    """Quote a measurement of a plan.

    Args:
        survey: The plan.
        paid: What it costs the privacy unit, and the name of its noise.
        name: Tells repetitions apart, and names the charge.
        analyst: Who is charged.
        times: When it answers.
        epochs: Which epochs of a live source answer it.
        fields: Further parameters in which it may differ from other measurements.
        law: Its mechanism, where that is not what is bought for one answer.

    Raises:
        PlanError: There is no such mechanism, the scale is out of range; or see `price`.
    """
    result = paid.buys(survey) if law is None else law
    return price(
        survey, paid.epsilon, call="measure", kind=partial(Measurement, times=times), mechanism=result,
        fields=(result.name, *fields), name=name, analyst=analyst, delta=paid.delta, epochs=epochs,
        noise=None if fields and law is None else result,
    )  # fmt: skip


class Measurement(ChargedQuery):
    """A charged, noisy histogram. Ask it bin by bin; it has no length and no list of bins to give.

    It answers once, or for each window that has closed, or at every epoch that closes after it was made.

    Attributes:
        epsilon: What it costs the privacy unit; 0 for Gaussian noise, which costs `rho`.
        scale: Scale of the noise, in weight (of a record: 1); the standard deviation of Gaussian noise. At every epoch
            the noise is that of several such parts: see `stddev`.
        name: The name it was given.
        node: Its plan.
        key_owner: The data set whose secret keys it.
        question: Tells it from other measurements, in the ledger.
        quote: What was charged for it.
        times: When it answers.
    """

    purpose = "noise"

    def __init__(self, quote: Quote[Any], times: Callable[[Quote[Any]], Times] = Times) -> None:
        super().__init__(quote)
        self._mechanism: Mechanism = quote.mechanism
        self.times = times(quote)

    @property
    def settled(self) -> bool:
        """Whether no run has to answer it: one did, its windows are measured by themselves, or epochs come to it."""
        return not self.times.once or super().settled

    def observe(self, bin: Any, window: Any = None, *, epoch: int | None = None) -> int | float:  # noqa: A002
        """The noisy weight of one bin, whether it exists or not.

        Args:
            bin: A value, or a tuple of values where the collection has several columns.
            window: Of a measurement of windows, any time in the window, as the column of the time holds them.
            epoch: Of one at every epoch, a closed epoch from the first that closed after it was made; by default the
                last.

        Raises:
            BinError: The collection could never hold such a bin, or the column such a time.
            NotReadyError: The window or the epoch is still open, or the epoch was closed before.
            PlanError: A measurement of windows was given none, or one that answers once was given some.
            BudgetError: Each window is charged, and this one costs more than is left.
            SourceError, EngineError, LedgerError: The first question runs the dataflow, which failed.
        """
        refuse_inside("observe")
        codes = bin_codes(bin, self.node.schema)
        if codes is None or not self.times.once:
            value: int | float = self.observe_many([bin], window, epoch=epoch)[0].item()
            return value
        self.times.check(window, epoch)
        return redacted("observe", partial(self._one, codes))

    def observe_many(self, bins: Any, window: Any = None, *, epoch: int | None = None) -> np.ndarray:
        """The noisy weights of many bins, in their order; the same as asking one by one.

        Args:
            bins: An iterable of bins; a range, a NumPy array, or a Polars series or frame is quickest. A lazy frame is
                read in blocks.
            window: See `observe`; or a list of times, whose windows are then read at once.
            epoch: See `observe`.

        Returns:
            One number for each bin: int64 where weights are whole and one record weighs less than 2^22, else float64.
            For a list of windows one row for each.

        Raises:
            BinError, NotReadyError, PlanError, BudgetError, SourceError, EngineError, LedgerError: See `observe`.
        """
        refuse_inside("observe")
        self.times.check(window, epoch)
        if self.times.window is not None:
            return self._observed_windows(bins, window)
        blocks = bin_blocks(bins, self.node.schema)
        return redacted(
            "observe", lambda: np.concatenate([self._released(*self._parts(block, epoch)) for block in blocks])
        )

    def _observed_windows(self, bins: Any, window: Any) -> np.ndarray:
        bins = bins if isinstance(bins, (Sequence, np.ndarray, pl.Series)) else list(bins)
        bin_frame(bins, self.node.schema)  # mistakes show before a window is charged
        if not isinstance(window, (list, tuple)):
            return self.at(window).observe_many(bins)
        if not window:
            raise PlanError("observe_many(window=[]): it names no window; give any time in each.")
        return np.stack([measured.observe_many(bins) for measured in self.times.at(window)])

    def at(self, time: Any) -> Measurement:
        """The measurement of one window that has closed, for whatever takes a measurement, such as `degrees.reconcile`.

        Args:
            time: Any time in the window, as the column of the time holds them.

        Raises:
            BinError: The column could never hold such a time.
            NotReadyError: The window has not closed yet.
            PlanError: It is no measurement of windows.
            BudgetError: Each window is charged, and this one costs more than is left; nothing was charged.
        """
        measured: Measurement = self.times.at([time])[0]
        return measured

    def pairs(self, bins: Iterable[Any], moment: Moment) -> list[tuple[Any, Any]]:
        """Each of some bins with its noisy weight at a moment at which it has an answer.

        Raises:
            BinError, NotReadyError, BudgetError, SourceError, EngineError, LedgerError: See `observe`.
        """
        window = None if moment.window is None else moment.window[0]
        epoch = moment.epoch if self.times.continual else None
        return list(zip(bins, self.observe_many(bins, window, epoch=epoch).tolist(), strict=True))

    def interval(self, level: Amount = Fraction(95, 100), bins: int = 1, epoch: int | None = None) -> float:
        """Half the width of the interval around an answer that holds the true weight with at least this probability.

        It is exact for the noise, but at every epoch, where it is a bound; and speaks of the noise only: what the bound
        on contributions or a join leaves out is not in it.

        Args:
            level: Between 0 and 1.
            bins: Around how many answers the intervals shall hold all together.
            epoch: Of a measurement at every epoch, that of the answers; by default the last that closed.

        Raises:
            PlanError: The level is not strictly between 0 and 1, or `bins` is not a whole number above zero.
            NotReadyError: See `observe`.
        """
        return self.times.half_width(exact(level, "interval(level=...)"), bins, epoch) / self._unit

    def stddev(self, epoch: int | None = None) -> float:
        """The standard deviation of the noise, in weight; at every epoch that of one, by default the last.

        Raises:
            NotReadyError: See `observe`.
        """
        return math.sqrt(self.times.variance(epoch)) / self._unit

    def release(
        self, threshold: Amount | None = None, delta: Amount | None = None, keys: Any = None
    ) -> Answer:  # fmt: skip
        """Publish bins as a table: those that pass a threshold, without naming them first, or exactly the given ones.

        Without `keys`, the least threshold is published from which a unit shows the existence of bins that nobody else
        is in with probability `delta` only, over all of its bins together (a lower one where `users(..., per=)` bounds
        a person's records in one bin). Then delta is charged, once, before anything is looked at. The counts are those
        that `observe` gives. The names are found by computing the plan once more, so a plan whose functions have no
        fingerprint (`explain` shows which) is refused, but for numbers of slices.

        With `keys`, absent bins are published like present ones, and nothing is charged. Of a hundred million keys in a
        lazy frame (`pl.scan_parquet`), with a threshold that few pass, a block at a time is held.

        Args:
            threshold: Publish from this noisy weight on, where it is above the private threshold; costs no more.
            delta: What it costs each data set, beside the epsilon of the measurement; `protect(delta=)` allows it.
                By default 10^-6; with Renyi accounting a tenth of what the ledger has for thresholds, if that is less.
            keys: Exactly the bins to publish, as in `observe_many`.

        Returns:
            The bins and their noisy weights, the largest first, then by name.

        Raises:
            ExactnessError: An amount is not a finite number, or delta is not strictly between 0 and 1.
            BudgetError: Delta is more than is left; nothing was charged.
            BinError: A key is no bin of the collection.
            PlanError: There are no keys, and the plan has no fingerprint, or the noise another law than thresholds are
                known for; nothing was charged.
            SourceError, EngineError, LedgerError: The dataflow could not run.
        """
        refuse_inside("release")
        if self.times.unreleased:
            raise PlanError(f"release: {self.times.unreleased}.")
        least = None if threshold is None else math.ceil(exact(threshold, "release(threshold=...)") * self._unit)
        if keys is not None:
            return self._table(bin_blocks(keys, self.node.schema, "release(keys=...)"), least, Fraction(0))
        from wpinq.core.pricing.threshold import delta_of, private_threshold
        from wpinq.core.runs.key_recovery import names_of

        lost = delta_of(delta, self.quote.sources, "release(delta=...)")
        tau = private_threshold(self.node, self._mechanism, lost)
        pay([self.quote.publishing("release", lost)])
        tau = tau if least is None else max(tau, least)
        chosen = redacted("release", lambda: self._passing(tau))
        return self._table(in_blocks(names_of(self.node, chosen)), tau, lost)

    def _passing(self, tau: int) -> list[np.ndarray]:
        """The names or identities of the bins whose noisy weight is at least tau, in steps."""
        from wpinq.core.runs.key_recovery import present

        histogram, words = self._settled()
        noisy = (
            (known, self._sum(true, self._mechanism.draw(words, ids)))
            for known, ids, true in present(histogram, self.node)
        )
        return [known[(total >= tau).astype(np.bool_)] for known, total in noisy]

    def _table(self, blocks: Blocks, tau: int | None, delta: Fraction) -> Answer:
        from wpinq.core.measurements.answer import About, Answer
        from wpinq.core.measurements.published import ordered

        shown, totals = zip(*redacted("release", lambda: [self._above(block, tau) for block in blocks]), strict=True)
        counts, node = self._divided(np.concatenate(totals)), self.node
        table = ordered(pl.concat(shown), counts, node.schema, whole=node.held.whole)
        about = About(self.quote.label, (self,), delta, None if tau is None else tau / self._unit)

        def released(level: Fraction, simultaneous: bool) -> Released:
            half = self.interval(level, bins=max(table.height, 1) if simultaneous else 1)
            last = table[:, -1]
            return table, {last.name: (last - half, last + half)}

        return Answer(about, released)

    def _above(self, frame: pl.DataFrame, tau: int | None) -> tuple[pl.DataFrame, np.ndarray]:
        """The bins of a block whose noisy weights reach a threshold, and these, in steps."""
        total = self._sum(*self._parts(frame))
        passes = np.full(len(total), True) if tau is None else (total >= tau).astype(np.bool_)
        return frame.filter(passes), total[passes]

    @cached_property
    def _whole(self) -> bool:
        """Whether answers are whole numbers."""
        return self._unit == 1 and self.node.held.whole

    @cached_property
    def _unit(self) -> int:
        """Steps of the noise in a weight of 1."""
        return self._mechanism.grid * self.node.resolution

    @cached_property
    def _identity_key(self) -> bytes:
        return self.key_owner.identity_key

    def _one(self, codes: list[bytes]) -> int | float:
        """What `observe_many` gives for one bin, without a frame or arrays."""
        histogram, words = self._settled()
        known = identity(codes, self._identity_key)
        true, grid, noise = histogram.weight(codes, known), self._mechanism.grid, self._mechanism.draw_one(words, known)
        total = true + noise if grid == 1 else int(true) * grid + noise
        return int(total) if self._whole else float(total) / self._unit

    def _parts(self, frame: pl.DataFrame, epoch: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The true weights of bins, and their noise in steps."""
        return self.times.parts(self, frame, epoch)

    def _released(self, true: np.ndarray, noise: np.ndarray) -> np.ndarray:
        return self._divided(self._sum(true, noise))

    def _sum(self, true: np.ndarray, noise: np.ndarray) -> np.ndarray:
        return noisy(true, noise, self._mechanism.grid)

    def _divided(self, total: np.ndarray) -> np.ndarray:
        """Divide last.

        The sum is rounded to a float before it is divided, for integers of every width, so that the last digits of an
        answer do not reveal how weights are held, which depends on whether there are any.
        """
        released: np.ndarray = total if self._whole else total.astype(np.float64) / self._unit
        return released

    @property
    def about(self) -> dict[str, Any]:
        """What describes its answers: query, data set, unit, cost, and what is not in them, as JSON has it."""
        from wpinq.core.measurements.answer import LEVEL, About

        return About(self.quote.label, (self,)).described(LEVEL)

    def noise_lines(self) -> list[str]:
        """What adds noise, and how wide it is, where that differs from epoch to epoch; for quotes."""
        return self.times.noise_lines()

    def explain(self) -> str:
        """Show the plan, what the measurement costs each source, and the scale of its noise; print and return it."""
        return self.times.explain()

    __repr__ = shown_by("measurement_text")
    _repr_html_ = shown_by("measurement_html")
