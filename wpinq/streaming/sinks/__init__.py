"""Places that the answers of a stream go to; see `Sink`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wpinq.errors import SourceError
from wpinq.streaming.sinks.sink import Release, Sink, row_key

__all__ = ["Release", "Sink", "open_sink", "open_sinks", "row_key"]


def open_sinks(places: Sequence[str], call: str) -> list[Sink]:
    """The sinks of some places, each once.

    Args:
        places: As `open_sink` reads them.
        call: Name of the call, for messages.

    Raises:
        SourceError: There is no such sink, or one is named twice.
    """
    result = [open_sink(one) for one in places]
    names = [one.name for one in result]
    if twice := [name for name in names if names.count(name) > 1]:
        raise SourceError(f"{call}: {twice[0]} is named twice.")
    return result


def open_sink(place: str) -> Sink:
    """The sink of `json:FILE`, `parquet:DIR`, `http://...`, `postgresql://...?table=NAME` or `kafka://HOST:PORT/TOPIC`.

    It is not reached for before something is delivered: a stream starts also while one of its sinks is down.

    Raises:
        SourceError: It is none of these, or its client is not installed.
    """
    scheme, _, rest = place.partition(":")
    if scheme == "parquet" and rest:
        from wpinq.streaming.sinks.parquet import ParquetDirectory

        return ParquetDirectory(Path(rest))
    if scheme == "json" and rest:
        from wpinq.streaming.sinks.lines import LinesFile

        return LinesFile(Path(rest))
    if scheme in ("http", "https"):
        from wpinq.streaming.sinks.http import HttpService

        return HttpService(place)
    if scheme in ("postgresql", "postgres"):
        from wpinq.streaming.sinks.postgres import PostgresTable

        return PostgresTable(place)
    if scheme == "kafka":
        from wpinq.streaming.sinks.kafka import KafkaTopic

        return KafkaTopic(place)
    raise SourceError(
        f"--to {scheme}: there are json:FILE, parquet:DIR, http://... and https://..., postgresql://...?table=NAME and "
        "kafka://HOST:PORT/TOPIC."
    )
