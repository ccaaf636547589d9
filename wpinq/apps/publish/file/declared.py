"""The release file: what it may say. Every table of it is one class here, and its keys are the class's fields."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias, cast

import msgspec

from wpinq.exact import exact
from wpinq.sources.form import Words as Form

__all__ = [
    "Alerts",
    "Budget",
    "Checks",
    "Data",
    "File",
    "Intake",
    "Page",
    "Person",
    "Question",
    "Records",
    "Schedule",
    "Sink",
    "Source",
    "Stream",
    "Words",
]  # fmt: skip

Number: TypeAlias = int | float | str
"""An amount as a file holds it; it is read exactly."""

Every: TypeAlias = Literal["hour", "day", "week", "month", "year"]


class Table(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A table of the file."""


class Person(Table, frozen=True):
    """Whom each answer protects: the arguments of `wpinq.users`.

    `through` instead of `column` is the way to who owns a record, such as "l_orderkey=orders.o_orderkey". With `at_most
    = "auto"`, which a server takes, `epsilon`, `bins` and `asking` say how it is chosen.
    """

    column: str | None = None
    at_most: int | Literal["auto"] | None = None
    per: dict[str, int] = {}
    shared: bool = False
    period: str | None = None
    at: str | None = None
    zone: str | None = None
    through: str | None = None
    epsilon: Number | None = None
    bins: int | None = None
    asking: Number | None = None


class Source(Table, frozen=True, kw_only=True):
    """Where records come from, how they are read, and whose they are; of a server's files, too."""

    source: str
    unit: Person | None = None
    columns: dict[str, str] | list[str] | None = None
    header: bool = True
    format: str | None = None
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    table: str | None = None
    tz: str | None = None

    def form(self, *without: str) -> Form:
        """The form that is said of the source, as `wpinq.protect` takes it, but for some words of it."""
        said = {name: getattr(self, name) for name in Form.__annotations__ if name not in without}
        return cast("Form", said)


class Records(Source, frozen=True, kw_only=True):
    """The records of a release, or of a table that a way leads through."""

    query: str | None = None


class Data(Records, frozen=True, kw_only=True):
    """The records of a release, and how they are protected: the arguments of `wpinq.protect`.

    `{date}` in `source`, `query` and `where` is the period's name, `{start}` and `{end}` are its first instant and the
    first one after it. With `listen` instead of `source`, `host:port`, records are sent there. `processes` says in how
    many processes answers are computed, which changes none. `owners` are the tables that a way leads through, by their
    names.
    """

    ledger: str
    source: str = ""
    listen: str | None = None
    name: str = "data"
    where: str | None = None
    derive: dict[str, str] = {}
    owners: dict[str, Records] = {}
    processes: Annotated[int, msgspec.Meta(ge=1, le=256)] = 1


class Budget(Table, frozen=True):
    """What may be spent: in all, or with `per` in each month, say, without a bound over all time.

    They are the arguments of `wpinq.protect`.
    """

    epsilon: Number | None = None
    delta: Number = 0
    per: Every | None = None
    rho: Number | None = None
    accounting: Literal["pure", "renyi"] = "pure"


class Schedule(Table, frozen=True):
    """Which periods there are: one `every` day, say, from `first` on.

    `at` is the column of a record's time, which says in which one it is, by the clocks of `zone`: the short form of a
    `where` with `{start}` and `{end}`. On the days of `again`, which are declared before anything is known of them,
    a period that was not begun is charged as records of that day, whether or not any came late since others asked.
    """

    every: Every = "day"
    at: str | None = None
    first: str | None = None
    zone: str = "UTC"
    again: tuple[str, ...] = ()


