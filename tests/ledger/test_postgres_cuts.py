"""A ledger in PostgreSQL behind a wire that is cut at any byte, either way: nothing is charged twice or lost."""

from __future__ import annotations

import os
import random
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from urllib.parse import urlsplit

import pytest
from depth import deeper, often

from wpinq.core.ledger import Ledger
from wpinq.core.ledger.stores.address import ledger_path
from wpinq.errors import LedgerError

pytestmark = pytest.mark.filterwarnings("ignore:.*this client has seen nothing of it before:RuntimeWarning")
Open = Callable[..., Ledger]
Spend = Callable[..., bool]


class Wire:
    """A proxy that passes on so many bytes, counted over all connections and both directions, and then cuts.

    Attributes:
        left: Bytes that it still passes on; None for all.
        passed: Bytes that it has passed on.
    """

    def __init__(self, port: int) -> None:
        self._to, self.left, self.passed = port, None, 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    left: int | None

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(30)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            with client, socket.create_connection(("127.0.0.1", self._to)) as server:
                self._pass(client, server)

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        """One connection at a time, as one ledger has them."""
        with selectors.DefaultSelector() as both:
            both.register(client, selectors.EVENT_READ, server)
            both.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in both.select():
                    try:
                        data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
                        some = data if self.left is None else data[: self.left]
                        key.data.sendall(some)
                    except OSError:
                        return
                    self.passed += len(some)
                    if self.left is not None:
                        self.left -= len(some)
                    if not data or self.left == 0:
                        if data:
                            reset = struct.pack("ii", 1, 0)  # cut, not closed
                            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                        return


@pytest.fixture
def wire(url: str) -> Iterator[Wire]:
    port = urlsplit(url).port
    assert port
    wire = Wire(port)
    yield wire
    wire.close()


def through(wire: Wire, url: str) -> str:
    return url.replace(f":{urlsplit(url).port}/", f":{wire.port}/")


@deeper
@pytest.mark.parametrize("seed", [1, 2])
def test_a_wire_that_is_cut_at_any_byte(seed: int, wire: Wire, url: str, opened: Open, spend: Spend) -> None:
    moments, landed, unsure = random.Random(seed), 0, 0
    far = opened(ledger_path(through(wire, url)))
    straight = opened(ledger_path(url)) if seed == 1 else far
    before = wire.passed
    spend(far, 0, Fraction(1, 100_000))
    whole, number, each = wire.passed - before, 0, Fraction(1, 100_000)
    for number in range(1, 1 + often(400, 30)):
        if number % 5 == 0:  # a process that begins anew
            far = opened(ledger_path(through(wire, url)))
        # a third of them around the last statements, a third around the commit and its answer, of 18 bytes: in steps of
        # six, since whole acts differ by some bytes
        late = moments.randrange(1, (whole, 700, 7)[number % 3]) + (number % 3 == 2) * (6 * (number // 3) % 60)
        wire.left = whole - late
        trouble = ""
        try:
            assert spend(far, number, each)
        except LedgerError as error:
            trouble = str(error)
        wire.left = None
        seen = straight if seed == 1 else opened(ledger_path(url))
        here = seen.spent()[0] == (number + 1) * each
        assert here or seen.spent()[0] == number * each
        if number % 40 == 0:  # to read all rows takes longer than all else, and what is wrong in one stays so
            charged = [entry.question for entry in seen.entries() if entry.kind == "charge"]
            assert len(charged) == len(set(charged)) == number + here
            assert (f"{number:08x}" in charged) == here
        assert here or trouble, "it was answered, so it is charged"
        if trouble:
            assert "\n" not in trouble
            assert any(words in trouble for words in ("did not confirm a commit", "was lost", "cannot be reached"))
            assert "did not confirm" in trouble or not here, (
                "whoever is told that nothing was charged is told so rightly"
            )
        landed, unsure = landed + (here and bool(trouble)), unsure + ("did not confirm" in trouble)
        assert spend(far, number, each) != here, "it is free if, and only if, it landed"
    assert far.spent()[0] == (number + 1) * each
    charged = [entry.question for entry in opened(ledger_path(url)).entries() if entry.kind == "charge"]
    assert charged == [f"{number:08x}" for number in range(number + 1)]
    assert landed, "some of them should be cut between the commit and its answer"
    assert unsure >= landed


def test_a_wire_that_is_cut_while_a_ledger_is_made(wire: Wire, url: str, opened: Open, spend: Spend) -> None:
    """It is there or not, and is made once."""
    before = wire.passed
    opened(ledger_path(f"{through(wire, url)}_0"))
    whole = wire.passed - before
    for turn in range(1, 9):
        path = ledger_path(f"{through(wire, url)}_{turn}")
        wire.left = whole * turn // 9
        with pytest.raises(LedgerError, match=r"did not confirm a commit|was lost|cannot be reached"):
            opened(path)
        wire.left = None
        ledger = opened(path)
        assert spend(ledger, 1)
        assert ledger.remaining() == Fraction(9, 10)
        assert ledger.state().rows == 2


def test_a_client_that_is_forked_in_a_transaction_shares_nothing(url: str, opened: Open, spend: Spend) -> None:
    ledger = opened(ledger_path(url))
    with ledger.transaction():
        child = os.fork()
        if not child:
            os._exit(0)  # without closing what it has inherited
        os.waitpid(child, 0)
    assert spend(ledger, 1)
    child = os.fork()
    if not child:
        os._exit(0 if spend(ledger, 2) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.spent()[0] == Fraction(2, 10)
