"""Make a failing case small: fewer lines, fewer records, as long as it fails alike."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from attacks.fuzz.case import Case
from attacks.fuzz.judge import judge


def shrink(case: Case, seconds: float = 30) -> Case:
    """A smaller case whose first finding is of the same kind."""
    end, kind = time.monotonic() + seconds, judge(case)[0][:1]
    smaller: Case | None = case
    while smaller is not None:
        case, smaller = smaller, None
        for one in simpler(case):
            if time.monotonic() > end:
                return case
            if any(text.startswith(kind) for text in judge(one)):
                smaller = one
                break
    return case


def simpler(case: Case) -> Iterator[Case]:
    """The same without one line, or without one record."""
    for number in reversed(range(len(case.lines))):
        yield replace(case, lines=case.lines[:number] + case.lines[number + 1 :])
    for number, table in enumerate(case.tables):
        for row in range(len(table.rows)):
            if (number, row) in case.places:
                continue
            kept = table.kept([place for place in range(len(table.rows)) if place != row])
            places = tuple((n, at - (n == number and at > row)) for n, at in case.places)
            yield replace(case, tables=(*case.tables[:number], kept, *case.tables[number + 1 :]), places=places)
