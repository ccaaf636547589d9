"""One SELECT that is priced: its measurements, and how they become an answer, finished by post-processing.

What a query leaves out can be asked beside it: records beyond a bound, and what groups below the threshold count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, TypedDict

import polars as pl

from wpinq.aggregates import QuotedAggregate
from wpinq.aggregates.clipping_loss import ask_loss_of
from wpinq.aggregates.expected_noise import ExpectedNoise, expected_noise
from wpinq.aggregates.range_counts import QuotedRanges
from wpinq.aggregates.scale import Bounds
from wpinq.core.functions.tree import lit
from wpinq.core.measurements.answer import LEVEL, About, Answer, Released
from wpinq.core.measurements.measure import quote_terms
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.measurements.published import readable
from wpinq.core.measurements.query import commit
from wpinq.core.operators.contribution.sample import Bound
from wpinq.core.plan.node import sources, steps
from wpinq.core.pricing.privacy_cost import GAUSSIAN, LAPLACE, Terms, probability
from wpinq.core.pricing.quote import Quote
from wpinq.core.pricing.threshold import refuse_unnamed, threshold_of
from wpinq.core.records import canonical
from wpinq.core.records.bins import ROWS, Blocks, bin_blocks, plain, together
from wpinq.core.records.schema import Schema
from wpinq.errors import BudgetError, PlanError
from wpinq.exact import Amount, decimal, positive
from wpinq.postprocess.degrees.posterior.law import NoiseTerm, half_width
from wpinq.query.adding_up import AddingUp
from wpinq.query.budget_split import Share, shared
from wpinq.query.explained import Line, explained
from wpinq.query.joined import CountByNumber
from wpinq.query.prepare import prepare
from wpinq.query.rows import Counted, Move, finished, half_of, measured_alone
from wpinq.query.select.aggregates import ChargeNames
from wpinq.query.select.derived import CALL, plainly
from wpinq.query.select.google import google
from wpinq.query.select.grouping import insist_on_sets
from wpinq.query.select.ranged import CountInRange, half_of_range
from wpinq.query.statement import Statement


@dataclass(frozen=True)
class QuotedSql:
    """A query that was priced and not charged yet.

    Attributes:
        query: Its text.
        statement: It, parsed.
        known: The groups that are shown, where they are given; None where they are published.
        lost: The delta of publishing them, then.
        counts: Quotes of the counts that are measured one by one (or of all together, with Gaussian noise), and of one
            more from which groups are published.
        ranged: Those of counts of ranges, in the order of the statement.
        numbers: Those of its other aggregates.
        losses: Those of what is left out, where that is asked too.
        answer_loss: Makes an answer of these.
    """

    query: str
    statement: Statement
    known: Blocks | None
    lost: Fraction | None
    counts: list[Quote[Measurement]]
    ranged: list[QuotedRanges]
    numbers: list[QuotedAggregate]
    losses: list[Quote[Any]]
    answer_loss: Told | None

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The SELECT, parsed."""
        return (self.statement,)

    @property
    def row_names(self) -> list[str]:
        """The columns that are keys of groups, or follow from them alone, as names of totals do."""
        from sqlglot import exp

        read = {item.label: [one.name for one in item.node.find_all(exp.Column)] for item in self.statement.items}
        return [label for label, names in read.items() if names and all(name[:4] == "key " for name in names)]

    @property
    def quotes(self) -> list[Quote[Any]]:
        """All that is charged."""
        levels = [quote for ranges in self.ranged for quote in ranges.quotes]
        return [*self.counts, *levels, *(entry.quote for entry in self.numbers), *self.losses]

    @property
    def threshold(self) -> float | None:
        """The noisy count below which groups are left out, as far as amounts tell; None where they are given."""
        if self.lost is None or self.known is not None:
            return None
        widest = self.counts[self.statement.widest]
        return threshold_of(widest.node, widest.mechanism, self.lost)

    def _written(self) -> dict[Quote[Any], str]:
        """How the query has what each quote is of."""
        statement = self.statement
        groups = ["COUNT(*), from which groups are published"] * (len(self.counts) - len(statement.alone))
        texts = [plainly(count) for count in statement.released["count"]]
        counted = [texts[place] for place in statement.separate] if statement.joined is None else ["; ".join(texts)]
        result = dict(zip(self.counts, [*counted, *groups], strict=True))
        for ranges, each in zip(self.ranged, statement.ranged, strict=True):
            result |= {quote: each.written(level) for level, quote in enumerate(ranges.quotes)}
        once: dict[Quote[Any], list[str]] = {}
        for number, entry in zip(statement.numbers, self.numbers, strict=True):
            once.setdefault(entry.quote, []).append(number.text)
        result |= {quote: "; ".join(texts) for quote, texts in once.items()}
        return result | dict.fromkeys(self.losses, "what is left out")

    def _worded(self) -> QuotedSql:
        """The same, each quote of which is known by the text of the query, and by its part where there are several."""
        written = self._written()
        each = {quote: quote.worded(f"{text}: {self.query}" if len(written) > 1 else self.query)
                for quote, text in written.items()}  # fmt: skip
        numbers = [replace(number, quote=each[number.quote]) for number in self.numbers]
        ranged = [ranges.named(each.__getitem__) for ranges in self.ranged]
        return replace(self, counts=[each[quote] for quote in self.counts], ranged=ranged, numbers=numbers,
                       losses=[each[quote] for quote in self.losses])  # fmt: skip

    @property
    def lines(self) -> list[Line]:
        """What EXPLAIN says of each quote."""
        halves = {entry.quote: expected_noise(entry.quote).half_width for entry in self.numbers}
        halves |= {quote: half_of(self.statement, quote.query, LEVEL) for quote in self.counts}
        return [(text, quote, halves.get(quote)) for quote, text in self._written().items()]

    def explained(self, choice: Quote[Any] | None = None) -> Answer:
        """What each measurement would cost, as a table; nothing is charged and no record is read.

        Args:
            choice: What a choice of the bound costs first; how wide noise is follows from the number that it gives.
        """
        least, ranged = (self.threshold, self.lines_of_ranges) if choice is None else (None, [])
        return explained(self.query, self.lines, least, choice=choice, ranged=ranged)

    @property
    def lines_of_ranges(self) -> list[tuple[str, float]]:
        """What EXPLAIN says of each count of a range, which follows from several measurements."""
        written = self.statement.released["count"]
        return [(plainly(written[place]), half) for place, half in self._halves_of_ranges().items()]

    def _halves_of_ranges(self) -> dict[int, float]:
        """By how much noise moves each count of a range with probability 0.95, by its place among the counts."""
        pairs = zip(self.ranged, self.statement.ranged, strict=True)
        return {
            place: half_of_range(ranges, span, LEVEL) for ranges, each in pairs for place, span in each.spans.items()
        }

    @property
    def expected(self) -> list[ExpectedNoise]:
        """The noise of each column of the answer, and of what is left out, from public facts alone."""
        columns = [item for item in self.statement.items if type(item.node).__name__ == "Column"]
        labels = {} if self.statement.stepped else {item.node.name: item.label for item in columns}
        counted = zip([*self.statement.separate, None], self.counts, strict=False)
        if self.statement.joined is not None:
            counted = zip(range(len(self.statement.counts)), self.counts * len(self.statement.counts), strict=True)
        result = [expected_noise(quote, labels.get(f"count {place}")) for place, quote in counted]
        halves = self._halves_of_ranges()
        for ranges, each in zip(self.ranged, self.statement.ranged, strict=True):
            finest = expected_noise(ranges.quotes[0])
            result += [replace(finest, column=labels.get(f"count {place}", finest.column), half_width=halves[place])
                       for place in each.spans]  # fmt: skip
        result += [
            expected_noise(entry.quote, labels.get(f"number {place}")) for place, entry in enumerate(self.numbers)
        ]
        return result + [expected_noise(quote) for quote in self.losses]

    def charge(self) -> Answer:
        """Charge for all of it or nothing, and answer.

        Raises:
            BudgetError, LedgerError, PlanError: See `commit`; nothing was charged.
        """
        return self.answer(commit(self.quotes))

    def _counted(self, made: Sequence[Any]) -> list[Counted]:
        """What each count is observed of, in the order of the query."""
        start, counts, ranged = len(self.counts), self.statement.counts, dict[int, Counted]()
        if self.statement.joined is not None:
            return [CountByNumber(made[0], place) for place in range(len(counts))]
        for ranges, each in zip(self.ranged, self.statement.ranged, strict=True):
            charged = ranges.charged(made[start : start + len(ranges.quotes)])
            start += len(ranges.quotes)
            ranged |= {place: CountInRange(charged, span, counts[place]._node.held.whole and not each.fitted)
                       for place, span in each.spans.items()}  # fmt: skip
        alone = iter(made[: len(self.counts)])
        return [ranged[place] if place in ranged else next(alone) for place in range(len(self.counts) + len(ranged))]

    def answer(self, made: list[Any]) -> Answer:
        """Answer from the charged queries of `quotes`, in their order."""
        statement = self.statement
        made, lost_of = made[: len(made) - len(self.losses)], made[len(made) - len(self.losses) :]
        counted = self._counted(made)
        others = made[len(self.quotes) - len(self.losses) - len(self.numbers) :]
        threshold, shown, known = None, None, self.known
        if known is None:
            assert self.lost is not None  # noqa: S101  refused in `_known`
            published = made[statement.widest].release(delta=self.lost)
            shown = published.frame.to_series(len(statement.keys))
            known, threshold = together(published.frame.select(statement.keys)), published.threshold
        groups = known
        answers = [
            item.answer(query, number.groups(groups.whole))
            for number, item, query in zip(statement.numbers, self.numbers, others, strict=True)
        ]
        about = About(" ".join(self.query.split()), made, self.lost or Fraction(0), threshold, statement.bias)

        def released_at(level: Fraction, simultaneous: bool, *, agreeing: Move | None = None) -> Released:
            return finished(
                statement,
                groups,
                counted,
                answers,
                level,
                simultaneous=simultaneous,
                least=threshold,
                agreeing=agreeing,
            )

        def moved(move: Move) -> Answer:
            about_moved = replace(about, bias=(*statement.bias, "counts were moved to add up"))
            return Answer(about_moved, partial(released_at, agreeing=move), many=many, loss=left_out)

        left_out = None
        if self.answer_loss is not None:
            left_out = self.answer_loss(lost_of, None if shown is None else made[statement.widest], shown)
        many = bool(statement.keys) or len(statement.items) > 1
        agreeing = AddingUp(statement, self.known is not None, groups, measured_alone(counted), moved)
        return Answer(about, released_at, many=many, loss=left_out, agreeing=agreeing)


