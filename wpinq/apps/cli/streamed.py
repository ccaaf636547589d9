"""The answers of a stream: printed as they come, as text or as JSON lines, and handed to sinks.

An answer goes to sinks with a key. After a restart they get what they have not got: the same answers, since those of a
closed epoch never change, and nothing is charged for them.

A recovered stream goes on with the script of the last run, or with one that measures more. What is kept of a stream is
its records, so any question about them is computed, and charged, as for a stream that never stopped. But a script that
measures other things under the names of before would mix two series of answers, and one that was changed by mistake
would be charged; so what was measured before must be there, unchanged.

`--status FILE` says how a stream is doing, in exact counts, for its curator alone.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from wpinq.apps.cli.bins import ask
from wpinq.apps.cli.lines import say
from wpinq.apps.cli.process import ending
from wpinq.apps.scripts.script import Dataflow, chosen
from wpinq.errors import PlanError, SourceError, needs
from wpinq.storage import appearing
from wpinq.streaming.answers import Answers, Questions
from wpinq.streaming.sinks import Release, Sink, open_sinks
from wpinq.streaming.sinks.delivery import Delivery

if TYPE_CHECKING:
    from wpinq import Measurement
    from wpinq.apps.cli.inputs import Input
    from wpinq.apps.cli.stream import Stream
    from wpinq.apps.publish.endpoint import Endpoint
    from wpinq.apps.serve.appending import Appending
    from wpinq.streaming.collection import Live
    from wpinq.streaming.notes import Notes
    from wpinq.streaming.shared.keeper import HeldError
    from wpinq.tools.openmetrics import Standing

OUT = "-"


@dataclass(frozen=True)
class Outputs:
    """Where the answers of a stream go.

    Attributes:
        json: A file that gets a JSON line for each answer; "-" is standard output, which has text else.
        to: Sinks, as `open_sink` reads them.
        status: A file that tells the curator at each epoch how the stream is doing.
        listen: Where records are taken.
        store: What they are appended to.
        metrics: Where /metrics, /health and /ready are answered: a port of this machine, or host:port.
    """

    json: Path | None = None
    to: Sequence[str] = ()
    status: Path | None = None
    metrics: str | None = None
    listen: str | None = None
    store: Appending | None = None

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
        from wpinq.apps.cli.outputs import check_outputs

        file = None if self.lines else self.json
        check_outputs({"--json": (file, ()), "--status": (self.status, ())}, taken)
        return open_sinks([*self.to, *([] if file is None else [f"json:{file}"])], "--to")


def answer(stream: Stream, script: Dataflow, bins_of: Mapping[str, Sequence[str]], outputs: Outputs) -> None:
    """Answer the bins asked for: continual measurements at each epoch, windows when they close, others once."""
    from wpinq.apps.cli.show import LEVEL, protects_line
    from wpinq.core import Kind
    from wpinq.streaming.shared.keeper import HeldError

    rehearsal = stream.rehearse(script)
    known = rehearsal.measurements
    windows = [window for item in known.values() if (window := item.times.window) is not None]
    if any(window.kind is Kind.INT for window in windows):
        raise PlanError("window: those of a stream are closed by the clock; cut them by a timestamp or a date.")
    bins = {name: ask(texts, chosen(known, name).node.schema) for name, texts in bins_of.items()}
    keep, sinks = stream.epochs_held([window.span.longest for window in windows]), outputs.sinks(stream.taken())
    with (
        ending(stream.stop), closing(Watch(outputs.metrics)) as watch,
        suppress(HeldError), stream.kept(keep, watch.waits) as views,  # it was stopped before it was its turn
    ):  # fmt: skip
        watch.goes(views)
        closed = 0 if views._journal is None else views._journal.closed
        notes = None if views._journal is None else views._journal.notes
        dataflow = KeptDataflow(notes, stream.digest, closed, whole=rehearsal.whole)
        measurements = rehearsal.charge(views, dataflow.check)
        dataflow.keep(measurements)
        questions = Questions(views._data.version, measurements, bins, dataflow.since, LEVEL)
        say(protects_line(views._node))  # what is printed on standard output is answers alone
        with (
            closing(Delivery(sinks, questions.stream, notes, keep, stop=stream.stop, tell=say)) as delivery,
            door(stream, outputs),
        ):
            _go_on(stream, views, Answers(views, questions, delivery), outputs, watch.well)


def heard(data: Input) -> Appending:
    """The file that what is sent is appended to, made where there is none.

    Raises:
        PlanError: INPUT is no file of JSON lines, or its columns are not named, or JSON cannot say one.
        SourceError: It cannot be written.
        ExtraError: A library is missing.
    """
    needs("serve", "run --listen")
    from wpinq.apps.serve.appending import Appending
    from wpinq.apps.serve.intake import TYPES
    from wpinq.core import Kind
    from wpinq.sources.form import named, parse_columns

    if not data.source.endswith(".jsonl") or data.columns is None or any(wildcard in data.source for wildcard in "*?["):
        raise PlanError("--listen: INPUT is a file that what is sent is appended to, such as sent.jsonl; name its"
                        " columns with --columns.")  # fmt: skip
    schema = named(parse_columns(data.columns), Kind.TEXT, None, "--columns")
    if unsaid := [column.name for column in schema if column.kind not in TYPES]:
        raise PlanError(f"--columns: JSON cannot say {unsaid[0]}; take text.")
    result = Appending(Path(data.source), schema)
    result.begin()
    return result


@contextmanager
def door(stream: Stream, outputs: Outputs) -> Iterator[None]:
    """Take records for as long as a stream runs, where it has them sent.

    Raises:
        SourceError: The address cannot be listened on.
    """
    if outputs.listen is None or outputs.store is None:
        yield
        return
    from wpinq.apps.serve.intake import Form, taking

    unit = stream.data.unit
    form = Form(outputs.store.schema, None if unit is None else unit.column)
    with taking(outputs.listen, form, outputs.store, lambda: dt.datetime.now(dt.UTC)) as listener:
        host, port = listener.getsockname()[:2]
        say(f"Records are taken at {host}:{port}, by POST of JSON. They are appended to {outputs.store.path}, in the"
            " clear, and nothing of them is destroyed.")  # fmt: skip
        yield


class Watch:
    """Answers a scraper for as long as a stream runs, and while it waits for its turn to be kept.

    Args:
        address: Where; None for nowhere.

    Attributes:
        standing: Gives how the stream stands.

    Raises:
        SourceError: The address cannot be listened on.
    """

    def __init__(self, address: str | None) -> None:
        self._endpoint: Endpoint | None = None
        if address is None:
            return
        from wpinq.apps.publish.endpoint import Endpoint
        from wpinq.tools.openmetrics import Standing, of_stream

        self.standing: Callable[[], Standing] = Standing
        self._endpoint = Endpoint(address, of_stream(self.now))

    def now(self) -> Standing:
        """How the stream stands at this moment."""
        return self.standing()

    def waits(self, held: HeldError) -> None:
        """Say that another process keeps the stream, and that this one is well."""
        if self._endpoint is not None:
            from wpinq.tools.openmetrics import Standing

            self.standing = partial(Standing, shared=True, keeper=held.keeper)
            self.well()

    def goes(self, views: Live) -> None:
        """Say from now on how a stream stands that this process keeps."""
        if self._endpoint is not None:
            from wpinq.tools.openmetrics import Standing

            data, parts = views._data, views._parts
            ledgers = {data.name: data.ledger}
            self.standing = lambda: Standing(
                ledgers, views.epoch, {} if parts is None else parts.read_at, shared=parts is not None
            )

    def well(self) -> None:
        """Say that all is well: an epoch was answered."""
        if self._endpoint is not None:
            self._endpoint.alive(ready=True)

    def close(self) -> None:
        """Answer no more."""
        if self._endpoint is not None:
            self._endpoint.close()


def _go_on(stream: Stream, views: Live, answers: Answers, outputs: Outputs, refresh: Callable[[], None]) -> None:
    """Answer epoch after epoch, after those that a sink has not got."""
    feed, going = stream.feed(views), True
    if views.epoch:
        _print(answers.latest(), outputs.lines)
    while going:
        going = feed()
        views.advance()
        for release in answers.fresh():
            _print(release.rows, outputs.lines)
            answers.delivery.offer(release)
        refresh()
        if outputs.status is not None:
            write_status(outputs.status, views, answers)
    answers.delivery.finish()


def _print(rows: Sequence[Mapping[str, Any]], lines: bool) -> None:
    """Print the answers that an epoch brought."""
    from wpinq.apps.cli.show import written

    if lines:
        typer.echo(Release("", 0, rows).lines().decode(), nl=False)
    for row in [] if lines else rows:
        when = f"window {row['window_start']}" if row["window_start"] else f"epoch {row['epoch']}"
        typer.echo(f"{when}  {row['measurement']}  {written(row['bin'])}  {row['value']:,}")
    sys.stdout.flush()


NAME = "dataflow"


class KeptDataflow:
    """What a recovered stream measures, and since when.

    Args:
        notes: What is kept of the stream; None where nothing is.
        script: A digest of the script of this run.
        closed: How many epochs are kept.
        whole: Whether the script does nothing but measure, so that its questions are known before they are charged.

    Attributes:
        since: For each measurement how many epochs had closed when it was added; it answers from the next one on.

    Raises:
        SourceError: It cannot be read.
        PlanError: It is another script, whose questions are not known before they are charged.
    """

    def __init__(self, notes: Notes | None, script: bytes, closed: int, *, whole: bool) -> None:
        self._notes, self._script, self._closed = notes, script.hex(), closed
        self._questions: dict[str, str] = {}
        self.since: dict[str, int] = {}
        content = None if notes is None else notes.read(NAME)
        if content is None:
            return
        try:
            saved = json.loads(content)
            self._same, self._questions, self.since = (
                saved["script"] == self._script,
                saved["questions"],
                saved["since"],
            )
        except (ValueError, LookupError, TypeError):
            raise SourceError("--recover: the dataflow that is kept cannot be read; give a new directory.") from None
        if not self._same and not whole:
            raise PlanError(
                "--recover: the script was changed, and observes while it measures, so what it will be charged for is "
                "not known before; give a new directory."
            )

    def check(self, measurements: Mapping[str, Measurement]) -> None:
        """Refuse measurements that do not extend those of before, before they are charged.

        Raises:
            PlanError: One of before is missing, or another one now.
        """
        if not self._questions or self._same:
            return
        for name, question in self._questions.items():
            if name not in measurements or measurements[name].question != question:
                what = "is missing" if name not in measurements else "measures something else"
                raise PlanError(
                    f"--recover: what was kept belongs to another dataflow: {name!r} {what} now; leave what was "
                    "measured as it was and add to it, or give a new directory. Nothing was charged."
                )

    def keep(self, measurements: Mapping[str, Measurement]) -> None:
        """Write down what is measured from now on.

        Raises:
            SourceError: It cannot be written.
        """
        self.since = {name: self.since.get(name, self._closed) for name in measurements}
        if self._notes is None:
            return
        questions = {name: measurement.question for name, measurement in measurements.items()}
        content = {"script": self._script, "questions": questions, "since": self.since}
        self._notes.write(NAME, json.dumps(content).encode())


def _moment(time: int | None) -> str | None:
    """A time in microseconds, as text; None where a partition was not read since this process began."""
    return None if time is None else dt.datetime.fromtimestamp(time / 10**6, dt.UTC).isoformat(timespec="seconds")


FOR = "the curator alone: counts of records are exact and no noise protects them; never publish them"


def write_status(path: Path, views: Live, answers: Answers) -> None:
    """Replace the file, which only its owner can read; a stream goes on where it cannot be written."""
    received, state = views._received, views._data.ledger.state()
    promise, spent = state.promise, state.spent
    parts = views._parts
    content = {
        "for": FOR,
        "written": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "epoch": views.epoch,
        "late": answers._late,
        "offered": received.offered,
        "records": received.records,
        "dropped": received.offered - received.records,
        "nulls": dict(received.nulls),
        "epsilon": {"spent": None if spent.gaussian else float(spent.epsilon), "left": float(promise.left(spent))},
        **(
            {promise.kind: {"spent": float(spent.divergence), "left": float(promise.limit - spent.divergence)}}
            if spent.curves
            else {}
        ),
        "budget": promise.text,
        **({} if parts is None else {"partitions": {name: _moment(time) for name, time in parts.read_at.items()}}),
        "sinks": answers.delivery.state(),
    }
    with suppress(OSError), appearing(path) as file:
        file.write(json.dumps(content, indent=1).encode() + b"\n")
