"""The long mode of a fuzzer whose cases have a number each: seeds until time is up, one case again, or planted bugs."""

from __future__ import annotations

import argparse
import itertools
import os
import secrets
import time
import warnings
from collections.abc import Callable, Mapping

from attacks.fuzz.plants import Plant

Check = Callable[[int], list[str]]


def main(
    name: str, check: Check, show: Callable[[int], str], plants: Mapping[str, Plant], slow: Check | None = None
) -> int:
    """Run what the command line asks for; 1 where something was found, or a planted bug was not.

    Args:
        name: Of the module.
        check: What is wrong with the case of a number.
        show: The case of a number, for people.
        plants: Bugs by name.
        slow: What is wrong with it when it is tried in another way, which every tenth case is in the long mode.
    """
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(prog=name)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9))
    parser.add_argument("--case", type=int)
    parser.add_argument("--plant", nargs="?", const="all")
    asked = parser.parse_args()
    if asked.plant:
        missed = 0
        for one in [asked.plant] if asked.plant in plants else plants:
            seed, text, seconds = hunt(plants[one], check)
            missed += seed < 0
            print(f"{one:16} case {seed:4} {seconds:6.1f} CPU seconds  {text[:150]!r}", flush=True)
        return missed
    if asked.case is not None:
        print(show(asked.case), *check(asked.case), sep="\n")
        return 0
    end, found, number = time.monotonic() + 60 * asked.minutes, 0, asked.seed
    print(f"from seed {asked.seed}", flush=True)
    while time.monotonic() < end:
        own = slow if slow is not None and number % 10 == 9 else check
        if texts := own(number):
            found += 1
            print(f"\n== python -m {name} --case {number}", *texts[:3], show(number), sep="\n", flush=True)
        number += 1
    used = os.times()
    spent = used.user + used.system + used.children_user + used.children_system
    print(f"{number - asked.seed} cases, {found} with findings, {spent:.0f} CPU seconds")
    return 1 if found else 0


def hunt(plant: Plant, check: Check, most: float = 60) -> tuple[int, str, float]:
    """The first case that finds a plant and is right without it; and what it says, and after how many CPU seconds.

    Args:
        plant: The bug, with the case to begin with.
        check: What is wrong with the case of a number.
        most: CPU seconds after which it is given up.
    """
    begun = time.process_time()
    for seed in itertools.chain([plant.seed], itertools.count()):
        if time.process_time() - begun > most:
            break
        with plant.planted() as unused:
            texts = [text for text in check(seed) if text.startswith(tuple(plant.checks))]
        if texts and not check(seed):
            if unused:
                return (
                    -1,
                    f"it patches {', '.join(sorted(unused))}, which nothing uses any more",
                    time.process_time() - begun,
                )
            return seed, texts[0], time.process_time() - begun
    return -1, "not found", time.process_time() - begun
