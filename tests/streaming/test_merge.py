"""A journal that is merged: bit for bit the answers of one that is not, wherever the process was killed. Rule 5."""

import datetime as dt
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import processes
import pytest
from depth import deeper, often

import wpinq
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.log import Epoch, Merged
from wpinq.streaming import journal

NOON = dt.datetime(2026, 7, 31, 12)
COLUMNS = {"user": "text", "page": "text", "note": "text", "time": "timestamp"}
BINS = [f"page{i}" for i in range(4)]
KEEP = 1
UNITS = {"record": None, "person": wpinq.users("user", at_most=3)}
STEPS = {"where": "note <> 'out'", "derive": {"page": "lower(page)", "long": "note || 'x'"}}


def opened(place, unit="record", **more):
    options = {"budget": 100, "ledger": place / "ledger", "recover": place / "keep", "keep": KEEP, **STEPS, **more}
    return wpinq.live(COLUMNS, unit=UNITS[unit], **options)


def measured(views):
    pages = views.map(lambda page: page)
    return {
        "continual": pages.measure(1, continual=True),
        "filtered": views.filter(lambda note: note == "in").map(lambda page: page).measure(1, continual=True),
        "single": pages.measure(1),
        "state": pages.shave().map(lambda page, index: page).measure(1),
        "windows": views.window("1m", at="time").map(lambda page: page).measure("1/100"),
    }


def send(views, epoch):
    draw = random.Random(epoch)
    time = NOON + dt.timedelta(minutes=epoch)
    views.send([
        (f"user{draw.randrange(6)}", draw.choice([*BINS, "PAGE1"]), draw.choice(["out", "in", None]),
         time - dt.timedelta(seconds=draw.randrange(100)))
        for _ in range(draw.randrange(12))
    ])  # fmt: skip
    views.advance(until=time)


def said(made, epoch):
    """Everything that can be asked at an epoch."""
    result = {"single": made["single"].observe_many(BINS).tolist(), "state": made["state"].observe_many(BINS).tolist()}
    for name in ("continual", "filtered"):
        result[f"{name} {epoch}"] = made[name].observe_many(BINS, epoch=epoch).tolist()
    for start, _ in [moment.window for moment in made["windows"].times.moments(epoch)]:
        result[f"window {start}"] = made["windows"].observe_many(BINS, start).tolist()
    return result


@pytest.fixture
def twins(tmp_path, monkeypatch):
    """Two directories of one stream, with one secret: the second is never merged."""

    def twins(unit):
        opened(tmp_path / "one", unit).close()
        shutil.copytree(tmp_path / "one", tmp_path / "two")
        return tmp_path / "one", tmp_path / "two"

    (tmp_path / "one").mkdir()
    monkeypatch.setattr(journal, "EVERY", 1)
    return twins


@pytest.mark.parametrize("unit", UNITS)
def test_a_merged_journal_goes_on_with_the_same_answers(twins, unit, monkeypatch):
    answers = []
    for place, every in zip(twins(unit), (1, 10**9), strict=True):
        monkeypatch.setattr(journal, "EVERY", every)
        found, last = {}, 0
        for more, keep in ((14, KEEP), (2, KEEP), (8, 2 * KEEP)):
            views = opened(place, unit, keep=keep)
            made = measured(views)
            if last > 14:
                added = views.map(lambda page: page.upper()).measure(1, continual=True)
            assert views.resume() == last
            for epoch in range(max(1, last - keep + 1), last + 1):
                assert found | said(made, epoch) == found, "what was said stays said"
            for epoch in range(last + 1, last + 1 + more):
                send(views, epoch)
                found |= said(made, epoch)
            last += more
            merged, spent = views._log.merged, views._data.ledger.spent()
            views.close()
        answers.append((found, spent, added.observe_many(["PAGE1", "PAGE2"]).tolist()))
        assert (merged is None) == (every > 1)
        if merged:
            assert 4 < merged.last <= last - 4 * KEEP
            assert merged.columns == (("user",) if unit == "person" else ()) + ("page", "note"), "time is for windows"
    assert answers[0] == answers[1]
    assert len(answers[0][0]) > 8


