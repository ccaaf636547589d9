"""Steps between operators: to common columns and a common resolution, and back to a coarser resolution.

Weights are whole numbers of 1/resolution; the plan chooses the resolution, and operators that divide make it finer.
Where weights would not fit 128 bits any more, and before noise is added, a keyed dither brings the resolution back to
2^40 (below).

Keyed dither: pseudorandom rounding that depends on the record and a key alone, and is right on average.

No deterministic rounding of single weights to a coarser resolution is stable, because some smallest change must jump a
whole coarse step. With a dither that depends on the record alone, the rounded weight of each record that keeps its sign
changes by a constant and a coin; the coins are independent, and the mean is the change without rounding (but for 2^-64,
since a draw has 64 bits). Let the sensitivity of the input be B >= 1, which is S = 2^40 B coarse steps. Then the sum
over all records has a mean and a variance of at most S, and by Bernstein's inequality P(sum > S + 2^-16 S) <
exp(-(2^-16 S)^2 / (2 S (1 + 2^-17))) < exp(-127 B) < 2^-180. So the guarantee is additive: 2^-16 of B for all records
together, however small the change of each of them, or of each part of a partition, is. A weight that changes its sign
has two coins, which fall alike. By the Cauchy-Schwarz inequality E exp(t (X + Y)) is at most the root of E exp(2 t X) E
exp(2 t Y), so where weights below zero become weights above zero the probability is at most the root of that bound,
below 2^-90. Coins of different plans are independent too, so it holds for the sum over parts. Of plans that are
measured one after the other each has fresh coins, whatever was answered before, and the same bound holds for the
martingale (Freedman). n measurements of one plan, or of plans whose keys coincide (`dither_key`), are charged n times,
and one of them fails with at most n times that probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any

import numpy as np
import polars as pl

from wpinq.core.functions.covering import digest
from wpinq.core.plan.forms import Linear, Unary
from wpinq.core.plan.node import Builder, Node, Record, Weighted, sources, steps
from wpinq.core.plan.shapes import Keyed, Shape
from wpinq.core.records import canonical
from wpinq.core.records.batch import Batch, integers, weight_series
from wpinq.core.records.identity import identities, siphash
from wpinq.core.records.kinds import series, write
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.records.values import KEY_SIZE
from wpinq.core.records.weights import fits
from wpinq.core.state.table import Ids, Weights
from wpinq.errors import PlanError

GRID = 2**40
"""Dithered weights are whole numbers of 1/GRID."""


def draws(key: bytes, *ids: Ids) -> Weights:
    """64 pseudorandom bits for each row, as Python integers, from the row's identities."""
    words = [np.ascontiguousarray(item[:, i]) for item in ids for i in (0, 1)]
    closed = np.full(len(ids[0]), np.uint64((16 * len(ids)) << 56))
    return siphash(key, [*words, closed])[:, 0].astype(object)


def rounded(numerators: Weights, denominators: Weights | int, draw: Weights) -> Weights:
    """Round fractions down or up by their dither; 0 stays 0, and a sign changes nothing else."""
    size = abs(numerators.astype(object))
    whole = (size + ((draw * denominators) >> 64)) // denominators
    return np.where(numerators < 0, -whole, whole)


FINEST = 2**80
"""No finer resolution is chosen where a dither can prevent it."""

SPARE = 4
"""The factor by which the next step may increase the gain."""

DITHER_STABILITY = Fraction(2**16 + 1, 2**16)
"""Stability of a step with a keyed dither, relative to the input's sensitivity; proved in
`core/operators/resolution.py`."""

PART_FIELDS = ("place", "group")
"""Fields that name a group of parts; their values are random where the key of the partition has no fingerprint."""

ROUNDING_NOTE = "rounded to 2^-40, right on average"
"""How `explain` describes a dither."""


def fit_noise(node: Node) -> Node:
    """The step itself, or its dither where it is finer than 2^-40: noise is drawn at 2^-40 at the finest."""
    return dithered(node) if node.resolution > GRID else node


def fit_resolution(node: Node, factor: int) -> Node:
    """The step itself, or its dither to 2^-40 where weights at a resolution finer by this factor would not fit."""
    fine = node.resolution * factor
    enough = fine <= FINEST and fits(fine, node.gain * SPARE)
    return node if enough or node.resolution <= GRID else dithered(node)


def dithered(node: Node) -> Node:
    """Dither to 2^-40, once."""
    return node if node.resolution == GRID else Coarse(node)


def common_resolution(nodes: Sequence[Node]) -> tuple[list[Node], int]:
    """The steps, dithered where needed, and a resolution that all of them share without overflow."""
    resolution = math.lcm(*(node.resolution for node in nodes))
    enough = resolution <= GRID or fits(resolution, sum((node.gain for node in nodes), Fraction(0)))
    if resolution > FINEST or not enough:
        nodes = [dithered(node) for node in nodes]
        resolution = GRID
    return list(nodes), resolution


def node_of(other: Any, call: str) -> Node:
    """The step of another collection.

    Raises:
        PlanError: `other` is not a protected collection (a data frame, for example).
    """
    node = getattr(other, "_node", None)
    if not isinstance(node, Node):
        raise PlanError(
            f"{call}: takes another protected collection, and got {type(other).__name__}; protect it, or look a"
            " public table up by join. What rows that everybody knows add is added to the answer."
        )
    return node


