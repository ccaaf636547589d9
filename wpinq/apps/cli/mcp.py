"""`wpinq mcp`: an agent's questions, to a server of `wpinq serve` or about files of this machine."""

from __future__ import annotations

import os
import threading
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wpinq.apps.cli.process import at_once, check_input
from wpinq.errors import PlanError, needs
from wpinq.exact import exact

if TYPE_CHECKING:
    from wpinq.apps.agents.tools import Desk

SECONDS = 120.0
"""How long the server may take for an answer; what was charged by then is free when it is asked again."""
LONGEST = 1_000
"""Bytes of a file with a token."""
OFTEN = 10
"""New questions that may be paid in a minute, where neither an option nor a file says how many."""
LAST = 9.0
"""Seconds after the end of the input in which what is computed may still end."""
AGENT = "agent"
"""The analyst whose cap counts where no other is named."""


def mcp(
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", help="The server: https://..., or http:// on this machine.", show_default=False),
    ] = None,
    *,
    token_file: Annotated[
        Path | None,
        typer.Option(help="For URL: a file with the agent's token, which only its owner may read.", show_default=False),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="In place of URL: a file as wpinq serve takes it. What it names is asked in this process.",
            metavar="CONFIG.toml", show_default=False,
        ),
    ] = None,
    analyst: Annotated[
        str | None, typer.Option(help=f"With --config: whose cap counts; by default '{AGENT}'.", show_default=False)
    ] = None,
    cap: Annotated[
        str | None,
        typer.Option(help="With --config: what it may spend of each budget, in all.", metavar="EPSILON"),
    ] = None,
    per_minute: Annotated[
        int | None, typer.Option(help=f"Questions that may be paid in a minute; {OFTEN}, or as its file says.", min=0)
    ] = None,
    most: Annotated[
        str | None,
        typer.Option(help="Epsilon that one question may cost; by default what the server allows.", metavar="EPSILON"),
    ] = None,
) -> None:  # fmt: skip
    """Let an agent ask a server, or about your files, by the Model Context Protocol on standard input and output.

    The cap of its token, or --cap, is its budget. A question says what it may cost at most, and is priced before
    it is charged.
    """
    needs("mcp", "wpinq mcp")
    check_input()
    bound = None if most is None else exact(most, "--most")
    if config is None:
        if analyst is not None or cap is not None:
            raise PlanError("--analyst and --cap go with --config; a server has the cap of the token.")
        if url is None or token_file is None:
            raise PlanError("name a server and a token, URL --token-file FILE, or your files, --config CONFIG.toml.")
        _remote(url, token_file, OFTEN if per_minute is None else per_minute, bound)
        return
    if url is not None or token_file is not None:
        raise PlanError("--config: it goes without URL and --token-file.")
    _local(config, analyst or AGENT, None if cap is None else exact(cap, "--cap"), per_minute, bound)


def _remote(url: str, token_file: Path, per_minute: int, most: Fraction | None) -> None:
    """Ask a server."""
    from wpinq.apps.agents.tools import Desk
    from wpinq.apps.remote.transport import TOKEN, Transport
    from wpinq.apps.remote.wire import Listed

    token = _token(token_file).strip()
    if not TOKEN.fullmatch(token):
        raise PlanError("--token-file: it holds no token of `wpinq token make`, on a line by itself.")
    try:
        server = Transport(url, token, SECONDS)
    except PlanError as error:
        raise PlanError(str(error).replace("connect(url=...)", "URL")) from None
    server.ask("/api/measurements", Listed)  # a wrong address or token is told now
    _over_stdio(Desk(server, per_minute, most))


def _local(file: Path, analyst: str, cap: Fraction | None, per_minute: int | None, most: Fraction | None) -> None:
    """Ask in this process."""
    needs("serve", "wpinq mcp --config")
    from wpinq.apps.agents.tools import Desk
    from wpinq.apps.serve.app import OPERATIONS
    from wpinq.apps.serve.config import read
    from wpinq.apps.serve.local import inside

    config = read(file)
    with inside(config, OPERATIONS, analyst, cap) as server:
        _over_stdio(Desk(server, config.server.agents_per_minute if per_minute is None else per_minute, most))
    ending = threading.Timer(LAST, os._exit, [0])
    ending.daemon = True  # else Python would wait for questions whose threads nothing interrupts
    ending.start()


def _over_stdio(desk: Desk) -> None:
    from wpinq.apps.agents.protocol import over_stdio

    with at_once():
        over_stdio(desk)


def _token(file: Path) -> str:
    """The token of a file.

    Raises:
        PlanError: It cannot be read, or others may read it.
    """
    try:
        with file.open("rb") as opened:
            if os.fstat(opened.fileno()).st_mode & 0o077:
                raise PlanError(f"--token-file: others may read it; chmod 600 {file}.")
            return opened.read(LONGEST).decode("ascii", "replace")
    except OSError as error:
        raise PlanError(f"--token-file {file}: cannot be read: {error.strerror}.") from None
