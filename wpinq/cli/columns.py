"""`--columns user,page:int`: names and types of columns on a command line."""

from __future__ import annotations

from wpinq.errors import SourceError
from wpinq.sources.columns import Columns, declared


def parse_columns(text: str | None) -> Columns:
    """Read names, separated by commas, each with or without a type.

    Without any type this picks columns, or names them in order; with types all columns stay (see `open_source`).

    Raises:
        SourceError: A name is missing or stands twice, or there is no such type.

    >>> parse_columns("user,page")
    ('user', 'page')
    >>> parse_columns("user,page:int")
    {'user': None, 'page': 'int'}
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    pairs = [part.rpartition(":") if ":" in part else (part, "", "") for part in parts]
    types = {name.strip(): word.strip() or None for name, _, word in pairs}
    if len(types) < len(pairs) or "" in types:
        raise SourceError(f"--columns {text}: a name is missing or stands twice; write --columns user,page:int.")
    declared(types)
    return types if any(types.values()) else tuple(types)
