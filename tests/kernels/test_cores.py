"""How many cores a process may use: those that it is bound to, and no more than its container's quota."""

import os

import pytest

from wpinq.core.state import workers as own


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch):
    monkeypatch.delenv(own.THREADS, raising=False)
    monkeypatch.setattr(own, "QUOTAS", ())
    own.machine.cache_clear()
    yield
    own.machine.cache_clear()


def bound(monkeypatch, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)


@pytest.mark.parametrize(("bound_to", "threads"), [(1, 1), (5, 5), (64, own.MOST_THREADS)])
def test_threads_are_as_many_as_the_process_is_bound_to_up_to_the_most(monkeypatch, bound_to, threads):
    bound(monkeypatch, bound_to)
    assert own.cores() == threads


@pytest.mark.parametrize(
    ("files", "threads"),
    [
        (["200000 100000"], 2), (["50000 100000"], 1), (["250000 100000"], 2), (["max 100000"], 8),
        (["300000", "100000"], 3), (["-1", "100000"], 8), (["", "100000"], 8),
    ],
)  # fmt: skip
def test_a_container_has_no_more_than_its_quota(tmp_path, monkeypatch, files, threads):
    """One file in version 2 of control groups, two in version 1; no quota is "max", or -1."""
    bound(monkeypatch, 8)
    places = [tmp_path / str(number) for number in range(len(files))]
    for place, text in zip(places, files, strict=True):
        place.write_text(text + "\n")
    monkeypatch.setattr(own, "QUOTAS", ((str(tmp_path / "none"),), tuple(map(str, places))))
    assert own.cores() == threads


def test_a_process_that_is_told_its_part_takes_no_more(monkeypatch):
    bound(monkeypatch, 8)
    monkeypatch.setenv(own.THREADS, "3")
    assert own.cores() == 3
