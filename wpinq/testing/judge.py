"""What must hold of any run of a dataflow: each check gives a line for what it finds wrong, and nothing else.

Nothing here looks at the stability of a step. The movement is that of the histograms which answers come from, in exact
integers; what hides it is the scale of the noise that is added; what pays for it is what the ledger has spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from wpinq.core.engines import reference
from wpinq.core.measurements.select import Selection
from wpinq.core.operators.resolution import record_ids
from wpinq.core.plan.node import sources
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.privacy_cost import moved_squared
from wpinq.core.state.histogram import is_steps
from wpinq.testing.case import Case
from wpinq.testing.evaluation import leaves_of, weighed
from wpinq.testing.trial import Trace, run
from wpinq.testing.watch import Asked, Content, differences

DITHER = Fraction(1, 2**10)
"""How far rounding by a dither may move a histogram of few bins; two live sources have different dithers."""
WAYS = ("reference", "bytewax", "order", "shards", "tuples")
"""In which ways a finite source is computed again, beside the loop for small files."""


class Finding(NamedTuple):
    """Something that must not be.

    Attributes:
        kind: "function": a function gives two values for one record; it remembers, draws, or reads a clock. "control
            flow": the unit changes which calls are made, their cost, whether they fail, or what is printed.
            "movement": it moves a histogram further than its noise hides. "loss": all questions lose more than the
            ledger has spent. "delta": bins of the unit alone are published with a larger probability than was charged.
            "identity": two histograms under one question, which is charged once. "way": another engine, order, batch
            or source gives other weights. "failed": something was charged and has no answer, or an error is none of
            this library's.
        text: What was found.
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def judge(
    dataflow: Callable[..., Any], case: Case, way: str, *, whole: bool = True, promise: Mapping[str, Any] | None = None
) -> list[Finding]:
    """Run a dataflow with and without the unit, and in another way, and say what is wrong.

    Args:
        dataflow: The dataflow.
        case: The records.
        way: In which other way it is run; empty for none.
        whole: Whether it observes nothing while it runs. Else the neighbour is answered what the first run was.
        promise: What the ledger promises.
    """
    present = run(dataflow, case, release=whole, promise=promise)
    absent = run(dataflow, case, own=False, replay=None if whole else present.watched, release=whole, promise=promise)
    findings = [Finding("failed", text) for text in dict.fromkeys([*present.broken, *absent.broken])]
    findings += flow(present, absent)
    if not findings:
        findings += [*movement(present, absent), *loss(present, absent), *delta(present, absent), *identities(present)]
    if findings or not way:
        return findings
    if way == "reference":
        return list(defined(present, case))
    replay = None if whole else present.watched
    again = run(dataflow, case, way=way, promise=promise, replay=replay, release=whole)
    return list(same(present, again, way))


def flow(present: Trace, absent: Trace) -> Iterator[Finding]:
    """The same calls succeed, fail, say and cost the same with and without the unit."""
    for with_it, without in zip(present.events, absent.events, strict=False):
        if with_it != without:
            name, *became = with_it
            yield Finding("control flow", f"{name} with the unit: {', '.join(became)}; without: "
                          f"{', '.join(without[1:])}")  # fmt: skip
            return
    if present.watched.output != absent.watched.output:
        yield Finding(
            "control flow", f"what is printed differs: {present.watched.output!r} and {absent.watched.output!r}"
        )
    numbers = [len(run_.questions) for run_ in (present.watched, absent.watched)]
    if numbers[0] != numbers[1]:
        yield Finding("control flow", f"with the unit {numbers[0]} questions are asked, without it {numbers[1]}")


def answered(present: Trace, absent: Trace) -> Iterator[tuple[Asked, Asked]]:
    """Questions of both runs that have an answer, each once."""
    met = set()
    for with_it, without in zip(present.watched.questions, absent.watched.questions, strict=False):
        if with_it.question.question not in met and (with_it.content is not None or with_it.changes):
            met.add(with_it.question.question)
            yield with_it, without


def moved(present: Asked, absent: Asked) -> list[int]:
    """By how much each bin moves, in units of 1/resolution; of a continual one, at each epoch."""
    steps = is_steps(present.question.node.schema)
    if present.changes or absent.changes:
        epochs = {*present.changes, *absent.changes}
        pairs = [(present.changes.get(at, {}), absent.changes.get(at, {})) for at in epochs]
    else:
        pairs = [(present.content or {}, absent.content or {})]
    return [number for pair in pairs for number in differences(*pair, steps=steps)]


def lost(present: Asked, absent: Asked) -> tuple[Fraction, Fraction]:
    """What a question loses of the unit: epsilon of Laplace noise, rho of Gaussian noise."""
    question: Any = present.question
    numbers = moved(present, absent)
    if question.gaussian:
        width = question.scale * question.node.resolution
        return Fraction(0), sum((Fraction(number) ** 2 for number in numbers), Fraction(0)) / (2 * width**2)
    mechanism = getattr(question, "_mechanism", None)
    plain = getattr(mechanism, "name", "") in ("geometric", "laplace") and not present.changes
    scale = Fraction(mechanism.scale) if plain else question.scale * question.node.resolution  # type: ignore[union-attr]
    return Fraction(sum(numbers)) / scale, Fraction(0)


def hidden(question: Any) -> Fraction:
    """The rho of the largest movement that Gaussian noise of an epsilon and a delta is made for."""
    return Fraction(question.quote.mechanism.rho(moved_squared(Survey.of(question.node))))


