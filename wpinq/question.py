"""Questions: what is charged to the data sets that a plan reads, and answered from its histogram for ever after.

A question is known by one injective tuple: formats, the data sets with their versions and units, plan, name, lattice,
and whatever its mechanism depends on. Its key is derived from the secret, its purpose and that tuple, and from a keyed
digest of the histogram, so a changed answer never meets old noise and no two purposes share a stream (privacy rules
2-4, 7 and 8). The digest is sealed in the ledger before the first answer. The same tuple is the same question: it costs
nothing again and has the same answers, in this process or another.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from fractions import Fraction
from hashlib import blake2b
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from wpinq import values
from wpinq.engines.failures import quietly
from wpinq.errors import InternalError
from wpinq.ledger import Charge, Cost, Ledger, charge_all, wording
from wpinq.noise import FORMAT, MODULUS, Words, histogram_digest
from wpinq.plan import Node, fingerprints, holding, sources, steps
from wpinq.runs import refuse_inside, settle, wait
from wpinq.secret import Field, encode
from wpinq.stability import noise_scale, paths

if TYPE_CHECKING:
    from wpinq.dataset import DataSet
    from wpinq.state.histogram import Histogram


Request: TypeAlias = "tuple[Ledger, Charge]"
_quoted: ContextVar[tuple[list[Request], list[Question]] | None] = ContextVar("quoted", default=None)


def charge_together(make: Callable[[], None]) -> None:
    """Charge for all questions that a function makes, or for none; asked again, they are free.

    Args:
        make: Makes the questions, which are only quoted: until it ends they wait for no run and can have no answer.
            Nothing is charged where it raises.

    Raises:
        BudgetError: They cost more together than is left; nothing was charged.
        LedgerError: A ledger cannot be trusted or written.
    """
    requests: list[Request] = []
    questions: list[Question] = []
    token = _quoted.set((requests, questions))
    try:
        make()
    finally:
        _quoted.reset(token)
    charge_all(list({(id(ledger), charge.key): (ledger, charge) for ledger, charge in requests}.values()))
    for question in questions:
        wait(question)


def digest_of(home: DataSet, histogram: Histogram) -> int:
    """The keyed digest of what a histogram holds."""
    return quietly("measure", lambda: histogram_digest(home.digest_key, *histogram.content()))


def digest_after(home: DataSet, digest: int, histogram: Histogram, change: Histogram) -> int | None:
    """The digest of a histogram that a change is about to be merged into, from its digest before.

    None where it is made anew as quickly, once a question needs it.
    """

    def found() -> int | None:
        parts = histogram.before_and_after(change)
        if parts is None:
            return None
        before, after = (histogram_digest(home.digest_key, *content) for content in parts)
        return (digest - before + after) % MODULUS

    return quietly("measure", found)


def _pay(requests: list[Request]) -> bool:
    """Charge, or note what would be charged; give whether it was charged."""
    quoted = _quoted.get()
    if quoted is None:
        charge_all(requests)
        return True
    quoted[0].extend(requests)
    return False


class Question:
    """A question about the histogram of a plan: charged when it is made, computed when it is first answered.

    Attributes:
        node: The plan.
        epsilon: What it costs the privacy unit.
        scale: The largest movement that one unit can cause, divided by epsilon; in weight (of a record: 1).
        name: Tells repetitions apart, and names the charge.
        home: The data set whose secret keys it.
        question: Tells it from other questions, in the ledger.
    """

    def __init__(
        self, node: Node, epsilon: Fraction, name: str | None, *, call: str, purpose: str, fields: tuple[Field, ...],
        delta: Fraction = Fraction(0), analyst: str | None = None,
    ) -> None:  # fmt: skip
        refuse_inside(call)
        for step in steps(node):
            holding(step)
        self.node, self.epsilon, self.name = node, epsilon, wording(name, f"{call}(name=...)")
        self.scale = noise_scale(node, epsilon)
        self.home = sources(node)[0]
        self._purpose, self._analyst = purpose, wording(analyst, f"{call}(analyst=...)")
        self._tuple = self._describe(fields)
        self.question = blake2b(encode(*self._tuple), digest_size=32).hexdigest()
        self._histogram: Histogram | None = None
        self._words: Words | None = None
        if _pay(self._charges(delta)):
            wait(self)
        elif (quoted := _quoted.get()) is not None:
            quoted[1].append(self)

    def charge_also(self, what: str, delta: Fraction) -> None:
        """Charge a delta for a further publication of the same answers, once."""
        question = blake2b(encode(self._tuple, what, delta), digest_size=32).hexdigest()
        _pay([(data.ledger, self._charge(question, data, [Cost(Fraction(0), delta)])) for data in sources(self.node)])

    @property
    def settled(self) -> bool:
        """Whether the dataflow has run for it."""
        return self._histogram is not None

    def answer_from(self, histogram: Histogram, digest: int | None = None) -> None:
        """Seal the histogram in the ledger, and answer from it from now on.

        Args:
            histogram: The weights.
            digest: Theirs, where it is known (`digest_of`).
        """
        secret = self.home.ledger.secret
        if digest is None:
            digest = digest_of(self.home, histogram)
        bound = secret.derive("bound digest", self._tuple, digest.to_bytes(32, "little"))
        for data in sources(self.node):
            data.ledger.seal(self.question, data.version, bound)
        self._words = Words(secret.derive(self._purpose, self._tuple, bound))
        self._histogram = histogram

    def _settled(self) -> tuple[Histogram, Words]:
        """The histogram and the words, after the dataflow has run."""
        settle(self)
        if self._histogram is None or self._words is None:
            raise InternalError("observe: the run ended without a histogram; please report this.")
        return self._histogram, self._words

    def _describe(self, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        """The injective tuple that the answers are bound to."""
        read = sources(self.node)
        plan = fingerprints(self.node)[self.node] or os.urandom(32)  # what cannot be told is a new question every time
        about = tuple((data.ledger.identity, data.version, data.unit.text, data.unit.bound) for data in read)
        return (values.FORMAT, FORMAT, about, plan, self.name, *fields, self.node.lattice, self.scale)

    def _charges(self, delta: Fraction) -> list[tuple[Ledger, Charge]]:
        """What each ledger is asked for: epsilon by path, and delta for all bins of a unit together."""
        costs: dict[DataSet, list[Cost]] = defaultdict(list)
        for (data, parts), stability in paths(self.node).items():
            costs[data].append(Cost(stability * data.unit.bound / self.scale, Fraction(0), parts))
        for paid in costs.values() if delta else ():
            paid.append(Cost(Fraction(0), delta))
        return [(data.ledger, self._charge(self.question, data, paid)) for data, paid in costs.items()]

    def _charge(self, question: str, data: DataSet, paid: Sequence[Cost]) -> Charge:
        return Charge(question, tuple(paid), data.version, self.name or self.node.title, self._analyst)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is never pickled or copied; run again, it costs nothing again.")

    __iter__ = None
    __contains__ = None
