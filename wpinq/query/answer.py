"""Answers to SQL queries: measurements or publications, finished by post-processing.

What a query leaves out can be asked beside it: records beyond a bound, and what groups below the threshold count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import polars as pl

from wpinq.aggregates import QuotedAggregate
from wpinq.aggregates.clipping_loss import ask_loss_of
from wpinq.aggregates.keywords import Bounds
from wpinq.aggregates.quoted import ExpectedNoise, expected_noise
from wpinq.aggregates.range_counts import QuotedRanges
from wpinq.arguments import MAPPING, NAME, TEXT, takes
from wpinq.core.functions.tree import lit
from wpinq.core.measurements.answer import LEVEL, Answer, Released
from wpinq.core.measurements.measure import quote_terms
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.measurements.provenance import About
from wpinq.core.measurements.published import readable
from wpinq.core.measurements.query import commit
from wpinq.core.operators.contribution.sample import Bound
from wpinq.core.plan.node import sources, steps
from wpinq.core.pricing.privacy_cost import GAUSSIAN, LAPLACE, Terms
from wpinq.core.pricing.quote import Quote
from wpinq.core.pricing.threshold import probability, threshold_of
from wpinq.core.records import canonical
from wpinq.core.records.bins import ROWS, Blocks, bin_blocks, plain, together
from wpinq.core.runs.key_recovery import refuse_unnamed
from wpinq.errors import BudgetError, PlanError
from wpinq.exact import Amount, decimal, positive
from wpinq.postprocess.degrees.posterior.law import NoiseTerm, half_width
from wpinq.query.adding_up import AddingUp
from wpinq.query.aggregates import ChargeNames
from wpinq.query.budget_split import Share, shared
from wpinq.query.contribution import rebounded, settling
from wpinq.query.derived import CALL, plainly
from wpinq.query.explained import explained, explains
from wpinq.query.google import google
from wpinq.query.joined import CountByNumber
from wpinq.query.prepare import prepare
from wpinq.query.ranged import CountInRange, half_of_range
from wpinq.query.rows import Counted, Move, finished, half_of, measured_alone
from wpinq.query.statement import Statement
from wpinq.query.united import branches, check_columns, stacked


@takes(query=TEXT, tables=MAPPING, mechanism=NAME)
def sql(
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
    at_most: int | str | Mapping[str, int | str] | None = None,
    per: tuple[str, int] | Mapping[str, tuple[str, int]] | None = None,
    name: str | None = None,
    analyst: str | None = None,
) -> Answer:
    """Answer one SELECT: aggregates over the records of a protected table, in groups.

    `SELECT page, COUNT(*) AS c FROM views WHERE ... GROUP BY page HAVING c >= 50 ORDER BY c DESC LIMIT 10`. There are
    COUNT(*), COUNT(x), COUNT(DISTINCT x) (with `unit=users(...)`, COUNT(DISTINCT user) counts people), SUM, AVG, MIN,
    MAX, MEDIAN, PERCENTILE_CONT(share) WITHIN GROUP (ORDER BY x), VARIANCE and STDDEV (_SAMP and _POP) of columns and
    of expressions such as `price * qty`, each with FILTER (WHERE ...), and JOINs of public tables on a unique key.
    All but counts need `bounds`, or follow from those of their columns. An extreme is a point of a grid of a
    thousandth of the bounds that a few records are beyond. Quantiles of one expression are one measurement: nine
    cost what one does (see `quantiles`). Of no records an answer is noise, not NULL. Which groups there are is
    itself private, so they are either given as `keys`, or published by COUNT(*), or the first count, where its
    noisy value passes a threshold that costs `delta`; HAVING then only leaves out more.
    Subqueries in FROM and WITH are tables: without GROUP BY they cost nothing, and with it twice as much, for of each
    key one record is left, and who adds a record changes it; grouped by the person, who counts once pays once. How many
    keys have c records is asked of a `shave`, with half of that variance. Counts of ranges of one column, such as
    COUNT(*) FILTER (WHERE age BETWEEN 18 AND 64), are one measurement together, whose noise is less than theirs alone.
    EXPLAIN SELECT ... answers with the price of each measurement, for which nothing is charged.

    Args:
        query: One SELECT in PostgreSQL's dialect; conditions have SQL's three values.
        tables: The protected collection and public tables (frames, paths, ...) by name. Of a public CSV file all
            columns are text; give a pair of it and its columns' types otherwise: `("pages.csv", {"size": int})`.
        epsilon: What it costs one person in all, exact, who may be in all tables of a ledger; several aggregates share
            it equally, and so does a count that is added for where groups are published.
        within: Instead of it, by how much noise may move each count, and by how many records each rank may be off (see
            `quantile`), with probability 0.95: the least epsilon that does it is charged. Not for sums, means and
            spreads.
        mechanism: What adds noise to counts, sums, means and spreads; see `measure`. With an epsilon and a delta of
            Gaussian noise all counts are one measurement, whose noise grows with the root of their number. A rank is
            chosen by an exponential mechanism, which of a cost in rho spends the largest epsilon that costs no more of
            it.
        rho: Instead of epsilon, what it costs one person with Gaussian noise, in all tables of a ledger together.
        delta: What publishing the groups costs alike; `protect(delta=)` allows it. Where they are given as `keys`, what
            goes with epsilon, of Gaussian noise.
        keys: The groups to show, present or not, as `observe_many` takes bins; costs no delta. Of many in a lazy frame
            (`pl.scan_parquet`) a block at a time is held, where HAVING leaves few and all that is asked are counts.
        bounds: For each column or expression that is summed or ranked, as the query has it, the least and the largest
            number, to which its numbers are clamped; they do not depend on the data.
        loss: Epsilon to spend beside that on how much is left out: `answer.loss` then tells about how many people lost
            how many records by the bound, and how much is counted in groups that are not shown.
        at_most: How many records of each person this query looks at, in every table of people or by the table's name;
            by default as they were protected. What WHERE leaves out of one table takes no places of it. "auto" chooses
            the number first, for a part of epsilon: half for one total, less for many groups, and of many unknown
            groups a quarter. It is no more than the number that the table was protected with.
        per: A column and a number: of one person's records with the same value of it no more are kept.
        name: Tells repetitions apart, and names the charge in the ledger.
        analyst: Who is charged, where the curator keeps caps for each analyst.

    Raises:
        PlanError: The query cannot be read, or cannot be private, or its groups are to be published from a plan
            without a fingerprint (see `Measurement.release`); nothing was charged.
        BudgetError: It costs more than is left; nothing was charged.
        BinError: A key is no group of the query; nothing was charged.
        SourceError, EngineError, LedgerError: The dataflow could not run.

    >>> import wpinq
    >>> views = wpinq.protect([("ann", "a")] * 90, budget=90, columns={"user": str, "page": str})
    >>> wpinq.sql("SELECT page, COUNT(*) AS c FROM views GROUP BY page", {"views": views}, epsilon=90, keys=["a"]).rows
    (('a', 90),)
    """
    shown = explains(query)
    epsilon, delta = google(query).with_terms(epsilon, delta)
    parts = branches(shown or query)
    if parts is not None:
        alone = keys is not None or loss is not None or within is not None or at_most == "auto" or shown is not None
        return _united(query, parts, rebounded(tables, at_most, per), refused=alone, epsilon=epsilon, rho=rho,
                       delta=delta, mechanism=mechanism, bounds=bounds, name=name, analyst=analyst)  # fmt: skip
    tables, rest = rebounded(tables, at_most, per), epsilon
    first = settling(shown or query, tables, epsilon=epsilon, keys=keys, bounds=bounds, analyst=analyst)
    if first is not None:
        tables = first.settled() if shown is None else first.under(1)
        rest = first.automatic.rest
    quote = quoted(
        shown or query, tables, epsilon=rest, within=within, mechanism=mechanism, rho=rho, delta=delta, keys=keys,
        bounds=bounds, loss=loss, name=name, analyst=analyst,
    )  # fmt: skip
    return quote.charge() if shown is None else quote.explained(None if first is None else first.automatic.quote)


def _united(
    query: str, parts: Sequence[str], tables: Mapping[str, Any], *, refused: bool, epsilon: Any, rho: Any, delta: Any,
    **more: Any,
) -> Answer:  # fmt: skip
    """Answer the SELECTs of a UNION ALL, which share what is asked for equally and are charged together."""
    if refused:
        raise PlanError(f"{CALL}: UNION ALL of answers is asked with epsilon= or rho=, and delta= for groups: "
                        "keys=, within=, loss=, at_most='auto' and EXPLAIN are of one SELECT.")  # fmt: skip
    share = {
        key: None if value is None else positive(value, f"{CALL}({key}=...)") / len(parts)
        for key, value in (("epsilon", epsilon), ("rho", rho), ("delta", delta))
    }
    quotes = [
        quoted(part, tables, epsilon=share["epsilon"], rho=share["rho"], delta=share["delta"], **more) for part in parts
    ]
    check_columns([each.statement for each in quotes])
    made = commit([quote for each in quotes for quote in each.quotes])
    answers, start = [], 0
    for each in quotes:
        answers.append(each.answer(made[start : start + len(each.quotes)]))
        start += len(each.quotes)
    return stacked(query, answers, made, sum((each.lost or Fraction(0) for each in quotes), Fraction(0)))


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

    def explained(self, choice: Quote[Any] | None = None) -> Answer:
        """What each measurement would cost, as a table; nothing is charged and no record is read.

        Args:
            choice: What a choice of the bound costs first; how wide noise is follows from the number that it gives.
        """
        written = self._written()
        halves = [half_of(self.statement, quote.query, LEVEL) for quote in self.counts]
        least = self.threshold if choice is None else None
        ranged = [] if choice else [(plainly(self.statement.released["count"][place]), half)
                                    for place, half in self._halves_of_ranges().items()]  # fmt: skip
        return explained(self.query, list(written.values()), list(written), halves, least, choice=choice, ranged=ranged)

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
            result += [replace(finest, column=labels.get(f"count {place}", finest.column), half=halves[place])
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


def quoted(
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
    """Price a query as `sql` would ask it; nothing is charged.

    Args:
        insist: Refuses what was read, before it is priced. The other arguments are those of `sql`.

    Raises:
        PlanError, BinError, BudgetError: See `sql`.
    """
    epsilon, delta = google(query).with_terms(epsilon, delta)
    statement = prepare(query, tables, bounds, shaved=within is None and loss is None, together=within is None,
                        mechanism=mechanism if within is None and rho is None else GAUSSIAN)  # fmt: skip
    if insist is not None:
        insist(statement)
    known = _known(statement, keys, delta)
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
        blocks = bin_blocks(keys, statement.schema)
        if not blocks.rows:
            raise PlanError(f"{CALL}: keys= names no group, so there is nothing to ask.")
        if blocks.rows > ROWS and statement.having is not None and not statement.numbers and plain(statement.schema):
            return blocks
        result = canonical.distinct(blocks.whole, statement.schema)
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
