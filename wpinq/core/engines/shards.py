"""Cut a batch into shards by the identity of its key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from wpinq.core.records.batch import Batch
from wpinq.core.records.identity import column_identities, identities
from wpinq.core.records.schema import Schema
from wpinq.core.state.table import Ids, Weights

Numbers: TypeAlias = npt.NDArray[np.uint16] | npt.NDArray[np.uint8]
PIECE = 1 << 16
"""Rows that are divided at a time: what is made of them stays in the cache."""


def cut(ids: Ids, weights: Weights, shards: int) -> Iterator[tuple[Ids, Weights]]:
    """The identities and weights of each shard in turn; a record that is its own key lies where `split` puts it."""
    shard = _shard(ids, shards)
    for number in range(shards):
        mine = shard == number
        yield ids[mine], weights[mine]


def split(batch: Batch, columns: Iterable[str], key: bytes, shards: int) -> list[tuple[int, Batch]]:
    """Cut a batch into the shards of its key columns, by their numbers; without key columns all goes to the first."""
    names = tuple(columns)
    if shards == 1 or not names:
        return [(0, batch)]
    batch = batch.expand(name for name in names if batch.schema[name].ranged)
    ids = identities(batch.frame, Schema(tuple(batch.schema[name] for name in names)), key)  # in the key's order
    pieces = enumerate(_pieces(batch.frame, _shard(ids, shards), shards))
    return [(number, Batch(frame, batch.schema)) for number, frame in pieces if frame.height]


def divided(batch: Batch, columns: Iterable[str], key: bytes, parts: int) -> Iterator[list[Batch]]:
    """Cut a batch into parts by its key columns, by other words of their identities than shards are; in pieces."""
    schema = Schema(tuple(replace(batch.schema[name], ranged=False) for name in columns))
    batch = batch.expand(name for name in schema.names if batch.schema[name].ranged)
    for frame in batch.frame.iter_slices(PIECE):
        part = sum(ids[:, 0] for ids in column_identities(frame, schema, key)) % np.uint64(parts)
        numbers: Numbers = np.asarray(part, np.uint8) if parts <= 1 << 8 else np.asarray(part, np.uint16)
        yield [Batch(piece, batch.schema) for piece in _pieces(frame, numbers, parts)]


def _pieces(frame: pl.DataFrame, part: Numbers, parts: int) -> Iterator[pl.DataFrame]:
    """The rows of each part. From one chunk they are taken as they lie; from several, Polars writes texts anew."""
    frame, start = frame.rechunk()[np.argsort(part, kind="stable").astype(np.uint32)], 0
    for size in np.bincount(part, minlength=parts).tolist():
        yield frame.slice(start, size)
        start += size


def _shard(ids: Ids, shards: int) -> npt.NDArray[np.uint16]:
    return (ids[:, 1] % np.uint64(shards)).astype(np.uint16)  # NumPy sorts no wider integers by their digits
