"""`wpinq ledger`: what was spent, on what, when, by whom, and what is left."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wpinq.errors import WpinqError
from wpinq.exact import exact
from wpinq.ledger import Entry, Ledger
from wpinq.ledger.cost import people, write

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(help="Look after the ledger of a data set.", no_args_is_help=True)

Place = Annotated[Path, typer.Argument(help="The ledger's file.", show_default=False)]
Amount = Annotated[str, typer.Argument(help="Epsilon, exactly: 0.5 or 1/3.", show_default=False)]


@app.command()
def show(path: Place, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show what was spent and what is left."""
    from rich.console import Console

    with _reported():
        ledger = Ledger.existing(path)
        if as_json:
            typer.echo(json.dumps(_report(ledger), indent=2))
            return
        console = Console()
        console.print(_table(ledger))
        console.print(_summary(ledger), markup=False, highlight=False)


@app.command()
def export(
    path: Place,
    json_out: Annotated[Path | None, typer.Option("--json", help="Write JSON here.", metavar="OUT")] = None,
    csv_out: Annotated[Path | None, typer.Option("--csv", help="Write CSV here.", metavar="OUT")] = None,
) -> None:
    """Write every row to a file; amounts are exact, as p/q."""
    with _reported():
        if (json_out is None) == (csv_out is None):
            raise typer.BadParameter("give one of --json OUT and --csv OUT.")
        report = _report(Ledger.existing(path))
        if json_out is not None:
            json_out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        elif csv_out is not None:
            with csv_out.open("w", encoding="utf-8", newline="") as file:
                rows = csv.DictWriter(file, [column.name for column in fields(Entry)])
                rows.writeheader()
                rows.writerows(report["entries"])


@app.command()
def verify(path: Place) -> None:
    """Recompute every code, charge and total, and compare with the head."""
    with _reported():
        ledger = Ledger.existing(path)
        typer.echo(f"{path}: {len(ledger.entries())} rows, all intact and in order. {_summary(ledger)}")


@app.command("raise")
def raise_(path: Place, epsilon: Amount) -> None:
    """Raise the budget to EPSILON in all. The ledger records it."""
    with _reported():
        ledger = Ledger.existing(path)
        ledger.raise_budget(exact(epsilon, "wpinq ledger raise"))
        typer.echo(_summary(ledger))


@app.command()
def cap(path: Place, analyst: str, epsilon: Amount) -> None:
    """Cap what ANALYST may spend, within the budget."""
    with _reported():
        ledger = Ledger.existing(path)
        ledger.cap(analyst, exact(epsilon, "wpinq ledger cap"))
        typer.echo(f"{analyst} may spend epsilon {people(exact(epsilon, 'cap'))}. {_summary(ledger)}")


@contextmanager
def _reported() -> Iterator[None]:
    """Report what is wrong in one line, and leave with code 2."""
    try:
        yield
    except WpinqError as error:
        message = str(error)
    except OSError as error:
        message = f"{error.filename}: {error.strerror}; give a place that can be written."
    else:
        return
    typer.echo(f"wpinq ledger: {message}", err=True)
    raise typer.Exit(2)


def _summary(ledger: Ledger) -> str:
    epsilon, delta = ledger.spent()
    budget, rest = ledger.budget, ledger.delta_budget
    text = f"Spent epsilon {people(epsilon)} of {people(budget)}; {people(budget - epsilon)} is left."
    return f"{text} Spent delta {people(delta)} of {people(rest)}." if rest else text


def _report(ledger: Ledger) -> dict[str, Any]:
    epsilon, delta = ledger.spent()
    return {
        "name": ledger.name,
        "unit": ledger.unit,
        "budget": write(ledger.budget),
        "delta_budget": write(ledger.delta_budget),
        "spent": write(epsilon),
        "delta_spent": write(delta),
        "remaining": write(ledger.remaining()),
        "entries": [_plain(entry) for entry in ledger.entries()],
    }


def _plain(entry: Entry) -> dict[str, Any]:
    values = {column.name: getattr(entry, column.name) for column in fields(entry)}
    return {name: write(value) if isinstance(value, Fraction) else value for name, value in values.items()}


def _table(ledger: Ledger) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(f"{ledger.name}, unit: {ledger.unit}"))
    for column in ("#", "when (UTC)", "what", "on", "version", "by"):
        table.add_column(column)
    for column in ("epsilon", "delta"):
        table.add_column(column, justify="right")
    for entry in ledger.entries():
        amounts = [people(amount) if amount is not None else "" for amount in (entry.epsilon, entry.delta)]
        on = entry.label or entry.question[:12]
        cells = (str(entry.number), entry.at[:19], entry.kind, on, entry.version, entry.analyst, *amounts)
        table.add_row(*map(Text, cells))
    return table
