"""What files hold: a version is the content of its files, not their place or time.

Path, size and time of change name a version when it is first asked. Before its first charge the ledger seals a digest
of its bytes. A file that was touched, moved, copied or fetched anew is then known by its bytes, and what was charged
for them stays paid; other bytes are another version, whatever their path, size and time say. So that bytes need not be
read again, the ledger remembers in which state (path, inode, size, times) the system showed files of known bytes.

The digest is a universal hash (GMAC) under a key of the data set, of which the ledger keeps a code under another key:
an unkeyed one would tell whoever reads the ledger whether a guessed file was protected. Sealing needs no new kind of
row, so that ledgers of before open, and open with what was before. Source: privacy rule 2.
"""

from __future__ import annotations

from typing import Protocol

from wpinq.errors import SourceError
from wpinq.ledger.accountant import BYTES
from wpinq.ledger.ledger import Ledger
from wpinq.ledger.session import Session

STATE = "state of files"
KEY = 16


class Files(Protocol):
    """Files, as a reader shows them."""

    @property
    def name(self) -> str:
        """What messages call them."""

    def version(self) -> str | None:
        """Path, size and time of change."""

    def state(self) -> str | None:
        """The same with all that the system sets at each change; None so soon after one that another may hide."""

    def content(self, key: bytes = b"") -> bytes | None:
        """A digest of their bytes under a key."""


def recognized(ledger: Ledger, files: Files) -> str | None:
    """The version that files hold: that of the same bytes, if they were asked before; None where there are no files.

    Raises:
        SourceError: A file cannot be read.
        LedgerError: The ledger cannot be trusted or written.
    """
    guess = files.version()
    if guess is None:
        return None
    state = files.state()
    with ledger._session() as session:
        found = None if state is None else _stated(session, state)
        if found is not None or not session.accountant.contents:
            return found or guess
    content = _content(ledger, files)
    with ledger._session() as session:
        known = session.accountant.contents
        same = next((version for version in known if session.sealed(BYTES, version, content)), None)
        if same is None:
            return guess if guess not in known else f"{guess}\t{session.coded(BYTES, guess, content)[:32]}"
        if state is not None:
            session.seal(STATE, state, same.encode())
        return same


def confirm(ledger: Ledger, version: str, files: Files) -> None:
    """Seal what files of a version hold, at the first time, and compare it later.

    Raises:
        SourceError: They hold something else by now, or cannot be read.
        LedgerError: The version is closed, or the ledger cannot be trusted or written.
    """
    state = files.state()
    with ledger._session() as session:
        session.refuse_closed(version)
        if state is not None and session.sealed(STATE, state, version.encode()):
            return
    content = _content(ledger, files)
    with ledger._session() as session:
        if version in session.accountant.contents and not session.sealed(BYTES, version, content):
            raise SourceError(f"{files.name}: changed after it was opened; open it again.")
        session.seal(BYTES, version, content)
        if state is not None and files.state() == state and not session.holds(STATE, state):
            session.seal(STATE, state, version.encode())


def _content(ledger: Ledger, files: Files) -> bytes:
    return files.content(ledger.secret.derive("bytes of files", size=KEY)) or b""


def _stated(session: Session, state: str) -> str | None:
    known = session.accountant.contents if session.holds(STATE, state) else ()
    return next((version for version in known if session.sealed(STATE, state, version.encode())), None)
