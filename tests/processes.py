"""Processes of tests, which begin with wpinq imported: to import it takes half a second.

`Popen` and `run` are those of `subprocess`. A command of this Python (`-m wpinq ...`, `-c CODE`, `SCRIPT ...`) becomes
a copy (fork) of a process that has imported all of the package and has run none of it (`stem.py`). Its arguments,
directory, environment, streams, exit code and signals are its own, and it ends as any Python does, but that nothing is
taken apart of what it began with. It becomes a child of the test process, so that waiting for it, and killing it, is
what it always is. What has to see a Python begin - which modules are loaded, another seed of hashes, the number of
threads - takes `subprocess` itself. All other commands, and all commands of a system that is not Linux, become what
`subprocess` makes of them.
"""

from __future__ import annotations

import ctypes
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STEM = Path(__file__).with_name("stem.py")
SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of Linux (prctl(2)): orphans of the processes that this one began become its children."""
UNMATCHED = ("executable", "preexec_fn", "shell", "gid", "gids", "uid")
"""Options of a process that a copy cannot have."""
BEGINNING = inspect.signature(subprocess.Popen._execute_child)


class Popen(subprocess.Popen):
    """A process; see `subprocess.Popen`."""

    def _execute_child(self, *arguments: Any, **options: Any) -> None:
        given = BEGINNING.bind(self, *arguments, **options).arguments
        words = [given["args"]] if isinstance(given["args"], str) else list(map(os.fsdecode, given["args"]))
        task = understood(words) if sys.platform == "linux" else None
        options_apart = any(given[name] for name in UNMATCHED) or given["umask"] >= 0 or given["process_group"] >= 0
        if task is None or options_apart:
            super()._execute_child(*arguments, **options)
            return
        ends = (given["p2cread"], given["c2pwrite"], given["errwrite"])
        streams = {number: number if end == -1 else end for number, end in enumerate(ends)}
        streams |= {number: number for number in given["pass_fds"]}
        task |= {
            "place": os.fspath(given["cwd"] or Path.cwd()),
            "environment": dict(os.environ if given["env"] is None else given["env"]),
            "session": bool(given["start_new_session"]),
            "numbers": list(streams),
        }
        try:
            self.pid = STEM_OF_THIS.copy(task, list(streams.values()))
            self._child_created = True
        finally:
            pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
            self._close_pipe_fds(*(given[name] for name in pipes))


def understood(words: list[str]) -> dict[str, Any] | None:
    """What a command of this Python runs; None of any other command, or with an option that is not known here."""
    if words[0] != sys.executable:
        return None
    rest, warned = words[1:], []
    while rest[:1] == ["-W"]:
        warned.append(rest[1])
        rest = rest[2:]
    kind = {"-m": "module", "-c": "code"}.get(rest[0] if rest else "-", "script")
    rest = rest if kind == "script" else rest[1:]
    return {"kind": kind, "words": rest, "warned": warned} if rest and not rest[0].startswith("-") else None


class Stem:
    """The process that is copied; one of each test process, begun when it is needed first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0

    def copy(self, task: dict[str, Any], streams: list[int]) -> int:
        """Begin a copy, and return its number."""
        with self._lock:
            if self._owner != os.getpid():
                self._begin()
            with parent_of_orphans():
                socket.send_fds(self._socket, [json.dumps(task).encode()], streams)
                return int(self._socket.recv(20))

    def _begin(self) -> None:
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        with other:
            command = [sys.executable, str(STEM), str(other.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[other.fileno()], stdin=subprocess.DEVNULL)
        self._owner = os.getpid()

    def end(self) -> None:
        """End it, where this process began it."""
        if self._owner == os.getpid():
            self._socket.close()
            self._process.wait()
            self._owner = 0


@contextmanager
def parent_of_orphans():
    """Become the parent of whoever loses its own meanwhile, among the processes that this one began."""
    library = ctypes.CDLL(None)
    library.prctl(SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        library.prctl(SUBREAPER, 0, 0, 0, 0)


STEM_OF_THIS = Stem()


def run(
    command: list[Any],
    *,
    capture_output: bool = False,
    check: bool = False,
    timeout: float | None = None,
    input: Any = None,  # noqa: A002 - its name in subprocess.run
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run a process to its end; see `subprocess.run`."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with Popen(command, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


def printed(
    *words: object, fresh: bool = False, errors: int = 0, timeout: float = 240, more: dict[str, str] | None = None,
    **options: Any,
) -> str:  # fmt: skip
    """What a command of this Python prints, once it has ended well; examples are found from everywhere.

    Args:
        words: The command.
        fresh: Whether a Python begins for it, so that it sees what is loaded.
        errors: How many lines it writes to standard error.
        timeout: In seconds.
        more: Variables of its environment beside those of this process.
        options: Those of `run`.
    """
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = (subprocess.run if fresh else run)(
        [sys.executable, *map(str, words)], capture_output=True, text=True, check=False, timeout=timeout,
        env={**os.environ, "PYTHONPATH": paths, **(more or {})}, **options,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (0, errors), done.stderr
    return done.stdout
