"""The anchor: the last head of a ledger in a database that this client has seen, so that it notices a restored one.

In a database the head lies beside the rows, and a backup brings back both. So each client keeps the highest head that
it has read or written, in the form of a head file: the number of a row, and a code over that row under the secret. It
is durable before anything is answered. A ledger that has no such row any more, or another one, is refused: rows that
this client knows of were lost. A client that saw none of the lost rows sees nothing, and an anchor that is put back by
hand to an older one says as little as a head that is.

Source: privacy rules 38 and 39.
"""

from __future__ import annotations

import fcntl
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from hmac import compare_digest
from pathlib import Path

from wpinq.core.ledger.rows import chain
from wpinq.core.ledger.rows.chain import Head, RefusedError
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.rows.side import Turn
from wpinq.core.ledger.stores.store import Pages

LOST = (
    "the database was restored, or failed over, to a moment before rows that this client has seen: what was spent since"
    " would be spent again. Put back the newest state of the database. To accept the loss, knowing that people lose"
    " more than the ledger will show, remove {path}."
)
FORKED = (
    "the database holds another history than the one that this client has seen: it was restored and written to since,"
    " or is another ledger, or was made with another secret; or the anchor was edited. Put back the right secret, or"
    " the newest state of the database, or of {path}."
)
_BEGUN = (
    "this client has seen nothing of it before, and begins {path}; from now on it notices when the database is put back"
    " to an earlier state."
)


class Anchor:
    """The file of one client with the last head that it has seen of one ledger."""

    def __init__(self, path: Path, label: str) -> None:
        self.path, self._label = path, label

    def seen(self) -> Head | None:
        """The last head; None where there is none yet.

        Raises:
            RefusedError: It is damaged.
        """
        return chain.read_head(self.path) if self.path.exists() else None

    def check(self, pages: Pages, secret: Secret, seen: Head | None) -> None:
        """Compare the ledger with what was seen of it.

        Raises:
            RefusedError: Rows are missing that were seen.
        """
        if seen is None:
            return
        row, turn = next(pages.rows(seen.number), None) if seen.number else None, Turn.of(pages, secret)
        if (seen.number and (row is None or row.number != seen.number)) or turn.number < seen.turn:
            raise RefusedError(LOST.format(path=self.path))
        code = turn.behind.get(seen.turn, seen.code)  # of turns that are longer ago nothing is there any more
        if not compare_digest(chain.head(secret, row, seen.turn, code).mac, seen.mac):
            raise RefusedError(FORKED.format(path=self.path))

    def keep(self, head: Head, *, begun: bool = False) -> None:
        """Make a head durable here, unless a later one is; a client that begins an anchor says so once.

        Args:
            head: The head that was read or written.
            begun: Whether this client has just made the ledger.

        Raises:
            OSError: It cannot be written.
        """
        with self._held():
            seen = self.seen()
            if seen is None or (head.number, head.turn) > (seen.number, seen.turn):  # neither ever goes back
                chain.write_head(self.path, head)
        if seen is None and not begun:
            warnings.warn(f"{self._label}: {_BEGUN.format(path=self.path)}", RuntimeWarning, stacklevel=2)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Against other threads and processes of this client, while it is compared and written."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = self.path.with_name(f"{self.path.name}.lock")
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)
