"""Bugs that once were there, put back into the code of today, and the case that finds each of them.

The letters are those of the checks: A movement or answer, B loss or delta, C definitions, D control flow, E identities
of questions, F batches, G charged and no answer, H noise that is used twice. Where a place moves, move the plant, and
find its case again with `--plant`.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from hashlib import blake2b
from importlib import import_module
from typing import Any
from unittest.mock import patch

import polars as pl
from attacks.fuzz.plant import Plant
from attacks.fuzz.plants_versions import content_refuses_names, equal_content

from wpinq.core.engines import job
from wpinq.core.functions import expressions, plain
from wpinq.core.functions.covering import covered
from wpinq.core.ledger import charge_all, distinct
from wpinq.core.measurements import query
from wpinq.core.plan import node as plan
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node
from wpinq.core.plan.shapes import Merge
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing import threshold
from wpinq.core.pricing.sensitivity import UnitSensitivity, ledger_sensitivities
from wpinq.core.records import canonical, identity
from wpinq.core.records.fields import encode
from wpinq.core.records.schema import Kind
from wpinq.core.records.weights import WeightType
from wpinq.core.runs import timeline as versions
from wpinq.core.state.bykey import ByKey
from wpinq.sources import form

partition, select = (
    import_module(f"wpinq.{name}") for name in ("core.operators.partition", "core.measurements.select")
)
"""Modules whose packages have a function of the same name."""


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
        self._pending[port]._batches.append(batch.expand(batch.schema.ranged).consolidate())

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

    def by_ledger(plan: Node | Survey) -> dict[str, UnitSensitivity]:
        return {
            book: UnitSensitivity(-(-one.l1 // one.data_sets), -(-one.linf // one.data_sets), 1)
            for book, one in ledger_sensitivities(plan).items()
        }

    def largest(plan: Node | Survey) -> list[UnitSensitivity]:
        return list(by_ledger(plan).values())

    return [patch.object(threshold, "ledger_sensitivities", by_ledger),
            patch.object(select, "unit_sensitivities", largest)]  # fmt: skip


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
        patch.object(
            expressions, "_meaning", lambda part: json.dumps(json.loads(part.expr.meta.serialize(format="json")))
        )
    ]


def same_version() -> list[Any]:
    """Data sets are known by name and version alone."""

    def alike(roots: Any) -> dict[Node, Node]:
        first: dict[object, Node] = {}
        return {node: first.setdefault(digest or id(node), node) for node, digest in plan.fingerprints(*roots).items()}

    return [
        patch.object(job, "representatives", alike),
        patch.object(DataSet, "covered", property(lambda self: (self.name, self.version, self.reader.schema))),
    ]


def odd_names() -> list[Any]:
    """A column without a name gets another one on its way, and names that stand for other columns are taken."""
    users = [
        module for name, module in sys.modules.items() if name.startswith("wpinq.") and hasattr(module, "in_columns")
    ]
    return [
        patch.object(form, "wrong_name", lambda name: None),
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

    return [patch.object(query, "pay", pay)]


PLANTS = {
    "overflow": Plant("sums of weights wrap at 2^63", narrow, 26, "AC", "gain"),
    "weights": Plant("sums of a column of weights wrap at 2^63", narrow, 19, "AC", "weights"),
    "parts_epochs": Plant("parts of a step where records meet, at several epochs", parts_epochs, 29, "B", "index"),
    "windows_epochs": Plant(
        "windows of a step where records meet, at several epochs", windows_epochs, 28, "B", "index"
    ),
    "sql_atomic": Plant("a query that does not fit is charged in part", one_by_one, 21, "G", "unfingerprinted"),
    "nan": Plant("one record decides whether all records with NaN count", nan, 77, "A", "numbers"),
    "null_any": Plant("two nulls", null, 2, "C", "nulls"),
    "columns_differ": Plant("a run fails because of one record", read_columns, 11, "GD", "reader"),
    "dates": Plant("a far date fails the run", dates, 0, "GD", "dates"),
    "float_parts": Plant("parts that hold the same records are charged as one", float_parts, 8, "B", "numbers"),
    "shared_delta": Plant("a delta for half a person", shared_delta, 23, "B", "person"),
    "shave_names": Plant("two plans are one question", shave_names, 3, "CE", "names"),
    "json_literals": Plant("infinity and NaN are one literal", json_literals, 10, "CE", "literals"),
    "same_version": Plant("two data sets are one step", same_version, 1, "C", "twins"),
    "equal_content": Plant("equal content is one version, free under two names", equal_content, 0, "D", "versions"),
    "names": Plant("content is refused under a second name", content_refuses_names, 0, "D", "versions"),
    "empty_column": Plant("names of columns that Polars reads as others", odd_names, 2, "G", "odd"),
}