def aligned(collection: Builder[Any], other: object, call: str) -> tuple[Node, Node]:
    """The steps of two collections, brought to the columns of the first, by place, and to one resolution.

    Raises:
        PlanError: The other is no protected collection, or they have different numbers of columns.
    """
    nodes = [collection._node, node_of(other, call)]
    first = nodes[0].schema
    if len(nodes[1].schema) != len(first):
        shown = " and ".join(str(node.schema) for node in nodes)
        raise PlanError(f"{call}: records of {shown} do not compare; map both to the same columns first.")
    nodes, resolution = common_resolution(nodes)
    columns = []
    for position, name in enumerate(first.names):
        columns_there = [node.schema.columns[position] for node in nodes]
        kind = columns_there[0].kind if len({column.kind for column in columns_there}) == 1 else Kind.ANY
        columns.append(Column(name, kind, kind is Kind.INT and all(column.ranged for column in columns_there)))
    schema = Schema(tuple(columns))
    left, right = (
        node if (node.schema, node.resolution) == (schema, resolution) else Align(node, schema, resolution)
        for node in nodes
    )
    return left, right


@dataclass(frozen=True, eq=False)
class Align(Linear):
    """The same records under other names, as more general types, or at a finer resolution."""

    onto: Schema
    fine: int
    shown = "align"
    silent = True
    keeps_sign = True

    @cached_property
    def schema(self) -> Schema:
        return self.onto

    @cached_property
    def resolution(self) -> int:
        return self.fine

    @property
    def images(self) -> int:
        """One."""
        return 1

    @property
    def local(self) -> Mapping[str, str]:
        """Columns whose kind is as before."""
        return {new: old for new, old in self._places.items() if self.onto[new].kind is self.source.schema[old].kind}

    @property
    def _places(self) -> dict[str, str]:
        return dict(zip(self.onto.names, self.source.schema.names, strict=True))

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """The columns in the same places."""
        return (frozenset(old for new, old in self._places.items() if new in needed),)

    def image(self, record: Record) -> Iterable[tuple[Record, Fraction]]:
        return [(record, Fraction(1))]

    def apply(self, batch: Batch) -> Batch:
        """Rename, write ranges out, encode."""
        batch = batch.project({new: old for new, old in self._places.items() if old in batch.schema})
        batch = batch.refine(self.source.held, self.held)
        batch = batch.expand(name for name in batch.schema.ranged if not self.onto[name].ranged)
        changed = [column for column in batch.schema if self.onto[column.name].kind is not column.kind]
        frame = batch.frame.with_columns(canonical.encoded(batch.frame[column.name], column.kind) for column in changed)
        return Batch(frame, self.onto.select(batch.schema.names))


@dataclass(frozen=True, eq=False)
class Coarse(Unary):
    """Plan node of the dither to 2^-40.

    Stability:  1 + 2^-16, relative to the input's sensitivity (1 or more), not to its actual change: all records of all
                parts together change by at most the change of the input plus 2^-16 of the sensitivity, except with
                probability below 2^-180 (2^-90 where signs change).
    """

    shown = "dither(2^-40)"
    silent = True
    resolution = GRID
    stability = (DITHER_STABILITY,)
    dithers = True
    rounding = ROUNDING_NOTE

    @cached_property
    def schema(self) -> Schema:
        return self.source.schema.expanded()

    def lower(self, needed: frozenset[str]) -> Shape:
        """A record meets only itself."""
        rule = partial(self._rule, dither_key(self))
        from wpinq.core.state.pointwise import Pointwise, PointwiseRule  # most plans need no dither

        points = PointwiseRule(self.schema, self.schema.kept(needed), 1, self.source.held, self.held, rule)
        return Keyed((self.schema.names,), lambda _: Pointwise(points, record_key(self)))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Round each weight by the record's dither."""
        ids = record_ids(inputs[0], self.schema, record_key(self))
        units = np.array([int(weight * self.source.resolution) for weight in inputs[0].values()], object)
        result = self._round(dither_key(self), units, ids)
        return {record: Fraction(weight, GRID) for record, weight in zip(inputs[0], result.tolist(), strict=True)}

    def _rule(self, key: bytes, weights: Sequence[pl.Series], ids: Callable[[], Ids]) -> pl.Series:
        return weight_series(self._round(key, integers(weights[0]), ids()), self.held)

    def _round(self, key: bytes, weights: Weights, ids: Ids) -> Weights:
        return rounded(weights.astype(object) * GRID, self.source.resolution, draws(key, ids))


def record_key(node: Node) -> bytes:
    """The key of the identities by which a step orders or dithers records, the same in every run."""
    return sources(node)[0].identity_key


def dither_key(node: Node) -> bytes:
    """The key of a dither. Dithers on one path have different keys, and so do those of different parts.

    It does not cover functions without a fingerprint, because all processes of a run must derive the same key.
    Plans that differ in such functions only share their dithers; each is charged, and each may fail by itself.
    """
    depth = sum(DITHER_STABILITY in step.stability for step in steps(node))
    made = blake2b(key=record_key(node), digest_size=KEY_SIZE, person=b"wpinq dither")
    made.update(depth.to_bytes(8, "little") + _known(node))
    return made.digest()


def _known(root: Node) -> bytes:
    """A digest of a plan, without the functions that have no fingerprint."""
    result: dict[Node, bytes] = {}
    for node in steps(root):
        fields_known = (pair for pair in node.meaning.items() if pair[0] not in PART_FIELDS)
        what = (type(node).__qualname__, *fields_known, *node.inputs, node.schema, node.resolution)
        result[node] = digest(what, lambda one: result.get(one) if isinstance(one, Node) else None)
    return result[root]


def record_ids(records: Iterable[tuple[Any, ...]], schema: Schema, key: bytes) -> Ids:
    """Identities of records given as Python values."""
    rows = list(records)
    columns = [
        series(column.name, [write(row[position], column.kind) for row in rows], column.kind)
        for position, column in enumerate(schema)
    ]
    return identities(pl.DataFrame(columns), schema, key)
