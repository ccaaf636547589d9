"""Measurements: what leaves a protected collection, charged first and computed when it is first asked.

A release is the measured histogram plus one independent noise for every bin that there could be. The noise is a keyed
function of the bin (design, Noise), so bins may be asked one by one, for ever, in any order and process: a bin that
nobody asks for costs nothing and a bin asked twice has one answer. This is the only room that imports the noise.

The key of a release is derived from the secret and one injective tuple: formats, the data sets with their versions and
units, plan, name, mechanism, lattice, scale, purpose, and a keyed digest of the histogram, so a changed answer never
meets old noise (privacy rules 2-4, 7 and 8). The digest is sealed in the ledger before the first answer.
"""

from __future__ import annotations

import os
from collections import defaultdict
from fractions import Fraction
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from wpinq import values
from wpinq.bins import bin_frame
from wpinq.engines.failures import quietly
from wpinq.errors import InternalError
from wpinq.exact import Amount, decimal, exact, positive
from wpinq.identity import identities
from wpinq.ledger import Charge, Cost, Ledger, charge_all
from wpinq.noise import FORMAT, Mechanism, Words, histogram_digest, mechanism
from wpinq.operators.lattice import measurable
from wpinq.plan import Node, fingerprints, sources
from wpinq.runs import refuse_inside, settle, wait
from wpinq.secret import Field, encode
from wpinq.stability import noise_scale, paths

if TYPE_CHECKING:
    import polars as pl

    from wpinq.collection import Collection
    from wpinq.dataset import DataSet
    from wpinq.state.histogram import Histogram


def measure(
    self: Collection, epsilon: Amount, name: str | None = None, mechanism: str = "geometric", analyst: str | None = None
) -> Measurement:
    """Charge for a noisy histogram of the collection, computed when it is first observed.

    The same plan on the same version with the same name, scale and mechanism is the same measurement: it costs nothing
    again and gives the same answers, in this process or another. A name makes an independent repetition.

    Args:
        epsilon: What the measurement costs the privacy unit, exact. The noise scale is the largest movement that one
            unit can cause, divided by epsilon.
        name: Tells repetitions apart, and names the charge in the ledger.
        mechanism: "geometric" (discrete Laplace) or "laplace" (on a dyadic grid).
        analyst: Who is charged, where the curator keeps caps for each analyst.

    Raises:
        ExactnessError: `epsilon` is not a finite number above zero.
        BudgetError: It costs more than is left; nothing was charged and nothing drawn.
        LedgerError: The ledger cannot be trusted or written; nothing was drawn.
    """
    return Measurement(measurable(self._node), positive(epsilon, "measure(epsilon=...)"), name, mechanism, analyst)


