"""Columns that are null in every record: for the curator's eyes, since a wrong type makes zeros that are charged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wpinq.core import Reader


def empty(reader: Reader, names: Iterable[str]) -> list[str]:
    """Those of some columns that are null in every record; none where there is no record.

    It reads no further than to a record in which each has a value, which is the first in most data.

    Raises:
        SourceError: The records cannot be read.
    """
    left, some = [name for name in names if name in reader.schema], False
    for frame in reader.batches(left) if left else ():
        some = some or frame.height > 0
        left = [name for name in left if frame[name].null_count() == frame.height]
        if not left:
            break
    return left if some else []


def told(period: str, source: str, names: Sequence[str], schema: Any) -> str:
    """The same as a sentence."""
    shown = ", ".join(f"{name!r} ({schema[name].kind.value})" for name in names)
    return (
        f"{period}: {shown} {'is' if len(names) == 1 else 'are'} null in every record of {source}; wpinq check says"
        " what a column looks like, and which type reads it."
    )
