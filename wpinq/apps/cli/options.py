"""Single arguments and options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from wpinq.errors import ExactnessError, PlanError
from wpinq.exact import positive

DataflowName = Annotated[
    str,
    typer.Argument(
        metavar="DATAFLOW",
        help="A script that defines dataflow(views) -> dict of measurements, or the name of one that comes with wpinq: "
        "page_views, degree_cdf, degree_sequence, degrees, graph, tpch.",
        show_default=False,
    ),
]
AuditedName = Annotated[
    str,
    typer.Argument(
        metavar="[DATAFLOW]",
        help="A script that defines dataflow(views) -> dict of measurements, or the name of one that comes with wpinq: "
        "page_views, degree_cdf, degree_sequence, degrees, graph, tpch. Leave it out with --self.",
        show_default=False,
    ),
]
ColumnsOf = Annotated[
    str,
    typer.Argument(
        metavar="[INPUT]",
        help="What it is to be run over, of which only the columns are read; without it --columns names them, and they "
        "are user and page.",
        show_default=False,
    ),
]
InputPath = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="A .csv, .tsv, .txt (whitespace-separated pairs), .log (of a web server, also rotated), .jsonl (each also "
        ".gz), .parquet, .arrow or .feather file, a directory, or a quoted pattern; sqlite:FILE?table=NAME, "
        "duckdb:FILE?table=NAME; postgresql://user@host/database?table=NAME (then with --ledger); "
        "and for wpinq run kafka://HOST:PORT/TOPIC, with JSON messages or ?form=csv, tsv or log, or - for lines of a "
        "web log by standard input.",
        show_default=False,
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        help="Epsilon that the data set may ever spend, exactly: 0.2 or 1/5. It is fixed in the ledger; leave it out "
        "where there is one. Without it a new ledger of 'sql' or 'table' holds what the question costs. A stream needs "
        "it each time.",
        metavar="EPSILON",
        show_default=False,
    ),
]
BudgetOrAll = Annotated[
    str | None,
    typer.Option(
        help="Epsilon that a new ledger allows in all, exactly: 0.2 or 1/5; without it, what this run spends. Without "
        "--epsilon, that is spent whole.",
        metavar="EPSILON",
        show_default=False,
    ),
]
Epsilon = Annotated[
    str | None,
    typer.Option(help="What it costs one person in all, exactly: 1 or 1/2.", metavar="EPSILON", show_default=False),
]
Explain = Annotated[bool, typer.Option("--explain", help="Show the plan and its cost, and charge nothing.")]
Accounting = Annotated[
    str | None,
    typer.Option(help="How a new ledger adds up charges: pure (epsilons) or renyi (for --budget with --delta).",
                 metavar="pure|renyi", show_default=False),
]  # fmt: skip
Rho = Annotated[
    str | None,
    typer.Option(help="Zero-concentrated loss that the data set may ever spend, instead of --budget.", metavar="RHO",
                 show_default=False),
]  # fmt: skip
Mechanism = Annotated[
    str | None,
    typer.Option(help="What adds noise: geometric (the default), laplace, gaussian, or best of geometric and gaussian.",
                 metavar="NAME", show_default=False),
]  # fmt: skip
Delta = Annotated[
    str | None,
    typer.Option(help="Delta of a new ledger: with --accounting renyi that of its promise, else of what is released "
                 "without being named; 1e-5 by default.", metavar="DELTA", show_default=False),
]  # fmt: skip
ColumnNames = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Names of the columns, with a type where they are not text: user,page:int.",
        metavar="NAMES",
        show_default=False,
    ),
]
Header = Annotated[bool, typer.Option("--header/--no-header", help="Whether the first line of text names the columns.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="What the files are, if their ending does not tell it: csv, tsv, pairs, json, parquet, arrow, log; or the "
        "format of a log: common, combined, vhost_combined, caddy, cloudfront, traefik, traefik_json, or the string in "
        "the configuration of nginx or Apache. "
        "The columns of a log are host, identity, user, time, method, page, protocol, status, size, referrer, agent.",
        metavar="FORMAT",
        show_default=False,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(help="What separates the fields of a CSV file, such as ';'.", metavar="MARK", show_default=False),
]
Decimal = Annotated[
    str | None, typer.Option(help="The decimal mark of its numbers: ',' or '.'.", metavar="MARK", show_default=False)
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Its encoding, such as latin-1 or cp1252; UTF-8 by default.", metavar="NAME", show_default=False),
]
Table = Annotated[
    str | None, typer.Option(help="The table of a DuckDB or SQLite file.", metavar="NAME", show_default=False)
]
TimeZone = Annotated[
    str | None,
    typer.Option(
        help="Give times with a zone as clocks of this one showed them: Europe/Amsterdam. By default they are in UTC.",
        metavar="ZONE",
        show_default=False,
    ),
]


T = TypeVar("T")


def by_name(option: str, pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    """What an option that is given many times says of each name.

    Raises:
        PlanError: It says two things of one.
    """
    result: dict[str, T] = {}
    for name, value in pairs:
        if name in result:
            raise PlanError(f"{option} {name}: is given twice; give it once.")
        result[name] = value
    return result


def _ledger_path(text: str) -> Path:
    """The path that stands for a ledger, or the anchor of one in a database."""
    from wpinq.core import Ledger  # here: most commands start without it

    return Ledger.path(text)


LedgerPath = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        help="A path or postgresql://...; by default beside the data.",
        metavar="PATH",
        show_default=False,
        parser=_ledger_path,
    ),
]
Name = Annotated[
    str | None, typer.Option(help="Name of the data set in its ledger; the file's name by default.", show_default=False)
]
Analyst = Annotated[
    str | None,
    typer.Option(help="Who is charged, where the ledger has caps for analysts.", metavar="NAME", show_default=False),
]
DataVersion = Annotated[
    str | None,
    typer.Option(
        help="Name of this version of the data, such as 2026-11-23 or {date}, the day of the call; by default the"
        " name of INPUT. Other data under a name that was charged are refused.",
        show_default=False,
    ),
]
Repeat = Annotated[
    str,
    typer.Option(
        help="Before a question is charged again, of another version of the data or by another Python: charge (and say"
        " so), ask or refuse.",
        metavar="charge|ask|refuse",
    ),
]
TABLES = (".csv", ".parquet")
"""Endings of a table that is written with its intervals."""
Save = Annotated[
    Path | None,
    typer.Option(help="Write the table with intervals here: .csv or .parquet.", metavar="OUT", show_default=False),
]
JsonPath = Annotated[
    Path | None,
    typer.Option(
        "--json",
        help="Write the answers here. wpinq run adds a line for each answer of a stream; - is standard output then.",
        metavar="OUT",
        show_default=False,
    ),
]
RecoverPath = Annotated[
    Path | None,
    typer.Option(
        "--recover",
        help="Keep what is read here, encrypted, so that a run that is killed goes on where it was when it is started "
        "again; emptied at its end. Of a stream the closed epochs are kept, for good: those "
        "before the last --keep ones merged to what was counted of them.",
        metavar="DIR",
        show_default=False,
    ),
]
Processes = Annotated[
    int,
    typer.Option(
        "--processes",
        help="Compute in this many processes of this machine, with the same answers; as many as there are cores suits "
        "large files. They know records, and neither the secret nor the ledger.",
        metavar="NUMBER",
        min=1,
        max=256,
    ),
]
Index = Annotated[
    bool,
    typer.Option(
        "--index",
        help="Keep the records by person in a file beside the ledger, encrypted, so that the next new questions about "
        "people are quick, with the same answers; the first one makes it. 'wpinq ledger forget' removes it.",
    ),
]
YEAR = 366 * 24 * 60 * 60
"""Seconds that a stream may be asked to wait."""


def a_number(seconds: float) -> float:
    """The value of an option of seconds, which no range keeps from being NaN.

    Raises:
        BadParameter: It is no number.
    """
    if math.isnan(seconds):
        raise typer.BadParameter("nan is no number.")
    return seconds


Follow = Annotated[
    bool, typer.Option("--follow", help="INPUT grows: go on, and answer about what is added. A topic and - always do.")
]
Every = Annotated[
    float,
    typer.Option(
        "--every", help="Seconds between the answers about a stream.", metavar="SECONDS", min=0.01, max=YEAR,
        callback=a_number,
    ),
]  # fmt: skip
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="Let this many processes of this host read a stream that is kept in the database of its ledger; start the "
        "same command on other hosts, and one at a time answers.",
        metavar="NUMBER",
        min=1,
        max=256,
        show_default=False,
    ),
]
Lateness = Annotated[
    float,
    typer.Option(
        "--lateness",
        help="Seconds after its end at which a window of a stream is closed by the clock; what comes later for it is "
        "counted nowhere.",
        metavar="SECONDS",
        min=0,
        max=YEAR,
        callback=a_number,
    ),
]
To = Annotated[
    list[str] | None,
    typer.Option(
        "--to",
        help="Where the answers of a stream go beside: parquet:DIR, https://HOST/PATH, "
        "postgresql://user@host/database?table=NAME or kafka://HOST:PORT/TOPIC; can be given many times. One that "
        "fails gets its answers later; with --recover also after a restart.",
        metavar="SINK",
        show_default=False,
    ),
]
Status = Annotated[
    Path | None,
    typer.Option(
        "--status",
        help="For the curator alone: a file, readable by its owner, that tells at each epoch of a stream how many "
        "lines came and how many were dropped, exactly, and how far sinks are. Never publish it.",
        metavar="FILE",
        show_default=False,
    ),
]
Keep = Annotated[
    int | None,
    typer.Option(
        "--keep",
        help="For how many epochs what a stream brought is held, one by one; by default for as many as windows need. A "
        "stream may be one epoch less than that ahead of a sink.",
        metavar="EPOCHS",
        min=1,
        show_default=False,
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option("--metrics", metavar="[HOST:]PORT", show_default=False,
                 help="Answer /metrics (OpenMetrics), /health and /ready; without a host, to this machine alone."),
]  # fmt: skip
Listen = Annotated[
    str | None,
    typer.Option("--listen", metavar="HOST:PORT", show_default=False,
                 help="Append what is POSTed, as JSON, to INPUT (.jsonl), where nothing is destroyed. "
                 "The file has it in the clear. What wpinq publish follow takes (data.listen) is destroyed period by "
                 "period."),
]  # fmt: skip


def amount(text: str | None, option: str) -> Fraction | None:
    """The amount that an option says, where it is given.

    Raises:
        ExactnessError: It is no amount.

    >>> amount("1/2", "--epsilon"), amount(None, "--epsilon")
    (Fraction(1, 2), None)
    """
    return None if text is None else positive(text, option)


def cost_or_all(command: str, epsilon: str | None, budget: Fraction | None) -> tuple[Fraction, Fraction | None]:
    """What a run costs, and what a new ledger allows where both are said; without a cost it is all of the budget.

    Raises:
        ExactnessError: Neither is said, or the cost is no amount.

    >>> cost_or_all("graph", "1/2", Fraction(3)), cost_or_all("graph", None, Fraction(3))
    ((Fraction(1, 2), Fraction(3, 1)), (Fraction(3, 1), None))
    """
    if epsilon is not None:
        return positive(epsilon, "--epsilon"), budget
    if budget is None:
        raise ExactnessError(f"{command}: give --epsilon, what it costs, or --budget, which it then spends whole.")
    return budget, None
