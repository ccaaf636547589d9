"""A directory of Parquet files, one for each epoch that has answers."""

from __future__ import annotations

import os
from pathlib import Path

from wpinq.errors import SourceError
from wpinq.storage import appearing, settle
from wpinq.streaming.sinks.sink import Release


class ParquetDirectory:
    """Writes a file for each epoch, whole or not at all; an epoch that is given again takes its file's place.

    Args:
        place: The directory; it is made where there is none.
    """

    def __init__(self, place: Path) -> None:
        self.name, self._place = f"parquet:{place}", place

    def deliver(self, release: Release) -> None:
        """See `Sink.deliver`.

        Raises:
            SourceError: The file cannot be written.
        """
        if not release.rows:
            return
        try:
            self._place.mkdir(parents=True, exist_ok=True)
            path = self._place / f"{release.stream}-{release.epoch:012}.parquet"
            with appearing(path, 0o666) as file:  # released numbers are no secret
                release.frame().write_parquet(file)
                file.flush()
                os.fsync(file.fileno())
            settle(self._place)
        except OSError as error:
            raise SourceError(f"{self.name}: cannot be written: {error.strerror}.") from None

    def close(self) -> None:
        """Nothing is held open."""
