"""What a unit keeps of a file, exactly: for its curator alone, who chooses a bound by it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from wpinq.core.operators.contribution.unit_key import ByUnit
from wpinq.core.plan.forms import Linear, each_record
from wpinq.core.plan.node import Node, steps
from wpinq.core.records import canonical
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.identity import identities
from wpinq.core.records.reader import Reader
from wpinq.core.records.values import KEY_SIZE

UNIT, VALUE, COUNT = ("unit0", "unit1"), ("value0", "value1"), "count"


@dataclass(frozen=True)
class Contributions:
    """How many records there are of each unit.

    Attributes:
        protects: Whom an answer protects.
        counted: Records that `--where` leaves.
        units: How many people, or people in one period, they are of; as many as records where the unit is a record.
        over: How many of them have records that are not kept.
        kept: Records that are kept.
    """

    protects: str
    counted: int
    units: int
    over: int
    kept: int

    @property
    def text(self) -> str:
        """It as a sentence."""
        share = f" ({self.kept / self.counted:.0%})" if self.counted else ""
        return (
            f"Unit: {self.protects}. There are {self.units:,}; {self.over:,} have records that are left out, and "
            f"{self.kept:,} of {self.counted:,} records{share} are kept."
        )


def contributions(root: Node, reader: Reader) -> Contributions:
    """Count what a unit keeps of a protected collection, with the same steps before the bound as an answer has.

    Args:
        root: The plan of the collection.
        reader: Its records.

    Raises:
        SourceError: They cannot be read.
    """
    walk = steps(root)
    before = each_record(node for node in walk if isinstance(node, Linear))
    bounds = [node for node in walk if isinstance(node, ByUnit)]
    whole, parts = 0, []
    for frame in reader.batches(reader.schema.names):
        batch = before(Batch.of(canonical.frame(frame, reader.schema), reader.schema))
        whole += len(batch)
        parts += [_counted(node, batch) for node in bounds]
    if not bounds:
        return Contributions("one record", whole, whole, 0, whole)
    unit = bounds[0].data.unit
    return _kept(unit.protects, whole, pl.concat(parts), unit.at_most, unit.per[1] if unit.per else None)


def _counted(node: ByUnit, batch: Batch) -> pl.DataFrame:
    """How many records of a batch each unit has of each value of its `per`."""
    key, per = bytes(KEY_SIZE), node.data.unit.per
    ids = {UNIT: node.unit_key.ids(batch.frame, key)}
    if per is not None:
        ids[VALUE] = identities(batch.frame, node.source.schema.select([per[0]]), key)
    columns = [
        pl.Series(name, np.ascontiguousarray(words))
        for names, identity in ids.items()
        for name, words in zip(names, identity.T, strict=True)
    ]
    rows = pl.DataFrame([*columns, batch.frame[WEIGHT].alias(COUNT)])
    return rows.group_by(rows.columns[:-1]).agg(pl.col(COUNT).sum())


def _kept(protects: str, whole: int, counts: pl.DataFrame, most: int | None, each: int | None) -> Contributions:
    """What the bounds leave of some counts; where there is none, all."""
    values = counts.group_by(counts.columns[:-1]).agg(pl.col(COUNT).sum())
    room = pl.col(COUNT).clip(upper_bound=each)
    units = values.group_by(UNIT).agg(pl.col(COUNT).sum(), room.sum().clip(upper_bound=most).alias("kept"))
    over = (units["kept"] < units[COUNT]).sum()
    return Contributions(protects, whole, units.height, int(over), int(units["kept"].sum()))
