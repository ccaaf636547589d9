"""A live source that is interrupted, started twice, or follows a file that is not the one it was."""

import os
import subprocess
import sys

import processes
import pytest

import wpinq
from wpinq import storage as sealed
from wpinq.errors import EngineError, SourceError
from wpinq.streaming import collection, frames, head, journal, running

WATCHED = {one.__file__ for one in (head, journal, frames, sealed, collection, running)}


def start(place, **more):
    return wpinq.live({"user": "text"}, budget=10**6, ledger=place / "ledger", recover=place / "keep", **more)


def interrupted_at(number, call):
    """Call with an interrupt at the given line of what closes an epoch; whether there was such a line."""
    left = number

    def trace(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename not in WATCHED:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a draft that was never closed
def test_interrupted_at_any_line_of_advance_nothing_is_lost_or_counted_twice(tmp_path):
    """Whoever goes on after Ctrl-C, in a notebook, either can, or is told to begin again with what was kept."""
    reached = True
    number = -1
    while reached:
        number += 4
        place = tmp_path / str(number)
        place.mkdir()
        views = start(place)
        views.send([("ann",)] * 5)
        views.advance()
        views.send([("ann",)] * 5)
        reached = interrupted_at(number, views.advance)
        try:
            views.send([("ann",)])
            went_on = views.advance()
        except EngineError as error:
            assert "make another source" in str(error)
            went_on = None
        views.close()
        again = start(place)
        found = again.measure(10**4, continual=True)
        epoch = again.resume()
        expected = {(2, 11), (3, 11)} if went_on else {(1, 5), (2, 10)}
        assert (epoch, found.observe("ann")) in expected, number
        again.send([("ann",)])
        assert again.advance() == epoch + 1, "and it goes on"
        again.close()
    assert number > 30


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a draft that was never closed
def test_interrupted_while_it_merges_nothing_is_lost_or_counted_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "EVERY", 1)
    number, reached, merged = -1, True, set()
    while reached:
        number += 23
        place = tmp_path / str(number)
        place.mkdir()
        views = start(place, keep=1)
        kept = views.measure(10**4, continual=True)
        with monkeypatch.context() as patched:
            patched.setattr(journal, "EVERY", 100)
            for _ in range(14):
                views.send([("ann",)] * 5)
                views.advance()
        reached = interrupted_at(number, views.advance)
        views.close()
        again = start(place, keep=1)
        kept = again.measure(10**4, continual=True)
        epoch = again.resume()
        assert kept.observe("ann") == 70
        merged.add((epoch, again._log.merged and again._log.merged.last))
        again.send([("ann",)])
        assert again.advance() == epoch + 1, "and it goes on"
        assert kept.observe("ann") == 71
        again.close()
    assert {(14, None), (15, 11)} <= merged <= {(14, None), (15, None), (15, 11)}
    assert number > 120


def test_interrupted_while_it_resumes_it_begins_again(tmp_path):
    views = start(tmp_path)
    for _ in range(3):
        views.send([("ann",)])
        views.advance()
    views.close()
    for number in (20, 40, 60):
        views = start(tmp_path)
        assert interrupted_at(number, views.resume)
        with pytest.raises(EngineError, match="make another source"):
            views.advance()
        views.close()
    views = start(tmp_path)
    found = views.measure(10**4, continual=True)
    assert views.resume() == 3
    assert found.observe("ann") == 3
    views.close()


@pytest.mark.parametrize("what", ["the write", "the undoing"])
def test_an_epoch_that_cannot_be_written_or_taken_back(tmp_path, what, monkeypatch):
    """A full disk where the head is written; and one that is full for good."""
    views = start(tmp_path)
    views.send([("ann",)] * 5)
    views.advance()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(head.os, "pwrite", full)
    if what == "the undoing":
        monkeypatch.setattr(head, "opened", full)
    views.send([("ann",)] * 5)
    with pytest.raises(
        SourceError if what == "the write" else EngineError, match=r"No space left|could not be written"
    ):
        views.advance()
    monkeypatch.undo()
    if what == "the write":
        assert views.advance() == 2
    else:
        with pytest.raises(EngineError):
            views.advance()
    views.close()
    again = start(tmp_path)
    found = again.measure(10**4, continual=True)
    assert again.resume() == 2
    assert found.observe("ann") == 10
    again.close()


TWICE = """
import pathlib, sys, time
import wpinq, wpinq.streaming.source, polars, cryptography
from wpinq.streaming import journal

place, who, directory = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]

def meet(what):
    (place / f"{what} {who}").touch()
    while len(list(place.glob(f"{what} *"))) < 2:
        time.sleep(0.01)

true = journal.private
def slow(directory):
    true(directory)
    meet("looked")  # both are about to begin
journal.private = slow
try:
    views = wpinq.live({"user": "text"}, budget=10**6, ledger=place / "ledger", recover=place / directory)
    views.send([(who,)] * 10)
    views.advance()
    meet("done")
    views.close()
    print(who)
except wpinq.WpinqError as error:
    assert "is using it" in str(error), error
    (place / f"done {who}").touch()
"""


@pytest.mark.slow
@pytest.mark.parametrize("places", [("keep", "keep"), ("keep", "other")])
def test_of_two_that_start_at_once_one_runs(tmp_path, places):
    """On one new directory, or on one ledger, whose head knows one directory."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [
        processes.Popen([sys.executable, "-c", TWICE, str(tmp_path), who, place], stdout=subprocess.PIPE,
                         env=environment, text=True)
        for who, place in zip("pq", places, strict=True)
    ]  # fmt: skip
    said = [process.communicate(timeout=60)[0].strip() for process in started]
    assert all(process.returncode == 0 for process in started)
    assert sorted(map(bool, said)) == [False, True], said
    winner = next(place for place, one in zip(places, said, strict=True) if one)
    views = wpinq.live({"user": "text"}, budget=10**6, ledger=tmp_path / "ledger", recover=tmp_path / winner)
    found = views.measure(10**4, continual=True)
    assert views.resume() == 1
    assert sorted(found.observe_many(["p", "q"]).tolist()) == [0, 10]
    views.close()


def lines(first, last):
    return "".join(f"u{number:06d},p\n" for number in range(first, last))


@pytest.mark.parametrize("restart", [False, True])
def test_a_followed_file_that_was_cut_or_replaced_is_read_from_its_beginning(tmp_path, restart):
    """Also where it has grown beyond what was read, and where the new file has the inode of the old one."""
    path, more = tmp_path / "a.csv", {"columns": {"user": "text", "page": "text"}}

    def live():
        return wpinq.live(budget=10**6, ledger=tmp_path / "ledger", recover=tmp_path / "keep", **more)

    views, expected = live(), 0
    steps = [("w", 0, 100), ("a", 100, 130), ("w", 1000, 1150), ("w", 0, 2), ("a", 2, 900), ("w", 4000, 5200)]
    for mode, first, last in steps:
        with path.open(mode) as file:
            file.write(("user,page\n" if mode == "w" else "") + lines(first, last))
        expected += last - first
        views.follow(path)
        views.advance()
        if restart:
            views.close()
            views = live()
    path.unlink()
    path.write_text("user,page\n" + lines(7000, 9000))
    views.follow(path)
    found = views.map("page").measure(10**4)
    views.advance()
    assert found.observe("p") == expected + 2000
    views.close()
