"""Attacks on lazily drawn noise: asking again, elsewhere, after a crash, too often.

Attacks 8, 12, 13, 14; rules 8, 9, 38, 39.
"""

import copy
import logging
import multiprocessing
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from depth import deep

import wpinq
from wpinq.core.ledger import Ledger

BINS = ["home", "news", *(f"absent {i}" for i in range(200))]


def page(user, page):
    return page


def measured(path, **changes):
    return wpinq.protect(path, budget=1, **changes).map(page).measure("0.1")


def test_attack_08_averaging_gains_nothing(views_file):
    """One value, however and wherever it is asked: bin by bin, in any order, by threads, forks and new processes."""
    m = measured(views_file)
    first = m.observe_many(BINS).tolist()
    assert [m.observe(one) for one in reversed(BINS)] == first[::-1]
    assert m.observe_many(BINS * 3).tolist() == first * 3
    found = []
    threads = [threading.Thread(target=lambda: found.append(m.observe_many(BINS).tolist())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [first] * 8
    assert measured(views_file).observe_many(BINS).tolist() == first
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_asked, (views_file, BINS)) == first


def _asked(path, bins):
    return measured(path).observe_many(bins).tolist()


def test_attack_12_nothing_tells_which_bins_there_are(views_file, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    views_file.write_text("user,page\nannmarker,homemarker\nbob,homemarker\n")
    views = wpinq.protect(views_file, budget=1)
    m = views.map(page).measure("0.1")
    m.observe("homemarker")
    for thing in (views, m, m.node, m.key_owner):
        with pytest.raises(TypeError):
            len(thing)
        with pytest.raises(TypeError):
            iter(thing)
        with pytest.raises(TypeError):
            "homemarker" in thing  # noqa: B015
        for shown in (repr(thing), str(thing), f"{thing}", str(getattr(thing, "__dict__", ""))):
            assert "marker" not in shown
        for out in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError):
                out(thing)
    shown = re.sub(r"0x[0-9a-f]+|b('[^']*'|\"[^\"]*\")", "", repr(m.key_owner) + repr(m.node))  # addresses, keys
    assert str(views_file.stat().st_size) not in shown + m.key_owner.version
    assert capfd.readouterr() == ("", "")
    assert not caplog.text


def test_attack_12_present_and_absent_bins_take_the_same_path(views_file):
    """Every line that runs for a present bin runs for an absent one, as often. The time: `bench_observe_time.py`."""
    measurements = [
        measured(views_file), wpinq.degrees.cdf(wpinq.protect(views_file, budget=1).map(page)).measure("0.1"),
        wpinq.protect(views_file, budget=1).measure("0.1"),
    ]  # fmt: skip
    for m, present, absent in zip(
        measurements, ["home", 1, ("bob", "news")], ["nope", 9, ("bob", "nope")], strict=True
    ):
        assert _lines(m, present) == _lines(m, absent)


def _lines(measurement, one):
    measurement.observe(one)
    seen = []

    def trace(frame, event, _):
        if "wpinq" in frame.f_code.co_filename:
            seen.append((frame.f_code.co_filename, frame.f_lineno, event))
            return trace
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        measurement.observe(one)
    finally:
        sys.settrace(before)
    assert len(seen) > 50
    return seen


KILLED = """
import os, signal, sys, wpinq
from wpinq.core.measurements import query
from wpinq.core.measurements import measurement
from wpinq.core.engines import local
from wpinq.core.ledger.stores import file
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
def after(function, times=1):
    left = [times]
    def call(*a, **k):
        found = function(*a, **k)
        left[0] -= 1
        if not left[0]: die()
        return found
    return call
point, path = sys.argv[1:]
views = wpinq.protect(path, budget=1)
if point == "before the charge": query.charge_all = die
if point == "content and charge committed, head not": file.FilePages.adopt = die
if point == "charged": query.charge_all = after(query.charge_all)
if point == "before the run": local.run = die
if point == "after the run": local.run = after(local.run)
m = views.map(lambda user, page: page).measure("0.1")
if point == "seal committed, head not": file.FilePages.adopt = die
if point == "sealed": query.Words = die
if point == "answered": measurement.Measurement._released = after(measurement.Measurement._released)
print(m.observe_many(["home", "news", "a", "b", "c"]).tolist())
"""
POINTS = ["before the charge", "content and charge committed, head not", "charged", "before the run",
          "after the run", "seal committed, head not", "sealed", "answered"]  # fmt: skip


@deep
def test_attack_13_killed_between_charge_and_answer(views_file, spent):
    """`kill -9` at every step: never an answer without its charge, never a second noise, never a second charge."""
    command = [sys.executable, "-c", KILLED]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = []
    for place, point in enumerate(POINTS):
        path = views_file.parent / str(place) / "views.csv"
        path.parent.mkdir()
        shutil.copy(views_file, path)
        running.append(subprocess.Popen([*command, point, str(path)], stdout=subprocess.PIPE, env=environment))
    for place, process in enumerate(running):
        out, _ = process.communicate(timeout=60)
        assert (process.returncode, out) == (-9, b""), POINTS[place]
        path = views_file.parent / str(place) / "views.csv"
        assert spent(path) == (0 if place < 1 else Fraction(1, 10)), POINTS[place]
        answers = [measured(path).observe_many(["home", "news", "a", "b", "c"]).tolist() for _ in range(2)]
        assert answers[0] == answers[1]
        assert spent(path) == Fraction(1, 10)


def test_attack_14_no_memory_of_bins_to_exhaust(views_file):
    """A million bins asked leave nothing behind, so nothing can be pushed out and drawn again."""
    m = wpinq.degrees.cdf(wpinq.protect(views_file, budget=1).map(page)).measure("0.1")
    first = m.observe_many(range(100)).tolist()
    m.observe_many(range(10**5, 2 * 10**5))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for start in range(0, 10**6, 10**5):
        m.observe_many(range(start, start + 10**5))
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 200_000
    assert m.observe_many(range(100)).tolist() == first


def test_rule_08_the_same_question_is_free_and_numbers_do_not_count(views_file, spent):
    """Unnamed measurements are not numbered: lines may be put in, run again or swapped."""
    views = wpinq.protect(views_file, budget=1)
    one, other = views.map(page).measure("0.1"), views.filter(lambda page: page == "home").measure("0.2")
    answers = one.observe_many(BINS).tolist()
    again = wpinq.protect(views_file, budget=1)
    other_again, one_again = again.filter(lambda page: page == "home").measure("0.2"), again.map(page).measure("0.1")
    assert one_again.observe_many(BINS).tolist() == answers
    assert other_again.observe(("ann", "home")) == other.observe(("ann", "home"))
    assert spent(views_file) == Fraction(3, 10)


def test_rule_09_a_release_keeps_the_histogram_of_its_version(views_file, spent):
    """Bins asked late are answered from what was measured, never from what the data are by then."""
    m = measured(views_file)
    early = m.observe("home")
    views_file.write_text("user,page\n" + "eve,late\n" * 500)
    assert m.observe("home") == early
    late = m.observe("late")
    views_file.unlink()
    assert (m.observe("late"), m.observe("home")) == (late, early)
    assert abs(late) < 400, "scale 10: above 400 with probability e^-40"
    assert spent(views_file) == Fraction(1, 10)


def test_rule_39_what_no_ledger_can_detect(views_file, tmp_path, spent):
    """A copied directory is a second budget with the same secret: equal questions at least have equal noise."""
    copied = tmp_path / "copy" / "views.csv"
    shutil.copytree(views_file.parent, copied.parent, ignore=shutil.ignore_patterns("copy"))
    views = [wpinq.protect(path, budget=1, version="1") for path in (views_file, copied)]
    assert spent(copied) == 0
    answers = [one.map(page).measure("0.1").observe_many(BINS).tolist() for one in views]
    assert answers[0] != answers[1], "each made its own secret"
    again = tmp_path / "again" / "views.csv"
    shutil.copytree(views_file.parent, again.parent, ignore=shutil.ignore_patterns("copy", "again"))
    views.append(wpinq.protect(again, budget=1, version="1"))
    assert views[2].map(page).measure("0.1").observe_many(BINS).tolist() == (
        views[0].map(page).measure("0.1").observe_many(BINS).tolist()
    )
    views[0].measure("0.2")
    views[2].measure("0.3")
    assert (spent(views_file), spent(again)) == (Fraction(3, 10), Fraction(4, 10)), "and what else is asked adds up"
    assert "second" in (Ledger.__module__ and sys.modules[Ledger.__module__].__doc__), "and the ledger says so"


def test_attack_13_a_restored_ledger_is_refused(views_file, tmp_path):
    """An older copy of ledger put back, to spend again."""
    measured(views_file)
    ledger = views_file.with_name("views.csv.ledger")
    shutil.copy(ledger, tmp_path / "kept")
    wpinq.protect(views_file, budget=1).map(page).measure("0.2")
    shutil.copy(tmp_path / "kept", ledger)
    with pytest.raises(wpinq.LedgerError, match="older"):
        wpinq.protect(views_file, budget=1)


def test_attack_08_a_million_answers_have_the_variance_of_the_noise(views_file):
    """If asking a bin again drew anew, its mean over questions would come close to the truth."""
    m = measured(views_file)
    repeats = np.array([m.observe_many(BINS) for _ in range(50)])
    assert (repeats.std(axis=0) == 0).all()
