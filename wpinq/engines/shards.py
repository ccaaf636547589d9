"""Cutting a batch into shards by the identity of its key. Labels are the only thing that bytewax routes by."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wpinq.batch import Batch
from wpinq.engines.placement import labels
from wpinq.identity import identities
from wpinq.schema import Schema


def split(batch: Batch, columns: Iterable[str], key: bytes, shards: int) -> list[tuple[str, Batch]]:
    """Cut a batch into the shards of its key columns; without key columns all goes to the first."""
    names = tuple(columns)
    if shards == 1 or not names:
        return [(labels(shards)[0], batch)]
    batch = batch.expand(name for name in names if batch.schema[name].ranged)
    ids = identities(batch.frame, Schema(tuple(batch.schema[name] for name in names)), key)  # in the key's order
    shard = (ids[:, 1] % np.uint64(shards)).astype(np.int64)
    rows = np.argsort(shard, kind="stable")
    ends = np.searchsorted(shard[rows], np.arange(shards), side="right")
    frame = batch.frame[rows]
    pieces = zip(np.concatenate([[0], ends[:-1]]).tolist(), ends.tolist(), strict=True)
    return [
        (labels(shards)[number], Batch(frame.slice(start, end - start), batch.schema))
        for number, (start, end) in enumerate(pieces)
        if end > start
    ]
