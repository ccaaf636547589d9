"""New questions: priced first, then charged once, under the analyst's cap and the budget together.

A question is a SELECT, or a plan to measure, which is kept for a while to be observed. An analyst without a cap asks
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from wpinq import Answer, Measurement, Quote
from wpinq.aggregates.expected_noise import expected_noise
from wpinq.apps.remote.bins import value
from wpinq.apps.remote.cells import table_sent
from wpinq.apps.remote.grammar import Measure
from wpinq.apps.remote.pricing import delta_of, left, priced, priced_sql
from wpinq.apps.remote.wire import Answered, Budget, Measured, Sql
from wpinq.apps.serve.catalogue import Catalogue, Opened, Served
from wpinq.apps.serve.config import Limits
from wpinq.apps.serve.descriptions import described
from wpinq.apps.serve.operations import Call, Operation
from wpinq.apps.serve.plans import collection, insist_on_limits
from wpinq.apps.serve.refusals import RefusedError
from wpinq.apps.serve.rehearsal import Rehearsal
from wpinq.apps.serve.tokens import Grant
from wpinq.apps.serve.work_queue import Charged
from wpinq.collection import Collection
from wpinq.core import Allowance, ChargedQuery, commit, settle, sources
from wpinq.errors import PlanError
from wpinq.exact import exact
from wpinq.query import Quoted, WrittenKeys, quoted
from wpinq.query.contribution import rebounded
from wpinq.query.explained import explains
from wpinq.query.select.clauses import named_tables


async def sql(call: Call[Sql]) -> Answered:
    """Price a SELECT (dry), or charge for it and answer; asked again it is free, and the same."""
    body, grant, catalogue, rehearsal = call.body, call.grant, call.site.catalogue, call.site.rehearsal
    _insist_on_size(body, catalogue)

    def price() -> Answered:
        quote = quote_sql(body, grant, catalogue, rehearsal)
        insist_on_cap(quote.quotes, grant.analyst, catalogue.config.limits)
        return Answered(price=priced_sql(quote, grant.analyst))

    def charged() -> Charged[Answered]:
        quote = quote_sql(body, grant, catalogue, rehearsal)
        insist_on_cap(quote.quotes, grant.analyst, catalogue.config.limits)
        made = commit(quote.quotes)
        return Charged(made[0].key_owner.name, lambda: _answered(quote.answer(made)), partial(_check, made))

    if explains(body.query) is not None:
        return await call.site.desk.quoted(grant.analyst, lambda: explained(body, grant, catalogue, rehearsal))
    if body.dry:
        return await call.site.desk.quoted(grant.analyst, price)
    key = (grant.analyst, grant.data, catalogue.versions, msgspec.json.encode(body))
    return await call.site.desk.answered(grant.analyst, key, charged)


async def budget(call: Call[None]) -> Budget:
    """What this analyst may still spend of each data set, and what is left of it for everybody."""

    def answer() -> Budget:
        ledgers = {
            data_set.ledger.identity: data_set.ledger for data_set in _mine(call.grant, call.site.catalogue).values()
        }
        allowed = [Allowance.of(ledger, call.grant.analyst)[0] for ledger in ledgers.values()]
        return Budget(analyst=call.grant.analyst, data=[left(allowance) for allowance in allowed])

    return await call.site.desk.quoted(call.grant.analyst, answer)


def _mine(grant: Grant, catalogue: Catalogue) -> dict[str, Any]:
    return {name: data_set for name, data_set in catalogue.data.items() if name in grant.data}


def _insist_on_size(body: Sql, catalogue: Catalogue) -> None:
    limits = catalogue.config.limits
    if len(body.query) > limits.query:
        raise RefusedError(413)
    if body.keys is not None and not 0 < len(body.keys) <= limits.bins:
        raise PlanError(f"sql(keys=...): between 1 and {limits.bins} groups.")
    if body.delta is not None and exact(body.delta, "sql(delta=...)") > exact(limits.delta, "limits.delta"):
        raise PlanError(f"sql(delta=...): at most {limits.delta} here; name the groups to show, keys=[...].")


def explained(body: Sql, grant: Grant, catalogue: Catalogue, rehearsal: Rehearsal | None = None) -> Answered:
    """How a query would be answered, for EXPLAIN; nothing is charged, and no record is read.

    Raises:
        RefusedError, PlanError, BinError, ExactnessError: See `quote_sql`.
    """
    query = explains(body.query) or ""
    quote = quote_sql(msgspec.structs.replace(body, query=query), grant, catalogue, rehearsal, asked=body)
    shown = quote.explained()
    return msgspec.structs.replace(_answered(shown), price=priced_sql(quote, grant.analyst))


def quote_sql(
    body: Sql, grant: Grant, catalogue: Catalogue, rehearsal: Rehearsal | None = None, *, asked: Sql | None = None
) -> Quoted:
    """The query, priced; nothing is charged, and no record is read.

    Args:
        body: The query.
        grant: Who asks.
        catalogue: What there is.
        rehearsal: Where it is priced first; None in there.
        asked: What was asked, where the query is a part of it.

    Raises:
        RefusedError: The analyst has no cap, and the query is not read then; or pricing it takes too much.
        PlanError, BinError, ExactnessError: It cannot be asked.
    """
    mine = {name: data_set for name, data_set in _mine(grant, catalogue).items() if data_set.file.questions}
    insist_on_any_cap(mine.values(), grant.analyst)
    if rehearsal is not None:
        rehearsal.insist(catalogue, grant, asked or body)
    tables = _bounded({name: data_set.views for name, data_set in mine.items()}, body.at_most)
    public = {name: str(catalogue.home / path) for name, path in catalogue.config.public.items()}
    bounds: dict[str, Any] = {}
    read = named_tables(body.query)
    for name, data_set in mine.items():
        if name.lower().rpartition(".")[2] in read:  # those of another table are of other columns
            bounds |= data_set.file.bounds
    bounds |= body.bounds
    given = body.keys
    keys = None if given is None else WrittenKeys(lambda schema: [value(key, schema, "sql(keys=...)") for key in given])
    return quoted(
        body.query, {**public, **tables}, epsilon=body.epsilon, within=body.within, mechanism=body.mechanism,
        rho=body.rho, delta=body.delta, keys=keys, bounds=bounds, name=body.name, analyst=grant.analyst,
        insist=lambda statement: insist_on_limits(statement, catalogue.config.limits),
    )  # fmt: skip


def _bounded(tables: Mapping[str, Collection], at_most: int | None) -> Mapping[str, Collection]:
    """The tables under the bound of a question, which is at most the curator's.

    Raises:
        PlanError: It is more, or no whole number above zero, or no table is of people.
    """
    if at_most is not None:
        units = [data.unit for table in tables.values() for data in sources(table._node)]
        most = min((unit.at_most or 0 for unit in units if unit.column and not unit.whole), default=at_most)
        if at_most > most:
            raise PlanError(
                f"sql(at_most={at_most}): the curator allows {most} records of each person; ask for no more."
            )
    return rebounded(tables, at_most, None)


def _check(made: Sequence[ChargedQuery]) -> None:
    """Refuse questions of a source that is no longer as it was opened, or of a version that was closed.

    Raises:
        ChangedError, SourceError, LedgerError: As when they are asked anew.
    """
    for data in {data: None for query in made for data in query.quote.sources}:
        data.check()


def _answered(answer: Answer) -> Answered:
    types, rows = table_sent(answer.released[0])
    intervals = [list(row) for row in answer.intervals]
    return Answered(columns=list(answer.columns), types=types, rows=rows, intervals=intervals, about=answer.about)


ASKING = (
    Operation("POST", "/api/sql", Answered, sql, Sql, more=(409,)),
    Operation("GET", "/api/budget", Budget, budget),
)


CAPLESS = "the curator has set no cap for this analyst, so nothing can be asked: wpinq token make ... --cap EPSILON."


DELTA = (
    "the curator has set no cap of delta for this analyst, so groups are given, and not published: keys=[...], or"
    " wpinq token make ... --cap-delta DELTA."
)


def insist_on_any_cap(data: Iterable[Opened], analyst: str) -> None:
    """Refuse an analyst without any cap, before a question is read: it must cost nothing to refuse.

    Raises:
        RefusedError: The analyst has none in any of the ledgers.
    """
    ledgers = {opened.ledger.identity: opened.ledger for opened in data}.values()
    if ledgers and all(Allowance.of(ledger, analyst)[0].cap is None for ledger in ledgers):
        raise RefusedError(409, CAPLESS)


def insist_on_cap(quotes: Sequence[Quote[Any]], analyst: str, limits: Limits) -> None:
    """Refuse an analyst without a cap: a budget that one analyst may spend alone is no allocation.

    What costs delta needs a cap of delta too, and what costs more of it than the limit, or next to nothing, is refused.

    A cap is never taken away, so whoever has one now has one when it is charged; the ledger checks both in one
    transaction.

    Raises:
        RefusedError: The analyst has none in one of the ledgers.
        PlanError: It costs less than the least, or too much delta.
    """
    least, delta = exact(limits.least, "limits.least"), delta_of(quotes)
    if any(quote.epsilon < least and 2 * quote.rho < least**2 for quote in quotes):
        raise PlanError(f"a part of it costs less than epsilon {limits.least}, the least here; spend more on it.")
    if delta > exact(limits.delta, "limits.delta"):
        raise PlanError(f"{quotes[0].call}(delta=...): at most {limits.delta} here; take less of it, or Laplace noise.")
    for ledger in {data.ledger.identity: data.ledger for quote in quotes for data in quote.sources}.values():
        allowance = Allowance.of(ledger, analyst)[0]
        if allowance.cap is None:
            raise RefusedError(409, CAPLESS)
        if delta and allowance.delta_cap is None:
            raise RefusedError(409, DELTA)


OWN = "asked."
"""What names of measurements of analysts begin with; no data set has a point in its name."""


async def measure(call: Call[Measure]) -> Measured:
    """Price a measurement of a plan (dry), or charge for it; its bins are then observed like any other's."""
    body, grant, site = call.body, call.grant, call.site

    def price() -> Measured:
        quote = quote_plan(body, grant, site.catalogue, site.rehearsal)
        insist_on_cap([quote], grant.analyst, site.catalogue.config.limits)
        return Measured(price=priced([quote], grant.analyst, [expected_noise(quote, "weight")]))

    def charged() -> Charged[Served]:
        quote = quote_plan(body, grant, site.catalogue, site.rehearsal)
        insist_on_cap([quote], grant.analyst, site.catalogue.config.limits)
        (made,) = commit([quote])
        (data, *_) = (
            name for name, data_set in site.catalogue.data.items() if data_set.ledger is made.key_owner.ledger
        )

        def answer() -> Served:
            settle(made)
            return Served(f"{OWN}{made.question[:32]}", data, made.quote.label, made)

        return Charged(made.key_owner.name, answer, partial(_check, [made]))

    if body.dry:
        return await site.desk.quoted(grant.analyst, price)
    key = (grant.analyst, grant.data, site.catalogue.versions, msgspec.json.encode(body))
    served = await site.desk.answered(grant.analyst, key, charged)
    site.desk.name((grant.data, key[2], served.name), key, charged)
    return Measured(measurement=described(served))


