"""What a table calls the values of its columns, and the records that have none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from wpinq.collection import Collection
from wpinq.core.records.kinds import TYPES
from wpinq.core.records.schema import Kind, polars_type
from wpinq.errors import PlanError

LISTED = {Kind.TEXT, Kind.INT, Kind.BOOL, Kind.DATE}
"""Kinds of columns whose values can be listed."""


def labels(
    records: Collection, name: str, values: Sequence[Any] | None, other: str | None, call: str
) -> tuple[str, ...]:
    """What a table calls the values of a column, then those that are not listed.

    Args:
        records: What has the column.
        name: The column.
        values: What was listed for it.
        other: What is not listed is called; None where it is left out.
        call: What the caller wrote, for messages.

    Raises:
        PlanError: They are no values of the column, or two have one name.
    """
    kind = records._node.schema[name].kind
    if kind not in LISTED:
        raise PlanError(f"{call}: column {name!r} holds {kind.value}; derive a column of text, such as a band of it.")
    if values is None and kind is Kind.BOOL:
        values = ("false", "true")
    if not isinstance(values, (list, tuple)) or not values:
        raise PlanError(f"{call}(categories=...): list the values of {name!r}, which do not depend on the records.")
    if any(not isinstance(value, str) and TYPES.get(type(value)) is not kind for value in values):
        raise PlanError(f"{call}(categories=...): the values of {name!r} are {kind.value}.")
    result = [str(value).lower() if kind is Kind.BOOL else str(value) for value in values]
    result += [] if other is None else [other]
    if any(not label.isprintable() for label in result):
        raise PlanError(f"{call}: a value of {name!r}, or other=, holds what cannot be printed.")
    if odd := [label for label in result[: len(values)] if not _written(label, kind)]:
        raise PlanError(f"{call}(categories=...): no {kind.value} of {name!r} is written {odd[0][:40]!r}.")
    if len({*result}) < len(result):
        raise PlanError(f"{call}: two values of {name!r} have one name, or that of other=.")
    return tuple(result)


def left_out(
    records: Collection, names: Sequence[str], categories: Mapping[str, Any], other: str | None
) -> dict[str, str | None]:
    """For each column what records are counted under that have none of its values; None where they are left out."""
    nobody = [
        name for name in names
        if other is None or (categories.get(name) is None and records._node.schema[name].kind is Kind.BOOL)
    ]  # fmt: skip
    return {name: None if name in nobody else other for name in names}


def _written(label: str, kind: Kind) -> bool:
    """Whether a value of a kind is written so, as text."""
    if kind is Kind.BOOL:
        return label in ("false", "true")
    text = pl.Series([label], dtype=pl.String)
    value = (
        text.str.to_date("%Y-%m-%d", strict=False) if kind is Kind.DATE else text.cast(polars_type(kind), strict=False)
    )
    return bool(value.cast(pl.String)[0] == label)


def in_categories(
    records: Collection, keys: Sequence[tuple[str, tuple[str, ...]]], outside: Mapping[str, str | None],
    numbers: Sequence[str] = (),
) -> Collection:  # fmt: skip
    """Each record with the label of each column, and its numbers.

    Args:
        records: What has the columns.
        keys: For each column its name and its labels.
        outside: As `left_out` gives it.
        numbers: The columns of its numbers.
    """
    labelled = []
    for name, values in keys:
        text = pl.col(name).cast(pl.String, strict=False)
        listed = text.is_in(list(values))
        if outside[name] is None:
            plain = records._node.schema[name].kind is Kind.TEXT  # then a bound of records for each value stays known
            records = records.filter(listed)
            labelled.append(pl.col(name) if plain else text.alias(name))
        else:
            labelled.append(pl.when(listed).then(text).otherwise(pl.lit(outside[name])).alias(name))
    return records.map([*labelled, *map(pl.col, numbers)])
