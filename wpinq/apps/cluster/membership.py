"""Membership of a cluster: processes connect before anything is charged, and notice when one of them is gone.

Process 0 listens at its own address until all others are connected; then bytewax takes the address over. A process that
connects proves that it has the keys of the run, sends a hello that describes its computation, and is refused unless
process 0 computes the same: two plans, two versions of the data or two libraries would corrupt the answers. The
connections stay open: process 0 sends each process the message to start, once the processes before it listen, and each
reports a failure. If a connection breaks, or is silent for `SILENCE` seconds, the process at its other end is gone.

Messages are JSON, one object a line; they hold no key, and of the data only keyed digests.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from wpinq.apps.cluster.connection import SILENCE, Connection, is_proof, listen, listening, place, proof
from wpinq.errors import EngineError, PlanError

Hello: TypeAlias = dict[str, str]
"""The facts that must be the same for all processes."""

JOIN = 300.0
"""Seconds within which all processes must be connected."""
TAKEN = "there is such a process already"
ADVICE = {
    "addresses": "give all the same --addresses",
    "libraries": "install the same versions of Python, wpinq, bytewax, polars and numpy everywhere",
    "columns": "give all the same files and --columns",
    "files": "give all the same files",
    "kept parts": "give --recover to all or to none",
    "dataflow": "give all the same script",
}


class Host:
    """Process 0: it accepts the others, starts them, and receives their failures.

    Args:
        addresses: Of all processes.
        key: The key that all processes share.
        alive: Raises where a process that was started here has ended.
    """

    def __init__(self, addresses: Sequence[str], key: bytes, alive: Callable[[], object] = lambda: None) -> None:
        self._addresses, self._key, self._alive = addresses, key, alive
        self._connections: dict[int, Connection] = {}
        self._listen = {number: threading.Event() for number in range(len(addresses))}
        self._lost, self._over = threading.Event(), threading.Event()
        self._why = ""
        self._listener = listen(addresses[0])

    def meet(self, hello: Hello) -> None:
        """Wait until every other process is connected, and refuse those that would compute something else.

        Raises:
            EngineError: One did not come in time, or could not begin.
            PlanError: One would compute something else.
        """
        end = time.monotonic() + JOIN
        self._listener.settimeout(0.1)
        while missing := [item for item in range(1, len(self._addresses)) if item not in self._connections]:
            self._alive()
            if time.monotonic() > end:
                raise EngineError(
                    f"{self._named(missing[0])} did not come within {JOIN:.0f} seconds; start it with the same "
                    "--addresses and the --keys that process 0 has written."
                )
            with suppress(TimeoutError):
                self._admit(Connection(self._listener.accept()[0]))
        self._listener.close()
        for number, connection in self._connections.items():
            self._compare(number, connection.receive(max(end - time.monotonic(), 1)), hello)

    def begin(self, end: Callable[[str], object], patience: float) -> None:
        """Start the others, each when those before it listen, and watch them.

        Args:
            end: Called if another process is lost and this one has not ended after `patience` seconds.
            patience: See `end`.
        """
        threading.Thread(target=self._watch, args=(end, patience), daemon=True).start()
        threading.Thread(target=self._start, daemon=True).start()

    def lost(self, timeout: float) -> str:
        """Why another process was lost, if that happens within some seconds; else empty."""
        return self._why if self._lost.wait(timeout) else ""

    def stop_watching(self) -> None:
        """Ignore lost processes from now on: all shares are computed."""
        self._over.set()

    def close(self, **word: str) -> None:
        """Send a last message, `done` or `ended`, and close all connections."""
        self._over.set()
        self._listener.close()
        for connection in self._connections.values():
            connection.send(**word)
            connection.close()

    def _named(self, number: int) -> str:
        return f"process {number} ({self._addresses[number]})"

    def _admit(self, connection: Connection) -> None:
        """Accept a process that proves to have the key; refuse any other."""
        nonce = os.urandom(16).hex()
        connection.send(nonce=nonce)
        answer = connection.receive(SILENCE) or {}
        number, theirs = answer.get("process"), answer.get("nonce")
        called = type(number) is int and isinstance(theirs, str)
        known = called and is_proof(answer.get("proof"), proof(self._key, "come", nonce, theirs, number))
        if not known or type(number) is not int or not 0 < number < len(self._addresses) or number in self._connections:
            connection.send(refused=TAKEN if known else "other keys")
            connection.close()
            return
        self._connections[number] = connection
        connection.send(proof=proof(self._key, "welcome", theirs, nonce))

    def _compare(self, number: int, answer: Mapping[str, Any] | None, mine: Hello) -> None:
        if answer is None or "failed" in answer:
            why = "" if answer is None else f": {answer['failed']}"
            raise EngineError(f"{self._named(number)} could not begin{why or '; it went away.'}")
        for what, value in mine.items():
            if answer.get("hello", {}).get(what) != value:
                raise PlanError(f"{self._named(number)}: {what} not as in process 0; {ADVICE[what]}.")

    def _start(self) -> None:
        while not listening(self._addresses[0]):
            time.sleep(0.01)
        self._listen[0].set()
        for number in range(1, len(self._addresses)):
            self._listen[number - 1].wait()
            self._connections[number].send(go=True)

    def _watch(self, end: Callable[[str], object], patience: float) -> None:
        self._why = self._await_loss()
        self._lost.set()
        if not self._over.wait(patience):
            end(self._why)

    def _await_loss(self) -> str:
        """Wait until one of the others is lost; the reason."""
        with selectors.DefaultSelector() as ready:
            for number, connection in self._connections.items():
                ready.register(connection.socket, selectors.EVENT_READ, number)
            while True:
                for result, _ in ready.select():
                    answer = self._connections[result.data].receive(SILENCE)
                    if answer is not None and "listens" in answer:
                        self._listen[result.data].set()
                        continue
                    what = f"failed: {answer['failed']}" if answer and "failed" in answer else "went away."
                    return f"{self._named(result.data)} {what} Nothing was answered."


class Member:
    """Another process: it connects to process 0, which starts it, and notices when process 0 is gone."""

    def __init__(self, addresses: Sequence[str], process: int, key: bytes) -> None:
        self._addresses, self._process = addresses, process
        self._connection = self._connect(key)
        self._done = threading.Event()

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def announce(self, hello: Hello) -> None:
        """Send what this process would compute, and wait for the message to start.

        Raises:
            EngineError: It is not to begin.
        """
        self._connection.send(hello=hello)
        answer = self._connection.receive()
        if answer is None or "go" not in answer:
            raise EngineError(_ended(answer))

    def fail(self, text: str) -> None:
        """Report a failure of this process."""
        self._connection.send(failed=text)

    def watch(self, end: Callable[[str], object]) -> None:
        """From now on call `end` when process 0 ends without being done, and report when this process listens."""

        def watched() -> None:
            answer = self._connection.receive()
            if answer is not None and "done" in answer:
                self._done.set()
            else:
                end(_ended(answer))

        threading.Thread(target=watched, daemon=True).start()
        if self._process < len(self._addresses) - 1:
            threading.Thread(target=self._send_listening, daemon=True).start()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until process 0 is done."""
        return self._done.wait(timeout)

    def _send_listening(self) -> None:
        while not listening(self._addresses[self._process]):
            time.sleep(0.01)
        self._connection.send(listens=True)

    def _connect(self, key: bytes) -> Connection:
        """Connect to process 0 and prove that both hold the keys."""
        end = time.monotonic() + JOIN
        while time.monotonic() < end:
            with suppress(OSError):
                connection = Connection(socket.create_connection(place(self._addresses[0]), 5))
                if self._known(connection, key):
                    return connection
                connection.close()
            time.sleep(0.2)
        raise EngineError(
            f"process 0 was not found at {self._addresses[0]} within {JOIN:.0f} seconds; "
            "start it first, and give all the same --addresses."
        )

    def _known(self, connection: Connection, key: bytes) -> bool:
        """Authenticate to process 0 and authenticate it; False if it does not answer."""
        asked = connection.receive(SILENCE)
        if asked is None:
            return False
        mine, theirs = os.urandom(16).hex(), str(asked.get("nonce"))
        connection.send(process=self._process, nonce=mine, proof=proof(key, "come", theirs, mine, self._process))
        answer = connection.receive(JOIN) or {}
        if is_proof(answer.get("proof"), proof(key, "welcome", mine, theirs)):
            return True
        connection.close()
        if answer.get("refused") == TAKEN:
            raise PlanError(f"--process-id {self._process}: there is such a process already; give each its own number.")
        raise PlanError(f"process 0 at {self._addresses[0]} has other keys; copy the file of --keys from it again.")


def _ended(answer: Mapping[str, Any] | None) -> str:
    if answer is not None and "ended" in answer:
        return f"process 0 ended: {answer['ended']}"
    return "process 0 went away; nothing was answered."
