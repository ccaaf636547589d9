"""`tail -f access.log | wpinq run DATAFLOW -`: lines of a web log as they come, answers at each epoch."""

from __future__ import annotations

import contextlib
import io
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from wpinq.cli.bins import parse_bins
from wpinq.cli.dataflow import LIMITLESS, Dataflow, chosen
from wpinq.errors import NotReadyError, PlanError

if TYPE_CHECKING:
    from wpinq.measurement import Measurement
    from wpinq.streaming import Live

BLOCK = 1 << 20


@dataclass(frozen=True)
class Stream:
    """Records that come by standard input, as the command line names them.

    Attributes:
        columns: Which columns of a web log.
        budget: Epsilon, as it was written.
        ledger: Where the ledger is kept; in memory by default.
        name: Names the data set in its ledger.
        every: Seconds after which an epoch is closed.
    """

    columns: str | None
    budget: str | None
    ledger: Path | None
    name: str | None
    every: float

    def source(self, budget: Fraction | None = None) -> Live:
        """The live source; with a budget one in memory, for a rehearsal.

        Raises:
            PlanError: There is no budget.
            SourceError: A web log has no such column.
        """
        import wpinq
        from wpinq.sources.columns import chosen as picked
        from wpinq.sources.weblog import KINDS

        names = None if self.columns is None else [one.strip() for one in self.columns.split(",")]
        kinds = {column.name: column.kind.value for column in picked(KINDS, names, "a web log")}
        if budget is None and self.budget is None:
            raise PlanError("--budget: a stream needs one; it holds for all that comes.")
        place = None if budget is not None else self.ledger
        return wpinq.live(kinds, budget or self.budget or 0, ledger=place, name=self.name or "stdin")


def answer(stream: Stream, script: Dataflow, asked: Mapping[str, Sequence[str]], lines: BinaryIO) -> None:
    """Answer the bins asked for at the end of each epoch: of continual measurements each time, of others once."""
    from wpinq.windowed import WindowedMeasurement

    rehearsal = stream.source(LIMITLESS)
    with contextlib.redirect_stdout(io.StringIO()):
        rehearsed = script(rehearsal)
    questions: dict[str, list[Any]] = {}
    for name, texts in asked.items():
        measurement = chosen(rehearsed, name)
        if isinstance(measurement, WindowedMeasurement):
            raise PlanError(f"--observe {name}: windows of a stream are observed in a script, not here.")
        schema = measurement.node.schema
        questions[name] = [one for text in texts for one in parse_bins(text, schema)]
    rehearsal.close()
    views = stream.source()
    measurements = script(views)
    try:
        _follow(views, lines, stream.every, lambda: _show(views.epoch, measurements, questions))
    finally:
        views.close()


def _follow(views: Live, lines: BinaryIO, every: float, closed: Callable[[], None]) -> None:
    """Send what comes, and close an epoch by the clock, and one at the end."""
    blocks: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines, blocks), name="wpinq reads", daemon=True).start()
    end = time.monotonic() + every
    block: bytes | None = b""
    while block is not None:
        try:
            block = blocks.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            block = b""
        if block:
            _send(views, block)
        if block is None or time.monotonic() >= end:
            end = time.monotonic() + every
            views.advance()
            closed()


def _read(lines: BinaryIO, blocks: queue.SimpleQueue[bytes | None]) -> None:
    """Whole lines as they come, from a thread of its own, since a pipe may be silent for long."""
    rest = b""
    read = getattr(lines, "read1", lines.read)
    while data := read(BLOCK):
        whole = (rest + data).rfind(b"\n") + 1
        block, rest = (rest + data)[:whole], (rest + data)[whole:]
        if block:
            blocks.put(block)
    if rest:
        blocks.put(rest + b"\n")
    blocks.put(None)


def _send(views: Live, block: bytes) -> None:
    from wpinq.sources.convert import series, valid_text
    from wpinq.sources.lines import as_lines
    from wpinq.sources.weblog import parse

    views.send(parse(series(valid_text(as_lines(block)), "line")).select(views.columns))


def _show(epoch: int, measurements: Mapping[str, Measurement], questions: Mapping[str, list[Any]]) -> None:
    """Print the answers of an epoch."""
    from wpinq.cli.show import written
    from wpinq.continual import ContinualMeasurement

    for name, bins in questions.items():
        measurement = measurements[name]
        if epoch > 1 and not isinstance(measurement, ContinualMeasurement):
            continue
        try:
            values = measurement.observe_many(bins).tolist()
        except NotReadyError:
            continue
        for one, value in zip(bins, values, strict=True):
            typer.echo(f"epoch {epoch}  {name}  {written(one)}  {value:,}")
    sys.stdout.flush()
