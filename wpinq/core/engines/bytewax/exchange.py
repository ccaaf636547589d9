"""How records are sent to the shard of their key, within one process: a batch is cut as it comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import bytewax.operators as op
from bytewax.dataflow import Stream
from bytewax.operators import KeyedStream

from wpinq.core.engines.shards import split
from wpinq.core.records.batch import Batch
from wpinq.failures import Failure

Routed: TypeAlias = "KeyedStream[tuple[int, Batch]]"


def send(
    name: str, up: Stream[Batch], keys: Sequence[str], port: int, *, key: bytes, shards: int, failure: Failure
) -> Routed:  # fmt: skip
    """Send every record to the shard of its key; the engine sees the number of the shard, and nothing of the key."""

    def step(items: list[Batch]) -> list[tuple[str, tuple[int, Batch]]]:
        return [(str(shard), (port, part)) for item in items for shard, part in split(item, keys, key, shards)]

    return op.flat_map_batch(name, up, failure.guard("exchange", step, []))
