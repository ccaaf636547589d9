"""Connections that ask nothing, or read nothing: whoever opens many of them keeps nobody out, and fills no log."""

import contextlib
import http.client
import os
import resource
import socket
import time

import pytest
from serving import CONFIG, serving, written

from wpinq.apps.serve import run
from wpinq.apps.serve.connections import Connection, Listener, Room

MOST, EACH = 40, 25
SMALL = f"\n[limits]\nconnections = {MOST}\neach = {EACH}\n"
NOTHING, HALF = b"", b"GET /api/budget HTTP/1.1\r\nHost: x\r\nX-a: "
NO_END = b"POST /sign-in HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"


def client(port, host="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(host, 0))


def status(site, token, host):
    """Of a request from an address of this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=10, source_address=(host, 0))
    with contextlib.closing(connection):
        connection.request("GET", "/api/budget", headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    with serving(written(tmp_path_factory.mktemp("small"), CONFIG + SMALL)) as asker:
        yield asker


@pytest.mark.parametrize("addresses", [1, 30])
@pytest.mark.parametrize("sent", [NOTHING, HALF, NO_END])
def test_connections_that_ask_nothing_keep_nobody_out(small, addresses, sent):
    with contextlib.ExitStack() as held:
        site, token = small, small.token()
        for number in range(4 * MOST):
            held.enter_context(client(site.port, f"127.0.0.{1 + number % addresses}")).sendall(sent)
        for host in ("127.0.0.1", "127.0.0.250"):
            begun = time.monotonic()
            assert status(site, token, host) == 200 and time.monotonic() - begun < 1
        assert len(site.room) <= (EACH + 1 if addresses == 1 else MOST)


def test_a_client_that_reads_nothing_is_let_go(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "STUCK", 0.3)
    with serving(written(tmp_path)) as site, client(site.port) as deaf:
        with contextlib.suppress(OSError):
            deaf.settimeout(1)
            for _ in range(400):
                deaf.sendall(b"GET /static/uPlot.js HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        end = time.monotonic() + 60
        while len(site.room) and time.monotonic() < end:
            time.sleep(0.02)
        assert len(site.room) == 0


@pytest.fixture
def entered():
    """Lets a connection into a room, and gives whether it fits, it, and its other end."""
    with contextlib.ExitStack() as held:

        def enters(room, host, port):
            ours, theirs = map(held.enter_context, socket.socketpair())
            connection = held.enter_context(Connection(fileno=ours.detach()))
            connection.peer = (host, port)
            return room.enters(connection), connection, theirs

        yield enters


def test_the_one_that_has_waited_longest_makes_room_and_none_that_works(entered):
    room = Room(4, 3)
    first = [entered(room, "10.0.0.1", port) for port in (1, 2, 3)]
    room.works(("10.0.0.1", 1))
    assert entered(room, "10.0.0.1", 4)[0] and len(room) == 3
    assert first[1][2].recv(1) == b""  # it was shut down, and the first, which works, was not
    for port in (3, 4):
        room.works(("10.0.0.1", port))
    assert not entered(room, "10.0.0.1", 5)[0] and len(room) == 3
    assert entered(room, "10.0.0.2", 1)[0] and len(room) == 4
    assert entered(room, "10.0.0.3", 1)[0] and len(room) == 4  # the only one that waits makes room
    room.works(("10.0.0.3", 1))
    assert not entered(room, "10.0.0.4", 1)[0]
    first[0][1].close()
    assert len(room) == 3 and entered(room, "10.0.0.4", 2)[0]


def test_an_address_has_its_share_back_when_its_connections_are_closed(entered):
    room = Room(4, 1)
    for port in range(50):
        fits, connection, _ = entered(room, "2001:db8::1", port)
        room.works(("2001:db8::1", port))
        assert fits and not entered(room, "2001:db8::2", port)[0]  # a neighbour in its network
        connection.close()
    assert len(room) == 0


def test_a_full_table_of_descriptors_is_one_line_and_no_endless_loop(caplog):
    listener = Listener()
    listener.bind(("127.0.0.1", 0))
    listener.listen(8)
    listener.setblocking(False)
    listener.begin(Room(9, 9))
    clients = [client(listener.getsockname()[1]) for _ in range(3)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        for _ in range(3):
            with pytest.raises(BlockingIOError):
                listener.accept()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [one.recv(1) for one in clients] == [b""] * 3  # each was taken and dropped: none waits in the queue
    assert len(caplog.records) == 1 and caplog.records[0].exc_info is None and "open files" in caplog.text
    listener.close()
    for one in clients:
        one.close()


def test_an_error_of_the_event_loop_is_one_line(caplog):
    run._say(None, {"message": "ann", "exception": RuntimeError("ann viewed page 7")})
    assert caplog.text.count("\n") == 1 and "ann" not in caplog.text and "RuntimeError" in caplog.text
