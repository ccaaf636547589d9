"""The interface of the state of a keyed step; each step has a class of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from wpinq.core.records.batch import Batch
from wpinq.core.state.table import Ids, Weights


class State(Protocol):
    """The state of a keyed step. It never draws random numbers."""

    def absorb(self, port: int, batch: Batch) -> None:
        """Take in a change that arrived at one of the step's inputs."""

    def emit(self) -> Batch:
        """The change of the step's output since the last call."""


@runtime_checkable
class Piecewise(State, Protocol):
    """A state whose change may be too large to be held at once."""

    def pieces(self) -> Iterator[Batch]:
        """The same as `emit`, in pieces whose sum it is."""


@runtime_checkable
class Ending(State, Protocol):
    """What a keyed step remembers that need not be kept for its last answer."""

    def last(self) -> Iterator[Batch]:
        """The same as `emit`, in pieces whose sum it is; nothing is asked afterwards."""


@dataclass(frozen=True, slots=True)
class Hashed:
    """Weighted records by their identities alone."""

    ids: Ids
    weights: Weights

    def __len__(self) -> int:
        return len(self.ids)


@runtime_checkable
class HashedState(Protocol):
    """A state that can also take in records by their identities alone."""

    def absorb_hashed(self, records: Hashed) -> None:
        """Take in a change that arrived at the step's input."""
