"""How it is known that a source still holds the records that it was protected with: by being read, unless it says."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl
import pytest

import wpinq
from wpinq import protection
from wpinq.core.records.log import Closed, Log
from wpinq.core.records.reader import ObjectReader, Steady
from wpinq.core.records.schema import Kind, Schema
from wpinq.core.runs.people_index import Kept
from wpinq.core.runs.timeline import Timeline
from wpinq.errors import ChangedError
from wpinq.sources.tables.tuples import TupleReader


@dataclass
class Anew(ObjectReader):
    """A new kind of reader, whose records are computed anew whenever they are read; it says nothing about that."""

    rows: list[str]
    name: str = "anew"
    schema: Schema = field(default_factory=lambda: Schema.of(k=Kind.TEXT))

    def batches(self, columns, *, share=(0, 1), progress=None):
        if not share[0]:
            yield pl.DataFrame({"k": self.rows}).select(columns)


def test_a_reader_that_says_nothing_is_compared_whenever_it_is_read(monkeypatch):
    """Old questions would meet changed records, and be refused only where the change moves what they ask for."""
    reader = Anew(["a", "b"])
    monkeypatch.setattr(protection, "open_source", lambda *_, **__: reader)
    views = wpinq.protect(reader, budget=9)
    views.map("k").measure(epsilon=1).observe("a")
    reader.rows = ["a", "c"]
    with pytest.raises(ChangedError, match="holds other records"):
        views.filter("k = 'a'").measure(epsilon=1).observe("a")


def test_only_what_this_process_holds_says_that_nobody_can_change_it():
    # a process that is handed its records reads none: SentReader, where it is loaded
    held = {one.__name__ for one in _below(ObjectReader) if one.__module__.startswith("wpinq.") and _steady(one)}
    assert held - {"SentReader"} == {
        "HeldReader",
        *(one.__name__ for one in (TupleReader, Log, Timeline, Closed, Kept)),
    }


def _below(kind):
    for one in kind.__subclasses__():
        yield from (one, *_below(one))


def _steady(kind):
    """Whether a reader of this kind is steady whatever it reads."""
    try:
        return kind.steady.fget(object.__new__(kind)) is Steady.MEMORY
    except AttributeError:  # it depends on what it reads
        return False
