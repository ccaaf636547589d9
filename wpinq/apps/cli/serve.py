"""`wpinq serve`: measurements and questions for analysts, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wpinq.apps.cli.process import check_threads
from wpinq.errors import needs

PROCESSES, WAITING = 2, 60
"""A server and the process that prices for it; and threads that serve requests, charge, and wait for ledgers."""

File = Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="The file of the server.", show_default=False)]


def serve(file: File) -> None:
    """Serve what CONFIG.toml names, to whoever has a token of `wpinq token make`.

    What its scripts measure is charged, once, and computed before the first request.
    """
    needs("serve", "wpinq serve")
    check_threads(PROCESSES, WAITING)
    from wpinq.apps.serve.app import serve as run
    from wpinq.apps.serve.catalogue import opened
    from wpinq.apps.serve.config import read
    from wpinq.apps.serve.run import listening
    from wpinq.apps.serve.tokens import Tokens

    config = read(file)
    listener = listening(config.server)
    with listener:
        catalogue = opened(config)
        tokens = Tokens(catalogue.home / config.server.tokens)
        host, port = listener.getsockname()[:2]
        kind = "https" if config.server.certificate else "http"
        typer.echo(f"Serving {', '.join(catalogue.data)} at {kind}://{f'[{host}]' if ':' in host else host}:{port}")
        run(catalogue, tokens, listener)
