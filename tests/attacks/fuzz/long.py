"""The long mode of the fuzzers beside `attacks.fuzz` itself, and their old bugs that are put back.

Each is a function from a seed to what is wrong, and some plants:

    python -m attacks.fuzz.NAME [--minutes M] [--seed S]     cases from a random seed on, until time is up
    python -m attacks.fuzz.NAME --case S                     one case again
    python -m attacks.fuzz.NAME --plant [WHICH]              put old bugs back, and show what finds them
"""

from __future__ import annotations

import argparse
import itertools
import secrets
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

SECONDS = 60
"""Of processor time, within which a plant is found."""


@dataclass(frozen=True)
class Fuzzer:
    """A fuzzer.

    Attributes:
        name: Of its file.
        judge: What is wrong in the case of a seed.
        plants: Old bugs by name; each puts one back while it is open.
        done: How much was looked at in this process, for reports: counts by name.
        seeds: For each plant a case that finds it; where the generator has moved, another one does.
    """

    name: str
    judge: Callable[[int], list[str]]
    plants: Mapping[str, Callable[[], AbstractContextManager[object]]]
    done: dict[str, int]
    seeds: Mapping[str, int]

    def hunt(self, plant: str) -> tuple[int, str, float]:
        """The first case that finds a plant and is right without it, what it says, and after how much time."""
        begun = time.process_time()
        for seed in itertools.chain([self.seeds.get(plant, 0)], itertools.count()):
            with self.plants[plant]():
                texts = self.judge(seed)
            if texts and not self.judge(seed):
                return seed, texts[0], time.process_time() - begun
            if time.process_time() - begun > SECONDS:
                break
        return -1, "not found", time.process_time() - begun

    def main(self) -> int:
        """Run what the command line asks for; 1 where something was found, or a plant was not."""
        warnings.simplefilter("ignore")
        parser = argparse.ArgumentParser(prog=f"attacks.fuzz.{self.name}")
        parser.add_argument("--minutes", type=float, default=10)
        parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9))
        parser.add_argument("--case", type=int)
        parser.add_argument("--plant", nargs="?", const="all")
        asked = parser.parse_args()
        if asked.plant:
            return self._show([asked.plant] if asked.plant in self.plants else list(self.plants))
        if asked.case is not None:
            print(*self.judge(asked.case), sep="\n")
            return 0
        return self._search(asked.seed, asked.minutes)

    def _search(self, seed: int, minutes: float) -> int:
        begun, found, number = time.process_time(), 0, seed
        while time.process_time() - begun < 60 * minutes:
            if texts := self.judge(number):
                found += 1
                print(f"\n== python -m attacks.fuzz.{self.name} --case {number}", *texts[:3], sep="\n", flush=True)
            number += 1
        seconds = time.process_time() - begun
        print(f"{number - seed} cases from seed {seed} in {seconds:.0f} s of processor time, {found} with findings")
        print(", ".join(f"{many:,} {name}" for name, many in self.done.items()))
        return 1 if found else 0

    def _show(self, plants: list[str]) -> int:
        missed = 0
        for one in plants:
            seed, text, seconds = self.hunt(one)
            missed += seed < 0
            print(f"{one:20} case {seed:4} {seconds:6.1f} s  {text[:150]!r}", flush=True)
        return missed
