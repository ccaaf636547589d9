"""The plan: what a collection means, as an immutable graph of nodes.

A node holds everything that is true of an operator: its columns, its stability, its exact definition, and how it is
lowered to one of five shapes (`shapes.py`). Engines see shapes and never operators; passes (`stability`, `explain`) see
nodes and never engines. So it is operators + engines, not operators x engines. Most operators are of a form that says
most of it already (`forms.py`).

Rewrite a plan: replace some of its steps, such as a live source by one of its closed epochs.

What an operator needs of a collection: its plan, and a way to make a collection of a longer plan.

Operators are functions from a `Builder[C]` to a `C`, so they need not import `collection.py`, which lists them as
methods of `Collection`.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from wpinq.core.functions.covering import Uncovered, covered, covered_fields
from wpinq.core.plan.shapes import Read, Shape
from wpinq.core.records.fields import encode
from wpinq.core.records.schema import Kind, Schema
from wpinq.core.records.weights import WeightType
from wpinq.errors import InternalError

if TYPE_CHECKING:
    from wpinq.core.functions.tree import Node as Condition
    from wpinq.core.plan.dataset import DataSet


Record: TypeAlias = tuple[object, ...]
Weighted: TypeAlias = Mapping[Record, Fraction]
"""What the reference engine computes with: records and their exact weights."""


class Node(ABC):
    """One step of a plan. What it does not say of itself is as in its first input."""

    shown: ClassVar[str]
    """Its title, with places for what it holds: "filter({0.predicate.note})"."""
    apart: ClassVar[bool] = False
    """Whether it does to the records of one value of a column what it would do to them if they were all."""
    keeps_sign: ClassVar[bool] = False
    """Whether no weight of its output is below zero where none of its inputs' is."""
    silent: ClassVar[bool] = False
    """Whether nobody wrote it: a unit or the engine brings it, and no name of a charge tells it."""
    endless: ClassVar[bool] = False
    """Whether it is a part of a group that goes on for ever, so that in the end the largest part is what counts."""
    lasting: ClassVar[bool] = False
    """Whether what it keeps of a stream stays, for all epochs that are released one after another."""

    windows: ClassVar[bool] = False
    """Whether it cuts records into windows of time, whichever of them it is of."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Node, ...]:
        """The steps that it reads."""

    @cached_property
    def schema(self) -> Schema:
        """Its columns."""
        return self.inputs[0].schema

    @cached_property
    def resolution(self) -> int:
        """Its weights are whole numbers of 1/resolution."""
        return self.inputs[0].resolution

    @property
    def title(self) -> str:
        """The call that made it, for people: `shave()`."""
        return self.shown.format(self)

    @property
    def stability(self) -> tuple[Fraction, ...]:
        """For each input, how far the output can move when that input moves by one."""
        return (Fraction(1),) * len(self.inputs)

    @cached_property
    def gain(self) -> Fraction:
        """The largest total weight of its records for each record of a source; see `weights.py`.

        By default it follows from the stability; a step with a smaller gain overrides it.
        """
        return sum(
            (factor * source_node.gain for source_node, factor in zip(self.inputs, self.stability, strict=True)),
            Fraction(0),
        )

    @cached_property
    def held(self) -> WeightType:
        """How its weights are held.

        Raises:
            PlanError: They are too large for their resolution.
        """
        return WeightType.of(self.resolution, self.gain, self.title)

    @cached_property
    def nonnegative(self) -> bool:
        """Whether no record can weigh less than zero, whatever the data; a later step may rely on it for its proof."""
        return self.keeps_sign and all(source_node.nonnegative for source_node in self.inputs)

    @property
    def rounding(self) -> str:
        """How its arithmetic rounds weights, for `explain`; empty where they are exact."""
        return ""

    @property
    def bias(self) -> str:
        """What is not in its output, or weighs otherwise, as a clause for people; empty where there is nothing."""
        return ""

    @property
    def part(self) -> tuple[str, str] | None:
        """The name of its group of disjoint parts (a partition, windows or a pair) and of the part; else None."""
        return None

    @property
    def many(self) -> bool:
        """Whether there is an answer for each of its windows, of which none was chosen yet."""
        return False

    @property
    def local(self) -> Mapping[str, str]:
        """The columns that it keeps apart and passes on, each with its name before; see `person_bound.py`."""
        names = self.schema.names if self.apart else ()
        return {name: name for name in names if all(name in source_node.schema for source_node in self.inputs)}

    def kept_apart(self, index: int) -> Mapping[str, str]:
        """The same, with the names in one of its inputs."""
        return self.local

    def carried(self, name: str) -> tuple[int, str] | None:
        """The input, and its column, whose value this column has in each record; None where that is not known."""
        before = self.kept_apart(0).get(name) if len(self.inputs) == 1 else None
        return None if before is None else (0, before)

    @property
    def condition(self) -> Condition | None:
        """A condition on each record of its one input: where it is not true, nothing is made of the record.

        None where there is none that can be told as a tree.
        """
        return None

    @property
    def constants(self) -> Mapping[str, tuple[Kind, Hashable] | None]:
        """The columns that hold one value in all of its records, whatever the data; see `Function.constants`."""
        return {}

    @property
    def needs(self) -> tuple[bool, ...]:
        """For each input whether it makes no record of a value, in a column that is kept apart, without records there.

        By default only where it is the one input.
        """
        return (len(self.inputs) == 1,) * len(self.inputs)

    @property
    def monotone(self) -> bool:
        """Whether no weight of its output is less where no weight of its inputs is."""
        return False

    @property
    def images(self) -> int | None:
        """How many records of its output move at the most where one of its input does; None where that is not known."""
        return None

    @property
    def dithers(self) -> bool:
        """Whether it rounds by a keyed dither, which is proved for movements of 1 or more together."""
        return False

    @property
    def bounds_units(self) -> DataSet | None:
        """The data set of whose units, which are people, it bounds the records; None if it is another step."""
        return None

    @property
    def slices(self) -> Mapping[str, Fraction]:
        """Columns by which the several records that it makes of one differ: the stability of each slice alone.

        A slice is what it makes with one value of the column. Only of steps with one input.
        """
        return {}

    @property
    def moves_at_most(self) -> Mapping[frozenset[str], Fraction]:
        """How far records that agree in some columns move together at the most, whatever moves its inputs."""
        return {}

    def bounds(self, columns: frozenset[str], of: Callable[[Node, frozenset[str]], Fraction | None]) -> Fraction | None:
        """What it bounds the weight of records by that agree in some columns (`person_bound.py`); None if nothing.

        Args:
            columns: Some of its columns.
            of: The same for one of its inputs, over its columns.
        """
        return None

    @property
    def meaning(self) -> Mapping[str, object]:
        """What a fingerprint covers of it besides columns and resolution: all fields, unless several mean the same.

        Fields are steps, or values that `covering.covered` knows; a step with any other field has no fingerprint.
        """
        return covered_fields(self)

    def required(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """Which columns of each input are needed to compute the needed columns of the output: by default whole records.

        They are all needed where it matters which records are one.
        """
        return tuple(frozenset(source_node.schema.names) for source_node in self.inputs)

    @abstractmethod
    def lower(self, needed: frozenset[str]) -> Shape:
        """The shape that computes (at least) the needed columns."""

    @abstractmethod
    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """The exact definition on whole collections, slow and obviously right."""


def steps(*roots: Node) -> list[Node]:
    """All steps of some plans, each once, inputs before what reads them."""
    result: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node not in result:
            for source_node in node.inputs:
                visit(source_node)
            result[node] = None

    for root in roots:
        visit(root)
    return list(result)


def holding(node: Node) -> Node:
    """The step itself, after checking that its weights can be held.

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


