"""The exact divergence of all that a ledger answered is within what it says: both books, and the promise of all.

A case is a few records, a neighbour that lacks one unit, and random questions over random plans. The true histograms of
both are taken before noise, as in `run`. From how far each bin moves and from the law that its noise states, mpmath
computes what the composed mechanism loses: the largest loss and the Renyi divergence of each bin in closed sums, the
probability that what only the unit is in gets published, and the hockey-stick divergence of everything together at the
budget, from the distribution of losses, rounded down, so that what is found is never a matter of rounding.
"""

# ruff: noqa: E501

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from typing import Any
from unittest.mock import patch

import mpmath as mp
from attacks.fuzz.long import Fuzzer
from attacks.fuzz.run import QuotedAggregate, Trace, watched

import wpinq
from wpinq.errors import BudgetError, WpinqError
from wpinq.ledger import curve
from wpinq.ledger.cost import Cost, Total
from wpinq.ledger.secret import Secret
from wpinq.measurements.select import Selection
from wpinq.measurements.sensitivity import UnitSensitivity, unit_sensitivities
from wpinq.noise import DiscreteGaussian
from wpinq.plan.node import Node, sources

mp.mp.dps = 50
SLACK = mp.mpf(10) ** -25
SECRET = Secret(bytes(range(32)))
COLUMNS = {"user": str, "page": str, "n": int}
DONE = {
    "pairs": 0,
    "questions": 0,
    "bins that moved": 0,
    "divergences": 0,
    "thresholds and selections": 0,
    "promises": 0,
}
GRID = 2**16
"""Losses are multiples of 1 / GRID in the distribution of all losses."""
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


def exactly(number: Fraction) -> Any:
    return mp.mpf(number.numerator) / number.denominator


# ---- the laws


def laplace(steps: int, scale: Fraction, order: Fraction) -> Any:
    """The divergence of discrete Laplace noise that moves by so many steps: three geometric sums."""
    r, a, s = mp.exp(-1 / exactly(scale)), exactly(order), abs(steps)
    left, right = r ** ((1 - a) * s) / (1 - r), r ** (a * s) / (1 - r)
    each = r ** (2 * a - 1)
    middle = r ** ((1 - a) * s) * each * (1 - each ** (s - 1)) / (1 - each)
    return mp.log((left + middle + right) * (1 - r) / (1 + r)) / (a - 1)


def gaussian(steps: int, square: Fraction, order: Fraction) -> Any:
    """The divergence of discrete Gaussian noise: two theta sums."""
    a, two = exactly(order), 2 * exactly(square)
    reach = int(mp.sqrt(two) * 12) + abs(steps) + 2
    whole = mp.fsum(mp.exp(-(mp.mpf(k) ** 2) / two) for k in range(-reach, reach + 1))
    centre = (1 - a) * steps
    at = int(mp.nint(centre))
    shifted = mp.fsum(mp.exp(-((k - centre) ** 2) / two) for k in range(at - reach, at + reach + 1))
    return (a * (a - 1) * mp.mpf(steps) ** 2 / two + mp.log(shifted / whole)) / (a - 1)


def losses(steps: int, noise: Any) -> dict[int, float]:
    """The distribution of the loss of one bin, in multiples of 1 / GRID, rounded down."""
    found: dict[int, float] = {}
    if isinstance(noise, DiscreteGaussian):
        two, reach = 2 * float(noise.square), int(math.sqrt(float(noise.square)) * 9) + abs(steps) + 2
        weights = [(k, math.exp(-k * k / two)) for k in range(-reach, reach + 1)]
        pairs = [(((k - steps) ** 2 - k * k) / two, weight) for k, weight in weights]
    else:
        scale, s = float(noise.scale * noise.grid), abs(steps)
        r = math.exp(-1 / scale)
        pairs = [(s / scale, 1 / (1 - r)), (-s / scale, r**s / (1 - r))]
        pairs += [((s - 2 * k) / scale, r**k) for k in range(1, s)]
    whole = sum(weight for _, weight in pairs) * (1 + 1e-12)
    for loss, weight in pairs:
        place = math.floor(loss * GRID)
        found[place] = found.get(place, 0.0) + weight / whole
    return found


def beyond(bins: list[tuple[int, Any]], epsilon: float) -> float:
    """A lower bound of the delta that all bins together have at an epsilon."""
    whole = {0: 1.0}
    for steps, noise in bins:
        own, after = losses(steps, noise), dict[int, float]()
        for (one, p), (other, q) in itertools.product(whole.items(), own.items()):
            after[one + other] = after.get(one + other, 0.0) + p * q
        whole = {loss: p for loss, p in after.items() if p > 1e-18}
        if len(whole) > 200_000:
            return 0.0
    return sum(p * -math.expm1(epsilon - loss / GRID) for loss, p in whole.items() if loss / GRID > epsilon)


