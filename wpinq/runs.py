"""When a dataflow runs: at the first question, once, for every measurement that waits on the same data set."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakSet

from wpinq.errors import PlanError
from wpinq.functions.isolate import running
from wpinq.loading import loading
from wpinq.plan import Node, sources
from wpinq.progress import bar

if TYPE_CHECKING:
    from wpinq.question import Question
    from wpinq.state.histogram import Histogram

_lock = threading.RLock()
_waiting: WeakSet[Question] = WeakSet()


def refuse_inside(call: str) -> None:
    """Refuse a call that a user's function makes while it runs: what it asked would depend on the records it saw.

    Raises:
        PlanError: A function called it; that drops the function's own record and nothing else.
    """
    if running():
        raise PlanError(f"{call}: called by a function of a dataflow; functions depend on their record alone.")


def wait(question: Question) -> None:
    """Let a charged question wait for the next run."""
    with _lock:
        _waiting.add(question)


def settle(question: Question) -> None:
    """Run the dataflow of a question and of all that wait with it, and hand each its histogram.

    Raises:
        SourceError: A source cannot be read, or is not the version that was protected.
        LedgerError: The data changed behind its version.
        EngineError: A step failed.
    """
    with _lock:
        if question.settled:
            return
        together = [one for one in _waiting if one.home is question.home and not one.settled]
        together.sort(key=lambda one: one.question)
        plans = list(dict.fromkeys(one.node for one in together))  # repetitions of one plan share its histogram
        histograms = dict(zip(plans, compute(plans), strict=True))
        for one in together:
            one.answer_from(histograms[one.node])
        _waiting.difference_update(together)


def compute(roots: Sequence[Node]) -> list[Histogram]:
    """Run the dataflow of some plans over the versions that they were written for.

    Raises:
        SourceError, LedgerError, EngineError: See `settle`.
    """
    with loading("wpinq.engines.flow"):
        from wpinq.engines import flow

    read = list({data: None for root in roots for data in sources(root)})
    for data in read:
        data.check()
    with bar("reading", sum(data.reader.total_bytes or 0 for data in read)) as progress:
        return flow.run(flow.Job(roots, read[0].identity_key, progress=progress))
