"""The process in which questions are rehearsed (`rehearsal.py`): `python -m wpinq.apps.serve.rehearsing`.

It reads a line for what there is, then one for each question, and says a line for each that it is done with. What a
question is refused for does not matter here: the server says that.
"""

from __future__ import annotations

import datetime as dt
import os
import resource
import signal
import sys
import warnings
from fractions import Fraction

import msgspec

from wpinq import Unit
from wpinq.aggregates.expected_noise import expected_noise
from wpinq.apps.remote.pricing import priced, priced_sql
from wpinq.apps.serve.catalogue import Catalogue, Opened
from wpinq.apps.serve.config import Config, Protected
from wpinq.apps.serve.questions import explained, quote_plan, quote_sql
from wpinq.apps.serve.rehearsal import MEMORY, NO_MEMORY, SECONDS, Imagined, Line, Stage
from wpinq.apps.serve.tokens import Grant
from wpinq.protection import LIMITLESS, protect
from wpinq.query.explained import explains

ANALYST = "analyst"


def catalogue_of(stage: Stage) -> Catalogue:
    """The data sets without records, in ledgers in memory whose budget does not end."""
    files = {name: Protected(source="", ledger="", bounds=table.bounds) for name, table in stage.tables.items()}
    config = Config(files, limits=stage.limits, public=stage.public)
    return Catalogue(config, {name: _opened(name, table, files[name]) for name, table in stage.tables.items()})


def _opened(name: str, table: Imagined, file: Protected) -> Opened:
    unit = Unit(table.column, table.at_most, table.per, whole=table.whole)
    views = protect([], LIMITLESS, delta="0.5", columns=table.columns, name=name, unit=unit)
    opened = Opened(name, views, file)
    opened.ledger.cap(ANALYST, LIMITLESS, Fraction(1, 2))
    return opened


def rehearse(line: Line, catalogue: Catalogue) -> None:
    """Price a question, and say how it would be answered where it asks that."""
    now = dt.datetime.now(dt.UTC)
    grant = Grant("", ANALYST, line.data, now, now)
    if line.plan is not None:
        quote = quote_plan(line.plan, grant, catalogue)
        priced([quote], ANALYST, [expected_noise(quote)])
    elif line.sql is not None:
        if explains(line.sql.query) is not None:
            explained(line.sql, grant, catalogue)
        else:
            priced_sql(quote_sql(line.sql, grant, catalogue), ANALYST)


def main() -> None:
    """Answer each line with one."""
    warnings.simplefilter("ignore")
    said, lines = os.fdopen(os.dup(1), "wb", buffering=0), sys.stdin.buffer
    os.dup2(2, 1)  # whatever is printed is no answer
    catalogue = catalogue_of(msgspec.json.decode(lines.readline(), type=Stage))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    said.write(b"\n")
    for line in lines:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # the system ends the process then
        try:
            rehearse(msgspec.json.decode(line, type=Line), catalogue)
        except MemoryError:
            os._exit(NO_MEMORY)
        except Exception:  # noqa: BLE001, S110  the server comes upon the same, and says it
            pass
        signal.setitimer(signal.ITIMER_PROF, 0)
        said.write(b"\n")


if __name__ == "__main__":
    main()
