"""What functions say is dropped, and what other threads say is not, whoever replaces the streams meanwhile.

Found: a run that put the streams back as it had found them brought closed ones to life, and a test run ended red by
chance; and what a server logged while a function ran was lost.
"""

import io
import logging
import sys
import threading
import warnings
from contextlib import contextmanager

import pytest

from wpinq.apps.scripts.script import rehearsed
from wpinq.core.functions.isolate import OUT, dropping, each, one_thread
from wpinq.errors import EngineError


def loud(record):
    (word,) = record
    print(word)
    print(word, file=sys.stderr)
    logging.getLogger("user").critical(word)
    warnings.warn(word, stacklevel=1)
    return word


@contextmanager
def in_a_run(run=each, say=loud):
    """Another thread is in the midst of a function; it ends with the block."""
    inside, go, found = threading.Event(), threading.Event(), []

    def step(record):
        inside.set()
        assert go.wait(10)
        return say(record)

    thread = threading.Thread(target=lambda: found.append(run(step, [("marker",)])))
    thread.start()
    assert inside.wait(10)
    try:
        yield found
    finally:
        go.set()
        thread.join()


def scripted(step, records):
    """A script's rehearsal, which drops what it prints and nothing else."""

    class Views:
        _node = None

    def script(_):
        step(records[0][0])
        return {}

    with pytest.raises(AttributeError):  # there is no ledger to look at, once the script has run
        rehearsed(script, Views())


@pytest.mark.parametrize(("run", "say"), [(each, loud), (scripted, print)])
@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_stream_that_others_have_replaced_stays(monkeypatch, name, run, say):
    before, later = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, name, before)
    with in_a_run(run, say):
        monkeypatch.setattr(sys, name, later)
        before.close()
    assert getattr(sys, name) is later
    monkeypatch.undo()


@pytest.mark.parametrize(("run", "say"), [(each, loud), (scripted, print)])
def test_streams_are_what_they_were_after_a_run(monkeypatch, run, say):
    said = io.StringIO()
    monkeypatch.setattr(sys, "stdout", said)
    with in_a_run(run, say):
        print("heard")
        assert sys.stdout is not said
    assert sys.stdout is said and said.getvalue() == "heard\n"


def test_who_has_our_stream_at_hand_writes_to_where_it_leads(monkeypatch):
    """As a capture that begins while a function runs: it ends later, and puts ours back."""
    said = io.StringIO()
    monkeypatch.setattr(sys, "stdout", said)
    with in_a_run():
        old = sys.stdout
        monkeypatch.setattr(sys, "stdout", io.StringIO())
    sys.stdout = old
    for _ in range(2000):  # no chain of ours over ours
        with dropping(OUT):
            print("dropped")
    print("heard")
    assert said.getvalue() == "heard\n"


def test_what_others_log_and_warn_of_while_a_function_runs_comes_out(caplog):
    with in_a_run() as found:
        logging.getLogger("wpinq.serve").error("logged")
        with pytest.warns(UserWarning, match="warned"):
            warnings.warn("warned", stacklevel=1)
    assert found == [["marker"]]
    assert caplog.messages == ["logged"]


def test_what_others_changed_of_warnings_and_logs_stays(caplog):
    made = logging.getLogRecordFactory()
    with warnings.catch_warnings():
        with in_a_run():
            warnings.filters = filters = [("error", None, UserWarning, None, 0)]
            logging.disable(logging.ERROR)
        try:
            assert warnings.filters is filters and logging.root.manager.disable == logging.ERROR
        finally:
            logging.disable(logging.NOTSET)
    with in_a_run():
        assert logging.getLogRecordFactory() is not made
    assert logging.getLogRecordFactory() is made


def test_a_function_whose_caller_was_interrupted_is_not_heard_later(capfd, caplog):
    """It goes on alone, for nothing can stop it; what it says then is dropped too."""
    inside, go, ended = threading.Event(), threading.Event(), threading.Event()

    def step(record):
        inside.set()
        go.wait(10)
        loud(record)
        ended.set()

    def stopped(run, *given):
        with pytest.raises(EngineError):
            run(*given)

    with pytest.raises(KeyboardInterrupt), one_thread() as thread:
        waiting = threading.Thread(target=stopped, args=(thread.run, step, [("marker",)]))
        waiting.start()
        assert inside.wait(10)
        raise KeyboardInterrupt
    go.set()
    assert ended.wait(10)
    waiting.join(10)
    assert "marker" not in "".join(capfd.readouterr()) + caplog.text


def test_a_function_closes_no_stream_of_the_process():
    assert each(lambda _: sys.stdout.close(), [(1,)]) == [None]
    assert each(lambda _: sys.stdout.detach(), [(1,)]) == [None]
    print("heard")


def test_a_process_without_streams_runs_functions(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert each(lambda record: print(record) or record, [("marker",)]) == [("marker",)]
    assert sys.stdout is None
