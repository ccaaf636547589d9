"""Random programs over the public face, with and without one privacy unit."""

from __future__ import annotations

from attacks.fuzz.case import Case
from attacks.fuzz.fuzzer import Fuzzer
from attacks.fuzz.grow import grow
from attacks.fuzz.judge import judge
from attacks.fuzz.plants import PLANTS
from attacks.fuzz.run import run
from attacks.fuzz.shrink import shrink
from attacks.fuzz.themes import THEMES

FUZZER = Fuzzer("cases", grow, judge, PLANTS, Case.program, shrink, lambda case: run(case).events, themes=tuple(THEMES))
