"""A fuzzer of cases that are grown from seeds: search at random, look at one case, and put bugs back to be found."""

from __future__ import annotations

import gc
import itertools
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from attacks.fuzz.plant import Plant

SECONDS = 60
"""CPU seconds within which a plant is found."""


def spent() -> float:
    """The CPU seconds of this process and of its children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


class Found(NamedTuple):
    """The case that finds a plant, or -1; what it says, and after how many CPU seconds."""

    seed: int
    text: str
    seconds: float


@dataclass(frozen=True)
class Fuzzer:
    """What makes cases and judges them.

    Attributes:
        name: By which the command line knows it.
        grow: Makes the case of a seed; of a seed and a theme, where there are themes.
        judge: What is wrong with a case; nothing where all is well.
        plants: Bugs by name.
        show: A case as text.
        shrink: Makes a case with a finding smaller.
        does: What a case does, for who looks at one.
        slow: What is wrong with a case that is tried in another way, as every tenth case is.
        themes: What cases can be about.
        seen: How much was looked at in this process: counts by name.
    """

    name: str
    grow: Callable[..., Any]
    judge: Callable[[Any], list[str]]
    plants: Mapping[str, Plant]
    show: Callable[[Any], str] = str
    shrink: Callable[[Any], Any] = lambda case: case
    does: Callable[[Any], Iterable[object]] = lambda case: ()
    slow: Callable[[Any], list[str]] | None = None
    themes: Collection[str] = ()
    seen: Mapping[str, int] = field(default_factory=dict)

    def case(self, seed: int, theme: str = "") -> Any:
        """The case of a seed."""
        return self.grow(seed, theme) if theme else self.grow(seed)

    def wrong(self, seed: int, theme: str = "") -> str:
        """What is wrong with the case of a seed, and what tries it again; nothing where all is well."""
        texts = self.judge(self.case(seed, theme))
        return "\n".join([self.again(seed, theme), *texts]) if texts else ""

    def again(self, seed: int, theme: str = "") -> str:
        """The command that tries a case again."""
        return f"python -m attacks.fuzz --of {self.name} --case {seed}" + (f" --theme {theme}" if theme else "")

    def look(self, seed: int, theme: str = "") -> int:
        """Print one case, and all that is wrong with it; 1 where something is."""
        case = self.case(seed, theme)
        texts = self.judge(case) + (self.slow(case) if self.slow and is_slow(seed) else [])
        print(self.show(case), *self.does(case), *texts, sep="\n")
        return 1 if texts else 0

    def search(self, seed: int, minutes: float, theme: str = "") -> int:
        """Try cases from a seed on, for so many minutes of the CPU; 1 where something was found."""
        begun, found, number = spent(), 0, seed
        print(f"from seed {seed}", flush=True)
        gc.collect()
        gc.freeze()  # a case makes many small objects: what was there before need not be looked through with them
        while spent() - begun < 60 * minutes:
            case = self.case(number, theme)
            if texts := (self.slow if self.slow and is_slow(number) else self.judge)(case):
                found += 1
                small = self.show(self.shrink(case))
                print(f"\n== {self.again(number, theme)}", *texts[:3], small, sep="\n", flush=True)
            number += 1
        seconds, cases = spent() - begun, number - seed
        counts = "".join(f", {many:,} {name}" for name, many in self.seen.items())
        print(f"{cases} cases{counts}, {found} with findings, {seconds:.0f} CPU seconds")
        print("rate", self.name, theme or "any", f"{seed}-{number - 1}", cases, f"{seconds:.1f}", sep="\t")
        return 1 if found else 0

    def hunt(self, name: str, seconds: float = SECONDS) -> Found:
        """The first case that finds a plant and is right without it, from the one that did."""
        plant, begun = self.plants[name], spent()
        for seed in itertools.chain([plant.seed], itertools.count()):
            with plant.planted() as unused:
                case = self.case(seed, plant.theme)
                texts = [text for text in self.judge(case) if text.startswith(tuple(plant.checks) or "")]
            if texts and not self.judge(case):
                if unused:
                    stale = f"it patches {', '.join(sorted(unused))}, which nothing uses any more"
                    return Found(-1, stale, spent() - begun)
                return Found(seed, texts[0], spent() - begun)
            if spent() - begun > seconds:
                break
        return Found(-1, "not found", spent() - begun)

    def put_back(self, names: Iterable[str]) -> int:
        """Put bugs back one by one, and print which case finds each; 1 where one is not found."""
        missed = 0
        for name in names:
            seed, text, seconds = self.hunt(name)
            missed += seed < 0
            print(f"{name:16} case {seed:4} {seconds:6.1f} CPU seconds  {text[:150]!r}", flush=True)
        return 1 if missed else 0


def is_slow(seed: int) -> bool:
    """Whether a case is one of those that are tried in another way."""
    return seed % 10 == 9
