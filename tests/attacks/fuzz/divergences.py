"""The exact divergence of all that a ledger answered is within what it says: both books, and the promise of all.

A case is a few records, a neighbour that lacks one unit, and random questions over random plans. The true histograms of
both are taken before noise, as in `run`. From how far each bin moves and from the law that its noise states, mpmath
computes what the composed mechanism loses: the largest loss and the Renyi divergence of each bin in closed sums, the
probability that what only the unit is in gets published, and the hockey-stick divergence of everything together at the
budget, from the distribution of losses, rounded down, so that what is found is never a matter of rounding.
"""

# ruff: noqa: E501

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from typing import Any
from unittest.mock import patch

import mpmath as mp
from attacks.fuzz.fuzzer import Fuzzer
from attacks.fuzz.laws import beyond, exactly, gaussian, laplace, passes, selected, selection_loss
from attacks.fuzz.plant import Plant
from attacks.fuzz.run import QuotedAggregate, Trace, watched

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.sums import renyi as curve
from wpinq.core.ledger.sums.cost import Cost, Total
from wpinq.core.measurements.select import Selection
from wpinq.core.noise.gaussian import DiscreteGaussian
from wpinq.core.plan.node import Node, sources
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing import threshold
from wpinq.core.pricing.sensitivity import UnitSensitivity, ledger_sensitivities
from wpinq.errors import BudgetError, WpinqError

SLACK = mp.mpf(10) ** -25
SECRET = Secret(bytes(range(32)))
COLUMNS = {"user": str, "page": str, "n": int}
DONE = {
    "pairs": 0, "questions": 0, "bins that moved": 0, "divergences": 0, "thresholds and selections": 0, "promises": 0,
}  # fmt: skip
PLANS = [
    "c.map('page')", "c.map('user, page').distinct().map('page')", "c.map('user').distinct()", "c.map('page').concat(c.map('page'))",
    "c.group_by('user', len)", "c.map('page').shave()", "c.map('page').shave('1/2')", "c.group_by('page', len).map('value')",
    "c.filter('n > 1').map('page, n')", "c.partition('page', ['a', 'b'])['a'].map('n')", "c.partition('page', ['a', 'b'])['b'].map('n')",
    "c.map('page').union(c.filter('n > 1').map('page'))", "c.map('page, n').join(c.map('page, n'), on='page', at_most=2)",
    "c.semijoin(c.filter('n > 1'), on='page').map('page')", "c.flat_map(lambda n: [n, n + 1], columns=['v'], at_most=2)",
    "c.map('page').distinct('1/3')", "c.limit('page', 2).map('page')", "c.map('page').concat(c.map('user'))",
]  # fmt: skip


@dataclass
class Sums:
    """What all questions of one case lose, as mpmath has it.

    Attributes:
        pure: The largest loss.
        renyi: The Renyi divergence at the order of the ledger.
        delta: The probability that a threshold or a selection shows what only the unit is in.
        bins: How far each bin moves, with its noise: from these follows the distribution of all losses.
    """

    pure: Any = 0
    renyi: Any = 0
    delta: Any = 0
    bins: list[tuple[int, Any]] = field(default_factory=list)


# ---- cases


def rows(rng: random.Random) -> list[tuple[str, str, int]]:
    return [(rng.choice("wxyz"), rng.choice("abc"), rng.randrange(4)) for _ in range(rng.randrange(1, 9))]


@dataclass(frozen=True)
class Question:
    """A plan, and how it is asked."""

    plan: str
    kind: str
    amount: Fraction
    delta: str
    name: str

    def ask(self, c: Any) -> None:
        """Ask it of a collection."""
        made = eval(self.plan, {"c": c})
        if self.kind == "select":
            made.select(epsilon=self.amount, delta=self.delta, name=self.name)._settled()
        elif self.kind == "gaussian":
            made.measure(rho=self.amount / 8, mechanism="gaussian", name=self.name)._settled()
        elif self.kind == "release":
            made.measure(epsilon=self.amount, name=self.name).release(delta=self.delta)
        else:
            made.measure(epsilon=self.amount, mechanism=self.kind, name=self.name)._settled()


