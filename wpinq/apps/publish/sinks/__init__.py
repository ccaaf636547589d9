"""Places that published periods go to. See README.md of the room."""

from __future__ import annotations

from pathlib import Path

from wpinq.apps.publish.file.declared import Sink
from wpinq.apps.publish.sinks.directory import Directory
from wpinq.apps.publish.sinks.place import Edition, Place
from wpinq.apps.publish.sinks.postgres import PostgresTables
from wpinq.apps.publish.sinks.sent import Sent
from wpinq.apps.publish.sinks.sqlite import SqliteTables

__all__ = ["Edition", "Place", "opened"]


def opened(sink: Sink, home: Path) -> Place:
    """The place that a release file names.

    Args:
        sink: What the file says.
        home: The directory that relative paths start from.
    """
    if sink.directory is not None:
        return Directory(sink.directory, sink.formats, home)
    if sink.sqlite is not None:
        return SqliteTables(home / sink.sqlite)
    if sink.postgres is not None:
        return PostgresTables(sink.postgres)
    return Sent(sink.to or "", home)
