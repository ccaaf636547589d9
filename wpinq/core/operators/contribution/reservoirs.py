"""Reservoirs: a sample of what each user contributed, kept up to date by compiled kernels, record by record."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import polars as pl

from wpinq.core.kernels import Weights, Words
from wpinq.core.kernels.reservoirs import Numbers, Pool
from wpinq.core.kernels.reservoirs import Rows as Places
from wpinq.core.operators.contribution.unit_key import UnitKey
from wpinq.core.plan.unit import Unit
from wpinq.core.records.batch import WEIGHT, Batch, bytes_of_row
from wpinq.core.records.identity import column_identities, integer_identities, tuple_identities
from wpinq.core.records.schema import Schema

PIECE = 1 << 15
"""Copies that compete at a time: their hashes stay in the cache."""
COPIES = (1 << 32) - 1
"""Copies of one record that compete; more of one record do not."""
FIRST = np.ones(1, np.int64)
"""The number of a first copy."""
ROWS = 1 << 16
"""Rows of a frame; so many rows may be held that are not in the sample any more."""


class Reservoirs:
    """What is kept of each user: the same as `Sample` keeps, which says what that is, many times as fast.

    A record is known by the rank of its first copy, under which its copies are counted. What is held of a user is held
    by rank (`core/kernels/reservoirs.c`), with the number of the row that has the columns that are needed later.
    """

    def __init__(  # noqa: PLR0917
        self, library: ctypes.CDLL, schema: Schema, unit: Unit, keep: tuple[str, ...], key: bytes,
        ranked: Schema | None = None,
    ) -> None:  # fmt: skip
        self._schema, self._keep, self._key = schema, keep, key
        self._unit_key = UnitKey(unit, schema)
        names = (ranked or schema).names  # they come first among all
        self._ranks = len(names)
        self._hashed = schema.select({*names, *(unit.per[:1] if unit.per else ())})
        self._user = self._hashed.names.index(self._unit_key.user) if unit.period is None else None
        self._value = self._hashed.names.index(unit.per[0]) if unit.per else None
        self._copies, self._users = Numbers(library), Numbers(library)
        self._pool = Pool(library, int(unit.bound or 0), unit.per[1] if unit.per else None)
        self._rows = Rows(Batch.empty(schema.select(keep)).frame.drop(WEIGHT))
        self._stale: npt.NDArray[np.bool_] | None = None

    def absorb(self, port: int, batch: Batch) -> None:
        """Let records compete for a place."""
        self._renumber()
        for frame in batch.frame.iter_slices(PIECE):
            columns = column_identities(frame, self._hashed, self._key)
            ranked = columns[: self._ranks]
            first = ranks_of(ranked, FIRST, self._key)
            users = self._unit_key.ids(frame, self._key) if self._user is None else columns[self._user]
            for rows, numbers in self._numbered(first, frame[WEIGHT].to_numpy()):
                ranks, again = first[rows], np.flatnonzero(numbers > 1)
                ranks[again] = ranks_of([column[rows][again] for column in ranked], numbers[again], self._key)
                codes = self._users.codes(users[rows])
                self._pool.reserve(len(self._users))
                entered = self._pool.put(codes, ranks, None if self._value is None else columns[self._value][rows])
                self._rows.add(frame.select(self._keep)[rows].filter(pl.Series(entered)))
        if len(self._rows) > 2 * self._pool.live + ROWS:
            self._hold(self._pool.held())

    @property
    def size(self) -> int:
        """Bytes that are held, about."""
        return sum(part.size for part in (self._copies, self._users, self._pool, self._rows))

    def emit(self) -> Batch:
        """Records that entered the sample since it was last asked, less those that they pushed out."""
        return Batch(pl.concat(list(self._moved())), self._schema.select(self._keep))

    def last(self) -> Iterator[Batch]:
        """The same in pieces, which alone are held from then on: what is known of users is more than the sample."""
        del self._copies, self._users
        moved, schema = self._moved(), self._schema.select(self._keep)
        del self._pool, self._rows
        return (Batch(frame, schema) for frame in moved)

    def _moved(self) -> Iterator[pl.DataFrame]:
        """The rows that entered and those that left, with their weights."""
        self._renumber()
        entered, left = self._pool.give()
        if len(entered) == self._pool.live and not len(left):  # of a finite source: it holds nothing else
            held = np.zeros(len(self._rows), np.bool_)
            held[entered] = True
            self._hold(held)
            return _signed(self._rows.frames(), 1)
        if 8 * (len(self._rows) - self._pool.live - len(left)) > self._pool.live + ROWS:
            held = self._pool.held()
            held[left] = True
            entered, left = self._places(held)[entered], self._places(held)[left]
            self._hold(held)
        return chain(_signed(self._rows.take(entered), 1), _signed(self._rows.take(left), -1))

    def _hold(self, held: npt.NDArray[np.bool_]) -> None:
        """Hold only these rows. They are numbered anew before the next record comes, if one does."""
        self._rows.keep(held)
        self._stale = held

    def _renumber(self) -> None:
        if self._stale is not None:
            self._pool.renumber(self._places(self._stale), len(self._rows))
            self._stale = None

    def _places(self, held: npt.NDArray[np.bool_]) -> Places:
        """The numbers of the rows that are held."""
        return np.cumsum(held, dtype=np.uint32) - np.uint32(1)

    def _numbered(self, first: Words, weights: Weights) -> Iterator[tuple[slice | Weights, Weights]]:
        """The rows of copies and the numbers that they have, from 1 on, no more than `PIECE` at a time."""
        if (weights == 1).all():
            yield slice(None), 1 + self._copies.count(first)
            return
        before, ends = self._copies.count(first, weights), np.cumsum(weights)
        for start in range(0, int(ends[-1]), PIECE):
            copies = np.arange(start, min(start + PIECE, int(ends[-1])))
            rows = np.searchsorted(ends, copies, "right")
            numbers = 1 + before[rows] + copies - (ends - weights)[rows]
            yield rows[numbers <= COPIES], numbers[numbers <= COPIES]


def ranks_of(columns: Sequence[Words], numbers: Weights, key: bytes) -> Words:
    """The ranks of copies, by the identities of their columns and their numbers: the least ranks are kept."""
    number = np.broadcast_to(integer_identities(numbers, key), columns[0].shape)
    return tuple_identities([*columns, number], key)


def _signed(frames: list[pl.DataFrame], sign: int) -> Iterator[pl.DataFrame]:
    """Frames with this weight, each until the next one is asked for."""
    frames.reverse()
    while frames:
        yield frames.pop().with_columns(pl.lit(sign, pl.Int64).alias(WEIGHT))


class Rows:
    """Rows of frames, each with a number from 0 on.

    Args:
        empty: A frame of their columns.
    """

    def __init__(self, empty: pl.DataFrame) -> None:
        self._empty = empty
        self._hold([])

    def __len__(self) -> int:
        return self._ends[-1] + self._more

    @property
    def size(self) -> int:
        """Bytes that are held, about: as if texts of all rows were as long as those that came last."""
        last = next((frame for frame in reversed([*self._frames, *self._coming]) if frame.height), None)
        return 0 if last is None else len(self) * bytes_of_row(last)

    def add(self, frame: pl.DataFrame) -> None:
        """Number more rows."""
        self._coming.append(frame)
        self._more += frame.height
        if self._more > ROWS:
            self._gather()

    def frames(self) -> list[pl.DataFrame]:
        """All rows, in at least one frame."""
        self._gather()
        return [self._empty, *self._frames]

    def take(self, numbers: Places) -> list[pl.DataFrame]:
        """Some rows, in at least one frame."""
        self._gather()
        numbers = np.sort(numbers)
        cuts = np.searchsorted(numbers, np.array(self._ends, np.uint32))
        frames = [self._empty]
        for frame, start, low, high in zip(self._frames, self._ends, cuts, cuts[1:], strict=False):
            if high > low:
                frames.append(frame if high - low == frame.height else frame[numbers[low:high] - np.uint32(start)])
        return frames

    def keep(self, held: npt.NDArray[np.bool_]) -> None:
        """Number the rows anew: only these are left, in their order."""
        self._gather()
        for index, start in enumerate(self._ends[:-1]):  # in place, so that no two copies of all are held
            self._frames[index] = self._frames[index].filter(pl.Series(held[start : self._ends[index + 1]]))
        self._hold([frame for frame in self._frames if frame.height])

    def _hold(self, frames: list[pl.DataFrame]) -> None:
        self._frames, self._coming, self._more = frames, list[pl.DataFrame](), 0
        self._ends: list[int] = [0, *np.cumsum([frame.height for frame in frames]).tolist()]

    def _gather(self) -> None:
        """Make one frame of small ones, so that a row is copied a few times only."""
        frames, size = [*self._frames], self._more
        few = self._coming
        while frames and frames[-1].height <= min(size, ROWS - size):
            size += frames[-1].height
            few = [frames.pop(), *few]
        self._hold([*frames, pl.concat(few, rechunk=True)] if size else frames)
