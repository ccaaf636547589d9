"""Reading a source ahead of the flow: in threads where there is much to read, and in lots that are worth a call.

Where it is cheap, equal records leave as one row with their number as the weight: a reader counts a column by its
dictionary, and dense integers are counted in an array. What a lot holds, and how it is counted, changes the speed and
never a histogram: weights add up exactly, in any order.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

import polars as pl

from wpinq.batch import WEIGHT, Batch
from wpinq.plan import Read
from wpinq.schema import Schema
from wpinq.state.dense import ROWS, Dense

T = TypeVar("T")

LOT = 1 << 21
"""Bytes of columns that make a lot."""
THREADED = 1 << 24
"""Bytes of files from which on threads read ahead."""
MOST_THREADS = 4


def batches(
    read: Read, share: tuple[int, int], progress: Callable[[int], None] | None, beside: int = 1
) -> Generator[list[Batch], None, None]:
    """A share of a source in batches. A generator, so that a stray StopIteration is an error and never the end.

    `beside` processes read on this machine at once, so each has its part of the threads.
    """
    part, parts = share
    most = max(1, min(os.cpu_count() or 1, MOST_THREADS) // beside)
    threads = most if (read.data.reader.total_bytes or 0) >= THREADED else 1
    shares = [(part * threads + thread, parts * threads) for thread in range(threads)]
    told = progress and _one_by_one(progress)
    streams = [_lots(read, one, told) for one in shares]
    with closing(ahead(streams) if threads > 1 else streams[0]) as lots:
        for lot in lots:
            yield [lot]


def ahead(streams: Sequence[Iterator[T]]) -> Generator[T, None, None]:
    """Run iterators in a thread each, one item ahead of whoever asks; what one raises is raised here."""
    with ThreadPoolExecutor(len(streams), "wpinq reads") as pool:
        running = deque((stream, pool.submit(next, stream, None)) for stream in streams)
        while running:
            stream, future = running.popleft()
            item = future.result()
            if item is not None:
                running.append((stream, pool.submit(next, stream, None)))
                yield item


def _one_by_one(progress: Callable[[int], None]) -> Callable[[int], None]:
    lock = threading.Lock()

    def call(more: int) -> None:
        with lock:
            progress(more)

    return call


def _lots(read: Read, share: tuple[int, int], progress: Callable[[int], None] | None) -> Generator[Batch, None, None]:
    """Batches of a share, of about `LOT` bytes each, or of more if they are counted."""
    reader = read.data.reader
    schema = reader.schema.select(read.columns)
    dense = Dense.of(schema)
    for frames in _gathered(reader.batches(schema.names, share=share, progress=progress)):
        if dense is None or WEIGHT in frames[0].columns or not dense.add(frames):
            yield _lot(pl.concat(frames), schema)
        elif dense.rows >= ROWS:
            yield from dense.take()
    if dense is not None:
        yield from dense.take()


def _gathered(frames: Iterator[pl.DataFrame]) -> Iterator[list[pl.DataFrame]]:
    """Frames of about `LOT` bytes together, each lot until the next one is asked for."""
    waiting: list[pl.DataFrame] = []
    size = 0.0
    for frame in frames:
        waiting.append(frame)
        size += frame.estimated_size()
        if size >= LOT:
            yield waiting
            waiting.clear()  # whoever took them holds the list until the next one comes
            size = 0.0
    if waiting:
        yield waiting


def _lot(frame: pl.DataFrame, schema: Schema) -> Batch:
    return Batch(frame, schema) if WEIGHT in frame.columns else Batch.of(frame, schema)
