"""The questions of a release: what each costs, what error is to be expected, and its answer as tables.

Every question is quoted first, so that all of a period are charged together or not at all. Once they are charged,
`answer` asks them again, which is free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.aggregates.expected_noise import ExpectedNoise, expected_noise
from wpinq.apps.publish.answers import LOSS, Answered
from wpinq.apps.publish.file.declared import Data, Question, amount
from wpinq.apps.publish.keys import declared, missing, wanted
from wpinq.apps.publish.price import Price
from wpinq.collection import Collection
from wpinq.core import Allowance, Terms
from wpinq.errors import BudgetError, PlanError
from wpinq.sources.databases.postgres import quoted

if TYPE_CHECKING:
    from wpinq import Quote
    from wpinq.core import Charge, Ledger, Promise
    from wpinq.query import Quoted

LEVEL = Fraction(95, 100)
"""How often the errors that are shown hold."""


@dataclass(frozen=True)
class Asked:
    """One question about one period, priced.

    Attributes:
        question: As the file has it.
        text: What is asked, for people.
        quotes: What is charged for it.
        price: What it costs.
        expected: What noise is to be expected.
        answer: Gives its answer, once it is charged.
        threshold: The noisy count below which groups are left out, where groups are published; it follows from amounts.
        later: What is charged once a bound was chosen, as it costs under any bound.
    """

    question: Question
    text: str
    quotes: list[Quote[Any]]
    price: Price
    expected: list[ExpectedNoise]
    answer: Callable[[], Answered]
    threshold: float | None = None
    later: tuple[Quote[Any], ...] = ()


def insist_on_room(questions: list[Asked]) -> None:
    """Refuse questions of which some choose a bound first, where not all of them fit; nothing is charged.

    Once a choice was charged, so was all that was asked with it, or it fitted when that began.

    Raises:
        BudgetError: They do not fit.
    """
    if not any(
        not ledger.holds(charge)
        for question in questions
        if question.later
        for ledger, charge in _charges(question.quotes)
    ):
        return
    whole: dict[str, tuple[Ledger, list[Charge]]] = {}
    for ledger, charge in _charges([quote for question in questions for quote in (*question.quotes, *question.later)]):
        whole.setdefault(ledger.identity, (ledger, []))[1].append(charge)
    for ledger, charges in whole.values():
        if not Allowance.of(ledger, None, charges)[1].fits:
            raise BudgetError(
                f"the questions cost more than is left of the budget of {ledger.name!r}; nothing was charged."
            )


def _charges(quotes: list[Quote[Any]]) -> list[tuple[Ledger, Charge]]:
    return [(ledger, charge) for quote in quotes for ledger, charge in quote.charges]


def ask(question: Question, views: Collection, data: Data, home: Path, promise: Promise) -> Asked:
    """Price a question about the records of a period; nothing is charged or read but its keys.

    Args:
        question: The question.
        views: The records.
        data: What the release file says of them.
        home: The directory that relative paths start from.
        promise: What the release's ledger promises: it prices.

    Raises:
        PlanError, BinError, SourceError: It cannot be asked.
    """
    call = f"question {question.name!r}"
    if question.degrees is not None:
        return _degrees(question, views, promise)
    if question.dataflow is not None:
        return _dataflow(question, views, home, call, promise)
    return _sql(question, views, data.name, home, promise)


def _sql(question: Question, views: Collection, table: str, home: Path, promise: Promise) -> Asked:
    from wpinq import query

    call, noise, first = f"question {question.name!r}", _noise(question), None
    text = question.sql or _counts(question, table)
    bounds = {what: (low, high) for what, (low, high) in question.bounds.items()}
    tables = query.rebounded({table: views}, question.at_most, None)
    keys = None
    if question.keys is not None:
        statement = query.prepare(text, tables, bounds)
        keys = declared(question.keys, statement.schema, home, call, statement.keys, statement.key_labels)
        _expect(question, keys, home, call)
    if question.at_most == "auto":
        first = query.settling(text, tables, epsilon=question.epsilon, keys=keys, bounds=bounds, analyst=None)
        noise = noise if first is None else {**noise, "epsilon": first.automatic.rest}

    def priced(tables: Mapping[str, Any]) -> Quoted:
        return query.quoted(
            text, tables, **noise, within=question.within, loss=question.loss, delta=question.delta, keys=keys,
            bounds=bounds, name=question.name,
        )  # fmt: skip

    asked = priced(tables if first is None else first.under(1))  # whose price is that of any bound

    def answer() -> Answered:
        charged = (asked if first is None else priced(first.settled())).charge()
        made = {question.name: charged} | ({} if charged.loss is None else {f"{question.name}{LOSS}": charged.loss})
        return Answered({name: part.released for name, part in made.items()}, {name: part.about for name, part in
                        made.items()}, {question.name: charged.plot}, {question.name: groups})  # fmt: skip

    groups = asked.row_names
    if len(asked.statements) > 1 and not groups:
        raise PlanError(f"{call}: no column names the rows of its UNION ALL, so periods cannot be compared: begin each "
                        "SELECT with one, such as 'all' AS what.")  # fmt: skip
    choice = [] if first is None else [first.automatic.quote]
    price = Price.of([*choice, *asked.quotes], promise)
    expected = asked.expected[: len(asked.expected) - len(asked.losses)]
    if first is not None:  # what is charged before all else; the rest follows from what it gives
        expected = [replace(column, scale=None, half_width=None) for column in expected]
    later = () if first is None else tuple(asked.quotes)
    least = asked.threshold if first is None else None
    text = " ".join(text.split())
    return Asked(question, text, choice or asked.quotes, price, expected, answer, least, later)


def _noise(question: Question) -> dict[str, Any]:
    """What a question costs and which noise it has, in the words of the calls that ask it; rho is of Gaussian noise."""
    mechanism = question.mechanism or ("geometric" if question.rho is None else "gaussian")
    return {"epsilon": question.epsilon, "rho": question.rho, "mechanism": mechanism}


def _counts(question: Question, table: str) -> str:
    """Counting by columns as a query."""
    names = [quoted(column) for column in question.counts or []]
    having = "" if question.above is None else f" HAVING COUNT(*) >= {amount(question.above, 'above')}"
    return f'SELECT {", ".join(names)}, COUNT(*) AS "count" FROM {quoted(table)} GROUP BY {", ".join(names)}{having}'  # noqa: S608


def _expect(question: Question, keys: pl.LazyFrame, home: Path, call: str) -> None:
    """Refuse declared keys in which one is missing that is expected in every period."""
    if question.expect is None:
        return
    column = question.expect_column or keys.collect_schema().names()[0]
    lost = missing(keys, wanted(question.expect, home, call), column, call)
    if lost:
        shown = ", ".join(map(repr, lost[:5])) + (" and more" if len(lost) > 5 else "")
        raise PlanError(f"{call}: its keys lack {shown} in column {column!r}, which expect= names; mend the keys.")


def _degrees(question: Question, views: Collection, promise: Promise) -> Asked:
    from wpinq import degrees
    from wpinq.degrees.release import quoted as priced

    items = views.map(pl.col(question.degrees or ""))
    noise = _noise(question)
    quotes = priced(items, Terms(**noise, call="degrees"), name=question.name)

    def answer() -> Answered:
        fit = degrees.release(items, **noise, name=question.name)
        low, high = fit.band(float(LEVEL))
        steps = min(len(fit.cdf), len(low))
        at_least = pl.Series("items_with_at_least", fit.cdf[:steps])
        exactly = at_least - at_least.shift(-1, fill_value=0)
        cells = pl.DataFrame([pl.Series("occurrences", range(1, steps + 1), pl.Int64), at_least,
                              exactly.alias("items_with_exactly")])  # fmt: skip
        ends = {at_least.name: (pl.Series("low", low[:steps]), pl.Series("high", high[:steps]))}
        totals = {total: (getattr(fit, total), fit.interval(total, float(LEVEL))) for total in ("records", "distinct")}
        about = {**quotes[0].query.about, "totals": totals}
        keys = {question.name: ["occurrences"]}
        return Answered({question.name: (cells, ends)}, {question.name: about}, {question.name: fit.plot}, keys)

    text = f"how many values of {question.degrees} occur how often"
    expected = [expected_noise(quote, None if place else "curve") for place, quote in enumerate(quotes)]
    price = Price.of(quotes, promise)
    return Asked(question, text, list(quotes), price, expected, answer)


def _dataflow(question: Question, views: Collection, home: Path, call: str, promise: Promise) -> Asked:
    from wpinq.apps.scripts.draft import Draft
    from wpinq.apps.scripts.script import load

    script_file, delta = home / (question.dataflow or ""), amount(question.delta, call)
    script = load(str(script_file) if script_file.is_file() else question.dataflow or "")
    draft = Draft(views._node, views, [])
    made = script(draft)
    quotes = [measured.quote for measured in made.values()]
    if {measured.question for measured in quotes} != {measured.question for measured in draft.made}:
        raise PlanError(f"{call}: the script must return all that it measures, and observe nothing.")
    keys = {}
    for name, measured in made.items():
        if question.keys is not None:
            keys[name] = declared(question.keys, measured.node.schema, home, f"{call}: {name}")
            _expect(question, keys[name], home, call)
        elif not delta:
            raise PlanError(f"{call}: {name}: which bins to show? give keys, or delta (for example 1e-6).")
    if delta:
        quotes = [quote.publishing("release", delta) for quote in quotes]

    def answer() -> Answered:
        answers = {}
        for name, measured in made.items():
            listed = keys.get(name)
            answers[f"{question.name}_{name}"] = (
                measured.release(delta=delta) if listed is None else measured.release(keys=listed)
            )
        return Answered(
            {name: answer.released for name, answer in answers.items()},
            {name: answer.about for name, answer in answers.items()},
            {name: answer.plot for name, answer in answers.items()},
        )

    price = Price.of(quotes, promise)
    expected = [expected_noise(quote, name) for quote, name in zip(quotes, made, strict=True)]
    return Asked(question, f"dataflow {question.dataflow}", quotes, price, expected, answer)
