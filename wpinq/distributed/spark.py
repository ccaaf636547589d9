"""`wpinq.spark(session)`: an engine that runs plans on Spark, whose shuffle carries what tasks send each other.

A step is a `mapInArrow` over rows that each hold one piece: which task it is for, and its bytes (`content.py`). Between
two steps Spark deals rows by the task that they are for, sorts them by shard, spills and runs lost tasks again. Rows
are pieces and not records, so what Spark's pages and event logs count are pieces.

Records are in files that all executors see, or in a DataFrame of Spark, which executors read (`spark_tasks.py`).

What executors are told is a text of JSON: the plan, and the keys that identify and sample records, never the secret
(privacy rule 37); of a DataFrame the key of the digest of its rows as well. It and the pieces are in Spark's hands,
whose encryption (`spark.io.encryption.enabled`, `spark.network.crypto.enabled`) is the curator's to turn on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from wpinq.core.engines.job import Job
from wpinq.core.engines.shuffle.content import unpack
from wpinq.core.engines.shuffle.processes import cut
from wpinq.core.engines.shuffle.tasks import ROOT, Tasks, added
from wpinq.core.ledger.versions import Pin
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node, sources
from wpinq.core.plan.shapes import Read
from wpinq.core.state.histogram import Histogram
from wpinq.distributed.data import travels
from wpinq.distributed.plans import plans_to_json
from wpinq.distributed.spark_tasks import OTHERS, ROW, SUM, begun, sums_to_json, version_of, work
from wpinq.errors import ChangedError, EngineError, PlanError, installed, needs, redacted
from wpinq.sources.tables.spark import SparkReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
NUMBERS = 1 << 16
"""Numbers that Spark cuts into as many parts as it runs tasks at once."""
Tables: TypeAlias = "dict[int, tuple[DataFrame, bytes]]"
"""DataFrames by the step that reads them, and the sum of the identities of all rows."""


class Spark:
    """Runs plans on Spark.

    Args:
        session: The session; its executors have wpinq installed.
        parts: Into how many tasks a source or a step is cut; as many as run at once, or more of large files.
    """

    def __init__(self, session: SparkSession, parts: int | None = None) -> None:
        self._session, self._parts = session, parts
        self._at_once = 0
        self._labels = dict[int, list[int]]()

    def check(self, roots: Sequence[Node]) -> None:
        """Refuse plans that cannot run on executors; nothing was charged.

        Raises:
            PlanError: A step cannot be told, or records are where executors cannot read them.
        """
        plans_to_json(roots)
        for data in {data: None for root in roots for data in sources(root)}:
            if isinstance(data.reader, SparkReader):
                if _apart(data.reader.table.sparkSession, self._session):
                    raise PlanError(
                        f"{data.name}: is a DataFrame of another session than that of engine=wpinq.spark(session). "
                        "Nothing was charged."
                    )
            elif not travels(data):
                raise PlanError(
                    f"{data.name}: executors of Spark cannot read it; protect a DataFrame of Spark, or files that all "
                    "of them see under one path. Nothing was charged."
                )
        self._check_executors()

    def _check_executors(self) -> None:
        """Refuse a session whose executors' Python does not have this wpinq, and see how many tasks it runs at once.

        Each session is asked once. It cuts numbers into as many parts as it runs at once, also over Connect.
        """
        if self._at_once:
            return
        try:
            rows = self._session.range(NUMBERS).mapInArrow(version_of, "version string").collect()
        except Exception:  # noqa: BLE001  Spark's own errors quote the executor's files
            rows = []
        if {row["version"] for row in rows} != {installed()}:
            raise PlanError(
                f"spark(...): the Python of Spark's executors does not have wpinq {installed()} and pyarrow. Install "
                "them there, and name that Python in PYSPARK_PYTHON before the session is made. Nothing was charged."
            )
        self._at_once = len(rows)

    def prove(self, data: DataSet) -> None:
        """Let this process read what may turn out to be damaged."""
        data.reader.prove()

    def run(self, job: Job) -> list[Histogram]:
        """Compute the histograms of all roots.

        Raises:
            PlanError: See `check`.
            ChangedError: A DataFrame gives other rows than those of its version.
            EngineError: Spark could not; the message quotes nothing, and Spark's log says more.
        """
        self.check(job.roots)
        tables = [data for data in {data: None for root in job.roots for data in sources(root)}
                  if isinstance(data.reader, SparkReader)]  # fmt: skip
        pinned = {data: (_pinned(data), data.content_key) for data in tables}  # their sizes are known by now
        tasks = Tasks(job, *cut(job, self._parts or self._at_once))
        reads = {step: shape.data for step in range(len(tasks.origins)) if isinstance(shape := tasks.shape(step), Read)}
        sums = {step: pinned[data] for step, data in reads.items() if data in pinned}
        rows = {step: (data.reader.rows, pinned[data][0]) for step, data in reads.items()
                if isinstance(data.reader, SparkReader)}  # fmt: skip
        message = {"plans": plans_to_json(job.roots), "key": job.key.hex(), "outline": tasks.outline,
                   "sums": sums_to_json(sums)}  # fmt: skip
        try:
            return redacted("spark", lambda: self._run(tasks, message, rows))
        except EngineError:
            for data in tables:  # other rows are why a task failed, perhaps; then this says so
                data.held.clear()
                _pinned(data)
            raise

    def _run(self, tasks: Tasks, message: dict[str, Any], tables: Tables) -> list[Histogram]:
        made: dict[int, DataFrame] = {}
        if tasks.parts not in self._labels:
            self._labels[tasks.parts] = labels(self._session, tasks.parts)
        text = json.dumps({**message, "labels": self._labels[tasks.parts]})
        try:
            for step in (step for stage in tasks.stages() for step in stage):
                rows = self._rows(tasks, step, made, tables)
                rows = rows.mapInArrow(work(text, tasks.parts, tasks.each, step), ROW)
                several = len(tasks.readers(step)) + (step in tables or tasks.counted(step)) > 1
                made[step] = rows.persist() if several else rows  # who reads a step twice does not run it twice
            return self._histograms(tasks, made, tables)
        finally:
            for frame in made.values():
                frame.unpersist()

    def _rows(self, tasks: Tasks, step: int, made: dict[int, DataFrame], tables: Tables) -> DataFrame:
        """What a step reads: records, numbers of shares of files, or pieces, sorted."""
        shape = tasks.shape(step)
        if step in tables:
            return tables[step][0]
        if isinstance(shape, Read):
            return self._session.range(0, tasks.parts, 1, tasks.parts)
        ups = [frame.where(f"step = {step}") for up, frame in made.items() if step in tasks.readers(up)]
        if any(step in tasks.readers(table) for table in tables):
            starts = begun(step, self._labels[tasks.parts], tasks.each)
            ups.append(self._session.range(0, tasks.parts, 1, 1).mapInArrow(starts, ROW))
        rows = ups[0]
        for upstream in ups[1:]:
            rows = rows.union(upstream)
        return rows.repartition(tasks.parts, "part").sortWithinPartitions("part", "shard")

    def _histograms(self, tasks: Tasks, made: dict[int, DataFrame], tables: Tables) -> list[Histogram]:
        """The sums of what all tasks have counted, and of the rows that were read.

        Raises:
            EngineError: They are not those of a DataFrame's version.
        """
        histograms = tasks.job.empty()
        read = {step: np.zeros(2, np.uint64) for step in tables}
        for rows in (rows for step, rows in made.items() if step in tables or tasks.counted(step)):
            for row in _by_task(rows.where(f"step = {ROOT}"), tasks.parts).toLocalIterator():
                if row["port"] <= SUM:
                    read[SUM - row["port"]] += np.frombuffer(row["content"], np.uint64)
                else:
                    added(histograms, row["port"], unpack(bytes(row["content"])))
        if any(words.tobytes() != tables[step][1] for step, words in read.items()):
            raise EngineError(OTHERS)
        return histograms

    def __repr__(self) -> str:
        return "spark(...)"


def labels(session: SparkSession, parts: int) -> list[int]:
    """Labels of parts: `repartition` deals each to a partition of its own, which by their numbers some would share.

    Spark is asked for the hash by which it deals, of numbers that stand in the query: no job runs for that.

    Args:
        session: The session.
        parts: How many parts, and partitions, there are.
    """
    found, number = dict[int, int](), 8 * parts
    while len(found) < parts:
        numbers = ", ".join(f"({label})" for label in range(number))
        query = f"SELECT col1 AS label, pmod(hash(col1), {parts}) AS part FROM VALUES {numbers}"  # noqa: S608  numbers
        for row in session.sql(query).collect():
            found.setdefault(row["part"], row["label"])
        number *= 2
    return [found[part] for part in range(parts)]


def spark(session: SparkSession, *, parts: int | None = None) -> Spark:
    """Run what is asked on Spark: `protect("/data/views/*.parquet", ..., engine=wpinq.spark(session))`.

    Executors read the files, which all of them see under one path, or a DataFrame of Spark, for which `protect` takes a
    `version=`, and have wpinq installed. They are told the plan and the keys that identify and sample records, never
    the secret; the ledger is opened, charged and answered from by this process alone. The answers are those of one
    process, bit for bit. What cannot be told to another process, such as a function of plain Python, is refused before
    it is charged.

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


def _pinned(data: DataSet) -> bytes:
    """The sum of the identities of a DataFrame's rows, as this process has read it last, compared with what is pinned.

    Raises:
        ChangedError: It is another one.
        SourceError: Spark could not read it.
    """
    if not data.held:
        data.pin()
    way, digest, _ = data.held[0]
    assert digest is not None  # noqa: S101  there is no state of files by which it could be known
    try:
        data.ledger.pin(Pin(data.edition, data.reader.name, way, digest))
    except ChangedError:
        data.held.clear()  # the next run reads it once more
        raise
    return digest


def _by_task(rows: DataFrame, parts: int) -> DataFrame:
    """What tasks have counted, dealt once more.

    `toLocalIterator` runs the last stage part after part, on one core; so that is one which only hands over. What one
    task made stays together, or its histogram and the sum of its rows could come of two runs of it.
    """
    return rows.selectExpr("port", "content", "spark_partition_id() AS task").repartition(parts, "task")


def _apart(first: SparkSession, second: SparkSession) -> bool:
    """Whether two sessions know nothing of each other's tables."""
    if first is second:
        return False
    try:
        return first.sparkContext is not second.sparkContext
    except Exception:  # noqa: BLE001  Connect has no context, and says so in several ways
        return True