def test_it_holds_no_more_than_what_is_counted(tmp_path, monkeypatch):
    """Of people no more records than each may bring, of pages one row; without it, each record for ever."""
    monkeypatch.setattr(journal, "EVERY", 10)
    sizes = {}
    for name in UNITS:
        (tmp_path / name).mkdir()
        views = opened(tmp_path / name, unit=name, where=None, derive=None)
        made = views.map(lambda page: page).measure(50, continual=True)
        for epoch in range(1, 101):
            views.send([(f"user{i % 20}", f"page{i % 3}", f"{epoch} {i}", None) for i in range(200)])
            views.advance()
        assert views._log.merged.last >= 80
        sizes[name] = (tmp_path / name / "keep" / journal.NAME).stat().st_size
        (held,) = [epoch.frame for epoch, _ in views._journal.read() if epoch.merged]
        assert held.height == {"record": 3, "person": 0}[name], "people are full after the first epoch"
        assert made.observe("page1") == pytest.approx({"record": 6700, "person": 20}[name], abs=60)
        views.close()
    assert max(sizes.values()) < 60_000, "a hundred epochs take 300 kB"


def test_a_plan_that_needs_more_of_merged_epochs_is_refused_before_it_is_charged(twins):
    place, _ = twins("person")
    views = opened(place, "person")
    measured(views)
    for epoch in range(1, 19):
        send(views, epoch)
    spent = views._data.ledger.spent()
    views.close()
    views = opened(place, "person")
    with pytest.raises(wpinq.PlanError, match=r"begin anew.*Nothing was charged"):
        views.map(lambda time: time).measure(1, continual=True)
    assert views._data.ledger.spent() == spent
    measured(views)
    views.resume()
    with pytest.raises(wpinq.PlanError, match="let go of its first ones"):
        views.map(lambda page: page).measure(1)
    views.close()
    with pytest.raises(wpinq.SourceError, match=r"keep=9 needs the last 18 by themselves; give keep=[2-8] or"):
        opened(place, "person", keep=9)
    with pytest.raises(wpinq.SourceError, match="keep=None needs all"):
        opened(place, "person", keep=None)
    other = opened(place, "person", where="note is null")
    with pytest.raises(wpinq.PlanError, match="same steps before it"):
        other.map(lambda page: page).measure(1, continual=True)
    other.close()


def test_a_quote_of_before_a_merge_that_needs_more_is_refused(twins):
    """Else the next restart would count the merged epochs too low, under the same noise: the difference is exact."""
    place, _ = twins("record")
    views = opened(place)
    users = views.map(lambda user: user)
    measured(views)
    users.measure(1)
    quotes = [users.quote(1, name, continual=True) for name in ("checked", "raced")]
    for epoch in range(1, 15):
        send(views, epoch)
    merged, views._log.merged = views._log.merged, None  # as a thread that charges while another merges
    users.measure(quote=quotes[1])
    views._log.merged = merged
    with pytest.raises(wpinq.PlanError, match=r"begin anew.*Nothing was charged"):
        users.measure(quote=quotes[0])
    for epoch in range(15, 30):
        send(views, epoch)
    assert views._log.merged.last > merged.last
    assert views._log.merged.columns == merged.columns == ("page", "note")
    views.close()
    again = opened(place)
    with pytest.raises(wpinq.PlanError, match=r"begin anew.*Nothing was charged"):
        again.map(lambda user: user).measure(1, "raced", continual=True)
    again.close()


KEY = bytes(range(32))


def epochs(place):
    kept = journal.Journal(place / "keep", place / "head", KEY)
    try:
        return [
            (epoch.frame.to_dict(as_series=False), epoch.watermark, then) for epoch, then in kept.read()
        ], kept.closed
    finally:
        kept.close()


def one(number):
    return Epoch(pl.DataFrame({"page": [f"page{number}"], WEIGHT: [1]}), number)


def all_in_one(found):
    parts = list(found)[1:]
    frame = pl.concat([part.frame for part in parts])
    return Epoch(frame, parts[-1].watermark, Merged(parts[-1].watermark, frame.height, ("page",), ""))


