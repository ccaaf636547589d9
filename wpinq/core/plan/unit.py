"""The privacy unit: whom the guarantee protects, and how contributions are bounded.

By default the unit is one record. With `users` it is all records of one person, bounded in one of two ways, or not yet:

- `users("user", at_most=20)` keeps a uniform sample of 20 of a person's records. Noise grows with 20, and what heavy
  users did beyond it is missing from every answer (bias).
- `users("user", shared=True)` keeps all records and lets each person's records share a weight of 1. Noise is that of
  one record, and what is measured is a different quantity: a person counts once, split over all that it did.
- `users("user")` keeps all records as they are. What nothing bounds by then cannot be measured; a count of people can.

With `period="1d", at="time"` the unit is less: what one person contributed in one such period. What a person did on two
days is then hidden for each day by itself, and costs the person, over many days, as much as there are days. Of files,
live sources and windows it means the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from wpinq.arguments import FLAG, NAME, NOTHING, described, require, takes
from wpinq.errors import PlanError
from wpinq.exact import Amount, decimal, positive

Length: TypeAlias = str | int
"""Of a period: "1h", or a whole number where the column holds whole numbers."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How the number of records that are kept of each person is chosen; see `aggregates/bound_choice.py`.

    Attributes:
        epsilon: What the choice costs.
        bins: In how many bins answers are, which hold all records together.
        asking: The epsilon of an answer.
        asked: Whether the question chose it, so that its epsilon is part of what the question costs.
    """

    epsilon: Fraction
    bins: int
    asking: Fraction
    asked: bool = False

    @property
    def text(self) -> str:
        """How it is written for people."""
        bins = f"{self.bins} bin{'s' if self.bins > 1 else ''}"
        return f"chosen with epsilon {decimal(self.epsilon)} for {bins} at epsilon {decimal(self.asking)}"


@dataclass(frozen=True, slots=True)
class Unit:
    """Whom the guarantee protects.

    Attributes:
        column: Names the person, where the unit is one; None where it is a record.
        at_most: Records that are kept of each person; None where they share a weight instead, or where all are kept.
        per: A column, and how many records of one person may share a value of it.
        period: A length and the column of the time, where the unit is a person in one such period only.
        zone: Whose clocks periods follow; None for UTC, or for times that have no zone.
        choice: How `at_most` is chosen, and 1 until it is; None where it was given.
        whole: Whether all records of each person are kept, with their weights; a question bounds them.
        auto: The largest number that may be chosen, where each question chooses one when it is charged; 0 for none.
        way: Where records do not name the person, the way to their owner: for each hop the column that is looked up,
            the name of the table, and its column; `column` names the person in the last table.
            Where the unit is in a period, so are owners, by the column of the time in that table.
        owner: The data set of the first of these tables, until the records are opened.

    Raises:
        PlanError: A number is not a whole number above zero, or a bound lacks its column.
    """

    column: str | None = None
    at_most: int | None = None
    per: tuple[str, int] | None = None
    period: tuple[Length, str] | None = None
    zone: str | None = None
    choice: Choice | None = None
    whole: bool = False
    auto: int = 0
    way: tuple[tuple[str, str, str], ...] = ()
    owner: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.column is None and (self.at_most, self.per, self.whole) != (None, None, False):
            raise PlanError("Unit(...): a bound on contributions needs the column that names the person.")
        if self.column is not None and not isinstance(self.column, str):
            raise PlanError(f"users(...): the name of a column is needed; {type(self.column).__name__} was given.")
        if self.at_most is not None:
            _check_number(self.at_most, "at_most")
        if self.whole and self.at_most is not None:
            raise PlanError("Unit(whole=...): either all records of a person are kept, or a number of them.")
        if self.per is not None:
            if self.at_most is None:
                raise PlanError("users(per=...): goes with at_most=, not with shared=True.")
            if not isinstance(self.per, tuple) or len(self.per) != 2 or not isinstance(self.per[0], str):
                raise PlanError("users(per=...): a column and a number are needed, for example per=('page', 3).")
            _check_number(self.per[1], "per")
        if self.period is not None:
            if self.column is None:
                raise PlanError("Unit(period=...): a period of a person needs the column that names the person.")
            _check_period(self.period)
        if self.zone is not None:
            if self.period is None:
                raise PlanError("users(zone=...): goes with period= and at=, the column of a time.")
            require(self.zone, NAME, "users(zone=...)")
            object.__setattr__(self, "zone", None if self.zone == "UTC" else self.zone)

    @property
    def covered(self) -> tuple[object, ...]:
        """What a fingerprint covers of it: with a zone the version of its rules too, which come with Polars."""
        import polars as pl

        period = self.period and (*self.period, *((self.zone, pl.__version__) if self.zone else ()))
        fields = {"column": self.column, "at_most": self.at_most, "per": self.per, "window": period}
        more = [(name, value) for name in ("choice", "whole", "auto", "way") if (value := getattr(self, name))]
        return ("Unit", *fields.items(), *more)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tell units apart."""
        if self.column is None:
            return ()
        return (self.column, *(self.period[1:] if self.period else ()))

    @property
    def declared(self) -> tuple[str, ...]:
        """The columns that say whose a record is, which no question may compute anew."""
        return (*self.columns, *(hop[0] for hop in self.way[:1]))

    @property
    def bound(self) -> Fraction | None:
        """The total weight that one unit may hold, which multiplies the noise; None where nothing bounds it."""
        return None if self.whole else Fraction(self.at_most or 1)

    @property
    def whom(self) -> str:
        """Whom it protects, without a bound: what a ledger holds for ever; each question has a bound of its own."""
        if self.column is None:
            return "record"
        zone = f" in {self.zone}" if self.zone else ""
        window = f" in one window of {self.period[0]} by {self.period[1]}{zone}" if self.period else ""
        if self.way:  # names that could be read in two ways are quoted, since the text is the declaration
            hops = ", ".join("of {1} by {0} = {2}".format(*map(_plain, hop)) for hop in self.way)
            return f"owner ({_plain(str(self.column))} {hops}){window}"
        return f"user ({self.column}){window}"

    @property
    def bounded(self) -> str:
        """How much is looked at of each; empty where the unit is a record."""
        if self.column is None:
            return ""
        if self.auto:
            return "at most as many records as are chosen when it is charged"
        if self.whole:
            return "all records"
        if self.at_most is None:
            return "a weight of 1 shared by its records"
        if self.choice is not None:
            return f"at most as many records as were {self.choice.text}"
        most = f", at most {self.per[1]} per {self.per[0]}" if self.per else ""
        return f"at most {self.at_most} records{most}"

    @property
    def text(self) -> str:
        """Both, for `explain` and answers."""
        return f"{self.whom}, {self.bounded}" if self.bounded else self.whom

    @property
    def protects(self) -> str:
        """Whom an answer protects, for people: it is printed with every answer."""
        if self.column is None:
            return "one record"
        who = f"one {self.column}{_spoken(self)}{_led(self)}"
        if self.whole:
            return f"{who}, all records of each"
        if self.at_most is None:
            return f"{who}, whose records share a weight of 1"
        return f"{who}, at most {self.at_most} record{'s' if self.at_most > 1 else ''} each"

    @property
    def bias(self) -> str:
        """What bounding a person's records keeps out of answers, as a clause; empty where the unit is a record."""
        if self.column is None or self.whole:
            return ""
        who = f"one {self.column}{_spoken(self)}"
        if self.at_most is None:
            return f"the records of {who} share a weight of 1, so it is no count of records"
        most = f", and beyond {self.per[1]} of one {self.per[0]}," if self.per else ""
        chosen = f" ({self.at_most} was {self.choice.text})" if self.choice else ""
        return f"records beyond {self.at_most} of {who}{most} are not in it{chosen}"

    def __str__(self) -> str:
        return self.text


