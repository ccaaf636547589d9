"""Bearer tokens: who may ask what, until when. A file holds their hashes, never the tokens.

A token is 32 random bytes, so a fast hash with a salt is enough: nobody can try 2^256 of them. It names its row, so
one row is looked up and one hash is compared, in constant time, also where there is no such row.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import json
import os
import re
import secrets
import sqlite3
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from wpinq.errors import PlanError, SourceError

FORM = re.compile(r"wpinq_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
ANALYST = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@-]{0,62}")
TABLE = (
    "CREATE TABLE IF NOT EXISTS tokens (id TEXT PRIMARY KEY, salt BLOB NOT NULL, hash BLOB NOT NULL, analyst TEXT NOT"
    " NULL, data TEXT NOT NULL, made TEXT NOT NULL, expires TEXT NOT NULL, curator INTEGER NOT NULL, revoked TEXT)"
)
COLUMNS = "id, analyst, data, made, expires, curator, revoked"
SALT, WAIT, TRIES = 16, 30.0, 3


@dataclass(frozen=True)
class Grant:
    """What one token allows.

    Attributes:
        id: Its name, which is no secret.
        analyst: Who has it; caps are kept for each analyst, so several tokens of one share a cap.
        data: The data sets that it is for.
        made: When it was made.
        expires: From when on it is refused.
        curator: Whether it may see the ledger, set caps and revoke tokens.
        revoked: Since when it is refused, if it was revoked.
    """

    id: str
    analyst: str
    data: tuple[str, ...]
    made: dt.datetime
    expires: dt.datetime
    curator: bool = False
    revoked: dt.datetime | None = None

    def valid(self, now: dt.datetime) -> bool:
        """Whether it holds at a time."""
        return self.revoked is None and now < self.expires


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class Tokens:
    """The tokens of a server, in a file that only its owner may read. Safe under threads and processes.

    What lies under the file's name counts, whenever it is looked at: where the file was replaced, the new one is read;
    where it is gone, or others may read it, no token allows anything, and none is made anew.

    Args:
        path: The file; it is made where there is none.

    Raises:
        SourceError: It cannot be read or written, or others may read it.
    """

    def __init__(self, path: Path) -> None:
        self._store: sqlite3.Connection | None = None
        self._path, self._lock = path, threading.Lock()
        self._state: tuple[int, ...] = ()
        self._known: dict[str, tuple[bytes, bytes, Grant] | None] = {}
        self._data_version = -1
        with self._trouble():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
            self._looked(path.lstat())
            with closing(sqlite3.connect(path, timeout=WAIT, isolation_level=None)) as store:
                store.execute(TABLE)

    def __del__(self) -> None:
        self._forget()  # Python 3.13 warns of a connection that nobody closes

    def make(
        self, analyst: str, data: Sequence[str], expires: dt.datetime, *, curator: bool = False
    ) -> tuple[str, Grant]:
        """Make a token, which is told once and never again.

        Raises:
            PlanError: The analyst's name has odd characters.
        """
        insist_on_analyst(analyst)
        grant = Grant(secrets.token_hex(8), analyst, tuple(sorted(set(data))), _now(), expires, curator)
        secret = base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()
        salt = secrets.token_bytes(SALT)
        row = (
            grant.id, salt, _hash(salt, secret), analyst, json.dumps(grant.data), grant.made.isoformat(),
            expires.isoformat(), int(curator), None,
        )  # fmt: skip
        self._write("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return f"wpinq_{grant.id}_{secret}", grant

    def all(self) -> list[Grant]:
        """All tokens, without their hashes."""
        with self._lock, self._trouble():
            rows = self._current().execute(f"SELECT {COLUMNS} FROM tokens ORDER BY made, id").fetchall()  # noqa: S608
        return [_grant(row) for row in rows]

    def revoke(self, name: str) -> None:
        """Refuse a token from now on, by its name.

        Raises:
            PlanError: There is none of this name.
        """
        stamp = "UPDATE tokens SET revoked = COALESCE(revoked, ?) WHERE id = ?"
        if not self._write(stamp, (_now().isoformat(), name)):
            raise PlanError(f"no token {name[:40]!r}; `wpinq token list` names them.")

    def granted(self, token: str) -> Grant | None:
        """What a token allows; None for one that is unknown, expired or revoked, and no word on which."""
        match = FORM.fullmatch(token)
        name, secret = (match[1], match[2]) if match else ("", "")
        held = self._held(name)
        salt, wanted, grant = held or (bytes(SALT), bytes(32), None)
        equal = hmac.compare_digest(_hash(salt, secret), wanted)
        return grant if equal and grant is not None and grant.valid(_now()) else None

    def current(self, name: str) -> Grant | None:
        """What the token of a name allows now, for whoever has shown it before; None where it does no more."""
        held = self._held(name)
        return held[2] if held is not None and held[2].valid(_now()) else None

    def _held(self, name: str) -> tuple[bytes, bytes, Grant] | None:
        """One row; those that were read are kept until somebody writes to the file, or replaces it."""
        with self._lock, self._trouble():
            store = self._current()
            version = store.execute("PRAGMA data_version").fetchone()[0]
            if version != self._data_version:
                self._known, self._data_version = {}, version
            if name not in self._known:
                read = store.execute(f"SELECT salt, hash, {COLUMNS} FROM tokens WHERE id = ?", (name,)).fetchone()  # noqa: S608
                if read is None:
                    return None
                self._known[name] = (read[0], read[1], _grant(read[2:]))
            return self._known[name]

    def _write(self, statement: str, values: tuple[object, ...]) -> int:
        with self._lock, self._trouble():
            store, self._known = self._current(), {}
            return store.execute(statement, values).rowcount

    def _current(self) -> sqlite3.Connection:
        """The file that has the name now, which is opened anew where it is another one, or was written to.

        Its times alone would not do: two writes may have the same.
        """
        for _ in range(TRIES):
            state = self._looked(self._path.lstat())
            if self._store is not None and state == self._state:
                return self._store
            self._forget()
            uri = f"{self._path.absolute().as_uri()}?mode=rw"
            self._store = sqlite3.connect(uri, uri=True, timeout=WAIT, check_same_thread=False, isolation_level=None)
            self._store.execute("PRAGMA synchronous = FULL")
            self._store.execute("SELECT id FROM tokens LIMIT 1").fetchone()
            self._state = state
        raise SourceError(f"{self._path}: it is replaced again and again; nobody is let in.")

    def _forget(self) -> None:
        store, self._store, self._known, self._data_version = self._store, None, {}, -1
        if store is not None:
            store.close()

    def _looked(self, status: os.stat_result) -> tuple[int, ...]:
        """Which file it is, and how it is now."""
        if not stat.S_ISREG(status.st_mode):
            raise SourceError(f"{self._path}: is no file of tokens, but a link or a directory; nobody is let in.")
        if status.st_mode & 0o077:
            raise SourceError(f"{self._path}: others may read the tokens' hashes; run `chmod 600 {self._path}`.")
        return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        """Turn what the system and SQLite raise into errors of ours; the file is looked at anew then."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            self._forget()
            missing = isinstance(error, FileNotFoundError)
            what = "is missing" if missing else f"cannot be read or written as tokens ({type(error).__name__})"
            raise SourceError(f"{self._path}: {what}, so no token counts; put it back, or name another one.") from None


def insist_on_analyst(name: str) -> None:
    """Insist on a name that an analyst can have.

    Raises:
        PlanError: It has odd characters.
    """
    if not ANALYST.fullmatch(name):
        raise PlanError(f"an analyst's name is letters, digits, spaces and . _ @ -: {name[:60]!r} is none.")


def purpose(release: str) -> str:
    """What a token for sending records to a release is for: no data set of a server has this name."""
    return f"records sent to {release}"


def _hash(salt: bytes, secret: str) -> bytes:
    return hashlib.blake2b(secret.encode(), digest_size=32, salt=salt, person=b"wpinq token").digest()


def _grant(row: Sequence[object]) -> Grant:
    name, analyst, data, made, expires, curator, revoked = row
    when = None if revoked is None else dt.datetime.fromisoformat(str(revoked))
    return Grant(
        str(name), str(analyst), tuple(json.loads(str(data))), dt.datetime.fromisoformat(str(made)),
        dt.datetime.fromisoformat(str(expires)), bool(curator), when,
    )  # fmt: skip
