"""The noise of a running count at every epoch: for each bin a keyed function of the release, the bin and the epoch.

So it is the same for ever, in any process, and computed for observed bins and epochs alone. Each class names the file
of `core/noise` that has its proof.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import groupby
from statistics import NormalDist
from threading import Lock
from typing import TypeAlias

import numpy as np

from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.noise import Mechanism, Words, endless_sums, mechanism
from wpinq.core.noise.counting_tree import TreeNode, parts, segment
from wpinq.core.noise.endless_sums import located
from wpinq.core.noise.factored_sums import PLACES, Running, Whole, factors
from wpinq.core.noise.gaussian import DiscreteGaussian
from wpinq.core.noise.tails import half_width
from wpinq.core.records.fields import Field
from wpinq.core.records.identity import siphash
from wpinq.core.records.values import KEY_SIZE
from wpinq.core.state.table import Ids

GRID = DiscreteGaussian(Fraction(4) ** PLACES)
"""What normal variables are made of, in both ranks."""
NUMBER = 1 << 20
"""No segment of a tree has this number or a larger one: so blocks of words are none of a tree's."""
FEW = 1 << 10
"""Bins of which the noise of nodes is held for the next epoch, of those that were asked for last."""
Drawn: TypeAlias = dict[tuple[int, int, int], np.ndarray]
"""Noise by node: its segment, level and place."""
ENDED = 2
"""The rank of the noise of sums of segments that have ended; 0 and 1 are those of normal variables."""


class EpochNoise(ABC):
    """Noise in steps of its mechanism, at each epoch.

    Args:
        law: The mechanism that was priced.
        secret: Of the data set that keys it.
        key: What the release is bound to.

    Attributes:
        terms: What was written for it in `measure`.
        title: What it is.
        last: The last epoch that it is for; None where there is none.
        shown: Epochs whose noise `explain` shows.
    """

    terms, title = "continual=True", ""
    last: int | None = None
    shown: tuple[int, ...] = (1, 100, 10_000, 1_000_000)

    def __init__(self, law: Mechanism, secret: Secret, key: tuple[Field, ...]) -> None:
        self._law = law
        self._nodes = secret.derive("continual node", key, size=KEY_SIZE)
        self._words = Words(secret.derive("continual noise", key))

    @abstractmethod
    def draw(self, epoch: int, ids: Ids) -> np.ndarray:
        """The noise of an epoch for each bin."""

    def again(self, epoch: int, ids: Ids) -> np.ndarray:
        """The same for bins that are public, and likely those that were asked for before: what helps is remembered."""
        return self.draw(epoch, ids)

    @abstractmethod
    def deviation(self, epoch: int) -> float:
        """The standard deviation at an epoch."""

    @abstractmethod
    def half_width(self, epoch: int, rest: float) -> float:
        """What the noise of an epoch exceeds with at most this probability."""

    def _blocks(self, number: int, rank: int, index: np.ndarray, ids: Ids) -> Ids:
        """The blocks from which words are made: for each index and bin a keyed 128-bit hash of both."""
        words = [np.tile(ids[:, i], len(index)) for i in (0, 1)]
        position = np.repeat(index.astype(np.uint64), len(ids))
        close = np.full(len(position), np.uint64(32 << 56 | number << 8 | rank))
        return siphash(self._nodes, [*words, position, close])


NoiseOfEpochs: TypeAlias = Callable[[Mechanism, Secret, tuple[Field, ...]], EpochNoise]
"""Makes the noise of a release from its mechanism, the secret and the key."""


class TreeNoise(EpochNoise):
    """The noise of the nodes of counting trees (`core/noise/counting_tree.py`)."""

    title = "noise of the nodes of counting trees"

    def __init__(self, law: Mechanism, secret: Secret, key: tuple[Field, ...]) -> None:
        super().__init__(law, secret, key)
        self._levels: dict[tuple[int, int], Mechanism] = {}
        self._drawn: tuple[Ids, Drawn] = np.empty((0, 2), np.uint64), {}

    def level(self, number: int, level: int) -> Mechanism:
        """The noise of the nodes of a level in a segment, all on one grid."""
        if (number, level) not in self._levels:
            scale = self._law.scale / segment(number).shares[level]
            self._levels[number, level] = mechanism("geometric", scale * self._law.grid)
        return self._levels[number, level]

    def scales(self, epoch: int) -> list[float]:
        """The scales of the noises of the nodes of an epoch."""
        return [float(self.level(*node[:2]).scale) for node in parts(epoch)]

    def draw(self, epoch: int, ids: Ids) -> np.ndarray:
        """The noise of the nodes of an epoch for each bin, all nodes of a level at once."""
        return self._sum(parts(epoch), ids)

    def again(self, epoch: int, ids: Ids) -> np.ndarray:
        """The same, where nodes were not drawn for the last epoch that was asked for, of the same bins: few are not."""
        nodes = parts(epoch)
        if len(ids) > FEW:
            return self._sum(nodes, ids)
        before, drawn = self._drawn
        drawn = dict(drawn) if np.array_equal(before, ids) else {}
        result = self._sum(nodes, ids, drawn)
        self._drawn = ids, {node[:3]: drawn[node[:3]] for node in nodes}  # at once: other threads ask too
        return result

    def _sum(self, nodes: Sequence[TreeNode], ids: Ids, drawn: Drawn | None = None) -> np.ndarray:
        """The signed sum of the noise of nodes for each bin.

        Args:
            nodes: Those of an epoch.
            ids: The bins.
            drawn: What was drawn for these bins before; the rest is added.
        """
        total = np.zeros(len(ids), np.int64)
        for (number, level), group in groupby(nodes, key=lambda node: node[:2]):
            of_level, known = list(group), {} if drawn is None else drawn
            index = np.array([node.position for node in of_level if node[:3] not in known], np.int64)
            if len(index):
                more = self.level(number, level).draw(self._words, self._blocks(number, level, index, ids))
                fresh = zip(index.tolist(), more.reshape(len(index), len(ids)), strict=True)
                known |= {(number, level, position): noise for position, noise in fresh}
            for node in of_level:
                total += node.sign * known[node[:3]]
        return total

    def deviation(self, epoch: int) -> float:
        """See `EpochNoise`."""
        return math.sqrt(sum(self.level(*node[:2]).variance() for node in parts(epoch)))

    def half_width(self, epoch: int, rest: float) -> float:
        """See `EpochNoise`; Chernoff's bound."""
        return half_width(self.scales(epoch), rest)


