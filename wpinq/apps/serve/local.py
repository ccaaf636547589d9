"""An agent of whoever holds the records: the operations of a server, asked in this process. Nothing listens."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from fractions import Fraction

from wpinq.apps.serve.agents import Inside
from wpinq.apps.serve.catalogue import Catalogue, opened
from wpinq.apps.serve.config import Config
from wpinq.apps.serve.operations import Operation, Site
from wpinq.apps.serve.tokens import Grant, Tokens, insist_on_analyst
from wpinq.apps.serve.turning import Turning
from wpinq.core import Allowance

NEVER = dt.datetime.max.replace(tzinfo=dt.UTC)
LOCAL = "local"
"""The name of the grant. It is of no token: who starts this process has the records and the key as it is."""


@contextmanager
def inside(config: Config, operations: Sequence[Operation], analyst: str, cap: Fraction | None) -> Iterator[Inside]:
    """Open what a file says, and let one analyst ask it as a server would be asked, for as long as the block lasts.

    Args:
        config: The file of a server.
        operations: All that can be asked.
        analyst: Whose cap it is, and whom the ledgers name.
        cap: What the analyst may spend of each budget, all in all; None leaves the cap that there is.

    Raises:
        WpinqError: It cannot be opened, read, charged or computed; or the cap is more than the budget.
    """
    insist_on_analyst(analyst)
    with redirect_stdout(sys.stderr):  # a script may print, and standard output is the protocol's
        catalogue = opened(config)
    if cap is not None:
        _cap(catalogue, analyst, cap)
    site = Site.of(catalogue, Tokens(catalogue.home / config.server.tokens))
    grant = Grant(LOCAL, analyst, tuple(sorted(config.data)), dt.datetime.now(dt.UTC), NEVER)
    with site.rehearsal, Turning(site):
        yield Inside(site, operations, grant)


def _cap(catalogue: Catalogue, analyst: str, cap: Fraction) -> None:
    """Cap the analyst in each ledger; where the cap is this one no row is added, however often an agent begins."""
    ledgers = {data_set.ledger.identity: data_set.ledger for data_set in catalogue.data.values()}
    for ledger in ledgers.values():  # all are looked at before one is changed
        ledger.promise.insist_on_cap(ledger.name, cap, None)
    for ledger in ledgers.values():
        if Allowance.of(ledger, analyst)[0].cap != cap:
            ledger.cap(analyst, cap)
