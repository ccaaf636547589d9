"""The commit protocol of shared streams as a machine of states, and a search through all of its interleavings.

Two workers read one partition each time that they hold its lease, two keepers close epochs, and any lease may end at
any step, also while its holder is frozen between reading and writing. A step is one transaction of the database, or
what a process does in its own memory. Steps have the names of the code in `wpinq/streaming/shared`.

What must hold in every state, of the records 0, 1, 2 ... of the partition:

- epochs hold each record at most once, in order, and without gaps; parts that wait go on where epochs end;
- an epoch that was answered once is always answered with the same records;
- what a worker or a keeper believes never makes more than one of them succeed.

The search takes one state of those that differ by the numbers of workers or of keepers alone, since neither the steps
nor what must hold depends on them (Ip and Dill, Better Verification Through Symmetry, 1996).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Bounds:
    """What ends the search: records that come, epochs that are closed, and how often a lease passes on, at most."""

    records: int = 2
    epochs: int = 2
    fences: int = 3


NOBODY = -1
Span = tuple[int, int]


class Lease(NamedTuple):
    """Who holds it, its fencing number, and whether its time has ended."""

    holder: int = NOBODY
    fence: int = 0
    ended: bool = True


class Worker(NamedTuple):
    """What a worker believes: its fencing number, up to where it has read, and what it has not written yet."""

    fence: int = 0
    position: int = 0
    read: Span | None = None


class Keeper(NamedTuple):
    """What a keeper believes: its fencing number, the epochs that it knows, and the parts that it has taken."""

    fence: int = 0
    closed: int = 0
    position: int = 0
    taken: tuple[tuple[int, Span], ...] = ()


class State(NamedTuple):
    """The database, what processes believe, and what was answered."""

    partition: Lease = Lease()
    position: int = 0
    keeper: Lease = Lease()
    parts: tuple[tuple[int, Span], ...] = ()
    number: int = 0
    epochs: tuple[tuple[Span, ...], ...] = ()
    workers: tuple[Worker, ...] = (Worker(), Worker())
    keepers: tuple[Keeper, ...] = (Keeper(), Keeper())
    answered: tuple[tuple[tuple[Span, ...], ...], ...] = ()

    def worker(self, index: int, local: Worker, **more: object) -> State:
        workers = (*self.workers[:index], local, *self.workers[index + 1 :])
        return self._replace(workers=workers, **more)

    def kept(self, index: int, local: Keeper, **more: object) -> State:
        keepers = (*self.keepers[:index], local, *self.keepers[index + 1 :])
        return self._replace(keepers=keepers, **more)


@dataclass(frozen=True)
class Rules:
    """What a transaction checks; each is left out once, to see that the search finds it."""

    fence_of_parts: bool = True
    fence_of_epochs: bool = True
    parts_go_with_their_epoch: bool = True
    removes_what_was_taken: bool = True
    bounds: Bounds = Bounds()


def taken(lease: Lease, holder: int, bounds: Bounds) -> Lease | None:
    """The lease after `Holder._take`; None where somebody else holds it."""
    if lease.holder == holder:
        return lease._replace(ended=False)
    passes = lease.ended and lease.fence < bounds.fences
    return Lease(holder, lease.fence + 1, ended=False) if passes else None


def steps(state: State, rules: Rules) -> Iterator[tuple[str, State]]:
    """Every step that may come next."""
    if not state.partition.ended:
        yield "a lease of the partition ends", state._replace(partition=state.partition._replace(ended=True))
    if not state.keeper.ended:
        yield "the keeper's lease ends", state._replace(keeper=state.keeper._replace(ended=True))
    for index in range(len(state.workers)):
        yield from _worker(state, index, rules)
    for index in range(len(state.keepers)):
        yield from _keeper(state, index, rules)


def _worker(state: State, index: int, rules: Rules) -> Iterator[tuple[str, State]]:
    worker = state.workers[index]
    lease = taken(state.partition, index, rules.bounds)
    if lease is not None and (worker.fence != lease.fence or worker.read is None):
        yield f"worker {index}: balance", state.worker(
            index, Worker(lease.fence, state.position), partition=lease)  # fmt: skip
    if worker.fence and worker.read is None:
        for end in range(worker.position + 1, rules.bounds.records + 1):
            yield f"worker {index}: look", state.worker(index, worker._replace(read=(worker.position, end)))
    if worker.read is not None:
        yield f"worker {index}: dies", state.worker(index, Worker())
        holds = (state.partition.holder, state.partition.fence) == (index, worker.fence)
        if holds or not rules.fence_of_parts:
            number, after = state.number + 1, worker.read[1]
            parts = (*state.parts, (number, worker.read))
            written = {"parts": parts, "number": number, "position": after}
            yield f"worker {index}: write", state.worker(index, Worker(worker.fence, after), **written)
            yield f"worker {index}: write, unheard", state.worker(index, Worker(), **written)
        else:
            yield f"worker {index}: write refused", state.worker(index, Worker())


def _keeper(state: State, index: int, rules: Rules) -> Iterator[tuple[str, State]]:
    keeper = state.keepers[index]
    lease = taken(state.keeper, index, rules.bounds)
    if lease is not None and not keeper.taken:
        known = Keeper(lease.fence, len(state.epochs), end_of(state.epochs))
        if (keeper, state.keeper) != (known, lease):
            yield f"keeper {index}: keep", state.kept(index, known, keeper=lease)
    if not keeper.fence:
        return
    fresh = tuple(part for part in state.parts if part not in keeper.taken)
    if fresh and fresh[0][1][0] == keeper.position:
        yield f"keeper {index}: take", state.kept(
            index, keeper._replace(taken=(*keeper.taken, fresh[0]), position=fresh[0][1][1]))  # fmt: skip
    if keeper.taken:
        yield f"keeper {index}: dies", state.kept(index, Keeper())
    yield from _append(state, index, rules)


def _append(state: State, index: int, rules: Rules) -> Iterator[tuple[str, State]]:
    keeper = state.keepers[index]
    holds = (state.keeper.holder, state.keeper.fence) == (index, keeper.fence)
    if rules.fence_of_epochs and not (holds and len(state.epochs) == keeper.closed):
        yield f"keeper {index}: append refused", state.kept(index, Keeper())
        return
    if keeper.closed >= rules.bounds.epochs:
        return
    epoch = tuple(span for _, span in keeper.taken)
    epochs = (*state.epochs[: keeper.closed], epoch, *state.epochs[keeper.closed + 1 :])
    gone = keeper.taken if rules.removes_what_was_taken else state.parts
    left = tuple(part for part in state.parts if part not in gone)
    after = keeper._replace(closed=keeper.closed + 1, taken=())
    answered = (*state.answered, epochs) if epochs not in state.answered else state.answered
    written = {"epochs": epochs, "parts": left if rules.parts_go_with_their_epoch else state.parts}
    yield f"keeper {index}: append and answer", state.kept(index, after, **written, answered=answered)
    yield f"keeper {index}: append, unheard", state.kept(index, Keeper(), **written)


def end_of(epochs: tuple[tuple[Span, ...], ...]) -> int:
    """Up to where epochs hold the partition, if they hold it in order."""
    return max((span[1] for epoch in epochs for span in epoch), default=0)


def wrong(state: State) -> str:
    """What does not hold in a state; nothing where all does."""
    spans = [span for epoch in state.epochs for span in epoch]
    waiting = [span for _, span in state.parts]
    place = 0
    for first, last in [*spans, *waiting]:
        if first != place:
            return "a record is left out" if first > place else "a record is counted twice"
        place = last
    if place != state.position:
        return "the position is not where the parts end"
    if any(earlier != state.epochs[: len(earlier)] for earlier in state.answered):
        return "an epoch was answered in two ways"
    return ""


def alike(state: State) -> tuple[State, int]:
    """The same for all states that differ by the numbers of workers and of keepers alone, and how many those are."""
    first, second = state.workers
    holder = state.partition.holder
    left = (first.fence, first.position, first.read or (), holder == 0)
    right = (second.fence, second.position, second.read or (), holder == 1)
    many = 1 if left == right else 2
    if right < left:
        partition = state.partition if holder == NOBODY else state.partition._replace(holder=1 - holder)
        state = state._replace(partition=partition, workers=(second, first))
    one, other = state.keepers
    holder = state.keeper.holder
    left, right = (one, holder == 0), (other, holder == 1)
    if right < left:
        keeper = state.keeper if holder == NOBODY else state.keeper._replace(holder=1 - holder)
        state = state._replace(keeper=keeper, keepers=(other, one))
    return state, many if left == right else 2 * many


def search(rules: Rules = Rules(), most: int = 10**7, *, every: bool = False) -> tuple[int, list[str]]:
    """Go through all states.

    Args:
        rules: What transactions check.
        most: How many states there are at the most.
        every: Whether to go through each of those that are alike.

    Returns:
        How many there are, and the steps to the first that is wrong, with what is wrong; none where all hold. Two
        workers may change their numbers on the way, and so may two keepers.
    """
    begin, states = State(), 1
    before: dict[State, tuple[State, str] | None] = {begin: None}
    queue = [begin]
    for state in queue:
        if why := wrong(state):
            return states, [*_path(before, state), why]
        for name, after in steps(state, rules):
            step = state, name
            chosen, many = (after, 1) if every else alike(after)
            if before.setdefault(chosen, step) is step:
                states += many
                queue.append(chosen)
        if states > most:
            raise MemoryError("the search is larger than was foreseen")
    return states, []


def _path(before: dict[State, tuple[State, str] | None], state: State) -> list[str]:
    names = []
    at: State | None = state
    while at is not None and (step := before[at]) is not None:
        at, name = step
        names.append(name)
    return names[::-1]
