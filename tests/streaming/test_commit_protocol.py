"""The commit protocol of shared streams: all interleavings of a model, and random ones of the code.

Kinds: an exhaustive search of states (`protocol.py`) with planted rules that it must find; and walks through the model,
each step of which is done by the code on a real PostgreSQL server, which must come to the same state.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from depth import deep, thin
from streaming import protocol
from streaming.protocol import Bounds, Rules, State

import wpinq
from wpinq.core.ledger import Change
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.log import Epoch
from wpinq.streaming.shared.home import Home
from wpinq.streaming.shared.journal import SharedJournal
from wpinq.streaming.shared.leases import Holder, LostError
from wpinq.streaming.shared.parts import Part, Parts
from wpinq.streaming.shared.worker import Worker

PARTITION = "files host one"


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(1, 2, 2),
        pytest.param(Bounds(2, 1, 2), marks=deep("two records in one epoch")),
        pytest.param(Bounds(2, 2, 3), marks=deep("a million states")),
    ],
)
def test_no_interleaving_loses_a_record_or_answers_twice(bounds):
    states, path = protocol.search(Rules(bounds=bounds))
    assert path == []
    assert states > 10_000


@deep
def test_states_that_are_alike_are_those_that_are_left_out():
    rules = Rules(bounds=Bounds(1, 2, 2))
    assert protocol.search(rules) == protocol.search(rules, every=True)


@pytest.mark.parametrize(
    ("left_out", "why"),
    [
        ("fence_of_parts", "a record is counted twice"),
        ("fence_of_epochs", "the position is not where the parts end"),
        ("parts_go_with_their_epoch", "a record is counted twice"),
        ("removes_what_was_taken", "the position is not where the parts end"),
    ],
)
def test_each_check_that_is_left_out_is_found(left_out, why):
    _, path = protocol.search(replace(Rules(), **{left_out: False}))
    assert path[-1] == why


class Records:
    """A source of one partition, whose records are 0, 1, 2 ..."""

    name, moving, offered = "records", True, 0

    def __init__(self) -> None:
        self.place, self.end = 0, 0

    def names(self) -> list[str]:
        return [PARTITION]

    def assign(self, positions: dict[str, Any]) -> None:
        self.place = self.end = positions.get(PARTITION) or 0

    def look(self) -> Iterator[pl.DataFrame]:
        first, self.place = self.place, self.end
        yield pl.DataFrame({"record": range(first, self.end)}, schema={"record": pl.Int64})

    def positions(self) -> dict[str, Any]:
        return {PARTITION: self.place}

    def close(self) -> None:
        """Nothing is open."""


class Played:
    """The code, at the steps of the model."""

    def __init__(self, home: Home, ledger: Any) -> None:
        self.home, self.ledger, self.connected = home, ledger, ExitStack()
        self.connection = self.connected.enter_context(home.connected())
        self.workers: dict[int, Worker] = {}
        self.ending: dict[int, ExitStack] = {}
        self.keepers: dict[int, SharedJournal] = {}
        self.taken: dict[int, list[Part]] = {}

    def begin(self) -> None:
        """Forget all, and begin anew."""
        self.end()
        for table in ("{epochs}", "{parts}", "{leases}"):
            self.run(f"DELETE FROM {table}")
        with self.ledger.transaction() as act:
            act.change(Change("streams", self.home.stream, None))

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        done = self.connection.execute(self.home.sql(statement), values)
        return done.fetchall() if done.description else []

    def ends(self, name: str) -> None:
        self.run("UPDATE {leases} SET ends = '-infinity' WHERE name = %s", name)

    def step(self, name: str, after: State) -> None:
        """Do what a step says; what it takes for refused must be."""
        who, _, what = name.partition(": ")
        if not what:
            self.ends("keeper" if "keeper" in who else PARTITION)
            return
        kind, index = who.split()[0], int(who.split()[1])
        (self.worker if kind == "worker" else self.keeper)(index, what, after)

    def worker(self, index: int, what: str, after: State) -> None:
        if what == "balance":
            self.let_go(index)
            ending = ExitStack()
            connection = ending.enter_context(self.home.connected())
            worker = Worker(self.home, Records(), Holder(self.home, 10**6), connection)
            ending.callback(worker._holder._stop.set)
            self.ends(PARTITION)  # the model knows a process by its number, and the code by a code of this object
            worker._balance()
            assert list(worker._leases) == [PARTITION]
            self.workers[index], self.ending[index] = worker, ending
        elif what == "look":
            read = after.workers[index].read
            assert read is not None
            self.workers[index]._source.end = read[1]
        elif what == "dies":
            self.let_go(index)
        elif what == "write refused":
            with pytest.raises(LostError):
                self.workers[index]._read()
            self.let_go(index)
        else:
            self.workers[index]._read()
            if what == "write, unheard":
                self.let_go(index)

    def let_go(self, index: int) -> None:
        if self.workers.pop(index, None) is not None:
            self.ending.pop(index).close()

    def keeper(self, index: int, what: str, after: State) -> None:
        if what == "keep":
            self.leave(index)
            self.ends("keeper")
            journal = SharedJournal(self.home, self.ledger, 10**6)
            known = [positions for _, positions in journal.read()]
            journal.parts.resume(known[-1].get("parts", {}) if known else {})
            self.keepers[index], self.taken[index] = journal, []
        elif what == "take":
            with closing(self.keepers[index].parts.take()) as parts:
                self.taken[index].append(next(parts))
        elif what == "dies":
            self.leave(index)
        else:
            journal, parts = self.keepers[index], self.taken[index]
            frames = [part.frame for part in parts] or [pl.DataFrame(schema={"record": pl.Int64, WEIGHT: pl.Int64})]
            epoch = Epoch(pl.concat(frames), None)
            if what == "append refused":
                with pytest.raises(wpinq.EngineError, match="another process has taken over"):
                    journal.append(epoch, {})
                self.leave(index)
                return
            journal.append(epoch, {"parts": journal.parts.positions()})
            self.taken[index] = []
            if what == "append, unheard":
                self.leave(index)

    def leave(self, index: int) -> None:
        if (journal := self.keepers.pop(index, None)) is not None:
            journal._keeper.holder._stop.set()

    def state(self) -> tuple[list[list[int]], int]:
        """The records of each epoch, and how many parts wait."""
        probe = SharedJournal.__new__(SharedJournal)
        probe._home, probe.merged = self.home, None
        epochs = [sorted(epoch.frame["record"].to_list()) for epoch, _ in probe.read()]
        return epochs, self.run("SELECT count(*) FROM {parts}")[0][0]

    def end(self) -> None:
        for index in [*self.workers]:
            self.let_go(index)
        for index in [*self.keepers]:
            self.leave(index)

    def close(self) -> None:
        self.end()
        self.connected.close()


@pytest.fixture
def played(shared_ledger):
    with closing(wpinq.live({"record": "int"}, 1, ledger=shared_ledger, recover=shared_ledger,
                            secret=Secret(bytes(range(32))))) as views:  # fmt: skip
        home, ledger = views._journal.parts.home, views._data.ledger
    with closing(Played(home, ledger)) as result:
        yield result


@thin(16)
@pytest.mark.parametrize("seed", range(16))
def test_the_code_walks_as_the_model_does(played, seed):
    walk(played, seed)


@deep("checks that the code leaves out")
@pytest.mark.parametrize("left_out", ["check", "resume", "advance"])
def test_a_walk_finds_what_the_code_leaves_out(played, monkeypatch, left_out):
    owner = Parts if left_out == "resume" else Holder
    monkeypatch.setattr(owner, left_out, lambda *_: None)
    with pytest.raises((AssertionError, pytest.fail.Exception, wpinq.SourceError, StopIteration)):
        for seed in range(8):
            walk(played, seed)
            played.begin()


def walk(played: Played, seed: int) -> None:
    """Do random steps of the model, and compare."""
    draw, state, rules = random.Random(seed), State(), Rules(bounds=Bounds(6, 5, 6))
    for _ in range(100):
        ways = list(protocol.steps(state, rules))
        if not ways:
            break
        name, state = draw.choice(ways)
        played.step(name, state)
        epochs = [[record for first, end in epoch for record in range(first, end)] for epoch in state.epochs]
        assert played.state() == (epochs, len(state.parts)), name
        assert not protocol.wrong(state)