@takes(column=NAME | NOTHING, shared=FLAG)
def users(
    column: str | None = None, at_most: int | str | None = None, *, per: tuple[str, int] | None = None,
    shared: bool = False, period: Length | None = None, at: str | None = None, zone: str | None = None,
    epsilon: Amount | None = None, bins: int = 1, asking: Amount = 1,
    through: tuple[str, Any] | tuple[str, Any, str] | None = None,
) -> Unit:  # fmt: skip
    """Protect people: everything that one value of a column contributed is one unit.

    Records are bounded where they enter, before any step that combines records (`protect(where=, derive=)` comes
    before). So it does not matter what a dataflow does to the column later: a person's records are already few, and
    every step is stable. A null in the column is a person
    like any other, so records of people who are not known count as those of one person.

    Without `at_most` and `shared` all records are kept. How far a person moves is known then only of what bounds it:
    `at_most(n)` right after `protect`, `distinct` on the column alone, a whole group by it, `limit`; the rest is
    refused.

    Args:
        column: Names the person in each record.
        at_most: How many records of each person are kept, as a uniform sample that no other record influences. "auto"
            lets `protect` choose it from the records, privately: it costs `epsilon`, once for each version of them, and
            every answer tells what was chosen. It works for what is read as a whole; a stream needs a number.
        per: A column and a number: of one person's records with the same value of the column, no more are kept.
        shared: Keep all records instead, and let each person's records share a weight of 1.
        period: A length, "1h", "1d", "1w" or "1mo", as `window` takes it: protect a person in each such period only,
            not in all of them together. The bound holds in each such period. Windows of a live source then cost as
            one, where they are as long or made of whole ones; without it each of them is charged.
        at: The column of the time, with `period`.
        zone: Whose clocks the periods follow, such as "Europe/Berlin", where times have a zone; by default UTC.
        epsilon: What the choice of "auto" costs a person. A tenth of what is asked is enough where there are hundreds
            of bins; for few bins the best bound depends on few heavy people, whom little epsilon hides.
        bins: What is asked then: in how many bins, that hold all records together. The noise of all of them is weighed
            against the records that are left out, so more bins are a smaller bound.
        asking: At which epsilon.
        through: Instead of `column`, where records do not name the person: a column, and the protected table that it is
            looked up in, ("order_id", orders), with the name of the column there where that is another. Each record
            counts once for every owner, in a column of the owner's name, and not where it has none. Both share a
            ledger. That somebody owns a record is protected, and not what it says of others who own it too. Where that
            table's people are protected in periods, so are owners: each record counts once for every owner in every
            period of an owner row of its key, in a column of that time more, which holds the first one of the period.

    Raises:
        PlanError: Both of `at_most` and `shared` are given, `per` without `at_most`, `period` or `at` is alone, or a
            number is below 1.

    >>> from wpinq import users
    >>> str(users("user", at_most=20, per=("page", 3)))
    'user (user), at most 20 records, at most 3 per page'
    >>> str(users("user", at_most=5, period="1mo", at="time"))
    'user (user) in one window of 1mo by time, at most 5 records'
    """
    if shared and at_most is not None:
        raise PlanError("users(...): give either at_most=, a number of records to keep of each, or shared=True.")
    if per is not None and at_most is None:
        raise PlanError("users(per=...): goes with at_most=, a number of records to keep of each.")
    way: tuple[tuple[str, str, str], ...] = ()
    owner = None
    if through is not None:
        if column is not None or period is not None:
            raise PlanError("users(through=...): goes without the name of a column and without period=, which is that"
                            " of the table of owners.")  # fmt: skip
        column, way, owner = _owner(through)
        zone = owner.unit.zone
    if column is None:
        raise PlanError("users(...): name the column that tells people apart, for example users('user', at_most=20).")
    if (period is None) != (at is None):
        raise PlanError("users(period=...): a length and a column of the time go together: period='1d', at='time'.")
    choice = _choice(at_most, epsilon, bins, asking)
    if choice is not None and per is not None:
        raise PlanError("users(per=...): goes with a number, not with at_most='auto', which is chosen without it.")
    most = 1 if choice is not None else at_most
    if isinstance(most, str):
        raise PlanError(f"users(at_most={described(most)}): takes a whole number of records above zero, or 'auto'.")
    window = None if period is None or at is None else (period, at)
    return Unit(column, most, per, window if owner is None else owner.unit.period, zone, choice,
                most is None and not shared, 0, way, owner)  # fmt: skip