class Question(Table, frozen=True):
    """What is asked of each period: one of `sql`, `counts`, `degrees` and `dataflow`, and what it costs.

    With `rho`, of Gaussian noise, instead of `epsilon`; a dataflow says its own. `keys` are the groups to show, public,
    in a file or a list; else `delta` pays for publishing those above a threshold, and `above` leaves out more. `expect`
    are keys of `expect_column` that must be declared. `bounds` are those of columns, `plot` draws the answer. Of `sql`
    and `counts`: `within` instead of `epsilon` says by how much noise may move each count, with probability 95%; `loss`
    is an epsilon that is spent on how much the bound and the threshold leave out; `at_most` is how many records of each
    person it looks at; "auto" chooses the number first, for a part of epsilon.
    """

    name: str
    epsilon: Number | None = None
    delta: Number | None = None
    sql: str | None = None
    counts: list[str] | None = None
    degrees: str | None = None
    dataflow: str | None = None
    keys: str | list[Any] | None = None
    bounds: dict[str, tuple[Number, Number]] = {}
    above: Number | None = None
    expect: str | list[Any] | None = None
    expect_column: str | None = None
    plot: bool = True
    rho: Number | None = None
    mechanism: Literal["geometric", "laplace", "gaussian"] | None = None
    within: Number | None = None
    loss: Number | None = None
    at_most: Annotated[int, msgspec.Meta(ge=1)] | Literal["auto"] | None = None


class Sink(Table, frozen=True):
    """Where answers go: one of a directory, a SQLite file, a PostgreSQL database and `to`, a sink of streams."""

    directory: str | None = None
    sqlite: str | None = None
    postgres: str | None = None
    to: str | None = None
    formats: tuple[Literal["csv", "parquet", "json"], ...] = ("csv",)


class Checks(Table, frozen=True):
    """When answers are held back.

    `totals` is by which share a total may break with those before it, beside noise; `keys` looks for groups that were
    clear and are almost gone.
    """

    totals: float | Literal[False] = 0.5
    keys: bool = True


class Words(Table, frozen=True):
    """What the evidence says that no computation knows."""

    title: str | None = None
    curator: str = "not stated"
    purpose: str = "not stated"
    description: str | None = None
    region: str = "not stated"
    sector: Literal["Technology", "Healthcare", "Education", "Government"] | None = None
    authors: tuple[str, ...] = ("not stated",)
    justification: str = "not stated"
    unprotected: str | None = None
    notes: str | None = None


class Page(Table, frozen=True):
    """A page of all periods beside their directories, `index.html`, and feeds of the latest numbers.

    Blank lines part `words` into paragraphs. `show` is of how many groups of a question there are curves, those that
    are the largest in the latest period.
    """

    title: str | None = None
    words: str | None = None
    language: str = "en"
    show: Annotated[int, msgspec.Meta(ge=1, le=100)] = 12


class Stream(Table, frozen=True):
    """How a stream is followed: `source` is a topic of Kafka, or files that lines are added to.

    `at` is the column of a record's own time, which says in which period it is; without it, it is that in which it is
    read. A period closes `lateness` seconds after its end; the stream is looked at every so many seconds. `keep` is for
    how many published periods records are kept; without it for all. `late` says what becomes of a record of a period
    that has closed: it is left out, or counted in the next one, which units that are in one period alone cannot be.
    """

    at: str | None = None
    lateness: float = 60.0
    every: float = 60.0
    keep: int | None = None
    late: Literal["drop", "next"] = "drop"


class Intake(Table, frozen=True):
    """How records that are sent are taken: see `wpinq.apps.publish.intake`.

    `keys` is the directory of the periods' keys, which no backup shall hold; `requests` is how many one address, or who
    shows one token of the file `tokens`, may make in a minute, 0 for any number, where a proxy in front bounds them;
    `body` how many bytes one may have.
    """

    keys: str | None = None
    tokens: str | None = None
    requests: Annotated[int, msgspec.Meta(ge=0)] = 600
    body: Annotated[int, msgspec.Meta(ge=1, le=16 << 20)] = 65_536


class Alerts(Table, frozen=True):
    """Where it is told, by one POST to `webhook`, when less than the share `below` of the budget is left."""

    webhook: str
    below: float = 0.2


class File(Table, frozen=True):
    """A whole release file. Its `name` is by default that of the file."""

    data: Data
    budget: Budget
    question: list[Question]
    sink: list[Sink]
    period: Schedule = Schedule()
    checks: Checks = Checks()
    about: Words = Words()
    stream: Stream | None = None
    intake: Intake = Intake()
    alerts: Alerts | None = None
    page: Page | None = None
    name: str | None = None


def amount(given: Number | None, call: str) -> Fraction:
    """An amount of the file, exactly; 0 where there is none."""
    return Fraction(0) if given is None else exact(given, call)
