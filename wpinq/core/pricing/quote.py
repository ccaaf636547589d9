"""Quotes: the price of a query, computed before anything is charged, and exactly what is charged later.

A charged query is identified by one injective tuple: formats, the data sets with their versions and units, plan, name,
resolution, scale, and the parameters of its mechanism. The same tuple is the same query: it costs nothing again and has
the same answers, in this process or another. A plan without a fingerprint is a new query at every quote; random bytes
in the quote take the place of the fingerprint, so that committing the quote again is the same query.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar
from weakref import WeakSet

from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.ledger import Charge, Cost, Price, Request, merged, price_all, wording
from wpinq.core.noise import FORMAT, Mechanism, is_gaussian
from wpinq.core.plan.node import Node, holding, steps
from wpinq.core.plan.phrase import phrase, shortened
from wpinq.core.plan.stability import Survey, by_ledger
from wpinq.core.pricing.privacy_cost import Payment, costs_at_once, gaussian_costs, moved_squared
from wpinq.core.pricing.sensitivity import ledger_sensitivities
from wpinq.core.records import values
from wpinq.core.records.fields import Field, encode
from wpinq.core.runs.epochs import Epochs
from wpinq.errors import PlanError
from wpinq.lazy import above, shown_by

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet

C_co = TypeVar("C_co", covariant=True)


@dataclass(frozen=True, eq=False)
class Quote(Generic[C_co]):
    """What a query would cost. It spends nothing; `collection.measure(quote=...)` charges it, once for all times.

    Attributes:
        call: The call that it is a quote of: "measure".
        node: The plan, over the versions of the data that it would be computed from.
        epsilon: What it costs the privacy unit; 0 for Gaussian noise, which costs rho.
        rho: What Gaussian noise costs it.
        delta: What it costs beside that.
        scale: The largest movement that one unit can cause, divided by epsilon; in weight (of a record: 1). Of Gaussian
            noise its standard deviation.
        name: Tells repetitions apart, and names the charge.
        analyst: Who is charged, where the curator keeps caps for each analyst.
        sensitivities: For each data set how far one unit of it can move what is measured, in weight.
        mechanism: What adds noise, or chooses.
        key: The injective tuple that the answers are bound to.
        question: Tells it from other queries, in the ledger.
        charges: What each ledger is asked for; nothing where each window is charged when it is asked for.
        epochs: Which epochs of a live source answer it; None where its answers come from a run.
        kind: Makes the charged query, once the quote is committed.
        of: The plan as the collection that was asked holds it.
        made: The query that it became, once one was asked for: always the same one, computed once.
        words: The text of the question, cut to a size, where it is not that of its plan: SQL.
    """

    call: str
    node: Node
    epsilon: Fraction
    delta: Fraction
    scale: Fraction
    name: str | None
    analyst: str | None
    sensitivities: Mapping[DataSet, Fraction] = field(repr=False)
    mechanism: Any = field(repr=False)
    key: tuple[Field, ...] = field(repr=False)
    question: str
    charges: tuple[Request, ...] = field(repr=False)
    epochs: Epochs | None = field(repr=False)
    kind: Callable[[Quote[Any]], C_co] = field(repr=False)
    of: Node | None = field(default=None, repr=False)
    rho: Fraction = Fraction(0)
    made: list[C_co] = field(default_factory=list, repr=False)
    words: str = field(default="", repr=False)

    @property
    def label(self) -> str:
        """What it is called: by its name, or else by the text of the question."""
        return self.name or self.words or phrase(self.node)

    @property
    def sources(self) -> list[DataSet]:
        """The data sets that it reads; the secret of the first one keys it."""
        return list(self.sensitivities)

    @property
    def payment(self) -> Payment:
        """What it costs, with the name of its noise."""
        delta = self.delta if self.gaussian and self.epsilon else Fraction(0)
        return Payment(getattr(self.mechanism, "name", ""), self.epsilon, self.rho, delta)

    @property
    def paid(self) -> dict[str, Fraction]:
        """The epsilon that it costs who is in all tables of a ledger, by ledger; of Gaussian noise it is of all."""
        shares = by_ledger(self.sensitivities)
        return {book: self.epsilon * (1 if self.gaussian else sum(each)) for book, each in shares.items()}

    @property
    def gaussian(self) -> bool:
        """Whether its noise is Gaussian."""
        return is_gaussian(self.mechanism)

    @property
    def at_once(self) -> bool:
        """Whether it is answered as soon as it is charged; not where a window or an epoch has to close first."""
        windows = any(node.many for node in steps(self.node))
        return self.epochs is None and not windows

    @property
    def releases(self) -> bool:
        """Whether its bins can be published without naming them, as `release` does."""
        return self.call == "measure" and self.at_once

    @property
    def prices(self) -> list[Price]:
        """What it would cost each data set if it were charged now, and what is left of its budget.

        It is less than the quoted amounts where the query was charged before, or is one of the parts of a partition.

        Raises:
            LedgerError: A ledger cannot be trusted or read.
        """
        return price_all(self.charges)

    @property
    def query(self) -> C_co:
        """The one query that it becomes, however often it is committed; it answers once it is charged.

        If it were computed again, a function without a fingerprint could compute something else by then, and whether
        the charged query is then refused would reveal something about records, without a charge.

        Raises:
            PlanError: See `insist`.
        """
        self.insist()
        if not self.made:
            self.made.append(self.kind(self))
        return self.made[0]

    def check(self) -> None:
        """Refuse a quote that was altered by hand, or whose epoch has closed.

        Raises:
            PlanError: See `insist`; or the quote was for an epoch that has closed; nothing was charged.
        """
        self.insist()
        if self.epochs is not None:
            self.epochs.check(self.call)

    def insist(self) -> None:
        """Refuse a quote that was altered by hand, because its charges need not be those of its query.

        Raises:
            PlanError: It was not made by `price`; nothing was charged.
        """
        if self not in _priced:
            raise PlanError(
                f"{self.call}(quote=...): the quote was put together or altered by hand, so what it says need not be "
                "what it costs; quote again, it costs nothing. Nothing was charged."
            )

    def publishing(self, what: str, delta: Fraction) -> Quote[C_co]:
        """The same query, with a delta for a further publication of its answers.

        Raises:
            PlanError: See `insist` and `refuse_unnamed`.
        """
        from wpinq.core.pricing.threshold import refuse_unnamed

        refuse_unnamed(self.node, what)
        question = blake2b(encode(self.key, what, delta), digest_size=32).hexdigest()
        further = [
            (data.ledger, _charge(self, question, data, (Cost(Fraction(0), delta),)))
            for data in self.sources
        ]  # fmt: skip
        return self.but(delta=self.delta + delta, charges=(*self.charges, *merged(further)))

    def worded(self, text: str) -> Quote[C_co]:
        """The same query, which the ledger knows by this text unless it has a name."""
        label = self.name or shortened(text)
        charges = tuple((ledger, replace(charge, label=label)) for ledger, charge in self.charges)
        return self.but(words=label, charges=charges)

    def but(self, **changes: Any) -> Quote[C_co]:
        """The same query, of which something else is told or charged. Only what was priced can be changed.

        Raises:
            PlanError: See `insist`.
        """
        self.insist()
        return _known(replace(self, **changes))

    def __str__(self) -> str:
        text: str = above("quote_text")(self, self._widths())
        return text

    def _widths(self) -> Sequence[str]:
        """The lines about noise of every epoch, which is wider than that of one answer; none where there are none."""
        if self.epochs is None or self not in _priced:
            return ()
        lines: Sequence[str] = getattr(self.query, "noise_lines", list)()
        return lines

    def __repr__(self) -> str:
        return str(self)

    _repr_html_ = shown_by("quote_html")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Quote is never pickled or copied; quote again, it costs nothing.")


_priced: WeakSet[Quote[Any]] = WeakSet()
"""Quotes whose fields are those that `price` found."""


def _known(quote: Quote[C_co]) -> Quote[C_co]:
    _priced.add(quote)
    return quote


def price(
    survey: Survey, epsilon: Fraction, *, call: str, kind: Callable[[Quote[Any]], C_co], mechanism: object,
    fields: tuple[Field, ...], name: str | None, analyst: str | None, delta: Fraction = Fraction(0),
    epochs: Epochs | None = None, noise: Mechanism | None = None,
) -> Quote[C_co]:  # fmt: skip
    """Price a query: which one it is, how wide its noise is, and what each ledger is to be charged; charge nothing.

    Args:
        survey: The plan, over the versions of the data that the query would be computed from.
        epsilon: What it costs the privacy unit; Gaussian noise says by itself what that is.
        call: What the caller called, for messages.
        kind: Makes the charged query of a quote that was committed.
        mechanism: What adds noise, or chooses.
        fields: Whatever the mechanism depends on beside the plan, the scale and the resolution.
        name: Tells repetitions apart, and names the charge.
        analyst: Who is charged.
        delta: What it costs beside epsilon, for all bins of a unit together.
        epochs: Which epochs of a live source answer it.
        noise: The noise that each bin has once, where that is all that is told: then its Renyi curve is known.

    Raises:
        PlanError: A user's function asks while it runs, the plan reads no protected source or its weights cannot be
            held, or a name is no text.
    """
    refuse_inside(call)
    label, who = wording(name, f"{call}(name=...)"), wording(analyst, f"{call}(analyst=...)")
    for step in survey.steps:
        holding(step)
    gaussian = noise if is_gaussian(noise) else None
    node = survey.root
    scale = gaussian.scale / node.resolution if gaussian else survey.scale(epsilon)
    fields = (*fields, gaussian.square) if gaussian else fields
    about = tuple((data.ledger.identity, data.edition, data.unit.text, data.unit.bound or 0) for data in survey.sources)
    plan = survey.fingerprint or os.urandom(32)
    key = (values.FORMAT, FORMAT, about, plan, label, *fields, node.resolution, scale)
    question = blake2b(encode(*key), digest_size=32).hexdigest()
    people = None if survey.portable is None else (survey.portable, label, *fields, node.resolution, scale)
    same = "" if people is None else blake2b(encode(*people), digest_size=16).hexdigest()
    sensitivities = {data: survey.sensitivities[data] for data in survey.sources}
    result = Quote(
        call, node, epsilon, delta, scale, label, who, sensitivities, mechanism, key, question, (), epochs, kind,
        rho=gaussian.rho(moved_squared(survey)) if gaussian and not epsilon else Fraction(0),
    )  # fmt: skip
    costs = _costs(survey, scale, delta, noise) if not gaussian else costs_at_once(
        survey, epsilon, delta) if epsilon else gaussian_costs(survey, gaussian.square)  # fmt: skip
    charges = [(data.ledger, _charge(result, question, data, paid, same)) for data, paid in costs.items()]
    return _known(replace(result, charges=merged(charges)))


def _costs(
    survey: Survey, scale: Fraction, delta: Fraction, noise: Mechanism | None
) -> dict[DataSet, tuple[Cost, ...]]:
    """What each data set pays: epsilon by path, and delta for all bins of a unit together."""
    costs: dict[DataSet, list[Cost]] = defaultdict(list)
    curves = _curves(survey, scale, noise)
    for (data, parts), move in survey.moves.items():
        curve = curves.get(data.ledger.identity)
        times = survey.times(data) if parts else Fraction(1)
        costs[data].append(Cost(move / scale, Fraction(0), parts, times=times, curve=curve))
    for paid in costs.values() if delta else ():
        paid.append(Cost(Fraction(0), delta))
    return {data: tuple(paid) for data, paid in costs.items()}


def _curves(survey: Survey, scale: Fraction, noise: Mechanism | None) -> dict[str, tuple[Fraction, Fraction]]:
    """The Renyi curve of what each ledger pays, by its identity, where divergences are added up; see `Cost.curve`."""
    whole: dict[str, Fraction] = defaultdict(Fraction)
    for data, move in survey.sensitivities.items():
        if data.ledger.curves:
            whole[data.ledger.identity] += move / scale
    if noise is None or not whole:
        return {ledger: (epsilon, epsilon) for ledger, epsilon in whole.items()}
    step, moves = 1 / (scale * survey.root.resolution), ledger_sensitivities(survey)
    return {ledger: (moves[ledger].linf * step, step / noise.grid) for ledger in whole}


def _charge(quote: Quote[Any], question: str, data: DataSet, paid: Sequence[Cost], lasting_key: str = "") -> Charge:
    within = data.unit.bounded
    return Charge(question, tuple(paid), data.edition, quote.label, quote.analyst, lasting_key, within)
