"""The journal (checkpoint log) of a live source: each closed epoch is written before any answer from it.

One file holds the closed epochs, in order, each encrypted together with the positions up to which followed files and
topics were read. An incomplete epoch was not closed, and nothing was answered from it. So answers after a restart are
those of before, and records of files and topics are counted once.

The number of epochs is also written beside the ledger (`chain.py`), and compared: a directory that was restored from a
copy could close an epoch again, with other records under the same noise, and is refused.

Epochs that are no longer held can be merged into one (`core/runs/compaction.py`): a new file is written beside,
durably; then the head names its code, and from then on the new file is the journal; then it takes the place of the old
one. A process that is killed in between leaves two whole files, and the head says which of them counts.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from wpinq.core.records.log import Epoch, Merged
from wpinq.errors import EngineError, SourceError
from wpinq.storage import opened, private, sealed, settle, write
from wpinq.streaming.epoch_store import refuse_short
from wpinq.streaming.frames import (
    MERGED,
    SIZE,
    Positions,
    chained,
    framed,
    frames,
    merged_of,
    numbered,
    opened_epoch,
    rewritten,
    sealed_epoch,
    sizes,
)
from wpinq.streaming.head import Head, durable
from wpinq.streaming.notes import FolderNotes

NAME, NEXT = "epochs", "epochs.next"
EVERY = 100
"""Epochs after which it is looked whether to merge some, and that are merged at least."""


class Journal:
    """The closed epochs of a live source, in a directory.

    Args:
        place: The directory; it is made where there is none.
        head: The file beside the ledger.
        key: 32 secret bytes, of this data set and dataflow alone.

    Attributes:
        version: Names the data; it is the same as long as the directory is.
        merged: What is known of the epochs that are merged; None where none are.
        notes: What programs keep beside them.

    Raises:
        SourceError: It belongs to something else, was put back from a copy, is in use, or cannot be used.
    """

    def __init__(self, place: Path, head: Path, key: bytes) -> None:
        self.place, self._key, self.notes = place, key, FolderNotes(place)
        with _said(place), ExitStack() as opening:
            private(place)
            path = place / NAME
            self._alone = opening.enter_context(ExitStack())
            for lock in (place, head.with_name(head.name + ".lock")):
                self._alone.callback(os.close, self._locked(lock))
            self._head = Head(head, key)
            self._alone.callback(self._head.close)
            opening.callback(self.close)
            self._choose(path, place / NEXT)
            if not path.exists() or not (self._open(path) and self._resumes()):
                self._begin(path)
            self.version = opened(key, "version", next(frames(self._file.fileno()))).decode()
            opening.pop_all()

    @property
    def parts(self) -> None:
        """None: one process reads the stream."""
        return

    @property
    def closed(self) -> int:
        """How many epochs are kept."""
        return self._number

    def read(self) -> Iterator[tuple[Epoch, Positions]]:
        """The closed epochs, in order."""
        return (epoch for _, epoch in numbered(self._key, frames(self._file.fileno()), self.merged))

    def append(self, epoch: Epoch, positions: Positions) -> None:
        """Write down an epoch, durably, before it is closed.

        Raises:
            SourceError: It cannot be written; nothing was.
            EngineError: It may have been written or not.
        """
        number = self._number + 1
        frame = sealed_epoch(self._key, number, self._chain, epoch, positions)
        with _said(self.place):
            end = self._file.seek(0, os.SEEK_END)
            try:
                left = memoryview(framed(frame))
                while left:
                    left = left[self._file.write(left) :]
                durable(self._file.fileno())
                self._told(number, chained(self._chain, frame))
            except OSError:
                self._undo(end)
                raise

    def long(self, last: int) -> bool:
        """Whether it is time to merge the epochs up to one: they take more space than what would stay as it is."""
        done = 1 if self.merged is None else self.merged.last
        return due(self._number, done, last, lambda: list(sizes(self._file.fileno())))

    def merge(self, last: int, make: Callable[[Iterator[Epoch]], Epoch]) -> None:
        """Replace the epochs from the second on up to one by a single one; where there is no room, leave them.

        Args:
            last: The last of them.
            make: Makes it of the epochs from the first on.

        Raises:
            EngineError: They may have been replaced or not; a restart sees which.
        """
        draft, chain = self.place / NEXT, b""
        try:
            with open(draft, "wb", opener=lambda path, how: os.open(path, how | os.O_NOFOLLOW, 0o600)) as out:
                for frame, _ in rewritten(self._key, lambda: frames(self._file.fileno()), self.merged, last, make):
                    out.write(framed(frame))
                    chain = chained(chain, frame)
                out.flush()
                os.fsync(out.fileno())
            settle(self.place)
        except OSError:
            draft.unlink(missing_ok=True)
            return
        try:
            self._told(self._number, chain)
            self._file.close()
            draft.replace(self.place / NAME)
            settle(self.place)
            self._open(self.place / NAME)
        except OSError:
            raise EngineError(f"--recover {self.place}: epochs could not be merged; make another source.") from None

    def close(self) -> None:
        """Release the directory, so that another process can use it."""
        if hasattr(self, "_file"):
            self._file.close()
        self._alone.close()

    def _locked(self, path: Path) -> int:
        """Lock the directory, or the head, for this process."""
        how = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        descriptor = os.open(path, how | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise SourceError(f"--recover {self.place}: another process is using it, or its ledger.") from None
        return descriptor

    def _undo(self, end: int) -> None:
        """Remove an epoch that could not be written, unless the head counts it already.

        Raises:
            EngineError: It cannot be taken back; a restart sees whether it was closed.
        """
        try:
            if self._head.read() == _head(self._number, self._chain):
                self._file.truncate(end)
                return
        except (OSError, SourceError):
            pass
        raise EngineError(f"--recover {self.place}: an epoch could not be written; make another source.") from None

    def _choose(self, path: Path, draft: Path) -> None:
        """End a merge that was interrupted: the head says which file counts."""
        if draft.exists() and (stated := self._head.read()):
            self._open(draft)
            self._file.close()
            if stated == _head(self._number, self._chain):
                draft.replace(path)
            else:
                draft.unlink()
            settle(self.place)

    def _open(self, path: Path) -> bool:
        """Open the file, and find its end; whether it holds more than its name."""
        self._file = path.open("r+b", buffering=0)
        self.merged: Merged | None = None
        self._number, self._chain, self._before, whole = -1, b"", b"", 0
        for index, frame in enumerate(frames(self._file.fileno())):
            if index == MERGED:
                self.merged = merged_of(self._key, self._chain, frame)
            self._number = self.merged.last if self.merged and index == MERGED else self._number + 1
            self._before, self._chain = self._chain, chained(self._chain, frame)
            self._last = whole
            whole += SIZE + len(frame)
        self._file.truncate(whole)
        return self._number >= 0

    def _resumes(self) -> bool:
        """Whether the file can be continued: it has as many epochs as the head says, or one more."""
        next(self.read(), None)  # with another key it fails here
        stated = self._head.read()
        if stated == _head(self._number, self._chain):
            return True
        if not self._number:
            return False
        if stated != _head(self._number - 1, self._before):
            raise SourceError(
                f"--recover {self.place}: was put back from a copy, or is not the last one of this ledger; give a new "
                "directory, which is charged anew."
            )
        self._finish()
        return True

    def _finish(self) -> None:
        """Adopt the last epoch, which the head does not count yet, if it was written completely."""
        try:
            *_, frame = frames(self._file.fileno())
            opened_epoch(self._key, self._number, self._before, frame)
        except SourceError:
            self._file.truncate(self._last)
            self._number, self._chain = self._number - 1, self._before
        self._told(self._number, self._chain)

    def _begin(self, path: Path) -> None:
        frame = sealed(self._key, "version", os.urandom(16).hex().encode())
        write(path, framed(frame))
        if hasattr(self, "_file"):
            self._file.close()
        self._open(path)
        self._told(0, self._chain)

    def _told(self, number: int, chain: bytes) -> None:
        self._head.write(_head(number, chain))
        self._number, self._chain = number, chain


def open_journal(recover: str | os.PathLike[str], head: Path, key: bytes, keep: int | None) -> Journal:
    """The journal of a directory.

    Args:
        keep: For how many epochs records will be held; None for all.

    Raises:
        SourceError: Fewer epochs are left by themselves; or see `Journal`.
    """
    result = Journal(Path(recover), head, key)
    refuse_short(result, f"--recover {os.fspath(recover)}", keep)
    return result


def due(number: int, done: int, last: int, lengths: Callable[[], list[int]]) -> bool:
    """Whether it is time to merge the epochs up to one: they take more space than what would stay as it is.

    Args:
        number: How many are closed.
        done: Up to which they are merged; 1 where none are.
        last: That one.
        lengths: Gives the sizes of all frames.
    """
    if number % EVERY or last < done + EVERY:
        return False
    first, each = MERGED + (done > 1), lengths()
    some = sum(each[first : first + last - done])
    return some > sum(each) - some


def _head(number: int, chain: bytes) -> bytes:
    return f"{number} {chain.hex()}".encode()


@contextmanager
def _said(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SourceError(f"--recover {place}: {error.strerror}; give a directory that can be written.") from None
