"""Bugs that once were there, put back into the code of today, and the case that finds each of them.

A plant patches names, and each of them must be used while its case runs: a name that is gone, or that nothing calls any
more, is told. Where a place moves, move the plant, and find its case again with `hunt`.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any
from unittest.mock import patch

import polars as pl
from attacks.fuzz.grow import grow
from attacks.fuzz.judge import WAYS, judge
from attacks.fuzz.plants_versions import content_refuses_names, equal_content

from wpinq.engines import sharing
from wpinq.functions import plain
from wpinq.functions.covering import covered
from wpinq.functions.polars import expressions
from wpinq.ledger import charge_all, distinct
from wpinq.measurements import charged, publish
from wpinq.measurements import timeline as versions
from wpinq.measurements.sensitivity import UnitSensitivity, unit_sensitivities
from wpinq.plan import node as plan
from wpinq.plan.dataset import DataSet
from wpinq.plan.node import Node
from wpinq.plan.shapes import Merge
from wpinq.records import canonical, identity
from wpinq.records.fields import encode
from wpinq.records.schema import Kind
from wpinq.records.weights import WeightType
from wpinq.sources import columns
from wpinq.state.bykey import ByKey

partition, select = (import_module(f"wpinq.{name}") for name in ("operators.partition", "measurements.select"))
"""Modules whose packages have a function of the same name."""


@dataclass(frozen=True)
class Plant:
    """An old bug.

    Attributes:
        what: In a few words.
        patches: Put it back.
        theme: Of the case that finds it.
        seed: Of the case that finds it; where the generator has moved, another one does.
        checks: The letters of the checks that do: A movement or answer, B loss or delta, C definitions, D control flow,
            E identities of questions, F batches, G charged and no answer, H noise that is used twice.
    """

    what: str
    patches: Callable[[], list[Any]]
    theme: str
    seed: int
    checks: str

    @contextmanager
    def planted(self) -> Iterator[set[str]]:
        """Put it back; gives the names that are patched and that nothing has used yet."""
        unused: set[str] = set()
        with ExitStack() as stack:
            for one in self.patches():
                if isinstance(name := getattr(one, "attribute", None), str):
                    unused.add(name)
                    one.new = watched(one.new, partial(unused.discard, name))
                    if not callable(one.new) and not isinstance(one.new, property | classmethod):
                        unused.difference_update(
                            {name} & names_in(one.getter().__file__)
                        )  # a constant: some code names it
                stack.enter_context(one)
            yield unused


def watched(new: Any, use: Callable[[], None]) -> Any:
    """What stands in for a name, and tells that it is used."""
    if isinstance(new, property):
        return property(watched(new.fget, use))
    if isinstance(new, classmethod):
        return classmethod(watched(new.__func__, use))
    if not callable(new):
        return new

    def call(*args: Any, **options: Any) -> Any:
        use()
        return new(*args, **options)

    return call


def names_in(path: str) -> set[str]:
    """The names that the functions of a module read."""
    found, codes = set[str](), [compile(Path(path).read_text(), path, "exec")]
    while codes:
        code = codes.pop()
        inner = [one for one in code.co_consts if isinstance(one, CodeType)]
        found |= {name for one in inner for name in one.co_names}
        codes += inner
    return found


def nan() -> list[Any]:
    """Numbers that are no number reach the joins of Polars, which match them or not."""
    real = canonical.column
    return [
        patch.object(canonical, "column", lambda series, kind: series if kind is Kind.FLOAT else real(series, kind)),
        patch.object(canonical, "bits", lambda found: found),
        patch.object(canonical, "numbers", lambda found, columns: found),
    ]


def null() -> list[Any]:
    """None is null in a source and bytes where a function made it."""
    real = vars(plain.Plain)["_written"].func

    def written(self: plain.Plain) -> Callable[[Any], tuple[Any, ...]]:
        write, kinds = real(self), [column.kind for column in self.output]
        return lambda result: tuple(
            b"n" if value is None and kind is Kind.ANY else value
            for value, kind in zip(write(result), kinds, strict=True)
        )

    return [patch.object(plain.Plain, "_written", property(written)), patch.object(identity, "NULL", b"N")]


def read_columns() -> list[Any]:
    """The sides of a sum have what other steps read of them, and a keyed step takes what comes."""

    def absorb(self: ByKey, port: int, batch: Any) -> None:
        self._pending[port].append(batch.expand(batch.schema.ranged).consolidate())

    return [
        patch.object(Merge, "kernel", lambda self, port, batch: batch.scale(self.factors[port])),
        patch.object(ByKey, "absorb", absorb),
    ]


def dates() -> list[Any]:
    """Times beyond Python's reach every step."""
    wide = dict.fromkeys(canonical.BOUNDS, (-(2**63), 2**63 - 1))
    return [patch.dict(canonical.BOUNDS, wide)]


def float_parts() -> list[Any]:
    """Parts are told apart by the numbers as they were given."""
    count = itertools.count()
    return [patch.object(partition, "_text", lambda *_: f"part {next(count)}")]


