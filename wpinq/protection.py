"""Where a curator begins: records come in, with a budget, and only measurements come out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from wpinq.arguments import FLAG, NAME, NOTHING, PATH, takes
from wpinq.collection import Collection
from wpinq.core.engines.job import Engine
from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.ledger import Asked, Ledger
from wpinq.core.ledger.stores.address import ledger_path
from wpinq.core.ledger.versions import named, printable, rendered
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node, Source
from wpinq.core.plan.unit import Choice, Unit
from wpinq.core.pricing.recharge import REPEATS, reply
from wpinq.core.state.memory import LIMIT
from wpinq.errors import ChangedError, LedgerError, PlanError, redacted
from wpinq.exact import Amount
from wpinq.sources import Columns, open_source
from wpinq.sources.form import Words, declared_form

if TYPE_CHECKING:
    from wpinq.core.ledger.budget import Budget
    from wpinq.core.ledger.rows.secret import Secret
    from wpinq.core.operators.contribution.preprocess import Before
    from wpinq.core.records.reader import Reader
    from wpinq.core.records.schema import Schema
    from wpinq.sources.opening import Opening


WORD = NAME | NOTHING
LIMITLESS = Fraction(10**12)
"""A budget that no question spends, for rehearsals that only look at costs, whatever the ledger adds up."""
LIMITLESS_RHO = 2 * LIMITLESS
"""The same in place of a ledger that is known to add up rho."""


@takes(
    ledger=PATH | NOTHING, header=FLAG, weight=WORD, format=WORD, separator=WORD, decimal=WORD, encoding=WORD,
    table=WORD, tz=WORD, index=FLAG | NOTHING,
)  # fmt: skip
def protect(
    source: object,
    budget: Amount | None = None,
    *,
    delta: Amount | None = None,
    rho: Amount | None = None,
    accounting: str | None = None,
    ledger: str | os.PathLike[str] | None = None,
    unit: Unit | None = None,
    columns: Columns = None,
    header: bool = True,
    weight: str | None = None,
    max_weight: Amount = 1,
    name: str | None = None,
    version: str | None = None,
    secret: Secret | None = None,
    where: object = None,
    derive: Mapping[str, object] | None = None,
    format: str | None = None,  # noqa: A002  the word that everybody uses
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    table: str | None = None,
    tz: str | None = None,
    repeat: str = "charge",
    engine: Engine | None = None,
    index: bool | None = None,
) -> Collection:
    """Protect a collection of records.

    Nothing is inferred from records: names and types of columns come from a header, a schema or `columns`. A field that
    does not fit its type is null and a row that cannot be read is dropped, one by one and uncounted; `wpinq check`
    tells the curator.

    Args:
        source: A path, a quoted pattern or a directory of files: `.csv`, `.tsv`, `.txt` (whitespace-separated pairs),
            `.log` and `_log` of web servers, also rotated (`access.log.2.gz`), `.jsonl`, `.ndjson`, each also `.gz`;
            `.parquet`, `.arrow`, `.feather`, `.ipc`, also in directories such as `year=2026`, whose names are columns.
            Or anything that gives an Arrow stream (Polars, pandas, pyarrow and its data sets, DuckDB), a DataFrame of
            Spark (with `version=`), an iterable of tuples or of mappings, or a table or query of a database
            (`wpinq.postgres`, `wpinq.sqlite`, `postgresql://me@host/db?table=views`, `duckdb:shop.duckdb?table=views`).
            The columns of a log of the common or combined format are host, identity, user, time, method, page,
            protocol, status, size, referrer and agent. Lines of another format are dropped: declare it by `format`.
            What is in memory is taken as it is now: tuples, pandas and streams are copied; of Polars and Arrow, write
            into no array that they were made of. What is computed anew for each run (a LazyFrame, a DuckDB relation,
            a PostgreSQL table) is read with all its columns, and refused once it holds other records.
        budget: Epsilon that may be spent on this data set in all, exact. It may be left out where a ledger holds it.
        rho: Zero-concentrated privacy loss that may be spent in all, instead of `budget`: what an epsilon costs is at
            most half its square. It promises (rho + 2 sqrt(rho log(1 / delta)), delta) for every delta.
        accounting: "pure", by default: epsilons add up to `budget` at most. "renyi" promises (`budget`, `delta`) and
            adds up Renyi divergences beside epsilons: a charge fits where either sum allows it. It costs no noise and
            allows more than about 15 equal questions to be asked with less of it: 100 at 1/2.2, 1,000 at 1/7. It is
            fixed when the ledger is made; `wpinq/docs/budget.md` says when to take which.
        delta: Delta that may be spent in all, by `release`, `select` and `sql`; a small probability, for example 1e-6,
            or 0 for none. By default that of the ledger, and 1e-5 in a new one, of which nothing is spent unasked. With
            `accounting="renyi"` it is the delta of the promise, of which they may spend one part in a hundred.
        ledger: Where the ledger is kept: a path, or the URL of one in PostgreSQL
            (`postgresql://user@host/database?ledger=NAME`); by default beside the file, and in memory where there is no
            file.
        unit: Whom the guarantee protects: by default one record, or people, with `users(...)`.
        columns: Names of the columns, or a mapping from names to types.
        header: Whether the first line of a CSV or TSV file names its columns.
        format: What files are, where their ending does not tell it (csv, tsv, pairs, json, parquet, arrow, log); or the
            format of the lines of a log: common, combined, vhost_combined, or what stands in the configuration of
            nginx (`$remote_addr - $remote_user [$time_local] "$request" ...`) or Apache (`%h %l %u %t "%r" ...`); or
            what Caddy, CloudFront and Traefik write by default: caddy, cloudfront, traefik, traefik_json.
            A variable without a name above is a column of its own name, such as request_time. `json` reads the keys
            that `columns` names from an object on each line; a name with dots is a path, `request.headers.0`.
        separator: What stands between the fields of a CSV file; by default a comma.
        decimal: The decimal mark of the numbers of a CSV file; by default a point.
        encoding: The encoding of a CSV file, such as latin-1 or cp1252; by default UTF-8.
        table: The table of a DuckDB or SQLite file.
        tz: Give instants as the clocks of this zone showed them, such as "Europe/Amsterdam", so that days and hours are
            those that people of that zone mean. By default they are in UTC.
        weight: A column that holds the weight of each record; by default each record weighs 1.
        max_weight: The largest weight of a record, either way; it multiplies the noise.
        name: Names the data set in its ledger; by default as the ledger does, or after the file in a new one. All
            versions of one data set share a budget, and so do tables of the same people with `ledger=` and a name each.
        version: Names this version of the data, such as "2026-11-23"; by default what stands in the call does: the name
            of a file or a directory, the text of a pattern, the name of a table, and "records" in memory. `{date}`
            in it is the day of the call in the zone `tz`, by default UTC; so are `{hour}`, `{week}`, `{month}` and
            `{year}`. What is first charged under a name is pinned. The same data under the same name are the same
            version, wherever they were moved or copied, and cost nothing again; other data under the same name are
            refused before any charge, and at a terminal or in a notebook you are asked for the name of the next
            version. Under another name all questions are charged anew, also where the data are the same.
        secret: The secret of the data set; by default the one beside the ledger, or the environment's.
        where: Which records are counted at all, decided for each by itself before a person's are bounded: what `filter`
            takes, such as "status = 200 and page not like '/static/%'". Without it, records that a question leaves out
            take places of the bound.
        derive: Columns that are computed for each record by itself before a person's are bounded and `where` is asked:
            a mapping from their names to SQL expressions, functions or Polars expressions, such as {"page":
            "lower(page)"}. A plain function says the type of what it gives by `-> str`, or stands in a pair with it:
            {"day": (lambda time: ..., "date")}; else its values are of any type. A column that tells people apart
            cannot be computed. Both belong to the question and not to the ledger: others over the same ledger are other
            questions.
        repeat: What to do before a question is charged that was charged for another version of the data, or by another
            version of Python: "charge" says so in a warning and charges, "ask" asks at a terminal or in a notebook and
            refuses where nobody can be asked, "refuse" refuses.
        engine: What computes the answers, if that is not this process: `wpinq.processes(4)`. The answers are the same.
        index: Keep the records by person in a file beside the ledger, encrypted, so that a new question about people
            is one pass over it, in this process and in later ones. The first question makes it; it stays until `wpinq
            ledger forget`. By default they are held in memory from the second question on, and with False people are
            bounded anew for each question. The answers are the same.

    Returns:
        The protected collection.

    Raises:
        SourceError: The source cannot be read as records; nothing was charged.
        ChangedError: It holds other records than those that were first charged under its version; nothing was charged.
        PlanError: The unit, the weight, `where` or `derive` does not fit the columns; or budget or ledger is missing.
        ExactnessError: The budget is not a finite number above zero.
        BudgetError: What the choice of `users(..., at_most="auto")` costs is more than is left.
        LedgerError: The ledger cannot be trusted or written, or holds another unit or budget.

    >>> from wpinq import protect
    >>> views = protect([("ann", "home"), ("bob", "home")], budget=1, columns=("user", "page"))
    >>> views
    <protected collection (user: value, page: value) by protect(records)>
    """
    refuse_inside("protect")
    _check_choices(repeat, engine)
    terms = Asked.of("protect", budget, delta, rho, accounting)
    words: Words = {
        "header": header, "format": format, "separator": separator, "decimal": decimal, "encoding": encoding,
        "table": table, "tz": tz,
    }  # fmt: skip
    reader = redacted("protect(...)", lambda: open_source(source, columns=columns, copied=True, **words))
    unit = Unit() if unit is None else unit
    if not isinstance(unit, Unit):
        raise PlanError("protect(unit=...): takes what wpinq.users(...) returns, or nothing for records.")
    led = unit.owner
    if led is not None:
        reader, unit, ledger = _led(reader, unit, ledger)
    path = beside(reader.path) if ledger is None else ledger_path(ledger) if led is None or led.lasting else None
    if path is None and getattr(reader, "lasting", False):
        raise PlanError("protect(ledger=...): a database outlives this process, and has no file to keep a ledger by.")
    if path is None and terms.amount is None and led is None:
        raise PlanError("protect(budget=...): records in memory need a budget, for example budget=0.2.")
    label = named(name, "protect(name=...)") or printable(reader.name)
    declared = rendered(version, "protect(version=...)", tz) or None
    if declared is None and getattr(reader, "nameless", False):
        raise PlanError("protect(version=...): name the snapshot that the DataFrame reads, such as 'views at 42'.")
    if unit.column is not None and weight is not None:
        raise PlanError("protect(weight=...): leave it out where unit= protects people: their records are counted.")
    reading = declared_form(**words).text
    lasting = led.lasting if led is not None else path is not None
    _check_index(index, unit, engine, lasting=lasting)

    first = _first(reader.schema, unit, where, derive)  # mistakes show before a ledger is made
    _check_weight(reader.schema if first is None else first.schema, weight, max_weight)
    if isinstance(ledger, Ledger):
        book = ledger.of_table(label, unit.whom, terms, shared=led is not None)
    else:
        book = Ledger.open(
            path, name=label, unit=unit.whom, terms=terms, secret=secret, found=name is None,
            shared=ledger is not None,
        )  # fmt: skip
    LIMIT.beside(path)
    data = _confirmed(DataSet(
        reader, book, book.name if name is None and led is None else label, _version(declared, reader, led), unit,
        lasting=lasting, reading=reading, repeat=repeat, indexes=reader if index else index,
        before=first.said if first else (), engine=engine,
        opened=None if led is not None else _opening(source, columns, words, reader),
    ), ask=declared is None)  # fmt: skip
    records = Source(data) if first is None else first.over(Source(data))
    if first is not None and unit.choice is not None:
        records = _chosen(records, first, data, unit.choice)
    return Collection(_weighed(records, unit, weight, max_weight))


def _opening(source: object, columns: Columns, words: Words, reader: Reader) -> Opening | None:
    """What another process must know to open the same files."""
    if not isinstance(source, (str, Path)):
        return None
    from wpinq.sources.opening import opening

    return opening(source, columns, words, reader)


def _first(schema: Schema, unit: Unit, where: object, derive: Mapping[str, object] | None) -> Before | None:
    """What is done to each record before the unit bounds them, where there is anything; see `before`."""
    if unit.column is None and where is None and derive is None:
        return None
    from wpinq.core.operators.contribution.preprocess import before

    return before(schema, unit, where, derive, "protect")


def _check_weight(schema: Schema, weight: str | None, max_weight: Amount) -> None:
    if weight is not None:
        from wpinq.core.operators.contribution.weight import weights

        weights(schema, weight, max_weight)


def _weighed(records: Node, unit: Unit, weight: str | None, max_weight: Amount) -> Node:
    """The records that the unit lets in, or with a weight of their own."""
    if weight is not None:
        from wpinq.core.operators.contribution.weight import weigh

        return weigh(records, weight, max_weight)
    if unit.column is None:
        return records
    from wpinq.core.operators.contribution.sample import bounded

    return bounded(records)


def _led(reader: Reader, unit: Unit, ledger: object) -> tuple[Reader, Unit, Ledger]:
    """Records with their owners, whom a way leads to, their unit, and the one ledger of all tables of the way.

    Raises:
        PlanError: The way does not fit the columns, or another ledger is given.
    """
    led: DataSet = unit.owner
    if isinstance(ledger, Ledger):
        same = ledger.identity == led.book
    else:
        same = ledger is None or (led.lasting and ledger_path(str(ledger)).resolve() == Path(led.ledger).resolve())
    if not same:
        raise PlanError(f"users(through=...): {led.name!r} has another ledger; all tables of a way share one.")
    return pairs(reader, led, unit.way[0]), replace(unit, owner=None), led.ledger


def pairs(reader: Reader, led: DataSet, hop: tuple[str, str, str]) -> Reader:
    """Records with the owners that a table names, in the periods in which it protects people.

    Raises:
        PlanError: The way does not fit the columns.
    """
    from wpinq.core.operators.contribution.unit_key import UnitKey
    from wpinq.sources.owned import through

    key = UnitKey(led.unit, led.reader.schema)
    at = None if key.span is None else (key.unit.columns[1], key.span)
    return through(reader, led.reader, hop, key.user, at)


def _version(declared: str | None, reader: Reader, led: DataSet | None) -> str:
    """The name of a version; whose a record is follows from the version of the owner table, too."""
    stated = declared or printable(reader.title)
    return stated if led is None else f"{stated}, {led.name} {led.version}"


def _chosen(records: Node, first: Before, data: DataSet, choice: Choice) -> Node:
    """The records of people, of each of whom a number is kept that is chosen privately."""
    from wpinq.aggregates.bound_choice import choose_bound  # few units leave the choice

    most = choose_bound(Collection(records), choice)
    return first.over(Source(replace(data, unit=replace(data.unit, at_most=most))))


def _check_index(index: bool | None, unit: Unit, engine: Engine | None, *, lasting: bool) -> None:
    """Refuse a file of records by person where it would not be used.

    Raises:
        PlanError: It would not.
    """
    if not index:
        return
    if unit.column is None or (unit.at_most is None and not unit.whole):
        raise PlanError(
            "protect(index=...): keeps records by person; name people and a number of records of each (unit=...)."
        )
    if engine is not None:
        raise PlanError("protect(index=...): is used by one process; leave out either index= or engine=.")
    if not lasting:
        raise PlanError("protect(index=...): a ledger in memory ends with its process; give ledger=.")


def _check_choices(repeat: str, engine: object) -> None:
    if repeat not in REPEATS:
        raise PlanError(f"protect(repeat=...): takes one of {', '.join(map(repr, REPEATS))}.")
    if engine is not None and not isinstance(engine, Engine):
        raise PlanError("protect(engine=...): takes what wpinq.processes(...) gives.")


def _confirmed(data: DataSet, *, ask: bool) -> DataSet:
    """Compare a data set with what is pinned under its version; ask for the name of the next version, where it may be.

    Raises:
        ChangedError: It is another one, and nobody has named it.
    """
    while True:
        try:
            data.confirm()
        except ChangedError as changed:
            version = reply(f"{changed}\nName of this version (none to stop): ") if ask else ""
            if not version:
                raise
            data = replace(data, version=rendered(version, "protect(version=...)", None) or "", held=[])
        else:
            return data


def budget(of: Collection | str | os.PathLike[str]) -> Budget:
    """Ask what a budget holds, what was spent on what, and what is left; it costs nothing.

    Args:
        of: A protected collection, the path of a ledger, or that of a file that has its ledger beside it.

    Raises:
        LedgerError: There is no ledger, or it cannot be trusted.
        PlanError: The collection is made of data sets with several ledgers; ask for each.

    >>> from wpinq import budget, protect
    >>> views = protect([("ann", "home")], budget=1, columns={"user": str, "page": str})
    >>> pages = views.map("page").measure(epsilon="1/4", name="pages")
    >>> budget(views)
    Epsilon 0.75 of 1 is left for records. Delta 0.00001 of 0.00001 is left.
            0.25  pages
    """
    from wpinq.core.ledger.budget import Budget

    if isinstance(of, Collection):
        return of.budget
    if not PATH.holds(of):
        raise PlanError("budget(...): takes a protected collection, or the path of a ledger or of its file.")
    path = ledger_path(os.fspath(of))
    neighbour = path.parent / f"{path.name}.ledger"
    try:
        ledger = neighbour if neighbour.exists() else path
    except OSError:
        raise LedgerError("budget(...): a path that cannot be; give that of a ledger or of its file.") from None
    return Budget.of(Ledger.existing(ledger))


def beside(path: Path | None) -> Path | None:
    """Where the ledger of a file lies."""
    return None if path is None else path.parent / f"{path.name}.ledger"