class GaussianSums(EpochNoise):
    """Sums of normal variables: some 60 numbers are held for each bin that was observed.

    An epoch costs as many steps, or where a bin is first observed, as many for each epoch before, of the segment if
    there are segments.
    """

    def __init__(self, law: DiscreteGaussian, secret: Secret, key: tuple[Field, ...]) -> None:
        super().__init__(law, secret, key)
        self._square = law.square
        self._running: dict[bytes, tuple[int, Running]] = {}
        self._lock = Lock()

    def draw(self, epoch: int, ids: Ids) -> np.ndarray:
        """See `EpochNoise`."""
        with self._lock:
            return np.array([self._of(epoch, ids[row : row + 1]) for row in range(len(ids))], np.int64)

    def half_width(self, epoch: int, rest: float) -> float:
        """See `EpochNoise`: that of the normal law, and half a step for rounding."""
        return math.ceil(-NormalDist().inv_cdf(rest / 2) * self.deviation(epoch) + 0.5)

    @abstractmethod
    def _of(self, epoch: int, bin_: Ids) -> int:
        """The noise of one bin at an epoch."""

    def _sums(self, number: int, length: int, square: Fraction, epoch: int, bin_: Ids) -> int:
        """Factored sums of one bin; what they have come to is held, where that is further than before.

        Args:
            number: Of the blocks of words, from `NUMBER`.
            length: The horizon of the factors.
            square: The variance of their normal variables.
            epoch: Of so many.
            bin_: Its identity.
        """
        held, known = self._running.get(bin_.tobytes(), (number, None))
        if known is None or held != number or known.epoch > epoch:
            fresh = Running.begin(factors(length), square)
            if known is None or held < number:
                self._running[bin_.tobytes()] = number, fresh
            known = fresh

        def draw(rank: int, after: int, last: int) -> Whole:
            return GRID.draw(self._words, self._blocks(number, rank, np.arange(after + 1, last + 1), bin_))

        return known.at(epoch, draw)


class FactoredNoise(GaussianSums):
    """Gaussian noise up to a last epoch (`core/noise/factored_sums.py`)."""

    title = "gaussian noise of factored sums"

    def __init__(self, law: DiscreteGaussian, secret: Secret, key: tuple[Field, ...], horizon: int) -> None:
        super().__init__(law, secret, key)
        self.last, self.terms = horizon, f"continual=True, horizon={horizon}"
        self.shown = (*(epoch for epoch in EpochNoise.shown if epoch < horizon), horizon)
        self._horizon = horizon

    def deviation(self, epoch: int) -> float:
        """See `EpochNoise`."""
        return math.sqrt(float(self._square) * factors(self._horizon).deviation(epoch) ** 2 + 1 / 12)

    def _of(self, epoch: int, bin_: Ids) -> int:
        return self._sums(NUMBER, self._horizon, self._square, epoch, bin_)


class EndlessNoise(GaussianSums):
    """Gaussian noise without a last epoch (`core/noise/endless_sums.py`)."""

    title = "gaussian noise of factored sums of segments"
    shown = (1, 100, 10_000, 65_000)  # the factors of a longer segment take seconds

    def __init__(self, law: DiscreteGaussian, secret: Secret, key: tuple[Field, ...], spare: int) -> None:
        super().__init__(law, secret, key)
        self._spare = spare

    def deviation(self, epoch: int) -> float:
        """See `EpochNoise`."""
        return endless_sums.deviation(self._square, epoch, self._spare)

    def _of(self, epoch: int, bin_: Ids) -> int:
        """The sums of the segments that have ended, and the segment so far."""
        at = located(epoch)
        square = endless_sums.running_square(self._square, at.length)
        total = self._sums(NUMBER + at.segment, at.length, square, at.epoch, bin_)
        if at.segment:
            blocks = self._blocks(NUMBER, ENDED, np.arange(at.segment), bin_)
            whole = DiscreteGaussian(endless_sums.sum_square(self._square, self._spare))
            total += int(whole.draw(self._words, blocks).sum())
        return total
