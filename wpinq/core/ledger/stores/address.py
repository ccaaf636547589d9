"""Where a ledger is: the path of a file, or the URL of a PostgreSQL database and the name of a ledger in it.

Programs name a ledger by a path everywhere. A URL becomes one, too: that of its *anchor*, a file of this client with
the last head that it has seen (`anchor.py`), in a directory of this client. What lies beside the file of a ledger lies
beside the anchor: notes of states, records by person, published periods. Which path stands for which URL is known to
the process alone, so that no password is written.

Source: privacy rule 38.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from wpinq.errors import LedgerError

SCHEMES = ("postgresql", "postgres")
LOSSES = ("crash", "failover")
"""What a database that is not durable may lose, as `may_lose=` says it."""
_OURS = ("ledger", "may_lose", "state")
_PLACES = ("host", "hostaddr", "port", "dbname", "service")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_HOSTS = re.compile(r"[A-Za-z0-9._\-\[\]:%]*")
_PORT = re.compile(r"[^:]*|\[[^\]]*\]|(?:[^:]*|\[[^\]]*\]):\d*")
FORM = "postgresql://user@host/database?ledger=NAME"


@dataclass(frozen=True)
class Address:
    """A ledger in a PostgreSQL database. What libpq is told, which may hold a password, is never shown.

    Attributes:
        conninfo: The URL for libpq.
        name: The ledger's name in the database.
        may_lose: Which losses of the database are accepted: a part of `LOSSES`.
        anchor: The file of this client that stands for it.
        label: What messages call it.
    """

    conninfo: str = field(repr=False)
    name: str
    may_lose: frozenset[str]
    anchor: Path
    label: str

    @property
    def schema(self) -> str:
        """The schema that holds the ledger's tables."""
        return f"wpinq_{self.name}"

    @classmethod
    def read(cls, url: str) -> Address:
        """Read a URL.

        Raises:
            LedgerError: It cannot be read; the message does not show it.

        >>> Address.read("postgresql://ann:secret@db.example/shop?ledger=views&state=/var/lib/wpinq").label
        'ledger postgresql://db.example/shop?ledger=views'
        """
        try:
            parts = urlsplit(url)
            pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True) if parts.query else []
        except ValueError:
            raise _unread("it is no URL") from None
        _, _, hosts = parts.netloc.rpartition("@")
        if parts.fragment or "#" in url or "@" in parts.path or not _HOSTS.fullmatch(hosts.replace(",", "")):
            raise _unread("a sign in the password, user or database is not percent-encoded, or a host is none")
        if not all(_PORT.fullmatch(host) for host in hosts.split(",")):
            raise _unread("a port is no number, or a sign in the password is not percent-encoded")
        options = dict(pairs)
        if len(options) < len(pairs):
            raise _unread("it has a parameter twice")
        name, losses, state = (options.pop(key, None) for key in _OURS)
        if name is None:
            name = "ledger"
        if not _NAME.fullmatch(name):
            raise _unread("ledger= takes a name of small letters, digits and _, at most 40, that begins with a letter")
        accepted = frozenset(losses.split(",")) if losses is not None else frozenset()
        if not accepted <= set(LOSSES):
            raise _unread(f"may_lose= takes {' or '.join(LOSSES)}, or both with a comma")
        conninfo = parts._replace(query=urlencode(options, quote_via=quote)).geturl()
        where = hosts, parts.path, *(options.get(key, "") for key in _PLACES), name
        code = blake2b(repr(where).encode(), digest_size=8).hexdigest()
        label = f"ledger postgresql://{hosts}{parts.path}?ledger={name}"
        return cls(conninfo, name, accepted, _states(state) / f"{name}-{code}", label)


_ADDRESSES: dict[Path, Address] = {}


def ledger_path(ledger: str | os.PathLike[str], home: Path | None = None) -> Path:
    """The path that stands for a ledger: its file's, or that of the anchor of one in a database.

    Args:
        ledger: A path, or a URL (`postgresql://user@host/database?ledger=NAME`).
        home: What a path is relative to.

    Raises:
        LedgerError: The URL cannot be read, or the path names no file.
    """
    if not (isinstance(ledger, str) and re.match(r"(?i)postgres(ql)?:", ledger)):
        path = Path(ledger) if home is None else home / ledger
        if not os.fspath(ledger) or not path.name or "\0" in path.name:
            raise LedgerError(f"ledger '{ledger}': names no file; write for example views.ledger.")
        return path
    address = Address.read(ledger) if ledger.startswith(tuple(f"{scheme}://" for scheme in SCHEMES)) else None
    if address is None:
        raise _unread("it begins in another way")
    _ADDRESSES[address.anchor] = address
    return address.anchor


def address_of(path: Path) -> Address | None:
    """The address that a path stands for; None for that of a file."""
    return _ADDRESSES.get(path)


def ledger_title(path: Path) -> str:
    """What people call a ledger: its path, or its URL without user, password and parameters."""
    address = address_of(path)
    return str(path) if address is None else address.label.removeprefix("ledger ")


def _unread(why: str) -> LedgerError:
    return LedgerError(f"ledger postgresql://...: {why}; write {FORM}.")


def _states(declared: str | None) -> Path:
    """The directory of anchors of this client."""
    chosen = declared or os.environ.get("WPINQ_STATE")
    home = Path(chosen) if chosen else Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "wpinq"
    return home.resolve()
