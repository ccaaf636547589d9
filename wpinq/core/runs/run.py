"""Runs of the dataflow: at the first answer, once for all measurements that wait for the same data set."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, zip_longest
from typing import TYPE_CHECKING
from weakref import WeakSet

from wpinq.core.engines import select
from wpinq.core.engines.job import Engine, Job
from wpinq.core.plan.node import Node, sources
from wpinq.core.records.reader import DamagedError
from wpinq.errors import EngineError
from wpinq.progress import bar

if TYPE_CHECKING:
    from wpinq.core.ledger.transaction import Seal
    from wpinq.core.plan.dataset import DataSet
    from wpinq.core.runs.pending import PendingQuery
    from wpinq.core.state.histogram import Histogram


TOGETHER = 64
"""Plans that one run computes at the most: what they hold together is in memory, or spills."""
_lock = threading.Lock()
_waiting: WeakSet[PendingQuery] = WeakSet()


def wait(query: PendingQuery) -> None:
    """Let a charged query wait for the next run."""
    with _lock:
        _waiting.add(query)


def settle(query: PendingQuery) -> None:
    """Run the dataflow of a query and of all queries that wait for the same data set; hand each its histogram.

    A plan that fails must not make other charged queries fail: after a failure each plan runs by itself. A plan that
    fails again is no longer run with others, only when its own query is observed.

    Raises:
        SourceError: A source cannot be read, or is not the version that was protected.
        LedgerError: The data changed behind its version.
        EngineError: A step of the query's own plan failed.
    """
    if query.settled:
        return
    with query.key_owner.turn:
        if query.settled:
            return
        with _lock:
            waiting = [entry for entry in _waiting if entry.key_owner is query.key_owner and not entry.settled]
        plans = _one_run(query, waiting)
        try:
            _answer(plans)
        except EngineError:
            if len(plans) == 1:
                raise
            _answer_one_by_one(plans, query)


def _one_run(query: PendingQuery, waiting: Iterable[PendingQuery]) -> dict[Node, list[PendingQuery]]:
    """The plans of the next run, each with the queries that it answers: repetitions of one plan share its histogram.

    It has the query's own plan, and others that wait until there are `TOGETHER`: one of each analyst in turn.
    """
    every: dict[Node, list[PendingQuery]] = {query.node: []}
    turns: dict[str | None, list[Node]] = {}
    for item in sorted({query, *waiting}, key=lambda waiting_query: waiting_query.question):
        if item.node not in every:
            turns.setdefault(item.analyst, []).append(item.node)
        every.setdefault(item.node, []).append(item)
    fair = (node for nodes in zip_longest(*turns.values()) for node in nodes if node is not None)
    return {node: every[node] for node in (query.node, *islice(fair, TOGETHER - 1))}


def indexed(roots: Sequence[Node]) -> list[Node]:
    """Plans that read what is held of people, where they are about people; see `people_index.py`."""
    if all(data.unit.column is None for root in roots for data in sources(root)):
        return list(roots)
    from wpinq.core.runs import people_index

    return people_index.indexed(roots)


def answer(answers: Iterable[tuple[PendingQuery, Histogram, int]]) -> None:
    """Seal the digests of histograms, in one transaction of each ledger, and answer queries from them from now on.

    Args:
        answers: Each query with its histogram and the digest of that.

    Raises:
        LedgerError: The data changed behind a version; no query is answered.
    """
    answers = list(answers)
    sealed: dict[str, list[tuple[DataSet, Seal]]] = {}
    for query, _, digest in answers:
        for data, seal in query.seals(digest):
            sealed.setdefault(data.book, []).append((data, seal))
    for pairs in sealed.values():
        pairs[0][0].ledger.seal_all([seal for _, seal in pairs])
    for query, histogram, _ in answers:
        query.answer_from(histogram)
    _forget([query for query, _, _ in answers])


def _answer(plans: Mapping[Node, Sequence[PendingQuery]]) -> None:
    computed = zip(compute(list(plans)), plans.values(), strict=True)
    digests = [(histogram, queries, queries[0].digest(histogram)) for histogram, queries in computed]
    answer((query, histogram, digest) for histogram, queries, digest in digests for query in queries)


def _answer_one_by_one(plans: Mapping[Node, Sequence[PendingQuery]], query: PendingQuery) -> None:
    failed: EngineError | None = None
    for plan, queries in plans.items():
        try:
            _answer({plan: queries})
        except EngineError as error:
            _forget(queries)
            failed = error if query in queries else failed
    if failed is not None:
        raise failed


def _forget(queries: Sequence[PendingQuery]) -> None:
    with _lock:
        _waiting.difference_update(queries)


def compute(roots: Sequence[Node], *, here: bool = False) -> list[Histogram]:
    """Run the dataflow of some plans over the versions that they were written for.

    Args:
        roots: The plans.
        here: Whether this process runs them, whatever engine their data have.

    Raises:
        SourceError, LedgerError, EngineError: See `settle`.
    """
    read = list({data: None for root in roots for data in sources(root)})
    for data in read:
        data.check()
    engine = None if here else engine_of(read)
    if engine is not None:
        return _ran(roots, engine.run)
    try:
        return _ran(indexed(roots), None)
    except DamagedError:  # its file was removed: the index is made anew
        return _ran(indexed(roots), None)


def _ran(roots: Sequence[Node], run: Callable[[Job], list[Histogram]] | None) -> list[Histogram]:
    read = list({data: None for root in roots for data in sources(root)})
    run = run or select.finite(read)
    with bar("reading", sum(data.reader.total_bytes or 0 for data in read)) as progress:
        return run(Job(roots, read[0].identity_key, progress=progress))


def engine_of(read: Sequence[DataSet]) -> Engine | None:
    """What computes answers about these data sets, if it is not this process; it computes all that is live."""
    if any(data.live for data in read):
        return None
    return next((data.engine for data in read if isinstance(data.engine, Engine)), None)


def insist_on_an_engine(root: Node, read: Sequence[DataSet]) -> None:
    """Refuse a plan that the engine of the data that it reads cannot run, before it is charged.

    Raises:
        PlanError: It cannot.
    """
    engine = engine_of(read)
    if engine is not None:
        engine.check([root])