class Killed(BaseException):
    """Ends what is done at once, as a kill would."""


def test_killed_at_any_step_of_a_merge_there_is_one_whole_journal(tmp_path, monkeypatch):
    """Every call that changes a file, in turn, is the last one; what was written of a draft may be torn, too."""
    start, calls, seen = tmp_path / "start", 1, set()
    start.mkdir()
    kept = journal.Journal(start / "keep", start / "head", KEY)
    for number in range(1, 9):
        kept.append(one(number), {"file": number})
    kept.close()
    before = epochs(start)
    ended = False
    while not ended:
        place = tmp_path / f"{calls}"
        shutil.copytree(start, place)
        kept = journal.Journal(place / "keep", place / "head", KEY)
        with monkeypatch.context() as patched:
            left = [calls]
            for what, name in ((os, "fsync"), (Path, "replace"), (os, "link"), (Path, "unlink"), (os, "close")):
                patched.setattr(what, name, dying(getattr(what, name), left))
            try:
                kept.merge(5, all_in_one)
                ended = True
            except Killed:
                pass
        kept.close()
        if (place / "keep" / journal.NEXT).exists() and calls == 1:
            torn = (place / "keep" / journal.NEXT).read_bytes()
            (place / "keep" / journal.NEXT).write_bytes(torn[: len(torn) // 2])
        found = epochs(place)
        merged = len(found[0]) == 5
        seen.add(merged)
        assert found[1] == 8
        assert found[0][-3:] == before[0][-3:]
        assert merged or found == before
        if merged:
            assert found[0][1] == ({"page": [f"page{n}" for n in range(2, 6)], WEIGHT: [1] * 4}, 5, {"file": 5})
        assert not (place / "keep" / journal.NEXT).exists()
        kept = journal.Journal(place / "keep", place / "head", KEY)
        kept.append(one(9), {"file": 9})
        kept.merge(7, all_in_one)
        kept.close()
        assert len(epochs(place)[0]) == 4
        calls += 1
    assert seen == {False, True}
    shutil.copy(start / "keep" / journal.NAME, place / "keep" / journal.NAME)
    with pytest.raises(wpinq.SourceError, match="put back from a copy"):
        epochs(place)
    assert calls > 6


def dying(call, left):
    def died(*args, **kwargs):
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return call(*args, **kwargs)

    return died


WORKER = """
import json, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], f"{sys.argv[1]}/tests"]
from tests.streaming import test_merge as stream
from wpinq.streaming import journal
journal.EVERY = int(sys.argv[3])
views = stream.opened(Path(sys.argv[2]), "person")
made = stream.measured(views)
epoch = views.resume()
while epoch < int(sys.argv[4]):
    if epoch:
        print(json.dumps(stream.said(made, epoch)), flush=True)
    epoch += 1
    stream.send(views, epoch)
print(json.dumps(stream.said(made, epoch)), flush=True)
"""


@deeper
@pytest.mark.slow
def test_killed_at_random_moments_while_it_merges_it_says_what_an_unmerged_one_says(twins):
    """Real SIGKILLs of a process that merges at every epoch."""
    answers, home, draw = [], Path(wpinq.__file__).parents[1], random.Random(1)
    for place, every, kills in zip(twins("person"), (1, 10**9), (often(5, 2), 0), strict=True):
        found = {}
        for number in range(kills + 1):
            words = [sys.executable, "-W", "ignore", "-c", WORKER, str(home), str(place), str(every), "40"]
            with processes.Popen(words, stdout=subprocess.PIPE, text=True, cwd=home) as worker:
                lines = [worker.stdout.readline() for _ in range(6)] if number < kills else worker.stdout.readlines()
                if number < kills:
                    time.sleep(draw.random() / 5)
                    worker.send_signal(signal.SIGKILL)
                    lines += worker.stdout.readlines()
            for line in lines:
                for name, values in json.loads(line or "{}").items() if line.endswith("\n") else ():
                    assert found.setdefault(name, values) == values
        assert worker.returncode == 0
        answers.append(found)
    assert answers[0] == {name: answers[1][name] for name in answers[0]}
    assert len(answers[0]) > 100
