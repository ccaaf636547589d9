"""A live source that outlives its process: the same epochs and answers, no second noise. Attacks 13, 20 and 42."""

import shutil

import numpy as np
import pytest

import wpinq
from wpinq.streaming.journal import NAME

TYPED = {"user": "text", "page": "text"}
BINS = [f"marker{i}" for i in range(100)]


def page(page):
    return page


@pytest.fixture
def start(tmp_path):
    """A process of its own, as far as the source can tell."""
    started = []

    def start(place="keep", ledger="ledger", **more):
        for one in started:
            one.close()
        options = {"columns": TYPED, "budget": 100, **more}
        started.append(wpinq.live(ledger=tmp_path / ledger, recover=tmp_path / place, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


def measured(views):
    """Everything that can be measured: every epoch, one epoch, and a plan with state."""
    pages = views.map(page)
    return [pages.measure(1, continual=True), pages.measure(1), pages.shave().map(lambda page, index: index).measure(1)]


def send(views, epoch):
    views.send([("ann", one) for one in BINS[: 10 * epoch]] + [("bob", "marker1")])
    return views.advance()


def said(measurements):
    continual, pages, cdf = measurements
    return continual.observe_many(BINS).tolist(), pages.observe_many(BINS).tolist(), cdf.observe_many(range(9)).tolist()


def test_the_next_process_says_the_same_and_goes_on(start):
    views = start()
    mine, answers = measured(views), {}
    for epoch in range(1, 5):
        assert send(views, epoch) == epoch
        answers[epoch] = said(mine)
    spent = views._data.ledger.spent()
    views.send([("eve", "marker9")] * 50)
    views = start()
    mine = measured(views)
    assert views.epoch == 0, "measured before anything was taken in"
    assert views.resume() == views.resume() == views.epoch == 4
    assert said(mine) == answers[4], "what was not closed is lost, and counted nowhere"
    for epoch, then in answers.items():
        assert mine[0].observe_many(BINS, epoch=epoch).tolist() == then[0]
    assert views._data.ledger.spent() == spent, "it costs nothing again"
    send(views, 5)
    fifth = said(mine)
    views = start()
    mine = measured(views)
    send(views, 6)
    assert mine[0].observe_many(BINS, epoch=5).tolist() == fifth[0]
    whole = start("other", "other.ledger")
    other = whole.map(page).measure(50, name="exact", continual=True)
    for epoch in range(1, 7):
        send(whole, epoch)
    assert other.observe("marker1") == pytest.approx(12, abs=3), "six epochs, two views each"


def test_a_measurement_that_is_made_later_speaks_of_its_own_epoch(start):
    views = start()
    send(views, 1)
    late = views.map(page).measure(1)
    send(views, 2)
    answer, spent = late.observe_many(BINS).tolist(), views._data.ledger.spent()
    views = start()
    views.resume()
    again = views.map(page).measure(1)
    assert again.question != late.question
    assert views._data.ledger.spent() != spent
    send(views, 3)
    assert again.observe_many(BINS).tolist() != answer


def test_windows_close_as_they_did(start):
    columns = {"page": "text", "minute": "integer"}
    views = start(columns=columns)
    hours = views.window(60, at="minute").map(page).measure(1)
    views.send([(one, 5) for one in BINS])
    views.advance(until=60)
    views.send([(one, 6) for one in BINS])
    views.advance()
    answer = hours.observe_many(BINS, window=5).tolist()
    views = start(columns=columns)
    hours = views.window(60, at="minute").map(page).measure(1)
    views.resume()
    views.send([(one, 7) for one in BINS])
    views.advance(until=50)
    assert hours.observe_many(BINS, window=5).tolist() == answer
    with pytest.raises(wpinq.NotReadyError):
        hours.observe("a", window=61)


def test_what_is_kept_holds_no_names_and_is_its_owners(start, tmp_path):
    views = start()
    send(views, 10)
    keep = tmp_path / "keep"
    assert keep.stat().st_mode & 0o777 == 0o700
    for file in (keep / NAME, tmp_path / "ledger.live"):
        assert file.stat().st_mode & 0o777 == 0o600
        assert b"marker" not in file.read_bytes()
        assert b"page" not in file.read_bytes()


def test_an_epoch_that_was_not_written_whole_was_not_closed(start, tmp_path):
    views = start()
    send(views, 1)
    first = (tmp_path / "keep" / NAME).stat().st_size
    send(views, 2)
    views.close()
    shutil.copytree(tmp_path, tmp_path / "copies", ignore=lambda *_: ["copies"])
    path = tmp_path / "keep" / NAME
    whole, head = path.read_bytes(), (tmp_path / "ledger.live").read_bytes()
    for torn in (whole[:first] + whole[first : first + 3], whole[: first + 20]):
        path.write_bytes(torn)
        with pytest.raises(wpinq.SourceError, match="put back from a copy"):
            start()
    assert len(whole) > first
    path.write_bytes(whole)
    (tmp_path / "ledger.live").write_bytes(head)
    assert start().resume() == 2


def test_killed_between_the_epoch_and_the_head_it_goes_on_from_the_epoch(start, tmp_path):
    views = start()
    send(views, 1)
    head, path = (tmp_path / "ledger.live").read_bytes(), tmp_path / "keep" / NAME
    size = path.stat().st_size
    send(views, 2)
    whole = path.read_bytes()
    (tmp_path / "ledger.live").write_bytes(head)
    assert start().resume() == 2
    (tmp_path / "ledger.live").write_bytes(head)
    path.write_bytes(whole[:size] + whole[size : size + 8] + bytes(len(whole) - size - 8))
    assert start().resume() == 1, "the machine stopped before the second was on the disk; nobody was told of it"


def test_attack_20_a_directory_that_was_put_back_cannot_close_an_epoch_again(start, tmp_path):
    """It would put other records under the noise of the same nodes, whose difference is then exact."""
    views = start()
    send(views, 1)
    views.close()
    shutil.copytree(tmp_path / "keep", tmp_path / "copy")
    views = start()
    send(views, 2)
    for place in ("copy", "keep"):
        if place == "copy":
            with pytest.raises(wpinq.SourceError, match="put back from a copy"):
                start(place)
        else:
            assert start(place).resume() == 2
    new = start("new")
    assert new.resume() == 0
    assert new._data.version != views._data.version, "another life: other noise, and another charge"
    with pytest.raises(wpinq.SourceError, match="put back from a copy"):
        start("keep")


def test_a_directory_that_holds_no_epoch_yet_is_not_taken_twice(start, tmp_path):
    version = start()._data.version
    shutil.copytree(tmp_path / "keep", tmp_path / "copy")
    assert start()._data.version == version
    send(start(), 1)
    assert start("copy")._data.version != version


def test_what_belongs_to_another_is_refused(start, tmp_path):
    views = start()
    send(views, 1)
    with pytest.raises(wpinq.SourceError, match="another process"):
        wpinq.live(TYPED, budget=100, ledger=tmp_path / "ledger", recover=tmp_path / "keep")
    for more in ({"columns": {"user": "text"}}, {"ledger": "elsewhere"}):
        with pytest.raises(wpinq.SourceError, match="another dataflow"):
            start(**more)
    with pytest.raises(wpinq.LedgerError):
        start(name="another")
    path = tmp_path / "keep" / NAME
    whole = path.read_bytes()
    for place in (20, len(whole) - 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(wpinq.SourceError):
            start().resume()
    path.write_bytes(whole)
    (tmp_path / "keep").chmod(0o750)
    with pytest.raises(wpinq.SourceError, match="chmod 700"):
        start()
    with pytest.raises(wpinq.PlanError, match="ledger"):
        wpinq.live(TYPED, budget=1, recover=tmp_path / "none")


def test_an_epoch_that_cannot_be_written_is_not_closed_and_can_be_closed_later(start, monkeypatch):
    views = start()
    mine = measured(views)
    views.send([("ann", "marker1")])

    def full(*_):
        raise OSError(28, "No space left on device")

    for place in ("head.os.pwrite", "journal.durable"):
        monkeypatch.setattr(f"wpinq.streaming.{place}", full)
        for _ in range(2):
            with pytest.raises(wpinq.SourceError, match="No space left"):
                views.advance()
        assert views.epoch == 0
        monkeypatch.undo()
    assert send(views, 1) == 1
    answer = said(mine)
    views = start()
    mine = measured(views)
    assert views.resume() == 1
    assert said(mine) == answer


def test_files_are_read_on_from_where_the_last_closed_epoch_ended(start, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    path, pattern = logs / "a.csv", str(logs / "*.csv")
    path.write_text("user,page\n" + "ann,home\n" * 3)
    (logs / "b.csv").write_text("user,page\nbob,home\n")

    def opened():
        views = start(budget=10_000)
        return views, views.map(page).measure(500, continual=True)

    views, m = opened()
    views.follow(pattern)
    views.advance()
    assert m.observe("home") == 4
    with path.open("a") as file:
        file.write("eve,home\neve,ho")
    views.follow(pattern)
    views, m = opened()
    with path.open("a") as file:
        file.write("me\neve,news\n")
    views.follow(pattern)
    views.advance()
    assert m.observe_many(["home", "news"]).tolist() == [6, 1], "the open epoch was lost, and read again"
    path.rename(logs / "rotated.csv")
    with (logs / "rotated.csv").open("a") as file:
        file.write("eve,late\n")
    path.write_text("user,page\neve,news\n")
    views, m = opened()
    views.follow(pattern)
    views.advance()
    assert m.observe_many(["home", "news", "late"]).tolist() == [6, 2, 1]
    views, m = opened()
    inode = path.stat().st_ino
    path.write_text("user,page\n" + "zoe,again\n" * 200)
    assert path.stat().st_ino == inode
    views.follow(pattern)
    views.advance()
    assert m.observe_many(["home", "again"]).tolist() == [6, 200], (
        "another file in its place is read from its beginning"
    )


def test_noise_of_a_restart_is_no_other_noise(start):
    """Ten restarts, and the mean of what they say is what each of them says."""
    found = []
    for _ in range(10):
        views = start()
        mine = measured(views)
        if not found:
            send(views, 1)
        views.resume()
        found.append(mine[1].observe_many(BINS))
    assert np.ptp(np.array(found), axis=0).max() == 0
