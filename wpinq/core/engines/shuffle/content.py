"""What tasks send each other, as bytes: columns as Arrow IPC, and then what they are, as JSON. No code travels.

A batch says its columns, whose kinds and ranges Arrow does not know. Identities and weights are three columns of
integers; wide weights are held in 128 bits.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from wpinq.core.records.batch import WEIGHT, Batch, integers, weight_series
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.records.weights import WeightType
from wpinq.core.state.histogram import HistogramPart
from wpinq.core.state.states import Hashed
from wpinq.core.state.table import Ids, Weights
from wpinq.errors import EngineError

Content: TypeAlias = Batch | Hashed | HistogramPart
LOW, HIGH, START, END = "low", "high", "start", "end"
LENGTH = 4
"""Bytes that say how long the JSON is, at the very end."""
BATCH, HASHED, BINS, STEPS = "batch", "hashed", "bins", "steps"


def pack(content: Content) -> memoryview:
    """Content as bytes."""
    if isinstance(content, Batch):
        columns = [[column.name, column.kind.value, column.ranged] for column in content.schema]
        if _once(content):
            return _written({"is": BATCH, "columns": columns, "once": True}, content.frame[list(content.schema.names)])
        return _written({"is": BATCH, "columns": columns}, content.frame)
    if isinstance(content, Hashed):
        return _written({"is": HASHED}, _identified(content.ids, content.weights))
    if len(content) == 2:
        return _written({"is": BINS}, _identified(*content))
    start, end, weights = content
    return _written({"is": STEPS}, pl.DataFrame([pl.Series(START, start), pl.Series(END, end), _weights(weights)]))


def unpack(packed: bytes | memoryview) -> Content:
    """What was packed.

    Raises:
        EngineError: It is something else.
    """
    try:
        size = int.from_bytes(packed[-LENGTH:], "little")
        head = json.loads(bytes(packed[-LENGTH - size : -LENGTH]))
        return _MADE[head["is"]](head, pl.read_ipc_stream(io.BytesIO(packed)))
    except (ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
        raise EngineError("what a task sent is damaged; nothing was answered.") from None


def _batch(head: dict[str, Any], frame: pl.DataFrame) -> Batch:
    kinds = (Column(name, Kind(kind), bool(ranged)) for name, kind, ranged in head["columns"])
    schema = Schema(tuple(kinds))
    return Batch.of(frame, schema) if head.get("once") else Batch(frame, schema)


def _bins(head: dict[str, Any], frame: pl.DataFrame) -> tuple[Ids, Weights]:
    return np.stack([frame[LOW].to_numpy(), frame[HIGH].to_numpy()], axis=1), integers(frame[WEIGHT])


def _steps(head: dict[str, Any], frame: pl.DataFrame) -> tuple[Weights, Weights, Weights]:
    return frame[START].to_numpy(), frame[END].to_numpy(), integers(frame[WEIGHT])


_MADE: dict[str, Callable[[dict[str, Any], pl.DataFrame], Content]] = {
    BATCH: _batch,
    HASHED: lambda told, frame: Hashed(*_bins(told, frame)),
    BINS: _bins,
    STEPS: _steps,
}


def _identified(ids: Ids, weights: Weights) -> pl.DataFrame:
    words = [np.ascontiguousarray(word) for word in ids.T]
    return pl.DataFrame([pl.Series(LOW, words[0]), pl.Series(HIGH, words[1]), _weights(weights)])


def _once(batch: Batch) -> bool:
    """Whether each record counts once, as most do, so that weights need not travel."""
    weights = batch.frame[WEIGHT]
    return weights.dtype == pl.Int64 and not batch.schema.ranged and weights.min() == 1 == weights.max()


def _weights(weights: Weights) -> pl.Series:
    return weight_series(weights, WeightType(1, wide=weights.dtype == object))


def _written(fields: dict[str, object], frame: pl.DataFrame) -> memoryview:
    plain, encoded = io.BytesIO(), json.dumps(fields).encode()
    frame.write_ipc_stream(plain, compat_level=pl.CompatLevel.newest(), compression="lz4")
    plain.write(encoded + len(encoded).to_bytes(LENGTH, "little"))
    return plain.getbuffer()
