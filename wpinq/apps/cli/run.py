"""`wpinq run`: a dataflow script over an input, answered for the bins that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wpinq.apps.cli import arguments, options
from wpinq.apps.cli.bins import GRAMMAR, ask, reading_note
from wpinq.apps.cli.inputs import Input
from wpinq.apps.cli.lines import note
from wpinq.apps.cli.outputs import check_outputs, write_json
from wpinq.apps.cli.stream import Stream, streams
from wpinq.apps.scripts.recover import recovering
from wpinq.apps.scripts.script import Dataflow, chosen, find, load, rehearsed
from wpinq.errors import BinError, PlanError

if TYPE_CHECKING:
    from wpinq import Measurement
    from wpinq.apps.scripts.distributed import ScriptProcesses
    from wpinq.collection import Collection

Observed = Annotated[
    list[str] | None,
    typer.Option(
        "--observe", metavar="NAME=BINS", help=f"Bins to answer; can be given many times. {GRAMMAR}", show_default=False
    ),
]
SHOWN = 12
"""Answers of one measurement that are printed; a JSON file holds them all."""


@arguments.over(arguments.protected)
def run(
    dataflow: options.DataflowName,
    data: Input,
    *,
    budget: options.Budget = None,
    observe: Observed = None,
    json: options.JsonPath = None,
    recover: options.RecoverPath = None,
    follow: options.Follow = False,
    every: options.Every = 60.0,
    lateness: options.Lateness = 60.0,
    keep: options.Keep = None,
    workers: options.Workers = None,
    to: options.To = None,
    status: options.Status = None,
    metrics: options.Metrics = None,
    listen: options.Listen = None,
) -> None:
    """Run a dataflow script and answer the bins asked for.

    The script is first run over no records: what is wrong with it, or with the bins, is found before it is charged.
    Its measurements are charged all together or not at all, unless it observes one before it makes the next.
    """
    script = find(dataflow)
    texts = _bins_by_name(observe or [])
    if streams(data.source, follow=follow or listen is not None):
        from wpinq.apps.cli.streamed import Outputs, answer, heard

        store = None if listen is None else heard(data)
        _refuse_of_stream(data, processes=data.engine is not None)
        stream = Stream(data, script, budget, every, lateness, recover, keep, workers)
        answer(stream, load(dataflow), texts, Outputs(json, to or (), status, metrics, listen, store))
        return
    if misplaced := [option for option, value in (("--keep", keep), ("--workers", workers), ("--to", to),
                                                 ("--status", status), ("--metrics", metrics)) if value]:  # fmt: skip
        raise PlanError(
            f"{misplaced[0]}: leave it out; it goes with a stream, and INPUT is none (--follow makes it one)."
        )
    if data.index and recover is not None:
        raise PlanError("--index: leave it out beside --recover, which keeps the records itself.")
    check_outputs({"--json": (json, ())}, {*data.files(), script.resolve()})
    loaded = load(dataflow)
    through = None if recover is None else partial(recovering, folder=recover, script=script)
    measurements, questions = begin(loaded, of_script(data, script), budget, texts, through)
    answers = {item: measurements[item].observe_many(bins).tolist() for item, bins in questions.items()}
    if json is not None:
        write_json(
            json,
            {
                question: _content(measurements[question], questions[question], answers[question])
                for question in questions
            },
        )
    _show(measurements, questions, answers)
    if recover is not None:
        from wpinq.sources.recovered import forget

        forget(recover)


def begin(
    script: Dataflow,
    data: Input,
    budget: str | None,
    bins: Mapping[str, Sequence[str]],
    through: Callable[[Collection], Collection] | None = None,
) -> tuple[dict[str, Measurement], dict[str, list[Any]]]:
    """Check script, columns, budget and bins, and only then protect the input and measure it.

    Args:
        script: The dataflow.
        data: The input.
        budget: Epsilon, as it was written.
        bins: Bins by name of a measurement, as they were written.
        through: What is done to the protected records before the script is given them.

    Returns:
        The measurements, charged and not yet computed, and the bins asked of each.
    """
    amount = options.amount(budget, "--budget")
    rehearsal = rehearsed(script, data.empty(amount))
    known, several = rehearsal.measurements, scripted(data)
    questions = {name: ask(texts, chosen(known, name).node.schema) for name, texts in bins.items()}
    if several is not None:
        several.rehearse(known)
    views = data.protect(amount)
    views = views if through is None else through(views)
    if several is not None:
        several.begin(views)
    measurements = rehearsal.charge(views)
    if several is not None:
        several.know(measurements)
    for name in bins:
        chosen(measurements, name)
    return measurements, questions


def of_script(data: Input, script: Path) -> Input:
    """The input, of which several processes are told the plans of the script, or where they cannot be, the script."""
    if data.engine is None:
        return data
    from wpinq.apps.scripts.distributed import ScriptProcesses
    from wpinq.distributed.processes import Processes

    engine = data.engine
    return replace(data, engine=ScriptProcesses(engine, script)) if isinstance(engine, Processes) else data


def scripted(data: Input) -> ScriptProcesses | None:
    """The processes that are told the plans of a script, if there are several."""
    if data.engine is None:
        return None
    from wpinq.apps.scripts.distributed import ScriptProcesses

    return data.engine if isinstance(data.engine, ScriptProcesses) else None


ONE = "--workers lets several processes read it, on one host or many (wpinq/docs/live.md)"
OF_FILES = {
    "data-version": "what comes has no versions",
    "no-header": "a CSV file that grows needs its header",
    "table": "it is no database",
    "tz": "its times are in UTC; windows and --period take a zone",
    **dict.fromkeys(("separator", "decimal", "encoding"), "messages have none; ?form= and --format say what they hold"),
    "processes": ONE,
    "index": "its questions share one sample",
}
"""Options that a stream does not have, and why."""


def _refuse_of_stream(data: Input, **options: bool) -> None:
    """Refuse the options of files that were given for a stream.

    Raises:
        PlanError: There is one.
    """
    form = {name: value is not None for name, value in data.words.items() if name != "header"}
    form = {name: form.get(name, False) for name in form if "://" in data.source or name in ("table", "tz")}
    form.pop("format", None)
    present = {
        **form,
        **options,
        "data-version": data.version is not None,
        "no-header": not data.words.get("header", True),
        "index": data.index,
    }
    for option in (option for option in OF_FILES if present.get(option)):
        raise PlanError(f"--{option}: leave it out, {data.source} is a stream: {OF_FILES[option]}.")


def _bins_by_name(observe: Sequence[str]) -> dict[str, list[str]]:
    """The texts of the bins by measurement."""
    bins_of: dict[str, list[str]] = {}
    for text in observe:
        name, equals, bins = text.partition("=")
        if not equals or not name:
            raise BinError(f"--observe {text!r}: write NAME=BINS, for example NAME=1..1000.")
        bins_of.setdefault(name, []).append(bins)
    return bins_of


def _content(measurement: Measurement, bins: Sequence[Any], values: Sequence[Any]) -> dict[str, Any]:
    from wpinq.apps.cli.show import protected
    from wpinq.core import biases

    return {
        "bins": list(bins),
        "values": list(values),
        "scale": float(measurement.scale),
        **({"rho": float(measurement.rho)} if measurement.rho else {"epsilon": float(measurement.epsilon)}),
        **({"delta": float(measurement.quote.payment.delta)} if measurement.quote.payment.delta else {}),
        "unit": measurement.key_owner.unit.text,
        "protects": protected(measurement.node),
        "beside noise": biases(measurement.node),
        "columns": {column.name: column.kind.value for column in measurement.node.schema},
        "version": measurement.key_owner.version,
    }


def _show(
    measurements: Mapping[str, Measurement], questions: Mapping[str, list[Any]], answers: Mapping[str, list[Any]]
) -> None:
    from wpinq.apps.cli.show import LEVEL, budget_line, measurement_table, noise_lines, protects_line, released, written

    typer.echo(measurement_table(measurements))
    typer.echo(protects_line(next(iter(measurements.values())).node))
    for name, bins in questions.items():
        half = measurements[name].interval(LEVEL)
        if reading := reading_note(bins, measurements[name].node.schema):
            note(reading)
        typer.echo(f"\n{name}: " + "\n".join(noise_lines(measurements[name])))
        for item, value in list(zip(bins, answers[name], strict=True))[:SHOWN]:
            typer.echo(f"  {written(item)}  {released(value, half)}")
        if len(bins) > SHOWN:
            typer.echo(f"  ... and {len(bins) - SHOWN:,} more bins; --json OUT writes them all")
    typer.echo(f"\n{budget_line(next(iter(measurements.values())).key_owner.ledger)}")
    if not questions:
        typer.echo("Ask for bins with --observe NAME=BINS, for example NAME=1..10; they cost nothing more.")
