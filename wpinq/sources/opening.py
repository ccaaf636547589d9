"""How another process opens the same files: the words of `open_source`, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from wpinq.core.records.kinds import declared_kinds
from wpinq.core.records.reader import Reader, Steady
from wpinq.errors import ChangedError
from wpinq.sources import open_source
from wpinq.sources.form import Columns, Words

Opening: TypeAlias = Mapping[str, Any]
FILED = ("duckdb", "sqlite")
"""Schemes of URLs that name a file of a database."""
CHANGED = "{}: is not the same for all processes; was it changed just now?"


def opening(source: str | Path, columns: Columns, words: Words, reader: Reader) -> Opening | None:
    """What another process must know to open a source that was opened here.

    Returns:
        Plain values; None where the source is no files, whose state all processes can compare.
    """
    place = _everywhere(source) if reader.steady is Steady.FILES else None
    if place is None:
        return None
    named = None if columns is None else [[name, _word(columns, name)] for name in columns]
    return {
        "source": place, "columns": named, "typed": isinstance(columns, Mapping), "words": dict(words),
    }  # fmt: skip


def _everywhere(source: str | Path) -> str | None:
    """A source by a name that every directory knows it by; None where the URL of a database cannot say it.

    Such a URL ends its path at the first question mark, also at one in the name of a directory.
    """
    scheme, _, rest = source.partition(":") if isinstance(source, str) else ("", "", "")
    if scheme not in FILED:
        return str(Path(source).absolute())
    path, _, words = rest.partition("?")
    place = str(Path(path).absolute())
    return None if "?" in place else f"{scheme}:{place}?{words}"


def _word(columns: Sequence[str] | Mapping[str, object], name: str) -> str | None:
    """The type that a column was given, as a word; None where it was given none."""
    declared = columns[name] if isinstance(columns, Mapping) else None
    if declared is None:
        return None
    ((_, kind),) = declared_kinds({name: declared}, "protect")
    return None if kind is None else kind.value


def reopened(opening_: Opening, version: str | None) -> Reader:
    """The reader of files that another process has opened.

    Args:
        opening_: See `opening`.
        version: Path, size and time of change of the files, as the other process found them.

    Raises:
        ChangedError: They are others.
        SourceError: They cannot be read.
    """
    columns: Columns = None
    if opening_["columns"] is not None:
        pairs = dict(opening_["columns"])
        columns = pairs if opening_["typed"] else tuple(pairs)
    words: Words = opening_["words"]
    reader = open_source(opening_["source"], columns=columns, copied=True, **words)
    if reader.version() != version:
        raise ChangedError(CHANGED.format(opening_["source"]))
    return reader
