"""Windows within a person: `ROW_NUMBER() OVER (PARTITION BY user ORDER BY at)` in a subquery, and QUALIFY.

A window looks at the other records of its partition. Where a column of PARTITION BY bounds it, which one does that
names the person, this is `group_by(whole=True)` of that column and then `flat_map(whole=True)` of as many records as a
key of it can have at the most: of a person who comes or goes so many records move, as before. What else bounds a key
pays what these operators cost. Of equal rows none comes first: ROW_NUMBER takes them in an order that says nothing.

Frames (ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) are in `frames`. NULL comes last and NaN before it, as in
PostgreSQL; a sum of numbers does not depend on the order of records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from wpinq.collection import Collection
from wpinq.core.functions.sql.terms import NUMBERS, Term, shown, whole_number
from wpinq.core.functions.tree import Node, col
from wpinq.core.plan.person_bound import key_weight
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError
from wpinq.query.select.derived import CALL
from wpinq.query.select.frames import RANKS, SHIFTED, USUAL, VALUES, Frame, Window, reducer

RUNNING = ("Count", "Sum", "Min", "Max", "Avg")
WAYS = ("PRECEDING", "CURRENT ROW", "FOLLOWING")
MOST = 1 << 12
"""Records of a partition: more are not held at once."""
WITHIN = (
    "a window is answered in a subquery, within a person: PARTITION BY the column of the people, with ROW_NUMBER, "
    "RANK, DENSE_RANK, LAG, LEAD, COUNT, SUM, MIN, MAX, AVG, FIRST_VALUE, LAST_VALUE or NTH_VALUE"
)
Translate: TypeAlias = Callable[[Any], Term]


def computed(
    rows: Collection, windows: Sequence[Any], term: Translate
) -> tuple[Collection, Mapping[Any, tuple[str, Kind]]]:
    """The rows with a column for each window.

    Args:
        rows: The records, with the columns that windows read.
        windows: The windows, with canonical columns.
        term: Translates an expression over one record.

    Raises:
        PlanError: A window is not bounded by its partition, or not read.
    """
    windows = list(dict.fromkeys(windows))
    keys = list(dict.fromkeys(key for window in windows for key in window.args.get("partition_by") or ()))
    kept, places = list(rows.columns), {key: len(rows.columns) + index for index, key in enumerate(keys)}
    names: dict[Any, tuple[str, Kind]] = {}
    operands: list[Node] = []
    made: list[Window] = []
    for window in windows:
        entry, kind, values = _read(window, term, len(kept) + len(keys) + len(operands), places)
        names[window] = (f"window {len(names)}", kind)
        operands += [value.alias(f"operand {len(operands) + index}") for index, value in enumerate(values)]
        made.append(entry)
    parts = [term(key).value.alias(f"part {index}") for index, key in enumerate(keys)]
    before = rows.map([*(col(name) for name in kept), *parts, *operands])
    weights = {f"part {index}": key_weight(before._node, frozenset([f"part {index}"])) for index, key in enumerate(keys)
               if all(key in (window.args.get("partition_by") or ()) for window in windows)}  # fmt: skip
    person, most = min(((part, weight) for part, weight in weights.items() if weight is not None),
                       key=lambda pair: pair[1], default=("", None))  # fmt: skip
    if most is None or most > MOST:
        raise PlanError(f"{CALL}: {shown(windows[0])}: {WITHIN}.")
    kinds = {item.name: item.kind for item in before._node.schema if item.name in kept}
    kinds |= {names[window][0]: names[window][1] for window in windows}
    try:
        groups = before.group_by([person], reducer(tuple(made), len(kept)), ["rows"], whole=True)
    except PlanError as error:
        raise PlanError(f"{CALL}: {shown(windows[0])}: a window is of whole records, and weights are fractions here; "
                        "protect with users(COLUMN, at_most=...).") from error  # fmt: skip
    return groups.flat_map(lambda rows: rows, kinds, at_most=math.ceil(most), whole=True), names


def _read(window: Any, term: Translate, start: int, places: Mapping[Any, int]) -> tuple[Window, Kind, list[Node]]:
    """A window, the type of its column, and the values that it reads, which stand from a place on.

    Args:
        window: The window.
        term: Translates an expression over one record.
        start: The place.
        places: Those of the keys of partitions.

    Raises:
        PlanError: It has parts that are not read.
    """
    inner, rule = window.this, type(window.this).__name__
    unread = {name for name, value in window.args.items() if value} - {"this", "partition_by", "order", "over", "spec"}
    if unread or rule not in (*RANKS, *SHIFTED, *RUNNING, *VALUES):
        raise PlanError(f"{CALL}: {shown(window)}: {WITHIN}; without a name.")
    ordered = [item for item in getattr(window.args.get("order"), "expressions", ())
               if type(item.this).__name__ != "Rand"]  # fmt: skip
    values = [term(item.this).value for item in ordered]
    order = tuple(
        (start + index, bool(item.args.get("desc")), _nulls_first(item)) for index, item in enumerate(ordered)
    )
    what = None if rule in RANKS or type(inner.this).__name__ == "Star" else term(inner.this)
    known = set() if rule in RANKS else {"this", "offset", "big_int", *(["default"] if rule in SHIFTED else [])}
    if {name for name, value in inner.args.items() if value} - known:
        raise PlanError(f"{CALL}: {shown(window)}: {WITHIN}; of one value.")
    if rule in ("Sum", "Avg") and (what is None or what.kind not in NUMBERS):
        raise PlanError(f"{CALL}: {shown(window)} takes numbers; cast them.")
    kind = _kind(rule, what)
    if kind in (None, Kind.ANY):
        raise PlanError(f"{CALL}: {shown(window)} needs the type of its column; cast it.")
    far = _far(inner.args.get("offset"), window)
    if rule == "NthValue" and not far:
        raise PlanError(f"{CALL}: {shown(window)}: rows of a frame are counted from 1.")
    step = SHIFTED.get(rule, 1) * far
    place = -1 if what is None else start + len(values)
    within = tuple(places[key] for key in window.args.get("partition_by") or ())
    values += [what.value] if what is not None else []
    default = None if inner.args.get("default") is None else term(inner.args["default"])
    if default is None or default.kind is None:  # NULL
        last = -1
    elif default.kind is kind:
        last = start + len(values)
        values.append(default.value)
    else:
        raise PlanError(f"{CALL}: {shown(window)} gives two types; cast one of them.")
    return (rule, place, step, order, within, _frame(window), last), kind or Kind.ANY, values


def _kind(rule: str, what: Term | None) -> Kind | None:
    if rule in (*RANKS, "Count"):
        return Kind.INT
    return Kind.FLOAT if rule == "Avg" else None if what is None else what.kind


def _frame(window: Any) -> Frame:
    """The frame of a window, as it is written.

    Raises:
        PlanError: It is of values rather than rows, leaves rows out, or ends where no frame can.
    """
    spec = window.args.get("spec")
    if spec is None:
        return USUAL
    kind, said = str(spec.args.get("kind")), {**spec.args, "end": spec.args.get("end") or "CURRENT ROW"}
    ways = [said[end] if said[end] == "CURRENT ROW" else said.get(f"{end}_side") for end in ("start", "end")]
    if said.get("exclude") is not None or WAYS.index(ways[1]) < WAYS.index(ways[0]):
        raise PlanError(f"{CALL}: {shown(window)}: a frame ends no earlier than it begins, and leaves no row out.")
    start = _end(said["start"], ways[0], "PRECEDING", window)
    end = _end(said["end"], ways[1], "FOLLOWING", window)
    if kind == "RANGE" and (start or end):
        raise PlanError(f"{CALL}: {shown(window)}: a frame of RANGE begins and ends with UNBOUNDED or CURRENT ROW; "
                        "write ROWS or GROUPS.")  # fmt: skip
    if kind == "GROUPS" and window.args.get("order") is None:
        raise PlanError(f"{CALL}: {shown(window)}: a frame of GROUPS needs ORDER BY.")
    return kind, start, end


def _end(node: Any, side: Any, open_side: str, window: Any) -> int | None:
    """How far from the row a frame begins or ends; None where nothing bounds it.

    Raises:
        PlanError: It is no whole number, or nothing bounds it on the other side.
    """
    if node == "CURRENT ROW":
        return 0
    if node == "UNBOUNDED":
        if side != open_side:
            raise PlanError(f"{CALL}: {shown(window)}: a frame begins with UNBOUNDED PRECEDING at the first, and ends "
                            "with UNBOUNDED FOLLOWING at the last.")  # fmt: skip
        return None
    return _far(node, window) * (-1 if side == "PRECEDING" else 1)


def _nulls_first(item: Any) -> bool:
    first = item.args.get("nulls_first")
    return bool(item.args.get("desc")) if first is None else bool(first)


def _far(node: Any, window: Any) -> int:
    if node is None:
        return 1
    number = whole_number(node.this, MOST) if type(node).__name__ == "Literal" and not node.is_string else None
    if number is None:
        raise PlanError(f"{CALL}: {shown(window)}: write how far as a whole number.")
    return number
