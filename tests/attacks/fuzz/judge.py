"""What must hold of any case: each check gives a line for what it finds wrong, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

from attacks.fuzz import oracle
from attacks.fuzz.case import Case
from attacks.fuzz.run import Content, QuotedAggregate, Trace, run

from wpinq.core.measurements.select import Selection
from wpinq.core.plan.node import sources as read_by
from wpinq.core.state.histogram import is_steps

DITHER = Fraction(1, 2**10)
"""How far rounding by a dither may move a histogram of some bins, whose dithers differ between two live sources."""


def judge(case: Case) -> list[str]:
    """Run a case and its neighbour, and the case in its other way; give what is wrong."""
    one, other = run(case), run(case.without())
    found = [f"G charged, and no answer: {text}" for text in [*one.errors, *other.errors]]
    found += flow(one, other)
    if not found:
        found += [*movement(case, one, other), *loss(case, one, other), *deltas(case, one, other)]
        found += [*ids(one), *ids(other), *noise(one), *noise(other), *oracle.check(case, one)]
    if not found and case.way:
        found += same(one, run(case, case.way), case.way)
    return found


def flow(one: Trace, other: Trace) -> Iterator[str]:
    """The same calls succeed, fail, say and cost the same with and without the unit."""
    for number, (with_it, without) in enumerate(zip(one.events, other.events, strict=True)):
        if with_it != without:
            yield f"D control flow differs at line {number}: {with_it} and {without}"
            return
    if one.stderr != other.stderr:
        yield f"D standard error differs: {one.stderr[:200]!r} and {other.stderr[:200]!r}"
    if [asked.line for asked in one.asked] != [asked.line for asked in other.asked]:
        yield "D other questions are asked"


def answered(one: Trace, other: Trace) -> Iterator[tuple[QuotedAggregate, QuotedAggregate]]:
    """Questions of both runs that have an answer, each once."""
    seen = set()
    for with_it, without in zip(one.asked, other.asked, strict=True):
        if with_it.question.question not in seen and (with_it.content is not None or with_it.changes):
            seen.add(with_it.question.question)
            yield with_it, without


def movement(case: Case, one: Trace, other: Trace) -> Iterator[str]:
    """No histogram moves further than the scale of its noise says: scale times epsilon for each data set that moved."""
    for with_it, without in answered(one, other):
        moved, stated = moves(with_it, without), with_it.question.scale * with_it.question.epsilon
        if len(read_by(with_it.question.node)) > 1:
            stated *= len(touched(case))
        if moved > stated + DITHER * dithered(with_it):
            yield f"A movement {short(moved)} of line {with_it.line}, stated {short(stated)}"


def loss(case: Case, one: Trace, other: Trace) -> Iterator[str]:
    """The sum of movement over scale of all that was asked is no more than the ledger has spent."""
    total, slack = Fraction(0), Fraction(0)
    for with_it, without in answered(one, other):
        total += moves(with_it, without) / with_it.question.scale
        slack += dithered(with_it) * DITHER / with_it.question.scale
    spent = spent_on_unit(case, one, 0)
    if total > spent + slack:
        yield f"B loss {short(total)} of all questions together, charged {short(spent)}"


def deltas(case: Case, one: Trace, other: Trace) -> Iterator[str]:
    """The probability that what only the unit is in gets published is no more than the delta that was spent."""
    total, seen = Decimal(0), set()
    for with_it, without in answered(one, other):
        bins = own_bins(with_it, without)
        question = with_it.question
        for tau in set(with_it.taus):
            total += shown(bins, published(question, tau))
        if type(question) is Selection and question.question not in seen:
            seen.add(question.question)
            total += shown(bins, lambda weight, rule=question._mechanism: Decimal(rule.places(weight, 400)) / 2**400)
    spent = spent_on_unit(case, one, 1)
    if total > (Decimal(spent.numerator) / spent.denominator) * (1 + Decimal("1e-9")):
        yield f"B delta {total:.4g} of what only the unit is in, charged {short(spent)}"


def spent_on_unit(case: Case, trace: Trace, place: int) -> Fraction:
    """What the ledgers have spent of the unit that the neighbour lacks; a person is one in all tables of a ledger."""
    own = touched(case)
    ledgers: dict[object, Fraction] = {}
    for number, spent in zip(sorted(trace.made), trace.spent, strict=True):
        if number in own:
            shared = case.tables[number].ledger
            ledgers[("own", number) if shared is None else shared] = spent[place]
    return sum(ledgers.values(), Fraction(0))


def touched(case: Case) -> set[int]:
    """The tables that the neighbour differs in."""
    return {at for at, _ in case.places} or {n for n, t in enumerate(case.tables) if "users" in t.unit}


def ids(trace: Trace) -> Iterator[str]:
    """Questions of one id were answered from one histogram, and mean the same."""
    seen: dict[str, QuotedAggregate] = {}
    for asked in trace.asked:
        before = seen.setdefault(asked.question.question, asked)
        if before.content is not None and asked.content is not None and before.content != asked.content:
            yield f"E lines {before.line} and {asked.line} are one question with two histograms"


def noise(one: Trace) -> Iterator[str]:
    """Questions that are two have noise of their own, also where they are answered from one histogram.

    Else answers that are equal tell that two versions hold the same, at no charge.
    """
    seen: dict[bytes, QuotedAggregate] = {}
    for asked in one.asked:
        if asked.question._words is None:
            continue
        before = seen.setdefault(asked.question._words._key, asked)
        if before.question.question != asked.question.question:
            yield f"H lines {before.line} and {asked.line} are two questions with one noise"


def same(one: Trace, other: Trace, way: str) -> Iterator[str]:
    """Other batches, orders, files or shards of the same records: bit for bit the same histograms."""
    for number, (mine, others) in enumerate(zip(one.asked, other.asked, strict=False)):
        if (mine.content, mine.changes) != (others.content, others.changes) and not dithered(mine):
            yield f"F the histogram of question {number} (line {mine.line}) depends on the way: {way}"
    if not other.errors and outcomes(one, way) != outcomes(other, way):
        yield f"F what happens depends on the way: {way}"
    yield from (f"F {way}: {text}" for text in other.errors)


def outcomes(one: Trace, way: str) -> list[tuple[object, ...]]:
    """What became of each line; without the words of a refusal where the other way is another kind of source."""
    if way in ("tuples", "parquet"):
        return [event[:2] if event[0] == "done" else event[:1] for event in one.events]
    if way == "split":  # it is a table, where the other may be a file, which its words name first
        return [event[:2] if event[0] == "done" else (event[0], str(event[1:2]).partition(": ")[2])
                for event in one.events]  # fmt: skip
    return [event[:2] for event in one.events]


# ---- arithmetic


def moves(one: QuotedAggregate, other: QuotedAggregate) -> Fraction:
    """Summed absolute difference, in weight; of a continual one, of the stream of changes."""
    steps = is_steps(one.question.node.schema)
    if one.changes or other.changes:
        epochs = {*one.changes, *other.changes}
        total = sum(apart(one.changes.get(e, {}), other.changes.get(e, {}), steps) for e in epochs)
    else:
        total = apart(one.content or {}, other.content or {}, steps)
    return Fraction(total, one.question.node.resolution)


def apart(one: Content, other: Content, steps: bool) -> int:
    if not steps:
        return sum(abs(one.get(key, 0) - other.get(key, 0)) for key in {*one, *other})
    edges: dict[int, int] = {}
    for sign, content in ((1, one), (-1, other)):
        for (start, end), weight in content.items():  # type: ignore[misc]
            edges[start] = edges.get(start, 0) + sign * weight
            edges[end] = edges.get(end, 0) - sign * weight
    total, height, at = 0, 0, 0
    for edge in sorted(edges):
        total += abs(height) * (edge - at)
        height, at = height + edges[edge], edge
    return total


def own_bins(one: QuotedAggregate, other: QuotedAggregate) -> list[int]:
    """The weights of bins that are nothing without the unit, but for the one step that a dither alone may make."""
    mine, others = one.content or {}, other.content or {}
    if is_steps(one.question.node.schema):
        top = max((end for _, end in others), default=1)  # type: ignore[misc]
        return [w for (start, end), w in mine.items() for _ in range(max(start, top), min(end, top + 50))]  # type: ignore[misc]
    least = 1 if dithered(one) else 0
    return [weight for key, weight in mine.items() if key not in others and weight > least]


def shown(bins: list[int], chance: Callable[[int], Decimal]) -> Decimal:
    """The probability that any of some bins is shown."""
    with localcontext(prec=60):
        hidden = Decimal(1)
        for weight in bins:
            hidden *= 1 - chance(weight)
        return 1 - hidden


def published(question: object, tau: int) -> Callable[[int], Decimal]:
    """The probability that a weight and its noise reach tau, from the distribution that the noise states."""
    mechanism = question._mechanism  # type: ignore[attr-defined]
    with localcontext(prec=60):
        scale = mechanism.scale * mechanism.grid
        rate = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()

    def chance(weight: int) -> Decimal:
        above = tau - weight * mechanism.grid
        return rate**above / (1 + rate) if above > 0 else 1 - rate ** (1 - above) / (1 + rate)

    return chance


def dithered(asked: QuotedAggregate) -> int:
    return asked.question.node.resolution >= 2**40


def short(number: Fraction) -> str:
    return f"{float(number):.6g}" if number < 10**300 and math.isfinite(float(number)) else str(number)
