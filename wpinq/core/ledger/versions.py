"""Versions of the data: each has a public name, and what is first charged under a name is pinned.

A version is the name of a table and a name that its curator gave it: `version=`, a period, or what stands in the call,
such as the base name of a file. The first content that is charged under a name is pinned by a digest. The same content
under the same name is the same version wherever it lies, so what was charged for it is free. Other content under the
same name is refused before any charge, and another name is another version, whatever it holds. So content may refuse,
and it never grants: no answer, no price and no row of the ledger tells whether two versions hold the same.

The digest is made under a key of the data set, and the ledger keeps a code of it under another key: an unkeyed one
would tell whoever reads the ledger whether a guessed file was protected. So that files need not be read again, a note
beside the ledger remembers in which state (path, inode, size, times) the system showed files that were compared. It is
no row of the ledger, since a state depends on when records came. Source: privacy rule 2.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from wpinq.core.records.fields import encode
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable

    from wpinq.core.ledger.rows.secret import Secret

CONTENT = "content"
"""What questions begin with under which the digest of what a version holds is sealed."""
BETWEEN = "\t"
"""Stands between the name of a table and that of a version; neither holds one."""
NAMES: dict[str, Callable[[dt.datetime], str]] = {
    "hour": lambda now: f"{now:%Y-%m-%dT%H}",
    "date": lambda now: f"{now:%Y-%m-%d}",
    "week": lambda now: f"{now:%G-W%V}",
    "month": lambda now: f"{now:%Y-%m}",
    "year": lambda now: f"{now:%Y}",
}
"""What `{date}` and its like stand for in the name of a version."""


@dataclass(frozen=True)
class Pin:
    """What a version holds now.

    Attributes:
        version: What the ledger calls the version: see `key`.
        title: What messages call the data.
        way: How they were read, where the digest depends on that; a text for the ledger.
        digest: Of the content, under a key; None where the files are in a state that was compared before.
    """

    version: str
    title: str
    way: str
    digest: bytes | None

    @property
    def question(self) -> str:
        """What the digest is sealed under."""
        return f"{CONTENT} {self.way}".strip()


def key(table: str, version: str) -> str:
    """What a ledger calls a version of a table."""
    return f"{table}{BETWEEN}{version}"


def printable(name: str) -> str:
    """A name that somebody else gave, such as that of a file, in one line."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in name)


def name_of(key: str) -> str:
    """The name of a version of which the ledger has this."""
    return key.rpartition(BETWEEN)[2]


def version_label(key: str, data: str) -> str:
    """A version for people: its name, and that of its table where this is not the data set's own."""
    table = key.rpartition(BETWEEN)[0]
    return name_of(key) if table in ("", data) else f"{name_of(key)} of {table}"


def named(value: object, call: str) -> str | None:
    """A name of a table or a version, which stands in one line.

    Raises:
        PlanError: It is no text, or holds a control character.
    """
    name = wording(value, call)
    if name is not None and not name.isprintable():
        raise PlanError(f"{call}: holds a character that cannot be printed, such as a tab; write it without.")
    return name


def rendered(text: object, call: str, zone: str | None, now: dt.datetime | None = None) -> str | None:
    """The name of a version, with the date that its `{date}` stands for, once and for all.

    Args:
        given: The name, with `{hour}`, `{date}`, `{week}`, `{month}` or `{year}` where the clock shall name it.
        call: What messages name.
        zone: The zone of the clock; by default UTC.
        now: The time; by default that of the clock.

    Raises:
        PlanError: It is no text, or holds other braces.

    >>> rendered("views {date}", "protect(version=...)", None, dt.datetime(2026, 11, 23, tzinfo=dt.UTC))
    'views 2026-11-23'
    """
    name = named(text, call)
    if name is None or not re.search("[{}]", name):
        return name
    time = (now or dt.datetime.now(dt.UTC)).astimezone(ZoneInfo(zone or "UTC"))
    result = re.sub(r"\{(\w+)\}", lambda match: NAMES[match[1]](time) if match[1] in NAMES else match[0], name)
    if re.search("[{}]", result):
        known = ", ".join(f"{{{word}}}" for word in NAMES)
        raise PlanError(f"{call}: the name of a version takes {known}, and no other braces; got {name!r}.")
    return result


def state_code(secret: Secret, identity: str, version: str, state: str) -> str:
    """What the note beside a ledger holds of a state in which files hold the pinned content of a version."""
    return secret.mac("state of files", encode(identity, version, state)).hex()


def wording(name: object, call: str) -> str | None:
    """A name that the ledger keeps: text, or a whole number, which is read as text, or None.

    Raises:
        PlanError: It is neither, or cannot be written as UTF-8.

    >>> wording("July", "measure(name=...)"), wording(7, "measure(name=...)"), wording(None, "measure(name=...)")
    ('July', '7', None)
    """
    if isinstance(name, int) and not isinstance(name, bool):
        return str(name)
    if name is not None and not isinstance(name, str):
        raise PlanError(f"{call}: takes text, and got {type(name).__name__}.")
    try:
        (name or "").encode()
    except UnicodeEncodeError:
        raise PlanError(f"{call}: holds what is no valid text; decode it first.") from None
    return name
