"""What workers read: partitions of a topic, and files of this host.

A source has names of partitions, is assigned some of them with the positions up to which they were read, and looks for
what has come since. Files can be read on their host alone: all that match a pattern are one partition, named after the
host.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from wpinq.core.records.schema import Schema
from wpinq.sources.form import Words
from wpinq.streaming.file_tail import Growing
from wpinq.streaming.kafka import Followed
from wpinq.streaming.topic import Topic, check_columns


class Source(Protocol):
    """What a worker reads.

    Attributes:
        name: Names it among all workers that can read its partitions.
        moving: Whether workers of other hosts can read the same partitions.
        offered: How many lines or messages were read; for the curator alone.
    """

    name: str
    moving: bool

    @property
    def offered(self) -> int:
        """How many lines or messages were read; for the curator alone."""

    def names(self) -> list[str]:
        """The partitions that there are by now.

        Raises:
            SourceError: They cannot be listed.
        """

    def assign(self, positions: Mapping[str, Any]) -> None:
        """Read these partitions from now on, and no others, each from a position on; None is its beginning."""

    def look(self) -> Iterator[pl.DataFrame]:
        """Frames of what has come since; when one is given, `positions` are those before it or, of files, after it.

        Raises:
            SourceError: It cannot be read.
        """

    def positions(self) -> dict[str, Any]:
        """Up to where each assigned partition was read, as JSON can hold it."""

    def close(self) -> None:
        """Hold nothing open any more."""


class OfTopic:
    """The partitions of a topic.

    Args:
        topic: The topic.
        schema: The columns that are wanted.
    """

    moving = True

    def __init__(self, topic: Topic, schema: Schema) -> None:
        self._topic, self._followed = topic, Followed(topic, schema)
        self.name = f"kafka {topic.topic}"

    @property
    def offered(self) -> int:
        """See `Source`."""
        return self._followed.offered

    def names(self) -> list[str]:
        """See `Source`."""
        return [self._name(name) for name in self._followed.partitions()]

    def assign(self, positions: Mapping[str, Any]) -> None:
        """See `Source`."""
        self._followed.assign({name.removeprefix(self._name("")): place for name, place in positions.items()})

    def look(self) -> Iterator[pl.DataFrame]:
        """See `Source`."""
        return self._followed.take()

    def positions(self) -> dict[str, Any]:
        """See `Source`."""
        return {self._name(name): place for name, place in self._followed.positions().items()}

    def close(self) -> None:
        """See `Source`."""
        self._followed.close()

    def _name(self, partition: str) -> str:
        return f"{self.name} {partition}"


class OfFiles:
    """The files of this host that a pattern matches: one partition.

    Args:
        pattern: A path or pattern.
        schema: The columns that are wanted.
        form: The form of the files.
        history: Whether what was rotated before the first look is read, too.
    """

    moving = False

    def __init__(self, pattern: str, schema: Schema, form: Words, *, history: bool = False) -> None:
        self._pattern, self._schema, self._form = str(Path(pattern).absolute()), schema, form
        self._history = history
        name = f"files {socket.gethostname()} {self._pattern}"
        self.name = name.encode(errors="backslashreplace").decode()  # of a path that is no text, too
        self._growing: Growing | None = None
        self._offered = 0

    @property
    def offered(self) -> int:
        """See `Source`."""
        return self._offered + (self._growing.offered if self._growing else 0)

    def names(self) -> list[str]:
        """See `Source`."""
        return [self.name]

    def assign(self, positions: Mapping[str, Any]) -> None:
        """See `Source`."""
        self.close()
        if self.name in positions:
            known = positions[self.name]
            places = [] if known is None else [known]
            self._growing = Growing(self._pattern, self._schema, places, history=self._history, **self._form)

    def look(self) -> Iterator[pl.DataFrame]:
        """See `Source`."""
        return iter(()) if self._growing is None else self._growing.take()

    def positions(self) -> dict[str, Any]:
        """See `Source`."""
        return {} if self._growing is None else {self.name: self._growing.positions()}

    def close(self) -> None:
        """See `Source`."""
        if self._growing is not None:
            self._offered = self.offered
            self._growing.close()
            self._growing = None


def check(source: Topic | str, schema: Schema, form: Words) -> None:
    """Refuse columns that a source cannot fill, before any process is started for it.

    Raises:
        SourceError: It cannot.
    """
    if isinstance(source, Topic):
        check_columns(source, schema)
    else:
        Growing(source, schema, **form)


def told(source: Topic | str, form: Words, *, history: bool = False) -> dict[str, Any]:
    """What a worker is told of a source, as JSON can hold it."""
    if isinstance(source, Topic):
        return {"topic": asdict(source)}
    return {"pattern": str(Path(source).absolute()), "form": form, "history": history}


def opened(words: Mapping[str, Any], schema: Schema) -> Source:
    """The source that `told` tells of."""
    if "topic" not in words:
        return OfFiles(words["pattern"], schema, words["form"], history=words["history"])
    topic = words["topic"]
    config = tuple((name, value) for name, value in topic["config"])
    return OfTopic(Topic(tuple(topic["brokers"]), topic["topic"], topic["form"], topic["arrived"], config), schema)
