"""`wpinq publish`: a release file, published period by period.

While it runs it says what happens: lines for people or programs, figures, health.
"""

from __future__ import annotations

import datetime as dt
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wpinq.apps.cli.options import Metrics, Workers
from wpinq.apps.cli.process import check_threads
from wpinq.errors import BudgetError, PlanError, SourceError, WpinqError, needs

if TYPE_CHECKING:
    from wpinq.apps.publish import Outcome, Release
    from wpinq.apps.publish.endpoint import Endpoint
    from wpinq.apps.publish.figures import Figures
    from wpinq.apps.publish.streams.following import Follower

HELD, REFUSED, CHANGED, BUSY, DIFFERS = 3, 4, 5, 75, 6
"""Exit codes beside 0 and 2, for whoever starts it: a timer, Airflow, Kubernetes. 75 is sysexits' "try again"."""

CODES = (
    f"Exit codes: 0 published, now or before; 2 the file, the records or a sink are wrong; {HELD} held back by a check;"
    f" {REFUSED} too little budget; {CHANGED} the records of the period changed; {DIFFERS} verify found a difference;"
    f" {BUSY} another process is publishing."
)

app = typer.Typer(
    help=f"Publish a release file, one period after another, each exactly once.\n\n{CODES}", no_args_is_help=True
)

File = Annotated[Path, typer.Argument(metavar="RELEASE.toml", help="The release file.", show_default=False)]
Wanted = Annotated[
    str | None,
    typer.Option("--period", metavar="PERIOD", show_default=False,
                 help="2026-11-21, 2026-11-21T13, 2026-W47, 2026-11 or 2026; by default the last that is over."),
]  # fmt: skip
Named = Annotated[str, typer.Option("--period", metavar="PERIOD", help="The period.", show_default=False)]


Processes = Annotated[
    int | None,
    typer.Option("--processes", metavar="NUMBER", show_default=False, min=1, max=256,
                 help="Compute in this many processes of this machine; by default as the file says."),
]  # fmt: skip


def _opened(file: Path, processes: int | None = None) -> Release:
    from wpinq.apps.publish import Release

    release = Release.read(file, processes=processes)
    if release.file.data.processes > 1:
        check_threads(release.file.data.processes)
    return release


@app.command()
def plan(file: File, period: Wanted = None) -> None:
    """Price a period, and show which errors to expect and how long the budget lasts; no price depends on records.

    It is refused where a column that is read is null in every record, as one that was declared as another type is.
    """
    from wpinq.apps.cli.show import aligned
    from wpinq.html.numbers import of_threshold, six

    release = _opened(file)
    try:
        priced = release.plan(period)
    except SourceError as error:
        if period is not None or str(error).startswith("question "):  # whose keys are of all periods
            raise
        raise SourceError(
            f"{error} --period plans another period than {release.period().name}, the last that is over."
        ) from None
    rows = [("question", "column", "cost", "noise", "moves each by, 95%")]
    for question in priced.questions:
        for index, noise in enumerate(question.expected):
            half = "" if noise.half_width is None else six(noise.half_width)
            size = "by the bound that is chosen" if noise.scale is None else six(noise.scale)
            label = (question.name, question.price.text) if index == 0 else ("", "")
            rows.append((label[0], noise.column, label[1], f"{noise.mechanism} {size}", half))
    typer.echo(aligned(rows))
    for question in priced.questions:
        if question.threshold is not None:
            typer.echo(f"{question.name}: {of_threshold(question.threshold)}.")
    typer.echo(f"\n{priced.period}, as each period, costs {priced.price.text}. {priced.budget}")
    typer.echo(f"Protects {release.protects}.")
    if priced.left_line:
        typer.echo(priced.left_line)


@app.command()
def run(
    file: File, period: Wanted = None, *,
    accept: Annotated[bool, typer.Option("--accept", help="Publish it although a check holds it back.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Charge for it again, if its records are not those that it was charged for.")
    ] = False,
    deliver: Annotated[
        bool,
        typer.Option("--deliver", help="Deliver what was published to each sink that lacks it, all periods or this one;"
                     " nothing is charged. Records are read where LEDGER.published lacks the files."),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Charge nothing where a column that is read is null in every record.")
    ] = False,
    openlineage: Annotated[
        bool, typer.Option("--openlineage", help="Tell OpenLineage what it costs, where OPENLINEAGE_URL says.")
    ] = False,
    processes: Processes = None,
    metrics: Metrics = None, metrics_file: MetricsFile = None, log_json: LogJson = False,
) -> None:  # fmt: skip
    """Publish one period. Killed and started again, it is charged once, and published whole, once."""
    if deliver and (accept or again or check or openlineage):
        raise PlanError("--deliver: publishes and charges nothing, so leave out --accept, --again, --check and"
                        " --openlineage.")  # fmt: skip
    release = _opened(file, processes)
    with speaking(release, metrics, metrics_file, lines=log_json) as voice:
        if deliver:
            _done(release.deliver(period), voice)
            return
        run = _lineage(release) if openlineage else release.run
        _done((run(period, accept=accept, again=again, check=check) for _ in "1"), voice)


@app.command()
def follow(
    file: File, *, metrics: Metrics = None, metrics_file: MetricsFile = None, log_json: LogJson = False,
    once: Annotated[bool, typer.Option("--once", help="Look once, publish what has closed, and end.")] = False,
    workers: Workers = None,
) -> None:  # fmt: skip
    """Follow a topic of Kafka or files that grow, and publish each period when the clock has closed it."""
    if once and workers is not None:
        raise PlanError("--once: leave it out beside --workers, which read for as long as the command runs.")
    release = _opened(file)
    with speaking(release, metrics, metrics_file, lines=log_json) as voice:
        if not followed(release, voice, once=once, workers=workers):
            raise typer.Exit(2)