class Measurement:
    """A charged, noisy histogram. Ask it bin by bin; it has no length and no list of bins to give.

    Attributes:
        epsilon: What it costs the privacy unit.
        scale: Scale of the noise, in weight (of a record: 1).
        name: The name it was given.
        node: Its plan.
        home: The data set whose secret keys it.
        question: Tells it from other measurements, in the ledger.
    """

    def __init__(self, node: Node, epsilon: Fraction, name: str | None, noise: str, analyst: str | None) -> None:
        refuse_inside("measure")
        self.node, self.epsilon, self.name = node, epsilon, name
        self.scale = noise_scale(node, epsilon)
        self.home = sources(node)[0]
        self._mechanism: Mechanism = mechanism(noise, self.scale * node.lattice)
        self._tuple: tuple[Field, ...] = self._describe()
        self.question = blake2b(encode(*self._tuple), digest_size=32).hexdigest()
        self._histogram: Histogram | None = None
        self._words: Words | None = None
        charge_all(self._charges(analyst))
        wait(self)

    def observe(self, bin: Any) -> int | float:  # noqa: A002
        """The noisy weight of one bin, whether it exists or not.

        Args:
            bin: A value, or a tuple of values where the collection has several columns.

        Raises:
            BinError: The collection could never hold such a bin.
            SourceError, EngineError, LedgerError: The first question runs the dataflow, which failed.
        """
        value: int | float = self.observe_many([bin])[0].item()
        return value

    def observe_many(self, bins: Any) -> np.ndarray:
        """The noisy weights of many bins, in their order; the same as asking one by one.

        Args:
            bins: An iterable of bins; a range, a NumPy array or a Polars series is quickest.

        Returns:
            One number for each bin: int64 where weights are whole, else float64.
        """
        refuse_inside("observe")
        frame = bin_frame(bins, self.node.schema)
        settle(self)
        return quietly("observe", lambda: self._answer(frame))

    def interval(self, level: Amount = Fraction(95, 100)) -> float:
        """Half the width of the interval around one answer that holds the true weight with this probability.

        It is exact for the noise of one bin, at least at the level, and speaks of the noise only.

        Args:
            level: Between 0 and 1.
        """
        steps = self._mechanism.half_width(exact(level, "interval(level=...)"))
        return steps / (self._mechanism.grid * self.node.lattice)

    @property
    def settled(self) -> bool:
        """Whether the dataflow has run for it."""
        return self._histogram is not None

    def answer_from(self, histogram: Histogram) -> None:
        """Seal the histogram in the ledger, and answer from it from now on."""
        secret = self.home.ledger.secret
        key = secret.derive("digest", self._tuple)
        digest = quietly("measure", lambda: histogram_digest(key, *histogram.content())).to_bytes(32, "little")
        for data in sources(self.node):
            data.ledger.seal(self.question, data.version, digest)
        self._words = Words(secret.derive("noise", self._tuple, digest))
        self._histogram = histogram

    def _answer(self, frame: pl.DataFrame) -> np.ndarray:
        if self._histogram is None or self._words is None:
            raise InternalError("observe: the run ended without a histogram; please report this.")
        ids = identities(frame, self.node.schema, self.home.identity_key)
        noise = self._mechanism.draw(self._words, ids)
        return self._released(self._histogram.lookup(frame, ids), noise)

    def _released(self, true: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Add on the grid of the noise, in integers, and divide last: no float ever meets a true weight.

        The sum is rounded to a float before it is divided, whatever integers it comes in, so that the last digits of
        an answer do not tell how the weights are held, which depends on whether there are any.
        """
        grid = self._mechanism.grid
        if grid != 1 and len(true) and int(np.abs(true).max()) > 2**62 // grid:
            true, noise = true.astype(object), noise.astype(object)
        total = true * grid + noise
        unit = grid * self.node.lattice
        released: np.ndarray = total if unit == 1 else total.astype(np.float64) / unit
        return released

    def _describe(self) -> tuple[Field, ...]:
        """The injective tuple that the release is bound to."""
        read = sources(self.node)
        plan = fingerprints(self.node)[self.node] or os.urandom(32)  # what cannot be told is a new question every time
        about = tuple((data.name, data.version, data.unit.text, data.unit.bound) for data in read)
        return (
            values.FORMAT, FORMAT, about, plan, self.name, self._mechanism.name, self.node.lattice, self.scale
        )  # fmt: skip

    def _charges(self, analyst: str | None) -> list[tuple[Ledger, Charge]]:
        """What each ledger is asked for, by path."""
        costs: dict[DataSet, list[Cost]] = defaultdict(list)
        for (data, parts), stability in paths(self.node).items():
            costs[data].append(Cost(stability * data.unit.bound / self.scale, Fraction(0), parts))
        label = self.name or self.node.title
        return [
            (data.ledger, Charge(self.question, tuple(paid), data.version, label, analyst))
            for data, paid in costs.items()
        ]

    def explain(self) -> str:
        """Show the plan, what the measurement costs each source, and the scale of its noise; print and return it."""
        from wpinq.explain import show_measured

        return show_measured(self.node, self.epsilon, self._mechanism.name)

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        return f"<measurement {name}{self.node.schema}, epsilon {decimal(self.epsilon)}, scale {decimal(self.scale)}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Measurement is never pickled or copied; run the script again, it costs nothing again.")

    __iter__ = None
    __len__ = None
    __contains__ = None