def digests(walk: Iterable[Node], *, portable: bool = False) -> dict[Node, bytes | None]:
    """See `fingerprints`, of steps that were walked already: inputs come before what reads them.

    With `portable`, of what people take for one question (`covering.covered`), which decides nothing but a warning.
    """
    result: dict[Node, bytes | None] = {}
    for node in walk:
        result[node] = _digest(node, result, portable=portable)
    return result


def _digest(node: Node, met: Mapping[Node, bytes | None], *, portable: bool) -> bytes | None:
    """The fingerprint of a step, from those of its inputs; `covering` says what it must cover."""

    def known(item: object) -> bytes | None:
        if not isinstance(item, Node):
            return None
        digest = (
            met[item] if item in met else digests(steps(item), portable=portable)[item]
        )  # a field need not be an input
        if digest is None:
            raise Uncovered
        return digest

    what = (type(node).__qualname__, tuple(node.meaning.items()), node.inputs, node.schema, node.resolution)
    try:
        return hashlib.blake2b(encode(covered(what, known, portable=portable)), digest_size=32).digest()
    except Uncovered:
        return None


def sources(root: Node) -> list[DataSet]:
    """The protected data sets that a plan reads, each once; the first one's secret keys the plan's answers.

    A live source comes first, because all plans over it share one dataflow and one identity key.
    """
    return read_by(steps(root))


