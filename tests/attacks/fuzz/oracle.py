"""Whether each histogram is the one that the definitions give: the lines of a case, read again with the oracle's
collections in place of the protected ones."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

from attacks.fuzz import pools
from attacks.fuzz.case import Case, Table
from attacks.fuzz.equal import UnknownError, Weights, canon, gathered, held
from attacks.fuzz.names import NAMES
from attacks.fuzz.run import QuotedAggregate, Trace
from attacks.fuzz.told import Told, unknown

from wpinq.core.records.bins import bin_frame
from wpinq.core.records.identity import identities
from wpinq.core.state.histogram import is_steps
from wpinq.errors import BinError


def source(table: Table) -> Told:
    """The records of a table, weighed as its unit says."""
    kinds = [kind for _, kind in table.columns]

    def compute(epoch: int, window: int | None) -> Weights:
        rows = [row for row, e in zip(table.rows, table.epochs or [0] * len(table.rows), strict=True) if e <= epoch]
        plain = [tuple(held(pools.python(v, k), k) for v, k in zip(row, kinds, strict=True)) for row in rows]
        if table.span or "at_most" in table.unit or ("users" in table.unit and window is not None):
            raise UnknownError
        if "weight=" in table.unit:
            most = 2**53 - 1 if "2**53" in table.unit else 2
            fine = 1 if dict(table.columns)["w"] == "integer" else 1000
            if most * fine >= 2**53:
                raise UnknownError
            place = table.names.index("w")
            return gathered((row[:place] + row[place + 1 :], weighed(row[place], most, fine)) for row in plain)
        return gathered((row, Fraction(1)) for row in plain)

    plain = Told(compute, table.columns)
    if "shared" not in table.unit:
        return plain
    return Shared(plain, table.names.index("user"), asked_first=not table.live)


class Shared(Told):
    """Records of people who share a weight of 1; what is asked right after `protect` is asked before they do."""

    def __init__(self, records: Told, user: int, *, asked_first: bool) -> None:
        def compute(epoch: int, window: int | None) -> Weights:
            count: dict[object, Fraction] = defaultdict(Fraction)
            for row, weight in records.at(epoch, window).values():
                count[canon(row[user])] += weight
            return gathered(
                (row, weight * Fraction(720_720 // int(count[canon(row[user])]), 720_720))
                for row, weight in records.at(epoch, window).values()
            )

        super().__init__(compute, records.columns)
        self._records, self._user, self._asked_first = records, user, asked_first

    def filter(self, function: object) -> Told:
        if not self._asked_first:
            return super().filter(function)
        return Shared(self._records.filter(function), self._user, asked_first=True)


def weighed(value: object, most: int, fine: int) -> Fraction:
    if value is None or value != value:
        return Fraction(0)
    if value < 0 and -value * fine > 2**52:  # type: ignore[operator]
        raise UnknownError  # halves of such numbers are no doubles, and a step more or less is rounding
    return Fraction(math.floor(min(max(value, -most), most) * fine + Fraction(1, 2)), fine)  # type: ignore[type-var, arg-type, call-overload, operator]


def check(case: Case, trace: Trace) -> Iterator[str]:
    """Each histogram is the one that the definitions give."""
    told, epochs = read_again(case, trace)
    for asked in trace.asked:
        meant = told.get(asked.line)
        if meant is None or asked.content is None or not agreed(asked):
            continue
        try:
            wanted = as_content(meant.at(epochs[asked.line], window_of(asked)), asked)
        except (UnknownError, RecursionError):
            continue
        except BinError as error:
            yield f"C line {asked.line}: no such bin: {error}"
            continue
        if wanted != written_out(asked):
            yield f"C line {asked.line}: the histogram is not the one that is defined"


def agreed(asked: QuotedAggregate) -> bool:
    return asked.question.node.resolution < 2**40 and type(asked.question).__name__ in ("Measurement", "Selection")


def window_of(asked: QuotedAggregate) -> int | None:
    from wpinq.core.operators.window import Window
    from wpinq.core.plan.node import steps

    found = {node.number for node in steps(asked.question.node) if isinstance(node, Window)}
    return found.pop() if found else None


def read_again(case: Case, trace: Trace) -> tuple[dict[int, Told], dict[int, int]]:
    """The lines with collections of the oracle: for each that asks, what it asks about, and at which epoch."""
    epoch = [0]
    live = any(table.live for table in case.tables)
    tables = [source(table) for table in case.tables]

    def advance(*_: object) -> None:
        epoch[0] += 1

    def double(one: Told, times: int) -> Told:
        factor = 2**times
        return Told(lambda e, w: {k: (r, weight * factor) for k, (r, weight) in one.at(e, w).items()}, one.columns)

    env: dict[str, object] = dict(NAMES, table=lambda number: tables[number], advance=advance, double=double)
    told, epochs = {}, {}
    for number, line in enumerate(case.lines):
        name = line.split(" = ")[0]
        if trace.events[number][0] != "done":
            continue
        try:
            exec(line, env)
        except Exception:
            env[name] = unknown()
        found = env.get(name)
        if isinstance(found, Told) and name in trace.columns:
            found.columns = trace.columns[name]
        if isinstance(found, Told) and name not in trace.columns:
            told[number], epochs[number] = found, epoch[0] + live
    return told, epochs


def as_content(weights: Weights, asked: QuotedAggregate) -> dict[object, int]:
    """Weights by the identity of the record, as the public answer to a bin finds them."""
    node = asked.question.node
    records = [record for record, _ in weights.values()]
    units = [weight * node.resolution for _, weight in weights.values()]
    if any(unit.denominator != 1 for unit in units):
        raise UnknownError
    if is_steps(node.schema):
        return {record[0]: int(unit) for record, unit in zip(records, units, strict=True)}
    if not records:
        return {}
    bins = [record[0] for record in records] if len(node.schema) == 1 else records
    found = identities(bin_frame(bins, node.schema), node.schema, asked.question.key_owner.identity_key)
    return {tuple(one): int(unit) for one, unit in zip(found.tolist(), units, strict=True)}


def written_out(asked: QuotedAggregate) -> dict[object, int]:
    content = asked.content or {}
    if not is_steps(asked.question.node.schema):
        return {key: weight for key, weight in content.items() if weight}
    if sum(end - start for start, end in content) > 100_000:  # type: ignore[misc]
        return {}
    return {at: weight for (start, end), weight in content.items() for at in range(start, end)}  # type: ignore[misc]
