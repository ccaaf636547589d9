"""`wpinq mcp`: an agent's questions to a server of `wpinq serve`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from wpinq.apps.cli.interrupt import at_once
from wpinq.apps.cli.room import why
from wpinq.errors import PlanError, needs
from wpinq.exact import exact

SECONDS = 120.0
"""How long the server may take for an answer; what was charged by then is free when it is asked again."""
LONGEST = 1_000
"""Bytes of a file with a token."""


def mcp(
    url: Annotated[
        str,
        typer.Argument(metavar="URL", help="The server: https://..., or http:// on this machine.", show_default=False),
    ],
    *,
    token_file: Annotated[
        Path, typer.Option(help="A file with the agent's token, which only its owner may read.", show_default=False)
    ],
    per_minute: Annotated[int, typer.Option(help="Questions that may be paid in a minute.", min=0)] = 10,
    most: Annotated[
        str | None,
        typer.Option(help="Epsilon that one question may cost; by default what the server allows.", metavar="EPSILON"),
    ] = None,
) -> None:
    """Let an agent ask a server, by the Model Context Protocol on standard input and output.

    The token's cap is the agent's budget. A question says what it may cost at most, and is priced before it is charged.
    """
    needs("mcp", "wpinq mcp")
    from wpinq.apps.agents.protocol import over_stdio
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
    desk = Desk(server, per_minute, None if most is None else exact(most, "--most"))
    server.ask("/api/measurements", Listed)  # a wrong address or token is told now
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
        raise PlanError(f"--token-file: {why(error)}") from None