def movement(present: Trace, absent: Trace) -> Iterator[Finding]:
    """No histogram moves further than its noise hides at the price that was quoted."""
    for with_it, without in answered(present, absent):
        question = with_it.question
        epsilon, rho = lost(with_it, without)
        stated = question.rho or (hidden(question) if question.gaussian else question.epsilon)
        if (rho or epsilon) > stated * (1 + slack(with_it)):
            times = (rho or epsilon) / stated
            unit = Fraction(sum(moved(with_it, without)), question.node.resolution)
            yield Finding("movement", f"the unit moves {with_it.title} by {short(unit)}, {short(times)} times what its "
                          "noise hides")  # fmt: skip


def loss(present: Trace, absent: Trace) -> Iterator[Finding]:
    """All questions together lose no more than the ledger has spent."""
    total, more = Fraction(0), Fraction(0)
    for with_it, without in answered(present, absent):
        epsilon = lost(with_it, without)[0]
        total, more = total + epsilon, more + epsilon * slack(with_it)
    if total > present.spent[0] + more:
        yield Finding("loss", f"all questions together lose epsilon {short(total)} of the unit, and "
                      f"{short(present.spent[0])} was charged")  # fmt: skip


def slack(question: Asked) -> Fraction:
    """What roundings by a dither may add."""
    return DITHER if question.question.node.resolution >= 2**40 else Fraction(0)


def delta(present: Trace, absent: Trace) -> Iterator[Finding]:
    """What only the unit is in gets published with no more probability than was charged."""
    total, met = Decimal(0), set()
    for with_it, without in answered(present, absent):
        question: Any = with_it.question
        bins = own_bins(with_it, without)
        for tau in dict.fromkeys(with_it.taus):
            total += shown(bins, partial(reaches, question._mechanism, tau))
        if type(question) is Selection and question.question not in met:  # weighted ones have tests of their own
            met.add(question.question)
            total += shown(bins, partial(selected, question._mechanism))
    spent = present.spent[1]
    if total > Decimal(spent.numerator) / spent.denominator * (1 + Decimal("1e-9")):
        yield Finding("delta", f"bins that only the unit is in are published with probability {total:.4g}, and delta "
                      f"{short(spent)} was charged")  # fmt: skip


def own_bins(present: Asked, absent: Asked) -> list[int]:
    """The weights of bins that are nothing without the unit."""
    mine, others = present.content or {}, absent.content or {}
    if is_steps(present.question.node.schema):
        top = max((end for _, end in others), default=1)
        return [w for (start, end), w in mine.items() for _ in range(max(start, top), min(end, top + 50))]
    return [weight for key, weight in mine.items() if key not in others]


def shown(bins: list[int], chance: Callable[[int], Decimal]) -> Decimal:
    """The probability that any of some bins is published."""
    with localcontext(prec=60):
        hidden = Decimal(1)
        for weight in bins:
            hidden *= 1 - chance(weight)
        return 1 - hidden


def selected(mechanism: Any, weight: int) -> Decimal:
    """The probability that a weight is selected, as the mechanism states it."""
    return Decimal(mechanism.places(weight, 400)) / 2**400


def reaches(mechanism: Any, tau: int, weight: int) -> Decimal:
    """The probability that a weight and discrete Laplace noise of a scale reach a threshold."""
    with localcontext(prec=60):
        scale = Fraction(mechanism.scale) * mechanism.grid
        rate = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        above = tau - weight * mechanism.grid
        small: Decimal = rate ** max(above, 1 - above) / (1 + rate)
        return small if above > 0 else 1 - small


def identities(trace: Trace) -> Iterator[Finding]:
    """Questions that the ledger takes for one have one histogram."""
    met: dict[str, Asked] = {}
    for question in trace.watched.questions:
        before = met.setdefault(question.question.question, question)
        if None not in (before.content, question.content) and before.content != question.content:
            yield Finding("identity", f"{before.title} and {question.title} are one question, charged once, and have "
                          "two histograms")  # fmt: skip


def same(first: Trace, second: Trace, way: str) -> Iterator[Finding]:
    """Another engine, order or batch gives the same histograms, bit for bit, and the same events."""
    for mine, others in zip(first.watched.questions, second.watched.questions, strict=False):
        if (mine.content, mine.changes) != (others.content, others.changes) and not slack(mine):
            yield Finding("way", f"{mine.title} depends on how it is computed: {way} gives another histogram")
            return
    if [event[:2] for event in first.events] != [event[:2] for event in second.events]:
        yield Finding("way", f"what happens depends on how it is computed: {way}")


def defined(trace: Trace, case: Case) -> Iterator[Finding]:
    """Each histogram is what the definitions of the operators give, in fractions."""
    for question in trace.watched.questions:
        node = question.question.node
        if question.content is None or len(sources(node)) > 1 or slack(question):
            continue
        records = {source: weighed(source, [row for _, row in case.rows(own=True)]) for source in leaves_of(node)}
        true = reference.run(node, records)
        units = [weight * node.resolution for weight in true.values()]
        if is_steps(node.schema):
            numbers: list[Any] = [number for (number,) in true]
            expected: Content = {(int(n), int(n) + 1): int(u) for n, u in zip(numbers, units, strict=True)}
        else:
            ids = record_ids(true, node.schema, question.question.key_owner.identity_key) if true else ()
            expected = {tuple(map(int, id_)): int(u) for id_, u in zip(ids, units, strict=True)}
        if any(differences(question.content, expected, steps=is_steps(node.schema))):
            yield Finding("way", f"{question.title} is not what the definitions of its operators give")


def short(number: Fraction) -> str:
    """A number as people read it."""
    return f"{float(number):.6g}" if abs(number) < 10**300 else str(number)
