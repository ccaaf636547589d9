"""`wpinq try`: a dataflow script on made-up records, exactly and without noise; nothing is read, charged or written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wpinq.apps.cli import arguments, options
from wpinq.apps.cli.inputs import Input
from wpinq.apps.scripts.script import load, rehearsed
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.core import Node

SHOWN = 10


@arguments.over(arguments.records)
def try_(
    dataflow: options.DataflowName,
    data: Input,
    *,
    source: options.ColumnsOf = "",
    rows: Annotated[
        Path | None,
        typer.Option(
            help="A small file of records of your own, with the same columns; never the protected ones. Without it "
            "records are made up from the columns.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a dataflow script on made-up records, without noise, so that a mistake shows before it is charged."""
    from wpinq.testing.evaluation import made_up

    data.insist_on_a_number()
    views = data.limitless()
    records = made_up(views) if rows is None else _records(rows, data, views)
    for name, measurement in rehearsed(load(dataflow), views).measurements.items():
        typer.echo(f"{name} {measurement.node.schema}:")
        _show(measurement.node, records)
        typer.echo("")
    made = "made-up" if rows is None else "of your own"
    typer.echo(f"Without noise, of {len(records)} records ({made}). Nothing was charged. What of the protected records "
               "cannot be read, wpinq check tells.")  # fmt: skip


def _records(path: Path, data: Input, views: Collection) -> list[tuple[Any, ...]]:
    """The records of a small file.

    Raises:
        PlanError: It is the protected one, or is large.
    """
    from wpinq.sources import open_source
    from wpinq.testing.evaluation import leaves

    if data.source and path.resolve() in data.files():
        raise PlanError(f"--rows {path}: these are the protected records; write some of your own.")
    if path.is_file() and path.stat().st_size > 1 << 20:
        raise PlanError(f"--rows {path}: is larger than a mebibyte; a few records are enough, and quick.")
    schema = leaves(views)[0].schema
    reader = open_source(path, columns={column.name: column.kind.value for column in schema})
    return [row for frame in reader.batches(schema.names) for row in frame.rows()]


def _show(node: Node, records: list[tuple[Any, ...]]) -> None:
    from wpinq.apps.cli.show import aligned, written
    from wpinq.testing.evaluation import each_step

    results = each_step(node, records)
    weights = sorted(results[node].items(), key=lambda item: (-item[1], repr(item[0])))
    if weights:
        lines = [(f"  {written(record)}", f"{float(weight):g}") for record, weight in weights[:SHOWN]]
        typer.echo(aligned(lines))
        typer.echo(f"  ... and {len(weights) - SHOWN} more" if len(weights) > SHOWN else "", nl=len(weights) > SHOWN)
        return
    ends = next(step for step in results if not results[step])
    typer.echo(f"  nothing: no record comes through {ends.title}. A function there fails for all of them, or none is "
               "kept; --rows FILE gives records of your own.")  # fmt: skip
