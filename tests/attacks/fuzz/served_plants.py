"""Bugs of a server, put into the code of today: each tells what records are there, and a case finds each."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
from attacks.fuzz import served

from wpinq.errors import PlanError
from wpinq.plan.node import sources
from wpinq.serve import curating, measured, measuring, questions


@dataclass(frozen=True)
class Plant:
    """A bug.

    Attributes:
        what: In a few words.
        place: The module of which a name is replaced.
        name: The name.
        made: What it is replaced by, from what it was.
        seed: Of the case that finds it; where the generator has moved, another one does.
    """

    what: str
    place: Any
    name: str
    made: Callable[[Any], Any]
    seed: int = 0


def _size(data: Any) -> int:
    return int(data.reader.total_bytes or 0)


def _absent(was: Any) -> Any:
    async def observed(made: Any, wanted: Any, most: int) -> Any:
        found = await was(made, wanted, most)
        there = made._settled()[0].content()[0]
        if len(wanted.bins or ()) > len(there):
            raise measured.RefusedError(403)
        return found

    return observed


def _priced(was: Any) -> Any:
    def priced(asked: Any, analyst: Any) -> Any:
        found = was(asked, analyst)
        return msgspec.structs.replace(found, more=found.more + _size(asked.quotes[0].sources[0]))

    return priced


def _counted(was: Any) -> Any:
    def quoted(body: Any, grant: Any, catalogue: Any) -> Any:
        try:
            return was(body, grant, catalogue)
        except PlanError as error:
            text = (Path(catalogue.home) / "views.csv").read_text()
            raise PlanError(f"{error} (of {text.count(chr(10))})") from None

    return quoted


def _numbered(was: Any) -> Any:
    def told(of: Any, curator: Any) -> Any:
        size, found = _size(sources(of.views._node)[0]), was(of, curator)
        entries = [msgspec.structs.replace(one, number=one.number + size) for one in found.entries]
        return msgspec.structs.replace(found, entries=entries)

    return told


PLANTS = {
    "absent": Plant("bins are refused by how many there are", measured, "observed", _absent, 15),
    "priced": Plant("a price depends on how large the file is", questions, "priced_sql", _priced),
    "counted": Plant("a refusal counts records", measuring, "_quoted", _counted, 2),
    "numbered": Plant("rows of a ledger are numbered by how large the file is", curating, "_told", _numbered, 8),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Put a bug into the code."""
    plant = PLANTS[name]
    with patch.object(plant.place, plant.name, plant.made(getattr(plant.place, plant.name))):
        yield


def hunt(name: str, seconds: float = 60) -> tuple[int, float, list[str]]:
    """The first case that finds a bug, from its seed on; -1 where none does within so many seconds of the processor."""
    begun = time.process_time()
    with planted(name):
        for seed in itertools.count(PLANTS[name].seed):
            texts = served.judge(served.grow(seed))
            took = time.process_time() - begun
            if texts or took > seconds:
                return (seed if texts else -1), took, texts
    return -1, 0.0, []


def show(name: str) -> int:
    """Put bugs in, and print what finds them; 1 where one is not found."""
    missed = 0
    for each in PLANTS if name == "all" else [name]:
        seed, took, texts = hunt(each)
        missed += seed < 0
        print(
            f"{each}: {PLANTS[each].what}: case {seed}, {took:.1f} s of the processor",
            *texts[:1],
            sep="\n  ",
            flush=True,
        )
    return 1 if missed else 0
