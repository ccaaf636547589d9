"""The long mode: random cases until time is up; each finding is made small and printed as a program.

python -m attacks.fuzz [--minutes M] [--seed S] [--theme NAME]   random cases, from a random seed by default
python -m attacks.fuzz --case S [--theme NAME]                   one case again, with all that it does
python -m attacks.fuzz --plant [NAME]                            put old bugs back, and show what finds them
python -m attacks.fuzz --of readers [--minutes M] [--seed S]     files with and without a record; --plant for its bugs
python -m attacks.fuzz --of streams [--minutes M] [--seed S]     continual keys of streams with and without a unit
python -m attacks.fuzz --served [--minutes, --seed, --case, --plant]   the same of servers
"""

from __future__ import annotations

import argparse
import logging
import secrets
import sys
import time
import warnings

from attacks.fuzz import plants, readers, streams
from attacks.fuzz.grow import grow
from attacks.fuzz.judge import WAYS, judge
from attacks.fuzz.run import run
from attacks.fuzz.shrink import shrink
from attacks.fuzz.themes import THEMES

OTHERS = {"readers": readers.FUZZER, "streams": streams.FUZZER}


def main() -> int:
    """Run what the command line asks for; 1 where something was found."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(prog="attacks.fuzz")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9))
    parser.add_argument("--case", type=int)
    parser.add_argument("--theme", default="", choices=["", *THEMES])
    parser.add_argument("--plant", nargs="?", const="all")
    parser.add_argument("--of", choices=sorted(OTHERS))
    parser.add_argument("--served", action="store_true")
    asked = parser.parse_args()
    if asked.served:
        return of_servers(asked)
    if asked.of:
        other = OTHERS[asked.of]
        return other.show() if asked.plant else other.search(asked.seed, asked.minutes)
    if asked.plant:
        return plants.show(asked.plant)
    if asked.case is not None:
        case = grow(asked.case, asked.theme)
        trace = run(case)
        print(case.program(), *trace.events, *judge(case, WAYS[asked.case % 4]), sep="\n")
        return 0
    return search(asked.seed, asked.minutes, asked.theme)


def of_servers(asked: argparse.Namespace) -> int:
    """What the command line asks for of servers."""
    from attacks.fuzz import served, served_plants

    logging.disable(logging.CRITICAL)
    if asked.plant:
        return served_plants.show(asked.plant)
    end, number, found = time.monotonic() + 60 * asked.minutes, asked.case or asked.seed, 0
    print(f"from seed {number}", flush=True)
    while True:
        if texts := served.judge(served.grow(number)):
            found += 1
            print(f"\n== python -m attacks.fuzz --served --case {number}", *texts, sep="\n", flush=True)
        number += 1
        if asked.case is not None or time.monotonic() > end:
            break
    cases, took = number - (asked.case or asked.seed), time.process_time()
    print(f"{cases} cases, {found} with findings, {took:.0f} s of the processor")
    return 1 if found else 0


def search(seed: int, minutes: float, theme: str) -> int:
    """Random cases from a seed on."""
    end, found, number = time.monotonic() + 60 * minutes, 0, seed
    print(f"from seed {seed}", flush=True)
    while time.monotonic() < end:
        case, way = grow(number, theme), WAYS[number % 4]
        if texts := judge(case, way):
            found += 1
            again = f"python -m attacks.fuzz --case {number}" + (f" --theme {theme}" if theme else "")
            small = shrink(case, way)
            print(f"\n== {again}", *texts[:3], small.program(), sep="\n", flush=True)
        number += 1
    print(f"{number - seed} cases, {found} with findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
