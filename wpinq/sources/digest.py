"""A digest of the bytes of files, which finds out in the same pass whether compressed ones are whole."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

BLOCK = 1 << 20


class Digest:
    """A digest of bytes: BLAKE2b-256, or under a key GMAC (NIST SP 800-38D), which takes a twentieth of the time.

    GMAC under one key and nonce is a universal hash: two contents of n bytes that were chosen without the key collide
    with a probability below n / 2^130. It tells of the key, so it is shown to nobody; the ledger keeps a code of it.
    """

    def __init__(self, key: bytes = b"") -> None:
        if key:
            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

            self._gmac = Cipher(algorithms.AES(key), modes.GCM(bytes(12))).encryptor()
            self.update: Callable[[bytes], object] = self._gmac.authenticate_additional_data
        else:
            self._hash = hashlib.blake2b(digest_size=32)
            self.update = self._hash.update
        self._keyed = bool(key)

    def read(self, path: Path, *, zipped: bool = False) -> None:
        """Add the bytes of a file; one that is zipped is decompressed as well, as whoever reads it does.

        Raises:
            OSError, EOFError, zlib.error: It cannot be read, or decompressed.
        """
        with path.open("rb", buffering=0) as stream:
            if not zipped:
                while block := stream.read(BLOCK):
                    self.update(block)
                return
            with gzip.GzipFile(fileobj=cast("BinaryIO", _Tapped(stream, self.update))) as whole:
                while whole.read(BLOCK):
                    pass

    def end(self) -> bytes:
        """The digest."""
        if not self._keyed:
            return self._hash.digest()
        self._gmac.finalize()
        return self._gmac.tag


@dataclass(frozen=True, slots=True)
class _Tapped:
    """A file that tells of each block that is read of it, in order and to its end."""

    stream: BinaryIO
    tap: Callable[[bytes], object]

    def read(self, size: int = -1) -> bytes:
        """As of a file."""
        block = self.stream.read(size)
        self.tap(block)
        return block
