"""A measured histogram: the true weights to which a measurement adds noise. Only measurements may read it.

`Steps` holds the weights over ranges of integers, which are a step function. It holds the weights of a ranged column: a
hundred thousand pages that all have an index 1 are one step, so the state of a degree distribution grows with the
number of distinct degrees, not with the number of views.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import unpack
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from wpinq.core.records.batch import END, Batch
from wpinq.core.records.schema import Schema
from wpinq.core.records.values import decode
from wpinq.core.state.table import Ids, Table, Weights
from wpinq.core.state.write_buffer import Tally
from wpinq.errors import InternalError

Integers: TypeAlias = npt.NDArray[np.int64]


class Steps:
    """A function from integers to weights that is constant between its steps and zero far out.

    Args:
        dtype: Of the weights: int64, or object for Python integers.
    """

    def __init__(self, dtype: npt.DTypeLike = np.int64) -> None:
        self._at: Integers = np.empty(0, np.int64)
        self._rise: Integers = np.empty(0, dtype)
        self._heights = self._at, np.zeros(1, dtype)
        self._coming: list[tuple[Integers, Integers, Integers]] = []
        self._many = 0

    def add(self, start: Integers, end: Integers, weight: Integers) -> None:
        """Add `weight[i]` everywhere in `start[i] <= k < end[i]`.

        It is kept until as much came as is held, or somebody looks: so each step is sorted in a few times, and not with
        each batch.
        """
        self._coming.append((start, end, weight))
        self._many += 2 * len(start)
        if self._many >= len(self._at):
            self._settle()

    def _settle(self) -> None:
        """Take in what came."""
        if not self._coming:
            return
        starts, ends, weights = zip(*self._coming, strict=True)
        self._coming, self._many = [], 0
        at = np.concatenate([self._at, *starts, *ends])
        rise = np.concatenate([self._rise, *weights, *(-fall for fall in weights)], dtype=self._rise.dtype)
        order = np.argsort(at, kind="stable")
        at, rise = at[order], rise[order]
        if len(at):
            first = np.flatnonzero(np.concatenate([[True], at[1:] != at[:-1]]))
            at, rise = at[first], np.add.reduceat(rise, first)
        alive = rise != 0
        self._at, self._rise = at[alive], rise[alive]

    def copy(self) -> Steps:
        """The same weights, to be changed on their own; arrays are shared, because nothing ever writes to one."""
        self._settle()
        copy = Steps(self._rise.dtype)
        copy._at, copy._rise = self._at, self._rise
        return copy

    def lookup(self, numbers: Integers) -> Integers:
        """The weights at these integers. Present or absent take the same steps."""
        at, height = self._drawn()
        weights: Integers = height[np.searchsorted(at, numbers, side="right")]
        return weights

    def weight(self, number: int) -> Any:
        """The weight at one integer, as an item of an array."""
        at, height = self._drawn()
        return height[at.searchsorted(number, side="right")]

    def _drawn(self) -> tuple[Integers, Integers]:
        """The steps, and the height before the first and after each."""
        self._settle()
        at, rise = self._at, self._rise
        if self._heights[0] is not at:
            self._heights = at, np.concatenate([np.zeros(1, rise.dtype), np.cumsum(rise)])
        return self._heights

    def pieces(self) -> tuple[Integers, Integers, Integers]:
        """The longest pieces of constant non-zero weight: starts, ends (exclusive), weights."""
        self._settle()
        height = np.cumsum(self._rise)
        alive = np.flatnonzero(height[:-1]) if len(height) else np.empty(0, np.intp)
        return self._at[alive], self._at[alive + 1], height[alive]

    def update(self, change: Steps) -> tuple[Integers, Integers, Integers, Integers]:
        """Add a change, and tell where it moved: starts, ends (exclusive), weights before and after."""
        self._settle()
        change._settle()
        at = np.union1d(self._at, change._at)
        before = self.lookup(at[:-1])
        moved = change.lookup(at[:-1])
        rows = np.flatnonzero(moved)
        self.add(*change.pieces())
        return at[rows], at[rows + 1], before[rows], before[rows] + moved[rows]


HistogramPart: TypeAlias = tuple[Ids, Weights] | tuple[Weights, Weights, Weights]
"""Identities and weights; or the starts, ends and weights of steps."""
Content: TypeAlias = tuple[Ids, Weights]
"""Identities, or the starts and ends of steps as words; and their weights, or these as words."""
IDENTITIES_PER_PART = 1 << 21
"""Identities that make a part, of 48 megabytes."""
LARGE = 8
"""A change of one in so many bins is large."""
FEW = 1 << 13
"""Fewer rows than these are added up directly, because calling a faster kernel would take longer."""
WIDE = 40
"""Bytes of a Python integer."""

NOWHERE = 2**63 - 1
"""Steps have no weight at the last integer."""


class Histogram:
    """Exact weights by bin, in units of 1/resolution.

    A collection of one ranged column is held as steps, any other by identity; the plan decides which, never the data.

    Args:
        schema: The columns of a bin.
        key: The key of identities.
        dtype: Of the weights: int64, or object for Python integers.
    """

    def __init__(self, schema: Schema, key: bytes, dtype: npt.DTypeLike = np.int64) -> None:
        self._schema, self._key, self._dtype = schema, key, dtype
        self._store: Steps | Table = Steps(dtype) if is_steps(schema) else Table(dtype)
        self._coming: Tally | None = None

    def absorb(self, batch: Batch) -> None:
        """Add the weights of a batch."""
        if isinstance(self._store, Steps):
            start, end, weight = ranges(batch if len(batch) < FEW else batch.consolidate())
            self._store.add(start, end, weight)
        else:
            self._coming = self._coming or Tally(self._schema, self._key)
            self._coming.absorb(batch)

    def merge(self, other: Histogram) -> None:
        """Add another histogram's weights."""
        mine, others = self._settled(), other._settled()
        if isinstance(mine, Steps) and isinstance(others, Steps):
            mine.add(*others.pieces())
        elif isinstance(mine, Table) and isinstance(others, Table):
            mine.add(*others.items())

    def copy(self) -> Histogram:
        """The same weights, to be changed on their own."""
        copy = Histogram(self._schema, self._key, self._dtype)
        copy._store = self._settled().copy()
        return copy

    def before_and_after(self, change: Histogram) -> tuple[Content, Content] | None:
        """The part of the content that a merge with a change will replace, and what it will be.

        None where to look at the whole content later takes no longer: for steps, which are few, and large changes.
        """
        mine, others = self._settled(), change._settled()
        if not isinstance(mine, Table) or not isinstance(others, Table):
            return None
        ids, more = others.items()
        if LARGE * len(ids) > len(mine):
            return None
        before = mine.lookup(ids)
        return _content(ids, before), _content(ids, before + more)

    def parts(self) -> list[HistogramPart]:
        """What another process needs to add these weights to its own."""
        store = self._settled()
        if isinstance(store, Steps):
            return [store.pieces()]
        ids, weights = store.items()
        cuts = (slice(start, start + IDENTITIES_PER_PART) for start in range(0, len(ids), IDENTITIES_PER_PART))
        return [(np.ascontiguousarray(ids[cut]), weights[cut]) for cut in cuts]

    def add(self, part: HistogramPart) -> None:
        """Add a part of another process's weights."""
        if len(part) == 3 and isinstance(self._store, Steps):
            self._store.add(*part)
        elif len(part) == 2:
            self._coming = self._coming or Tally(self._schema, self._key)
            self._coming.add(*part)

    def lookup(self, bins: pl.DataFrame, ids: Ids) -> Weights:
        """The weights of bins, given as columns and as identities; 0 where there is none."""
        store = self._settled()
        return store.lookup(ids) if isinstance(store, Table) else store.lookup(bins.to_series().to_numpy())

    def weight(self, codes: Sequence[bytes], identity: bytes) -> Any:
        """The weight of one bin, given as the encodings of its values and as its identity; the same, without arrays."""
        store = self._settled()
        if isinstance(store, Table):
            return store.weight(*unpack("<QQ", identity))
        number = decode(codes[0])
        return store.weight(NOWHERE if number is None else number)

    def numbers(self) -> tuple[Weights, Weights]:
        """The integers of other weight than zero, in order, and their weights; of what is held as steps."""
        store = self._settled()
        if not isinstance(store, Steps):
            raise InternalError("numbers: this histogram holds no numbers; please report this.")
        start, end, weight = store.pieces()
        width = end - start
        first = np.repeat(start - np.cumsum(width) + width, width)
        return first + np.arange(len(first)), np.repeat(weight, width)

    def content(self) -> Content:
        """All weights other than zero, in a canonical form, of which a digest is computed.

        Weights that are not held in 64 bits are given as two words of 128, the low one first.
        """
        store = self._settled()
        if isinstance(store, Table):
            return _content(*store.items())
        start, end, weight = store.pieces()
        return _content(np.stack([start, end], axis=1).view(np.uint64), weight)

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        store = self._settled()
        arrays = store.pieces() if isinstance(store, Steps) else store.items()
        return sum(array.nbytes + (WIDE * len(array) if array.dtype == object else 0) for array in arrays)

    def _settled(self) -> Steps | Table:
        """The store, with all that came taken in."""
        if self._coming is not None and isinstance(self._store, Table):
            self._store.add(*self._coming.take())
            self._coming = None
        return self._store

    def __repr__(self) -> str:
        return f"Histogram{self._schema}"


def _content(ids: Ids, weights: Weights) -> Content:
    return ids, (_words(weights) if weights.dtype == object else weights)


def _words(weights: np.ndarray) -> np.ndarray:
    """128-bit two's complement, as words."""
    data = b"".join((weight % 2**128).to_bytes(16, "little") for weight in weights.tolist())
    return np.frombuffer(data, "<u8").reshape(-1, 2)


def is_steps(schema: Schema) -> bool:
    """Whether records of these columns are held as steps: one column, and it is ranged."""
    return len(schema) == 1 and schema.columns[0].ranged


def ranges(batch: Batch) -> tuple[Weights, Weights, Weights]:
    """Starts, ends and weights of a batch whose only column is ranged."""
    name = batch.schema.names[0]
    return batch.frame[name].to_numpy(), batch.frame[END + name].to_numpy(), batch.weights
