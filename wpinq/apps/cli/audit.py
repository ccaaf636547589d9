"""`wpinq audit`: search for a privacy unit that a dataflow script shows more of than it is charged for.

With `--self` it is wpinq that is audited, and no script.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wpinq.apps.cli import arguments, options
from wpinq.apps.cli.inputs import Input
from wpinq.apps.scripts.script import find, load
from wpinq.core import Kind
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq.testing import Audit

SETS = "PYTHONHASHSEED"
OTHERS = ("1", "2")
"""Orders of sets that two further processes have."""


Json = Annotated[
    Path | None, typer.Option(help="With --self: write it as JSON too.", metavar="FILE", show_default=False)
]
Html = Annotated[
    Path | None, typer.Option(help="With --self: write it as a page too.", metavar="FILE", show_default=False)
]


@arguments.over(arguments.records)
def audit(
    *,
    dataflow: options.AuditedName = "",
    data: Input,
    source: options.ColumnsOf = "",
    cases: Annotated[int, typer.Option(help="How many pairs of neighbours to try.", min=1)] = 200,
    seconds: Annotated[
        float, typer.Option(help="Stop after as many seconds.", min=0, callback=options.a_number)
    ] = 60.0,
    seed: Annotated[int, typer.Option(help="Chooses the records that are made up.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Write what is found here, as a script that runs.", metavar="FILE", show_default=False),
    ] = None,
    itself: Annotated[
        bool, typer.Option("--self", help="Audit wpinq instead: its noise, operators, charges, and planted faults.")
    ] = False,
    minutes: Annotated[
        float,
        typer.Option(
            help="With --self: about how long; longer tries more.", min=0.5, max=600, callback=options.a_number
        ),
    ] = 2.0,
    json: Json = None,
    html: Html = None,
    digest: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Search for a person or record that a dataflow script shows more of than it is charged for.

    Records are made up from the columns; no protected record is read, and nothing is charged. It ends with 1 where
    something is found.
    """
    if itself:
        if dataflow:
            raise PlanError("audit --self: audits wpinq, and takes no DATAFLOW; leave one of the two out.")
        _wpinq(minutes, json, html)
        return
    if not dataflow:
        raise PlanError("audit: takes the DATAFLOW to audit, a script or its name; or --self, to audit wpinq.")
    for option, path in (("--json", json), ("--html", html)):
        if path is not None:
            raise PlanError(f"audit {option}: goes with --self; --out writes what is found in a dataflow.")
    from wpinq.apps.cli.outputs import check_outputs, write_text
    from wpinq.progress import bar
    from wpinq.testing import auditing

    data.insist_on_a_number()
    script = load(dataflow)
    words: dict[str, Any] = {"unit": data.unit, "where": data.where, "derive": data.derive or None}
    columns = {column.name: None if column.kind is Kind.ANY else column.kind.value for column in data.schema()}
    if digest:
        typer.echo(auditing.digest(script, columns, seed=seed, **words))
        return
    check_outputs({"--out": (out, (".py",))}, {*(data.files() if source else ()), find(dataflow).resolve()})
    loaded = f"from wpinq.apps.scripts.script import load\n\ndataflow = load({str(find(dataflow).resolve())!r})"
    with bar("cases", cases) as progress:
        result = auditing.audit(
            script, columns, cases=cases, seconds=seconds, seed=seed, load=loaded, progress=progress, **words
        )
    typer.echo(str(result))
    if out is not None and not result:
        write_text("--out", out, result.program)
        typer.echo(f"Written: {out}")
    if not result or _differs(result):
        raise typer.Exit(1)


def _wpinq(minutes: float, json: Path | None, html: Path | None) -> None:
    """Audit the package itself, and end with 1 where something is wrong or a planted fault was not found."""
    from wpinq.apps.cli.outputs import check_outputs, write_text
    from wpinq.progress import bar
    from wpinq.testing.checks import run

    check_outputs({"--json": (json, (".json",)), "--html": (html, (".html",))})
    with bar("checks", run.many()) as progress:
        report = run.audited(minutes, progress or (lambda _: None))
    typer.echo(str(report))
    for option, path, text in (("--json", json, report.json()), ("--html", html, report.page())):
        if path is not None:
            write_text(option, path, text)
            typer.echo(f"Written: {path}")
    if not report:
        raise typer.Exit(1)


def _differs(result: Audit) -> bool:
    """Whether some answers are others in a process in which sets have another order; says so."""
    command = [sys.executable, "-m", "wpinq", *sys.argv[1:], "--digest"]
    digests: set[Any] = set()
    for order in OTHERS:
        process = subprocess.run(  # noqa: S603  it is this command again
            command, env={**os.environ, SETS: order}, capture_output=True, text=True, check=False
        )
        digests.add(process.stdout)
    if len(digests) == 1:
        return False
    typer.echo(
        "function: some answers are others in another process. A set has another order in each: a function takes one "
        "of its items, or goes through it; sort it first."
    )
    return True
