"""`wpinq sql`: one SELECT over protected tables, answered with intervals and cost."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wpinq.apps.cli import arguments, options
from wpinq.apps.cli.bins import parse_bins, parse_bounds
from wpinq.apps.cli.outputs import check_outputs, write_json
from wpinq.apps.cli.tables import Tables, of_tables, protect, rehearsed
from wpinq.errors import BinError, PlanError
from wpinq.exact import decimal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from wpinq import Answer
    from wpinq.apps.cli.inputs import Input
    from wpinq.collection import Collection
    from wpinq.core import Terms
    from wpinq.query import Quoted
    from wpinq.query.statement import Statement


def _functions(wanted: bool) -> None:
    if wanted:
        from wpinq.core import listed

        typer.echo(listed())
        raise typer.Exit


@arguments.over(of_tables)
def sql(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="SELECT page, COUNT(*) AS c FROM views GROUP BY page")],
    data: Tables,
    *,
    source: Annotated[
        list[str],
        typer.Option("--from", metavar="NAME=SOURCE", show_default=False,
                     help="A protected table: a file as in 'degrees', sqlite:FILE?table=NAME, or "
                          "postgresql://user@host/database?table=NAME (then with --ledger); can be given many times, "
                          "for tables of the same people with one --ledger. What follows of --unit, --columns and the "
                          "like is of each of them, or TABLE:VALUE of one: --at-most visits:20 --at-most people:1."),
    ],
    epsilon: options.Epsilon = None,
    rho: Annotated[
        str | None,
        typer.Option(metavar="RHO", show_default=False,
                     help="What it costs instead, with Gaussian noise: zero-concentrated loss. The ledger is one of "
                          "rho, or of --budget with --accounting renyi."),
    ] = None,
    mechanism: options.Mechanism = None,
    delta: Annotated[
        str | None,
        typer.Option(show_default=False,
                     help="What publishing the groups costs, where --keys does not give them: 1e-6. A new ledger "
                          "allows it as often as --budget allows --epsilon. Beside --keys, what goes with --epsilon of "
                          "Gaussian noise."),
    ] = None,
    ledger_delta: Annotated[
        str | None,
        typer.Option(metavar="DELTA", show_default=False,
                     help="What a new ledger allows in all; with --accounting renyi that of its promise."),
    ] = None,
    ledger_rho: Annotated[
        str | None,
        typer.Option(metavar="RHO", show_default=False, help="Zero-concentrated loss that a new ledger allows in all, "
                                                             "instead of --budget."),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", show_default=False,
                     help="A public table to join, which --columns NAME:item:int,price:float, --format and the like "
                          "say how to read; can be given many times."),
    ] = None,
    budget: options.Budget = None,
    keys: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False,
                     help="The groups to show, present or not: one a line as CSV, of which a first line that names the "
                          "columns is none, and nothing is NULL; or Parquet, or a JSON list."),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(metavar="WHAT=LOW..HIGH", show_default=False,
                     help="The least and the largest number of a column or expression that is summed or ranked, such "
                          "as 'price * qty=0..500'; can be given many times."),
    ] = None,
    analyst: options.Analyst = None,
    show_loss: Annotated[
        str | None,
        typer.Option(metavar="EPSILON", show_default=False,
                     help="Spend this beside --epsilon on how much is left out: records beyond --at-most, of how many "
                          "people, and what is counted in groups that are not shown."),
    ] = None,
    explain: options.Explain = False,
    save: options.Save = None,
    json: options.JsonPath = None,
    functions: Annotated[
        bool, typer.Option("--functions", callback=_functions, is_eager=True, help="List the functions of expressions.")
    ] = False,
) -> None:  # fmt: skip
    """Answer one SELECT over protected tables of the same people, in groups, with public joins.

    COUNT(*), COUNT(x), COUNT(DISTINCT x), SUM, AVG, MIN, MAX, MEDIAN, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x),
    VARIANCE and STDDEV of columns and expressions; all but counts need --bounds. They share epsilon equally.

    The query is first read over no records: what is wrong with it, or cannot be private, is found before it is charged.
    """
    from wpinq.apps.cli.show import budget_line, shown
    from wpinq.core import Terms, sources
    from wpinq.query import prepare, prepared, quoted
    from wpinq.query import sql as answered
    from wpinq.query.explained import explains

    inputs, free = data.read(source, public or [])
    behind = explains(query)
    query, explain = behind or query, explain or behind is not None
    _check(inputs, epsilon, rho, budget)
    texts = {"epsilon": epsilon, "rho": rho, "delta": delta, "show-loss": show_loss, "budget": budget}
    cost, bell, chance, loss, amount = _amounts(texts)
    noise = mechanism or ("geometric" if bell is None else "gaussian")
    whole = (cost or Fraction(0)) + (loss or 0)
    delta_of_ledger = ledger_delta or _delta(chance, whole if bell is None else None, amount) or None
    inputs = {name: replace(table, delta=delta_of_ledger, rho=ledger_rho) for name, table in inputs.items()}
    read = [*inputs.values(), *(item.data for item in free.values())]
    kept = set[Path]([keys.resolve()] if keys else []).union(*(item.files() for item in read))
    check_outputs({"--save": (save, options.TABLES), "--json": (json, (".json",))}, kept)
    limits = options.by_name("--bounds", map(parse_bounds, bounds or []))
    with rehearsed(inputs) as empty:
        groups = None if keys is None else _keys(keys, prepare(query, {**free, **empty}, limits))
        statements = prepared(query, {**free, **empty}, limits, mechanism=noise)
        _insist_on_read(statements, inputs, empty)
        keyed, terms = any(statement.keys for statement in statements), Terms(cost, noise, bell, chance, call="sql")
        _insist_on_price(statements, terms, listed=groups is not None)
        if explain:
            asked: dict[str, Any] = {"epsilon": cost, "rho": bell, "mechanism": noise, "delta": chance, "keys": groups,
                                     "loss": loss, "bounds": limits}  # fmt: skip
            told = partial(answered, f"EXPLAIN {query}", **asked)
            known = [ledger for name, collection in empty.items()
                     for ledger in inputs[name].led(collection, amount, epsilon=whole, rho=bell)]  # fmt: skip
            _explain(statements, terms, groups is not None, inputs, lambda: _together(inputs, free, told), loss=loss)
            if keyed and groups is None and chance is not None and not _waits(inputs):
                _publishing(quoted(query, {**free, **empty}, **asked), chance)
            typer.echo("".join(f"{line}\n" for line in dict.fromkeys(map(budget_line, known))), nl=False)
            return
    if keyed and groups is None and chance is None:
        raise PlanError("sql: which groups there are is private too; give --keys FILE, or --delta 1e-6.")

    tables = protect(inputs, amount, epsilon=whole, rho=bell)
    ledgers = {each.ledger.identity: each.ledger for table in tables.values() for each in sources(table._node)}
    before = [(account.spent(), account.divergence) for account in ledgers.values()]
    answer = answered(
        query, {**free, **tables}, epsilon=cost, rho=bell, mechanism=noise, delta=chance, keys=groups, bounds=limits,
        analyst=analyst, loss=loss,
    )  # fmt: skip
    _write(answer, save, json)
    nothing = before == [(account.spent(), account.divergence) for account in ledgers.values()]
    typer.echo(shown(answer, list(ledgers.values()), free=nothing))


def _write(answer: Answer, save: Path | None, json: Path | None) -> None:
    """Write the answer to the files that were asked for."""
    from wpinq.apps.cli.show import protected

    if save is not None:
        answer.save(save)
    if json is not None:
        write_json(json, {**answer.content(), "protects": protected(answer.measurements[0].node)})


def _insist_on_price(statements: Sequence[Statement], terms: Terms, *, listed: bool) -> None:
    """Refuse what the query may cost, where its measurements do not fit it.

    Raises:
        PlanError: See `shared`.
    """
    from wpinq.query import divided
    from wpinq.query.budget_split import shared

    share = divided(len(statements), epsilon=terms.epsilon, rho=terms.rho, delta=terms.delta)
    each = replace(terms, epsilon=share["epsilon"], rho=share["rho"], delta=share["delta"])
    for statement in statements:
        shared(statement, each, listed=listed or not statement.keys)


def _explain(
    statements: Sequence[Statement], terms: Terms, listed: bool, inputs: Mapping[str, Input],
    together: Callable[[], Answer], *, loss: Fraction | None,
) -> None:  # fmt: skip
    """Show the plan of each measurement, and what it would cost; of sums, say, how far noise moves them."""
    from wpinq.apps.cli.show import protects_line
    from wpinq.query import divided

    for table in inputs.values():
        table.insist_on_a_number()
    named = listed or terms.delta is not None or not any(statement.keys for statement in statements)
    priced = any(each.ranged or each.joined is not None or (each.numbers and named) for each in statements)
    several = terms.mechanism != "geometric" or priced or _waits(inputs)
    if loss is not None or (terms.epsilon is not None and several):
        typer.echo(str(together()))
    else:
        share = divided(len(statements), epsilon=terms.epsilon, rho=terms.rho)
        for statement in statements:
            statement.explain(share["epsilon"], listed, share["rho"])
    typer.echo(protects_line(statements[0].groups._node))


def _waits(inputs: Mapping[str, Input]) -> bool:
    """Whether the question chooses a bound first."""
    return any(table.auto for table in inputs.values())


def _together(inputs: Mapping[str, Input], free: Mapping[str, Any], told: Callable[..., Answer]) -> Answer:
    """What each measurement would cost, and by how much its noise would move it, in the ledger that there is."""
    with rehearsed(inputs, epsilons=all(table.adds_epsilons for table in inputs.values())) as empty:
        return told(tables={**free, **empty})


def _insist_on_read(
    statements: Sequence[Statement], inputs: Mapping[str, Input], empty: Mapping[str, Collection]
) -> None:
    """Refuse a table that the query does not read."""
    from wpinq.core import sources

    read_by = {id(data.reader) for each in statements for data in sources(each.groups._node)}
    ways = {table.through[1] for table in inputs.values() if table.through}
    unread = {name for name, collection in empty.items() if id(sources(collection._node)[0].reader) not in read_by}
    if unread := {name for name in unread if (inputs[name].name or name) not in ways}:
        raise PlanError(f"--from {min(unread)}: the query does not read it; leave it out.")


def _publishing(quote: Quoted, delta: Fraction) -> None:
    """Say what publishing groups that nobody named leaves out, which follows from the price."""
    from wpinq.html.numbers import of_threshold

    if quote.threshold is not None:
        typer.echo(f"Published at delta {decimal(delta)}: {of_threshold(quote.threshold)}.")


def _check(inputs: Mapping[str, Input], epsilon: str | None, rho: str | None, budget: str | None) -> None:
    """Refuse two prices or none, and a budget that cannot pay."""
    if (epsilon is None) is (rho is None):
        raise PlanError("sql: give --epsilon, what it costs, or --rho, with Gaussian noise; --ledger-rho is the budget "
                        "of a new ledger.")  # fmt: skip
    if rho is not None and _waits(inputs):
        raise PlanError("--at-most auto: the choice costs a part of epsilon; give --epsilon.")
    if rho is not None and budget is not None and any(table.accounting != "renyi" for table in inputs.values()):
        raise PlanError("--rho: no epsilon bounds Gaussian noise, so --budget goes with --accounting renyi and "
                        "--ledger-delta; or give --ledger-rho instead of it.")  # fmt: skip


def _amounts(texts: Mapping[str, str | None]) -> list[Fraction | None]:
    """Amounts as options give them."""
    return [options.amount(text, f"--{option}") for option, text in texts.items()]


def _keys(path: Path, statement: Statement) -> list[Any] | pl.LazyFrame:
    """The groups of a file: a JSON list, or what a release reads.

    Raises:
        SourceError: It cannot be read.
        BinError: A group does not fit the columns, or there is none.
    """
    from wpinq.apps.publish.keys import declared
    from wpinq.sources.files import text_of

    if path.suffix.lower() == ".parquet" or not (text := text_of(path, f"--keys {path}").strip()).startswith("["):
        return declared(str(path), statement.schema, Path(), "--keys", statement.keys, statement.key_labels)
    try:
        groups = list(parse_bins(text, statement.schema))
    except BinError as error:
        raise BinError(f"--keys {path}: {error}") from None
    if not groups:
        raise BinError(f"--keys {path}: names no group; write one a line, or a JSON list.")
    return groups


def _delta(chance: Fraction | None, cost: Fraction | None, budget: Fraction | None) -> Fraction:
    """What a new ledger allows in all: as many such queries as epsilon is there for, while that is below 1."""
    if chance is None or budget is None or cost is None:
        return chance or Fraction(0)
    fitting = ceil(1 / chance) - 1
    return chance * max(min(budget // cost, fitting), 1)
