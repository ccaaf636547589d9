"""The plan: what a collection means, as an immutable graph of nodes.

A node holds everything that is true of an operator: its columns, its stability, its exact definition, and how it is
lowered to one of five shapes. Engines see shapes and never operators; passes (`stability`, `explain`) see nodes and
never engines. So it is operators + engines, not operators x engines.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from wpinq.errors import InternalError
from wpinq.functions.covering import Uncovered, covered, own
from wpinq.records.batch import Batch
from wpinq.records.fields import encode
from wpinq.records.schema import Schema
from wpinq.records.weights import WeightType
from wpinq.state.states import State

if TYPE_CHECKING:
    from wpinq.plan.dataset import DataSet

Record: TypeAlias = tuple[object, ...]
Weighted: TypeAlias = Mapping[Record, Fraction]
"""What the reference engine computes with: records and their exact weights."""


@dataclass(frozen=True, slots=True)
class Read:
    """Shape: batches of a protected source."""

    data: DataSet
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stateless:
    """Shape: a linear function of each record alone."""

    kernel: Callable[[Batch], Batch]


@dataclass(frozen=True, slots=True)
class Keyed:
    """Shape: records meet only records of the same key.

    Attributes:
        keys: For each input the columns of its key; empty columns bring all records to one shard.
        state: Makes the state of a shard, from the data set's identity key.
        hashed: Whether the one key is the whole record, and the state a `HashedState`.
    """

    keys: tuple[tuple[str, ...], ...]
    state: Callable[[bytes], State]
    hashed: bool = False


@dataclass(frozen=True, slots=True)
class Merge:
    """Shape: a signed sum of the inputs, whose weights are first brought to one resolution.

    Attributes:
        factors: For each input what its weights are multiplied by.
        columns: What of each input is summed: batches of one step all have the same columns.
        held: How the weights of the sum are held.
    """

    factors: tuple[int, ...]
    columns: tuple[str, ...]
    held: WeightType

    def kernel(self, factor: int, batch: Batch) -> Batch:
        """What a batch of an input with this factor adds to the sum."""
        return batch.select(self.columns).scale(factor, self.held)


Shape: TypeAlias = Read | Stateless | Keyed | Merge
"""The fifth shape, Measure, is the root of a run: a plan and the histogram that it ends in."""


class Node(ABC):
    """One step of a plan."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Node, ...]:
        """The steps that it reads."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """Its columns."""

    @property
    @abstractmethod
    def resolution(self) -> int:
        """Its weights are whole numbers of 1/resolution."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The call that made it, for people: `shave()`."""

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """For each input, how far the output can move when that input moves by one."""
        return (Fraction(1),) * len(self.inputs)

    @cached_property
    def gain(self) -> Fraction:
        """How much, in weight, its records weigh in all for each record of a source, at the most: see `weights.py`.

        By default what stability says; a step of which less is true says so.
        """
        return sum((factor * one.gain for one, factor in zip(self.inputs, self.stability, strict=True)), Fraction(0))

    @cached_property
    def held(self) -> WeightType:
        """How its weights are held.

        Raises:
            PlanError: They are too large for their resolution.
        """
        return WeightType.of(self.resolution, self.gain, self.title)

    @property
    def rounding(self) -> str:
        """What its arithmetic does to weights, for `explain`; empty where they are exact."""
        return ""

    @property
    def part(self) -> tuple[str, str] | None:
        """The partition that it is a part of, and which part, when its siblings are disjoint from it."""
        return None

    @property
    def meaning(self) -> Mapping[str, object]:
        """What a fingerprint covers of it besides columns and resolution: all fields, unless several mean the same.

        Fields are steps, or what `covering.covered` knows; a step with any other is like no other step.
        """
        return own(self)

    @abstractmethod
    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """Which columns of each input are needed to compute the needed columns of the output."""

    @abstractmethod
    def lower(self, needed: frozenset[str]) -> Shape:
        """The shape that computes (at least) the needed columns."""

    @abstractmethod
    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """The exact definition on whole collections, slow and obviously right."""


def steps(*roots: Node) -> list[Node]:
    """All steps of some plans, each once, inputs before what reads them."""
    found: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node not in found:
            for one in node.inputs:
                visit(one)
            found[node] = None

    for root in roots:
        visit(root)
    return list(found)


def holding(node: Node) -> Node:
    """The step, whose weights can be held.

    Raises:
        PlanError: They are too large for 128 bits (`Node.held`).
    """
    _ = node.held
    return node


def fingerprints(*roots: Node) -> dict[Node, bytes | None]:
    """For each step a digest of what it means, stable across processes, or None when that is not known.

    Steps of one fingerprint have the same output on any data; see `covering`.
    """
    return digests(steps(*roots))


def digests(walk: Iterable[Node]) -> dict[Node, bytes | None]:
    """See `fingerprints`, of steps that were walked already: inputs come before what reads them."""
    found: dict[Node, bytes | None] = {}
    for node in walk:
        found[node] = _digest(node, found)
    return found


def _digest(node: Node, found: Mapping[Node, bytes | None]) -> bytes | None:
    """What a step means, over what its inputs mean; see `covering` for what that must be."""

    def known(one: object) -> bytes | None:
        if not isinstance(one, Node):
            return None
        digest = found[one] if one in found else fingerprints(one)[one]  # a field need not be an input
        if digest is None:
            raise Uncovered
        return digest

    what = (type(node).__qualname__, tuple(node.meaning.items()), node.inputs, node.schema, node.resolution)
    try:
        return hashlib.blake2b(encode(covered(what, known)), digest_size=32).digest()
    except Uncovered:
        return None


def sources(root: Node) -> list[DataSet]:
    """The protected data sets that a plan reads, each once; the first one's keys are those of the plan's answers.

    A live one comes first: all plans over it share one dataflow, and so the key of its identities.
    """
    return read_by(steps(root))


def read_by(walk: Iterable[Node]) -> list[DataSet]:
    """See `sources`, of steps that were walked already."""
    found = {node.data: None for node in walk if isinstance(node, Source)}
    return sorted(found, key=lambda data: not data.live)


@dataclass(frozen=True, eq=False)
class Unary(Node):
    """A step over one other step, with the same columns and resolution unless it says otherwise."""

    source: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The one step that it reads."""
        return (self.source,)

    @property
    def schema(self) -> Schema:
        """The columns of its input."""
        return self.source.schema

    @property
    def resolution(self) -> int:
        """The resolution of its input."""
        return self.source.resolution


@dataclass(frozen=True, eq=False)
class Source(Node):
    """The protected records themselves."""

    data: DataSet

    @property
    def inputs(self) -> tuple[Node, ...]:
        """A source reads no other step."""
        return ()

    @property
    def schema(self) -> Schema:
        """The columns that the source declares."""
        return self.data.reader.schema

    @property
    def resolution(self) -> int:
        """Records are counted whole."""
        return 1

    @cached_property
    def gain(self) -> Fraction:
        """A record weighs 1."""
        return Fraction(1)

    @property
    def title(self) -> str:
        """How `explain` shows it."""
        return f"protect({self.data.name})"

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """A source needs no other step."""
        return ()

    def lower(self, needed: frozenset[str]) -> Shape:
        """Read the needed columns."""
        return Read(self.data, self.schema.kept(needed))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Sources are given to the reference engine from outside, so it never asks this."""
        raise InternalError("a source has no definition of its own; please report this.")
