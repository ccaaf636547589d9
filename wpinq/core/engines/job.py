"""A job: what an engine is asked to compute.

Lower several plans to the shapes that engines run: common steps once, and only the columns that are read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from wpinq.core.engines.linear import Linear
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node, Source, fingerprints, steps
from wpinq.core.plan.shapes import Keyed, Read, Shape
from wpinq.core.records.batch import Batch
from wpinq.core.state.histogram import Histogram
from wpinq.errors import Failure

if TYPE_CHECKING:
    from wpinq.core.functions.tree import Node as Condition


Progress: TypeAlias = Callable[[int], None]
"""Called with the number of bytes of files read so far. Never rows: their number is protected."""
FlowItem: TypeAlias = tuple[object, Batch]
"""A batch and the data set that it belongs to."""


class Live(Protocol):
    """Plans that take in one epoch after another."""

    roots: tuple[Node, ...]

    def push(self, items: Sequence[FlowItem]) -> list[Histogram]:
        """Take in one epoch, and give the change of the histogram of each plan."""

    def check(self) -> None:
        """Raise what has failed, if anything has."""

    def close(self) -> None:
        """End it."""


@dataclass(frozen=True, slots=True)
class Job:
    """The plans of one run and how to run them.

    Attributes:
        roots: The plans to measure; their common steps run once.
        key: Identity key of the data set.
        shards: Into how many shards each keyed step is cut.
        progress: Called with the number of bytes that were read.
        failure: Keeps the first failure of a step.
    """

    roots: Sequence[Node]
    key: bytes
    shards: int = 1
    progress: Progress | None = None
    failure: Failure = field(default_factory=Failure)

    def histogram(self, root: Node) -> Histogram:
        """A histogram of a root, with nothing in it."""
        return Histogram(root.schema, self.key, root.held.array)

    def empty(self) -> list[Histogram]:
        """One for each root."""
        return [self.histogram(root) for root in self.roots]


@runtime_checkable
class Engine(Protocol):
    """Runs plans elsewhere than in this process."""

    def check(self, roots: Sequence[Node]) -> None:
        """Refuse plans that it cannot run, before they are charged.

        Raises:
            PlanError: There is one.
        """

    def prove(self, data: DataSet) -> None:
        """Read what may turn out to be damaged of a data set, before anything is charged; see `Reader.prove`.

        Raises:
            SourceError: It is damaged.
        """

    def run(self, job: Job) -> list[Histogram]:
        """Compute the histograms of all roots."""


class Lowered:
    """The steps of some plans as shapes, common steps once.

    Attributes:
        chosen: For each step the one that is computed in its place.
        shapes: The shape of each step that is computed, inputs first.
        size: Bytes of the files that are read; None if that is not known.
        read: The steps whose output is read by a measurement or by a step with a state, in the same order in all
            processes.
    """

    def __init__(self, job: Job) -> None:
        self._failure, self.chosen = job.failure, representatives(job.roots)
        needed = needed_columns(job.roots, self.chosen)
        order = [node for node in steps(*job.roots) if self.chosen[node] is node]
        self.shapes: dict[Node, Shape] = {node: self._once(node, node.lower(needed[node])) for node in order}
        for node, shape in self.shapes.items():
            if isinstance(shape, Read) and (anyone := self._conditions(node, order, job.roots)):
                self.shapes[node] = replace(shape, anyone=anyone)
        sizes = [shape.data.reader.total_bytes for shape in self.shapes.values() if isinstance(shape, Read)]
        self.size = None if None in sizes else sum(size or 0 for size in sizes)
        readers = [self.ups(node) for node, shape in self.shapes.items() if isinstance(shape, Keyed)]
        readers.append([self.chosen[root] for root in job.roots])
        self.read = list(dict.fromkeys(end for ends in readers for end in ends))

    def _once(self, node: Node, shape: Shape) -> Shape:
        """The shape that takes the records of one step in once, where a step reads that one twice."""
        if isinstance(shape, Keyed) and shape.itself and len({self.chosen[up] for up in node.inputs}) == 1:
            return shape.itself
        return shape

    def ups(self, node: Node) -> list[Node]:
        """The steps whose output a step reads, by its ports: of two that are one, that one."""
        ups, shape = [self.chosen[up] for up in node.inputs], self.shapes[node]
        return ups[: len(shape.keys)] if isinstance(shape, Keyed) else ups

    def _conditions(self, node: Node, order: Sequence[Node], roots: Sequence[Node]) -> tuple[Condition, ...]:
        """The conditions of all steps that read a source, which can leave records out; none if one has none."""
        if any(self.chosen[root] is node for root in roots):
            return ()
        readers = [step for step in order if any(self.chosen[source] is node for source in step.inputs)]
        conditions = [condition for step in readers if (condition := step.condition) is not None]
        return tuple(conditions) if len(conditions) == len(readers) else ()

    @property
    def stacked(self) -> bool:
        """Whether a step with a state reads what another such step makes, at once or behind linear steps."""
        behind: set[Node] = set()
        for node, shape in self.shapes.items():
            fed = any(self.chosen[up] in behind for up in node.inputs)
            if fed and isinstance(shape, Keyed):
                return True
            if fed or isinstance(shape, Keyed):
                behind.add(node)
        return False

    def follows(self, node: Node) -> Linear:
        """The linear steps that follow a step."""
        return Linear(node, self.shapes, self.chosen, self.read, self._failure)


def representatives(roots: Sequence[Node]) -> dict[Node, Node]:
    """For each step the first one of the same meaning, so that common steps run once.

    Two sources are the same only if they read the same files or the same object: a version that a caller named may
    stand for two.
    """
    first: dict[Hashable, Node] = {}
    chosen: dict[Node, Node] = {}
    for node, digest in fingerprints(*roots).items():
        origin: Hashable = tuple(chosen[source_node] for source_node in node.inputs)
        if isinstance(node, Source):
            origin = node.data.reader.version() or id(node.data.reader)
        chosen[node] = first.setdefault((digest or id(node), origin), node)
    return chosen


def needed_columns(roots: Sequence[Node], chosen: dict[Node, Node]) -> dict[Node, frozenset[str]]:
    """For each representative step, which of its columns anything reads; a measurement reads all of its own."""
    needed: dict[Node, frozenset[str]] = dict.fromkeys(chosen.values(), frozenset())
    for root in roots:
        needed[chosen[root]] = frozenset(root.schema.names)
    for node in reversed(steps(*roots)):
        if chosen[node] is node:
            for source_node, names in zip(node.inputs, node.required(needed[node]), strict=True):
                needed[chosen[source_node]] |= names
    return needed
