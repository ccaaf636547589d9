"""Records so wide that a look, or an epoch, is more than a database holds in one value. Attacks 38 and 42.

What is large is made small here: pieces of a few hundred bytes, of the same kinds.
"""

from __future__ import annotations

import random
from contextlib import closing

import polars as pl
import pytest
from streaming.test_shared import EXACT, Shared, pages

import wpinq
from wpinq.streaming import journal as files
from wpinq.streaming.shared import journal as journals
from wpinq.streaming.shared import parts, worker


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(parts, "LARGE", 1 << 10)
    monkeypatch.setattr(journals, "PIECE", 300)


def lines(seed, number=40):
    draw = random.Random(seed)
    return [f"{draw.randbytes(draw.choice([2, 60, 900])).hex()},{draw.choice('ab')}" for _ in range(number)]


def count(*written):
    return [sum(line.endswith(page) for some in written for line in some) for page in (",a", ",b")]


def test_what_is_read_at_once_is_several_parts_and_is_counted_once(shared):
    m = pages(shared.views)
    shared.write(*lines(1))
    ((before,),) = shared.run("SELECT count(*) FROM {parts}")
    assert before > 10
    shared.epoch()
    shared.epoch(*lines(2))
    assert m.observe_many(["a", "b"]).tolist() == count(lines(1), lines(2))
    assert shared.run("SELECT count(*) FROM {epochs}")[0][0] > 10
    m = pages(shared.reopened())
    shared.epoch(*lines(3))
    assert m.observe_many(["a", "b"]).tolist() == count(lines(1), lines(2), lines(3))
    assert shared.views._received.offered == 40, "of this process, by what its parts say"
    held = shared.run("SELECT octet_length(frame) FROM {epochs} UNION SELECT octet_length(frame) FROM {parts}")
    assert max(held) <= (300,)


class Wide:
    """A topic of ten frames, each of a wide record; positions are those before a frame, as of any topic."""

    moving, offered = True, 0

    def __init__(self, name):
        self.name, self._at = name, 0

    def look(self):
        for self._at in range(10):
            yield pl.DataFrame({"user": ["x" * 3000], "page": ["a"]})
        self._at = 10

    def positions(self):
        return {self.name: self._at}


def test_wide_messages_of_a_topic_are_written_before_all_have_come(shared, monkeypatch):
    monkeypatch.setattr(worker, "LARGE", 1 << 13)
    shared.worker.look()
    shared.worker._source = Wide(shared.source.name)
    shared.worker._read()
    ((written,),) = shared.run("SELECT count(*) FROM {parts}")
    assert 3 < written < 10
    m = pages(shared.views)
    shared.views.follow(shared.path, workers=0)
    shared.views.advance()
    assert m.observe("a") == 10


EDITS = {
    "a part is gone": "DELETE FROM {parts} WHERE number = (SELECT min(number) + 3 FROM {parts})",
    "the last part is gone": "DELETE FROM {parts} WHERE number = (SELECT max(number) FROM {parts})",
    "a part is there again": "INSERT INTO {parts} (stream, frame) SELECT stream, frame FROM {parts}"
                             " WHERE number = (SELECT min(number) + 3 FROM {parts})",
    "a part is of a look before": "UPDATE {parts} SET frame = (SELECT frame FROM wpinq_views.kept ORDER BY number"
                                  " OFFSET 3 LIMIT 1) WHERE number = (SELECT min(number) + 3 FROM {parts})",
    "parts change places": "UPDATE {parts} AS t SET frame = s.frame FROM {parts} AS s, (SELECT min(number) AS n FROM"
                           " {parts}) AS f WHERE t.number IN (n + 3, n + 4) AND s.number = 2 * n + 7 - t.number",
    "a piece of an epoch is gone": "DELETE FROM {epochs} WHERE stream LIKE '%% epoch 1' AND number = 1",
    "the last piece of an epoch is gone": "DELETE FROM {epochs} AS t USING (SELECT max(number) AS n FROM {epochs}"
                                          " WHERE stream LIKE '%% epoch 1') AS f WHERE stream LIKE '%% epoch 1'"
                                          " AND number = n",
    "a piece of an epoch is another's": "UPDATE {epochs} AS t SET frame = s.frame FROM {epochs} AS s"
                                        " WHERE t.stream LIKE '%% epoch 1' AND t.number = 1 AND s.stream = t.stream"
                                        " AND s.number = 2",
    "pieces of an epoch are there again": "INSERT INTO {epochs} SELECT stream, number + 1000, frame FROM {epochs} WHERE"
                                          " stream LIKE '%% epoch 1'",
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_attack_38_pieces_that_are_left_out_repeated_or_put_back_are_noticed(shared, edit):
    m = pages(shared.views)
    shared.write(*lines(1))
    shared.run("CREATE TABLE wpinq_views.kept AS SELECT * FROM {parts}")
    shared.epoch()
    shared.write(*lines(2))
    shared.run(EDITS[edit])
    with pytest.raises(wpinq.SourceError, match=r"edited|put back|damaged"):
        m = pages(shared.reopened())
        shared.epoch(*lines(3))
        shared.epoch()
        m.observe("a")


def test_epochs_in_pieces_are_merged_with_the_same_answers(shared_ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "EVERY", 4)
    path = tmp_path / "views.csv"
    path.write_text("user,page\n")
    with closing(Shared(shared_ledger, path, keep=1)) as shared:
        m = shared.views.map("page").measure(EXACT, continual=True)
        for seed in range(14):
            shared.epoch(*lines(seed, 12))
        assert shared.views._journal.merged is not None
        wanted = count(*(lines(seed, 12) for seed in range(14)))
        assert m.observe_many(["a", "b"]).tolist() == wanted
        m = pages(shared.reopened())
        shared.epoch()
        assert m.observe_many(["a", "b"]).tolist() == wanted
        names = {name.split(" ", 1)[1] for (name,) in shared.run("SELECT stream FROM {epochs}") if " " in name}
        kept = {number for (number,) in shared.run("SELECT number FROM {epochs} WHERE stream NOT LIKE '%% %%'")}
        assert {int(name.removeprefix("epoch ")) for name in names} <= kept, "nothing is left of others"
