"""Commands for tests that run a shell, `wpinq` and `python`, which begin with wpinq imported; see `processes.py`.

Each is a script that hands its arguments, directory, environment and streams to the test process, which has the copy
made, waits for it and tells its exit code. A signal ends the script alone: tests of signals take `processes.Popen`.
"""

import json
import os
import socket
import sys
import threading
from contextlib import contextmanager

from processes import STEM_OF_THIS, understood

SCRIPT = """#!{python} -IS
import os, socket, sys
before = {before}
with socket.socket(socket.AF_UNIX) as mouth:
    mouth.connect({address!r})
    import json
    task = [before + sys.argv[1:], os.getcwd(), dict(os.environ)]
    socket.send_fds(mouth, [json.dumps(task).encode() + b"\\n"], [0, 1, 2])
    code = mouth.recv(20)
if not code:
    os.execv({python!r}, [{python!r}, *before, *sys.argv[1:]])
os._exit(int(code))
"""
"""Python begins alone, without its libraries, in a fiftieth of a second."""


@contextmanager
def commands(folder):
    """Write both commands into a folder, and serve them meanwhile; where nothing is copied they are as they are."""
    folder.mkdir(exist_ok=True)
    if sys.platform != "linux":
        _write(folder, '#!/bin/sh\nexec {python!r} {options} "$@"\n')
        yield
        return
    ear = socket.socket(socket.AF_UNIX)
    address = f"\0wpinq tests {os.getpid()} {id(ear)}"  # of Linux: no file
    ear.bind(address)
    ear.listen()
    _write(folder, SCRIPT, address=address)
    threading.Thread(target=_serve, args=(ear,), daemon=True).start()
    try:
        yield
    finally:
        ear.shutdown(socket.SHUT_RDWR)


def _write(folder, text, **values):
    for name, before in (("wpinq", ["-m", "wpinq"]), ("python", [])):
        script = folder / name
        script.write_text(text.format(python=sys.executable, before=before, options=" ".join(before), **values))
        script.chmod(0o755)


def _serve(ear):
    with ear:
        while True:
            try:
                mouth, _ = ear.accept()
            except OSError:
                return
            threading.Thread(target=_run, args=(mouth,), daemon=True).start()


def _run(mouth):
    with mouth:
        message, streams, _, _ = socket.recv_fds(mouth, 1 << 20, 3)
        while not message.endswith(b"\n"):
            message += mouth.recv(1 << 20)
        words, place, environment = json.loads(message)
        task = understood([sys.executable, *words])
        if task is not None:
            task |= {"place": place, "environment": environment, "session": False, "numbers": [0, 1, 2]}
            process = STEM_OF_THIS.copy(task, streams)
        for stream in streams:
            os.close(stream)
        if task is not None:
            mouth.send(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) % 256).encode())
