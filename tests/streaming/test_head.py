"""The head of a journal, written in place: whatever of it reached the disk, it says the newest or the one before."""

import pytest

import wpinq
from wpinq.streaming import head as heads
from wpinq.streaming import journal as journals
from wpinq.streaming.head import SEALED, SLOT, Head

KEY, OTHER = bytes(32), bytes([1]) * 32


def test_a_write_that_reached_the_disk_in_part_leaves_what_was_said_before(tmp_path):
    path = tmp_path / "head"
    head = Head(path, KEY)
    for number in range(1, 8):
        before = path.read_bytes() if number > 1 else b""
        head.write(b"%d and a code" % number)
        after = path.read_bytes()
        assert len(after) == 2 * SLOT
        at = next((place for place in (0, SLOT) if before[place : place + SLOT] != after[place : place + SLOT]), 0)
        for cut in (0, 1, 12, 100, SEALED - 1) if before else ():
            torn = tmp_path / "torn"
            torn.write_bytes(before[:at] + after[at : at + cut] + before[at + cut :])
            again = Head(torn, KEY)
            assert again.read() == b"%d and a code" % (number - 1)
            again.write(b"another")
            assert Head(torn, KEY).read() == again.read() == b"another"
            assert torn.stat().st_size == 2 * SLOT
        assert Head(path, KEY).read() == head.read() == b"%d and a code" % number
    with pytest.raises(wpinq.SourceError, match="another dataflow"):
        Head(path, OTHER).read()
    for damaged in (bytes(2 * SLOT), bytes(2 * SLOT - 1), b"", b"5 code"):
        path.write_bytes(damaged)
        with pytest.raises(wpinq.SourceError, match="another dataflow"):
            Head(path, KEY).read()


def test_an_epoch_is_on_the_disk_before_the_head_and_the_head_before_an_answer(tmp_path, monkeypatch):
    """Two waits an epoch, in this order. With another one an epoch could be answered from and closed again."""
    seen = []
    for place in (journals, heads):
        wait = place.durable
        monkeypatch.setattr(place, "durable", lambda file, wait=wait, place=place: (wait(file), seen.append(place)))
    views = wpinq.live({"page": "text"}, budget=100, ledger=tmp_path / "ledger", recover=tmp_path / "keep")
    asked = views.map("page").measure(1, continual=True)
    answer = type(asked.times).begin
    monkeypatch.setattr(type(asked.times), "begin", lambda *given: (seen.append("answered"), answer(*given)))
    for _ in range(3):
        views.send([("home",)])
        views.advance()
    views.close()
    assert seen == [journals, heads, "answered", *[journals, heads] * 2]
