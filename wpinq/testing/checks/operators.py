"""Neighbouring inputs through every operator: how far the output moves, against the stability that it is priced with.

Records are made up; each step is tried where one record is the unit, and where one person is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from random import Random
from typing import Any

from wpinq.collection import Collection
from wpinq.core import methods
from wpinq.core.engines import reference
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.stability import sensitivities
from wpinq.core.plan.unit import users
from wpinq.protection import protect
from wpinq.testing import judge
from wpinq.testing.case import Case
from wpinq.testing.checks.result import Result, judged
from wpinq.testing.checks.steps import BINARY, PAIR, UNARY, WHOLE, swap
from wpinq.testing.evaluation import BUDGET, distance, given_to, leaves
from wpinq.testing.trial import run

EXACT, COMPUTED = 30, 4
"""Pairs for each step and unit: of the definitions in fractions, and of the columns that answers come from."""
UNITS: Mapping[str, Any] = {"a record": None, "a person": users("a", at_most=2)}
SLACK = Fraction(1, 2**10)
"""What roundings by a dither may add; they do to joins of what is no whole number."""
BOUNDS: Mapping[str, Any] = {"at_most": lambda c: c.at_most(1)}
"""What there is for people alone."""
Rows = list[tuple[int, int]]


def defined(effort: float) -> Result:
    """By their definitions, operators move no further than they state."""
    number, problems, tried = max(round(EXACT * effort), 1), [], 0
    random = Random(0)  # noqa: S311  it makes records up
    for whom, unit in UNITS.items():
        words: dict[str, Any] = {"unit": unit, "columns": PAIR, "version": "1"}
        left, right = (protect([], BUDGET, name=name, **words) for name in ("left", "right"))
        for name, made in _steps(left, right):
            worst, pairs = _worst(made, random, number, people=unit is not None)
            tried += pairs
            if worst > 1:
                problems.append(f"{name}: {whom} moves it {float(worst):.3g} times as far as is stated")
    return judged(tried, "pairs", problems, _named(), 0)


def _worst(made: Collection, random: Random, number: int, *, people: bool) -> tuple[Fraction, int]:
    """The largest movement of neighbours, in parts of what is stated for the source with the unit; and how many."""
    root, worst = fit_noise(made._node), Fraction(0)
    stated = sensitivities(root)
    for _ in range(number):
        for data, most in stated.items():
            rows, unit_rows = neighbours(random, people=people)
            others, _ = neighbours(random, people=people)
            both = []
            for of_unit in ([], unit_rows):
                records = {"left": others, "right": others} | {data.name: rows + of_unit}
                names = dict.fromkeys(source.data.name for source in leaves(made))
                both.append(reference.run(root, given_to(root, [records[name] for name in names])))
            worst = max(worst, distance(*both) / most)
    return worst / (1 + SLACK), number * len(stated)


def computed(effort: float) -> Result:
    """As columns compute them: no histogram moves further than its noise hides, and each is what is defined."""
    number, problems, random = max(round(COMPUTED * effort), 1), [], Random(1)  # noqa: S311
    steps = len(UNARY) + len(WHOLE) + len(BINARY)
    for whom, unit in UNITS.items():
        for _ in range(number):
            others, of_unit = neighbours(random, people=unit is not None)
            with_one, without = (tuple((1, row) for row in rows) for rows in (of_unit, others))
            words = {} if unit is None else {"unit": unit}
            case = Case({"a": "integer", "b": "integer"}, without, with_one, words)
            problems += [f"{finding} ({whom} more)" for finding in _findings(case)]
    return judged(2 * number * steps, "pairs", problems, _named(), 0)


def _everything(views: Collection) -> list[Any]:
    """A measurement of each step."""
    return [made.measure(1, name=name) for name, made in _steps(views, views.map(swap))]


def _steps(left: Collection, right: Collection) -> Iterator[tuple[str, Collection]]:
    """Each step, from one collection or two."""
    people = BOUNDS if leaves(left)[0].data.unit.column is not None else {}
    yield from ((name, step(left)) for name, step in {**UNARY, **WHOLE, **people}.items())
    yield from ((name, step(left, right)) for name, step in BINARY.items())


def _findings(case: Case) -> Iterator[judge.Finding]:
    present, absent = run(_everything, case), run(_everything, case, own=False)
    yield from (judge.Finding("failed", text) for text in dict.fromkeys([*present.broken, *absent.broken]))
    yield from judge.flow(present, absent)
    yield from judge.movement(present, absent)
    yield from judge.loss(present, absent)
    yield from judge.defined(present, case)


def neighbours(random: Random, *, people: bool) -> tuple[Rows, Rows]:
    """Records of others, and those of one unit more: a record, or a person who has some."""
    pool = [random.randint(-1, 5) for _ in range(4)]
    rows = [(random.choice(pool), random.choice(pool)) for _ in range(random.choice((0, 1, 2, 3, 5, 8)))]
    first = random.choice(rows) if rows and random.random() < 0.4 else (random.choice(pool), random.choice(pool))
    if not people:
        return rows, [first]
    others = [row for row in rows if row[0] != first[0]]
    return others, [(first[0], random.choice(pool)) for _ in range(random.randint(1, 5))]


def untried() -> list[str]:
    """Operators that no step is named for."""
    tried = {name.split(":")[0] for name in {**UNARY, **WHOLE, **BINARY, **BOUNDS}}
    return sorted(set(methods.OPERATORS) - tried)


def _named() -> str:
    left = untried()
    beside = f"; no step for: {', '.join(left)}" if left else ""
    steps = len(UNARY) + len(WHOLE) + len(BINARY) + len(BOUNDS)
    return f"{len(set(methods.OPERATORS) - set(left))} operators in {steps} steps{beside}"
