"""The five shapes that steps are lowered to: all that an engine knows of a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from wpinq.core.records.batch import Batch
from wpinq.core.records.weights import WeightType
from wpinq.core.state.states import State

if TYPE_CHECKING:
    from wpinq.core.functions.tree import Node as Condition
    from wpinq.core.plan.dataset import DataSet


@dataclass(frozen=True, slots=True)
class Read:
    """Shape: batches of a protected source.

    Attributes:
        data: The source.
        columns: What is read of it.
        anyone: Conditions of the steps that read it: a record for which none is true changes nothing, and may be left
            out. All records count where there is none.
    """

    data: DataSet
    columns: tuple[str, ...]
    anyone: tuple[Condition, ...] = field(default=(), compare=False)  # of which == makes a tree


@dataclass(frozen=True, slots=True)
class Stateless:
    """Shape: a linear function of each record alone."""

    kernel: Callable[[Batch], Batch]


@dataclass(frozen=True, slots=True)
class Keyed:
    """Shape: the output for a key depends on the records of that key alone.

    Attributes:
        keys: For each input the columns of its key; empty columns bring all records to one shard.
        state: Makes the state of a shard, from the data set's identity key.
        hashed: Whether the one key is the whole record, and the state a `HashedState`.
        alone: Whether one thread holds all keys: the state calls a function of the user, which two must not call at
            once, or has so little to do that cutting records would take longer.
        matched: Whether there are two inputs, and no output for a key that one of them has not.
        itself: What computes the same of one input, where both inputs are one step; None where nothing does.
    """

    keys: tuple[tuple[str, ...], ...]
    state: Callable[[bytes], State]
    hashed: bool = False
    alone: bool = False
    matched: bool = False
    itself: Keyed | None = None


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
