"""Partition: split a collection into one collection for each declared key."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import polars as pl

from wpinq.core.operators.keys import keyed
from wpinq.core.plan.forms import Where
from wpinq.core.plan.node import Builder, C, Record, fingerprints
from wpinq.core.records.batch import Batch
from wpinq.core.records.kinds import read, stored, write
from wpinq.core.records.schema import Column, Schema
from wpinq.core.records.values import decode, encode
from wpinq.errors import BinError, PlanError


def partition(self: Builder[C], key: object, parts: Iterable[Any]) -> dict[Any, C]:
    """Split a collection by a key into parts that are declared, never found in the data.

    Weights:    `out[p][x] = in[x]` where key(x) = p, else 0
    Stability:  1 for each part, and 1 for all of them together, because a record is in at most one part: only the part
                whose measurements cost most is charged (parallel composition). Records of other keys are in no part.
                Where a person moves a part by less than the bound (its people by 1), the noise is for that, and as many
                parts are charged as the person can move so, the costliest ones.
                This holds for the parts of one collection. A live source at another epoch is another collection, unless
                every step up to here is linear for each record and the unit is a record; then a record changes the same
                part at every epoch. Otherwise the costs of parts at two epochs are added up
                (`wpinq.core.operators.window`).
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
    names_kept = self._node.schema.names
    return {
        part: self._then(Part(node, names, values, (group, text), names_kept))
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
    """The name of a part: the stored values of its key, since records are compared with these."""
    held = tuple(decode(encode(read(value, column.kind))) for value, column in zip(values, columns, strict=True))
    return repr(held if len(held) > 1 else held[0])


@dataclass(frozen=True, eq=False)
class Part(Where):
    """Plan node of one part of a partition: `own` are the columns of the collection before its key was made."""

    keys: tuple[str, ...]
    values: tuple[Any, ...]
    place: tuple[str, str]
    own: tuple[str, ...]

    apart = True

    @property
    def reads(self) -> tuple[str, ...]:
        return self.keys

    @cached_property
    def schema(self) -> Schema:
        return super().schema.select(self.own)

    @property
    def part(self) -> tuple[str, str] | None:
        return self.place

    @property
    def title(self) -> str:
        return f"partition({', '.join(self.keys)})[{self.place[1]}]"

    def accepts(self, record: Record) -> bool:
        schema = self.source.schema
        values = dict(zip(schema.names, record, strict=True))
        key = [write(values[name], schema[name].kind) for name in self.keys]
        return all(_same(stored, value) for stored, value in zip(key, self.values, strict=True))

    def image(self, record: Record) -> Iterable[tuple[Record, Fraction]]:
        output = tuple(value for name, value in zip(self.source.schema.names, record, strict=True) if name in self.own)
        return [(output, weight) for _, weight in super().image(record)]

    def mask(self, frame: pl.DataFrame) -> pl.Expr:
        pairs = zip(self.keys, self.values, strict=True)
        return pl.all_horizontal(stored(self.source.schema[name]).eq_missing(pl.lit(value)) for name, value in pairs)

    def apply(self, batch: Batch) -> Batch:
        return super().apply(batch).select(self.own)


def _same(left: Any, right: Any) -> bool:
    return encode(left) == encode(right)
