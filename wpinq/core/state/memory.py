"""How much memory counting may take in this process, and where the rest of it waits: on disk, in files without a name.

What is counted are identities and their weights: nobody without the secret can tell whose they are, but weights are
true counts. Records of people that wait to be bounded are encrypted (`overflow.py`). Such a file is readable by its
owner alone, lies beside the ledger or where the curator says, and is gone when this process ends, however it ends;
what was written may still be found on the medium itself.

That rows go to disk depends on how many different ones there are. It changes how long a run takes, and no answer.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from wpinq.arguments import NOTHING, PATH, TEXT, WHOLE, described, takes
from wpinq.errors import EngineError, PlanError

if TYPE_CHECKING:
    import mmap

MEMORY, SPILL = "WPINQ_MEMORY", "WPINQ_SPILL"
"""Names in the environment, which other processes of a run inherit."""
UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
LEAST = 10**8
AT_ONCE = 512
"""Pages that one call of the operating system writes or reads."""
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@takes(most=WHOLE | TEXT | NOTHING, spill=PATH | NOTHING)
def limit_memory(most: int | str | None = None, spill: str | os.PathLike[str] | None = None) -> None:
    """Bound the memory that counting, and bounding people's records, takes in this process; the rest waits on disk.

    It holds for what is counted by identity, with compiled kernels: a measured histogram, `shave`; and for what is kept
    of each person, group, key or different record of a finite source (`users(at_most=...)`, `group_by(..., len)`,
    `distinct`, `union`, joins, semijoins and what is made of them), of which a part at a time is held beyond it for
    each core: of files 2 MB or a 64th, or less where that may not fit, down to a 1,024th; of other sources a 64th.
    Records that a Python function of `group_by` waits for, and those of streams, are in memory in any case.

    Args:
        most: Bytes, or a text such as `"8GB"`; half of the machine's or container's memory by default.
        spill: A private directory for what does not fit; by default that of the ledger that was opened last, and where
            there is none, as in the other processes of a run, that of the system for temporary files.

    Raises:
        PlanError: It is no such size, less than 100 MB, or there is no such directory.

    >>> import wpinq
    >>> wpinq.limit_memory("8GB")  # doctest: +SKIP
    """
    size = _half() if most is None else _bytes(most)
    if most is not None and size < LEAST:
        raise PlanError(f"limit_memory({described(most)}): counting needs 100 MB; allow more.")
    if spill is not None and not Path(spill).is_dir():
        raise PlanError(f"limit_memory(spill={str(spill)!r}): there is no such directory.")
    os.environ[MEMORY] = str(size)
    if spill is not None:
        os.environ[SPILL] = str(Path(spill).resolve())


class Memory:
    """What counting holds, of what it may."""

    def __init__(self) -> None:
        self._lock, self._held = threading.Lock(), 0
        self._beside: Path | None = None

    @property
    def most(self) -> int:
        """How many bytes there are, of which others may hold some."""
        return int(os.environ.get(MEMORY) or _half())

    def take(self, size: int) -> bool:
        """Take so many bytes, if they are left."""
        with self._lock:
            fits = self._held + size <= self.most
            self._held += size if fits else 0
            return fits

    def give(self, size: int) -> None:
        """Give them back."""
        with self._lock:
            self._held -= size

    def beside(self, ledger: Path | None) -> None:
        """Where rows wait from now on, if the curator did not say: beside this ledger, unless that has no file."""
        self._beside = self._beside if ledger is None else ledger.resolve().parent

    def scratch(self) -> Scratch:
        """A new file without a name."""
        return Scratch(self.folder)

    @property
    def folder(self) -> str | None:
        """The directory in which rows wait; None for that of the system for temporary files."""
        folder = os.environ.get(SPILL) or self._beside
        return None if folder is None else str(folder)


class Scratch:
    """A file without a name: nobody else can open it, and it is gone with this process, however that ends.

    Args:
        folder: The directory; that of the system for temporary files, if there is none.

    Raises:
        EngineError: Nothing can be written there.
    """

    def __init__(self, folder: str | None) -> None:
        import tempfile  # whoever never spills does not load it

        self._folder = folder or tempfile.gettempdir()
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                self._file = os.dup(file.fileno())
        except OSError:
            raise self._full() from None
        weakref.finalize(self, os.close, self._file)

    def write(self, pages: Sequence[memoryview], offset: int) -> None:
        """Write all pages from an offset on.

        Raises:
            EngineError: There is no room.
        """
        for first in range(0, len(pages), AT_ONCE):
            some = pages[first : first + AT_ONCE]
            try:
                done = os.pwritev(self._file, some, offset)
            except OSError:
                done = 0
            offset += sum(page.nbytes for page in some)
            if done != sum(page.nbytes for page in some):
                raise self._full()

    def read(self, pages: Sequence[memoryview], offset: int) -> None:
        """Read all pages from an offset on, which were written.

        Raises:
            EngineError: They cannot be read.
        """
        for first in range(0, len(pages), AT_ONCE):
            some = pages[first : first + AT_ONCE]
            done = os.preadv(self._file, some, offset)
            offset += done
            if done != sum(page.nbytes for page in some):
                raise EngineError(f"{self._folder}: what was written there cannot be read.")

    def mapped(self, size: int) -> mmap.mmap:
        """So many bytes as memory.

        Raises:
            EngineError: There is no room.
        """
        import mmap

        try:
            os.posix_fallocate(self._file, 0, size)  # a page without room would end the process
            return mmap.mmap(self._file, size)
        except OSError:
            raise self._full() from None

    def _full(self) -> EngineError:
        return EngineError(
            f"{self._folder}: what does not fit in memory cannot be written there; make room, or name another "
            "directory (--spill, limit_memory)."
        )


def _bytes(most: int | str) -> int:
    text = str(most).strip().upper().replace(" ", "")
    number = text.rstrip("BKMGT")
    unit = text[len(number) :]
    try:
        return int(float(number) * UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        raise PlanError(
            f"limit_memory({described(most)}): that is no size; write 8GB, 500MB or so many bytes."
        ) from None


@cache
def _half() -> int:
    """Half of the memory of this machine, or of the container that this process is in."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in LIMITS:
        try:
            sizes.append(int(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    return min(sizes) // 2


LIMIT = Memory()
"""What counting holds in this process."""
