"""What executors of Spark do: rows that each hold one piece of what tasks send each other, and the rows that they make.

Of a DataFrame of Spark the executors read the records, and Spark may read a part again where an executor was lost. So
whoever reads a part sends each of its readers the sum of the identities of its rows besides, and a reader whose sums do
not add up to what is pinned fails: what it was sent is not, all together, what the version holds. Each reader runs, for
the first process sends each a row too; so whatever Spark runs again, no answer rests on other records.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from wpinq.core.engines.reading import handed
from wpinq.core.engines.shuffle.content import Content, pack, unpack
from wpinq.core.engines.shuffle.tasks import ROOT, Item, Made, Task, Tasks
from wpinq.core.engines.shuffle.worker import alike
from wpinq.core.plan.shapes import Read
from wpinq.core.records.batch import sum_of_rows
from wpinq.core.state.workers import THREADS
from wpinq.distributed.plans import rebuilt
from wpinq.errors import EngineError, installed
from wpinq.sources.tables.spark import frames

ROW = "step int, port int, part int, shard int, content binary"
"""What a row of Spark holds: a piece, and the task that it is for."""
BEGIN, SUM = -1, -2
"""In the place of a port: that a task is to run, and the sum of the rows of step `SUM - port` that were read."""
BATCH = 1 << 23
"""Bytes of pieces that are handed to Spark at once."""

Batches = Iterator[pa.RecordBatch]
Row: TypeAlias = tuple[int, int, int, int, bytes]
OTHERS = "the rows of a DataFrame are not those of its version; nothing was answered. Was its table written to?"


@dataclass(frozen=True)
class Work:
    """What an executor was told.

    Attributes:
        tasks: The tasks of the plans.
        labels: Of their parts: Spark deals rows of each to a partition of its own.
        sums: By the steps that read a DataFrame, the sum of the identities of all its rows.
        keys: By the same, the key of these identities.
    """

    tasks: Tasks
    labels: Sequence[int]
    sums: Mapping[int, np.ndarray]
    keys: Mapping[int, bytes]


def sums_to_json(sums: Mapping[int, tuple[bytes, bytes]]) -> dict[str, list[str]]:
    """The sums of DataFrames and their keys, by the step that reads them, as JSON."""
    return {str(step): [words.hex(), key.hex()] for step, (words, key) in sums.items()}


def version_of(rows: Batches) -> Batches:
    """The version of wpinq that an executor has."""
    list(rows)
    yield pa.RecordBatch.from_pydict({"version": [installed()]})


def work(message: str, parts: int, each: int, step: int) -> Callable[[Batches], Batches]:
    """What Spark does to the rows of a partition: it holds numbers and a text, and imports all else."""
    return lambda rows: performed(message, parts, each, step, rows)


def begun(step: int, labels: Sequence[int], each: int) -> Callable[[Batches], Batches]:
    """What makes of numbers of parts the rows by which the tasks of a step run, whatever else they are sent."""
    return lambda rows: _written(
        (step, BEGIN, labels[part], part * each, b"") for batch in rows for part in batch["id"].to_pylist()
    )


def performed(message: str, parts: int, each: int, step: int, rows: Batches) -> Batches:
    """The rows that the tasks of a partition make."""
    os.environ.setdefault(THREADS, "1")  # Spark gives a task one core
    known = _work(message, parts, each)
    if step in known.sums:
        return _written(_of_records(known, step, rows))
    if isinstance(known.tasks.shape(step), Read):
        tasks: Iterator[Task[Content]] = (Task(step, part, None) for batch in rows for part in batch["id"].to_pylist())
        return _written(_row(made, known) for task in tasks for made in known.tasks.run(task))
    return _written(_of_pieces(known, step, rows))


def _of_records(known: Work, step: int, rows: Batches) -> Iterator[Row]:
    """What is made of the records of a partition, and their sum for each reader."""
    tasks, shape = known.tasks, known.tasks.shape(step)
    assert isinstance(shape, Read)  # noqa: S101  nothing else reads a DataFrame
    schema, words = shape.data.reader.schema, np.zeros(2, np.uint64)
    columns = schema.select(shape.columns).names

    def summed() -> Iterator[pl.DataFrame]:
        for frame in frames(rows, schema):
            words[:] += sum_of_rows(frame, schema, known.keys[step])
            yield frame.select(columns)

    items: Iterator[Item[Content]] = (Item(0, 0, batch) for batch in handed(shape, summed()))
    yield from (_row(made, known) for made in tasks.run(Task(step, 0, items)))
    for reader in tasks.readers(step):
        for part, label in enumerate(known.labels):
            yield reader, SUM - step, label, part * tasks.each, words.tobytes()
    yield ROOT, SUM - step, 0, 0, words.tobytes()


def _of_pieces(known: Work, step: int, rows: Batches) -> Iterator[Row]:
    """What is made of the pieces that were sent to the tasks of a partition, part after part."""
    expected = {source: words for source, words in known.sums.items() if step in known.tasks.readers(source)}
    every = (row for batch in rows for row in _rows(batch))
    for label, some in groupby(every, lambda row: row[2]):
        sums = {source: np.zeros(2, np.uint64) for source in expected}
        task = Task(step, known.labels.index(label), _pieces(some, sums))
        yield from (_row(made, known) for made in known.tasks.run(task))
        if any((sums[source] != words).any() for source, words in expected.items()):
            raise EngineError(OTHERS)  # Spark keeps nothing of what a task made that fails


def _pieces(rows: Iterable[Row], sums: Mapping[int, np.ndarray]) -> Iterator[Item[Content]]:
    """The pieces of a task; sums are added to those that were found."""
    for _, port, _, shard, content in rows:
        if port <= SUM:
            sums[SUM - port][:] += np.frombuffer(content, np.uint64)
        elif port != BEGIN:
            yield Item(port, shard, unpack(content))


@lru_cache(2)
def _work(message: str, parts: int, each: int) -> Work:
    parsed = json.loads(message)
    sums = {int(step): [bytes.fromhex(text) for text in pair] for step, pair in parsed["sums"].items()}
    return Work(
        alike(Tasks(rebuilt(parsed), parts, each), parsed["outline"]),
        parsed["labels"],
        {step: np.frombuffer(words, np.uint64) for step, (words, _) in sums.items()},
        {step: key for step, (_, key) in sums.items()},
    )


def _row(made: Made[Content], known: Work) -> Row:
    label = known.labels[made.shard // known.tasks.each]
    return made.step, made.port, label, made.shard, bytes(pack(made.content))


def _rows(batch: Any) -> Iterator[Row]:
    columns = [batch[name].to_pylist() for name in ("step", "port", "part", "shard")]
    for index, numbers in enumerate(zip(*columns, strict=True)):
        yield *numbers, batch["content"][index].as_buffer().to_pybytes()


def _written(rows: Iterable[Row]) -> Batches:
    schema = pa.schema([*((name, pa.int32()) for name in ("step", "port", "part", "shard")), ("content", pa.binary())])
    some: list[Row] = []
    size = 0
    for row in rows:
        some.append(row)
        size += len(row[-1])
        if size >= BATCH:
            yield _batch(some, schema)
            some, size = [], 0
    if some:
        yield _batch(some, schema)


def _batch(rows: list[Row], schema: Any) -> Any:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
