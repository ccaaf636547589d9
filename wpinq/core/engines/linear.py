"""Stateless steps: batches pushed through all linear steps up to the next steps with a state.

The steps are linear, so each piece of a change can be processed by itself. A step that emits pieces, such as a join,
pushes each piece at once through the following stateless steps; where the next state begins, equal records are added up
as they come. A state that answers for the last time gives up what it held piece by piece. So pieces do not accumulate,
and memory holds what those states hold anyway: the different records that reach them, three times at the most.

Records that meet nobody: those on the way to a step for which another input, complete by then, has not their key.

The paths of two edges on their way to a semijoin with the edges are one example: nearly all of them end there. They are
dropped piece by piece as a join writes them out, and only where all records of a source are read once: a live dataflow
may get the missing key later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TypeAlias

import polars as pl

from wpinq.core.plan.node import Node
from wpinq.core.plan.shapes import Keyed, Merge, Shape, Stateless
from wpinq.core.records.batch import Batch
from wpinq.core.records.schema import Kind, Schema
from wpinq.core.state.states import Ending, State
from wpinq.core.state.write_buffer import Shrinking, Waiting
from wpinq.errors import Failure

Edge: TypeAlias = tuple[Node, Callable[[Batch], Batch | None]]
FEW = 2
"""Batches of one step that need not be added up."""
StepBatches: TypeAlias = dict[Node, list[Batch]]
"""Batches that leave, by the step that made them."""


class Linear:
    """The linear steps that follow a step.

    Args:
        origin: The step.
        shapes: All steps that are computed, inputs first.
        chosen: For each step the one that is computed in its place.
        read: The steps whose output is read by a measurement or a step with a state.
        failure: Keeps the first failure of a step.

    Attributes:
        ends: Those of the steps, or the origin itself, whose output leaves.
        note, keep, finish: Who sees the batches of an end, what is kept of them, and who is told when the last one was
            there; see `matching.py`.
    """

    def __init__(
        self,
        origin: Node,
        shapes: Mapping[Node, Shape],
        chosen: Mapping[Node, Node],
        read: Collection[Node],
        failure: Failure,
    ) -> None:
        self._steps: dict[Node, list[Edge]] = {origin: []}
        for node, shape in shapes.items():
            if isinstance(shape, Stateless | Merge):
                ups = [chosen[source_node] for source_node in node.inputs]
                edges = [(up, kernel) for up, kernel in _kernels(node, ups, shape, failure) if up in self._steps]
                if edges:
                    self._steps[node] = edges
        self.ends = [node for node in self._steps if node in read]
        self.origin = origin
        self._shrinking = {end: Shrinking() for end in self.ends}
        self.note: dict[Node, list[Callable[[Batch], None]]] = {}
        self.keep: dict[Node, Callable[[Batch], Batch]] = {}
        self.finish: list[Callable[[Node], None]] = []

    def push(self, batch: Batch) -> StepBatches:
        """The output for a batch, or what is kept of it."""
        result: dict[Node, list[Batch]] = {}
        for node, edges in self._steps.items():
            made = (kernel(item) for up, kernel in edges for item in result[up])
            result[node] = _few([entry for entry in (made if edges else [batch]) if entry])
        for end, notes in self.note.items():
            for note, entry in product(notes, result[end]):
                note(entry)
        for end, keep in self.keep.items():
            result[end] = [entry for entry in map(keep, result[end]) if entry]
        return {end: result[end] for end in self.ends if result[end]}

    def changes(self, state: State, *, last: bool = False) -> Iterator[StepBatches]:
        """What follows from what a step that remembers has to say now, for the last time or not."""
        if last and isinstance(state, Ending):
            yield from self._added(map(self.push, state.last()))
        else:
            pieces = getattr(state, "pieces", None)  # to ask for `Piecewise` takes longer than a small epoch's step
            yield self.push(state.emit()) if pieces is None else self._push_all(pieces())
        if last:
            self.finished()

    def _added(self, pieces: Iterator[StepBatches]) -> Iterator[StepBatches]:
        """The same with equal records of a piece added up, for each end as long as that shrinks them, of all shards."""
        for parts in pieces:
            made = {
                end: self._shrinking[end](Batch.concat(batches, batches[0].schema)) for end, batches in parts.items()
            }
            yield {end: [batch] for end, batch in made.items() if len(batch)}

    def finished(self) -> None:
        """Tell that nothing more comes from the origin."""
        for finish in self.finish:
            finish(self.origin)

    def _push_all(self, pieces: Iterator[Batch]) -> StepBatches:
        """The output for a change that comes in pieces; equal records are added up as they come, but for ranges."""
        sums: dict[Node, Waiting] = {}
        ranged: dict[Node, list[Batch]] = {}
        for piece in pieces:
            for end, batches in self.push(piece).items():
                for batch in batches:
                    if batch.schema.ranged:
                        ranged.setdefault(end, []).append(batch)
                    else:
                        sums.setdefault(end, Waiting(batch.schema)).absorb(batch)
        whole = {end: [Batch.concat(batches, batches[0].schema)] for end, batches in ranged.items()}
        return {end: [item.rows()] for end, item in sums.items()} | whole


def _few(batches: list[Batch]) -> list[Batch]:
    """The same records in two batches at the most.

    A sum gives a batch for each way on which a record came; of sums of sums the ways double with each. So equal records
    are added up as soon as there are more batches than a sum of two steps has.
    """
    if len(batches) <= FEW:
        return batches
    return [Batch.concat(batches, batches[0].schema).consolidate()]


def _kernels(node: Node, ups: Sequence[Node], shape: Stateless | Merge, failure: Failure) -> Sequence[Edge]:
    """For each input of a step, the function that is applied to a batch.

    The sum of an input with itself is a multiple, so that nested sums do not multiply the number of batches.
    """
    if isinstance(shape, Stateless):
        return [(ups[0], failure.guard(node.title, shape.kernel, None))]
    factors: dict[Node, int] = {}
    for up, factor in zip(ups, shape.factors, strict=True):
        factors[up] = factors.get(up, 0) + factor
    return [(up, failure.guard(node.title, partial(shape.kernel, factor), None)) for up, factor in factors.items()]


MOST_KEYS = 1 << 22
"""Keys that are held beside the step itself; of more, none is dropped."""


class Matching:
    """The keys of an input of a step, and what is dropped on the way to the other one.

    Args:
        mine: Columns of the key where records are dropped.
        theirs: Those of the other input, in the same order.
        origins: The steps from which records of the other input come.
    """

    def __init__(self, mine: tuple[str, ...], theirs: tuple[str, ...], origins: Iterable[Node]) -> None:
        self._mine, self._theirs, self._waits = mine, theirs, set(origins)
        self._keys: pl.DataFrame | None = None
        self._parts: list[pl.DataFrame] | None = []

    def note(self, batch: Batch) -> None:
        """Remember the keys of records of the other input."""
        if self._parts is not None:
            self._parts.append(batch.expand(batch.schema.ranged).frame.select(self._theirs).unique())
            if sum(part.height for part in self._parts) > MOST_KEYS:
                self._parts = None

    def done(self, origin: Node) -> None:
        """No more records come from this step."""
        self._waits.discard(origin)
        if not self._waits and self._keys is None and self._parts:
            self._keys, self._parts = pl.concat(self._parts).unique(), None

    def keep(self, batch: Batch) -> Batch:
        """The records that can meet somebody, as far as that is known."""
        if self._keys is None:
            return batch
        met = batch.frame.join(self._keys, left_on=self._mine, right_on=self._theirs, how="semi", nulls_equal=True)
        return Batch(met, batch.schema)


def match(
    shapes: Mapping[Node, Shape], chosen: Mapping[Node, Node], roots: Iterable[Node], follows: Collection[Linear]
) -> None:
    """Let the linear steps drop what meets nobody, where a matching input alone reads what they make.

    Args:
        shapes: All steps that are computed.
        chosen: For each step the one that is computed in its place.
        roots: The plans.
        follows: What follows each step that reads or remembers; each emits for the last time once in this process.
    """
    readers: dict[Node, list[tuple[Node, Shape, int]]] = defaultdict(list)
    for node, shape in shapes.items():
        for port, up in enumerate(node.inputs):
            readers[chosen[up]].append((node, shape, port))
    measured = {chosen[root] for root in roots}
    for end, ((node, shape, port), *more) in readers.items():
        if more or end in measured or not isinstance(shape, Keyed) or not shape.matched:
            continue
        other, mine, theirs = chosen[node.inputs[1 - port]], shape.keys[port], shape.keys[1 - port]
        if _alike(end.schema, mine, other.schema, theirs):
            sources = [linear for linear in follows if other in linear.ends]
            keys = Matching(mine, theirs, (linear.origin for linear in sources))
            for linear in sources:
                linear.note.setdefault(other, []).append(keys.note)
                linear.finish.append(keys.done)
            for linear in follows:
                if end in linear.ends:
                    linear.keep[end] = keys.keep


def _alike(left: Schema, left_keys: tuple[str, ...], right: Schema, right_keys: tuple[str, ...]) -> bool:
    """Whether columns are equal where keys are, and each row has one key."""
    kinds = [left[name].kind for name in left_keys]
    plain = not any(left[name].ranged for name in left_keys) and not {Kind.FLOAT, Kind.ANY} & set(kinds)
    return plain and kinds == [right[name].kind for name in right_keys]
