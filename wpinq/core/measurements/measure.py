"""`explain`, `quote`, `measure`: of what can be measured: a whole, a live epoch, windows, and every epoch."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from wpinq.arguments import FLAG, NAME, takes
from wpinq.core.measurements.measurement import Measurement, quoted
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.privacy_cost import BEST, GAUSSIAN, LAPLACE, Terms
from wpinq.core.pricing.quote import Quote
from wpinq.core.runs.epochs import log_of, opened
from wpinq.errors import PlanError
from wpinq.exact import Amount
from wpinq.lazy import above

if TYPE_CHECKING:
    from wpinq.core.plan.node import Builder


@takes(mechanism=NAME, continual=FLAG)
def quote(
    self: Builder[Any], epsilon: Amount | None = None, name: str | None = None, mechanism: str = "geometric",
    analyst: str | None = None, *, within: Amount | None = None, confidence: Amount = Fraction(95, 100),
    continual: bool = False, rho: Amount | None = None, delta: Amount | None = None, horizon: int | None = None,
) -> Quote[Measurement]:  # fmt: skip
    """Say what a measurement would cost and be worth, and charge nothing; `measure(quote=...)` charges it.

    It shows what each data set would pay, the scale of the noise, the error to expect of a bin, and what is left.
    What is charged later is what was quoted: the same measurement, however often the quote is given. A quote over a
    live source is for the epoch that is open; once that has closed it is refused.

    Args:
        epsilon, name, mechanism, analyst, within, confidence, continual, rho, delta, horizon: See `measure`.

    Raises:
        ExactnessError, PlanError: See `measure`.

    >>> from wpinq.testing import protected
    >>> views = protected(page="text")
    >>> quote = views.quote(epsilon="0.1")
    >>> quote
    measure(epsilon=0.1)  geometric noise of scale 10
      noise moves a bin by 9.983 on average, and by at most 30 with probability 0.95
      data set 'records': epsilon 0.1
      published by release(delta=0.000001): bins whose noisy count is below 133 are left out
      now: epsilon 0.1 to pay; data set 'records' has 1000000 left, and 999999.9 afterwards
    >>> views.measure(quote=quote).epsilon
    Fraction(1, 10)
    """
    terms = Terms(epsilon, mechanism, rho, delta, within, confidence)
    return quote_terms(self, terms, name, analyst, continual=continual, horizon=horizon)


def quote_terms(
    self: Builder[Any], terms: Terms, name: str | None, analyst: str | None, *, continual: bool = False,
    horizon: int | None = None,
) -> Quote[Measurement]:  # fmt: skip
    """Quote a measurement on these terms; see `quote`."""
    survey = Survey.of(fit_noise(self._node))
    log = log_of(survey.sources)
    if continual and terms.within is not None:
        raise PlanError("measure(within=..., continual=True): its noise widens with the epochs; give epsilon=.")
    if horizon is not None and not (continual and terms.mechanism == GAUSSIAN):
        raise PlanError("measure(horizon=...): goes with continual=True and mechanism='gaussian'.")
    if continual and terms.mechanism == BEST:
        raise PlanError(
            "measure(continual=True): name the noise, mechanism='geometric' or mechanism='gaussian'; which is nearer "
            "to the truth differs from epoch to epoch. Nothing was charged."
        )
    paid = terms.agreed(survey)
    if continual:
        if log is None:
            raise PlanError(
                "measure(continual=True): a finite source has no epochs; use wpinq.live(...), or --follow in a command."
            )
        from wpinq.core.measurements.continual import continual_measurement

        forever = continual_measurement(survey, log, paid, horizon, name=name, analyst=analyst)
        return forever.but(of=self._node)
    if any(node.many for node in survey.steps):
        from wpinq.core.measurements.windows import Windows
        from wpinq.core.operators.window import each_is_charged

        windowed = quoted(survey, paid, times=Windows, name=name, analyst=analyst)
        return windowed.but(of=self._node, charges=() if each_is_charged(survey) else windowed.charges)
    survey, epochs = opened(survey)
    return quoted(survey, paid, name=name, analyst=analyst, epochs=epochs).but(of=self._node)


_quoted = quote  # `measure` has an argument of that name


@takes(mechanism=NAME, continual=FLAG)
def measure(
    self: Builder[Any], epsilon: Amount | None = None, name: str | None = None, mechanism: str = "geometric",
    analyst: str | None = None, *, within: Amount | None = None, confidence: Amount = Fraction(95, 100),
    continual: bool = False, quote: Quote[Measurement] | None = None, rho: Amount | None = None,
    delta: Amount | None = None, horizon: int | None = None,
) -> Measurement:  # fmt: skip
    """Charge for a noisy histogram of the collection, computed when it is first observed.

    The same plan on the same version with the same name, scale and mechanism is the same measurement: it costs nothing
    again and gives the same answers, in this process or another. A name makes an independent repetition.

    A measurement of windows answers for each window by itself: `observe(bin, window=...)`. One of a live source
    answers for the first epoch that closes after it was made, and with `continual` for that one and every later one:
    `observe(bin, epoch=...)`.

    Args:
        epsilon: What the measurement costs the privacy unit, exact; who is in several tables of a ledger loses the sum
            over these, which `quote` tells. The noise scale is the largest movement that one unit can cause in one
            table, divided by epsilon; a continual one needs more (`stddev`).
        name: Tells repetitions apart, and names the charge in the ledger.
        mechanism: "geometric" (discrete Laplace), "laplace" (on a dyadic grid), "gaussian" (discrete Gaussian, for rho,
            or epsilon and delta), or "best": geometric noise of this epsilon or Gaussian noise of this epsilon and
            delta, whichever keeps a bin nearer to the truth with probability `confidence`. That follows from the plan
            and the amounts alone, and the answer is the same as by the name of what was chosen.
        analyst: Who is charged, where the curator keeps caps for each analyst.
        within: Instead of epsilon, how near to the truth a bin shall be: the least epsilon that does it, in four
            significant digits, is charged, and is told by `epsilon`, `repr` and `explain`. Not with `continual`.
        confidence: How often a bin shall be as near as `within`.
        continual: Answer at every epoch of a live source, for ever, for this epsilon in all. Only where every step is
            linear for each record: map, filter, flat_map, concat, subtract and partition. Of people, each with
            `at_most` records, the first ones are kept then, for ever; a sample or a share would take back what was
            counted before.
        quote: What `quote` gave for the collection, instead of all the others.
        rho: Instead of epsilon, what Gaussian noise costs the privacy unit: zero-concentrated differential privacy. Its
            variance is the largest S B of a ledger, divided by 2 rho, where one unit moves all bins together by S and
            one bin by B at most (`explain` shows both).
        delta: With epsilon, for Gaussian noise. A ledger that adds up epsilons and deltas is charged both, and all
            bins are asked at once: the noise is as narrow as can be. One that adds up divergences is charged the
            largest rho that is (epsilon, delta)-differentially private, and says in its own way what its rho means.
        horizon: With `continual` and mechanism="gaussian", epsilon and delta: the last epoch that is answered, by the
            source's numbers. Noise grows with its logarithm: at (1, 1e-6) the deviation is 20 at most for 10^5 epochs,
            and 23.1 for 10^6 (`core/noise/factored_sums.py`). Without it every epoch is answered, and the deviation is
            29.4 at epoch 10^5 and 31.7 at 10^6 (`core/noise/endless_sums.py`).

    Raises:
        ExactnessError: An amount is not a finite number above zero, or there is none.
        PlanError: Both of `epsilon` and `within` are given, `continual` does not fit them or the plan, its windows
            are of several lengths, or the live source has let go of records that it needs (`live(keep=...)`). Or a
            quote is of another collection, or of an epoch that has closed.
        BudgetError: It costs more than is left; nothing was charged and nothing drawn.
        LedgerError: The ledger cannot be trusted or written; nothing was drawn.
    """
    result = _quoted(
        self, epsilon, name, mechanism, analyst, within=within, confidence=confidence, continual=continual, rho=rho,
        delta=delta, horizon=horizon,
    ) if quote is None else _given(self, quote, epsilon, within, name, analyst, continual or None, rho, delta, horizon,
                                   None if mechanism == "geometric" else mechanism)  # fmt: skip
    made: Measurement = self._commit([result])[0]
    return made


def _given(collection: Builder[Any], quote: Quote[Measurement], *more: object) -> Quote[Measurement]:
    """A quote, where it is one of this collection and says all."""
    if not isinstance(quote, Quote):
        raise PlanError(f"measure(quote=...): takes what quote(...) gave, and got {type(quote).__name__}.")
    if quote.of is not collection._node:
        raise PlanError("measure(quote=...): the quote is of another collection; measure the one that was quoted.")
    if any(item is not None for item in more):
        raise PlanError("measure(quote=...): epsilon=, name= and all else are those of the quote; leave them.")
    return quote


@takes(mechanism=NAME)
def explain(
    self: Builder[Any], epsilon: Amount | None = None, *, mechanism: str = LAPLACE, rho: Amount | None = None,
    delta: Amount | None = None,
) -> str:  # fmt: skip
    """Print the plan as a tree, and what a measurement with this epsilon, or rho, would cost; spend nothing.

    A step that several others read is shown once, with a number. Columns stand at a source, and where a step changes
    them. A step that rounds says what that does to weights.

    Args:
        epsilon: Shows the noise scale, the error to expect of a bin, and the charge to each source as well.
        mechanism, rho, delta: The same for another noise; see `measure`.

    Returns:
        The text.

    Raises:
        ExactnessError: An amount is not a finite number above zero.
        PlanError: The amounts do not fit each other, the mechanism, or the ledger of a data set.
    """
    terms = Terms(epsilon, mechanism, rho, delta, call="explain")
    text: str = above("explain_plan")(fit_noise(self._node), terms)
    return text