def read_by(walk: Iterable[Node]) -> list[DataSet]:
    """See `sources`, of steps that were walked already."""
    result = {node.data: None for node in walk if isinstance(node, Source)}
    return sorted(result, key=lambda data: not data.live)


@dataclass(frozen=True, eq=False)
class Source(Node):
    """The protected records themselves."""

    data: DataSet
    shown = "protect({0.data.name})"
    keeps_sign = True

    @cached_property
    def nonnegative(self) -> bool:
        """Unless records can be taken back: one may be that never came."""
        return self.keeps_sign and not self.data.retractions

    @property
    def inputs(self) -> tuple[Node, ...]:
        """A source reads no other step."""
        return ()

    @cached_property
    def schema(self) -> Schema:
        """The columns that the source declares."""
        return self.data.reader.schema

    @cached_property
    def resolution(self) -> int:
        """Records are counted whole."""
        return 1

    @cached_property
    def gain(self) -> Fraction:
        """A record weighs 1."""
        return Fraction(1)

    def bounds(self, columns: frozenset[str], of: Callable[[Node, frozenset[str]], Fraction | None]) -> Fraction | None:
        """What its records are bounded by where they are read: a sample from the people index (`core/runs`)."""
        bounds = getattr(self.data.reader, "bounds", None)
        return None if bounds is None else bounds(columns)

    def lower(self, needed: frozenset[str]) -> Shape:
        """Read the needed columns."""
        return Read(self.data, self.schema.kept(needed))

    def define(self, *inputs: Weighted) -> dict[Record, Fraction]:
        """Sources are given to the reference engine from outside, so it never asks this."""
        raise InternalError("a source has no definition of its own; please report this.")


def rewrite(root: Node, change: Callable[[Node], Node]) -> Node:
    """The plan with every step replaced, inputs first; a step without a change below it stays the same object.

    Args:
        root: The plan.
        change: Maps a step, whose inputs are replaced already, to its replacement, or to itself.
    """
    return rewrite_all([root], change)[0]


def rewrite_all(roots: Sequence[Node], change: Callable[[Node], Node]) -> list[Node]:
    """The same of several plans; what they have in common stays common."""
    made: dict[Node, Node] = {}
    for node in steps(*roots):
        made[node] = change(_over(node, made))
    return [made[root] for root in roots]


def _over(node: Node, made: dict[Node, Node]) -> Node:
    """The step over changed inputs."""
    if all(made[source_node] is source_node for source_node in node.inputs):
        return node
    values = {field.name: getattr(node, field.name) for field in fields(node) if field.init}  # type: ignore[arg-type]
    new = {name: _changed(value, made) for name, value in values.items()}
    return replace(node, **new)  # type: ignore[type-var]


def _changed(value: object, made: dict[Node, Node]) -> object:
    if isinstance(value, Node):
        return made[value]
    return tuple(_changed(item, made) for item in value) if isinstance(value, tuple) else value


C = TypeVar("C")
"""The class of collections."""


class Builder(Generic[C]):
    """A plan that operators extend.

    Args:
        node: The last step of the plan.
    """

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    @abstractmethod
    def _then(self, node: Node) -> C:
        """A collection of a longer plan."""

    @abstractmethod
    def _commit(self, quotes: Sequence[Any]) -> list[Any]:
        """Charge what some quotes say, all of it or nothing, and give the charged queries, in their order."""
