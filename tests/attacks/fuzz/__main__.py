"""The command line of all fuzzers.

python -m attacks.fuzz [--of NAME] [--minutes M] [--seed S] [--theme T]   random cases, from a random seed by default
python -m attacks.fuzz [--of NAME] --case S [--theme T]                   one case again, with all that it does
python -m attacks.fuzz [--of NAME] --plant [WHICH]                        put bugs back, and show what finds them

The last line of a search is for records: the fuzzer, the theme, the seeds, how many cases, and CPU seconds.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import warnings
from importlib import import_module

from attacks.fuzz.fuzzer import Fuzzer

NAMES = ("cases", "lengths", "divergences", "queries", "databases", "zones", "restarts", "readers", "streams", "served")
"""Of the fuzzers, each a `FUZZER` in the module of its name; only the one that is asked for is imported."""


def named(name: str) -> Fuzzer:
    """The fuzzer of a name."""
    found: Fuzzer = import_module(f"attacks.fuzz.{name}").FUZZER
    return found


def main(words: list[str] | None = None) -> int:
    """Run what the command line asks for; 1 where something was found, or a bug that was put back was not."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(prog="attacks.fuzz")
    parser.add_argument("--of", choices=NAMES, default="cases")
    parser.add_argument("--minutes", type=float, default=10, help="of the CPU")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9))
    parser.add_argument("--case", type=int)
    parser.add_argument("--theme", default="")
    parser.add_argument("--plant", nargs="?", const="")
    asked = parser.parse_args(words)
    fuzzer = named(asked.of)
    if asked.theme and asked.theme not in fuzzer.themes:
        parser.error(f"the themes of {fuzzer.name} are: {', '.join(sorted(fuzzer.themes)) or 'none'}")
    if asked.plant and asked.plant not in fuzzer.plants:
        parser.error(f"the plants of {fuzzer.name} are: {', '.join(sorted(fuzzer.plants))}")
    if asked.plant is not None:
        return fuzzer.put_back([asked.plant] if asked.plant else fuzzer.plants)
    if asked.case is not None:
        return fuzzer.look(asked.case, asked.theme)
    return fuzzer.search(asked.seed, asked.minutes, asked.theme)


if __name__ == "__main__":
    sys.exit(main())