def shared_delta() -> list[Any]:
    """A threshold speaks of one data set of a person, not of all that a ledger holds."""

    def largest(node: Node) -> list[UnitSensitivity]:
        return [
            UnitSensitivity(-(-one.l1 // one.data_sets), -(-one.linf // one.data_sets), 1)
            for one in unit_sensitivities(node)
        ]

    return [patch.object(publish, "unit_sensitivities", largest), patch.object(select, "unit_sensitivities", largest)]


def shave_names() -> list[Any]:
    """The names of new columns are no part of what a step means."""

    def digest(node: Node, found: dict[Node, bytes | None], **_: Any) -> bytes | None:
        mine = {name: value for name, value in node.meaning.items() if name != "name"}
        what = (type(node).__qualname__, tuple(mine.items()), node.inputs, node.resolution)
        try:
            code = covered(what, lambda one: found.get(one) if isinstance(one, Node) else None)
        except plan.Uncovered:
            return None
        return blake2b(encode(code), digest_size=32).digest()

    return [patch.object(plan, "_digest", digest)]


def json_literals() -> list[Any]:
    """Expressions are known by their JSON, where all numbers that are not finite are null."""
    return [
        patch.object(expressions, "_meaning", lambda part: json.dumps(json.loads(part.meta.serialize(format="json"))))
    ]


def same_version() -> list[Any]:
    """Data sets are known by name and version alone."""

    def alike(roots: Any) -> dict[Node, Node]:
        first: dict[object, Node] = {}
        return {node: first.setdefault(digest or id(node), node) for node, digest in plan.fingerprints(*roots).items()}

    return [
        patch.object(sharing, "representatives", alike),
        patch.object(DataSet, "covered", property(lambda self: (self.name, self.version, self.reader.schema))),
    ]


def odd_names() -> list[Any]:
    """A column without a name gets another one on its way, and names that stand for other columns are taken."""
    users = [
        module for name, module in sys.modules.items() if name.startswith("wpinq.") and hasattr(module, "in_columns")
    ]
    return [
        patch.object(columns, "wrong_name", lambda name: None),
        *(patch.object(module, "in_columns", lambda found: pl.DataFrame(list(found))) for module in users),
    ]


def narrow() -> list[Any]:
    """Weights are held as the resolution says, however often a plan multiplies them."""
    return [
        patch.object(WeightType, "of", classmethod(lambda cls, resolution, *_: cls(resolution, resolution > 2**20)))
    ]


def parts_epochs() -> list[Any]:
    """Parts at several epochs cost as one, whatever lies below them."""
    return [patch.object(versions, "linear", lambda node: True)]


def windows_epochs() -> list[Any]:
    """Windows that were closed at several epochs cost as one, whatever lies below them."""
    return [patch.object(versions, "parallel", lambda window: True)]


def one_by_one() -> list[Any]:
    """What a query charges is charged one by one, until it does not fit."""

    def pay(quotes: Any) -> None:
        for quote in quotes:
            charge_all(distinct(quote.charges))

    return [patch.object(charged, "pay", pay)]


PLANTS = {
    "overflow": Plant("sums of weights wrap at 2^63", narrow, "gain", 26, "AC"),
    "weights": Plant("sums of a column of weights wrap at 2^63", narrow, "weights", 19, "AC"),
    "parts_epochs": Plant("parts of a step where records meet, at several epochs", parts_epochs, "index", 29, "B"),
    "windows_epochs": Plant(
        "windows of a step where records meet, at several epochs", windows_epochs, "index", 28, "B"
    ),
    "sql_atomic": Plant("a query that does not fit is charged in part", one_by_one, "unfingerprinted", 21, "G"),
    "nan": Plant("one record decides whether all records with NaN count", nan, "numbers", 77, "A"),
    "null_any": Plant("two nulls", null, "nulls", 2, "C"),
    "columns_differ": Plant("a run fails because of one record", read_columns, "reader", 11, "GD"),
    "dates": Plant("a far date fails the run", dates, "dates", 0, "GD"),
    "float_parts": Plant("parts that hold the same records are charged as one", float_parts, "numbers", 8, "B"),
    "shared_delta": Plant("a delta for half a person", shared_delta, "person", 23, "B"),
    "shave_names": Plant("two plans are one question", shave_names, "names", 3, "CE"),
    "json_literals": Plant("infinity and NaN are one literal", json_literals, "literals", 10, "CE"),
    "same_version": Plant("two data sets are one step", same_version, "twins", 1, "C"),
    "equal_content": Plant("equal content is one version, free under two names", equal_content, "versions", 0, "D"),
    "names": Plant("content is refused under a second name", content_refuses_names, "versions", 0, "D"),
    "empty_column": Plant("names of columns that Polars reads as others", odd_names, "odd", 2, "G"),
}


def hunt(name: str, most: int = 300) -> tuple[int, str, float]:
    """The first case that finds a plant and is right without it, from the one that did; and what it says, and when."""
    one, begun = PLANTS[name], time.monotonic()
    for seed in (one.seed, *range(most)):
        with one.planted() as unused:
            case, way = grow(seed, one.theme), WAYS[seed % 4]
            texts = judge(case, way)
        texts = [text for text in texts if text.startswith(tuple(one.checks))]
        if texts and not judge(case, way):
            if unused:
                return (
                    -1,
                    f"it patches {', '.join(sorted(unused))}, which nothing uses any more",
                    time.monotonic() - begun,
                )
            return seed, texts[0], time.monotonic() - begun
    return -1, "not found", time.monotonic() - begun


def show(name: str) -> int:
    """Put bugs back one by one, and print which case finds each, after how many seconds; give how many were missed."""
    missed = 0
    for one in [name] if name in PLANTS else PLANTS:
        seed, text, seconds = hunt(one)
        missed += seed < 0
        print(f"{one:16} {PLANTS[one].theme:16} case {seed:3} {seconds:6.1f} s  {text[:150]!r}", flush=True)
    return missed
