"""The forms of steps: what those that read one step, or two, or that look at each record alone, have in common.

**To write a step**: `Where` keeps some records (`reads`, `accepts`, `mask`), `Linear` makes others of each record alone
(`reads`, `image`, `apply`), `Unary` and `Binary` say `lower` and `define`. The fingerprint covers every field, so each
is a plain value, a step or a function that was bound; what only words the title gets `field(metadata=SHOWN)`.

- `define` is the exact definition with fractions: the oracle. Write it first.
- `lower` gives one of five shapes. `Stateless` is a kernel that must be linear in the weights. `Keyed` has a state that
  takes in changes and gives changes, for the records of one key; for one record's weight `Pointwise` is ready.
- `shown` is the title; `schema`, `resolution`, `stability` (1), `required` and `gain` are said where they differ from
  the input's; `keeps_sign`, `apart`, `images` and `monotone` where they hold, which saves noise and is never needed.
- Where weights become finer, multiply `resolution`, and call `fit_resolution(self._node, factor)` first.
- What orders or draws records goes by their identities alone, in columns (`core/records/identity.py`) and in `define`
  (`record_ids` in `core/operators/resolution.py`) alike.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce

import polars as pl

from wpinq.core.functions.function import Dropped
from wpinq.core.plan.node import Node, Record, Weighted
from wpinq.core.plan.shapes import Shape, Stateless
from wpinq.core.records.batch import Batch
from wpinq.core.records.schema import Schema


@dataclass(frozen=True, eq=False)
class Unary(Node):
    """A step over one other step."""

    source: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The one step that it reads."""
        return (self.source,)


@dataclass(frozen=True, eq=False)
class Binary(Node):
    """A step over two other steps."""

    left: Node
    right: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        """Both."""
        return (self.left, self.right)


@dataclass(frozen=True, eq=False)
class Linear(Unary):
    """A linear function of each record alone: `image` says what becomes of one, and `apply` does it in columns.

    Its stability is the largest weight of the image of a record of weight 1: 1 unless it overrides it.
    """

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that it looks at; their ranges are written out for it."""
        return ()

    @property
    def monotone(self) -> bool:
        """A linear step that keeps signs has no negative coefficient."""
        return self.keeps_sign

    @abstractmethod
    def image(self, record: Record) -> Iterable[tuple[Record, Fraction]]:
        """What becomes of a record of weight 1, exactly.

        Raises:
            Dropped: Nothing.
        """

    @abstractmethod
    def apply(self, batch: Batch) -> Batch:
        """The images of many records, with at least the required columns."""

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """What it looks at, if that is all that it makes its output of."""
        return (frozenset(self.reads),)

    def lower(self, needed: frozenset[str]) -> Shape:
        """A stateless function: the output for a record depends on it alone."""
        names = self.required(needed)[0] or self.source.schema.names[:1]
        return Stateless(lambda batch: self.apply(batch.select(names).expand(self.reads)))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Record by record."""
        out: dict[Record, Fraction] = defaultdict(Fraction)
        for record, weight in inputs[0].items():
            try:
                images = list(self.image(record))
            except Dropped:
                continue
            for image, part in images:
                out[image] += weight * part
        return dict(out)


@dataclass(frozen=True, eq=False)
class Where(Linear):
    """A step that keeps some of the records, as they are."""

    keeps_sign = True

    @property
    def images(self) -> int:
        """Itself, or nothing."""
        return 1

    @abstractmethod
    def accepts(self, record: Record) -> bool:
        """Whether a record stays."""

    @abstractmethod
    def mask(self, frame: pl.DataFrame) -> pl.Expr | pl.Series:
        """Which rows stay."""

    @cached_property
    def schema(self) -> Schema:
        """The columns of its input; those that it looks at are written out."""
        return self.source.schema.expanded(self.reads)

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """What is needed later and what it looks at."""
        return (needed | frozenset(self.reads),)

    def image(self, record: Record) -> Iterable[tuple[Record, Fraction]]:
        """Itself, or nothing."""
        return [(record, Fraction(1))] if self.accepts(record) else []

    def apply(self, batch: Batch) -> Batch:
        """A mask."""
        return Batch(batch.frame.filter(self.mask(batch.frame)), batch.schema)


def each_record(nodes: Iterable[Node], needed: Mapping[Node, frozenset[str]] | None = None) -> Callable[[Batch], Batch]:
    """What steps that look at each record alone make of a batch, one after the other.

    Args:
        nodes: The steps, in order.
        needed: The columns that are needed of each; all by default.
    """
    kernels = []
    for node in nodes:
        shape = node.lower(frozenset(node.schema.names) if needed is None else needed[node])
        assert isinstance(shape, Stateless)  # noqa: S101  whoever calls this gives no other step
        kernels.append(shape.kernel)
    return lambda batch: reduce(lambda made, kernel: kernel(made), kernels, batch)
