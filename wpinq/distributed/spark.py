"""`wpinq.spark(session)`: an engine that runs plans on Spark, whose shuffle carries what tasks send each other.

A step is a `mapInArrow` over rows that each hold one piece: which task it is for, and its bytes (`content.py`). Between
two steps Spark deals rows by the task that they are for, sorts them by shard, spills and runs lost tasks again. Rows
are pieces and not records, so what Spark's pages and event logs count are pieces.

What executors are told is a text of JSON: the plan, and the keys that identify and sample records, never the secret
(privacy rule 37). It and the pieces are in Spark's hands, whose encryption (`spark.io.encryption.enabled`,
`spark.network.crypto.enabled`) is the curator's to turn on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wpinq.core.engines.job import Job
from wpinq.core.engines.shuffle.content import Content, pack, unpack
from wpinq.core.engines.shuffle.processes import cut
from wpinq.core.engines.shuffle.tasks import ROOT, Item, Made, Task, Tasks, added
from wpinq.core.engines.shuffle.worker import alike
from wpinq.core.plan.node import Node, sources
from wpinq.core.plan.shapes import Read
from wpinq.core.state.histogram import Histogram
from wpinq.core.state.workers import THREADS
from wpinq.distributed.data import travels
from wpinq.distributed.plans import plans_told
from wpinq.distributed.processes import rebuilt
from wpinq.errors import PlanError, needs
from wpinq.failures import redacted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROW = "step int, port int, part int, shard int, content binary"
"""What a row of Spark holds: a piece, and the task that it is for."""
BATCH = 1 << 23
"""Bytes of pieces that are handed to Spark at once."""

Batches = Iterator[pa.RecordBatch]


class Spark:
    """Runs plans on Spark.

    Args:
        session: The session; its executors have wpinq installed.
        parts: Into how many tasks a source or a step is cut; as many as run at once, or more of large files.
    """

    def __init__(self, session: SparkSession, parts: int | None = None) -> None:
        self._session, self._parts = session, parts
        self._executors_checked = False

    def check(self, roots: Sequence[Node]) -> None:
        """Refuse plans that cannot run on executors; nothing was charged.

        Raises:
            PlanError: A step cannot be told, or records are where executors cannot read them.
        """
        plans_told(roots)
        for data in {data: None for root in roots for data in sources(root)}:
            if not travels(data):
                raise PlanError(
                    f"{data.name}: executors of Spark cannot read it; protect files that all of them see under one "
                    "path. Nothing was charged."
                )
        self._check_executors()

    def _check_executors(self) -> None:
        """Refuse a session whose executors' Python does not have this wpinq; each session is asked once."""
        if self._executors_checked:
            return
        try:
            executor = self._session.range(0, 1, 1, 1).mapInArrow(_installed, "version string").first()
        except Exception:  # noqa: BLE001  Spark's own errors quote the executor's files
            executor = None
        if executor is None or executor[0] != _version():
            raise PlanError(
                f"spark(...): the Python of Spark's executors does not have wpinq {_version()} and pyarrow. Install "
                "them there, and name that Python in PYSPARK_PYTHON before the session is made. Nothing was charged."
            )
        self._executors_checked = True

    def run(self, job: Job) -> list[Histogram]:
        """Compute the histograms of all roots.

        Raises:
            PlanError: See `check`.
            EngineError: Spark could not; the message quotes nothing, and Spark's log says more.
        """
        self.check(job.roots)
        tasks = Tasks(job, *cut(job, self._parts or self._at_once()))
        told = json.dumps({"plans": plans_told(job.roots), "key": job.key.hex(), "outline": tasks.outline})
        return redacted("spark", lambda: self._run(tasks, told))

    def _at_once(self) -> int:
        """How many tasks the session runs at once; of a session of Spark Connect, into how many parts it deals rows."""
        try:
            return int(self._session.sparkContext.defaultParallelism)
        except Exception:  # noqa: BLE001  Connect has no context, and says so in several ways
            return int(self._session.conf.get("spark.sql.shuffle.partitions") or 1)

    def _run(self, tasks: Tasks, told: str) -> list[Histogram]:
        made: list[DataFrame] = []
        found, rooted = tasks.job.empty(), []
        for step in (step for stage in tasks.stages() for step in stage):
            work = _work(told, tasks.parts, tasks.each, step)
            if isinstance(tasks.shape(step), Read):
                rows = self._session.range(0, tasks.parts, 1, tasks.parts)
            else:
                ups = [one.where(f"step = {step}") for one in made]
                rows = ups[0]
                for one in ups[1:]:
                    rows = rows.union(one)
                rows = rows.repartition(tasks.parts, "part").sortWithinPartitions("part", "shard")
            made.append(rows.mapInArrow(work, ROW).persist())  # who reads a step twice does not run it twice
            rooted.append(made[-1].where(f"step = {ROOT}").select("port", "content"))
        try:
            for rows in rooted:
                for row in rows.toLocalIterator():
                    added(found, row["port"], unpack(bytes(row["content"])))
        finally:
            for one in made:
                one.unpersist()
        return found

    def __repr__(self) -> str:
        return "spark(...)"


