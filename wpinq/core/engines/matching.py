"""Records that meet nobody: those on the way to a step for which another input, complete by then, has not their key.

The paths of two edges on their way to a semijoin with the edges are one example: nearly all of them end there. They are
dropped piece by piece as a join writes them out, and only where all records of a source are read once: a live dataflow
may get the missing key later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

import polars as pl

from wpinq.core.engines.linear import Linear
from wpinq.core.plan.node import Node
from wpinq.core.plan.shapes import Keyed, Shape
from wpinq.core.records.batch import Batch
from wpinq.core.records.schema import Kind, Schema

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
