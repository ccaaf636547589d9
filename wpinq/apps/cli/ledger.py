"""`wpinq ledger`: what was spent, on what, when, by whom, and what is left."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from wpinq.apps.cli.outputs import check_outputs, write_text
from wpinq.apps.cli.show import aligned
from wpinq.core import ENDS, RHO, Entry, Ledger, write_amount
from wpinq.errors import SourceError
from wpinq.exact import decimal, exact

app = typer.Typer(help="Look after the ledger of a data set.", no_args_is_help=True)

LedgerArgument = Annotated[
    Path,
    typer.Argument(
        help="The ledger's file, or its URL in PostgreSQL.", show_default=False, metavar="PATH", parser=Ledger.path
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Every = Annotated[
    bool, typer.Option("--all", help="With the rows that only guard answers (seals) or sum up (checkpoints).")
]
Amount = Annotated[str, typer.Argument(help="Epsilon, exactly: 0.5 or 1/3.", show_default=False)]


@app.command()
def show(path: LedgerArgument, as_json: AsJson = False, every: Every = False) -> None:
    """Show what was spent and what is left."""
    ledger = Ledger.existing(path)
    if as_json:
        typer.echo(_as_json(_report(ledger)), nl=False)
        return
    typer.echo(f"{_shown(f'{ledger.name}, unit: {ledger.unit}')}\n\n{_table(ledger, every=every)}\n")
    typer.echo(_summary(ledger))


@app.command()
def export(
    path: LedgerArgument,
    json_out: Annotated[Path | None, typer.Option("--json", help="Write JSON here.", metavar="OUT")] = None,
    csv_out: Annotated[Path | None, typer.Option("--csv", help="Write CSV here.", metavar="OUT")] = None,
) -> None:
    """Write every row to files, or print JSON where none is given; - prints. Amounts are exact, as p/q."""
    wanted = {"--json": (json_out, _as_json), "--csv": (csv_out, _as_csv)}
    files = {option: None if _printed(out) else out for option, (out, _) in wanted.items()}
    check_outputs(
        {option: (out, ()) for option, out in files.items()}, {Path(f"{path}{end}").resolve() for end in ENDS}
    )
    report = _report(Ledger.existing(path))
    if json_out is None and csv_out is None:
        typer.echo(_as_json(report), nl=False)
    for option, (out, written) in wanted.items():
        if out is not None and _printed(out):
            typer.echo(written(report), nl=False)
        elif out is not None:
            write_text(option, out, written(report))


@app.command()
def verify(path: LedgerArgument, as_json: AsJson = False) -> None:
    """Recompute every code, charge and total, and compare with the head; exit code 2 if anything is amiss."""
    ledger = Ledger.existing(path)
    rows = len(ledger.entries())
    if as_json:
        report = {"intact": True, "rows": rows} | _report(ledger)
        del report["entries"]
        typer.echo(json.dumps(report, indent=2))
    else:
        typer.echo(f"{Ledger.title(path)}: {rows} rows, all intact and in order. {_summary(ledger)}")


@app.command()
def metrics(
    paths: Annotated[
        list[Path], typer.Argument(help="Ledgers.", metavar="PATH...", show_default=False, parser=Ledger.path)
    ],
) -> None:
    """Print budgets and caps, and what is left of them, as OpenMetrics; `ledger` is the path, or a URL without user."""
    from wpinq.tools.openmetrics import openmetrics

    typer.echo(openmetrics({Ledger.title(path): Ledger.existing(path) for path in paths}), nl=False)


@app.command("raise")
def raise_(path: LedgerArgument, epsilon: Amount) -> None:
    """Raise the budget to EPSILON in all; of a ledger of rho, to this rho. The ledger records it."""
    ledger = Ledger.existing(path)
    ledger.raise_budget(exact(epsilon, "wpinq ledger raise"))
    typer.echo(_summary(ledger))


@app.command()
def cap(
    path: LedgerArgument, analyst: str, epsilon: Amount,
    delta: Annotated[str | None, typer.Option(help="What ANALYST may spend of its delta.", show_default=False)] = None,
) -> None:  # fmt: skip
    """Cap what ANALYST may spend, within the budget."""
    ledger = Ledger.existing(path)
    amount = exact(epsilon, "wpinq ledger cap")
    chance = None if delta is None else exact(delta, "wpinq ledger cap --delta")
    ledger.cap(analyst, amount, chance)
    kind = "rho" if ledger.promise.accounting == RHO else "epsilon"
    more = "" if chance is None else f" and delta {decimal(chance)}"
    typer.echo(f"{_shown(analyst)} may spend {kind} {decimal(amount)}{more}. {_summary(ledger)}")


@app.command()
def forget(path: LedgerArgument) -> None:
    """Remove the records by person that --index keeps beside the ledger; the next question with it makes them anew."""
    removed = Ledger.existing(path).forget_people()
    typer.echo(f"{Ledger.title(path)}: {removed} file{'' if removed == 1 else 's'} of records by person removed.")


@app.command()
def without(
    path: LedgerArgument,
    name: Annotated[
        str,
        typer.Argument(
            help="A partition of a stream on several hosts, as --status names it, or how some begin: 'files HOST'.",
            show_default=False,
        ),
    ],
) -> None:
    """Let windows wait no more for the files of a host that died for good, or a topic that was left.

    Whoever reads them again goes on where they were read to, and windows wait again; what comes too late is late.
    """
    from wpinq.streaming.shared.abandoned import abandon

    Ledger.existing(path)
    abandoned = abandon(path, name)
    reads = ", ".join(map(_shown, abandoned.read))
    if not abandoned.left:
        raise SourceError(f"{reads}: somebody reads it still, or did seconds ago; end that process first.")
    typer.echo(f"Windows wait no more for {', '.join(map(_shown, abandoned.left))}.")
    if reads:
        typer.echo(f"They wait for {reads}, which somebody reads.")


def _summary(ledger: Ledger) -> str:
    epsilon, delta = ledger.spent()
    promise, rest, left = ledger.promise, ledger.delta_budget, decimal(ledger.remaining())
    text = f"Spent epsilon {decimal(epsilon)} of {decimal(promise.budget)}; {left} is left."
    if ledger.curves:
        text = f"Promises {promise.text}. {ledger.told}; one more question of epsilon {left} is left."
    what = " on thresholds and selections" if rest < promise.delta else ""
    return f"{text} Spent delta {decimal(delta)} of {decimal(rest)}{what}." if rest else text


def _report(ledger: Ledger) -> dict[str, Any]:
    (epsilon, delta), entries = ledger.spent(), ledger.entries()
    gaussian = any(entry.kind == "charge" and entry.epsilon is None for entry in entries)
    return {
        "name": ledger.name,
        "unit": ledger.unit,
        "accounting": ledger.promise.accounting,
        "budget": write_amount(ledger.budget),
        "delta_budget": write_amount(ledger.delta_budget),
        "spent": None if gaussian else write_amount(epsilon),
        "delta_spent": write_amount(delta),
        **_divergences(ledger),
        "remaining": write_amount(ledger.remaining()),
        "entries": [_plain(entry) for entry in entries],
    }


def _divergences(ledger: Ledger) -> dict[str, str]:
    """The other sum, where there is one: of divergences at an order, or of rho."""
    if not ledger.curves:
        return {}
    promise, spent = ledger.promise, ledger.divergence
    order = {} if promise.order is None else {"order": write_amount(promise.order)}
    return {**order, "divergence_limit": write_amount(promise.limit), "divergence_spent": write_amount(spent)}


def _as_json(report: dict[str, Any]) -> str:
    return json.dumps(report, indent=2) + "\n"


def _as_csv(report: dict[str, Any]) -> str:
    text = io.StringIO(newline="")
    rows = csv.DictWriter(text, [column.name for column in fields(Entry)])
    rows.writeheader()
    rows.writerows({name: _cell(value) for name, value in row.items()} for row in report["entries"])
    return text.getvalue()


def _cell(value: Any) -> Any:
    """A cell of a table that a spreadsheet opens: names are text, and none is a formula."""
    if not isinstance(value, str):
        return value
    return f"'{_shown(value)}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else _shown(value)


def _shown(text: str) -> str:
    """A name without what moves the cursor of a terminal: others choose names, and the curator reads them."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def _printed(out: Path | None) -> bool:
    return out == Path("-")


def _plain(entry: Entry) -> dict[str, Any]:
    values = {column.name: getattr(entry, column.name) for column in fields(entry)}
    return {name: write_amount(value) if isinstance(value, Fraction) else value for name, value in values.items()}


def _table(ledger: Ledger, *, every: bool) -> str:
    """Rows on one line each, without columns in which nothing stands."""
    curves = ledger.promise.kind if ledger.curves else ""
    names = ("#", "when (UTC)", "what", "on", "version", "by", "whose, within", "epsilon", "delta", curves)
    rows = [
        (
            str(entry.number), entry.at[:16].replace("T", " "), entry.kind, _short(entry.label or entry.question[:12]),
            _short(entry.version, 16), _short(entry.analyst), _short(entry.within),
            *("" if amount is None else decimal(amount) for amount in (entry.epsilon, entry.delta, entry.divergence)),
        )
        for entry in ledger.entries() if every or not entry.internal
    ]  # fmt: skip
    filled = [index for index in range(len(names)) if any(row[index] not in ("", "0") for row in rows)]
    return aligned([[row[index] for index in filled] for row in (names, *rows)])


def _short(text: str, most: int = 48) -> str:
    text = _shown(text)
    return text if len(text) <= most else f"{text[: most - 3]}..."
