"""The secret of a data set, from which all of its keys are derived.

Everyone who has the secret can subtract all noise. It is 32 random bytes, made before the data is read, and kept in a
file of its own (mode 0600) or given by the environment. `repr`, `str`, `vars`, `copy` and `pickle` do not show it.

Keys come from keyed BLAKE2b over an *injective* encoding of a purpose and its context, so that two different queries,
or two purposes of one query, never share pseudorandom words.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from hashlib import blake2b
from pathlib import Path
from typing import NoReturn

from wpinq import storage
from wpinq.core.records.fields import Field, encode
from wpinq.errors import LedgerError

SIZE = 32
PATIENCE = 60
"""Seconds that a command may take to print a secret."""
_DERIVE, _MAC = b"wpinq derive 1", b"wpinq mac 1"


class Secret:
    """The 32 bytes from which every key of a data set is derived. Never shown, never pickled.

    Args:
        key: 32 secret bytes; use `fresh` or `load_or_create` outside of tests.

    Raises:
        LedgerError: The key has another length.

    >>> from wpinq import Secret
    >>> Secret(bytes(32))
    Secret(hidden)
    """

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        if not isinstance(key, bytes):
            raise LedgerError(f"Secret: takes {SIZE} bytes, and {type(key).__name__} was given.")
        if len(key) != SIZE:
            raise LedgerError(f"Secret: {SIZE} bytes are needed and {len(key)} were given.")
        self._key = bytes(key)

    @classmethod
    def fresh(cls) -> Secret:
        """Make a secret from the operating system's generator."""
        return cls(os.urandom(SIZE))

    @classmethod
    def load_or_create(cls, path: Path) -> Secret:
        """Read the secret kept at `path`; where there is none, make one first.

        The file appears whole or not at all, so processes that create it at once all read the same one.

        Raises:
            LedgerError: The file has the wrong length, or others than its owner may use it, or it can
                be neither read nor made.
        """
        try:
            if not path.exists():
                cls.fresh().keep(path)
        except OSError as error:
            raise _refused(path, error) from None
        return cls.load(path)

    @classmethod
    def load(cls, path: Path) -> Secret:
        """Read the secret kept at `path`.

        Raises:
            LedgerError: There is none, or see `load_or_create`.
        """
        try:
            return cls(_read(path))
        except OSError as error:
            raise _refused(path, error) from None

    def keep(self, path: Path) -> None:
        """Keep the secret at `path`, whole or not at all; one that is there already stays.

        Raises:
            LedgerError: It cannot be written.
        """
        try:
            storage.write(path, self._key, replace=False)
        except OSError as error:
            raise _refused(path, error) from None

    @classmethod
    def from_environment(cls) -> Secret | None:
        """Read the secret from `WPINQ_SECRET` (64 hexadecimal digits), a file, or what a command prints.

        `WPINQ_SECRET_FILE` names the file, of 32 bytes; `WPINQ_SECRET_COMMAND` the command, with its arguments, which
        no shell reads, and which prints 64 hexadecimal digits: that of a store of keys, for example.

        Returns:
            The secret, or None where none of them is set.

        Raises:
            LedgerError: Two are set, the digits are wrong, the file is missing or refused, or the command failed.
        """
        digits, name, command = (os.environ.get(f"WPINQ_SECRET{end}") for end in ("", "_FILE", "_COMMAND"))
        if sum(each is not None for each in (digits, name, command)) > 1:
            raise LedgerError("WPINQ_SECRET, WPINQ_SECRET_FILE, WPINQ_SECRET_COMMAND: two are set; unset one of them.")
        if command is not None:
            digits = _printed(command)
            if not re.fullmatch(r"[0-9a-fA-F]{64}", digits):
                raise LedgerError("WPINQ_SECRET_COMMAND does not print 64 hexadecimal digits; run it by hand.")
        if digits is not None:
            if not re.fullmatch(r"[0-9a-fA-F]{64}", digits):
                raise LedgerError("WPINQ_SECRET is not 64 hexadecimal digits; make one with `openssl rand -hex 32`.")
            return cls(bytes.fromhex(digits))
        if name is None:
            return None
        try:
            return cls(_read(Path(name)))
        except OSError as error:
            raise _refused(Path(name), error) from None

    def derive(self, purpose: str, *context: Field, size: int = 32) -> bytes:
        """Derive a key for one purpose and context; other purposes, contexts and sizes are independent.

        Args:
            purpose: "noise", "digest", "dither", "identity" and so on.
            context: What the key is bound to; see `encode`.
            size: Bytes wanted, from 1 to 64.

        Source: keyed BLAKE2b as a pseudorandom function (RFC 7693, section 2.9); privacy rules 3 and 4.
        """
        return blake2b(encode(purpose, context), key=self._key, digest_size=size, person=_DERIVE).digest()

    def mac(self, purpose: str, data: bytes) -> bytes:
        """Authenticate data for one purpose, in 32 bytes; compare with `hmac.compare_digest`."""
        return blake2b(encode(purpose, data), key=self._key, digest_size=32, person=_MAC).digest()

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __getstate__(self) -> NoReturn:
        raise TypeError("a Secret is never copied or pickled; pass the path of its file instead.")


def _printed(command: str) -> str:
    """What a command prints, without the spaces around it; never shown."""
    try:
        done = subprocess.run(  # noqa: S603  the curator's command
            shlex.split(command), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=PATIENCE
        )
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        raise LedgerError("WPINQ_SECRET_COMMAND cannot be run, or takes too long; run it by hand.") from None
    if done.returncode:
        raise LedgerError(f"WPINQ_SECRET_COMMAND failed with code {done.returncode}; run it by hand.")
    return done.stdout.decode("ascii", "replace").strip()


def _refused(path: Path, error: OSError) -> LedgerError:
    if isinstance(error, LedgerError):
        return error
    return LedgerError(f"secret {path}: {error.strerror}; give a place that this user can write, or set WPINQ_SECRET.")


def _read(path: Path) -> bytes:
    """Read a secret's file, refusing one that is not 32 bytes or not private.

    The checks are on the open file, so the file that is checked is the file that is read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:  # noqa: PTH123
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise LedgerError(f"secret {path}: not a regular file; give the path of a file of {SIZE} bytes.")
        if stat.S_IMODE(state.st_mode) & 0o077:
            raise LedgerError(
                f"secret {path}: mode {stat.S_IMODE(state.st_mode):o} lets others use it. If nobody else can have"
                f" read it, run `chmod 600 {path}`; else the noise of every release made with it is known."
            )
        key = file.read(SIZE + 1)
    if len(key) != SIZE:
        raise LedgerError(
            f"secret {path}: not {SIZE} bytes long: damaged, or another file; restore it from a backup."
            f" For a new ledger `openssl rand -out FILE {SIZE}` makes one."
        )
    return key
