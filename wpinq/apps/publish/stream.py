"""A release over a stream: where its records are kept until they are published, and which columns they have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from wpinq.apps.publish.file.declared import Data, File
from wpinq.core import Column, Kind, Ledger, Schema, declared_kinds
from wpinq.errors import SourceError
from wpinq.sources import open_source
from wpinq.sources.form import chosen

if TYPE_CHECKING:
    from wpinq.streaming.topic import Topic

TOPIC = "kafka://"


def spooled(file: File, name: str, home: Path) -> Data:
    """What the release file says of records, with those of a stream where its spool puts them when a period closes."""
    if file.stream is None or file.data.listen is not None:
        return file.data
    source = f"{spool_of(file.data, name, home).resolve()}/{{date}}/*.parquet"
    return msgspec.structs.replace(
        file.data, source=source, columns=None, format=None, separator=None, decimal=None, encoding=None
    )


def spool_of(data: Data, name: str, home: Path) -> Path:
    """The directory of a release's spool."""
    ledger = Ledger.path(data.ledger, home)
    return ledger.with_name(f"{ledger.name}.stream") / name


def topic_of(data: Data) -> Topic | None:
    """The topic of Kafka, where it is one.

    Raises:
        SourceError: It names none.
    """
    from wpinq.streaming.topic import from_url

    return from_url(data.source) if data.source.startswith(TOPIC) else None


def schema_of(data: Data, home: Path) -> Schema:
    """The columns of a stream's records; nothing but a file's header is read.

    Raises:
        SourceError: It is not there, or its columns need types.
    """
    topic = topic_of(data)
    if data.listen is not None and data.columns is not None:
        sent = declared_kinds(data.columns, "data")
        return Schema(tuple(Column(name, kind or Kind.TEXT) for name, kind in sent))
    if topic is None:
        return open_source(str(home / data.source), columns=data.columns, **data.form("table", "tz")).schema
    from wpinq.streaming.topic import log_of

    log = log_of(topic.form)
    arrived = {topic.arrived: Kind.INSTANT} if topic.arrived else {}
    if log is not None:
        names = None if data.columns is None else [name for name in data.columns if name not in arrived]
        return Schema((*chosen(log.kinds, names, "a web log"), *(Column(name, Kind.INSTANT) for name in arrived)))
    if data.columns is None:
        raise SourceError("data.columns: name those of the messages, such as { user = 'text', time = 'timestamp' }.")
    kinds = {name: kind or Kind.TEXT for name, kind in declared_kinds(data.columns, "data")} | arrived
    return Schema(tuple(Column(name, kind) for name, kind in kinds.items()))
