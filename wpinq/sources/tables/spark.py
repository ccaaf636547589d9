"""DataFrames of Spark, such as tables of Delta, Iceberg, Hive or JDBC as Spark reads them.

Executors read them: they make columns of Spark's Arrow batches as of any table (`arrays.py`), and add the rows up for
the digest that pins a version. Spark runs a task again where an executor was lost, and what it reads then may be
something else; so every run compares the digest of the rows that it has counted (`distributed/spark_tasks.py`).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from wpinq.core.records import canonical
from wpinq.core.records.batch import sum_of_rows
from wpinq.core.records.reader import ObjectReader, wanted
from wpinq.core.records.schema import Schema
from wpinq.core.records.weights import CAPACITY
from wpinq.errors import SourceError, installed
from wpinq.sources.form import Columns
from wpinq.sources.tables import arrays
from wpinq.sources.tables.arrow import redacted
from wpinq.sources.tables.schemas import schema_of

WHERE = "the DataFrame of Spark"
SUMS = "low long, high long, records long, size long"
"""What an executor says of the rows that it has read: the digest, their number, and their size."""


@dataclass(frozen=True, slots=True)
class SparkReader(ObjectReader):
    """Rows of a DataFrame of Spark.

    Attributes:
        schema: All columns with their kinds.
        table: The DataFrame.
        sizes: How many bytes it held, once it was read.
        lasting: It outlives this process, so its ledger must too.
        nameless: It has no name under which its version could be pinned, so one must be declared.
    """

    schema: Schema
    table: Any = field(repr=False)
    sizes: list[int] = field(default_factory=list, repr=False)
    lasting: bool = True
    nameless: bool = True

    def __repr__(self) -> str:
        return f"SparkReader{self.schema}"

    @property
    def name(self) -> str:
        """It has no name of its own."""
        return "records"

    @property
    def way(self) -> tuple[object, ...]:
        """That of tables in memory: the same columns hold the same records."""
        return ("TableReader",)

    @property
    def total_bytes(self) -> int | None:  # type: ignore[override]
        """Bytes of its columns in Arrow; None before it was read."""
        return self.sizes[-1] if self.sizes else None

    @property
    def rows(self) -> Any:
        """The DataFrame with the columns of the schema alone."""
        return self.table.select(*(f"`{name.replace('`', '``')}`" for name in self.schema.names))

    def summed(self, key: bytes) -> np.ndarray:
        """The sum of the keyed identities of all rows, which executors add up where they read them.

        Raises:
            SourceError: Spark cannot read it, or it holds more records than can be counted.
        """
        schema = self.schema
        with _redacted():
            sums = self.rows.mapInArrow(lambda batches: _sums(batches, schema, key), SUMS).collect()
        if sum(row["records"] for row in sums) > CAPACITY:
            raise SourceError(f"{WHERE}: it holds more records than can be counted, 2^40; protect a part of it.")
        self.sizes[:] = [sum(row["size"] for row in sums)]
        words = np.array([[row["low"], row["high"]] for row in sums], np.int64).reshape(-1, 2)
        result: np.ndarray = words.view(np.uint64).sum(axis=0, dtype=np.uint64)
        return result

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns; see `Reader.batches`. They come to this process, and the first share reads all."""
        names = wanted(self.schema, columns, WHERE).names
        if share[0]:
            return
        schema = self.schema
        with _redacted():
            for row in self.rows.mapInArrow(lambda batches: _sent(batches, schema), "content binary").toLocalIterator():
                yield pl.read_ipc_stream(io.BytesIO(row["content"])).select(names)


def is_spark(source: object) -> bool:
    """Whether something is a DataFrame of Spark, of a session in this process or of Spark Connect."""
    return type(source).__module__.startswith("pyspark.sql.") and hasattr(source, "mapInArrow")


def open_spark(table: Any, columns: Columns) -> SparkReader:
    """Look at the columns of a DataFrame; columns of types that Arrow does not have are left out, as of other tables.

    Raises:
        SourceError: It is a stream, computes other rows each time, or its columns cannot be read as declared.
    """
    import pyarrow as pa

    if table.isStreaming:
        raise SourceError(f"{WHERE}: it is a stream, which has no version; protect a table or a snapshot of it.")
    plan = vars(table).get("_jdf")  # of Spark Connect nobody can tell, and the digest alone refuses it
    with _redacted():
        steady = plan is None or plan.queryExecution().analyzed().deterministic()
        types = {field_.name: _type(field_.dataType, pa) for field_ in table.schema.fields}
        names = list(table.columns)
    if not steady:
        raise SourceError(f"{WHERE}: it computes other rows each time, as rand() does; write it to a table first.")
    return SparkReader(schema_of(types, names, columns, WHERE), table)


def frames(batches: Iterable[Any], schema: Schema) -> Iterator[pl.DataFrame]:
    """Arrow batches of Spark as frames of canonical columns."""
    for batch in batches:
        with redacted():
            frame = canonical.frame(arrays.frame(batch, schema), schema)
        yield frame


def _type(kind: Any, pa: Any) -> Any:
    """The Arrow type of a type of Spark; of one that Arrow does not have a union, which is no column."""
    from inspect import signature

    from pyspark.sql.pandas.types import to_arrow_type

    zoned = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
    try:
        return to_arrow_type(kind, **zoned)
    except Exception:  # noqa: BLE001  each version of PySpark has an error of its own for it
        return pa.sparse_union([])


def _sums(batches: Iterable[Any], schema: Schema, key: bytes) -> Iterator[Any]:
    """What an executor says of its rows."""
    import pyarrow as pa

    words, records, size = np.zeros(2, np.uint64), 0, 0
    for batch in batches:
        (frame,) = frames([batch], schema)
        words += sum_of_rows(frame, schema, key)
        records, size = records + batch.num_rows, size + batch.nbytes
    low, high = words.view(np.int64).tolist()
    yield pa.RecordBatch.from_pydict({"low": [low], "high": [high], "records": [records], "size": [size]})


def _sent(batches: Iterable[Any], schema: Schema) -> Iterator[Any]:
    """The frames of an executor as bytes."""
    import pyarrow as pa

    for frame in frames(batches, schema):
        content = io.BytesIO()
        frame.write_ipc_stream(content, compat_level=pl.CompatLevel.newest())
        yield pa.RecordBatch.from_pydict({"content": pa.array([content.getvalue()], pa.binary())})


@contextmanager
def _redacted() -> Iterator[None]:
    """Turn errors of Spark into one line that quotes nothing of it.

    Raises:
        SourceError: Instead of any error.
    """
    try:
        yield
    except Exception:  # noqa: BLE001  it quotes plans and records
        raise SourceError(
            f"{WHERE}: Spark could not read it; its log says more. Do its executors have wpinq {installed()} in the "
            "Python that PYSPARK_PYTHON names?"
        ) from None
