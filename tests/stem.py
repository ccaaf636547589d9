"""The process that `processes.py` copies: it imports all of wpinq, runs none of it, and becomes what it is asked for.

A copy is made by two forks, of which the first ends at once, so that whoever asks becomes the parent of the second.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
import threading
import types
import warnings
from contextlib import suppress
from pathlib import Path

FREE = 100
"""The first number that streams are kept under until they get their own."""


def load_polars_with_one_thread():
    """Import Polars, which has one thread then, unless something else was said of it; processes that begin have all."""
    if "POLARS_MAX_THREADS" not in os.environ:
        os.environ["POLARS_MAX_THREADS"] = "1"
        import polars  # noqa: F401 - it reads this while it is imported

        del os.environ["POLARS_MAX_THREADS"]


def load():
    """Import the package, but for what needs an extra that is not there.

    Polars has one thread in all copies, as it has in the workers of tests (`conftest.py`).
    """
    load_polars_with_one_thread()
    import wpinq

    for module in pkgutil.walk_packages(wpinq.__path__, "wpinq."):
        if not module.name.startswith(("wpinq.tools", "wpinq.core.kernels.")) and "__main__" not in module.name:
            with suppress(ImportError):
                importlib.import_module(module.name)


def asked(ear):
    """Wait for what to become, in a copy; None at the end of the test process."""
    while True:
        message, streams, _, _ = socket.recv_fds(ear, 1 << 20, 32)
        if not message:
            return None
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            grandchild = os.fork()
            if grandchild == 0:
                os.close(reading)
                os.close(writing)
                ear.close()
                return json.loads(message), streams
            os.write(writing, str(grandchild).encode())
            os._exit(0)
        os.waitpid(child, 0)
        ear.send(os.read(reading, 20))
        for number in (reading, writing, *streams):
            os.close(number)


def dressed(task, streams):
    """Give the process its streams, directory, environment and arguments."""
    kept = [os.dup2(stream, FREE + index) for index, stream in enumerate(streams)]
    for stream in streams:
        os.close(stream)
    for number, stream in zip(task["numbers"], kept, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    if task["session"]:
        os.setsid()
    os.chdir(task["place"])
    os.environ.clear()
    os.environ.update(task["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("PYTHONUNBUFFERED"):
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)
    for action in task["warned"]:
        warnings.simplefilter(action)
    sys.argv = task["words"]
    first = {"module": task["place"], "code": "", "script": str(Path(task["words"][0]).parent)}[task["kind"]]
    more = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = dict.fromkeys([first, *more, *sys.path[1:]])


def become(kind):
    """Run what was asked for, as the main program, and return the code that it ends with."""
    words = sys.argv
    try:
        if kind == "module":
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        elif kind == "script":
            runpy.run_path(words[0], run_name="__main__")
        else:
            sys.argv = ["-c", *words[1:]]
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(words[0], "<string>", "exec"), main.__dict__)
    except SystemExit as exit_:
        if not isinstance(exit_.code, int | None):
            raise  # a text, which Python prints
        return exit_.code or 0
    return 0


def end(code):
    """End as Python does, but for taking apart the modules that a copy began with: nine tenths of a short command.

    What the program itself holds is let go, and so flushed and closed. Where a stream cannot be flushed, Python ends.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    main = vars(sys.modules["__main__"])
    if main is not globals():
        main.clear()
    gc.collect()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        if not stream.closed:
            stream.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal, which speaks to the tests
    with socket.socket(fileno=int(sys.argv[1])) as listening:
        load()
        gc.freeze()
        copy = asked(listening)
    if copy:
        dressed(*copy)
        code = become(copy[0]["kind"])
        with suppress(OSError):
            end(code)
        sys.exit(code)
