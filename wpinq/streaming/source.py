"""`wpinq.live`: a protected source that a caller sends to while its dataflow stays up in this process."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from wpinq.arguments import FLAG, NOTHING, PATH, described, instance, takes
from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.ledger import Asked, Ledger, wording
from wpinq.core.ledger.stores import address
from wpinq.core.operators.contribution.preprocess import before
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Source
from wpinq.core.plan.unit import Unit
from wpinq.core.records.schema import Kind
from wpinq.core.runs.timeline import Timeline
from wpinq.core.state.memory import LIMIT
from wpinq.errors import PlanError
from wpinq.exact import Amount
from wpinq.sources import Columns
from wpinq.sources.form import named
from wpinq.streaming.collection import Live
from wpinq.streaming.epoch_store import EpochStore, refuse_short
from wpinq.streaming.journal import open_journal
from wpinq.streaming.shared.home import Home
from wpinq.streaming.shared.journal import SharedJournal

if TYPE_CHECKING:
    from wpinq.core.ledger.rows.secret import Secret


@takes(
    ledger=PATH | NOTHING,
    recover=PATH | NOTHING,
    retractions=FLAG,
    unit=instance("what wpinq.users(...) returns", Unit) | NOTHING,
)
def live(
    columns: Columns,
    budget: Amount | None = None,
    *,
    ledger: str | os.PathLike[str] | None = None,
    unit: Unit | None = None,
    delta: Amount | None = None,
    rho: Amount | None = None,
    accounting: str | None = None,
    name: str = "live",
    lateness: dt.timedelta | None = None,
    keep: int | None = None,
    recover: str | os.PathLike[str] | None = None,
    retractions: bool = False,
    secret: Secret | None = None,
    where: object = None,
    derive: Mapping[str, object] | None = None,
) -> Live:
    """Protect records that are still to come.

    Args:
        columns: Names of the columns, whose values may be of any kind, or a mapping from names to types.
        budget, delta, rho, accounting: What may be spent in all, exact, and how it is added up; see `protect`.
        ledger: Where the ledger is kept, a path or the URL of one in PostgreSQL; in memory by default.
        unit: Whom the guarantee protects: by default one record, or people, with `users(...)`. A person may be in every
            window, so each window that is asked for is charged then; where `users(..., period="1h", at="time")`
            protects a person in one period, windows cost as one.
        name: Names the data set in its ledger.
        lateness: Windows are closed by the clock, this long after they end, at every `advance()`; columns without a
            zone hold UTC then. By default they are closed by `advance(until=...)` alone.
        keep: For how many epochs what was sent is held. By default for ever, so that a plan may be measured at any
            time and counts all that was ever sent, and memory grows with that. With a number, memory is bounded by what
            is sent in twice as many epochs, and by the bins of what is measured: once the first epochs are let go, only
            plans that were measured before can be measured again; a window can be observed while the epoch that closed
            it is among the last ones, and counts what was sent in as many epochs up to that one; and a continual
            measurement can be observed at the last ones.
        recover: The URL of the ledger, where that is in PostgreSQL: epochs are kept in its database, and several
            processes on one host or many read the stream (`follow(workers=...)`), of which one at a time keeps it and
            answers. Or a directory in which each epoch is kept, encrypted, before anything is answered from it. A
            process that is killed loses the open epoch alone. The next one, with the same arguments, takes in the
            closed epochs when it first sends, follows or advances, so what it measures before that is what was measured
            at the very beginning: it costs nothing again and has the same answers. Followed files and topics are read
            on from where the last closed epoch ended. It needs a ledger. The directory is read through at a restart,
            and grows by some bytes a record for ever; with `keep` epochs that are no longer held are merged to what
            continual measurements have counted of them (`core/runs/compaction.py`), so it grows with the different
            records in the columns that those read, and of people with the records that are kept of each. What is added
            to the measurements after that can read no other columns, and `keep` can be no more than twice what it was.
        retractions: Whether records can be taken back, `send(records, weight=-1)`. The guarantee is then about whether
            and when a record was there: neighbours differ in the history of one record that comes and goes (and may
            come again), or of one that is only taken back; of people in all that one person sent and took back. An
            answer is of what is there at the end of its epoch: the sum of what was sent. Where the unit is a person, a
            record that weighs less than nothing is not there. Where it is a record, weights are sums with signs, and
            each operator's docstring says what it makes of one below zero: linear steps pass it on, `distinct`,
            `limit`, `semijoin` and a whole group leave it out, `shave` and `group_by` treat it apart with the opposite
            sign, a `join` counts its absolute weight. A record that is taken back is in the window that it was in; once
            that has closed it is late, as any other, and changes nothing. With `keep` a window counts what was sent and
            taken back in the last epochs alone. `measure` and `select` with `continual=True` are refused: a record
            would be in two epochs, for the price of one. What is followed is only added. All records of people are
            held as long as the source is open, since a sample must be found anew.
        secret: The secret of the data set; by default the one beside the ledger, or the environment's.
        where, derive: Steps on each record before a person's are bounded; see `protect`.

    All plans that are measured are steps of one dataflow. Should one step fail, the source ends for all of them, and
    every later question about an open epoch is refused: that one step failed would be seen. No record can make a step
    fail (`wpinq/docs/vulnerabilities.md` says why); what can is a lack of memory, a table that is joined and cannot be
    read any more, and an error of this library.

    Returns:
        The source, which is also the protected collection of all that was sent.

    Raises:
        SourceError: The columns are not declared well, or the directory belongs to another data set, was put back from
            a copy, or is in use, or another process keeps the stream in the database.
        PlanError: `keep` is no whole number above zero, or `lateness` no timedelta from zero on, or there is a
            directory and no ledger.
        ExactnessError: The budget is not a finite number above zero.
        LedgerError: The ledger cannot be trusted or written, or holds another unit or budget.

    >>> from wpinq import live
    >>> views = live({"user": "text", "page": "text"}, budget=1)
    >>> cdf = views.map(lambda page: page).shave().map(lambda page, index: index).measure(epsilon=1)
    >>> views.send([("ann", "home"), ("bob", "home")])
    >>> views.advance()
    1
    >>> type(cdf.observe(1))
    <class 'int'>
    >>> views.close()
    """
    refuse_inside("live")
    if keep is not None and (not isinstance(keep, int) or isinstance(keep, bool) or keep < 1):
        raise PlanError(f"live(keep={described(keep)}): give a number of epochs above zero, or nothing to keep all.")
    if lateness is not None and not (isinstance(lateness, dt.timedelta) and lateness >= dt.timedelta(0)):
        raise PlanError(f"live(lateness={described(lateness)}): give a timedelta, not below zero, or nothing.")
    if recover is not None and ledger is None:
        raise PlanError("live(recover=...): give ledger=PATH too; one in memory is lost with the process.")
    name = wording(name, "live(name=...)") or "live"
    log = Timeline(named(columns, Kind.ANY, None, "live"), name, keep)
    unit, place = unit or Unit(), None if ledger is None else address.ledger_path(ledger)
    if unit.choice is not None:
        raise PlanError("live(unit=...): at_most='auto' is chosen from records that are there; give a number of them.")
    if unit.way:
        raise PlanError("live(unit=...): records of a stream name the person themselves; through= is for tables.")
    if unit.whole:
        raise PlanError("live(unit=...): a stream needs a bound: users(COLUMN, at_most=20), or shared=True.")
    if recover is not None and in_database(recover) and address.ledger_path(recover) != place:
        raise PlanError("live(recover=...): names another database than ledger=; a stream is kept beside its ledger.")
    asked = Asked.of("live", budget, delta, rho, accounting)
    first = before(log.schema, unit, where, derive, "live")  # mistakes show before a ledger is made
    book = Ledger.open(place, name=name, unit=unit.whom, terms=asked, secret=secret)
    LIMIT.beside(place)
    journal: EpochStore | None = None
    if recover is not None and place is not None:
        words = name, unit.text, repr(log.schema), retractions
        if in_database(recover):
            journal = SharedJournal(Home.in_ledger(place, book, log.schema, *words), book)
            refuse_short(journal, "live(recover=...)", keep)
        else:
            key = book.secret.derive("journal", *words)
            journal = open_journal(recover, place.with_name(place.name + ".live"), key, keep)
        log.kept, log.merged = True, journal.merged
    version = os.urandom(16).hex() if journal is None else journal.version
    data = DataSet(log, book, name, f"live {version}", unit, before=first.said, retractions=retractions)
    return Live(first.over(Source(data)), log, lateness, journal)


def in_database(ledger: str | os.PathLike[str] | None) -> bool:
    """Whether a ledger is in a database, in which several processes can read one stream."""
    return ledger is not None and address.address_of(address.ledger_path(ledger)) is not None
