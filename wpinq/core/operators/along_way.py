"""Along a way: joins on a key that leads records to their owner have the owner in their key, written or not.

Key 5 may be owned by p and by 10,000 others. On the key alone p's 20 lineitems would meet 10,000 orders; with the owner
each pair of a lineitem and p meets the orders of p, which is what the tables without owners would give, for each owner.
A key with the owner is local in the owner, so what a person moves is what their own records make.

An owner who is a person in one period is named by person and time. A pair of a row and such an owner has the first
time of the owner's rows of its key in the period (`sources/owned.py`), so it meets these: where a key is in one row,
that row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wpinq.core.plan.node import Node, Source, read_by, steps
from wpinq.core.plan.person_bound import Constant, changes

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet


def owners_met(
    left: Node, right: Node, left_keys: Sequence[str], right_keys: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """The columns of owners, here and there, that come to a key by which records are led to their owner.

    Args:
        left, right: What is joined.
        left_keys, right_keys: Columns that are equal.

    Returns:
        One pair, and one of times where owners are in periods and both sides hold the time; none where the key is along
        no way, or has the owners, or a side holds no owner of all its records.
    """
    walks = [steps(side) for side in (left, right)]  # of which the last step is the side itself
    if not any(data.unit.way for walk in walks for data in read_by(walk)):
        return ()
    for left_key, right_key in zip(left_keys, right_keys, strict=True):
        ours, theirs = _origin(left, left_key), _origin(right, right_key)
        if ours is None or theirs is None or ours[0].book != theirs[0].book or _end(*ours) != _end(*theirs):
            continue
        if _led(*ours) or _led(*theirs):
            book = ours[0].book
            named = [tuple(held(side[-1], book) for side in walks) for held in (_owner, _time)]
            if None in named[0]:
                return ()
            pairs = [(str(here), str(there)) for here, there in named if here is not None and there is not None]
            return tuple(pair for pair in pairs if pair not in set(zip(left_keys, right_keys, strict=True)))
    return ()


def _origin(node: Node, name: str) -> tuple[DataSet, str] | None:
    """The table and column of whose value a column is; None where it is computed."""
    while not isinstance(node, Source):
        origin = node.carried(name)
        if origin is None:
            return None
        node, name = node.inputs[origin[0]], origin[1]
    return node.data, name


def _led(data: DataSet, name: str) -> bool:
    """Whether a table is led to its owner by this column."""
    return bool(data.unit.way) and data.unit.way[0][0] == name


def _end(data: DataSet, name: str) -> tuple[str, str]:
    """The table and column that a key is of: where it leads, or itself."""
    return data.unit.way[0][1:] if _led(data, name) else (data.name, name)


def _owner(node: Node, book: str) -> str | None:
    """The column that holds the person in all records that a person moves."""
    change = changes(steps(node)).get(book)
    fixed = {} if change is None else change.fixed
    held = [name for name in node.schema.names if name in fixed and not isinstance(fixed[name], Constant)]
    return held[0] if held else None


def _time(node: Node, book: str) -> str | None:
    """The column that holds the time by which a person is in a period."""
    for name in node.schema.names:
        origin = _origin(node, name)
        if origin is not None and origin[0].book == book and origin[1] in origin[0].unit.columns[1:]:
            return name
    return None
