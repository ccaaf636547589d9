"""A fuzzer of cases that are grown from seeds: search at random, and put bugs back to see that they are found."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fuzzer:
    """What makes cases and judges them.

    Attributes:
        grow: Makes a case of a seed.
        judge: What is wrong with it; nothing where all is well.
        plants: Bugs by name: what puts one back, and the first case that finds it.
        shrink: Makes a case with a finding smaller.
    """

    grow: Callable[[int], Any]
    judge: Callable[[Any], list[str]]
    plants: dict[str, tuple[Callable[[], Any], int]]
    shrink: Callable[[Any], Any] = lambda case: case

    def hunt(self, name: str, most: int = 1000) -> tuple[int, str]:
        """The first case that finds a bug and is right without it, and what it says."""
        plant, first = self.plants[name]
        for seed in (first, *range(most)):
            case = self.grow(seed)
            with plant():
                texts = self.judge(case)
            if texts and not self.judge(case):
                return seed, texts[0]
        return -1, "not found"

    def show(self) -> int:
        """Put the bugs back one by one, and print which case finds each, after how many processor seconds."""
        missed = 0
        for name in self.plants:
            begun = time.process_time()
            seed, text = self.hunt(name)
            missed += seed < 0
            print(f"{name:14} case {seed:4} {time.process_time() - begun:6.1f} s  {text[:150]!r}", flush=True)
        return missed

    def search(self, seed: int, minutes: float) -> int:
        """Random cases from a seed on, for so many minutes of the processor; 1 where something was found."""
        begun, number, found = time.process_time(), seed, 0
        print(f"from seed {seed}", flush=True)
        while time.process_time() < begun + 60 * minutes:
            case = self.grow(number)
            if texts := self.judge(case):
                found += 1
                print(f"\n== {number}: {texts[0]}", self.shrink(case), sep="\n", flush=True)
            number += 1
        spent = time.process_time() - begun
        print(f"{number - seed} cases in {spent:.0f} processor seconds, {found} with findings")
        return 1 if found else 0
