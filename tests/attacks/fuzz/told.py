"""Collections of the oracle: what each operator means, by the papers, in dictionaries and fractions.

Nothing of the package's plan, kernels or definitions is used. What cannot be said independently (which records of a
person a sample keeps, which records of a key come first, roundings by a dither) makes a collection unknown, and what
follows from it too.
"""

from __future__ import annotations

import inspect
import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction

import polars as pl
from attacks.fuzz import pools
from attacks.fuzz.equal import (
    Record,
    UnknownError,
    Weights,
    by_expression,
    canon,
    gathered,
    held,
    levels,
    moment,
    out_record,
    shrunk,
    wrapped,
)


class Told:
    """A collection as a function of when it is looked at: the closed epoch, and the window.

    Attributes:
        columns: Names and kinds, which are public.
    """

    def __init__(
        self, compute: Callable[[int, int | None], Weights], columns: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self._compute, self.columns = compute, columns
        self._memo: dict[tuple[int, int | None], Weights] = {}

    def at(self, epoch: int, window: int | None) -> Weights:
        if (epoch, window) not in self._memo:
            found = self._compute(epoch, window)
            self._memo[epoch, window] = {key: pair for key, pair in found.items() if pair[1] != 0}
        return self._memo[epoch, window]

    def _each(self, make: Callable[[Record], list[Record]]) -> Told:
        """Every record becomes some, which get its whole weight."""
        out: Told

        def compute(epoch: int, window: int | None) -> Weights:
            return gathered((new, w) for old, w in self.at(epoch, window).values() for new in make(old))

        out = Told(compute)
        return out

    def _call(self, function: object) -> Callable[[Record], object]:
        """A function of a record, by names of parameters or by position."""
        if not self.columns:
            raise UnknownError
        if isinstance(function, str):
            names = [one.strip().strip('"') for one in function.split(",")]
            places = [[name for name, _ in self.columns].index(name) for name in names]
            return lambda record: tuple(record[place] for place in places) if len(places) > 1 else record[places[0]]
        if isinstance(function, pl.Expr):
            raise UnknownError
        parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
        names = [name for name, _ in self.columns]
        if all(p.name in names and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters):
            places = [names.index(p.name) for p in parameters]
            return lambda record: function(*(record[place] for place in places))  # type: ignore[operator]
        return lambda record: function(*record)  # type: ignore[operator]

    def map(self, function: object, columns: object = None) -> Told:
        out: Told
        call = self._call(function)

        def make(record: Record) -> list[Record]:
            if not out.columns:  # a step in the middle of a line
                raise UnknownError
            return out_record(call, record, out.columns)

        out = self._each(make)
        return out

    def filter(self, function: object) -> Told:
        out: Told
        if isinstance(function, pl.Expr):
            out = self._each(lambda record: [record] if by_expression(function, record, self.columns) else [])
            out.columns = self.columns
            return out
        call = self._call(function)

        def passes(record: Record) -> bool:
            try:
                return bool(call(record))
            except Exception:
                return False

        out = self._each(lambda record: [record] if passes(record) else [])
        out.columns = self.columns
        return out

    def flat_map(self, function: object, columns: object = None, at_most: int | None = None) -> Told:
        out: Told
        parts, call = math.lcm(*range(1, (at_most or 16) + 1)), self._call(function)

        def compute(epoch: int, window: int | None) -> Weights:
            found = []
            for record, weight in self.at(epoch, window).values():
                try:
                    made = list(call(record))  # type: ignore[call-overload]
                except Exception:
                    continue
                kept = [wrapped(one, out.columns) for one in made]
                if None in kept:
                    continue
                found += [(new, weight * Fraction((parts + i) // len(kept), parts)) for i, new in enumerate(kept)]
            return gathered(found)  # type: ignore[arg-type]

        out = Told(compute)
        return out

    def shave(self, thickness: object = 1, name: str = "index") -> Told:
        given = thickness if isinstance(thickness, list) else [thickness]
        slices = [Fraction(one) for one in given]  # type: ignore[arg-type]

        def compute(epoch: int, window: int | None) -> Weights:
            found = []
            for record, weight in self.at(epoch, window).values():
                rest, index = abs(weight), 0
                while rest > 0:
                    cut = min(rest, slices[min(index, len(slices) - 1)])
                    index, rest = index + 1, rest - cut
                    if index > 10_000:
                        raise UnknownError
                    found.append(((*record, index), cut if weight > 0 else -cut))
            return gathered(found)

        return Told(compute)

    def distinct(self) -> Told:
        return self._pointwise(None, lambda one, _: min(max(one, Fraction(0)), Fraction(1)))

    def concat(self, other: Told) -> Told:
        return self._pointwise(other, lambda one, two: one + two)

    def subtract(self, other: Told) -> Told:
        return self._pointwise(other, lambda one, two: one - two)

    def union(self, other: Told) -> Told:
        return self._pointwise(other, max)

    def intersect(self, other: Told) -> Told:
        return self._pointwise(other, min)

    def _pointwise(self, other: Told | None, rule: Callable[[Fraction, Fraction], Fraction]) -> Told:
        def compute(epoch: int, window: int | None) -> Weights:
            one, two = self.at(epoch, window), other.at(epoch, window) if other else {}
            none: tuple[Record, Fraction] = ((), Fraction(0))
            return {k: ({**two, **one}[k][0], rule(one.get(k, none)[1], two.get(k, none)[1])) for k in {**one, **two}}

        return Told(compute)

    def _key(self, key: object) -> Callable[[Record], object]:
        """The key of a record, which must be comparable: a tuple of several columns, or a value, which may be one."""
        if isinstance(key, str):
            place = [name for name, _ in self.columns].index(key)
            return lambda record: record[place]
        call = self._call(key)

        def made(record: Record) -> object:
            found = call(record)
            canon(found)
            return found

        return made

    def group_by(self, key: object, reduce: object = None, columns: object = None, whole: bool = False) -> Told:
        out: Told
        made, reduced = self._key(key), len(columns) if columns else 1  # type: ignore[arg-type]

        def compute(epoch: int, window: int | None) -> Weights:
            if not out.columns:  # a step in the middle of a line
                raise UnknownError
            groups: dict[object, tuple[Record, list[tuple[Record, Fraction]]]] = {}
            for record, weight in self.at(epoch, window).values():
                for own in out_record(made, record, out.columns[:-reduced]):
                    groups.setdefault(canon(own), (own, []))[1].append((record, weight))
            found = []
            for own, members in groups.values():
                for group, weight in levels(members, whole):
                    if reduce is not len and reduce is not None:
                        raise UnknownError  # the order of a group is canonical, and says nothing
                    if reduce is None:
                        raise UnknownError
                    found.append(((*own, group), weight))
            return gathered(found)

        out = Told(compute)
        return out

    def limit(self, *_: object) -> Told:
        return unknown()

    semijoin = antijoin = limit

    def join(self, other: Told, on: str, at_most: int | None = None) -> Told:
        mine, others = ([name for name, _ in one.columns] for one in (self, other))
        at, there = mine.index(on), others.index(on)

        def compute(epoch: int, window: int | None) -> Weights:
            one, two = list(self.at(epoch, window).values()), list(other.at(epoch, window).values())
            if any(weight.denominator != 1 for _, weight in (*one, *two)):
                raise UnknownError  # a finer resolution has another K, or a dither
            total: dict[object, Fraction] = defaultdict(Fraction)
            for rows, place in ((one, at), (two, there)):
                for record, weight in rows:
                    total[canon(record[place])] += abs(weight)
            found = []
            for left, a in one:
                for right, b in two:
                    if canon(left[at]) == canon(right[there]):
                        rest = [v for i, v in enumerate(left) if i != at] + [
                            v for i, v in enumerate(right) if i != there
                        ]
                        found.append(((left[at], *rest), a * b * shrunk(total[canon(left[at])], at_most)))
            return gathered(found)

        return Told(compute)

    def partition(self, key: str, parts: list[object]) -> Parts:
        place = [name for name, _ in self.columns].index(key)
        kind = dict(self.columns)[key]

        def part(value: object) -> Told:
            wanted = canon(held(value, kind))
            found = self._each(lambda record: [record] if canon(record[place]) == wanted else [])
            found.columns = self.columns
            return found

        return Parts(part)

    def window(self, length: object, at: str) -> Told:
        span = {"1m": 60_000_000, "1d": pools.DAY}.get(str(length)) or int(str(length))
        place = [name for name, _ in self.columns].index(at)

        def compute(epoch: int, window: int | None) -> Weights:
            if window is None:
                raise UnknownError
            return {
                key: pair for key, pair in self.at(epoch, window).items()
                if pair[0][place] is not None and moment(pair[0][place]) // span == window
            }  # fmt: skip

        return Told(compute)

    def measure(self, *_: object, **__: object) -> Told:
        return self

    select = measure


class Parts:
    def __init__(self, part: Callable[[object], Told]) -> None:
        self._part = part

    def __getitem__(self, value: object) -> Told:
        return self._part(value)


def unknown() -> Told:
    def compute(*_: object) -> Weights:
        raise UnknownError

    return Told(compute)