def quote_plan(
    body: Measure, grant: Grant, catalogue: Catalogue, rehearsal: Rehearsal | None = None
) -> Quote[Measurement]:
    """The measurement, priced; nothing is charged, and no record is read.

    Args:
        body: The plan.
        grant: Who asks.
        catalogue: What there is.
        rehearsal: Where it is priced first; None in there.

    Raises:
        RefusedError: The analyst has no cap, and the plan is not read then; or pricing it takes too much.
        PlanError, ExactnessError: It cannot be asked.
    """
    mine = {
        name: data_set for name, data_set in catalogue.data.items() if name in grant.data and data_set.file.questions
    }
    insist_on_any_cap(mine.values(), grant.analyst)
    if rehearsal is not None:
        rehearsal.insist(catalogue, grant, body)
    tables = {name: data_set.views for name, data_set in mine.items()}
    amounts: dict[str, Any] = {"rho": body.rho, "delta": body.delta, "within": body.within}
    wanted = collection(body.plan, tables, catalogue.config.limits)
    quote = wanted.quote(
        body.epsilon, body.name, body.mechanism, grant.analyst,
        **{name: amount for name, amount in amounts.items() if amount is not None},
    )  # fmt: skip
    if not quote.at_once:
        raise PlanError("measure: it is answered only once a window or epoch has closed, which is not served.")
    return quote


MEASURING = (Operation("POST", "/api/measure", Measured, measure, Measure, more=(409,)),)