# ---- cases


def rows(rng: random.Random) -> list[tuple[str, str, int]]:
    return [(rng.choice("wxyz"), rng.choice("abc"), rng.randrange(4)) for _ in range(rng.randrange(1, 9))]


def asked(rng: random.Random, book: str) -> list[Callable[[Any], Any]]:
    """Questions, each a function of the collection."""
    made: list[Callable[[Any], Any]] = []
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
        made.append(question(plan, rng.choice(kinds), amount, rng.choice(["1e-3", "1e-5"]), str(rng.randrange(3))))
    return made


def question(plan: str, kind: str, amount: Fraction, delta: str, name: str) -> Callable[[Any], Any]:
    def ask(c: Any) -> None:
        made = eval(plan, {"c": c})
        if kind == "select":
            made.select(epsilon=amount, delta=delta, name=name)._settled()
        elif kind == "gaussian":
            made.measure(rho=amount / 8, mechanism="gaussian", name=name)._settled()
        elif kind == "release":
            made.measure(epsilon=amount, name=name).release(delta=delta)
        else:
            made.measure(epsilon=amount, mechanism=kind, name=name)._settled()

    return ask


def run(records: list[Any], options: dict[str, Any], questions: list[Any]) -> tuple[Trace, Any, list[str]]:
    """Ask all questions; give what was answered, and what the ledger says then."""
    said = []
    c = wpinq.protect(records, columns=COLUMNS, secret=SECRET, name="views", version="1", **options)
    with watched() as trace:
        for ask in questions:
            try:
                ask(c)
                said.append("")
            except WpinqError as error:
                said.append(type(error).__name__ + ("" if isinstance(error, BudgetError) else str(error)[:60]))
    ledger = sources(c._node)[0].ledger
    with ledger._session() as session:
        return trace, (session.accountant.spent, session.accountant.promise), said


def judge(seed: int) -> list[str]:
    """Compare what two neighbours lose with what their ledger says."""
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
    questions = asked(rng, book)
    (one, (spent, promise), said), (two, after, again) = run(whole, options, questions), run(other, options, questions)
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
        paid = exactly(question.epsilon)
        sums.pure += paid * bool(moved)
        sums.delta += selected(noise, moved, question.quote.epsilon)
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


def passes(noise: Any, weight: int, tau: int) -> Any:
    """The probability that a weight and its noise reach a threshold."""
    r, above = mp.exp(-1 / exactly(noise.scale * noise.grid)), tau - weight * noise.grid
    return r**above / (1 + r) if above > 0 else 1 - r ** (1 - above) / (1 + r)


def selected(rule: Any, moved: list[tuple[int, int]], epsilon: Fraction) -> Any:
    """The probability that a selection names what only the unit is in."""
    hidden = mp.mpf(1)
    for weight, other in moved:
        if other <= 0 < weight:
            hidden *= 1 - mp.mpf(rule.places(weight, 300)) / mp.mpf(2) ** 300
    return 1 - hidden


# ---- old bugs


@contextmanager
def planted(*patches: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield


def halved() -> Any:
    """The curve of a bin is that of half of its shift."""
    real = curve.rate
    cost = import_module("wpinq.ledger.cost")
    return planted(patch.object(cost, "rate", lambda loss, step, order: real(loss / 2, min(step, loss / 2), order)))


def largest_part() -> Any:
    """Of all paths only the largest counts, as if all were parts of one group."""

    def add(self: Total, under: Any, growth: Fraction) -> None:
        self.amount = max(self.amount, growth)

    return planted(patch.object(Total, "add", add))


def one_bin() -> Any:
    """A threshold looks at one bin of a unit, however many it is alone in."""
    publish, select = (import_module(f"wpinq.measurements.{name}") for name in ("publish", "select"))

    def found(node: Node) -> list[UnitSensitivity]:
        return [UnitSensitivity(one.linf, one.linf, one.data_sets) for one in unit_sensitivities(node)]

    return planted(
        patch.object(publish, "unit_sensitivities", found), patch.object(select, "unit_sensitivities", found)
    )


def rho_of_one() -> Any:
    """Gaussian noise is charged by the largest bin, not by the sum of squares."""
    real = Cost.at
    return planted(patch.object(Cost, "at", lambda self, order: real(self, order) if not self.rho else self.rho * 1))


PLANTS = {"halved": halved, "largest_part": largest_part, "one_bin": one_bin, "rho_of_one": rho_of_one}
SEEDS = {"halved": 23, "largest_part": 0, "one_bin": 6, "rho_of_one": 41}
FUZZER = Fuzzer("divergences", judge, PLANTS, DONE, SEEDS)

if __name__ == "__main__":
    sys.exit(FUZZER.main())
