"""`wpinq token`: who may ask a server, what, and until when; who may send records at a rate of its own."""

from __future__ import annotations

import datetime as dt
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wpinq.apps.cli.lines import note
from wpinq.errors import PlanError
from wpinq.exact import decimal, exact

if TYPE_CHECKING:
    from wpinq.apps.serve.config import Config
    from wpinq.apps.serve.tokens import Grant, Tokens

app = typer.Typer(
    help="Make, list and revoke the tokens of `wpinq serve`, and of releases and streams that records are sent to.",
    no_args_is_help=True,
)

File = Annotated[
    Path,
    typer.Argument(metavar="CONFIG.toml|INPUT.jsonl", show_default=False,
                   help="The file of the server, of a release with data.listen, or INPUT of run --listen."),
]  # fmt: skip


@app.command()
def make(
    file: File,
    analyst: Annotated[str, typer.Argument(help="Who gets it. Several tokens of one analyst share a cap.")],
    *,
    data: Annotated[
        list[str] | None, typer.Option(help="A data set that it is for, by default all; can be given many times.")
    ] = None,
    cap: Annotated[
        str | None, typer.Option(help="Epsilon, or rho, that may be spent of each data set.", metavar="EPSILON")
    ] = None,
    cap_delta: Annotated[
        str | None, typer.Option(help="Delta that may be spent of each data set, with --cap.", metavar="DELTA")
    ] = None,
    days: Annotated[int, typer.Option(help="For how long it is valid.", min=1, max=3_650)] = 90,
    curator: Annotated[bool, typer.Option("--curator", help="May see the ledger, set caps and revoke tokens.")] = False,
) -> None:  # fmt: skip
    """Make a token and print it, once: only its hash is kept. Without --cap it may only look at what there is.

    For a release or a file that records are sent to, who shows it has its requests counted by it, not by their address.
    """
    from wpinq.apps.serve.tokens import insist_on_analyst
    from wpinq.core import Ledger

    config, tokens, release = _opened(file)
    expires = dt.datetime.now(dt.UTC) + dt.timedelta(days=days)
    if config is None:
        if data or cap or cap_delta or curator:
            raise PlanError("--data, --cap, --cap-delta and --curator are of servers; this file is none of a server.")
        _tell(*tokens.make(analyst, [release], expires))
        return
    wanted = data or list(config.data)
    if unknown := set(wanted) - set(config.data):
        raise PlanError(f"--data {min(unknown)!r}: there are {', '.join(config.data)}; give --data once for each.")
    amount = None if cap is None else exact(cap, "--cap")
    chance = None if cap_delta is None else exact(cap_delta, "--cap-delta")
    if amount is None and chance is not None:
        raise PlanError("--cap-delta: it goes with --cap.")
    if amount is not None:
        ledgers = list(dict.fromkeys(Ledger.path(config.data[name].ledger, file.parent) for name in wanted))
        if missing := [ledger for ledger in ledgers if not Ledger.exists(ledger)]:
            raise PlanError(f"--cap: {Ledger.title(missing[0])} is not there yet; start the server once, which makes"
                            f" it: wpinq serve {file}. Then make the token.")  # fmt: skip
        capped = [Ledger.existing(ledger) for ledger in ledgers]
        insist_on_analyst(analyst)
        for each in capped:  # all are looked at before one is changed
            each.promise.insist_on_cap(each.name, amount, chance)
        for each in capped:
            each.cap(analyst, amount, chance)
    suffix = "" if amount is None else f", a cap of {decimal(amount)} in each ledger"
    suffix += "" if chance is None else f" and delta {decimal(chance)}"
    _tell(*tokens.make(analyst, wanted, expires, curator=curator), suffix)


def _tell(token: str, grant: Grant, caps: str = "") -> None:
    """Print a token, which nobody can tell again."""
    typer.echo(token)
    what = ", ".join(grant.data)
    note(f"{grant.id}: {grant.analyst}, {what}{caps}, until {grant.expires:%Y-%m-%d}.")


@app.command("list")
def list_(file: File) -> None:
    """Show who has tokens, for what, and until when."""
    from wpinq.apps.cli.show import aligned

    _, tokens, _ = _opened(file)
    rows = [("token", "analyst", "data", "until", "")]
    for grant in tokens.all():
        state = "revoked" if grant.revoked else "" if grant.valid(dt.datetime.now(dt.UTC)) else "expired"
        kind = "curator" if grant.curator else ""
        rows.append((grant.id, grant.analyst, ", ".join(grant.data), f"{grant.expires:%Y-%m-%d}", state or kind))
    typer.echo(aligned(rows) if len(rows) > 1 else "There are no tokens yet.")


@app.command()
def revoke(file: File, token: Annotated[str, typer.Argument(help="Its name, as `list` shows it.")]) -> None:
    """Refuse a token from now on. What was charged stays charged."""
    _, tokens, _ = _opened(file)
    tokens.revoke(token)
    typer.echo(f"{token} is refused from now on.")


def _opened(file: Path) -> tuple[Config | None, Tokens, str]:
    """The file of a server and its tokens; of a release or a stream, its tokens and what they are for."""
    from wpinq.apps.serve.tokens import Tokens, purpose

    if file.suffix == ".jsonl":
        from wpinq.apps.serve.appending import tokens_beside

        return None, Tokens(tokens_beside(file)), purpose(file.name)
    if _of_release(file):
        from wpinq.apps.publish import Release

        release = Release.read(file)
        path = release.file.intake.tokens
        if path is None:
            raise PlanError(f"{file}: name the file of its tokens first: [intake] tokens = 'tokens'.")
        return None, Tokens(file.parent / path), purpose(release.name)
    from wpinq.apps.serve.config import read

    config = read(file)
    return config, Tokens(file.parent / config.server.tokens), ""


def _of_release(file: Path) -> bool:
    """Whether a file is that of a release; what cannot be read is left to who reads a server's."""
    try:
        return "question" in tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return False