class Alike(TypedDict, total=False):
    """What each SELECT of a query is asked alike; see `sql`. `insist` refuses what was read, before it is priced."""

    within: Amount | None
    mechanism: str
    name: str | None
    analyst: str | None
    insist: Callable[[Statement], None] | None


@dataclass(frozen=True)
class WrittenKeys:
    """Keys as a command or a request writes them, which are read once the columns of the query are known.

    Attributes:
        of: Gives them for the columns of a query.
    """

    of: Callable[[Schema], Any]


def quoted_select(
    query: str,
    tables: Mapping[str, Any],
    *,
    epsilon: Amount | None = None,
    within: Amount | None = None,
    mechanism: str = LAPLACE,
    rho: Amount | None = None,
    delta: Amount | None = None,
    keys: Any = None,
    bounds: Mapping[str, Bounds] | None = None,
    loss: Amount | None = None,
    name: str | None = None,
    analyst: str | None = None,
    insist: Callable[[Statement], None] | None = None,
) -> QuotedSql:
    """Price one SELECT; see `quoted`."""
    epsilon, delta = google(query).with_terms(epsilon, delta)
    statement = prepare(query, tables, bounds, shaved=within is None and loss is None, together=within is None,
                        mechanism=None if within is not None else mechanism if rho is None else GAUSSIAN)  # fmt: skip
    if insist is not None:
        insist(statement)
    known = _known(statement, keys.of(statement.schema) if isinstance(keys, WrittenKeys) else keys, delta)
    listed = known is not None
    share = shared(statement, Terms(epsilon, mechanism, rho, delta, within, call=CALL), listed=listed)
    lost = None if listed or delta is None else probability(delta, "sql(delta=...)") / statement.of_one_person[1]
    charged = ChargeNames(name=name, analyst=analyst)
    counts = _counts(statement, share, lost, charged)
    ranged = [each.quote(share.epsilon, charged, mechanism) for each in statement.ranged]
    numbers = _numbers(statement, share, charged)
    losses, answer_loss = ([], None) if loss is None else ask_lost(
        statement, positive(loss, "sql(loss=...)"), charged, published=not listed
    )  # fmt: skip
    return QuotedSql(query, statement, known, lost, counts, ranged, numbers, losses, answer_loss)._worded()