@app.command()
def backfill(
    file: File,
    periods: Annotated[str, typer.Argument(metavar="A..B", help="The first and the last.", show_default=False)],
    *,
    processes: Processes = None,
) -> None:
    """Publish all periods of a range that are not published yet; one that cannot be stops no other."""
    release = _opened(file, processes)
    with speaking(release, None, None, lines=False) as voice:
        _done(release.backfill(periods), voice)


@app.command()
def status(
    file: File, *,
    late: Annotated[
        bool, typer.Option("--late", help="Read the records too, and show which periods have others since they were"
                           " published; for the curator's eyes.")
    ] = False,
) -> None:  # fmt: skip
    """Show which periods are published, missing, held or refused, and what is left of the budget."""
    from wpinq.apps.cli.lines import one_line
    from wpinq.apps.cli.show import aligned

    release = _opened(file)
    changed = dict.fromkeys(release.late() if late else (), "records came late or changed since")
    rows = [
        (period.period, period.stage, one_line(period.why or changed.get(period.period, "")))
        for period in release.status()
    ]
    typer.echo(aligned(rows) if rows else "No period was published yet.")
    typer.echo(f"\n{release.budget_line()}")


@app.command()
def verify(file: File, period: Named) -> None:
    """Compute a published period anew, for nothing, and compare every file and row with what was published."""
    from wpinq.apps.cli.lines import say
    from wpinq.apps.publish import BusyError, ChangedError

    differs: list[str] = []
    try:
        release = _opened(file)
        differs = release.verify(period)
    except (BusyError, ChangedError) as error:
        say(str(error))
        raise typer.Exit(_code(error)) from None
    for difference in differs:
        typer.echo(f"{period}: {difference}")
    if differs:
        raise typer.Exit(DIFFERS)
    same = "every file, every row and the computation are the same"
    if release.file.data.listen is not None:
        same = "every file and every row are the same; nothing is left that they could be computed from again"
    typer.echo(f"{period}: {same}.")


def _lineage(release: Release) -> Callable[..., Outcome]:
    """`release.run`, of which OpenLineage is told."""
    needs("openlineage", "--openlineage")
    from wpinq.tools.lineage import publish

    return partial(publish, release)


def _ended(outcomes: Iterable[Outcome | WpinqError]) -> Iterator[Outcome | WpinqError]:
    """Outcomes, and the error that ended them."""
    try:
        yield from outcomes
    except WpinqError as error:
        yield error


def _done(outcomes: Iterable[Outcome | WpinqError], voice: Voice) -> None:
    """Say what became of each period as soon as it is known, and exit with the code of the first error."""
    worst = 0
    for outcome in _ended(outcomes):
        voice.tell(outcome)
        worst = worst or _code(outcome)
    voice.after(well=not worst)
    if worst:
        raise typer.Exit(worst)


def _code(outcome: Outcome | WpinqError) -> int:
    """The exit code of an outcome."""
    from wpinq.apps.publish import BusyError, ChangedError, HeldError

    codes = {HeldError: HELD, BudgetError: REFUSED, ChangedError: CHANGED, BusyError: BUSY, WpinqError: 2}
    return next((code for kind, code in codes.items() if isinstance(outcome, kind)), 0)


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
        from wpinq.apps.cli.lines import one_line, say

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
        self._line(event)

    def note(self, text: str) -> None:
        """What the curator may want to know while nothing went wrong."""
        from wpinq.apps.cli.lines import say

        if self.lines:
            self._line({"event": "note", "message": text})
        else:
            say(text)

    def _line(self, event: Mapping[str, Any]) -> None:
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
def _door(release: Release, follower: Follower, voice: Voice, *, once: bool) -> Iterator[None]:
    """Takes records, where a release has them sent to it.

    Raises:
        SourceError: The address cannot be listened on.
        ExtraError: A library is missing.
    """
    if follower.intake is None or once:
        yield
        return
    needs("serve", "data.listen")
    from wpinq.apps.serve.intake import of_release

    with of_release(release.file, follower.schema, follower.intake, follower.clock) as listener:
        host, port = listener.getsockname()[:2]
        voice.note(f"Records are taken at http://{f'[{host}]' if ':' in host else host}:{port}/, by POST of JSON.")
        yield


def followed(release: Release, voice: Voice, *, once: bool, workers: int | None = None) -> bool:
    """Follow a stream until SIGTERM or an interrupt; whether the last look went well."""
    from wpinq.apps.cli.process import ending, interruptible
    from wpinq.apps.cli.stream import AGAIN

    stop, follower, last_error, well = threading.Event(), release.follow(workers), "", True
    every, waits, due = 60.0 if release.file.stream is None else release.file.stream.every, None, float("-inf")
    began = False
    if voice.figures is not None:
        voice.figures.host = follower.host
    try:
        with ending(stop), _door(release, follower, voice, once=once):
            while True:
                interruptible()
                if not began and follower.begins is not None:
                    began = True
                    voice.note(
                        f"The first period is {follower.begins.name}; no earlier record will be counted"
                        " (period.first names another)."
                    )
                try:
                    for outcome in follower.step():
                        voice.tell(outcome)
                    well, last_error = True, ""
                except WpinqError as error:  # of a broker that is away, say: what came is read when it is back
                    if str(error) != last_error:
                        voice.tell(error)
                    well, last_error = False, str(error)
                if follower.waits not in (None, waits):
                    voice.note(str(follower.waits))
                waits = follower.waits
                if waits is None or time.monotonic() > due:
                    voice.after(well=well)
                    due = time.monotonic() + every
                if once or stop.wait(every if waits is None else min(every, AGAIN)):
                    return well
    except KeyboardInterrupt:
        return well
    finally:
        follower.close()
