"""A keyed step in several threads of this process: each holds the state of some keys and takes in their records.

Kernels and Polars let other threads run, so each thread has a core. The output for a key depends on the records of that
key alone, so that it is the same in any number of threads, as it is in any number of shards. Which thread a key belongs
to follows from its identity, never from the data that came before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wpinq.engines.reading import ahead
from wpinq.engines.shards import divided
from wpinq.plan.shapes import Keyed
from wpinq.records.batch import Batch
from wpinq.state.states import Ending, Piecewise, State
from wpinq.state.workers import FEW, Workers


def state_of(shape: Keyed, key: bytes, threads: int) -> State:
    """The state of a step that answers once: in so many threads, where the step allows it.

    Args:
        shape: The step.
        key: The key of identities.
        threads: How many there may be.
    """
    first = shape.state(key)
    if threads == 1 or shape.hashed or shape.alone or not all(shape.keys) or isinstance(first, Piecewise):
        return first
    return Threads(shape.keys, key, [first, *(shape.state(key) for _ in range(threads - 1))])


class Threads:
    """A state for the keys of each thread. What fails in a thread is raised where the next piece is handed to it.

    Args:
        keys: For each input the columns of its key.
        key: The key of identities.
        states: One for each thread, with nothing in them.
    """

    def __init__(self, keys: Sequence[tuple[str, ...]], key: bytes, states: Sequence[State]) -> None:
        self._keys, self._key, self._states = keys, key, list(states)
        self._few: list[tuple[int, Batch]] = []
        self._rows = 0
        self._workers: Workers | None = None

    def absorb(self, port: int, batch: Batch) -> None:
        """Take in a change, or hand each thread what is of its keys."""
        self._few.append((port, batch))
        self._rows += len(batch)
        if self._rows > FEW:
            self._workers = self._workers or Workers(len(self._states))
            few, self._few = self._few, []
            for one in few:
                self._hand(self._workers, *one)

    def emit(self) -> Batch:
        """The change of the step's output; it is asked for once."""
        pieces = list(self.last())
        return Batch.concat(pieces, pieces[0].schema)

    def last(self) -> Iterator[Batch]:
        """The same in pieces; nothing is asked afterwards."""
        states, self._states = self._states, []
        for port, batch in self._few:
            states[0].absorb(port, batch)
        if self._workers is None:
            yield from _pieces(states[0])
            return
        self._workers.finish()
        with ahead([_pieces(states.pop()) for _ in range(len(states))]) as pieces:
            yield from pieces

    def _hand(self, workers: Workers, port: int, batch: Batch) -> None:
        for parts in divided(batch, self._keys[port], self._key, len(self._states)):
            for number, part in enumerate(parts):
                workers.hand(number, self._states[number].absorb, port, part)


def _pieces(state: State) -> Iterator[Batch]:
    if isinstance(state, Ending):
        yield from state.last()
    else:
        yield state.emit()
