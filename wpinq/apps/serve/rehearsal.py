"""Questions of analysts are priced on no records first, in a process of its own that may be ended.

Whoever has a token may ask what a question costs as often as the rate allows, for nothing. Its size is bounded before
it is read, and what it makes before that is made, so pricing takes as long as a text is. This is for what nobody
foresaw: what takes too much time or memory there is refused, and the server never begins it. The process knows names
and types of columns, and no record, ledger, secret or address.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from contextlib import suppress
from hashlib import blake2b
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from types import TracebackType
from typing import Any

import msgspec

from wpinq import Unit
from wpinq.apps.remote.grammar import Measure
from wpinq.apps.remote.wire import Sql
from wpinq.apps.serve.catalogue import Catalogue
from wpinq.apps.serve.config import Limits
from wpinq.apps.serve.refusals import RefusedError
from wpinq.apps.serve.tokens import Grant
from wpinq.core import Kind, sources

MODULE = "wpinq.apps.serve.rehearsing"
SECONDS = 5
"""Of the processor that one question may take."""
PATIENCE = 60.0
"""Seconds by the clock until it is given up, on a machine that does much else."""
MEMORY = 1 << 31
"""Bytes that the process may write to."""
NO_MEMORY = 1
"""Its exit code beyond."""
SETTLING = 1.0
"""Seconds in which the system ends a process whose streams are closed."""
PASSED = 1024
"""Questions that are known to pass, so that one that is priced and then asked is rehearsed once."""
SPENT = (-signal.SIGPROF, NO_MEMORY)
"""How the process ends at a question that takes too much."""
TOO_MUCH = "pricing it takes too long, or too much memory; ask something smaller. Nothing was charged."


class Imagined(msgspec.Struct, frozen=True):
    """A data set without its records.

    Attributes:
        columns: The type of each column; None for values of any kind.
        column, at_most, per, whole: Of its unit. A way to the owner, and periods, are left out: they make no question
            larger.
        bounds: Bounds of its columns.
    """

    columns: dict[str, str | None]
    column: str | None
    at_most: int | None
    per: tuple[str, int] | None
    whole: bool
    bounds: dict[str, Any]


class Stage(msgspec.Struct, frozen=True):
    """All that questions are rehearsed on.

    Attributes:
        tables: The data sets.
        public: The paths of public tables.
        limits: Of questions.
    """

    tables: dict[str, Imagined]
    public: dict[str, str]
    limits: Limits


class Line(msgspec.Struct, frozen=True):
    """A question: a query or a plan, and the data sets that it may read."""

    data: tuple[str, ...]
    sql: Sql | None = None
    plan: Measure | None = None


class Rehearsal:
    """The process; it begins at the first question, and anew after one that ended it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._catalogue: Catalogue | None = None
        self._process: Popen[bytes] | None = None
        self._passed: dict[bytes, None] = {}

    def __enter__(self) -> Rehearsal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._end()

    def insist(self, catalogue: Catalogue, grant: Grant, question: Sql | Measure) -> None:
        """Price a question there, whatever comes of it.

        One of the same analyst that passed before is not priced again; of another's nothing can be told by the time.

        Raises:
            RefusedError: It takes too much.
        """
        question = msgspec.structs.replace(question, dry=True)  # its price is the same where it is asked then
        kind = {"sql": question} if isinstance(question, Sql) else {"plan": question}
        line = msgspec.json.encode(Line(tuple(grant.data), **kind))
        code = blake2b(line, key=blake2b(grant.analyst.encode()).digest(), digest_size=16).digest()
        with self._lock:
            if catalogue is self._catalogue and code in self._passed:
                return
            for fresh in (False, True):
                if fresh or catalogue is not self._catalogue or self._process is None:
                    self._begin(catalogue)
                if self._answers(line):
                    self._passed[code] = None
                    while len(self._passed) > PASSED:
                        del self._passed[next(iter(self._passed))]
                    return
                if self._end(SETTLING) in SPENT:
                    break  # else somebody else ended it, perhaps before the question
            raise RefusedError(413, TOO_MUCH)

    def _begin(self, catalogue: Catalogue) -> None:
        """Begin the process for what is served now.

        Raises:
            RefusedError: It cannot begin.
        """
        self._end()
        known = {name: value for name, value in os.environ.items() if not name.startswith("WPINQ_SECRET")}
        self._process = Popen(  # noqa: S603  this Python, and a module of ours
            [sys.executable, "-m", MODULE], stdin=PIPE, stdout=PIPE, stderr=DEVNULL,
            env=known, start_new_session=True, bufsize=0,  # nothing is left to be written to a process that has ended
        )  # fmt: skip
        if catalogue is not self._catalogue:
            self._passed = {}
        self._catalogue = catalogue
        if not self._answers(msgspec.json.encode(staged(catalogue))):
            self._end()
            raise RefusedError(503)

    def _answers(self, line: bytes) -> bool:
        """Whether the process has done with a line, which may have ended it."""
        process = self._process
        assert process is not None  # noqa: S101  it was begun
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        try:
            process.stdin.write(line + b"\n")
        except OSError:
            return False
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
        return bool(ready) and process.stdout.read(1) == b"\n"

    def _end(self, settling: float = 0) -> int | None:
        """End it; how it had ended, if it does so by itself within so many seconds."""
        process, self._process = self._process, None
        if process is None:
            return None
        with process, suppress(TimeoutExpired):
            try:
                return process.wait(settling)
            finally:
                process.kill()
        return None


def staged(catalogue: Catalogue) -> Stage:
    """What questions about a catalogue are rehearsed on."""
    tables = {}
    for name, opened in catalogue.data.items():
        if opened.file.questions:
            schema, unit = opened.views._node.schema, sources(opened.views._node)[0].unit
            kinds = {column.name: None if column.kind is Kind.ANY else column.kind.value for column in schema}
            unit = Unit() if unit.way or unit.column not in kinds else unit
            tables[name] = Imagined(kinds, unit.column, unit.at_most, unit.per, unit.whole, opened.file.bounds)
    public = {name: str(catalogue.home / path) for name, path in catalogue.config.public.items()}
    return Stage(tables, public, catalogue.config.limits)
