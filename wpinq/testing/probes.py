"""Whether the functions of a dataflow are functions of their record, and the same called one by one as in columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import polars as pl

from wpinq.core.engines import reference
from wpinq.core.functions.function import Dropped, Function
from wpinq.core.operators.filter import Filter
from wpinq.core.plan.node import Node, Record, Source, steps
from wpinq.core.records.kinds import PHYSICAL, read, series, write
from wpinq.core.records.values import decode, encode
from wpinq.testing.case import Case
from wpinq.testing.evaluation import weighed
from wpinq.testing.judge import Finding
from wpinq.testing.trial import Trace, run
from wpinq.testing.watch import windowed

PROBES, CALLS = 40, 64
"""Records that a function is tried on, and calls of it, so that one that draws its answer is found: about."""
ROW = "\0row"


def used(walk: Iterable[Node]) -> list[tuple[Node, Function]]:
    """The user's functions in some steps, each with its step."""
    return [
        (node, value)
        for node in walk
        for value in (getattr(node, field.name) for field in dataclasses.fields(node))  # type: ignore[arg-type]
        if isinstance(value, Function)
    ]


def probed(dataflow: Callable[..., Any], case: Case, notes: dict[str, None], **words: Any) -> Iterator[Finding]:
    """Try each function on the records that reach its step, and note what its author may not know.

    The dataflow is written twice. The records that reach a step are those of the first plan, and the functions of the
    second are called for the first time here, so that one that remembers has nothing to remember yet.

    Args:
        dataflow: Is given the protected collection.
        case: The records.
        notes: Gets what is no fault.
        words: What `trial.run` is told besides.
    """
    plans = [planned(run(dataflow, case, answer=False, **words)) for _ in range(2)]
    walk, fresh = (steps(*roots) if roots else () for roots in plans)
    rows = [row for _, row in case.rows(own=True)]
    records = {step: weighed(step, rows) for step in walk if isinstance(step, Source)}
    if len(records) != 1 or [type(step) for step in walk] != [type(step) for step in fresh]:
        return
    reached = dict(zip(fresh, reference.run_reference(walk, records), strict=True))
    for node, function in used(fresh):
        if function.fingerprint is None:
            notes[
                f"{node.title}: its function has no fingerprint, so each question about it is new and charged again. "
                "Where it looks at a clock, a random number or a file, its answers are not those of a function."
            ] = None
        if len(node.inputs) == 1 and function.schema == node.inputs[0].schema:
            yield from tried(node, function, list(reached[node.inputs[0]])[:PROBES], notes)


def planned(trace: Trace) -> list[Node]:
    """The plans of a run that have an answer of their own: windows are looked at one by one."""
    questions = [asked_.question for asked_ in trace.watched.questions]
    return [question.node for question in questions if not windowed(question)]


def tried(node: Node, function: Function, records: list[Record], notes: dict[str, None]) -> Iterator[Finding]:
    """One function on some records: again and again, in two orders, and in columns."""
    call: Callable[[Record], Any] = function.test if isinstance(node, Filter) else function.call
    first = [image(call, record) for record in records]
    for _ in range(max(1, CALLS // max(1, len(records)))):
        again = [image(call, record) for record in reversed(records)][::-1]
        for record, value, repeated in zip(records, first, again, strict=True):
            if value != repeated:
                yield Finding(
                    "function",
                    f"{node.title} is no function of its record: for {record} it gives {printed(value)}, and then "
                    f"{printed(repeated)}",
                )
                return
    for record, value in zip(records, first, strict=True):
        if value is None and not isinstance(node, Filter):
            notes[f"{node.title}: its function has no value for some records, such as {record}; they are dropped, "
                  "uncounted."] = None  # fmt: skip
    if any(column.ranged for column in function.schema):
        return
    for record, value, in_columns in zip(records, first, columnar(node, function, records), strict=True):
        if value != in_columns:
            yield Finding("function", f"{node.title} differs when it is computed in columns: for {record} it gives "
                          f"{printed(value)} when called, and {printed(in_columns)} in columns")  # fmt: skip
            return


def image(call: Callable[[Record], Any], record: Record) -> bytes | None:
    """What a function gives, in canonical form; None where it has no value."""
    try:
        result = call(record)
    except Dropped:
        return None
    return encode(tuple(result) if isinstance(result, tuple) else (bool(result),))


def columnar(node: Node, function: Function, records: list[Record]) -> list[bytes | None]:
    """The same for all records at once, as engines compute it."""
    cells = [
        series(column.name, [write(record[index], column.kind) for record in records], column.kind)
        for index, column in enumerate(function.schema)
    ]
    frame = pl.DataFrame([*cells, pl.Series(ROW, range(len(records)), dtype=pl.Int64)])
    if isinstance(node, Filter):
        return [encode((bool(passes),)) for passes in function.predicate(frame).fill_null(value=False).to_list()]
    results: list[bytes | None] = [None] * len(records)
    made = function.apply(frame, [ROW])
    kinds = [column.kind for column in function.output]
    stored = [made[column.name].to_physical() if kind in PHYSICAL else made[column.name]
              for column, kind in zip(function.output, kinds, strict=True)]  # fmt: skip
    for row, *values in zip(made[ROW], *stored, strict=True):
        results[row] = encode(tuple(read(value, kind) for value, kind in zip(values, kinds, strict=True)))
    return results


def printed(image: bytes | None) -> str:
    """A result as people read it; the records are made up."""
    return "nothing" if image is None else repr(decode(image))
