"""Releases that a server serves: their published periods, tables and files, from Python."""

from __future__ import annotations

import time
from collections.abc import Iterator

from wpinq.apps.remote import wire
from wpinq.apps.remote.admin import Content, Edition, Editions, Windows, WindowsAsked
from wpinq.apps.remote.answers import RemoteAnswer
from wpinq.apps.remote.transport import Transport, quoted


class RemoteRelease:
    """A release on a server: what `wpinq publish` has published, period by period. Reading it is free.

    Attributes:
        name: Its name on the server.
    """

    def __init__(self, transport: Transport, name: str) -> None:
        self.name, self._transport, self._path = name, transport, f"/api/releases/{quoted(name)}"

    @property
    def periods(self) -> list[Edition]:
        """The published periods in the order of time, with their tables and files."""
        return self._transport.ask(self._path, Editions).periods

    def windows(self, table: str, after: str | None = None) -> dict[str, RemoteAnswer]:
        """What was published of a table, by period in the order of time.

        Args:
            table: Its name, that of a question.
            after: A period; only later ones are told.

        Raises:
            SourceError: The server cannot be reached, or there is no such table.
        """
        answers: dict[str, RemoteAnswer] = {}
        more = True
        while more:
            page = self._transport.ask(f"{self._path}/windows", Windows, WindowsAsked(table=table, after=after))
            for window in page.windows:
                about = {"period": window.period, "start": window.start, "end": window.end}
                answers[window.period] = RemoteAnswer(
                    wire.Answered(
                        columns=page.columns,
                        types=page.types,
                        rows=window.rows,
                        intervals=window.intervals,
                        about=about,
                    )
                )
                after = window.period
            more = page.more
        return answers

    def follow(self, table: str, after: str | None = None, every: float = 60) -> Iterator[tuple[str, RemoteAnswer]]:
        """The same, and then each window once it has closed and was published; it never ends by itself.

        Args:
            table: See `windows`.
            after: See `windows`.
            every: Seconds between two looks.

        Raises:
            SourceError: See `windows`.
        """
        while True:
            for period, answer in self.windows(table, after).items():
                after = period
                yield period, answer
            time.sleep(every)

    def file(self, period: str, name: str) -> bytes:
        """One file of a published period.

        Raises:
            SourceError: The server cannot be reached, or there is none.
        """
        return self._transport.ask(f"{self._path}/{quoted(period)}/{quoted(name)}", Content).content

    def __repr__(self) -> str:
        return f"<release {self.name!r} at {self._transport.url}>"
