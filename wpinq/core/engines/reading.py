"""Reading a source ahead of the flow: in threads where there is much to read, and in lots that are worth a call.

Where it is cheap, equal records are passed on as one row with their number as the weight: dense integers are counted in
an array, and repeated values of a single column are added up before they are hashed. How records are cut into lots and
counted changes the speed and never a histogram, because weights add up exactly, in any order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import TypeVar

import polars as pl

from wpinq.core.plan.shapes import Read
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.schema import Schema
from wpinq.core.records.weights import CAPACITY
from wpinq.core.state.counts import ROWS_PER_ROUND, Dense, Gathered, Repeats
from wpinq.core.state.workers import cores
from wpinq.errors import Failure, SourceError

T = TypeVar("T")

BYTES_PER_LOT = 1 << 21
"""Bytes of columns that make a lot."""
THREADED = 1 << 24
"""Bytes of files from which on threads read ahead."""
AHEAD = 3
"""Lots of a thread that are read, or being read, before they are asked for."""


def until_failure(
    read: Read, share: tuple[int, int], progress: Callable[[int], None] | None, failure: Failure
) -> Iterator[list[Batch]]:
    """A share of a source in batches, to its end or to the first failure of the run."""
    with closing(batches(read, share, progress)) as read_batches:
        yield from iter(failure.guard(f"reading {read.data.name}", lambda: next(read_batches, None), None), None)


def batches(
    read: Read, share: tuple[int, int], progress: Callable[[int], None] | None
) -> Generator[list[Batch], None, None]:
    """A share of a source in batches. A generator, so that a stray StopIteration is an error and never the end."""
    part, parts = share
    threads = cores() if (read.data.reader.total_bytes or 0) >= THREADED else 1
    shares = [(part * threads + thread, parts * threads) for thread in range(threads)]
    redact = progress and _one_by_one(progress)
    counted = Gathered(threads)
    streams = [_lots(read, item, redact, counted) for item in shares]
    with ahead(streams) if threads > 1 else closing(streams[0]) as lots:
        for lot in lots:
            yield [lot]


@contextmanager
def ahead(streams: Sequence[Iterator[T]]) -> Iterator[Iterator[T]]:
    """Run each iterator in a thread, some items ahead of the consumer; an exception is raised again by the result.

    Items come as they are ready, so that a slow iterator does not delay the others.
    """
    with ExitStack() as stack:
        threads = [stack.enter_context(ThreadPoolExecutor(1, "wpinq reads")) for _ in streams]
        asks = [partial(thread.submit, next, stream, None) for thread, stream in zip(threads, streams, strict=True)]
        for thread in threads:
            stack.callback(thread.shutdown, wait=False, cancel_futures=True)
        yield _as_ready({ask(): ask for ask in asks for _ in range(AHEAD)})


def _as_ready(running: dict[Future[T | None], Callable[[], Future[T | None]]]) -> Iterator[T]:
    while running:
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            ask, item = running.pop(future), future.result()
            if item is not None:
                running[ask()] = ask
                yield item


def _one_by_one(progress: Callable[[int], None]) -> Callable[[int], None]:
    lock = threading.Lock()

    def call(more: int) -> None:
        with lock:
            progress(more)

    return call


def _lots(
    read: Read, share: tuple[int, int], progress: Callable[[int], None] | None, counted: Gathered
) -> Generator[Batch, None, None]:
    """Batches of a share, of about `BYTES_PER_LOT` bytes each, or more if they are counted; all counts leave once."""
    schema = read.data.reader.schema.select(read.columns)
    frames = read.data.counted(schema.names, read.anyone, share=share, progress=progress)
    return _batched(_within(frames, CAPACITY // share[1], read.data.name), schema, counted)


def handed(read: Read, frames: Iterator[pl.DataFrame]) -> Generator[Batch, None, None]:
    """The same of frames with a source's columns that somebody else has read, who knows that they are not too many."""
    return _batched(frames, read.data.reader.schema.select(read.columns), Gathered(1))


def _batched(read_frames: Iterator[pl.DataFrame], schema: Schema, counted: Gathered) -> Generator[Batch, None, None]:
    dense, repeats = Dense.of(schema), Repeats(schema)
    for frames in _gathered(read_frames):
        if WEIGHT in frames[0].columns:
            yield Batch(pl.concat(frames), schema)
        elif dense is None or not dense.add(frames):
            yield _lot(repeats.count(pl.concat(frames)), schema)
        elif dense.rows >= ROWS_PER_ROUND:
            yield from dense.take()
    if dense is not None:
        yield from counted.take(dense)


def _within(frames: Iterator[pl.DataFrame], most: int, name: str) -> Iterator[pl.DataFrame]:
    """The frames, as long as they hold no more records: weights are as wide as that needs (`weights.py`)."""
    records = 0
    for frame in frames:
        records += int(frame[WEIGHT].abs().sum()) if WEIGHT in frame.columns else frame.height
        if records > most:
            raise SourceError(f"{name}: it holds more records than can be counted, 2^40; protect a part of it.")
        yield frame


def _gathered(frames: Iterator[pl.DataFrame]) -> Iterator[list[pl.DataFrame]]:
    """Frames of about `BYTES_PER_LOT` bytes together, each lot until the next one is asked for.

    Those of a lot all have weights, or none.
    """
    waiting: list[pl.DataFrame] = []
    size = 0.0
    for frame in frames:
        if waiting and waiting[0].width != frame.width:
            yield waiting
            waiting.clear()
            size = 0.0
        waiting.append(frame)
        size += frame.estimated_size()
        if size >= BYTES_PER_LOT:
            yield waiting
            waiting.clear()  # the consumer holds the list until it takes the next one
            size = 0.0
    if waiting:
        yield waiting


def _lot(frame: pl.DataFrame, schema: Schema) -> Batch:
    return Batch(frame, schema) if WEIGHT in frame.columns else Batch.of(frame, schema)
