"""Records of a table that names no person, each once for every person who owns it: the way to the owner.

`users(through=("order_id", orders))`: a lineitem has an order, and an order has a customer. What is counted are pairs
of a row and an owner:

    pairs(T, O) = {(row, owner): row of T, and (key of row, owner) in P(O)},    P(O) = {(key, owner) of rows of O}

A row keeps its multiplicity; owner rows that agree in key and owner count once; a null key owns nothing, and a row
without an owner is left out. Two keys are equal where their values are.

*Why one person more adds pairs of their own, and changes nobody else's.* Neighbours differ in the rows that hold one
person p in the owner table (and in other tables that name people); the rows of T stay. P(O) is a set of which each
element says its owner, so with the rows of p it has elements of p more and all others as before, whatever else O holds:
P(O + p) = P(O) + {(k, p)}. So the pairs of every other person are the same, bit for bit, and those of p come to them.
That is what a table that names the person does, so all that holds of such a table holds of the pairs. The owner table
may be such pairs itself: then P(O) is a set in the same way, by induction.

**Owners in periods.** Where people are protected in one period each, an owner is a person in a period: an owner row
owns its key in the period of its time, and one without a time in a period of its own. Pairs have that time as a column
more, of several owner rows of one key, person and period the first time:

    P(O) = {(key, person, period number) of rows of O},    time(k, p, n) = min of the times of these rows

Read "person in a period" for "person" above. The time that an element carries follows from rows of that one unit, so it
is the same whatever other units are in O, and it lies in that unit's period, so the pair is that unit's (`Ways.v` in
tests/proofs). A row whose owner rows are of two months is a record in each of them, by both times. The time of the row
itself says nothing of whose it is: were it the period's, a person who owns a row by an order of one month would be
protected in another.

What goes wrong otherwise: a row of which one owner is chosen, or that is left out where it has two, is another
person's loss when p comes; rows without an owner, kept as those of nobody, are nobody's loss when p comes; the first
time of all periods, or of all owners of a key, moves when the rows of another unit come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

import polars as pl

from wpinq.core.records import canonical
from wpinq.core.records.reader import Reader, Steady, passed
from wpinq.core.records.schema import Column, Kind, Schema, polars_type
from wpinq.errors import PlanError

KEY, OWNER, AT, NUMBER = "\0key", "\0owner", "\0at", "\0number"


class Numbered(Protocol):
    """Periods, of which each time is in one (`core/operators/periods.py`)."""

    @property
    def covered(self) -> object:
        """What tells them from others."""

    def numbers(self, name: str) -> pl.Expr:
        """The number of the period of each time in a column."""


@dataclass(frozen=True, slots=True)
class Owned:
    """Pairs of the rows of a table and their owners.

    Attributes:
        rows: The table.
        owners: The table that names the person of each key.
        key: The column of the rows that is looked up.
        owner_key: The column of the owner table that it is looked up in.
        owner: The column of the owner table that names the person, and the name of the column that pairs have more.
        at: The column of the owner table that says when, where owners are people in periods; pairs have it, too.
        span: These periods.
    """

    rows: Reader
    owners: Reader
    key: str
    owner_key: str
    owner: str
    at: str | None = None
    span: Numbered | None = None

    name, title, path, total_bytes = passed("name", "title", "path", "total_bytes", by="rows")

    @property
    def schema(self) -> Schema:
        """The columns of a row, and the owner's."""
        added = (Column(name, self.owners.schema[name].kind) for name in self.added)
        return Schema((*self.rows.schema.columns, *added))

    @property
    def added(self) -> Mapping[str, str]:
        """The columns that pairs have more, and what they are called until the end."""
        return {self.owner: OWNER} if self.at is None else {self.owner: OWNER, self.at: AT}

    @property
    def way(self) -> tuple[object, ...]:
        """The ways in which both are read, and the columns that meet."""
        window = () if self.span is None else (self.at, self.span.covered)
        return (type(self).__name__, self.rows.way, self.owners.way, self.key, self.owner_key, self.owner, *window)

    @property
    def steady(self) -> Steady:
        """What is known of both."""
        both = {self.rows.steady, self.owners.steady}
        return next(state for state in (Steady.UNKNOWN, Steady.FILES, Steady.MEMORY) if state in both)

    @property
    def lasting(self) -> bool:
        """Whether it outlives this process without a file."""
        return bool(getattr(self.rows, "lasting", False))

    def version(self) -> str | None:
        """Those of both; None where either has none."""
        both = self.rows.version(), self.owners.version()
        return None if None in both else "\n".join(map(str, both))

    def check(self) -> None:
        """Refuse files of either that are no longer as they were opened."""
        self.rows.check()
        self.owners.check()

    def state(self) -> str | None:
        """Those of both; None where either has none."""
        both = self.rows.state(), self.owners.state()
        return None if None in both else "\n".join(map(str, both))

    def content(self, key: bytes = b"") -> bytes | None:
        """A digest of what both hold; None where what is read must tell."""
        both = self.rows.content(key), self.owners.content(key)
        if both[0] is None or both[1] is None:
            return None
        return blake2b(both[0] + both[1], digest_size=32).digest()

    def prove(self, share: tuple[int, int] = (0, 1)) -> None:
        """Both."""
        self.rows.prove(share)
        self.owners.prove(share)

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of pairs; a share is that of a share of the rows. The keys and owners are held in memory."""
        owners, more = self.pairs(), self.added
        read = tuple(dict.fromkeys([*(name for name in columns if name not in more), self.key]))
        schema = self.rows.schema.select(read)
        for frame in self.rows.batches(read, share=share, progress=progress):
            held = canonical.frame(frame, schema).with_columns(pl.col(self.key).alias(KEY))
            yield owned(held, owners).rename({name: inner for inner, name in more.items()}).select(columns)

    def pairs(self) -> pl.DataFrame:
        """P(O): each key and each of its owners, once, and in each period with the first time."""
        names = {KEY: self.owner_key, **{name: column for column, name in self.added.items()}}
        read = tuple(dict.fromkeys(names.values()))
        schema = self.owners.schema.select(read)
        frames = [pl.DataFrame(schema={name: _type(self.owners, column) for name, column in names.items()})]
        for frame in self.owners.batches(read):
            held = canonical.frame(frame, schema)
            few = held.select(pl.col(column).alias(name) for name, column in names.items())
            frames.append(once(few.drop_nulls(KEY), self.span))
        return once(pl.concat(frames), self.span)

    def without_owner(self) -> tuple[int, int]:
        """How many rows there are, and how many have no owner: for their curator alone."""
        keys, whole, left = self.pairs().select(KEY).unique(), 0, 0
        for frame in self.rows.batches([self.key]):
            held = canonical.frame(frame, self.rows.schema.select([self.key])).select(pl.col(self.key).alias(KEY))
            whole, left = whole + len(held), left + len(held.join(keys, on=KEY, how="anti"))
        return whole, left


def once(owners: pl.DataFrame, span: Numbered | None) -> pl.DataFrame:
    """Each key and owner once; with periods once in each, with the first time of these rows."""
    if span is None:
        return owners.unique()
    unit = owners.with_columns(span.numbers(AT).alias(NUMBER)).group_by(KEY, OWNER, NUMBER)
    return unit.agg(pl.col(AT).min()).drop(NUMBER)


def owned(rows: pl.DataFrame, owners: pl.DataFrame) -> pl.DataFrame:
    """Each row with each owner of its key; a key that is null has none."""
    return rows.join(owners, on=KEY, how="inner", nulls_equal=False)


def through(
    rows: Reader, owners: Reader, hop: tuple[str, str, str], owner: str, period: tuple[str, Numbered] | None = None
) -> Owned:
    """The pairs of a table and of the owners that it is led to.

    Args:
        rows: The table.
        owners: The table that names people.
        hop: The column that is looked up, the name of the owner table, and the column there.
        owner: The column there that names the person.
        period: The column there that says when, and the periods, where people are protected in one each.

    Raises:
        PlanError: A column is not there, they are of two types, or the table has a column of the name of the owner's.
    """
    key, table, owner_key = hop
    call = "users(through=...)"
    for reader, name, where in ((rows, key, rows.name), (owners, owner_key, table)):
        if name not in reader.schema:
            raise PlanError(f"{call}: {where!r} has no column {name!r}; there are {reader.schema.listed}.")
    kinds = rows.schema[key].kind, owners.schema[owner_key].kind
    if kinds[0] is not kinds[1] or kinds[0] is Kind.ANY:
        raise PlanError(
            f"{call}: {key} is {kinds[0].value} and {table}.{owner_key} is {kinds[1].value}; declare one type."
        )
    if owner in rows.schema:
        raise PlanError(
            f"{call}: {rows.name!r} has a column {owner!r} of its own, which is that of the owner in {table!r}. Name it"
            " otherwise, by columns=; or where it names the person of each record, no way is needed: users(COLUMN)."
        )
    at, span = period or (None, None)
    if at is not None and at in rows.schema:
        raise PlanError(
            f"{call}: {rows.name!r} has a column {at!r} of its own, which is that of the time in {table!r} by which"
            " people are protected. Name it otherwise, by columns=."
        )
    return Owned(rows, owners, key, owner_key, owner, at, span)


def read_way(text: str, call: str) -> tuple[str, str, str]:
    """The column that is looked up, the table, and the column there, as people write a way.

    Raises:
        PlanError: It is something else.

    >>> read_way("l_orderkey = orders.o_orderkey", "--through"), read_way("orders.order_id", "--through")
    (('l_orderkey', 'orders', 'o_orderkey'), ('order_id', 'orders', 'order_id'))
    """
    left, _, right = text.rpartition("=")
    table, dot, column = (part.strip() for part in right.partition("."))
    if not (table and dot and column) or ("=" in text and not left.strip()):
        raise PlanError(
            f"{call} {text}: write COLUMN=TABLE.COLUMN, for example l_orderkey=orders.o_orderkey, or TABLE.COLUMN "
            "where both have one name."
        )
    return left.strip() or column, table, column


def _type(reader: Reader, name: str) -> pl.DataType:
    return polars_type(reader.schema[name].kind)
