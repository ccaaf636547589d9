"""A Spark of a hundred lines in this process: what `wpinq.spark` asks of a session, with parts that get lost.

It computes nothing before it is asked, deals rows by a column, keeps what is persisted, and may forget any part of it,
which is then computed again, as Spark does where an executor is lost.
"""

from __future__ import annotations

import re
import zlib
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc


class Session:
    """A session.

    Args:
        loses: Asked before a kept part is read, with its frame's number and its own: whether it is lost by then.
    """

    def __init__(self, loses=lambda frame, part: False):
        self.loses, self.kept = loses, 0

    @property
    def sparkContext(self):  # noqa: N802
        return self

    def range(self, start, end=None, step=1, parts=2):
        ids = list(range(start) if end is None else range(start, end, step))
        columns = [ids[part::parts] for part in range(parts)]
        return DataFrame(self, [lambda c=c: [pa.record_batch({"id": pa.array(c, pa.int64())})] for c in columns])

    def sql(self, query):
        """To which part numbers in a query are dealt: here by what remains of each."""
        head, _, numbers = query.partition(" FROM VALUES ")
        labels = [int(number) for number in re.findall(r"\d+", numbers)]
        parts = int(re.search(r"(\d+)\) AS part", head)[1])
        return self.table(pa.table({"label": labels, "part": [label % parts for label in labels]}))

    def table(self, *parts):
        """A DataFrame whose parts are tables, or functions that give one, anew each time."""
        makes = [part if callable(part) else lambda part=part: part for part in parts]
        return DataFrame(self, [lambda make=make: make().to_batches(max_chunksize=100) for make in makes])


def _even(value):
    """Of two parts that of a number, or of bytes."""
    return value % 2 if isinstance(value, int) else zlib.crc32(value) % 2


class DataFrame:
    """Parts, each a function that gives its batches."""

    isStreaming = False  # noqa: N815

    def __init__(self, session, parts):
        self.sparkSession, self.parts = session, parts

    @property
    def schema(self):
        (first, *_) = self.parts[0]()
        return SimpleNamespace(fields=[SimpleNamespace(name=one.name, dataType=one.type) for one in first.schema])

    @property
    def columns(self):
        return [one.name for one in self.schema.fields]

    def _each(self, change):
        return DataFrame(self.sparkSession, [lambda part=part: change(part()) for part in self.parts])

    def mapInArrow(self, function, schema):  # noqa: N802
        return self._each(lambda batches: list(function(iter(batches))))

    def select(self, *names):
        plain = [name.strip("`") for name in names]
        return self._each(lambda batches: [batch.select(plain) for batch in batches])

    def selectExpr(self, *names):  # noqa: N802
        """Some columns, and the number of the part, under the name that the last text says."""
        task = names[-1].removeprefix("spark_partition_id() AS ")

        def numbered(batches, number):
            for batch in batches:
                column = pa.array([number] * len(batch), pa.int32())
                yield batch.select(list(names[:-1])).append_column(task, column)

        parts = [lambda n=n, part=part: list(numbered(part(), n)) for n, part in enumerate(self.parts)]
        return DataFrame(self.sparkSession, parts)

    def where(self, text):
        name, number = text.split(" = ")
        return self._each(lambda batches: [batch.filter(pc.equal(batch[name], int(number))) for batch in batches])

    def union(self, other):
        return DataFrame(self.sparkSession, [*self.parts, *other.parts])

    def repartition(self, parts, column):
        def dealt(number):
            rows = [batch for part in self.parts for batch in part()]
            chosen = [batch.filter(pa.array([_even(one) == number for one in batch[column].to_pylist()], pa.bool_()))
                      for batch in rows]  # fmt: skip
            return chosen if number < 2 else []  # some parts get nothing, as of Spark's hash

        return DataFrame(self.sparkSession, [lambda number=number: dealt(number) for number in range(max(parts, 2))])

    def sortWithinPartitions(self, *columns):  # noqa: N802
        def ordered(batches):
            rows = pa.Table.from_batches(batches) if batches else None
            return rows.sort_by([(name, "ascending") for name in columns]).to_batches() if rows else []

        return self._each(ordered)

    def persist(self):
        session, kept = self.sparkSession, {}
        session.kept += 1
        frame = session.kept

        def read(number, part):
            if number not in kept or session.loses(frame, number):
                kept[number] = part()
            return kept[number]

        return DataFrame(session, [lambda n=n, part=part: read(n, part) for n, part in enumerate(self.parts)])

    def unpersist(self):
        pass

    def toLocalIterator(self):  # noqa: N802
        for part in self.parts:
            for batch in part():
                yield from batch.to_pylist()

    def collect(self):
        return list(self.toLocalIterator())


DataFrame.__module__ = "pyspark.sql.pretended"
