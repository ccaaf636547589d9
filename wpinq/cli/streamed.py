"""The answers of a stream: printed as they come, as text or as JSON lines, and handed to sinks.

An answer goes to sinks with a key. After a restart they get what they have not got: the same answers, since those of a
closed epoch never change, and nothing is charged for them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from wpinq.cli.bins import ask
from wpinq.cli.errors import say
from wpinq.cli.extended import KeptDataflow
from wpinq.cli.interrupt import ending
from wpinq.cli.status import write_status
from wpinq.errors import NotReadyError, PlanError, SourceError
from wpinq.scripts.script import Dataflow, chosen
from wpinq.streaming.sinks import Release, Sink, open_sink, row_key
from wpinq.streaming.sinks.delivery import Delivery

if TYPE_CHECKING:
    from wpinq.cli.stream import Stream
    from wpinq.measurements.measurement import Measurement
    from wpinq.streaming import Live

OUT = "-"


@dataclass(frozen=True)
class Outputs:
    """Where the answers of a stream go.

    Attributes:
        json: A file that gets a JSON line for each answer; "-" is standard output, which has text else.
        to: Sinks, as `open_sink` reads them.
        status: A file that tells the curator at each epoch how the stream is doing.
    """

    json: Path | None = None
    to: Sequence[str] = ()
    status: Path | None = None

    @property
    def lines(self) -> bool:
        """Whether standard output has JSON lines."""
        return self.json is not None and str(self.json) == OUT

    def sinks(self, taken: set[Path]) -> list[Sink]:
        """The sinks; none of them is reached for yet.

        Args:
            taken: Files that no answers may be written to.

        Raises:
            SourceError: A file cannot be written, or there is no such sink, or one is named twice.
        """
        from wpinq.cli.outputs import check_outputs
        from wpinq.streaming.sinks.lines import LinesFile

        result = [open_sink(one) for one in self.to]
        file = None if self.lines else self.json
        check_outputs({"--json": (file, ()), "--status": (self.status, ())}, taken)
        if file is not None:
            result.append(LinesFile(file))
        names = [one.name for one in result]
        if twice := [name for name in names if names.count(name) > 1]:
            raise SourceError(f"--to: {twice[0]} is named twice.")
        return result


@dataclass(frozen=True)
class Questions:
    """What is asked of a stream at each epoch.

    Attributes:
        stream: A code for the stream.
        measurements: By name.
        bins: Those that are asked of each.
        since: For each measurement the epoch after which it was added.
        told: What is known of the answers of each before there are any.
    """

    stream: str
    measurements: Mapping[str, Measurement]
    bins: Mapping[str, list[Any]]
    since: Mapping[str, int]
    told: dict[str, dict[str, Any]] = field(default_factory=dict)

    def rows(self, epoch: int, *, once: bool = False) -> Iterator[dict[str, Any]]:
        """The answers that an epoch brought: continual ones each time, windows when they close, others once."""
        from wpinq.measurements.continual import ContinualMeasurement
        from wpinq.measurements.windows import WindowedMeasurement

        for name, bins in self.bins.items():
            one = self.measurements[name]
            if epoch <= self.since[name] and not once:
                continue
            if isinstance(one, WindowedMeasurement):
                for time in one.closed(epoch):
                    start, end = time.isoformat(), one.end(time).isoformat()
                    span = {"window_start": start, "window_end": end}
                    values = one.observe_many(bins, time).tolist()
                    yield from self._rows(name, f"window {start}", {"epoch": epoch, **span}, values, None)
            elif isinstance(one, ContinualMeasurement):
                with suppress(NotReadyError):
                    values = one.observe_many(bins, epoch).tolist()
                    yield from self._rows(name, f"epoch {epoch}", {"epoch": epoch}, values, epoch)
            elif once or epoch == self.since[name] + 1:
                with suppress(NotReadyError):
                    yield from self._rows(name, "epoch 1", {"epoch": 1}, one.observe_many(bins).tolist(), None)

    def _rows(
        self, name: str, when: str, about: Mapping[str, Any], values: Sequence[Any], epoch: int | None
    ) -> Iterator[dict[str, Any]]:
        from wpinq.cli.show import LEVEL

        one = self.measurements[name]
        half = one.interval(LEVEL) if epoch is None else one.interval(LEVEL, epoch=epoch)  # type: ignore[call-arg]
        if name not in self.told:
            self.told[name] = _known(one)
        for item, value in zip(self.bins[name], values, strict=True):
            key = row_key(self.stream, name, when, item)
            span = {"window_start": None, "window_end": None, **about}
            answer = {"measurement": name, "bin": item, "value": value, "half_width": half, "level": float(LEVEL)}
            yield {"key": key, "stream": self.stream, **answer, **span, **self.told[name]}


def answer(stream: Stream, script: Dataflow, asked: Mapping[str, Sequence[str]], outputs: Outputs) -> None:
    """Answer the bins asked for: continual measurements at each epoch, windows when they close, others once."""
    from wpinq.cli.inputs import version_of
    from wpinq.cli.show import protects_line
    from wpinq.measurements.windows import WindowedMeasurement

    rehearsal = stream.rehearse(script)
    known = rehearsal.measurements
    windowed = [item for item in known.values() if isinstance(item, WindowedMeasurement)]
    if any(not entry.timed for entry in windowed):
        raise PlanError("window: those of a stream are closed by the clock; cut them by a timestamp or a date.")
    bins = {name: ask(texts, chosen(known, name).node.schema) for name, texts in asked.items()}
    keep, sinks = stream.kept([item.span for item in windowed]), outputs.sinks(stream.taken())
    with closing(stream.open(keep)) as views, ending(stream.stop):
        closed = 0 if views._journal is None else views._journal.closed
        kept = KeptDataflow(stream.recover, stream.digest, closed, whole=rehearsal.whole)
        measurements = rehearsal.charge(views, kept.check)
        kept.keep(measurements)
        questions = Questions(version_of(views._data), measurements, bins, kept.since)
        say(protects_line(views._node))  # what is printed on standard output is answers alone
        place = stream.recover
        with closing(Delivery(sinks, questions.stream, place, keep, stop=stream.stop, tell=say)) as delivery:
            _go_on(stream, views, questions, delivery, outputs)


def _go_on(stream: Stream, views: Live, questions: Questions, delivery: Delivery, outputs: Outputs) -> None:
    """Answer epoch after epoch, first those that sinks have not got."""
    feed, going, resumed = stream.feed(views), True, views.resume()
    for epoch in delivery.missing(resumed):
        delivery.offer(Release(questions.stream, epoch, list(questions.rows(epoch))))
    if resumed:
        _print(list(questions.rows(resumed, once=True)), outputs.lines)
    while going:
        going = feed()
        epoch = views.advance()
        rows = list(questions.rows(epoch))
        _print(rows, outputs.lines)
        delivery.offer(Release(questions.stream, epoch, rows))
        if outputs.status is not None:
            write_status(outputs.status, views, delivery)
    delivery.finish()


def _known(one: Measurement) -> dict[str, Any]:
    """What is known of every answer of a measurement."""
    from wpinq.cli.show import protected
    from wpinq.plan.bias import biases

    return {
        "epsilon": float(one.epsilon),
        "unit": one.key_owner.unit.text,
        "protects": " and ".join(protected(one.node)),
        "beside_noise": "; ".join(biases(one.node)),
    }


def _print(rows: Sequence[Mapping[str, Any]], lines: bool) -> None:
    """Print the answers that an epoch brought."""
    from wpinq.cli.show import written

    if lines:
        typer.echo(Release("", 0, rows).lines().decode(), nl=False)
    for row in [] if lines else rows:
        when = f"window {row['window_start']}" if row["window_start"] else f"epoch {row['epoch']}"
        typer.echo(f"{when}  {row['measurement']}  {written(row['bin'])}  {row['value']:,}")
    sys.stdout.flush()
