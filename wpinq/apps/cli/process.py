"""What a command needs of the process that it runs in, looked at before it begins, and signals while it waits.

Nothing is charged for in vain: what cannot be known before is said when it happens, and an answer that was paid for
stays paid, and is free to ask again. Signals are Ctrl-C, and what a service manager ends a process by.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from wpinq.errors import SourceError

LEAST = {
    resource.RLIMIT_AS: (2 << 30, "KB of memory", "ulimit -v", 1 << 10),
    resource.RLIMIT_FSIZE: (16 << 20, "KB for a file", "ulimit -f", 1 << 10),
    resource.RLIMIT_NOFILE: (64, "open files", "ulimit -n", 1),
}
"""The least that a command can do with: bytes or a number, what of, which limit of the shell it is, and its unit."""
THREADS, BY_CORE = 8, 6
"""Threads that a command must be able to start, and how many more for each core: libraries start most of them."""
FULL = os.makedev(1, 7)
"""The number of /dev/full."""
STAYS = "what was charged stays charged, so the same command is free"
_WHY = {
    errno.ENOSPC: "no room is left where it writes; make room",
    errno.EDQUOT: "no room is left for this user where it writes; make room",
    errno.EFBIG: "a file grew beyond what ulimit -f allows; raise it",
    errno.EMFILE: "more files are open than ulimit -n allows; raise it",
    errno.ENFILE: "the machine has too many files open; close some",
    errno.ENOMEM: "there is too little memory; ask for less, or take a larger machine",
    errno.EBADF: "standard output cannot be written to; send it to a file",
    errno.EIO: "a disk or a terminal refused to read or write; look after it",
    errno.EROFS: "a disk is read-only; choose another place",
    errno.EACCES: "a file may not be used; see to its permissions",
    errno.EPERM: "a file may not be used; see to its permissions",
}


def hold_standard() -> None:
    """Keep the numbers of the standard streams from files: what goes to standard error would be written into a ledger.

    An input or output that was closed stays closed to Python, and is refused where it is needed. Lines for a standard
    error that was closed are dropped. Where another process wants none of them to be waited for, they are waited for: a
    line that comes later is no end, and an answer that is paid for is written whole.
    """
    for descriptor in range(3):
        try:
            os.set_blocking(descriptor, True)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  for as long as the process lives


def check_input() -> None:
    """Refuse to begin where lines are to be read that cannot come.

    Raises:
        SourceError: Standard input is closed. Of a directory Python itself says so, and ends.
    """
    if sys.stdin is None:
        raise SourceError("standard input is closed; give it lines, or /dev/null for none.")


def check_room() -> None:
    """Refuse to begin with limits that nothing can be done with, or where the answer could not be shown.

    Raises:
        SourceError: Standard output is closed or full, or a limit of the process is too low.
    """
    for which, (least, what, option, unit) in LEAST.items():
        soft = resource.getrlimit(which)[0]
        if soft != resource.RLIM_INFINITY and soft < least:
            raise SourceError(f"{option} {soft // unit} is too low: a command needs {least // unit} {what}.")
    try:
        state, mode = os.fstat(1 if sys.stdout is not None else -1), _mode(1)
        full = state.st_rdev == FULL if stat.S_ISCHR(state.st_mode) else (
            stat.S_ISREG(state.st_mode) and os.fstatvfs(1).f_bavail == 0
        )  # fmt: skip
    except OSError:
        raise SourceError("standard output is closed; send it to a file, or to /dev/null.") from None
    if mode == os.O_RDONLY:
        raise SourceError("standard output cannot be written to; send it to a file, or to /dev/null.")
    if full:
        raise SourceError("standard output: no room is left where it goes; make room, or send it elsewhere.")


def check_threads(processes: int = 1, more: int = 0) -> None:
    """Start as many threads as a command may need: a library that cannot panics, aborts, or waits for ever.

    A limit does not tell how many are left: it holds for all processes of a user, or of a container.

    Args:
        processes: How many processes compute.
        more: Threads beside those that compute.

    Raises:
        SourceError: There are too few.
    """
    least = processes * (THREADS + BY_CORE * (os.cpu_count() or 1)) + more
    end, started = threading.Event(), list[threading.Thread]()
    try:
        for _ in range(least):
            thread = threading.Thread(target=end.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError:
        raise SourceError(
            f"too few threads can be started: a command needs {least}. Raise ulimit -u, or what the container may have."
        ) from None
    finally:
        end.set()
        for thread in started:
            thread.join()


def why(error: OSError | MemoryError) -> str:
    """What the system refused, without names or content of files, and what stays true of what was paid."""
    number = errno.ENOMEM if isinstance(error, MemoryError) else error.errno
    reason = _WHY.get(number or 0) or f"the system refused: {os.strerror(number or errno.EIO).lower()}; see to it"
    return f"{reason}; {STAYS}."


def _mode(descriptor: int) -> int:
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE


STOPPED = "interrupted; what was charged stays charged, so the same command is free"


def interruptible() -> None:
    """Let an interrupt end the next wait.

    Polars puts a handler of its own in front of Python's when it first computes, one after which the system restarts
    what waited, so Python would learn of the interrupt only at the next line of input.
    """
    signal.siginterrupt(signal.SIGINT, True)


@contextmanager
def at_once() -> Iterator[None]:
    """Let a signal end the process, also where a thread waits for a line of input, which nothing ends."""

    def end(number: int, _: object) -> None:
        os.write(2, f"wpinq: {STOPPED}\n".encode())
        os._exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ending(stop: threading.Event) -> Iterator[None]:
    """Let SIGTERM set an event, so that a stream ends between two epochs; in the main thread, which alone gets it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