def _counts(
    statement: Statement, share: Share, lost: Fraction | None, charged: ChargeNames
) -> list[Quote[Measurement]]:
    """Quotes of the counts, or of one more count from which groups are published, with its delta."""
    measured = (*statement.alone, *statement.published_from(lost is None))
    result = [quote_terms(item, share.terms, **charged) for item in measured]
    if lost is not None:
        refuse_unnamed(result[statement.widest].node, CALL)
        result[statement.widest] = result[statement.widest].publishing("release", lost)
    return result


def _numbers(statement: Statement, share: Share, charged: ChargeNames) -> list[QuotedAggregate]:
    """The other aggregates. Those that follow from one measurement have one quote, fingerprint or not."""
    quotes: dict[tuple[str, Any], Quote[Any]] = {}
    result = [item.quote(share.terms, share.epsilon, charged) for item in statement.numbers]
    shared = [
        quotes.setdefault(number.measured, entry.quote) for number, entry in zip(statement.numbers, result, strict=True)
    ]
    return [replace(item, quote=quote) for item, quote in zip(result, shared, strict=True)]


def _known(statement: Statement, keys: Any, delta: Amount | None) -> Blocks | None:
    """The given groups, or None where groups are to be published; nothing is charged yet."""
    if not statement.keys:
        return together(pl.DataFrame({"all": [0]}))
    if keys is not None and not statement.counts and not statement.numbers:
        raise PlanError(f"{CALL}: the groups are given and nothing is counted, so there is nothing to ask.")
    if keys is not None:
        blocks = bin_blocks(keys, statement.schema, f"{CALL}(keys=...)")
        if not blocks.rows:
            raise PlanError(f"{CALL}: keys= names no group, so there is nothing to ask.")
        if blocks.rows > ROWS and statement.having is not None and not statement.numbers and plain(statement.schema):
            return blocks
        result = canonical.distinct(blocks.whole, statement.schema)
        if statement.sets:
            insist_on_sets(result, statement.sets)
        return together(result.with_columns(readable(result[column.name], column.kind) for column in statement.schema))
    if delta is None:
        raise PlanError(f"{CALL}: which groups there are is private too; give keys=, or delta= (for example 1e-6).")
    held = sources(statement.groups._node)[0].ledger
    if positive(delta, "sql(delta=...)") > held.delta_budget:
        allowed = f"{decimal(held.delta_budget)} is allowed{held.promise.told_share}"
        raise BudgetError(f"{CALL}: delta {delta} is asked, and {allowed}; set protect(delta=...).")
    return None


