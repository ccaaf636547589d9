"""Partition: the records of each of some declared keys, as collections of their own."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import polars as pl

from wpinq.errors import BinError, PlanError
from wpinq.operators.keys import keyed
from wpinq.plan.builder import Builder, C
from wpinq.plan.node import Record, Shape, Stateless, Unary, Weighted, fingerprints
from wpinq.records.batch import Batch
from wpinq.records.kinds import read, stored, write
from wpinq.records.schema import Column, Schema
from wpinq.records.values import decode, encode


def partition(self: Builder[C], key: object, parts: Iterable[Any]) -> dict[Any, C]:
    """Split a collection by a key into parts that are declared, never found in the data.

    Weights:    out[p][x] = in[x] where key(x) = p, else 0
    Stability:  1 for each part, and 1 for all of them together, because a record of the collection is in one part at
                the most: of the measurements of all parts only the part that costs the largest sum is charged. Records
                of other keys are in no part. That holds for the parts of one collection: the live source's at another
                epoch is another one, unless every step up to here is linear for each record and records are protected;
                then a record moves the same part at every epoch. Otherwise parts that are measured at two epochs are
                charged both (`wpinq.operators.parallel`).
    Source:     McSherry, PINQ, SIGMOD 2009 ("Partition").

    Args:
        key: A column, several columns, or a function of a record as in `map`.
        parts: The keys: values, or tuples of values where the key has several columns. Of numbers that one double
            holds, such as 0.1 and 1/10 + 10^-40, a column of doubles has one part.

    Returns:
        For each part its collection, with the columns of this one.

    Raises:
        PlanError: There is no such column, a part stands twice, or the key could never be such a part.

    >>> from wpinq.testing import evaluate, protected
    >>> days = protected(day="text", page="text").partition("day", ["Mon", "Tue"])
    >>> evaluate(days["Mon"], [("Mon", "a"), ("Tue", "a"), ("Wed", "a")])
    {('Mon', 'a'): 1}
    """
    node, names = keyed(self._node, key, "partition(key=...)")
    columns = tuple(node.schema[name] for name in names)
    if not isinstance(parts, Iterable):
        raise PlanError(f"partition(parts=...): {type(parts).__name__} is no list of parts; write ['Mon', 'Tue'], say.")
    listed = list(parts)
    written = [_stored(part if len(names) > 1 else (part,), columns) for part in listed]
    texts = [_text(values, columns) for values in written]
    if len(set(texts)) != len(texts):
        raise PlanError("partition(parts=...): a part stands twice; parts that are equal are one part.")
    digest = fingerprints(node)[node]
    group = f"partition {digest.hex() if digest else os.urandom(32).hex()} by {names!r}"
    own = self._node.schema.names
    return {
        part: self._then(Part(node, names, values, (group, text), own))
        for part, values, text in zip(listed, written, texts, strict=True)
    }


def _stored(part: Any, columns: tuple[Column, ...]) -> tuple[Any, ...]:
    try:
        return tuple(write(value, column.kind) for value, column in zip(part, columns, strict=True))
    except BinError:
        raise
    except Exception:  # noqa: BLE001  the text of a failed conversion is of no use
        shown = ", ".join(f"{column.name}: {column.kind.value}" for column in columns)
        raise PlanError(f"partition(parts=...): a part does not fit the key ({shown}).") from None


def _text(values: tuple[Any, ...], columns: tuple[Column, ...]) -> str:
    """How a part is told from others: by what its column stores, since that is what records are compared with."""
    held = tuple(decode(encode(read(value, column.kind))) for value, column in zip(values, columns, strict=True))
    return repr(held if len(held) > 1 else held[0])


@dataclass(frozen=True, eq=False)
class Part(Unary):
    """Plan node of one part of a partition: `own` are the columns of the collection before its key was made."""

    keys: tuple[str, ...]
    values: tuple[Any, ...]
    place: tuple[str, str]
    own: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """The columns of the collection; those of the key are written out."""
        return self.source.schema.expanded(self.keys).select(self.own)

    @property
    def part(self) -> tuple[str, str] | None:
        """The partition and the part."""
        return self.place

    @property
    def title(self) -> str:
        """How `explain` shows it."""
        return f"partition({', '.join(self.keys)})[{self.place[1]}]"

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """What is needed later and the key."""
        return (needed | frozenset(self.keys),)

    def lower(self, needed: frozenset[str]) -> Shape:
        """A mask."""
        return Stateless(self._apply)

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Compare each record's key."""
        names = self.source.schema.names
        columns = [self.source.schema[name] for name in self.keys]
        places = [names.index(name) for name in self.keys]
        own = [names.index(name) for name in self.own]
        out: dict[Record, Fraction] = {}
        for record, weight in inputs[0].items():
            key = tuple(write(record[place], column.kind) for place, column in zip(places, columns, strict=True))
            if all(_same(one, two) for one, two in zip(key, self.values, strict=True)):
                out[tuple(record[place] for place in own)] = weight
        return out

    def _apply(self, batch: Batch) -> Batch:
        batch = batch.expand(name for name in self.keys if batch.schema[name].ranged)
        pairs = zip(self.keys, self.values, strict=True)
        tests = [stored(batch.schema[name]).eq_missing(pl.lit(value)) for name, value in pairs]
        kept = [name for name in batch.schema.names if name in self.own]
        return Batch(batch.frame.filter(pl.all_horizontal(tests)), batch.schema).select(kept)


def _same(one: Any, two: Any) -> bool:
    return encode(one) == encode(two)