def spark(session: SparkSession, *, parts: int | None = None) -> Spark:
    """Run what is asked on Spark: `protect("/data/views/*.parquet", ..., engine=wpinq.spark(session))`.

    Executors read the files, which all of them see under one path, and have wpinq installed. They are told the plan and
    the keys that identify and sample records, never the secret; the ledger is opened, charged and answered from by this
    process alone. The answers are those of one process, bit for bit. What cannot be told to another process, such as a
    function of plain Python, is refused before it is charged.

    Args:
        session: A session of PySpark 3.5 or 4.
        parts: Into how many tasks sources and steps are cut; by default as many as Spark does at once, and more of
            large files.

    Executors run the Python that `PYSPARK_PYTHON` names when the session is made, by default the first `python3`.

    Raises:
        ExtraError: There is no PySpark.
        PlanError: The number of parts is not above zero.
    """
    needs("spark", "spark(...)")
    if parts is not None and (type(parts) is not int or parts < 1):
        raise PlanError("spark(parts=...): takes a number of tasks, from 1.")
    return Spark(session, parts)


def _version() -> str:
    """The version of wpinq that this process runs; "unknown" where it was not installed by pip."""
    try:
        return version("wpinq")
    except PackageNotFoundError:
        return "unknown"


def _installed(rows: Batches) -> Batches:
    """The version of wpinq that an executor has."""
    list(rows)
    yield pa.RecordBatch.from_pydict({"version": [_version()]})


def _work(told: str, parts: int, each: int, step: int) -> Callable[[Batches], Batches]:
    """What Spark does to the rows of a partition: it holds numbers and a text, and imports all else."""
    return lambda rows: performed(told, parts, each, step, rows)


def performed(told: str, parts: int, each: int, step: int, rows: Batches) -> Batches:
    """The rows that the tasks of a partition make."""
    os.environ.setdefault(THREADS, "1")  # Spark gives a task one core
    tasks = _tasks(told, parts, each)
    given: Iterator[Task[Content]]
    if isinstance(tasks.shape(step), Read):
        given = (Task(step, part, None) for batch in rows for part in batch["id"].to_pylist())
    else:
        sorted_rows = (row for batch in rows for row in _pieces(batch))
        given = (
            Task(step, part, (item for _, item in some)) for part, some in groupby(sorted_rows, lambda row: row[0])
        )
    return _written((made for task in given for made in tasks.run(task)), each)


@lru_cache(2)
def _tasks(told: str, parts: int, each: int) -> Tasks:
    given = json.loads(told)
    return alike(Tasks(rebuilt(given), parts, each), given["outline"])


def _pieces(batch: Any) -> Iterator[tuple[int, Item[Content]]]:
    columns = (batch[name].to_pylist() for name in ("part", "port", "shard"))
    for place, (part, port, shard) in enumerate(zip(*columns, strict=True)):
        yield part, Item(port, shard, unpack(batch["content"][place].as_buffer().to_pybytes()))


def _written(every: Iterable[Made[Content]], each: int) -> Batches:
    schema = pa.schema([*((name, pa.int32()) for name in ("step", "port", "part", "shard")), ("content", pa.binary())])
    rows: list[tuple[int, int, int, int, bytes]] = []
    size = 0
    for made in every:
        rows.append((made.step, made.port, made.shard // each, made.shard, bytes(pack(made.content))))
        size += len(rows[-1][-1])
        if size >= BATCH:
            yield _batch(rows, schema)
            rows, size = [], 0
    if rows:
        yield _batch(rows, schema)


def _batch(rows: list[tuple[int, int, int, int, bytes]], schema: Any) -> Any:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