Told: TypeAlias = Callable[[Sequence[Any], Measurement | None, pl.Series | None], Answer]


def ask_lost(
    statement: Statement, epsilon: Fraction, charged: ChargeNames, *, published: bool
) -> tuple[list[Quote[Any]], Told]:
    """Quote how much a query leaves out, and say how its answer follows from what was charged.

    Args:
        statement: The query.
        epsilon: What it costs in all: equally for what each bound and for what a threshold leaves out.
        charged: The name of the charge, and who is charged.
        published: Whether groups are published by a threshold.

    Raises:
        PlanError: It leaves out nothing.
    """
    bounded = [node for node in steps(statement.groups._node) if isinstance(node, Bound)]
    parts = len(bounded) + published
    if not parts:
        raise PlanError("sql(loss=...): no bound on people and no threshold leaves anything out here; leave it out.")
    dropped = [ask_loss_of(statement.groups, node, epsilon / parts, **charged) for node in bounded]
    quotes: list[Quote[Any]] = [loss.quote for loss in dropped]
    if published:
        counted = [*statement.counts, *statement.published_from(False)][statement.widest].map(lit(0).alias("all"))
        quotes.append(counted.quote(epsilon / parts / statement.of_one_person[0], **charged))
    names = [node.data.name if len(bounded) > 1 else "" for node in bounded]

    def answer_loss(made: Sequence[Any], shown: Measurement | None, counts: pl.Series | None) -> Answer:
        losses = [loss.answer(paid, None) for loss, paid in zip(dropped, made, strict=False)]

        def released_at(level: Fraction, simultaneous: bool) -> Released:
            rows = [
                (f"{what} of {name}" if name else what, *numbers)
                for loss, name in zip(losses, names, strict=True)
                for what, *numbers in loss.table(level, simultaneous=simultaneous).rows()
            ]
            if shown is not None and counts is not None:
                count_noise = NoiseTerm(float(shown.scale), len(counts), shown.gaussian)
                noise = (count_noise, NoiseTerm(float(made[-1].scale), 1))
                hidden, half = made[-1].observe(0) - float(counts.sum()), half_width(noise, float(level))
                rows = [*rows, ("in groups that are not shown", hidden, hidden - half, hidden + half)]
            frame = pl.DataFrame(rows, ["lost", "count", "low", "high"], orient="row")
            return frame.select("lost", "count"), {"count": (frame["low"], frame["high"])}

        bias = tuple(
            f"{name}: {clause}" if name else clause
            for loss, name in zip(losses, names, strict=True)
            for clause in loss.bias
        )
        return Answer(About("what is left out", tuple(made), bias=bias), released_at)

    return quotes, answer_loss
