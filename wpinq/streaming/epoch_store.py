"""What keeps the closed epochs of a live source for a restart: a directory, or the database of its ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from wpinq.core.records.log import Epoch, Merged
from wpinq.errors import SourceError
from wpinq.streaming.frames import Positions
from wpinq.streaming.notes import Notes

if TYPE_CHECKING:
    from wpinq.streaming.shared.parts import Parts


class EpochStore(Protocol):
    """The closed epochs of a live source.

    Attributes:
        version: Names the data; it stays as long as the epochs do.
        merged: What is known of the epochs that are merged; None where none are.
        notes: What programs keep beside them.
        parts: What workers have read, where several processes read the stream; else None.
    """

    version: str
    merged: Merged | None

    @property
    def notes(self) -> Notes:
        """What programs keep beside them."""

    @property
    def parts(self) -> Parts | None:
        """What workers have read, where several processes read the stream."""

    @property
    def closed(self) -> int:
        """How many epochs are kept."""

    def read(self) -> Iterator[tuple[Epoch, Positions]]:
        """The closed epochs, in order.

        Raises:
            SourceError: One is damaged.
        """

    def append(self, epoch: Epoch, positions: Positions) -> None:
        """Write down an epoch, durably, before it is closed.

        Raises:
            SourceError: It cannot be written; nothing was.
            EngineError, LedgerError: It may have been written or not; a restart sees which.
        """

    def long(self, last: int) -> bool:
        """Whether it is time to merge the epochs up to one."""

    def merge(self, last: int, make: Callable[[Iterator[Epoch]], Epoch]) -> None:
        """Replace the epochs from the second on up to one by the one that is made of them and the first.

        Raises:
            EngineError, LedgerError: They may have been replaced or not; a restart sees which.
        """

    def close(self) -> None:
        """Let another process use it."""


def refuse_short(store: EpochStore, label: str, keep: int | None) -> None:
    """Refuse epochs of which fewer are left by themselves than will be held.

    Args:
        label: What messages call the store.
        keep: For how many epochs records will be held; None for all.

    Raises:
        SourceError: Fewer are left; the store is closed.
    """
    left = store.closed - store.merged.last if store.merged is not None else None
    if left is not None and (keep is None or 2 * keep > left):
        store.close()
        raise SourceError(
            f"{label}: all epochs but the last {left} are merged, and keep={keep} needs "
            f"{'all' if keep is None else f'the last {2 * keep}'} by themselves; give keep={left // 2} or fewer (in a "
            "command windows, --lateness and --every say how many they need), or a new directory. Nothing was charged."
        )