@dataclass(frozen=True)
class Case:
    """Records, the neighbour's, how they are protected, and what is asked."""

    whole: list[tuple[str, str, int]]
    other: list[tuple[str, str, int]]
    options: dict[str, Any]
    questions: list[Question]


def grow(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    book, person, tight = ("pure", "renyi")[seed % 2], rng.random() < 0.5, rng.random() < 0.5
    options: dict[str, Any] = {"budget": rng.choice([1, 2, 3]) if tight else 10**6, "delta": "1e-2"}
    options |= {"accounting": "renyi"} if book == "renyi" else {}
    if person:
        per = {"per": ("page", 1)} if rng.random() < 0.4 else {}
        options["unit"] = wpinq.users("user", at_most=rng.choice([1, 2, 3]), **per)
    whole = rows(rng)
    gone = rng.randrange(len(whole))
    other = [row for place, row in enumerate(whole) if (row[0] != whole[gone][0] if person else place != gone)]
    return Case(whole, other, options, questions(rng, book))


def questions(rng: random.Random, book: str) -> list[Question]:
    """What is asked, within a book."""
    made = []
    for _ in range(rng.randrange(1, 6)):
        plan, amount = rng.choice(PLANS), Fraction(rng.randrange(1, 60), 40)
        kinds = [
            "geometric",
            "geometric",
            "laplace",
            "release",
            "select",
            *(["gaussian"] * 2 if book == "renyi" else []),
        ]
        made.append(Question(plan, rng.choice(kinds), amount, rng.choice(["1e-3", "1e-5"]), str(rng.randrange(3))))
    return made


# ---- what is seen


def run(records: list[Any], case: Case) -> tuple[Trace, Any, list[str]]:
    """Ask all questions; give what was answered, and what the ledger says then."""
    said = []
    c = wpinq.protect(records, columns=COLUMNS, secret=SECRET, name="views", version="1", **case.options)
    with watched() as trace:
        for question in case.questions:
            try:
                question.ask(c)
                said.append("")
            except WpinqError as error:
                said.append(type(error).__name__ + ("" if isinstance(error, BudgetError) else str(error)[:60]))
    ledger = sources(c._node)[0].ledger
    with ledger.transaction() as session:
        return trace, (session.accountant.spent, session.accountant.promise), said


def judge(case: Case) -> list[str]:
    """Compare what two neighbours lose with what their ledger says."""
    (one, (spent, promise), said), (two, after, again) = run(case.whole, case), run(case.other, case)
    DONE["pairs"] += 1
    if said != again or amounts(spent) != amounts(after[0]):
        return [f"what is refused or charged depends on the records: {said} and {again}"]
    return list(compared(one, two, spent, promise))


def amounts(spent: Any) -> tuple[Fraction, ...]:
    return spent.epsilon, spent.divergence, spent.delta


def compared(one: Trace, two: Trace, spent: Any, promise: Any) -> Iterator[str]:
    order = promise.order or Fraction(8)
    there, back = Sums(), Sums()
    seen: set[str] = set()
    for with_it, without in zip(one.asked, two.asked, strict=True):
        if with_it.content is None or without.content is None or with_it.question.question in seen:
            continue
        seen.add(with_it.question.question)
        add(there, with_it, without, order)
        add(back, without, with_it, order)
    DONE["questions"] += len(seen)
    DONE["bins that moved"] += len(there.bins)
    for sums in (there, back):
        if not spent.gaussian and sums.pure > exactly(spent.epsilon) + SLACK:
            yield f"epsilon {mp.nstr(sums.pure, 12)} is lost, and {float(spent.epsilon):.12g} were charged"
        if spent.curves and sums.renyi > exactly(spent.divergence) + SLACK:
            yield f"divergence {mp.nstr(sums.renyi, 12)} at order {order}, and {float(spent.divergence):.12g} were charged"
        if sums.delta > exactly(spent.delta) + SLACK:
            yield f"delta {mp.nstr(sums.delta, 12)}, and {float(spent.delta):.12g} were charged"
        if spent.curves and promise.budget < 10 and sums.bins and all(abs(steps) < 3000 for steps, _ in sums.bins):
            DONE["promises"] += 1
            found = beyond(sums.bins, float(promise.budget))
            if found > float(promise.delta - promise.failing) * (1 + 1e-9):
                yield f"delta {found:.6g} at epsilon {promise.budget}, and {float(promise.delta):.6g} are promised"


def add(sums: Sums, one: QuotedAggregate, other: QuotedAggregate, order: Fraction) -> None:
    """Add what one question loses, from the first to the second."""
    mine, others = one.content or {}, other.content or {}
    question, noise = one.question, one.question._mechanism
    if isinstance(question, Selection):
        DONE["thresholds and selections"] += 1
        moved = [
            (mine.get(key, 0), others.get(key, 0)) for key in {*mine, *others} if mine.get(key, 0) != others.get(key, 0)
        ]
        sums.pure += selection_loss(noise, question.epsilon, moved)
        sums.delta += selected(noise, moved)
        return
    steps = [(mine.get(key, 0) - others.get(key, 0)) for key in {*mine, *others}]
    for step in (one_step for one_step in steps if one_step):
        DONE["divergences"] += 1
        if isinstance(noise, DiscreteGaussian):
            sums.renyi += gaussian(step, noise.square, order)
        else:
            sums.pure += abs(step) / exactly(noise.scale)
            sums.renyi += laplace(step * noise.grid, noise.scale * noise.grid, order)
        sums.bins.append((step * noise.grid, noise))
    hidden = mp.mpf(1)
    for tau in set(one.taus):
        DONE["thresholds and selections"] += 1
        for key in mine.keys() - others.keys():
            hidden *= 1 - passes(noise, mine[key], tau)
        sums.delta += 1 - hidden


# ---- old bugs


def halved() -> list[Any]:
    """The curve of a bin is that of half of its shift."""
    real = curve.rate
    cost = import_module("wpinq.core.ledger.sums.cost")
    return [patch.object(cost, "rate", lambda loss, step, order: real(loss / 2, min(step, loss / 2), order))]


def largest_part() -> list[Any]:
    """Of all paths only the largest counts, as if all were parts of one group."""

    def add(self: Total, under: Any, growth: Fraction, times: Fraction) -> None:
        self.amount = max(self.amount, growth)

    return [patch.object(Total, "add", add)]


def one_bin() -> list[Any]:
    """A threshold looks at one bin of a unit, however many it is alone in."""

    def found(plan: Node | Survey) -> dict[str, UnitSensitivity]:
        return {book: _of_one_bin(one) for book, one in ledger_sensitivities(plan).items()}

    return [patch.object(threshold, "ledger_sensitivities", found)]


def one_bin_selected() -> list[Any]:
    """A selection looks at one bin of a unit, however many it is alone in."""
    select = import_module("wpinq.core.measurements.select")

    def found(plan: Node | Survey) -> list[UnitSensitivity]:
        return [_of_one_bin(one) for one in ledger_sensitivities(plan).values()]

    return [patch.object(select, "unit_sensitivities", found)]


def _of_one_bin(unit: UnitSensitivity) -> UnitSensitivity:
    return UnitSensitivity(unit.linf, unit.linf, unit.data_sets)


def rho_of_one() -> list[Any]:
    """Gaussian noise is charged by the largest bin, not by the sum of squares."""
    real = Cost.at
    return [patch.object(Cost, "at", lambda self, order: real(self, order) if not self.rho else self.rho * 1)]


PLANTS = {
    "halved": Plant("the curve of a bin is that of half of its shift", halved, 23),
    "largest_part": Plant("of all paths only the largest counts", largest_part, 0),
    "one_bin": Plant("a threshold looks at one bin of a unit", one_bin, 140),
    "one_bin_selected": Plant("a selection looks at one bin of a unit", one_bin_selected, 6),
    "rho_of_one": Plant("Gaussian noise is charged by the largest bin", rho_of_one, 41),
}
FUZZER = Fuzzer("divergences", grow, judge, PLANTS, seen=DONE)
