"""What a publishing process says while it runs: lines for people or programs, figures, health."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wpinq.errors import SourceError, WpinqError, needs

if TYPE_CHECKING:
    from wpinq.apps.publish import Outcome, Release
    from wpinq.apps.publish.endpoint import Endpoint
    from wpinq.apps.publish.figures import Figures
    from wpinq.apps.publish.following import Follower

MetricsFile = Annotated[
    Path | None,
    typer.Option("--metrics-file", metavar="PATH", show_default=False,
                 help="Write the figures to a file, as a node exporter's textfile collector reads it."),
]  # fmt: skip
LogJson = Annotated[bool, typer.Option("--log-json", help="Say what happens as lines of JSON.")]


@dataclass
class Voice:
    """Says what happens. Figures and lines hold nothing that depends on records but what was released.

    Attributes:
        release: Of what.
        lines: Whether lines are JSON.
        figures: What a scraper is told.
        endpoint: Where it asks.
        file: Where figures are written.
    """

    release: Release
    lines: bool
    figures: Figures | None = None
    endpoint: Endpoint | None = None
    file: Path | None = None

    def tell(self, outcome: Outcome | WpinqError) -> None:
        """What became of a period, or what went wrong."""
        from wpinq.apps.cli.errors import one_line, say

        if self.figures is not None and isinstance(outcome, WpinqError):
            self.figures.refused(outcome)
        if not self.lines:
            say(str(outcome)) if isinstance(outcome, WpinqError) else typer.echo(
                f"{outcome.period}: {outcome.done}, {outcome.price.text}."
            )
            return
        event: dict[str, Any] = (
            {"event": type(outcome).__name__.removesuffix("Error").lower(), "message": one_line(str(outcome))}
            if isinstance(outcome, WpinqError)
            else {"event": outcome.done, "period": outcome.period, "cost": outcome.price.facts}
        )
        at = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        typer.echo(json.dumps({"at": at, "release": self.release.name, **event}))

    def after(self, *, well: bool) -> None:
        """A look at the stream or a period has ended: tell figures, and the curator what is left."""
        try:
            if (why := self.release.alert()) is not None:
                self.tell(SourceError(why))
            if self.figures is not None:
                self.figures.tell(self.release)
                if self.file is not None:
                    self.figures.write(self.file)
        except WpinqError as error:  # what was published is published
            self.tell(error)
            well = False
        if self.endpoint is not None:
            self.endpoint.alive(ready=well)


@contextmanager
def speaking(release: Release, metrics: str | None, file: Path | None, *, lines: bool) -> Iterator[Voice]:
    """A voice, with an endpoint for as long as it is needed.

    Raises:
        SourceError: The endpoint cannot be listened on, or needs a library.
    """
    voice = Voice(release, lines, file=file)
    if metrics is not None or file is not None:
        from wpinq.apps.publish.figures import Figures

        voice.figures = Figures()
    if metrics is not None and voice.figures is not None:
        from wpinq.apps.publish.endpoint import Endpoint

        voice.endpoint = Endpoint(metrics, voice.figures.registry)
    try:
        yield voice
    finally:
        if voice.endpoint is not None:
            voice.endpoint.close()


@contextmanager
def _door(release: Release, follower: Follower, *, once: bool) -> Iterator[None]:
    """Takes records, where a release has them sent to it.

    Raises:
        SourceError: The address cannot be listened on.
        ExtraError: A library is missing.
    """
    if follower.intake is None or once:
        yield
        return
    needs("serve", "data.listen")
    from wpinq.apps.cli.errors import say
    from wpinq.apps.serve.intake import of_release

    with of_release(release.file, follower.schema, follower.intake, follower.clock) as listener:
        host, port = listener.getsockname()[:2]
        say(f"Records are taken at http://{f'[{host}]' if ':' in host else host}:{port}/, by POST of JSON.")
        yield


def followed(release: Release, voice: Voice, *, once: bool) -> bool:
    """Follow a stream until SIGTERM or an interrupt; whether the last look went well."""
    from wpinq.apps.cli.interrupt import ending, interruptible

    stop, follower, last_error, well = threading.Event(), release.follow(), "", True
    every = 60.0 if release.file.stream is None else release.file.stream.every
    try:
        with ending(stop), _door(release, follower, once=once):
            while True:
                interruptible()
                try:
                    for outcome in follower.step():
                        voice.tell(outcome)
                    well, last_error = True, ""
                except WpinqError as error:  # of a broker that is away, say: what came is read when it is back
                    if str(error) != last_error:
                        voice.tell(error)
                    well, last_error = False, str(error)
                voice.after(well=well)
                if once or stop.wait(every):
                    return well
    except KeyboardInterrupt:
        return well
    finally:
        follower.close()