def _choice(at_most: object, epsilon: Amount | None, bins: int, asking: Amount) -> Choice | None:
    """How a bound is to be chosen, if it is."""
    if not (isinstance(at_most, str) and at_most == "auto"):
        if epsilon is not None:
            raise PlanError("users(epsilon=...): is what a choice costs, and goes with at_most='auto'.")
        return None
    if epsilon is None:
        raise PlanError("users(at_most='auto'): give epsilon=, what the choice costs, for example epsilon=0.1.")
    _check_number(bins, "bins")
    return Choice(positive(epsilon, "users(epsilon=...)"), bins, positive(asking, "users(asking=...)"))


WORDS = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week", "mo": "month"}


def _spoken(unit: Unit) -> str:
    """In which period, for people."""
    if unit.period is None:
        return ""
    length, at = unit.period
    parts = re.fullmatch(r"([0-9]+)([a-z]+)", str(length))
    if parts is None or parts[2] not in WORDS:
        return f" in one period of {length} by {at}"
    word = f"one {WORDS[parts[2]]}" if parts[1] == "1" else f"{parts[1]} {WORDS[parts[2]]}s"
    return f" in {word} by {at} ({unit.zone or 'UTC where it has a zone'})"


def _led(unit: Unit) -> str:
    """By which way records are a person's, for people; what others own too is theirs as well."""
    if not unit.way:
        return ""
    ways = ", ".join(f"{owner} in {table}" for owner, table, _ in unit.way)
    return f" as owner of records, found by {ways} (that they own them, and not what the records say)"


def _owner(through: object) -> tuple[str, tuple[tuple[str, str, str], ...], Any]:
    """The column that names the owner, the way to it, and the data set of the table that it leads to first."""
    call = "users(through=...)"
    parts = through if isinstance(through, tuple) else ()
    names = (*parts[:1], *parts[2:])
    if len(parts) not in {2, 3} or not all(isinstance(name, str) for name in names):
        raise PlanError(f"{call}: takes a column and a table of people, ('order_id', orders), and where it has another"
                        " name there a third: ('l_orderkey', orders, 'o_orderkey').")  # fmt: skip
    data = getattr(getattr(parts[1], "_node", None), "bounds_units", None)  # of a `Builder`, which knows units
    if data is None or data.live:
        raise PlanError(f"{call}: the table is a collection as protect(..., unit=users(...)) gives it.")
    return str(data.unit.column), ((names[0], data.name, names[-1]), *data.unit.way), data


def _plain(name: str) -> str:
    return name if name.isidentifier() else repr(name)


def _check_period(period: object) -> None:
    if isinstance(period, tuple) and len(period) == 2:
        length, at = period
        if isinstance(length, (str, int)) and not isinstance(length, bool) and isinstance(at, str):
            return
    raise PlanError("users(period=...): a length and a column are needed, for example period='1d', at='time'.")


def _check_number(number: object, what: str) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < 2**31:
        raise PlanError(f"users({what}=...): {described(number)} is not a whole number of records above zero.")
