"""Charged queries: committed quotes, which are answered from the histogram of their plan.

The key of a query is derived from the secret, its purpose, its key tuple (`quote.py`) and a keyed digest of the
histogram. So a changed histogram never gets the old noise, and no two purposes share pseudorandom words. The digest is
sealed in the ledger before the first answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from weakref import WeakSet

from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.ledger import charge_all, distinct
from wpinq.core.ledger.transaction import Seal
from wpinq.core.noise import MODULUS, Words, histogram_digest
from wpinq.core.pricing.quote import Quote
from wpinq.core.pricing.recharge import announce
from wpinq.core.runs.run import insist_on_an_engine, settle, wait
from wpinq.errors import InternalError, PlanError, redacted

if TYPE_CHECKING:
    from wpinq.core.ledger import Change, Ledger
    from wpinq.core.plan.dataset import DataSet
    from wpinq.core.state.histogram import Histogram

_paid: WeakSet[ChargedQuery] = WeakSet()
"""Queries that were charged; no other is computed."""

Q = TypeVar("Q", bound="ChargedQuery")


def pay(quotes: Sequence[Quote[Any]], changes: Sequence[tuple[Ledger, Change]] = ()) -> None:
    """Charge what some quotes say, if there are any: all of it or nothing, in one transaction over all ledgers.

    Args:
        quotes: The quotes.
        changes: Entries of side tables that are written with the charges, or not at all.

    Raises:
        ChangedError: The records are not those of the version that they are read as; nothing was charged.
        BudgetError: They cost more together than is left; nothing was charged.
        LedgerError: A ledger cannot be trusted or written.
    """
    announce(quotes)
    read = {data: None for quote in quotes for data in quote.sources}
    pins = [(data.ledger, pin) for data in read if (pin := data.pin()) is not None]
    charge_all(distinct(request for quote in quotes for request in quote.charges), pins, changes)
    for data in read:
        data.remember()


def commit(quotes: Sequence[Quote[Q]], changes: Sequence[tuple[Ledger, Change]] = ()) -> list[Q]:
    """Charge what some quotes say, all of it or nothing, and give the charged queries, in their order.

    A quote that was committed before is the same query, which costs nothing again: the same object, computed once.

    Raises:
        BudgetError, LedgerError, PlanError: See `charge`; nothing was charged.
    """
    made = [quote.query for quote in quotes]
    charge(made, changes)
    return made


def charge(queries: Sequence[ChargedQuery], changes: Sequence[tuple[Ledger, Change]] = ()) -> None:
    """Charge for some queries, for all or for none, and register them for the run or the epoch that answers them.

    A query of a live source is for the epoch that was open when it was quoted, and can be charged until that epoch has
    closed. No epoch is closed while this runs.

    Raises:
        BudgetError: They cost more together than is left; nothing was charged.
        LedgerError: A ledger cannot be trusted or written.
        PlanError: A quote came too late or was altered by hand, or a user's function asks while it runs; nothing was
            charged.
    """
    queries = list(dict.fromkeys(queries))
    quotes = [query.quote for query in queries]
    for quote in quotes:
        refuse_inside(quote.call)
        insist_on_an_engine(quote.node, quote.sources)
    logs = {id(quote.epochs.log): quote.epochs.log for quote in quotes if quote.epochs is not None}
    with ExitStack() as held:
        for _, log in sorted(logs.items()):
            held.enter_context(log.lock)
        for quote in quotes:
            quote.check()
        pay([query.quote for query in queries if query not in _paid], changes)
        for query, quote in zip(queries, quotes, strict=True):
            if quote.epochs is not None and query not in _paid:
                quote.epochs.log.pending.append((query, quote.epochs.root))
            _paid.add(query)
    for query in queries:
        if not query.settled:
            wait(query)


def digest_of(key_owner: DataSet, histogram: Histogram) -> int:
    """The keyed digest of what a histogram holds."""
    return redacted("measure", lambda: histogram_digest(key_owner.digest_key, *histogram.content()))


def digest_after(key_owner: DataSet, digest: int, histogram: Histogram, change: Histogram) -> int | None:
    """The digest of a histogram after a change is merged into it, from its digest before.

    None where computing it anew, once a query needs it, is as quick.
    """

    def updated() -> int | None:
        parts = histogram.before_and_after(change)
        if parts is None:
            return None
        before, after = (histogram_digest(key_owner.digest_key, *content) for content in parts)
        return (digest - before + after) % MODULUS

    return redacted("measure", updated)


class ChargedQuery:
    """A query that is charged first, and computed when its answer is first needed.

    Attributes:
        quote: Its quote, which was charged.
        node: The plan.
        epsilon: What it costs the privacy unit; 0 for Gaussian noise that costs rho.
        rho: What Gaussian noise costs it, where that is no epsilon with a delta.
        gaussian: Whether its noise is Gaussian.
        scale: The L1 sensitivity divided by epsilon; in weight (of a record: 1).
        name: The name of the charge; queries that differ in it alone are independent repetitions.
        key_owner: The data set whose secret keys it.
        question: Its fingerprint in the ledger.
        analyst: Who asked, where that is known.
        purpose: The purpose for which its random words are derived; no two purposes share them.
    """

    purpose: str

    def __init__(self, quote: Quote[Any]) -> None:
        self.quote = quote
        self.node, self.epsilon, self.scale, self.name = quote.node, quote.epsilon, quote.scale, quote.name
        self.key_owner, self.question, self.analyst = quote.sources[0], quote.question, quote.analyst
        self.rho, self.gaussian = quote.rho, quote.gaussian
        self._histogram: Histogram | None = None
        self._words: Words | None = None
        self._bound: bytes | None = None

    @property
    def settled(self) -> bool:
        """Whether the dataflow has run for it."""
        return self._histogram is not None

    @property
    def _size(self) -> int:
        """Bytes that its histogram takes, about: a true figure, for who bounds memory alone."""
        return 0 if self._histogram is None else self._histogram.size

    def digest(self, histogram: Histogram) -> int:
        """The keyed digest of what a histogram holds."""
        return digest_of(self.key_owner, histogram)

    def seals(self, digest: int) -> list[tuple[DataSet, Seal]]:
        """What is sealed in the ledgers before it answers from a histogram with this digest."""
        self._insist_on_paid()
        secret = self.key_owner.secret
        self._bound = secret.derive("bound digest", self.quote.key, digest.to_bytes(32, "little"))
        return [(data, Seal(self.question, data.edition, self._bound)) for data in self.quote.sources]

    def answer_from(self, histogram: Histogram) -> None:
        """Answer from a histogram from now on, whose digest was sealed (`runs/run.py`)."""
        if self._bound is None:
            raise InternalError("observe: the histogram was not sealed; please report this.")
        secret = self.key_owner.secret
        self._words = Words(secret.derive(self.purpose, self.quote.key, self._bound))
        self._histogram = histogram

    def _settled(self) -> tuple[Histogram, Words]:
        """The histogram and the words, after the dataflow has run."""
        self._insist_on_paid()
        settle(self)
        if self._histogram is None or self._words is None:
            raise InternalError("observe: the run ended without a histogram; please report this.")
        return self._histogram, self._words

    def __dir__(self) -> list[str]:
        """What completion offers: not what only the engine calls."""
        inner = {"answer_from", "seals", "digest", "settled", "node", "key_owner", "purpose", "charge_also"}
        return [name for name in super().__dir__() if name not in inner]

    def _insist_on_paid(self) -> None:
        if self not in _paid:
            raise PlanError(f"{self.quote.call}: it is not charged yet, so it has no answer; nothing was computed.")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is never pickled or copied; run again, it costs nothing again.")

    __iter__ = None
    __contains__ = None
